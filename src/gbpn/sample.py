"""What the data side hands on: one image with its few depth measurements."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gbpn.errors import InputError

__all__ = ["Sample"]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One frame. Depth in metres; 0 in `sparse` or `target` means not measured."""

    image: Tensor
    """[3, H, W] RGB in [0, 1]."""
    sparse: Tensor
    """[1, H, W] measured depth."""
    intrinsics: Tensor
    """[3, 3] pinhole matrix for this image size; pixel centres at integer coordinates."""
    target: Tensor | None = None
    """[1, H, W] depth to predict, where known."""
    name: str = ""
    """What a report calls this frame; unique within a dataset."""

    def __post_init__(self) -> None:
        height, width = self.image.shape[-2:]
        for name, tensor, wanted in (
            ("image", self.image, (3, height, width)),
            ("sparse", self.sparse, (1, height, width)),
            ("target", self.target, (1, height, width)),
            ("intrinsics", self.intrinsics, (3, 3)),
        ):
            if tensor is not None and tuple(tensor.shape) != wanted:
                raise InputError(
                    f"sample {self.name!r}: {name} must be {list(wanted)} for an image of {height}×{width}; "
                    f"got {list(tensor.shape)}"
                )
