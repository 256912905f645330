"""Rendered places as a scanner sees them, beside a camera whose calibration is wrong by a known rotation."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from torch.nn.functional import interpolate

from gbpn.camera.pinhole import scaled, shifted
from gbpn.camera.rotation import Rotation
from gbpn.inputs.measurements import Measurements, rotated_measurements
from gbpn.sample import Sample
from gbpn.synthetic.dataset import SyntheticDataset

__all__ = ["ROWS", "scanned", "scans"]

ROWS = 4
"""Pixels between two scan lines; points of a line are 2 apart."""


@cache
def scans(count: int = 12) -> tuple[Sample, ...]:
    """Frames of 240 × 320 pixels of one camera with exact depth on scan lines."""
    dataset = SyntheticDataset(count=count, seed=5)
    samples = [dataset.load(index) for index in range(count)]
    focal = 1.1 * max(float(sample.intrinsics[0, 0]) for sample in samples)
    return tuple(scanned(_enlarged(sample, focal)) for sample in samples)


def _enlarged(sample: Sample, focal: float) -> Sample:
    """The middle of the frame, as a camera of this longer focal length sees it."""
    assert sample.target is not None
    height, width = sample.image.shape[1:]
    share = focal / float(sample.intrinsics[0, 0])
    size = round(height * share), round(width * share)
    camera = scaled(shifted(sample.intrinsics, 0.5, 0.5), size[1] / width, size[0] / height)
    left, top = (round(float(camera[k, 2]) - side / 2) for k, side in enumerate((width, height)))
    window = (..., slice(top, top + height), slice(left, left + width))
    camera = shifted(camera, -0.5 - left, -0.5 - top)
    assert torch.allclose(
        camera, camera.new_tensor([[focal, 0, 159.5], [0, focal, 119.5], [0, 0, 1]]), atol=1
    )
    return replace(
        sample,
        image=interpolate(sample.image[None], size, mode="bilinear")[0][window].clamp(0, 1),
        target=interpolate(sample.target[None], size, mode="nearest-exact")[0][window],
        sparse=torch.zeros(1, height, width),
        intrinsics=camera,
    )


def scanned(sample: Sample, wrong: Rotation | None = None) -> Sample:
    """The frame with scan lines of its exact depth, which a wrong calibration puts elsewhere."""
    assert sample.target is not None
    sparse = torch.zeros_like(sample.target)
    sparse[:, ::ROWS, ::2] = sample.target[:, ::ROWS, ::2]
    if wrong is not None:
        sparse = rotated_measurements(Measurements(sparse=sparse), sample.intrinsics, wrong).sparse
    return replace(sample, sparse=sparse)
