"""An image padded to the grid of the network, and maps cut back to the image."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from gbpn.camera.pinhole import default_intrinsics, shifted
from gbpn.config import ModelConfig
from gbpn.errors import InputError
from gbpn.kernels.checks import require_finite, require_not_negative, require_shape

__all__ = ["SMALLEST_SIDE", "PaddedImage"]

SMALLEST_SIDE = 32
"""Pixels; smaller images have nothing left after five halvings."""


@dataclass(frozen=True, kw_only=True)
class PaddedImage:
    """A normalised image whose sides the network can halve, with edge pixels repeated all around."""

    image: Tensor
    """[B, 3, H', W'] normalised and padded."""
    intrinsics: Tensor
    """[B, 3, 3] for the padded image."""
    size: tuple[int, int]
    """(H, W) before the padding."""
    corner: tuple[int, int]
    """(row, column) of the original image inside the padded one."""

    @classmethod
    def of(cls, image: Tensor, intrinsics: Tensor | None, config: ModelConfig, multiple: int) -> PaddedImage:
        """`image` [B, 3, H, W] RGB in [0, 1]; `intrinsics` [B, 3, 3] or None for `default_intrinsics`."""
        require_shape("image", image, (None, 3, None, None), "RGB in [0, 1], with a batch axis")
        batch, _, height, width = image.shape
        if height < SMALLEST_SIDE or width < SMALLEST_SIDE or batch == 0:
            raise InputError(
                f"image must be [1 or more, 3, {SMALLEST_SIDE} or more, {SMALLEST_SIDE} or more]; "
                f"got {list(image.shape)}: enlarge it, with its measurements"
            )
        require_finite(image=image)
        if intrinsics is None:
            intrinsics = default_intrinsics(height, width).to(image).expand(batch, 3, 3)
        require_shape("intrinsics", intrinsics, (batch, 3, 3), "one pinhole matrix per image")
        require_finite(intrinsics=intrinsics)
        mean, std = (
            torch.tensor(values, dtype=image.dtype, device=image.device).view(1, 3, 1, 1)
            for values in (config.image_mean, config.image_std)
        )
        rows, columns = -height % multiple, -width % multiple
        top, left = rows // 2, columns // 2
        padded = functional.pad(
            (image - mean) / std, (left, columns - left, top, rows - top), mode="replicate"
        )
        return cls(
            image=padded,
            intrinsics=shifted(intrinsics.to(image), left, top),
            size=(height, width),
            corner=(top, left),
        )

    def padded(self, sparse: Tensor) -> Tensor:
        """Measurements [B, 1, H, W], 0 or NaN where there are none, padded with none."""
        batch, _, padded_height, padded_width = self.image.shape
        height, width = self.size
        hint = f"metres, 0 or NaN where not measured, like image ({batch}, 3, {height}, {width})"
        require_shape("sparse", sparse, (batch, 1, height, width), hint)
        sparse = torch.where(torch.isnan(sparse), torch.zeros_like(sparse), sparse)
        require_finite(sparse=sparse)
        require_not_negative("sparse", sparse, "0 or NaN means not measured")
        top, left = self.corner
        return functional.pad(
            sparse.to(self.image),
            (left, padded_width - width - left, top, padded_height - height - top),
        )

    def cropped(self, maps: Tensor) -> Tensor:
        """The part of maps [B, C, H', W'] that belongs to the image."""
        (top, left), (height, width) = self.corner, self.size
        return maps[..., top : top + height, left : left + width]
