"""A completed depth map in NumPy: what it says, how sure it is, and how to write it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gbpn.answer.output_files import FORMATS, require_formats, write_also
from gbpn.camera.pinhole import normals, points
from gbpn.camera.wide import WideCamera
from gbpn.distribution import DepthDistribution
from gbpn.errors import InputError
from gbpn.files.atomic import hidden_folder, to_disk, write_bytes
from gbpn.formats.cloud_files import Cloud, write_cloud
from gbpn.formats.depth_files import write_depth
from gbpn.how import How
from gbpn.measurements.areas import AreaGrid
from gbpn.measurements.keeping import change_at_measurements
from gbpn.measurements.validity import measured
from gbpn.show import pictures
from gbpn.sigma.limit import USUAL_LIMIT, SigmaLimit

__all__ = ["Array", "CompletedDepth", "also_with", "output_names", "png_scale"]

Array = np.ndarray

_PREVIEW_SIDE = 1280
"""Pixels; panels of a preview are thinned out to at most this."""


@dataclass(frozen=True, kw_only=True)
class CompletedDepth:
    """One image's depth distribution as plain data; every map is [H, W] float32, and a copy that is yours."""

    distribution: DepthDistribution
    """The maps as torch tensors [1, 1, H, W] on the CPU."""
    image: Tensor
    """[3, H, W] RGB in [0, 1]."""
    sparse: Tensor
    """[1, H, W] metres, 0 where not measured."""
    intrinsics: Tensor
    """[3, 3]."""
    notices: tuple[str, ...] = field(default=())
    """What was assumed or is out of the model's range, in words."""
    max_sigma: SigmaLimit | None = None
    """What `trusted` means; None: the usual."""
    areas: tuple[int, int] | None = None
    """(h, w) of a smaller depth map whose means stand at the centres of their areas; None: single pixels."""
    how: How = field(default=How())
    """How it was completed."""
    wide: WideCamera | None = None
    """A panorama or a fisheye lens, whose depth is the range along each pixel's ray, and whose `matrix` is in
    `intrinsics`; None: a pinhole, and depth is z."""

    @property
    def depth(self) -> Array:
        """Expected depth in metres; NaN where no measurement reached the pixel."""
        return _map(self.distribution.mean)

    @property
    def std(self) -> Array:
        """Standard deviation in metres; NaN where unobserved. An error where it was left out."""
        widest = float(self.sparse[measured(self.sparse)].max()) * self.how.answers_reach
        std = np.nan_to_num(_map(self.distribution.std), nan=widest, posinf=widest)
        return np.where(self.observed, np.clip(std, 1e-9 * widest, widest), np.float32(np.nan))

    @property
    def confidence(self) -> Array:
        """In [0, 1), for ranking pixels; 0 where unobserved."""
        return np.where(self.observed, _map(self.distribution.confidence), np.float32(0))

    @property
    def belief_precision(self) -> Array:
        """Precision that belief propagation alone ends with."""
        return _map(self.distribution.belief_precision)

    @property
    def observed(self) -> Array:
        """[H, W] bool: where a measurement reached the pixel."""
        return self.distribution.observed[0, 0].cpu().numpy()

    @property
    def dropped(self) -> Array:
        """[H, W] bool: measurements that were not used, since the rest contradicts them."""
        there = measured(self.sparse[0]).numpy()
        mask = self.distribution.dropped
        return np.zeros_like(there) if mask is None else there & mask[0, 0].cpu().numpy()

    @property
    def outlier_notice(self) -> str | None:
        """How many measurements were not used, in words."""
        if not (count := int(self.dropped.sum())):
            return None
        return (
            f"{count} of {int(measured(self.sparse).sum())} measurements contradict the rest "
            "and were not used (outliers='keep' uses them)"
        )

    @property
    def calibrated(self) -> bool:
        """Whether `std` is there."""
        return self.distribution.calibrated

    @property
    def change(self) -> Array:
        """[N] metres: how far the depth is from each measurement that was used; of areas, from the means."""
        sparse = torch.where(torch.from_numpy(self.dropped)[None], 0.0, self.sparse)
        mean = self.distribution.mean[0].cpu()
        if self.areas is not None:
            grid = AreaGrid.of(self.areas, (sparse.shape[1], sparse.shape[2]))
            sparse, mean = grid.at_centres(sparse), grid.means(mean)
        return change_at_measurements(mean, sparse).numpy()

    def trusted(self, max_sigma: Any = None) -> Array:
        """[H, W] bool: pixels whose σ is at most `max_sigma`, metres or a share such as "5%".

        None: `self.max_sigma`, else 5 % of the depth. Weights without a calibration have no σ: there the
        least confident twentieth is not trusted.
        """
        there = self.observed
        if self.calibrated:
            limit = USUAL_LIMIT if max_sigma is None and self.max_sigma is None else None
            limit = limit or SigmaLimit.of(self.max_sigma if max_sigma is None else max_sigma)
            return np.asarray(there & limit.keeps(self.depth, self.std))
        if max_sigma is not None or self.max_sigma is not None:
            raise InputError("these weights state no sigma, so none can be limited: load calibrated weights")
        return (
            there & (self.confidence >= np.quantile(self.confidence[there], 0.05)) if there.any() else there
        )

    def trusted_depth(self) -> Array:
        """`depth` with NaN where it is not `trusted`."""
        return np.where(self.trusted(), self.depth, np.float32(np.nan))

    def to_png(self, path: str | Path, scale: float | None = None) -> Path:
        """Depth as 16-bit PNG, metres × scale; by default 1000, or 256 beyond 65 m. Unobserved is 0."""
        path = Path(path)
        if scale is None:
            scale = png_scale(self.depth)
        write_depth(path, torch.from_numpy(self.depth)[None], scale)
        return path

    def to_point_cloud(
        self, path: str | Path | None = None, *, drop: float | None = None, max_sigma: Any = None
    ) -> tuple[Array, Array]:
        """([N, 3] metres in camera coordinates, [N, 3] uint8 RGB); .ply or .glb where a path is given.

        max_sigma  pixels that are not `trusted` are left out
        drop       instead, this share of least confident pixels is left out
        """
        keep = self.observed if drop is not None else self.trusted(max_sigma)
        if drop and keep.any():
            keep = keep & (self.confidence >= np.quantile(self.confidence[keep], drop))
        cloud = self.cloud(keep)
        if path is not None:
            write_cloud(path, cloud)
        return cloud.points, cloud.colours

    def cloud(self, keep: Array | None = None) -> Cloud:
        """The pixels where `keep` [H, W] holds, else those that are `trusted`, in camera coordinates."""
        keep = self.trusted() if keep is None else keep
        if self.wide is None:
            xyz = points(self.distribution.mean.cpu(), self.intrinsics[None])[0].permute(1, 2, 0).numpy()
        else:
            xyz = (self.wide.directions(*self.depth.shape) * self.depth[..., None]).astype(np.float32)
        return Cloud(
            points=xyz[keep],
            colours=pictures.photo(self.image)[keep],
            normals=normals(xyz)[keep],
            std=self.std[keep] if self.calibrated else None,
        )

    def preview(self, path: str | Path | None = None) -> Image.Image:
        """Image, measurements, depth with a colour bar in metres, and confidence (or sigma) side by side."""
        step = -(-max(self.image.shape[1:]) // _PREVIEW_SIDE)
        image, sparse = self.image[:, ::step, ::step], _nearest(self.sparse, step)
        metres = self.depth[::step, ::step]
        low, high = pictures.value_range(metres)
        count, without = int(measured(self.sparse).sum()), int(self.dropped.sum())
        crossed = np.stack(np.nonzero(self.dropped)) // step
        certainty, title, unit, palette = (
            (self.std[::step, ::step], "standard deviation", "m", pictures.ERROR)
            if self.calibrated
            else (self.confidence[::step, ::step], "confidence", "", pictures.CONFIDENCE)
        )
        bottom, top = pictures.value_range(certainty)
        depth = pictures.colours(metres, low, high, pictures.DEPTH)
        sure = pictures.colours(certainty, bottom, top, palette)
        name = "depth" if self.wide is None else "range"
        panels = [
            pictures.titled(pictures.photo(image), "image"),
            pictures.titled(
                pictures.measurements(image, sparse, low, high, crossed),
                f"{count} measurement{'' if count == 1 else 's'}{f', {without} not used' if without else ''}",
            ),
            pictures.titled(pictures.with_bar(depth, low, high, pictures.DEPTH), name),
            pictures.titled(pictures.with_bar(sure, bottom, top, palette, unit), title),
        ]
        wide = self.image.shape[2] > 2 * self.image.shape[1]
        page = pictures.grid([[panel] for panel in panels] if wide else [panels])
        if path is not None:
            pictures.save(page, Path(path))
        return Image.fromarray(page)

    def save(
        self, folder: str | Path, stem: str, *, cloud: bool = False, also: Sequence[str] = ()
    ) -> list[Path]:
        """Depth (PNG, NPY), std, confidence, preview, perhaps a cloud, and `also` of `output_files.FORMATS`.

        All are made in a hidden folder first and then moved into place: where one cannot be written, none is.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with hidden_folder(folder) as hidden:
            made = [self.to_png(hidden / f"{stem}_depth.png")]
            arrays: dict[str, Array] = {"depth": self.depth, "confidence": self.confidence}
            if self.calibrated:
                arrays["std"] = self.std
            for name, array in arrays.items():
                made.append(hidden / f"{stem}_{name}.npy")
                _write_array(made[-1], array)
            made.append(hidden / f"{stem}_preview.png")
            self.preview(made[-1])
            made += write_also(self, hidden, stem, also_with(cloud, also))
            for path in made:
                to_disk(path)
            return [path.replace(folder / path.name) for path in made]


def png_scale(depth: Array) -> float:
    """What a 16-bit PNG multiplies metres with so that all of them fit: 1000, 256 beyond 65 m, then less."""
    highest = float(np.nanmax(depth, initial=0))
    return next((s for s in (1000.0, 256.0, 16.0, 1.0) if highest * s < 65535), 65000 / max(highest, 1))


def also_with(cloud: bool, also: Sequence[str]) -> tuple[str, ...]:
    """Names of formats, a cloud first where one is wanted."""
    return require_formats([*(["ply"] if cloud else []), *also])


def output_names(stem: str, *, calibrated: bool, cloud: bool, also: Sequence[str] = ()) -> list[str]:
    """The files that `CompletedDepth.save` writes."""
    arrays = ["depth", "confidence", *(["std"] if calibrated else [])]
    names = [f"{stem}_depth.png", *(f"{stem}_{name}.npy" for name in arrays), f"{stem}_preview.png"]
    return [*names, *(f"{stem}{FORMATS[name][0]}" for name in also_with(cloud, also))]


def _nearest(sparse: Tensor, step: int) -> Tensor:
    """[1, H, W] → every `step` pixels the nearest measurement of their block, so that no point gets lost."""
    if step == 1:
        return sparse
    far = torch.where(measured(sparse), sparse, torch.full_like(sparse, torch.inf))
    near = -torch.nn.functional.max_pool2d(-far[None], step, ceil_mode=True)[0]
    return torch.where(torch.isinf(near), 0.0, near)


def _write_array(path: Path, array: Array) -> None:
    """As `np.save`, which on a full disk does not say so."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    write_bytes(path, bytes(buffer.getbuffer()))


def _map(tensor: Tensor) -> Array:
    return tensor[0, 0].detach().cpu().float().numpy().copy()
