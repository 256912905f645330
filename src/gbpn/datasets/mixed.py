"""A pool of many small datasets in one layout, each scene with its own camera and role.

    ROOT/<dataset>/<scene>/meta.json      K, depth_scale, role; per_frame.<name>.K where cameras differ
    ROOT/<dataset>/<scene>/camera/*.json  K of each frame, where meta.json has none
    ROOT/<dataset>/<scene>/color/*.jpg
    ROOT/<dataset>/<scene>/depth/*.png    depth cameras: 16-bit, 0 = missing
    ROOT/<dataset>/<scene>/{lidar_raw,lidar_filtered,ring,gt_accum}/*.png    LiDAR scenes, instead of depth/
    ROOT/<dataset>/<scene>/<sensor>/*.png    drawn worlds: what a sensor measured, beside the exact depth/

ROOT may also be one <dataset> or one <scene>.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gbpn.augmentation import geometry
from gbpn.datasets.decoded import Decoded
from gbpn.errors import DatasetError, InputError
from gbpn.files.guard import reading, shown
from gbpn.formats.calibration import intrinsics_of
from gbpn.formats.depth_files import read_depth, require_scale
from gbpn.formats.images import SUFFIXES, read_pixels, to_tensor
from gbpn.sample import Sample
from gbpn.sensors.speckles import drop_speckles

__all__ = ["DAMAGED", "MixedDataset", "Scene"]

_TREE = "ROOT/<dataset>/<scene>/{meta.json, color/*.jpg, depth/*.png | lidar_raw/*.png}"
_SPLITS = ("train", "validation", "evaluation", "all")
_NYU_CROP = (228 / 240, 304 / 320)
"""Share of the rows and columns that the NYUv2 benchmark keeps; removes the white border of its pictures."""
_LIDAR_RINGS = 64
DAMAGED = ("icl_nuim",)
"""Datasets whose copies hold random depths along edges (values down to 1 cm in rooms of metres)."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One folder of frames that share a camera."""

    folder: Path
    name: str
    """`<dataset>/<scene>`."""
    meta: dict[str, Any]

    @property
    def role(self) -> str:
        return str(self.meta.get("role", "evaluation"))

    @property
    def is_lidar(self) -> bool:
        return not (self.folder / "depth").is_dir()

    def has(self, folder: str) -> bool:
        """Whether frames have maps in such a folder beside their `depth/`."""
        return not self.is_lidar and (self.folder / folder).is_dir()

    @property
    def sensors(self) -> list[str]:
        """Folders of further depth maps beside `depth/`."""
        if self.is_lidar:
            return []
        other = ("camera", "color", "depth", "ring")
        return sorted(p.name for p in self.folder.iterdir() if p.is_dir() and p.name not in other)

    @property
    def is_nyu(self) -> bool:
        return "nyu" in str(self.meta.get("dataset", self.name)).lower()

    def intrinsics(self, frame: str) -> Tensor:
        path = self.folder / "meta.json"
        with reading(path, "JSON file", "K of 3×3 numbers"):
            matrix = self.meta.get("per_frame", {}).get(frame, {}).get("K", self.meta.get("K"))
            if matrix is None and (own := self.folder / "camera" / f"{frame}.json").is_file():
                path, matrix = own, json.loads(own.read_text(encoding="utf-8")).get("K")
            if matrix is None or np.shape(matrix) != (3, 3):
                raise DatasetError(f"{path}: K must be a 3×3 matrix; got {shown(matrix)}")
            return intrinsics_of(np.asarray(matrix, dtype=np.float64))


