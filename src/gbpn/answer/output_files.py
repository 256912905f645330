"""Further files of a completed frame, by the names that `gbpn complete --also` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gbpn.errors import InputError
from gbpn.files.atomic import write_bytes
from gbpn.formats import glb
from gbpn.formats.depth_files import KITTI_SCALE, write_depth
from gbpn.formats.exr_files import exr
from gbpn.show import pictures

if TYPE_CHECKING:
    from gbpn.answer.completed import CompletedDepth

__all__ = ["FORMATS", "require_formats", "write_also"]


def _mesh(result: CompletedDepth, path: Path) -> None:
    if result.wide is not None:
        raise InputError(
            f"a mesh is made of pinhole pictures; got a {result.wide}: ask for ply or glb instead"
        )
    camera = result.intrinsics
    numbers = tuple(float(camera[place]) for place in ((0, 0), (1, 1), (0, 2), (1, 2)))
    trusted = result.trusted_depth()
    write_bytes(path, glb.glb(trusted, pictures.photo(result.image), numbers, mesh=True))  # type: ignore[arg-type]


def _tiff(result: CompletedDepth, path: Path) -> None:
    import torch

    write_depth(path, torch.from_numpy(result.depth))


FORMATS: dict[str, tuple[str, Callable[[CompletedDepth, Path], object]]] = {
    "ply": (".ply", lambda result, path: result.to_point_cloud(path)),
    "glb": (".glb", lambda result, path: result.to_point_cloud(path)),
    "mesh": ("_mesh.glb", _mesh),
    "tiff": ("_depth.tiff", _tiff),
    "exr": ("_depth.exr", lambda result, path: write_bytes(path, exr(result.depth))),
    "kitti": ("_kitti.png", lambda result, path: result.to_png(path, KITTI_SCALE)),
    "mask": ("_mask.png", lambda result, path: pictures.save(result.trusted().astype("u1") * 255, path)),
}
"""Name → (what comes after the frame's name, what writes it). Metres, but for 16-bit KITTI files."""


def require_formats(names: Sequence[str]) -> tuple[str, ...]:
    """The names, once each, if all are known."""
    for name in names:
        if name not in FORMATS:
            raise InputError(f"there is no format {name!r}: choose from {', '.join(FORMATS)}")
    return tuple(dict.fromkeys(names))


def write_also(result: CompletedDepth, folder: Path, stem: str, names: Sequence[str]) -> list[Path]:
    """Write the files of these formats."""
    made = []
    for name in require_formats(names):
        ending, write = FORMATS[name]
        made.append(folder / f"{stem}{ending}")
        write(result, made[-1])
    return made
