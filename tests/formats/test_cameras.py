"""Cameras and lenses as people have them, judged by OpenCV: files that its own library and ROS would
write."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from gbpn.camera.lens import Lens, undistorted_picture, undistorted_pixels, undistorted_sparse
from gbpn.errors import DatasetError, GbpnError, InputError
from gbpn.formats.camera_files import camera_info, read_camera, read_transform, resized

MATRIX = np.array([[310.0, 0, 158.5], [0, 305.0, 121.25], [0, 0, 1]])
SIZE = (320, 240)
RADTAN = (-0.31, 0.12, 0.0011, -0.0007, -0.02)
RATIONAL = (0.21, -0.13, 0.0009, -0.0004, 0.011, 0.35, -0.08, 0.02)
FISHEYE = (-0.021, 0.013, -0.007, 0.0012)
LENSES = {
    "radtan": Lens(kind="radtan", parameters=RADTAN),
    "rational": Lens(kind="radtan", parameters=RATIONAL),
    "equidistant": Lens(kind="equidistant", parameters=FISHEYE),
    "fov": Lens(kind="fov", parameters=(0.9,)),
}


def normalised() -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, 17), np.linspace(-0.38, 0.38, 13))
    return x.ravel(), y.ravel()


@pytest.mark.parametrize("name", LENSES)
def test_a_lens_is_its_own_inverse(name: str) -> None:
    x, y = normalised()
    back = LENSES[name].undistort(*LENSES[name].distort(x, y))
    np.testing.assert_allclose(np.stack(back), np.stack([x, y]), atol=1e-9)


@pytest.mark.parametrize("name", ["radtan", "rational", "equidistant"])
def test_points_are_where_opencv_puts_them(name: str) -> None:
    cv2 = pytest.importorskip("cv2", reason="needs opencv-python-headless")
    x, y = normalised()
    lens, none = LENSES[name], np.zeros(3)
    points = np.stack([x, y, np.ones_like(x)], axis=1)[:, None]
    if lens.kind == "equidistant":
        seen, _ = cv2.fisheye.projectPoints(points, none, none, MATRIX, np.array(lens.parameters))
        back = cv2.fisheye.undistortPoints(seen, MATRIX, np.array(lens.parameters), P=MATRIX)
    else:
        seen, _ = cv2.projectPoints(points, none, none, MATRIX, np.array(lens.parameters))
        criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 200, 1e-12)
        if hasattr(cv2, "undistortPointsIter"):  # OpenCV 4
            back = cv2.undistortPointsIter(seen, MATRIX, np.array(lens.parameters), None, MATRIX, criteria)
        else:
            back = cv2.undistortPoints(seen, MATRIX, np.array(lens.parameters), P=MATRIX, criteria=criteria)
    bent_x, bent_y = lens.distort(x, y)
    own = np.stack([MATRIX[0, 0] * bent_x + MATRIX[0, 2], MATRIX[1, 1] * bent_y + MATRIX[1, 2]], axis=1)
    np.testing.assert_allclose(own, seen.reshape(-1, 2), atol=1e-6)
    found = undistorted_pixels(own[:, 0], own[:, 1], torch.from_numpy(MATRIX), lens)
    np.testing.assert_allclose(np.stack(found, axis=1), back.reshape(-1, 2), atol=1e-4)


@pytest.mark.parametrize("name", ["radtan", "rational", "equidistant"])
def test_pictures_are_undistorted_as_opencv_does(name: str) -> None:
    cv2 = pytest.importorskip("cv2", reason="needs opencv-python-headless")
    lens = LENSES[name]
    column, row = np.meshgrid(np.arange(SIZE[0]), np.arange(SIZE[1]))
    picture = np.stack([np.sin(column / 9), np.cos(row / 7), np.sin((column + row) / 11)], axis=2) / 2 + 0.5
    pixels = np.rint(picture * 255).astype(np.uint8)
    if lens.kind == "equidistant":
        wanted = cv2.fisheye.undistortImage(pixels, MATRIX, np.array(lens.parameters), Knew=MATRIX)
    else:
        wanted = cv2.undistort(pixels, MATRIX, np.array(lens.parameters))
    planes = torch.from_numpy(pixels.transpose(2, 0, 1) / 255)
    own = undistorted_picture(planes, torch.from_numpy(MATRIX), lens)
    apart = np.abs(own.numpy().transpose(1, 2, 0) * 255 - wanted)
    assert np.quantile(apart, 0.99) < 4, "OpenCV rounds positions to 1/32 of a pixel"
    assert apart.mean() < 0.7


def test_sparse_depth_moves_with_the_picture() -> None:
    lens = LENSES["radtan"]
    sparse = torch.zeros(1, SIZE[1], SIZE[0])
    sparse[0, 20, 30], sparse[0, 120, 160] = 2.0, 3.0
    moved = undistorted_sparse(sparse, torch.from_numpy(MATRIX), lens)
    assert sorted(moved[moved > 0].tolist()) == [2.0, 3.0]
    x, y = undistorted_pixels(np.array([30.0]), np.array([20.0]), torch.from_numpy(MATRIX), lens)
    assert float(moved[0, round(y[0]), round(x[0])]) == 2.0
    assert float(moved[0, 120, 160]) == 3.0, "close to the axis nothing moves"
    assert round(x[0]) < 25, "a barrel is stretched outwards"


def kalibr(**changes: object) -> str:
    import yaml

    camera = {
        "cam_overlaps": [1], "camera_model": "pinhole", "distortion_coeffs": list(RADTAN[:4]),
        "distortion_model": "radtan", "intrinsics": [310.0, 305.0, 158.5, 121.25], "resolution": [320, 240],
        "rostopic": "/cam0/image_raw",
    }  # fmt: skip
    second = {**camera, "distortion_model": "equidistant", "distortion_coeffs": list(FISHEYE)}
    return yaml.safe_dump({"cam0": {**camera, **changes}, "cam1": second})


ROS_YAML = """image_width: 320
image_height: 240
camera_name: head
camera_matrix:
  rows: 3
  cols: 3
  data: [310.0, 0.0, 158.5, 0.0, 305.0, 121.25, 0.0, 0.0, 1.0]
