"""Errors go to other processes as they are: pools, workers of a cluster, a queue."""

from __future__ import annotations

import errno
import pickle

import pytest

from gbpn import errors
from gbpn.studio.protocol import ProtocolError


@pytest.mark.parametrize("kind", [*(getattr(errors, name) for name in errors.__all__), ProtocolError])
def test_errors_pickle(kind: type[errors.GbpnError]) -> None:
    error = kind("what is wrong: what to do")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error)


@pytest.mark.parametrize("kind", [errors.WriteError, errors.StorageError])
def test_the_number_of_a_full_disk_travels_along(kind: type[OSError]) -> None:
    error = kind("no room")
    error.errno = errno.ENOSPC
    error.__dict__["passing"] = True
    back = pickle.loads(pickle.dumps(error))
    assert back.errno == errno.ENOSPC
    assert back.passing is True
