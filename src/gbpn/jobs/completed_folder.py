"""What `gbpn complete` wrote, read back: pictures with their depth, σ and camera."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gbpn.camera.pinhole import require_camera
from gbpn.errors import DatasetError
from gbpn.files.guard import most_pixels, reading, shown
from gbpn.formats.arrays import read_npy
from gbpn.formats.colmap_layout import model_folders
from gbpn.formats.images import SUFFIXES, read_image
from gbpn.show import pictures
from gbpn.sigma.limit import USUAL_LIMIT, SigmaLimit

__all__ = ["CompletedFrame", "Record", "frames_of", "pictures_of", "read_frame", "read_record"]


@dataclass(frozen=True, kw_only=True)
class CompletedFrame:
    """One frame, with its place in the world where that is known."""

    name: str
    image: np.ndarray
    """[H, W, 3] uint8 RGB."""
    depth: np.ndarray
    """[H, W] metres, NaN where unknown."""
    std: np.ndarray | None
    """[H, W] metres, if the weights state it."""
    intrinsics: np.ndarray
    """[3, 3]."""
    pose: np.ndarray | None = None
    """[4, 4] camera → world, in the unit of the depth."""
    metric: bool = True
    """Whether that unit is metres."""

    def trusted(self, limit: SigmaLimit | None = None) -> np.ndarray:
        """[H, W] bool: where there is a depth whose σ is within the limit."""
        there: np.ndarray = np.isfinite(self.depth) & (self.depth > 0)
        if self.std is None:
            return there
        return np.asarray(there & (limit or USUAL_LIMIT).keeps(self.depth, self.std))


@dataclass(frozen=True, kw_only=True)
class Record:
    """What `gbpn complete` wrote of a frame beside its maps."""

    intrinsics: np.ndarray
    """[3, 3]."""
    pose: np.ndarray | None
    """[4, 4] camera → world in the unit of the depth, of frames of a COLMAP project."""
    metres_per_unit: float | None
    """Of the project; None: not known, so its depths have no unit."""

    @property
    def metric(self) -> bool:
        """Whether depths are metres."""
        return self.pose is None or self.metres_per_unit is not None


def pictures_of(images: str | Path) -> Path:
    """The folder of the pictures: that of a COLMAP project, or the folder itself."""
    images = Path(images)
    return images / "images" if (images / "images").is_dir() and model_folders(images) else images


def frames_of(images: str | Path, folder: str | Path) -> dict[str, Path]:
    """Name → picture, of the frames that were completed into `folder`, in order; with their subfolders."""
    images, folder = pictures_of(images), Path(folder)
    if not images.is_dir() or not folder.is_dir():
        raise DatasetError(
            f"wanted a folder of images and one that gbpn complete wrote; got {images}, {folder}"
        )
    pictures = sorted(path for path in images.rglob("*") if path.suffix.lower() in SUFFIXES)
    names = [path.relative_to(images).with_suffix("").as_posix() for path in pictures]
    found = {
        name: path
        for name, path in zip(names, pictures, strict=True)
        if (folder / f"{name}_depth.npy").is_file()
    }
    if not found:
        made = next(folder.rglob("*_depth.npy"), None)
        there = "there is nothing completed in it" if made is None else f"there is {made.relative_to(folder)}"
        raise DatasetError(
            f"{folder}: no image of {images} was completed into it ({shown(there)}): give the images that "
            "gbpn complete was given"
        )
    return found


def read_record(folder: Path, name: str) -> Record:
    """The record of the frame called `name`."""
    with reading(folder / f"{name}.json", "record of a completed frame", "its intrinsics") as file:
        record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        camera = record.get("camera") or {"kind": "pinhole"}
        if camera["kind"] != "pinhole":
            raise DatasetError(
                f"{shown(name)} was completed as {shown(camera['kind'])}, with ranges along its rays; only "
                "pinhole pictures are put together: its own cloud is written by gbpn complete --cloud"
            )
        intrinsics = np.array(record["intrinsics"], dtype=np.float64).reshape(3, 3)
        require_camera(intrinsics)
        place = record.get("place") or {}
        units = place.get("metres_per_unit")
        return Record(
            intrinsics=intrinsics,
            pose=np.array(place["pose"], dtype=np.float64).reshape(4, 4) if place else None,
            metres_per_unit=None if units is None else float(units),
        )


def read_frame(folder: Path, name: str, image: Path, pose: np.ndarray | None = None) -> CompletedFrame:
    """The frame called `name`, which `gbpn complete` made of `image`; of a lens, its undistorted picture."""
    record = read_record(folder, name)
    depth, sigmas = _map(folder / f"{name}_depth.npy"), folder / f"{name}_std.npy"
    std = _map(sigmas) if sigmas.is_file() else None
    straight = folder / f"{name}_undistorted.png"
    image = straight if straight.is_file() else image
    photo = pictures.photo(read_image(image))
    if photo.shape[:2] != depth.shape or (std is not None and std.shape != depth.shape):
        found = f"its depth {depth.shape}" + ("" if std is None else f" and std {std.shape}")
        raise DatasetError(
            f"{shown(image)} is {photo.shape[:2]}, {shown(found)}: give the one that was completed"
        )
    return CompletedFrame(
        name=name,
        image=photo,
        depth=depth,
        std=std,
        intrinsics=record.intrinsics,
        pose=record.pose if pose is None else pose,
        metric=record.metric,
    )


def _map(path: Path) -> np.ndarray:
    with reading(path, "completed map", "one number per pixel"):
        found = read_npy(path, most_pixels())
        if found.ndim != 2 or found.dtype.kind != "f":
            raise ValueError(f"an array {list(found.shape)[:4]} of {found.dtype}")
        return found.astype(np.float32)