distortion_model: {model}
distortion_coefficients:
  rows: 1
  cols: {count}
  data: {values}
rectification_matrix:
  rows: 3
  cols: 3
  data: [1, 0, 0, 0, 1, 0, 0, 0, 1]
"""
TOWER = (
    "a0: &a0 [1, 1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 30)) + "K: *a29\n"
)
ECHO = """header:
  frame_id: head
height: 240
width: 320
distortion_model: plumb_bob
d: [-0.31, 0.12, 0.0011, -0.0007, -0.02]
k: [310.0, 0.0, 158.5, 0.0, 305.0, 121.25, 0.0, 0.0, 1.0]
---
"""


def write_camera(folder: Path, kind: str) -> tuple[Path, Lens | None]:
    """The same camera in many formats."""
    if kind.startswith("ros"):
        name, values = {
            "ros plumb_bob": ("plumb_bob", RADTAN),
            "ros rational": ("rational_polynomial", RATIONAL),
            "ros equidistant": ("equidistant", FISHEYE),
        }[kind]
        path = folder / "head.yaml"
        path.write_text(ROS_YAML.format(model=name, count=len(values), values=list(values)))
        return path, Lens(kind="equidistant" if name == "equidistant" else "radtan", parameters=values)
    if kind == "echo":
        (folder / "info.yaml").write_text(ECHO)
        return folder / "info.yaml", LENSES["radtan"]
    if kind == "kalibr":
        (folder / "camchain.yaml").write_text(kalibr())
        return folder / "camchain.yaml", Lens(kind="radtan", parameters=RADTAN[:4])
    if kind.startswith("opencv"):
        cv2 = pytest.importorskip("cv2", reason="needs opencv-python-headless")
        path = folder / f"camera{kind.removeprefix('opencv')}"
        storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
        storage.write("image_width", 320)
        storage.write("image_height", 240)
        storage.write("camera_matrix", MATRIX)
        storage.write("distortion_coefficients", np.array(RADTAN)[:, None])
        storage.release()
        return path, LENSES["radtan"]
    if kind == "nerfstudio":
        table = {"camera_model": "OPENCV", "fl_x": 310.0, "fl_y": 305.0, "cx": 159.0, "cy": 121.75, "w": 320,
                 "h": 240, "k1": -0.31, "k2": 0.12, "p1": 0.0011, "p2": -0.0007, "frames": []}  # fmt: skip
        (folder / "transforms.json").write_text(json.dumps(table))
        return folder / "transforms.json", Lens(kind="radtan", parameters=RADTAN[:4])
    (folder / "plain.json").write_text(json.dumps({"K": MATRIX.tolist(), "T": np.eye(4).tolist()}))
    return folder / "plain.json", None


KINDS = [
    "ros plumb_bob", "ros rational", "ros equidistant", "echo", "kalibr", "opencv.yaml", "opencv.yml",
    "opencv.xml", "opencv.json", "nerfstudio", "plain",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_camera(tmp_path: Path, kind: str) -> None:
    path, lens = write_camera(tmp_path, kind)
    camera = read_camera(path)
    np.testing.assert_allclose(camera.intrinsics.numpy(), MATRIX)
    assert camera.size == (None if kind == "plain" else SIZE)
    assert camera.lens == lens


def test_a_chain_has_several_cameras(tmp_path: Path) -> None:
    (tmp_path / "chain.yaml").write_text(kalibr())
    lens = read_camera(tmp_path / "chain.yaml", number=1).lens
    assert lens is not None
    assert lens.kind == "equidistant"
    with pytest.raises(DatasetError, match=r"there is no cam7; there are cam0, cam1: choose with --camera"):
        read_camera(tmp_path / "chain.yaml", number=7)


def test_each_picture_of_a_capture_may_have_its_camera(tmp_path: Path) -> None:
    camera = {"cx": 50, "cy": 40, "w": 100, "h": 80}
    frames = [{"file_path": f"images/{i}.jpg", "fl_x": 100.0 + i, **camera} for i in (1, 2)]
    (tmp_path / "transforms.json").write_text(json.dumps({"frames": frames}))
    found = read_camera(tmp_path / "transforms.json", image=tmp_path / "images" / "2.jpg")
    assert float(found.intrinsics[0, 0]) == 102
    assert float(found.intrinsics[0, 2]) == 49.5
    with pytest.raises(DatasetError, match="each frame has a camera of its own"):
        read_camera(tmp_path / "transforms.json", image=tmp_path / "images" / "3.jpg")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ROS_YAML.format(model="kannala9", count=1, values=[0.1]),
            "distortion model 'kannala9' is not known",
        ),
        (kalibr(camera_model="omni"), "'omni' camera and no pinhole"),
        ("some: thing\n", "no camera in it; it has some"),
        ("- 1\n- 2\n", "wanted names and values; got a list"),
        (TOWER, "aliases that stand for more than"),
        ("K: !!python/object/apply:os.system ['true']\n", "not a readable calibration file"),
        ("K: [1, 2\n", "not a readable calibration file"),
        ("K: [[0, 0, 1], [0, 1, 1], [0, 0, 1]]\n", "positive focal lengths"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "camera.yaml").write_text(text)
    with pytest.raises(GbpnError, match=message) as caught:
        read_camera(tmp_path / "camera.yaml")
    assert "camera.yaml" in str(caught.value) or "intrinsics" in str(caught.value)


def test_entities_in_xml_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<!DOCTYPE x [<!ENTITY a 'b'>]><opencv_storage/>")
    with pytest.raises(DatasetError, match="a document type"):
        read_camera(tmp_path / "a.xml")


def test_a_message_without_calibration_is_told() -> None:
    with pytest.raises(DatasetError, match="not calibrated: its K is 0"):
        camera_info({"k": [0.0] * 9, "d": [], "distortion_model": "", "width": 3, "height": 2})


def test_a_camera_follows_resized_pictures(tmp_path: Path) -> None:
    camera = read_camera(write_camera(tmp_path, "echo")[0])
    half, notice = resized(camera, 120, 160)
    assert notice is not None
    assert "calibrated with 320×240" in notice
    assert half.intrinsics[0].tolist() == [155.0, 0.0, 79.0]  # (158.5 + 0.5) / 2 − 0.5
    with pytest.raises(DatasetError, match=r"calibrated with 320×240 pictures; got 320×200"):
        resized(camera, 200, 320)


@pytest.mark.parametrize("kind", ["matrix", "rotation", "list"])
def test_transforms_from_files(tmp_path: Path, kind: str) -> None:
    turn = [[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]
    wanted = np.eye(4)
    wanted[:3, :3], wanted[:3, 3] = turn, (0.1, 0.2, 0.3)
    table: object = {
        "matrix": {"T_cam_lidar": wanted.tolist()},
        "rotation": {"R": turn, "t": [0.1, 0.2, 0.3]},
        "list": wanted[:3].tolist(),
    }[kind]
    (tmp_path / "T.json").write_text(json.dumps(table))
    np.testing.assert_allclose(read_transform(tmp_path / "T.json").numpy(), wanted)
    (tmp_path / "T.json").write_text(json.dumps({"T": (2 * wanted).tolist()}))
    with pytest.raises(DatasetError, match="must be a rotation"):
        read_transform(tmp_path / "T.json")


def test_a_lens_has_its_parameters() -> None:
    with pytest.raises(InputError, match="one of radtan, equidistant, fov"):
        Lens(kind="omni", parameters=())
    with pytest.raises(InputError, match="at most 4 finite parameters"):
        Lens(kind="equidistant", parameters=(0.1,) * 5)


@pytest.mark.parametrize("name", LENSES)
def test_pixels_of_a_camera_with_skew_are_those_of_its_matrix(name: str) -> None:
    """K · undistort(K⁻¹ · pixel) of the whole matrix; and the picture shows what its pixels say."""
    matrix = torch.tensor([[50.0, 4.0, 21.0], [0.0, 46.0, 14.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    lens = LENSES[name]
    y, x = (part.ravel().astype(float) for part in np.mgrid[:30, :40])
    inverse = np.linalg.inv(matrix.numpy())
    seen = inverse @ np.stack([x, y, np.ones_like(x)])
    straight = matrix.numpy() @ np.stack([*lens.undistort(seen[0], seen[1]), np.ones_like(x)])
    found = undistorted_pixels(x, y, matrix, lens)
    np.testing.assert_allclose(found, straight[:2], atol=1e-9)
    ramp = torch.from_numpy(np.stack([x, y, x + y]).reshape(3, 30, 40))
    picture = undistorted_picture(ramp, matrix, lens)[:2].reshape(2, -1).numpy()
    bent = matrix.numpy() @ np.stack([*lens.distort(seen[0], seen[1]), np.ones_like(x)])
    inside = (bent[:2] >= 0).all(axis=0) & (bent[0] <= 39) & (bent[1] <= 29)
    assert inside.sum() > 500
    np.testing.assert_allclose(picture[:, inside], bent[:2, inside], atol=1e-6)
