"""A completed depth map in NumPy: what it says, how sure it is, and how to write it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gbpn import pictures
from gbpn.camera import points
from gbpn.data.depth_files import replacing, write_depth
from gbpn.depth import DepthDistribution

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class CompletedDepth:
    """One image's depth distribution; every map is [H, W] float32."""

    distribution: DepthDistribution
    """The maps as torch tensors [1, 1, H, W]."""
    image: Tensor
    """[3, H, W] RGB in [0, 1]."""
    sparse: Tensor
    """[1, H, W] metres, 0 where not measured."""
    intrinsics: Tensor
    """[3, 3]."""
    notices: tuple[str, ...] = field(default=())
    """What was assumed or is out of the model's range, in words."""

    @property
    def depth(self) -> Array:
        """Expected depth in metres; NaN where no measurement reached the pixel."""
        return _map(self.distribution.mean)

    @property
    def std(self) -> Array:
        """Standard deviation in metres, from the calibration stored with the weights."""
        return _map(self.distribution.std)

    @property
    def confidence(self) -> Array:
        """In (0, 1), for ranking pixels."""
        return _map(self.distribution.confidence)

    @property
    def belief_precision(self) -> Array:
        """Precision that belief propagation alone ends with."""
        return _map(self.distribution.belief_precision)

    @property
    def observed(self) -> Array:
        """[H, W] bool: where a measurement reached the pixel."""
        return self.distribution.observed[0, 0].cpu().numpy()

    @property
    def calibrated(self) -> bool:
        """Whether `std` is there."""
        return self.distribution.calibration is not None

    def to_png(self, path: str | Path, scale: float | None = None) -> Path:
        """Depth as 16-bit PNG, metres × scale; by default 1000, or 256 beyond 65 m. Unobserved is 0."""
        path = Path(path)
        if scale is None:
            scale = 1000.0 if float(np.nanmax(self.depth, initial=0)) < 65 else 256.0
        write_depth(path, torch.from_numpy(self.depth)[None], scale)
        return path

    def to_point_cloud(self, path: str | Path | None = None, *, drop: float = 0.05) -> tuple[Array, Array]:
        """([N, 3] metres in camera coordinates, [N, 3] uint8 RGB); binary PLY where a path is given.

        The `drop` share of least confident pixels is left out.
        """
        keep = self.observed
        if drop > 0 and keep.any():
            keep = keep & (self.confidence >= np.quantile(self.confidence[keep], drop))
        xyz = points(self.distribution.mean.cpu(), self.intrinsics[None])[0].permute(1, 2, 0).numpy()[keep]
        colours = pictures.photo(self.image)[keep]
        if path is not None:
            _write_ply(Path(path), xyz.astype(np.float32), colours)
        return xyz, colours

    def preview(self, path: str | Path | None = None) -> Image.Image:
        """Image, measurements, depth with a colour bar in metres, and confidence (or sigma) side by side."""
        low, high = pictures.spread(self.depth)
        count = int((self.sparse > 0).sum())
        certainty, title, unit, palette = (
            (self.std, "standard deviation", "m", pictures.ERROR)
            if self.calibrated
            else (self.confidence, "confidence", "", pictures.CONFIDENCE)
        )
        bottom, top = pictures.spread(certainty)
        depth = pictures.colours(self.depth, low, high, pictures.DEPTH)
        sure = pictures.colours(certainty, bottom, top, palette)
        panels = [
            pictures.titled(pictures.photo(self.image), "image"),
            pictures.titled(
                pictures.measurements(self.image, self.sparse, low, high), f"{count} measurements"
            ),
            pictures.titled(pictures.with_bar(depth, low, high, pictures.DEPTH), "depth"),
            pictures.titled(pictures.with_bar(sure, bottom, top, palette, unit), title),
        ]
        wide = self.image.shape[2] > 2 * self.image.shape[1]
        page = pictures.grid([[panel] for panel in panels] if wide else [panels])
        if path is not None:
            pictures.save(page, Path(path))
        return Image.fromarray(page)

    def save(self, folder: str | Path, stem: str, *, cloud: bool = False) -> list[Path]:
        """Depth (PNG, NPY), std, confidence, preview, perhaps a cloud; each at once or not at all."""
        folder = Path(folder)
        written = [self.to_png(folder / f"{stem}_depth.png")]
        arrays: dict[str, Any] = {"depth": self.depth, "confidence": self.confidence}
        if self.calibrated:
            arrays["std"] = self.std
        for name, array in arrays.items():
            path = folder / f"{stem}_{name}.npy"
            with replacing(path) as temporary:
                np.save(temporary, array)
            written.append(path)
        self.preview(folder / f"{stem}_preview.png")
        written.append(folder / f"{stem}_preview.png")
        if cloud:
            self.to_point_cloud(folder / f"{stem}.ply")
            written.append(folder / f"{stem}.ply")
        return written


def _map(tensor: Tensor) -> Array:
    return tensor[0, 0].detach().cpu().float().numpy()


def _write_ply(path: Path, xyz: Array, colours: Array) -> None:
    vertices = np.empty(len(xyz), dtype=[("xyz", "<f4", 3), ("rgb", "u1", 3)])
    vertices["xyz"], vertices["rgb"] = xyz, colours
    lines = [
        "ply",
        "format binary_little_endian 1.0",
        f"element vertex {len(xyz)}",
        *(f"property float {axis}" for axis in "xyz"),
        *(f"property uchar {name}" for name in ("red", "green", "blue")),
        "end_header\n",
    ]
    with replacing(path) as temporary:
        temporary.write_bytes("\n".join(lines).encode() + vertices.tobytes())
