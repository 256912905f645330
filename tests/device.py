"""Where Triton kernels run in the tests: interpreted on the CPU, or with TRITON_INTERPRET=0 on a GPU."""

from __future__ import annotations

import os
from collections.abc import Callable

from torch import Tensor

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"


def on_device(golden: Callable[[str], dict[str, Tensor]]) -> Callable[[str], dict[str, Tensor]]:
    """The `golden` or `one_golden` fixture with its tensors moved there."""

    def load(name: str) -> dict[str, Tensor]:
        return {key: tensor.to(DEVICE) for key, tensor in golden(name).items()}

    return load
