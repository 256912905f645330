"""Messages of ROS as arrays: every encoding is the same picture, every layout the same points."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gbpn.errors import DatasetError, GbpnError, InputError
from gbpn.recordings import messages
from gbpn.recordings.timestamps import (
    NANOSECONDS,
    nearest,
    read_associations,
    read_timed_list,
    time_of_name,
    tolerance_of,
)
from gbpn.recordings.transforms import TransformTree
from gbpn.synthetic.raycast import turn

HEIGHT, WIDTH = 5, 7
RGB = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
DEPTH = np.random.default_rng(1).integers(0, 9000, (HEIGHT, WIDTH)).astype(np.uint16)


def image(array: np.ndarray, encoding: str, *, margin: int = 0, big: bool = False, short: int = 0) -> Any:
    """An Image message; rows may be longer than the picture, the last one shorter than the others."""
    order = ">" if big else "<"
    plain = array.astype(array.dtype.newbyteorder(order)).reshape(len(array), -1)
    rows = plain.view(np.uint8).reshape(len(array), -1)
    rows = np.pad(rows, ((0, 0), (0, margin)), constant_values=99)
    data = rows.reshape(-1)[: rows.size - short]
    return SimpleNamespace(
        height=HEIGHT,
        width=WIDTH,
        encoding=encoding,
        is_bigendian=int(big),
        step=rows.shape[1],
        data=data.copy(),
    )


ALPHA = np.full((HEIGHT, WIDTH, 1), 7, np.uint8)
PICTURES = {
    "rgb8": RGB,
    "bgr8": RGB[..., ::-1],
    "8UC3": RGB[..., ::-1],
    "rgba8": np.concatenate([RGB, ALPHA], axis=2),
    "bgra8": np.concatenate([RGB[..., ::-1], ALPHA], axis=2),
}


@pytest.mark.parametrize("margin", [0, 3])
@pytest.mark.parametrize("encoding", PICTURES)
def test_every_encoding_is_the_same_picture(encoding: str, margin: int) -> None:
    message = image(np.ascontiguousarray(PICTURES[encoding]), encoding, margin=margin)
    np.testing.assert_array_equal(messages.picture_of(message), RGB)


@pytest.mark.parametrize("encoding", ["mono8", "8UC1"])
def test_grey_is_three_times_the_same(encoding: str) -> None:
    found = messages.picture_of(image(RGB[..., 0], encoding))
    np.testing.assert_array_equal(found, np.repeat(RGB[..., :1], 3, axis=2))


@pytest.mark.parametrize("big", [False, True])
def test_sixteen_bits_in_either_order_of_bytes(big: bool) -> None:
    found = messages.picture_of(image(DEPTH, "mono16", big=big))
    np.testing.assert_array_equal(found, np.repeat(DEPTH[..., None], 3, axis=2))
    np.testing.assert_allclose(messages.depth_of(image(DEPTH, "16UC1", big=big)), DEPTH / 1000, rtol=1e-6)
    metres = (DEPTH / 1000).astype(np.float32)
    metres[0, :3] = np.nan, np.inf, -1
    found = messages.depth_of(image(metres, "32FC1", big=big, margin=8, short=8))
    wanted = metres.copy()
    wanted[0, :3] = 0  # nothing was measured there
    np.testing.assert_array_equal(found, wanted)


def compressed(array: np.ndarray, kind: str, header: bytes = b"", name: str = "") -> Any:
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, kind)
    return SimpleNamespace(format=name, data=np.frombuffer(header + buffer.getvalue(), np.uint8))


def test_compressed_pictures_and_depth() -> None:
    np.testing.assert_array_equal(messages.picture_of(compressed(RGB, "PNG", name="rgb8; png")), RGB)
    for header, name in ((b"", "16UC1; png"), (b"x" * 12, "16UC1; compressedDepth png")):
        found = messages.depth_of(compressed(DEPTH, "PNG", header, name))
        np.testing.assert_allclose(found, DEPTH / 1000, rtol=1e-6)
        assert found.dtype == np.float32
    for wrong in (
        compressed(RGB, "PNG", name="png"),
        compressed(RGB[..., 0], "PNG", name="png"),
        compressed(DEPTH, "PNG", b"x" * 12, "32FC1; compressedDepth"),
    ):
        with pytest.raises(DatasetError, match="16 bits in millimetres"):
            messages.depth_of(wrong)
    with pytest.raises(DatasetError, match="no picture"):
        messages.picture_of(SimpleNamespace(format="png", data=np.zeros(9, np.uint8)))


@pytest.mark.parametrize(("short", "fits"), [(3, True), (4, False)])
def test_rows_may_end_early_but_not_inside_the_picture(short: int, fits: bool) -> None:
    message = image(RGB, "rgb8", margin=3, short=short)
    if fits:
        np.testing.assert_array_equal(messages.picture_of(message), RGB)
        return
    with pytest.raises(DatasetError, match="wants rows of 21 bytes"):
        messages.picture_of(message)


@pytest.mark.parametrize(("height", "width"), [(0, 7), (5, 0), (100_000, 100_000)])
def test_sizes_that_no_camera_has_are_refused_before_memory_is_taken(height: int, width: int) -> None:
    message = image(RGB, "rgb8")
    message.height, message.width, message.step = height, width, 3 * width
    with pytest.raises(GbpnError, match="an image of a recording"):
        messages.picture_of(message)


def test_encodings_that_are_not_understood() -> None:
    with pytest.raises(DatasetError, match="image_proc turns bayer"):
        messages.picture_of(image(RGB[..., 0], "bayer_rggb8"))
    with pytest.raises(DatasetError, match="is this the depth topic"):
        messages.depth_of(image(RGB, "rgb8"))


def test_what_is_written_reads_back() -> None:
    np.testing.assert_array_equal(messages.picture_of(SimpleNamespace(**messages.image_fields(RGB))), RGB)
    metres = (1 + DEPTH / 1000).astype(np.float32)
    np.testing.assert_array_equal(messages.depth_of(SimpleNamespace(**messages.image_fields(metres))), metres)


def cloud(points: np.ndarray, *, kind: str = "f4", big: bool = False, rows: int = 1, margin: int = 0) -> Any:
    """A PointCloud2 with a number before and one after the coordinates, rows padded."""
    order = ">" if big else "<"
    size = int(kind[1])
    fields = [("before", "u1"), *((axis, order + kind) for axis in "zxy"), ("after", "u2")]
    table = np.zeros(len(points), np.dtype(fields))
    for k, axis in enumerate("xyz"):
        table[axis] = points[:, k]
    width = len(points) // rows
    step = table.dtype.itemsize
    lines = table.view(np.uint8).reshape(rows, width * step)
    data = np.pad(lines, ((0, 0), (0, margin)), constant_values=7).reshape(-1)
    number = {"f4": 7, "f8": 8, "i2": 3}[kind]
    described = [
        SimpleNamespace(name=axis, datatype=number, offset=1 + k * size) for k, axis in enumerate("zxy")
    ]
    return SimpleNamespace(
        fields=described,
        is_bigendian=big,
        point_step=step,
        width=width,
        height=rows,
        row_step=width * step + margin if margin else 0,
        data=data[: data.size - margin] if margin else data,
    )


@pytest.mark.parametrize("kind", ["f4", "f8", "i2"])
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize(("rows", "margin"), [(1, 0), (4, 0), (4, 5)])
def test_every_layout_is_the_same_cloud(kind: str, big: bool, rows: int, margin: int) -> None:
    points = np.random.default_rng(2).integers(-300, 300, (12, 3)).astype(np.float64)
    found = messages.cloud_of(cloud(points, kind=kind, big=big, rows=rows, margin=margin))
    np.testing.assert_array_equal(found, points)


def test_misses_of_a_scanner_are_left_out_and_short_clouds_refused() -> None:
    points = np.array([[1.0, 2, 3], [np.nan, 0, 0], [4, 5, np.inf], [7, 8, 9]])
    np.testing.assert_array_equal(messages.cloud_of(cloud(points)), points[[0, 3]])
    assert messages.cloud_of(cloud(np.zeros((0, 3)))).shape == (0, 3)
    message = cloud(points, rows=2, margin=4)
    message.data = message.data[:-1]
    with pytest.raises(DatasetError, match="2×2 points"):
        messages.cloud_of(message)
    message = cloud(points)
    message.fields = message.fields[1:]
    with pytest.raises(DatasetError, match="has fields x, y, z"):
        messages.cloud_of(message)


def pose_message(pose: np.ndarray, factor: float = 1.0) -> Any:
    """A Transform of a [4, 4]; its quaternion need not have length 1."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = factor * Rotation.from_matrix(pose[:3, :3]).as_quat()
    return SimpleNamespace(
        rotation=SimpleNamespace(x=x, y=y, z=z, w=w),
        translation=SimpleNamespace(**dict(zip("xyz", pose[:3, 3], strict=True))),
    )


