"""Mixed precision: the network may run in bfloat16, inference does not."""

from __future__ import annotations

import pytest
import torch

from gbpn import build
from gbpn.gbp.inference import load_backend


@pytest.mark.parametrize("name", ["small", "gbpn-1"])
def test_autocast_draws_a_single_precision_field(name: str) -> None:
    model = build(name, width=0.125).eval()
    image, sparse = torch.rand(1, 3, 64, 64), torch.zeros(1, 1, 64, 64)
    sparse[..., ::8, ::8] = 2.0
    with torch.inference_mode():
        exact = model(image, sparse).mean
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half = model(image, sparse)
    assert half.mean.dtype == torch.float32
    torch.testing.assert_close(half.mean, exact, rtol=0.1, atol=0.05)


def test_compiled_inference_refuses_mixed_kinds_and_sizes() -> None:
    pytest.importorskip("gbpn._native", reason="needs the compiled kernels")
    load_backend("cpu")

    def call(changed: int, tensor: torch.Tensor) -> None:
        pair, slots = torch.rand(1, 1, 6, 7), torch.rand(1, 8, 6, 7)
        edges = torch.rand(1, 1, 4, 3, 6, 7)
        field = [pair, pair, slots, slots, pair, pair, edges, edges, torch.rand(1, 1, 6, 7)]
        field[changed] = tensor
        torch.ops.gbpn.infer(*field, None, None, None, None, 1, 0, 1.0, "none")

    with pytest.raises(ValueError, match="local_difference must be float32 like the others; got bfloat16"):
        call(7, torch.rand(1, 1, 4, 3, 6, 7).bfloat16())
    with pytest.raises(
        ValueError, match=r"local_difference must have shape .* W=7\]; got \[1, 1, 4, 3, 6, 5\]"
    ):
        call(7, torch.rand(1, 1, 4, 3, 6, 5))
