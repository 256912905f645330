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


def test_golden_numbers_stay_compact() -> None:
    assert sum(file.stat().st_size for file in goldens.COMPACT.iterdir()) <= 3_000_000


@pytest.mark.parametrize("case", ["default_network", "seeds", "pictures"])
def test_nothing_changed_unnoticed(case: str) -> None:
    got = own_goldens.CASES[case]()
    assert set(got) == set(goldens.read(goldens.COMPACT / f"{case}.npz"))
    compare(case, got)


@pytest.mark.parametrize("name", CONFIGS)
def test_networks_start_as_approved(name: str) -> None:
    """Constant tensors exactly; random ones, which differ by version of torch, by their deviation."""
    got = own_goldens.fresh(name)[name]
    wanted = goldens.read(goldens.COMPACT / "fresh_networks.npz")[name]
    np.testing.assert_array_equal(got[:, 0], wanted[:, 0])
    for (count, mean, std), (_, wanted_mean, wanted_std) in zip(got, wanted, strict=True):
        if wanted_std < 1e-9 or count < 16:
            assert (std < 1e-9) == (wanted_std < 1e-9)
        if wanted_std < 1e-9:
            assert mean == pytest.approx(wanted_mean, rel=1e-5, abs=1e-7)
        elif count >= 16:
            assert std == pytest.approx(wanted_std, rel=max(0.03, 4 / count**0.5))


@pytest.mark.parametrize("name", CONFIGS)
def test_no_configuration_changed_unnoticed(name: str) -> None:
    compare("configurations", {f"{name}.{k}": v for k, v in own_goldens.configuration(name).items()})
