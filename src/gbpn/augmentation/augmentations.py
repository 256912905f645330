"""Augmentations: `(sample, rng) -> Sample`, pure, every draw from the generator given.

`NyuAugmentation` and `KittiAugmentation` restate the released recipes; `VariedAugmentation` is for pools of
small frames.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gbpn.augmentation import geometry
from gbpn.camera.colour import luma
from gbpn.errors import InputError
from gbpn.sample import Sample
from gbpn.sensors import patterns, sampling

__all__ = [
    "AUGMENTATIONS",
    "Augmentation",
    "KittiAugmentation",
    "NyuAugmentation",
    "VariedAugmentation",
    "colour_jitter",
    "principal_colour_noise",
]


@dataclass(frozen=True, kw_only=True)
class NyuAugmentation:
    """The released NYUv2 training recipe, from the whole frame (480×640, or any size of that shape).

    Intrinsics follow the size and crop that were really taken; the released code rounds them on their own and
    is off by up to a pixel.
    """

    height: int = 228
    """Rows of the centre crop."""
    width: int = 304
    """Columns of the centre crop."""
    points: int = 500
    """Random measurements over pixels with depth."""
    depth_variation: float = 0.4
    """All depths times U(1 − v, 1 + v)."""
    zoom: float = 1.5
    """Short side becomes int(240 s), s in U(1, zoom); depths are not divided by s, intrinsics follow."""
    degrees: float = 5.0
    """Rotation in U(−degrees, degrees); the released recipe leaves the intrinsics as they are."""
    jitter: float = 0.4
    """Brightness, contrast and saturation factors in U(1 − j, 1 + j)."""
    whole_frame = True

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        scale = rng.uniform(1.0, self.zoom)
        factor = rng.uniform(1 - self.depth_variation, 1 + self.depth_variation)
        if rng.random() < 0.5:
            sample = geometry.flip(sample)
        angle = rng.uniform(-self.degrees, self.degrees)
        sample = geometry.resize_filtered(sample, int(240 * scale), angle)
        sample = replace(sample, image=colour_jitter(sample.image, rng, self.jitter))
        sample = geometry.scale_depth(geometry.center_crop(sample, self.height, self.width), factor)
        if sample.target is None:
            raise InputError(
                f"{sample.name}: this recipe samples its measurements from the target; there is none"
            )
        return replace(sample, sparse=patterns.random_points(sample.target, rng, self.points))


@dataclass(frozen=True, kw_only=True)
class KittiAugmentation:
    """The released KITTI training recipe: PCA colour noise, flip, crop away from the sky."""

    height: int = 288
    """Rows of the random crop."""
    width: int = 1216
    """Columns of the random crop."""
    top_margin: int = 50
    """The crop starts at least this many rows down (less where the frame is too low for it)."""
    colour_noise: float = 0.1
    """Standard deviation of the multiples of each principal colour."""
    whole_frame = True

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        sample = replace(sample, image=principal_colour_noise(sample.image, rng, self.colour_noise))
        if rng.random() < 0.5:
            sample = geometry.flip(sample)
        full_height, full_width = sample.image.shape[-2:]
        if full_height < self.height or full_width < self.width:
            raise InputError(
                f"{sample.name}: a frame of {full_height}×{full_width} is smaller than "
                f"the crop {self.height}×{self.width}: give a smaller height or width"
            )
        lowest = full_height - self.height
        top = int(rng.integers(min(self.top_margin, lowest), lowest + 1))
        left = int(rng.integers(0, full_width - self.width + 1))
        return geometry.crop(sample, top, left, self.height, self.width)


@dataclass(frozen=True, kw_only=True)
class VariedAugmentation:
    """For mixed pools: any frame to one size, one warp for zoom, turn and place, any sensor."""

    height: int = 192
    """Rows of the result."""
    width: int = 256
    """Columns of the result."""
    zoom: float = 1.5
    """At zoom 1 the result just covers the frame's shorter side; up to this much closer."""
    degrees: float = 5.0
    """Turn in U(−degrees, degrees) about the frame's centre; intrinsics follow."""
    native: float = 0.0
    """Share of frames that are cut out at their own pixels, neither zoomed nor turned: sharp, as in use."""
    flip: float = 0.5
    """Share of frames that are mirrored. Depth cameras err on one side of things only: a network that never
    sees mirrored frames can learn which."""
    depth_variation: float = 0.4
    """All depths times U(1 − v, 1 + v)."""
    jitter: float = 0.4
    """Brightness, contrast and saturation factors in U(1 − j, 1 + j)."""
    grey: float = 0.05
    """Share of frames that lose their colour."""
    points: tuple[int, int] = (5, 20000)
    """Range of the number of random measurements, log-uniform."""
    extremes: float = 0.0
    """Share of frames whose number of measurements is log-uniform in `sampling.ANY_NUMBER` instead."""
    corrupted: float = 0.2
    """Share of frames with noise and outliers in their measurements."""
    others: float = 0.5
    """Share of frames measured by something else than uniform random points."""
    pattern: str | None = None
    """One fixed pattern such as points:500; None draws from the mixture of all."""
    whole_frame = False

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        sample = self._place(sample, rng)
        if rng.random() < self.flip:
            sample = geometry.flip(sample)
        image = colour_jitter(sample.image, rng, self.jitter)
        if rng.random() < self.grey:
            image = luma(image).expand(3, -1, -1).contiguous()
        factor = rng.uniform(1 - self.depth_variation, 1 + self.depth_variation)
        sample = geometry.scale_depth(replace(sample, image=image), factor)
        if bool(sample.sparse.any()):
            return sample  # a real sensor measured; its pattern stays
        if self.pattern is not None:
            return sampling.sparsify(sample, self.pattern, rng)
        extreme = self.extremes > 0 and rng.random() < self.extremes
        points = sampling.ANY_NUMBER if extreme else self.points
        return sampling.mixture(sample, rng, points, self.corrupted, self.others)

    def _place(self, sample: Sample, rng: np.random.Generator) -> Sample:
        full_height, full_width = sample.image.shape[-2:]
        cover = max(self.height / full_height, self.width / full_width)
        if cover <= 1 and self.native and rng.random() < self.native:
            row = int(rng.integers(full_height - self.height + 1))
            column = int(rng.integers(full_width - self.width + 1))
            return geometry.crop(sample, row, column, self.height, self.width)
        if cover < 0.5:  # a strong reduction needs the low-pass filter of `resize`
            sample = geometry.resize(
                sample, round(full_height * cover * 1.5), round(full_width * cover * 1.5)
            )
            full_height, full_width = sample.image.shape[-2:]
            cover = max(self.height / full_height, self.width / full_width)
        scale = cover * rng.uniform(1.0, self.zoom)
        turn = geometry.rotation(
            rng.uniform(-self.degrees, self.degrees), (full_width - 1) / 2, (full_height - 1) / 2
        )
        left = rng.uniform(0, 1) * (full_width * scale - self.width)
        top = rng.uniform(0, 1) * (full_height * scale - self.height)
        shift = (scale - 1) / 2  # pixel centres stay centres
        zoom = np.array([[scale, 0, shift - left], [0, scale, shift - top], [0, 0, 1]])
        return geometry.warp(sample, zoom @ turn, self.height, self.width)


