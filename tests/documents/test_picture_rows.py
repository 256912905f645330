"""Rows of pictures for whatever a network says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from gbpn.sample import Sample
from gbpn.show.pictures import PictureRow, strip


@pytest.mark.parametrize("depth", [2.0, 1e-30, 1e30, float("nan"), float("inf")])
def test_any_depth_is_drawn(depth: float, tmp_path) -> None:
    """Untrained networks answer in any power of ten; a warning is an error here."""
    target = torch.full((1, 12, 16), 2.0)
    sample = Sample(
        name="room",
        image=torch.rand(3, 12, 16),
        sparse=torch.zeros_like(target),
        intrinsics=torch.eye(3),
        target=target,
    )
    mean = torch.full_like(target, depth)
    strip([PictureRow(sample=sample, mean=mean, confidence=torch.rand(1, 12, 16))], tmp_path / "row.png")
    assert np.array(Image.open(tmp_path / "row.png")).ndim == 3