def posed(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn(*rng.uniform(-3, 3, 3)), rng.uniform(-5, 5, 3)
    return pose


@given(st.integers(0, 1000), st.sampled_from([1.0, -1.0, 0.3]))
def test_a_quaternion_is_its_rotation(seed: int, factor: float) -> None:
    pose = posed(seed)
    np.testing.assert_allclose(messages.transform_of(pose_message(pose, factor)), pose, atol=1e-9)


def test_a_quaternion_of_no_length_is_none() -> None:
    for factor in (0.0, np.nan):
        with pytest.raises(DatasetError, match="is no rotation"):
            messages.transform_of(pose_message(posed(0), factor))


@given(st.integers(0, 300))
def test_ways_through_the_tree_are_products(seed: int) -> None:
    """map ← base ← mast ← lidar, base ← camera; the way back is the inverse, through itself nothing."""
    base, mast, lidar, camera = (posed(4 * seed + k) for k in range(4))
    tree = TransformTree()
    for parent, child, pose in (
        ("map", "base", base),
        ("base", "mast", mast),
        ("mast", "lidar", lidar),
        ("base", "camera", camera),
    ):
        tree.add(parent, child, pose, 0)
    np.testing.assert_allclose(tree.between("lidar", "map", 0), base @ mast @ lidar, atol=1e-8)
    there = tree.between("lidar", "camera", 0)
    np.testing.assert_allclose(there, np.linalg.inv(camera) @ mast @ lidar, atol=1e-8)
    np.testing.assert_allclose(tree.between("camera", "lidar", 0) @ there, np.eye(4), atol=1e-8)
    np.testing.assert_allclose(tree.between("mast", "mast", 0), np.eye(4))
    assert tree.frames == ["base", "camera", "lidar", "map", "mast"]


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8, unique=True), st.integers(-10, 110))
def test_transforms_of_a_steady_motion_are_exact_in_whatever_order_they_came(
    times: list[int], now: int
) -> None:
    tree = TransformTree()
    for time in times:
        pose = np.eye(4)
        pose[0, 3] = time
        tree.add("/a", " b", pose, time)
    found = tree.between("b", "a", now)[0, 3]
    assert found == pytest.approx(min(max(now, min(times)), max(times)), abs=1e-9)


