"""Clouds of points written to files: binary PLY with colour, normals and σ, or GLB with colour."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gbpn.errors import InputError
from gbpn.files.atomic import write_bytes
from gbpn.formats.glb import points_glb

__all__ = ["CLOUD_FILES", "Cloud", "write_cloud"]

CLOUD_FILES = (".ply", ".glb")
"""Suffixes of such files."""


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """Coloured points, in the coordinates of one camera or of the world."""

    points: np.ndarray
    """[N, 3] metres."""
    colours: np.ndarray
    """[N, 3] uint8 RGB."""
    normals: np.ndarray | None = None
    """[N, 3] of length 1, towards the camera."""
    std: np.ndarray | None = None
    """[N] metres along the ray."""

    def __len__(self) -> int:
        return len(self.points)


def write_cloud(path: str | Path, cloud: Cloud) -> Path:
    """Write .ply (all there is) or .glb (points and colours, y up)."""
    path = Path(path)
    if path.suffix.lower() == ".ply":
        write_bytes(path, _ply(cloud))
    elif path.suffix.lower() == ".glb":
        write_bytes(path, points_glb(cloud.points, cloud.colours))
    else:
        raise InputError(f"{path}: clouds are written as {' or '.join(CLOUD_FILES)}; got {path.suffix!r}")
    return path


def _ply(cloud: Cloud) -> bytes:
    columns: list[tuple[str, np.ndarray]] = [(axis, cloud.points[:, k]) for k, axis in enumerate("xyz")]
    if cloud.normals is not None:
        columns += [(name, cloud.normals[:, k]) for k, name in enumerate(("nx", "ny", "nz"))]
    columns += [(name, cloud.colours[:, k]) for k, name in enumerate(("red", "green", "blue"))]
    if cloud.std is not None:
        columns.append(("sigma", cloud.std))
    kinds = ["u1" if column.dtype == np.uint8 else "<f4" for _, column in columns]
    table = np.empty(len(cloud), dtype=[(name, kind) for (name, _), kind in zip(columns, kinds, strict=True)])
    for name, column in columns:
        table[name] = column
    words = {"u1": "uchar", "<f4": "float"}
    header = [
        "ply",
        "format binary_little_endian 1.0",
        f"element vertex {len(cloud)}",
        *(f"property {words[kind]} {name}" for (name, _), kind in zip(columns, kinds, strict=True)),
        "end_header\n",
    ]
    return "\n".join(header).encode() + table.tobytes()
