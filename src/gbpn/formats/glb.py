"""Binary glTF: coloured points, or the mesh of a depth map without the walls that edges would make."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

__all__ = ["FLOAT", "POINTS", "glb", "points_glb", "positions"]

_ARRAY_BUFFER, _ELEMENT_BUFFER = 34962, 34963
FLOAT, _UNSIGNED_BYTE, _UNSIGNED_INT = 5126, 5121, 5125
POINTS, _TRIANGLES = 0, 4
_STEEP = 0.06
"""A triangle whose corners differ by more than this share of their depth spans an edge and is left out."""


def positions(depth: np.ndarray, camera: tuple[float, float, float, float]) -> np.ndarray:
    """[H, W, 3] float32 metres in glTF's axes: x right, y up, the camera looks along −z."""
    fx, fy, cx, cy = camera
    y, x = np.mgrid[: depth.shape[0], : depth.shape[1]].astype(np.float32)
    return np.stack([(x - cx) / fx * depth, -(y - cy) / fy * depth, -depth], axis=2).astype(np.float32)


def _triangles(depth: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """[T, 3] uint32 pixel numbers: two triangles for each square of four kept pixels on one surface."""
    height, width = depth.shape
    number = np.arange(height * width, dtype=np.uint32).reshape(height, width)
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]
    corners = np.concatenate([np.stack([a, c, b], 2).reshape(-1, 3), np.stack([b, c, d], 2).reshape(-1, 3)])
    there = keep.ravel()[corners].all(1)
    values = np.where(keep, depth, 1).ravel()[corners]
    flat = values.max(1) - values.min(1) < _STEEP * values.min(1)
    return np.ascontiguousarray(corners[there & flat])


def glb(depth: np.ndarray, image: np.ndarray, camera: tuple[float, float, float, float], mesh: bool) -> bytes:
    """The file. Pixels whose depth is not finite are left out."""
    keep = np.isfinite(depth) & (depth > 0)
    known = np.where(keep, depth, 0)
    places = positions(known, camera).reshape(-1, 3)
    colours = np.concatenate([image.reshape(-1, 3), np.full((image.size // 3, 1), 255, np.uint8)], axis=1)
    index = None
    if mesh:
        corners = _triangles(known, keep)
        used, flat = np.unique(corners, return_inverse=True)
        index = flat.astype(np.uint32).ravel()
    else:
        used = np.flatnonzero(keep.ravel())
    return _pack(places[used], _linear(colours[used]), index)


def points_glb(points: np.ndarray, colours: np.ndarray) -> bytes:
    """The file of [N, 3] metres (x right, y down, z ahead; turned to y up) and [N, 3] uint8 colours."""
    places = (points * np.array([1, -1, -1])).astype(np.float32)
    opaque = np.concatenate([colours, np.full((len(colours), 1), 255, np.uint8)], axis=1)
    return _pack(places, _linear(opaque), None)


def _linear(colours: np.ndarray) -> np.ndarray:
    """sRGB to the linear values that glTF wants of vertex colours."""
    share = colours[:, :3] / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return np.concatenate([(linear * 255 + 0.5).astype(np.uint8), colours[:, 3:]], axis=1)


def _pack(places: np.ndarray, colours: np.ndarray, index: np.ndarray | None) -> bytes:
    """One mesh with one primitive; the binary chunk holds positions, colours and indices in turn."""
    if len(places) == 0:  # glTF has no meshes without a corner
        return _framed({"scene": 0, "scenes": [{}]}, b"")
    blocks = [places, colours] + ([] if index is None else [index])
    views, start = [], 0
    for number, block in enumerate(blocks):
        target = _ELEMENT_BUFFER if number == 2 else _ARRAY_BUFFER
        views.append({"buffer": 0, "byteOffset": start, "byteLength": block.nbytes, "target": target})
        start += block.nbytes
    corners = {"componentType": FLOAT, "type": "VEC3", "min": places.min(0).tolist()}
    accessors = [
        {"bufferView": 0, "count": len(places), **corners, "max": places.max(0).tolist()},
        {
            "bufferView": 1,
            "count": len(places),
            "componentType": _UNSIGNED_BYTE,
            "type": "VEC4",
            "normalized": True,
        },
    ]
    primitive = {"attributes": {"POSITION": 0, "COLOR_0": 1}, "mode": POINTS if index is None else _TRIANGLES}
    if index is not None:
        accessors.append(
            {"bufferView": 2, "count": len(index), "componentType": _UNSIGNED_INT, "type": "SCALAR"}
        )
        primitive["indices"] = 2
    document = {
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [primitive]}],
        "buffers": [{"byteLength": start}],
        "bufferViews": views,
        "accessors": accessors,
    }
    return _framed(document, b"".join(block.tobytes() for block in blocks))


def _framed(document: dict[str, Any], binary: bytes) -> bytes:
    """Header and chunks, each padded to four bytes; without numbers there is no second chunk."""
    text = json.dumps({"asset": {"version": "2.0", "generator": "gbpn"}, **document}).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    if binary:
        binary += bytes(-len(binary) % 4)
        chunks += struct.pack("<II", len(binary), 0x004E4942) + binary
    return struct.pack("<III", 0x46546C67, 2, 12 + len(chunks)) + chunks
