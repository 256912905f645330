"""Where tests find the golden numbers and real data that live beside the project."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import pytest
import torch

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with golden numbers and real data; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared (golden numbers and real data), which is not on this machine")
    return SHARED


@pytest.fixture(scope="session")
def golden(shared: Path):
    """golden('op_sweeps')['c0_eta_in'] → tensor."""

    def load(name: str) -> dict[str, torch.Tensor]:
        with np.load(shared / "parity" / f"{name}.npz") as arrays:
            numeric = [key for key in arrays.files if arrays[key].dtype.kind in "fiub"]
            return {key: torch.from_numpy(arrays[key]) for key in numeric}

    return load
