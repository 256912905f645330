"""Threads of native operators: torch's own team where there is one, others after a fork or without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("gbpn._native", reason="needs the compiled module gbpn._native")

_AFTER_A_FORK = """
import os, torch
from gbpn.network.upscale import Upscale

torch.set_num_threads(2)
layer, x = Upscale(8, 9).requires_grad_(False), torch.randn(2, 8, 33, 47)
before = layer(x).numpy()
child = os.fork()
if not child:
    os._exit(0 if (layer(x).numpy() == before).all() else 1)  # torch's own operations would wait for ever
assert os.waitpid(child, 0)[1] == 0
assert (layer(x).numpy() == before).all()
"""

_WITHOUT_TORCH = """
import sys
import numpy as np
from gbpn import _native

x, weight = np.ones((1, 2, 3, 4), np.float32), np.ones((5, 2, 2, 2), np.float32)
planes = np.zeros((1, 5, 6, 8), np.float32)
inputs = {"x": x, "weight": weight, "bias": np.ones(5, np.float32)}
_native.upscale(inputs=inputs, outputs={"planes": planes}, threads=2)
assert (planes == 3).all()
assert "torch" not in sys.modules
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_work_after_a_fork_ends() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", _AFTER_A_FORK], check=True, timeout=120)


def test_threads_without_torch() -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_TORCH], check=True, timeout=120)
