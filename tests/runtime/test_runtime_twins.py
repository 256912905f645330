"""What the runtime computes on arrays is what torch's side computes on tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from models import arrays

from gbpn.measurements.unit import DepthUnit as TorchUnit
from gbpn.runtime.depth_unit import DepthUnit
from gbpn.sigma import held_out


@pytest.mark.parametrize("kind", ["metric", "median", "log"])
def test_units_are_twins(kind: str) -> None:
    _, sparse, _ = arrays(40, 50)
    unit, twin = DepthUnit.of(kind, sparse), TorchUnit.of(kind, torch.from_numpy(sparse)[None, None])
    assert float(unit.metres) == float(twin.metres)
    values = torch.from_numpy(sparse)[None, None]
    for name in ("into", "out"):
        expected = getattr(twin, name)(values)[0, 0].numpy()
        np.testing.assert_allclose(getattr(unit, name)(sparse), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(unit.seen(sparse), twin.relative_to(twin, values)[0, 0].numpy(), rtol=1e-5)


def test_the_draw_is_that_of_torch() -> None:
    settings = held_out.SETTINGS
    draw = torch.rand(40, 50, generator=torch.Generator().manual_seed(0)) < settings.share
    few = np.zeros((40, 50), dtype=bool)
    few[::8, ::10] = True
    assert few.sum() == settings.fewest
    assert np.array_equal(held_out.drawn_patches(few), draw.numpy())
