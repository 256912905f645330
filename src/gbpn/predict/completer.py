"""`DepthCompleter`: one call from an image and a few measurements to depth and its uncertainty."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gbpn import checkpoint
from gbpn.depth import DepthDistribution
from gbpn.errors import InputError
from gbpn.model import Model
from gbpn.predict import large
from gbpn.predict.completed import CompletedDepth
from gbpn.predict.inputs import as_image, as_intrinsics, as_sparse


class DepthCompleter:
    """Completes depth for images of any size with one model; safe to call from several threads.

    >>> completer = DepthCompleter.from_pretrained()
    >>> result = completer("photo.jpg", "depth.png", scale=1000)
    >>> result.depth, result.confidence  # [H, W] metres, and in (0, 1)
    """

    def __init__(self, model: Model, *, device: str | torch.device = "cpu") -> None:
        self.model = model.eval().to(device)
        self.device = torch.device(device)

    @classmethod
    def from_pretrained(
        cls, source: str | os.PathLike[str] = "default", *, device: str = "auto", **overrides: Any
    ) -> DepthCompleter:
        """With weights by name, path or hub id (see `gbpn.load`); "auto" takes a GPU if there is one."""
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        model = checkpoint.load(source, device=device, fuse=True, **overrides)
        return cls(model, device=device)

    def __call__(
        self, image: Any, sparse: Any, intrinsics: Any = None, *, scale: float | None = None
    ) -> CompletedDepth:
        """Complete one image.

        image       path, PIL picture, NumPy [H, W, 3] or torch [3, H, W]; see `inputs.as_image`
        sparse      path, array [H, W] in metres (0 or NaN: not measured) or points [N, 3] of x, y, depth
        intrinsics  fx, fy, cx, cy; a 3×3 matrix; a file; None: EXIF, else a stated default
        scale       what integer depth files or arrays are divided by: 1000 for millimetres, 256 for KITTI
        """
        picture = as_image(image)
        _, height, width = picture.shape
        measured = as_sparse(sparse, height, width, scale)
        if not bool((measured > 0).any()):
            raise InputError("there is no measurement: every value of the sparse depth is 0 or NaN")
        camera, notice = as_intrinsics(intrinsics, image, height, width)
        answer = self._complete(picture, measured, camera)
        notices = [notice] if notice else []
        return CompletedDepth(
            distribution=answer,
            image=picture,
            sparse=measured,
            intrinsics=camera,
            notices=tuple(notices + list(self._out_of_range(picture, measured))),
        )

    @torch.inference_mode()
    def _complete(self, image: Tensor, sparse: Tensor, intrinsics: Tensor) -> DepthDistribution:
        height, width = image.shape[1:]
        factor = large.reduction(height, width)
        if factor < 1:
            image, sparse, intrinsics = large.reduce(image, sparse, intrinsics, factor)
        batch = (tensor[None].to(self.device) for tensor in (image, sparse, intrinsics))
        answer = self.model(*batch)
        return large.enlarge(answer, height, width) if factor < 1 else answer

    def _out_of_range(self, image: Tensor, sparse: Tensor) -> Iterator[str]:
        """Where the input leaves what the weights were trained for, as their card states it."""
        height, width = image.shape[1:]
        if (factor := large.reduction(height, width)) < 1:
            yield (
                f"{height}×{width} is completed at {factor:.2f} of its size and enlarged again: "
                f"images above {large.MOST_PIXELS / 1e6:.1f} megapixels are reduced"
            )
        trained = self.model.card.get("trained_for", {})
        values = sparse[sparse > 0]
        for name, low, high, unit in (
            ("points", len(values), len(values), ""),
            ("depth", float(values.min()), float(values.max()), " m"),
        ):
            if name in trained and (low < trained[name][0] or high > trained[name][1]):
                lowest, highest = trained[name]
                yield (
                    f"{name} from {low:g} to {high:g}{unit}: these weights were trained for "
                    f"{lowest:g} to {highest:g}{unit}, expect more error than sigma says"
                )