Augmentation = Callable[[Sample, np.random.Generator], Sample]
AUGMENTATIONS: dict[str, Callable[..., Augmentation]] = {
    "nyu": NyuAugmentation,
    "kitti": KittiAugmentation,
    "varied": VariedAugmentation,
}


def colour_jitter(image: Tensor, rng: np.random.Generator, amount: float = 0.4) -> Tensor:
    """Brightness, contrast and saturation by factors in U(1 − amount, 1 + amount), in random order."""
    for step in rng.permutation(3):
        factor = float(rng.uniform(max(0.0, 1 - amount), 1 + amount))
        if step == 0:
            image = image * factor
        elif step == 1:
            image = torch.lerp(luma(image).mean().expand_as(image), image, factor)
        else:
            image = torch.lerp(luma(image).expand_as(image), image, factor)
        image = image.clamp_(0, 1)
    return image


def principal_colour_noise(image: Tensor, rng: np.random.Generator, deviation: float = 0.1) -> Tensor:
    """Shift all colours along the image's own principal directions, each by N(0, deviation)·√eigenvalue."""
    pixels = image.reshape(3, -1).double().numpy()
    values, vectors = np.linalg.eigh(np.cov(pixels))
    shift = vectors @ (rng.normal(0, deviation, 3) * np.sqrt(np.maximum(values, 0)))
    shifted = image + torch.from_numpy(shift.astype(np.float32))[:, None, None]
    return shifted.clamp(0, 1).mul(255).floor().div(255)  # the released code goes back to 8 bits here
