"""Binary glTF, read back by its definition."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

from gbpn.formats.glb import glb, points_glb

CAMERA = (20.0, 25.0, 7.5, 4.0)
TYPES: dict[int, np.dtype[Any]] = {5126: np.dtype("<f4"), 5121: np.dtype("u1"), 5125: np.dtype("<u4")}
WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}


def read(content: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The document, and the array of each accessor."""
    magic, version, length = struct.unpack_from("<4sII", content)
    assert (magic, version, length) == (b"glTF", 2, len(content))
    chunks, at = [], 12
    while at < length:
        size, kind = struct.unpack_from("<I4s", content, at)
        assert size % 4 == 0
        chunks.append((kind, content[at + 8 : at + 8 + size]))
        at += 8 + size
    assert [kind for kind, _ in chunks] == [b"JSON", b"BIN\0"][: len(chunks)]
    document = json.loads(chunks[0][1])
    found = []
    for accessor in document.get("accessors", ()):
        view = document["bufferViews"][accessor["bufferView"]]
        block = chunks[1][1][view["byteOffset"] :][: view["byteLength"]]
        values = np.frombuffer(block, TYPES[accessor["componentType"]])
        found.append(values.reshape(accessor["count"], WIDTHS[accessor["type"]]))
    return document, found


def scene() -> tuple[np.ndarray, np.ndarray]:
    """A plane at 2 m with a hole, and one at 3 m beside it; and colours."""
    depth = np.full((10, 16), 2.0)
    depth[:, 9:] = 3.0
    depth[4, 4] = np.nan
    return depth, np.random.default_rng(0).integers(0, 256, (10, 16, 3), dtype=np.uint8)


def places(depth: np.ndarray) -> np.ndarray:
    """[H, W, 3]: K⁻¹ times the pixel times depth, then y up and −z ahead."""
    fx, fy, cx, cy = CAMERA
    matrix = np.linalg.inv(np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]))
    y, x = np.mgrid[: depth.shape[0], : depth.shape[1]]
    return (np.stack([x, y, np.ones_like(x)], 2) @ matrix.T) * depth[..., None] * (1, -1, -1)


def test_points_are_where_their_camera_says_and_have_its_colours() -> None:
    depth, image = scene()
    document, (corners, colours) = read(glb(depth, image, CAMERA, mesh=False))
    known = np.isfinite(depth)
    np.testing.assert_allclose(corners, places(depth)[known], rtol=1e-6, atol=1e-6)
    first = document["accessors"][0]
    np.testing.assert_array_equal([first["min"], first["max"]], [corners.min(0), corners.max(0)])
    share = image[known] / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    assert np.abs(colours[:, :3] - 255 * linear).max() <= 0.5 + 1e-6
    assert (colours[:, 3] == 255).all()
    assert document["meshes"][0]["primitives"][0]["mode"] == 0
    again = points_glb(places(depth)[known] * (1, -1, -1), image[known])
    np.testing.assert_allclose(read(again)[1][0], corners, rtol=1e-6, atol=1e-6)


def test_a_mesh_covers_each_surface_and_spans_no_edge() -> None:
    depth, image = scene()
    document, (corners, _, index) = read(glb(depth, image, CAMERA, mesh=True))
    assert document["meshes"][0]["primitives"][0] == {
        "attributes": {"POSITION": 0, "COLOR_0": 1},
        "mode": 4,
        "indices": 2,
    }
    triangles = corners[index.reshape(-1, 3)].astype(np.float64)
    assert (np.ptp(triangles[..., 2], axis=1) == 0).all()  # each lies in one of the planes
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    assert (normal[:, 2] > 0).all()  # seen from the camera, counter-clockwise
    area = {z: normal[triangles[:, 0, 2] == -z, 2].sum() / 2 for z in (2.0, 3.0)}
    square = {z: z * z / (CAMERA[0] * CAMERA[1]) for z in (2.0, 3.0)}
    assert area[3.0] == pytest.approx(9 * 6 * square[3.0])
    assert area[2.0] == pytest.approx((9 * 8 - 3) * square[2.0])  # six of the eight halves at the hole


def test_nothing_is_an_empty_scene() -> None:
    depth, image = scene()
    for mesh in (True, False):
        document, arrays = read(glb(np.full_like(depth, np.nan), image, CAMERA, mesh=mesh))
        assert document["scenes"] == [{}]
        assert not arrays
