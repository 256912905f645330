"""Our own networks and generators give the numbers that were approved last (`scripts/approve_goldens.py`)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import goldens
import own_goldens
from gbpn.config import CONFIGS


def compare(case: str, got: dict[str, np.ndarray]) -> None:
    wanted = goldens.read(goldens.COMPACT / f"{case}.npz")
    tolerance = own_goldens.TOLERANCES[case]
    for key, array in got.items():
        goldens.assert_known_close(
            torch.from_numpy(np.asarray(array, np.float64)),
            torch.from_numpy(wanted[key].astype(np.float64)),
            rtol=tolerance,
            atol=tolerance,
        )


@pytest.mark.parametrize("case", ["default_network", "seeds", "pictures"])
def test_nothing_changed_unnoticed(case: str) -> None:
    got = own_goldens.CASES[case]()
    assert set(got) == set(goldens.read(goldens.COMPACT / f"{case}.npz"))
    compare(case, got)


@pytest.mark.parametrize("name", CONFIGS)
def test_no_configuration_changed_unnoticed(name: str) -> None:
    compare("configurations", {f"{name}.{k}": v for k, v in own_goldens.configuration(name).items()})