def test_stamps_are_nanoseconds() -> None:
    message = SimpleNamespace(header=SimpleNamespace(stamp=SimpleNamespace(sec=12, nanosec=345)))
    assert messages.nanoseconds_of(message) == 12 * NANOSECONDS + 345
    assert messages.seconds_of(message) == pytest.approx(12 + 345e-9)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("1700000000123456789.png", 1700000000123456789),
        ("1700000000123456.png", 1700000000123456000),
        ("1700000000123.png", 1700000000123000000),
        ("cam0_0012.png", 12 * NANOSECONDS),
        ("a1_2.50.jpg", 2_500_000_000),
        ("123456789012345678.5.png", 123456789012345678500000000),
    ],
)
def test_digits_tell_the_unit_of_a_time(tmp_path: Any, name: str, wanted: int) -> None:
    assert time_of_name(tmp_path / name) == wanted


def test_tolerances_are_seconds() -> None:
    assert tolerance_of(0.05) == 50_000_000
    assert tolerance_of(0) == 0
    for wrong in (-1e-9, float("nan"), float("inf")):
        with pytest.raises(InputError, match="--tolerance wants seconds"):
            tolerance_of(wrong)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=10),
    st.lists(st.integers(0, 50), min_size=1, max_size=6),
)
def test_the_nearest_is_the_nearest_and_of_two_the_earlier(times: list[int], others: list[int]) -> None:
    index, apart = nearest(times, others)
    for time, place, gap in zip(times, index, apart, strict=True):
        best = min(others, key=lambda other: (abs(other - time), other))
        assert others[place] == best
        assert gap == abs(best - time)
    with pytest.raises(InputError, match="nothing to pair with"):
        nearest(times, [])


def test_lists_are_relative_to_themselves(tmp_path: Any) -> None:
    (tmp_path / "rgb.txt").write_text("# time file\n\n1.25, a/b.png\n1700000000123 c.png\n")
    assert read_timed_list(tmp_path / "rgb.txt") == [
        (1_250_000_000, tmp_path / "a" / "b.png"),
        (1700000000123 * 1_000_000, tmp_path / "c.png"),
    ]
    (tmp_path / "both.txt").write_text("1 a.png 2 d.png\nx.png y.png\n")
    assert read_associations(tmp_path / "both.txt") == [
        (tmp_path / "a.png", tmp_path / "d.png"),
        (tmp_path / "x.png", tmp_path / "y.png"),
    ]
    for text, message in (("", "an empty list"), ("1 2 3\n", "expected lines of time, image")):
        (tmp_path / "both.txt").write_text(text)
        with pytest.raises(DatasetError, match=message):
            read_associations(tmp_path / "both.txt")
    (tmp_path / "rgb.txt").write_text("now a.png\n")
    with pytest.raises(DatasetError, match="wanted a time in seconds; got 'now'"):
        read_timed_list(tmp_path / "rgb.txt")
