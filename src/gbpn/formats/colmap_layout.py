"""COLMAP as it comes: where the models of a project lie, and which registered image a picture file is.

A project may be given as the model's own folder, as `sparse`, or as the folder above; COLMAP numbers its
models from 0 where the pictures do not hang together. Pictures may lie in subfolders, and those of a rig have
the same names in each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np

from gbpn.camera.lens import Lens
from gbpn.errors import InputError
from gbpn.files.guard import shown
from gbpn.formats.colmap import Camera, Reconstruction, RegisteredImage, lens_of_camera, read_model

__all__ = ["Registered", "is_model", "largest_model", "model_folders", "registered"]

_SAME_ASPECT = 0.01
"""Relative difference of the two factors up to which a picture counts as resized; sides are whole pixels."""


@dataclass(frozen=True, kw_only=True)
class Registered:
    """What a model knows of one picture file."""

    picture: RegisteredImage
    camera: Camera
    """Of the picture's size."""
    lens: Lens | None
    resized: bool
    """Whether COLMAP saw the picture in another size."""


def model_folders(folder: str | Path) -> list[Path]:
    """The folders of models in a project, in order of their numbers; empty where there is none."""
    folder = Path(folder)
    for place in (folder, folder / "sparse"):
        if is_model(place):
            return [place]
        if place.is_dir():
            numbered = [part for part in place.iterdir() if part.name.isdecimal() and is_model(part)]
            if numbered:
                return sorted(numbered, key=lambda part: int(part.name))
    return []


def is_model(folder: Path) -> bool:
    """Whether a folder holds the files of one model."""
    return any((folder / f"cameras{suffix}").is_file() for suffix in (".bin", ".txt"))


def largest_model(folder: str | Path) -> tuple[Reconstruction, str | None]:
    """The model with the most images, and a notice where there are others: each has a scale of its own."""
    folders = model_folders(folder)
    if len(folders) < 2:
        return read_model(folders[0] if folders else folder), None
    models = [read_model(place) for place in folders]
    counts = [len(model.pictures) for model in models]
    best = int(np.argmax(counts))
    others = ", ".join(f"{folders[i].name} ({counts[i]} images)" for i in range(len(folders)) if i != best)
    return models[best], (
        f"{len(folders)} COLMAP models: {folders[best].name} with {counts[best]} images is used, not "
        f"{shown(others)}; "
        "each has its own scale, give its folder for another"
    )


def registered(model: Reconstruction, image: Path, height: int, width: int) -> Registered:
    """The registered image that a picture file is: by the end of its path, or by its name if that is
    enough."""
    picture = _named(model, image)
    if picture.camera not in model.cameras:
        raise InputError(
            f"{shown(picture.name)}: its camera {picture.camera} is not among the {len(model.cameras)} "
            f"there are"
        )
    own = model.cameras[picture.camera]
    camera = _of_size(own, image, height, width)
    return Registered(
        picture=picture, camera=camera, lens=lens_of_camera(camera), resized=own.width != camera.width
    )


def _named(model: Reconstruction, image: Path) -> RegisteredImage:
    path = PurePosixPath(image.absolute().as_posix())
    by_path = [p for p in model.pictures if (n := PurePosixPath(p.name).parts) and path.parts[-len(n) :] == n]
    if by_path:
        return max(by_path, key=lambda p: len(PurePosixPath(p.name).parts))
    by_name = [p for p in model.pictures if PurePosixPath(p.name).name == image.name]
    if len(by_name) == 1:
        return by_name[0]
    names = shown(", ".join(p.name for p in by_name[:3] or model.pictures[:3]))
    if by_name:
        raise InputError(
            f"{shown(image)}: the COLMAP model knows {len(by_name)} images of this name, {names}: give "
            f"the folder "
            "that holds their subfolders"
        )
    raise InputError(
        f"{shown(image)} is registered 0 times in the COLMAP model, which knows {names}, …: COLMAP may "
        f"have left "
        "it out, or the pictures were renamed"
    )


def _of_size(camera: Camera, image: Path, height: int, width: int) -> Camera:
    """The camera for a picture that was resized; COLMAP's coordinates count from the corner, so all
    scales."""
    if (camera.height, camera.width) == (height, width):
        return camera
    factors = width / max(camera.width, 1), height / max(camera.height, 1)
    if abs(factors[0] - factors[1]) > _SAME_ASPECT * factors[1]:
        raise InputError(
            f"{shown(image)} is {height}×{width}, but COLMAP saw it as "
            f"{shown(camera.height)}×{shown(camera.width)}: give the picture that was reconstructed, or a "
            f"resized one"
        )
    values = camera.parameters.copy()
    single = bool(re.match("SIMPLE_|RADIAL", camera.model))
    scales = (factors[0], *factors) if single else (*factors, *factors)
    values[: len(scales)] *= scales
    return replace(camera, width=width, height=height, parameters=values)
