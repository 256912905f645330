"""What goes into the network and comes out of it: a frame padded to its grid, and the unit of its depth."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from gbpn.camera import default_intrinsics, shifted
from gbpn.config import ModelConfig
from gbpn.errors import InputError, require_finite, require_shape

SMALLEST_SIDE = 32


@dataclass(frozen=True, kw_only=True)
class Frame:
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
    def of(cls, image: Tensor, intrinsics: Tensor | None, config: ModelConfig, multiple: int) -> Frame:
        """`image` [B, 3, H, W] RGB in [0, 1]; `intrinsics` [B, 3, 3] or None for `default_intrinsics`."""
        require_shape("image", image, (None, 3, None, None), "RGB in [0, 1], with a batch axis")
        batch, _, height, width = image.shape
        if min(height, width) < SMALLEST_SIDE or batch == 0:
            raise InputError(
                f"image must be [1 or more, 3, {SMALLEST_SIDE} or more, {SMALLEST_SIDE} or more]; "
                f"got {list(image.shape)}"
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
        if bool((sparse < 0).any()):
            raise InputError(
                f"sparse must not be negative; got {float(sparse.min()):g}: 0 or NaN means not measured"
            )
        top, left = self.corner
        return functional.pad(
            sparse.to(self.image),
            (left, padded_width - width - left, top, padded_height - height - top),
        )

    def cropped(self, maps: Tensor) -> Tensor:
        """The part of maps [B, C, H', W'] that belongs to the image."""
        (top, left), (height, width) = self.corner, self.size
        return maps[..., top : top + height, left : left + width]


@dataclass(frozen=True, kw_only=True)
class DepthUnit:
    """The unit in which a field counts depth: metres, or the frame's own scale."""

    kind: str
    """"metric", "median" or "log"; see `ModelConfig.depth_scale`."""
    metres: Tensor
    """[B, 1, 1, 1] metres in one unit."""

    @classmethod
    def of(cls, kind: str, sparse: Tensor) -> DepthUnit:
        """From measurements [B, 1, H, W]; a frame without any counts in metres."""
        batch = sparse.shape[0]
        metres = sparse.new_ones(batch)
        if kind != "metric":
            values = torch.where(sparse > 0, sparse, torch.full_like(sparse, torch.nan))
            metres = values.detach().flatten(1).nanmedian(dim=1).values.nan_to_num(1.0)
        return cls(kind=kind, metres=metres.view(batch, 1, 1, 1))

    def into(self, depth: Tensor) -> Tensor:
        """Metres → the field's unit; 0 stays 0."""
        if self.kind == "metric":
            return depth
        relative = depth / self.metres
        if self.kind == "median":
            return relative
        return torch.where(depth > 0, torch.where(depth > 0, relative, 1.0).log(), 0.0)

    def variance(self, depth: Tensor, std: Tensor) -> Tensor:
        """Of measurements `depth` with standard deviation `std`, both metres, in the field's unit squared."""
        if self.kind == "log":
            return (std / torch.where(depth > 0, depth, 1.0)).square()
        return (std / self.metres).square()

    def relative(self, value: Tensor) -> Tensor:
        """The field's unit → what the second stage looks at: metres, or multiples of the median."""
        return value.exp() if self.kind == "log" else value

    def out(self, value: Tensor) -> Tensor:
        """The field's unit → metres."""
        return value if self.kind == "metric" else self.relative(value) * self.metres
