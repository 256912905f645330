"""The global-local unit against the released one."""

from __future__ import annotations

import pytest
import torch

from gbpn.network.unit import GlobalLocalUnit
from gbpn.weights.released import unit_name
from goldens import assert_known_close, deterministic_weights

NOISE = 1.1e-6
"""Float32 noise of the released arithmetic (GOLDENS.md); we allow ten times that."""


@pytest.fixture(scope="module")
def unit() -> GlobalLocalUnit:
    unit = GlobalLocalUnit(64, dilation=2, window=7, head_channels=32, context_channels=64).eval()
    names = {name: f"unets.1.fuse1.0.{unit_name(name)}" for name in unit.state_dict()}
    layout = [(names[n], tuple(t.shape), str(t.dtype)[6:]) for n, t in unit.state_dict().items()]
    filled = deterministic_weights(layout)
    unit.load_state_dict({name: torch.from_numpy(filled[theirs]) for name, theirs in names.items()})
    return unit


def assert_close(got: torch.Tensor, wanted: torch.Tensor) -> None:
    assert_known_close(got, wanted, atol=10 * NOISE)


@torch.no_grad()
def test_unit_with_and_without_context(golden, unit: GlobalLocalUnit) -> None:
    g = golden("unit")
    assert_close(unit(g["x"], g["y"]), g["fused"])
    assert_close(unit(g["x"], None), g["self_only"])


@torch.no_grad()
def test_cross_half_step_by_step(golden, unit: GlobalLocalUnit) -> None:
    g = golden("unit")
    attended = unit.cross_attention(g["x"], g["y"])
    assert_close(attended, g["after_cross_attention"])
    assert_close(unit.cross_block(attended), g["after_cross_block"])


@pytest.mark.parametrize("block", ["global-local", "convolution", "attention"])
def test_a_fresh_unit_is_the_identity_and_every_part_learns(block: str) -> None:
    torch.manual_seed(0)
    unit = GlobalLocalUnit(8, dilation=1, window=3, head_channels=4, block=block, context_channels=8)
    for name, parameter in unit.named_parameters():
        if name.endswith("project.weight"):
            torch.nn.init.zeros_(parameter)
    x, y = torch.randn(2, 8, 9, 11), torch.randn(2, 8, 9, 11)
    torch.testing.assert_close(unit(x, y), x, rtol=0, atol=0)
    for parameter in unit.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    (unit(x, y) * torch.randn(2, 8, 9, 11)).sum().backward()
    for name, parameter in unit.named_parameters():
        assert float(parameter.grad.abs().max()) > 0, name
