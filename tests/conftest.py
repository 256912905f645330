"""Where tests find the golden numbers and real data that live beside the project."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("TRITON_INTERPRET", "1")  # 0 runs the tests of kernels on a GPU

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


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton kernels on the CPU, two to four times as fast as the interpreter is by itself.

    It prepares the whole language anew at each call of a device function; a launch does that anyhow, and for
    Triton's own library once is enough.
    """
    pytest.importorskip("triton", reason="needs triton (pip install gbpn[gpu])")
    if os.environ["TRITON_INTERPRET"] != "1":
        return
    from triton.runtime.interpreter import InterpretedFunction

    slow, prepared = InterpretedFunction.__call__, set()

    def call(self, *arguments, **options):
        if self.fn.__module__ in prepared:
            return self.rewrite()(*arguments, **options)
        prepared.add(self.fn.__module__)
        return slow(self, *arguments, **options)

    monkeypatch.setattr(InterpretedFunction, "__call__", call)


@pytest.fixture
def poisoned():
    """New memory is full of NaN, so that a number that was never written shows."""
    torch.use_deterministic_algorithms(True)
    assert torch.empty(1).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def released_file(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint as its authors write it, of full width, with the deterministic weights of the goldens."""
    sys.path.insert(0, str(shared / "parity"))
    import fill_state

    layout = json.loads((shared / "parity" / "layout.json").read_text())["tensors"]
    filled = fill_state.fill(layout, 0)
    path = tmp_path_factory.mktemp("released") / "result_ema.pth"
    torch.save({"net": fill_state.to_state_dict(filled), "epoch": 100, "best_metric": 0.1}, path)
    return path