class MixedDataset:
    """Frames of a pool; `split` selects by role.

    `train` and `validation` share the scenes with role train: the last `holdout` of each is `validation`.
    """

    def __init__(
        self,
        root: str | Path,
        split: str = "evaluation",
        *,
        scenes: tuple[str, ...] | None = None,
        holdout: float = 0.05,
        crop: bool = True,
        lidar: str = "raw",
        lines: int | None = None,
        accumulated: bool = True,
        clean: bool = True,
        cache: bool | str = False,
        repeat: Mapping[str, int] | None = None,
        sensors: str | tuple[str, ...] = (),
        target: str = "depth",
    ) -> None:
        """`scenes` keeps those whose `<dataset>/<scene>` is, or else starts with, one of the given names.

        `crop` applies the NYUv2 benchmark's centre crop to NYUv2 scenes. LiDAR scenes: `lidar` is raw or
        filtered (see-through points removed); `lines` keeps every (64/lines)-th ring as the measurement,
        default all with accumulated ground truth, else 32 with the other rings as target; without
        `accumulated` all scenes are of the second kind.
        `clean` drops the damaged target pixels of the datasets in DAMAGED.
        `cache` keeps decoded files (about 0.4 MB a 320×240 frame): True in memory, a folder's path in files
        there, which all workers and later runs share.
        `repeat` shows scenes of few frames more often in training: {"kitti": 3} counts all that start so
        three times.
        `sensors`: measurements come from these folders beside `depth/` where a scene has them, frame after
        frame from one after the other; `lines` thins out lidar_raw by its rings. `target` is predicted
        instead of `depth` where a scene has a folder of that name, such as kinect.
        """
        if split not in _SPLITS:
            raise InputError(f"split must be one of {', '.join(_SPLITS)}; got {split!r}")
        if lidar not in ("raw", "filtered"):
            raise InputError(f"lidar must be raw or filtered; got {lidar!r}")
        if lines is not None and (lines < 1 or _LIDAR_RINGS % lines):
            raise InputError(f"lines must divide {_LIDAR_RINGS}; got {lines}")
        if not 0 <= holdout < 1:
            raise InputError(f"holdout must be a share in [0, 1); got {holdout}")
        self.root = Path(root)
        self.crop, self.lidar, self.lines, self.clean = crop, lidar, lines, clean
        self.accumulated = accumulated
        if any(times < 1 for times in (repeat or {}).values()):
            raise InputError(f"repeat must count scenes once or more; got {repeat}")
        self._decoded = Decoded(Path(cache) if isinstance(cache, str) else None) if cache else None
        self._frames: list[tuple[Scene, str, Path]] = []
        found = _find_scenes(self.root)
        whole = {scene.name for scene in found}
        for scene in found:
            wanted = scenes is None or any(
                scene.name == given or (given not in whole and scene.name.startswith(given))
                for given in scenes
            )
            if wanted and (split == "all" or scene.role == ("train" if split == "validation" else split)):
                pictures = _part(_pictures(scene), split, holdout)
                times = _times(scene, repeat or {}) if split == "train" else 1
                self._frames += [(scene, picture.stem, picture) for picture in pictures] * times
        if not self._frames:
            chosen = f" among scenes {', '.join(scenes)}" if scenes else ""
            raise DatasetError(f"{self.root}: no frame with role {split!r}{chosen}; expected {_TREE}")
        self.sensors = (sensors,) if isinstance(sensors, str) else tuple(sensors)
        self.target = target
        self._require_folders()
        self.names = [f"{scene.name}/{frame}" for scene, frame, _ in self._frames]

    def _require_folders(self) -> None:
        """Raise where no scene has a folder that was asked for."""
        scenes = {scene.name: scene for scene, _, _ in self._frames}.values()
        for wanted in (*self.sensors, self.target):
            if wanted != "depth" and not any(scene.has(wanted) for scene in scenes):
                there = sorted({name for scene in scenes for name in scene.sensors})
                raise DatasetError(
                    f"{self.root}: no scene has a folder {wanted}/ beside depth/; "
                    f"there are {', '.join(there) or 'none'}"
                )

    def __len__(self) -> int:
        return len(self._frames)

    def load(self, index: int) -> Sample:
        """The frame as it is evaluated: NYUv2 scenes centre-cropped, others whole."""
        sample = self.frame(index)
        if not (self.crop and self._frames[index][0].is_nyu):
            return sample
        height, width = sample.image.shape[-2:]
        return geometry.center_crop(sample, round(height * _NYU_CROP[0]), round(width * _NYU_CROP[1]))

    def frame(self, index: int) -> Sample:
        """The whole frame as stored. Depth cameras without `sensors` have zero `sparse`: the protocol
        samples it."""
        scene, frame, picture = self._frames[index]
        image = to_tensor(self._pixels(picture))
        if scene.is_lidar:
            sparse, target = self._lidar(scene, frame)
        else:
            target = self._depth(scene, self.target if scene.has(self.target) else "depth", frame)
            if self.clean and scene.name.split("/")[0] in DAMAGED:
                target = drop_speckles(target)
            sparse = self._measured(scene, frame, index, target)
        if target.shape[-2:] != image.shape[-2:]:
            raise DatasetError(
                f"{picture}: the image is {list(image.shape[-2:])} but its depth {list(target.shape[-2:])}"
            )
        return Sample(
            image=image,
            sparse=sparse,
            target=target,
            intrinsics=scene.intrinsics(frame),
            name=self.names[index],
        )

    def _measured(self, scene: Scene, frame: str, index: int, target: Tensor) -> Tensor:
        """What the frame's sensor measured; nothing where the scene has none of the sensors wanted."""
        there = [name for name in self.sensors if scene.has(name)]
        if not there:
            return torch.zeros_like(target)
        name = there[index % len(there)]
        sparse = self._depth(scene, name, frame)
        if name == "lidar_raw" and self.lines is not None and self.lines < _LIDAR_RINGS:
            sparse = sparse * self._kept_rings(scene, frame, self.lines)
        return sparse

    def _kept_rings(self, scene: Scene, frame: str, lines: int) -> Tensor:
        """[H, W] whether a pixel was measured by one of every (64/lines)-th rings."""
        ring = self._ring(scene.folder / "ring" / f"{frame}.png")
        return torch.from_numpy((ring > 0) & (ring < 255) & ((ring - 1) % (_LIDAR_RINGS // lines) == 0))

    def _lidar(self, scene: Scene, frame: str) -> tuple[Tensor, Tensor]:
        """Measured rings and what to predict: the accumulated sweeps, or the rings held out."""
        sparse = self._depth(scene, f"lidar_{self.lidar}", frame)
        accumulated = self.accumulated and (scene.folder / "gt_accum").is_dir()
        lines = self.lines or (_LIDAR_RINGS if accumulated else _LIDAR_RINGS // 2)
        if lines == _LIDAR_RINGS:
            return sparse, self._depth(scene, "gt_accum" if accumulated else "lidar_filtered", frame)
        kept = self._kept_rings(scene, frame, lines)
        if accumulated:
            return sparse * kept, self._depth(scene, "gt_accum", frame)
        return sparse * kept, self._depth(scene, "lidar_filtered", frame) * ~kept

    def _depth(self, scene: Scene, kind: str, frame: str) -> Tensor:
        path = scene.folder / kind / f"{frame}.png"
        scale = float(scene.meta["depth_scale"])
        if self._decoded is None:
            return read_depth(path, scale=scale)

        def decode() -> np.ndarray:
            # half floats would lose millimetres; the 16-bit integers are what was stored
            return np.rint(read_depth(path, scale=scale)[0].numpy() * scale).astype(np.uint16)

        stored = self._decoded.of(path, decode).astype(np.float32)
        stored /= np.float32(scale)
        return torch.from_numpy(stored)[None]

    def _pixels(self, path: Path) -> np.ndarray:
        if self._decoded is None:
            return read_pixels(path)
        return self._decoded.of(path, lambda: read_pixels(path))

    def _ring(self, path: Path) -> np.ndarray:
        return self._pixels(path)[..., 0]


def _find_scenes(root: Path) -> list[Scene]:
    if not root.is_dir():
        raise DatasetError(f"{root}: no such folder; expected {_TREE}")
    files = [file for pattern in ("meta.json", "*/meta.json", "*/*/meta.json") for file in root.glob(pattern)]
    if not files:
        raise DatasetError(f"{root}: no meta.json below; expected {_TREE}")
    scenes = []
    for file in sorted(files):
        with reading(file, "JSON file", "an object with K and a positive depth_scale"):
            meta = json.loads(file.read_text())
            if not isinstance(meta, dict):
                raise ValueError(f"a {type(meta).__name__}")
            require_scale(float(meta.get("depth_scale", 0)))
        folder = file.parent.resolve()
        scenes.append(Scene(folder=file.parent, name=f"{folder.parent.name}/{folder.name}", meta=meta))
    return scenes


def _pictures(scene: Scene) -> list[Path]:
    found = sorted(path for path in scene.folder.glob("color/*") if path.suffix.lower() in SUFFIXES)
    if not found:
        raise DatasetError(f"{scene.folder / 'color'}: no picture; expected {_TREE}")
    return found


def _times(scene: Scene, repeat: Mapping[str, int]) -> int:
    return next((times for prefix, times in repeat.items() if scene.name.startswith(prefix)), 1)


def _part(pictures: list[Path], split: str, holdout: float) -> list[Path]:
    """Neighbouring frames show the same room, so the held-out part is one block, not every n-th frame."""
    kept = len(pictures) - math.ceil(holdout * len(pictures))
    if split == "train":
        return pictures[:kept]
    return pictures[kept:] if split == "validation" else pictures
