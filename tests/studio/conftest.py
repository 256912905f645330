"""A thin model, and a server over it for a whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from talking import running

import gbpn
from gbpn.studio.limits import Limits
from gbpn.studio.run import Server


@pytest.fixture(scope="session")
def thin() -> gbpn.DepthCompleter:
    """Two stages, thin and untrained: conversations do not need good depth."""
    torch.manual_seed(0)
    return gbpn.DepthCompleter(gbpn.build("small-2", width=0.5).fuse())


@pytest.fixture(scope="session")
def learned() -> gbpn.DepthCompleter:
    """Thin and untrained too, with learned edges, a depth-like map and corrections in every iteration."""
    torch.manual_seed(0)
    return gbpn.DepthCompleter(gbpn.build("small-prior", width=0.5).fuse())


@pytest.fixture(scope="session")
def server(thin: gbpn.DepthCompleter) -> Iterator[Server]:
    with running(thin, limits=Limits(workers=2)) as one:
        yield one
