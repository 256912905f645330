"""COLMAP models: both formats, distortion, weights; judged by COLMAP's own library where it is installed."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.datasets import open_dataset
from gbpn.errors import DatasetError, InputError
from gbpn.formats.colmap import read_model, sparse_view
from gbpn.formats.depth_files import read_depth

CAMERA = "# comment\n1 {model} 40 30 {parameters}\n"
IMAGES = (
    "# comment\n1 1 0 0 0 0.5 0 1 1 first view.jpg\n10 10 7 20 12 -1 21.5 15.5 8\n"
    "2 1 0 0 0 0 0 0 1 second.jpg\n\n"
)
POINTS = "# comment\n7 -0.5 0 3 1 2 3 0.0 1 0\n8 0.5 0.4 1 1 2 3 2.0 1 2\n9 0 0 1 1 2 3 0.1 2 0\n"


def write_text(folder: Path, model: str = "PINHOLE", parameters: str = "20 20 20 15") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "cameras.txt").write_text(CAMERA.format(model=model, parameters=parameters))
    (folder / "images.txt").write_text(IMAGES)
    (folder / "points3D.txt").write_text(POINTS)
    return folder


def test_text_model_by_hand(tmp_path: Path) -> None:
    model = read_model(write_text(tmp_path))
    assert [picture.name for picture in model.pictures] == ["first view.jpg", "second.jpg"]
    view = sparse_view(model, model.pictures[0], scale=2.0)
    # Point 7 in the camera: (0, 0, 4), at the principal point; COLMAP's (20, 15) is our (19.5, 14.5).
    places = np.argwhere(view.sparse[0].numpy() > 0)
    assert places.tolist() == [[14, 20], [18, 30]]
    assert float(view.sparse[0, 14, 20]) == 8.0
    assert float(view.weight[0, 14, 20]) == 1.0
    assert float(view.sparse[0, 18, 30]) == 4.0  # point 8: (1, 0.4, 2)
    assert float(view.weight[0, 18, 30]) == pytest.approx(0.2)
    assert view.intrinsics.tolist() == [[20, 0, 19.5], [0, 20, 14.5], [0, 0, 1]]
    assert view.distortion == 0
    assert not bool(sparse_view(model, model.pictures[1]).sparse.any()), "an image that observes nothing"


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n\n\n", "\n \n\n\n"])
@pytest.mark.parametrize("last", ["", "1 2 7"])
def test_empty_lines_at_the_end_say_nothing(tmp_path: Path, end: str, last: str) -> None:
    """Whether the last image observes points or none."""
    write_text(tmp_path)
    (tmp_path / "images.txt").write_text(IMAGES.rstrip("\n") + (f"\n{last}" if last else "") + end)
    pictures = read_model(tmp_path).pictures
    assert [picture.name for picture in pictures] == ["first view.jpg", "second.jpg"]
    assert [picture.points.tolist() for picture in pictures] == [[7, -1, 8], [7] if last else []]


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("SIMPLE_RADIAL", "20 20 15 0.1"), ("RADIAL", "20 20 15 0.1 0"), ("OPENCV", "20 20 20 15 0.1 0 0 0"),
     ("FULL_OPENCV", "20 20 20 15 0.1 0 0 0 0 0 0 0")],
)  # fmt: skip
def test_distortion_moves_points_and_is_reported(tmp_path: Path, model: str, parameters: str) -> None:
    read = read_model(write_text(tmp_path, model, parameters))
    view = sparse_view(read, read.pictures[0])
    # Point 8 at (0.5, 0.2): r² = 0.29, so it moves outwards by 2.9 % of (10, 4) pixels.
    assert view.distortion == pytest.approx(0.029 * np.hypot(10, 4), rel=1e-6)
    assert int((view.sparse > 0).sum()) == 2


def test_a_fisheye_moves_points_by_its_angles(tmp_path: Path) -> None:
    read = read_model(write_text(tmp_path, "OPENCV_FISHEYE", "20 20 20 15 0 0 0 0"))
    view = sparse_view(read, read.pictures[0])
    # Point 8 at (0.5, 0.2), radius √0.29: without parameters the radius becomes its arc tangent.
    radius = np.sqrt(0.29)
    assert view.distortion == pytest.approx(20 * (radius - np.arctan(radius)), rel=1e-6)
    straight = sparse_view(read, read.pictures[0], undistorted=True)
    assert straight.distortion == 0
    assert float(straight.sparse[0, 18, 30]) == 2.0


def test_a_lens_that_is_not_known_must_be_undistorted_first(tmp_path: Path) -> None:
    read = read_model(write_text(tmp_path, "THIN_PRISM_FISHEYE", "20 20 20 15 0 0 0 0 0 0 0 0"))
    with pytest.raises(InputError, match="colmap image_undistorter"):
        sparse_view(read, read.pictures[0])


def test_damaged_and_missing_models_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="expected cameras, images and points3D"):
        read_model(tmp_path)
    write_text(tmp_path)
    (tmp_path / "images.txt").write_text("1 1 0 0 0 0 0 1 1 a.jpg\n1 2 3\n1 1 0 0\n\n")
    with pytest.raises(DatasetError, match="part of a COLMAP model"):
        read_model(tmp_path)
    for name in ("cameras", "images", "points3D"):
        (tmp_path / f"{name}.bin").write_bytes(struct.pack("<Q", 3))
    with pytest.raises(DatasetError, match=r"ends .* bytes early"):
        read_model(tmp_path)


@pytest.mark.parametrize("distorted", [False, True])
def test_colmaps_own_library_agrees(tmp_path: Path, distorted: bool) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    options = pycolmap.SyntheticDatasetOptions()
    options.num_rigs, options.num_frames_per_rig, options.num_points3D = 1, 3, 60
    options.camera_width, options.camera_height = 320, 240
    kind = pycolmap.CameraModelId.OPENCV if distorted else pycolmap.CameraModelId.PINHOLE
    lens = [0.05, -0.02, 0.001, -0.002] if distorted else []
    options.camera_model_id, options.camera_params = kind, [250.0, 255.0, 161.0, 118.0, *lens]
    reconstruction = pycolmap.synthesize_dataset(options)
    (tmp_path / "text").mkdir()
    (tmp_path / "binary").mkdir()
    reconstruction.write_text(str(tmp_path / "text"))
    reconstruction.write_binary(str(tmp_path / "binary"))
    model = read_model(tmp_path / "text")
    binary = read_model(tmp_path / "binary")
    images = {image.name: image for image in reconstruction.images.values()}
    assert [picture.name for picture in model.pictures] == sorted(images)
    for picture, twin in zip(model.pictures, binary.pictures, strict=True):
        view = sparse_view(model, picture)
        torch.testing.assert_close(view.sparse, sparse_view(binary, twin).sparse)
        image = images[picture.name]
        expected: dict[tuple[int, int], float] = {}
        for observation in image.points2D:
            if observation.has_point3D():
                world = reconstruction.points3D[observation.point3D_id].xyz
                depth = (image.cam_from_world() * world)[2]
                x, y = np.rint(image.project_point(world) - 0.5).astype(int)
                if 0 <= x < 320 and 0 <= y < 240:
                    expected[(y, x)] = min(depth, expected.get((y, x), np.inf))
        assert len(expected) > 20
        found = {tuple(place) for place in np.argwhere(view.sparse[0].numpy() > 0).tolist()}
        assert found == set(expected)
        for place, depth in expected.items():
            assert float(view.sparse[0][place]) == pytest.approx(depth, rel=1e-5)


def test_the_command_writes_a_folder_dataset(tmp_path: Path) -> None:
    write_text(tmp_path / "model", "SIMPLE_RADIAL", "20 20 15 0.4")
    result = CliRunner().invoke(
        app, ["project", str(tmp_path / "model"), "-o", str(tmp_path / "out"), "--units", "0.5"]
    )
    assert result.exit_code == 0, result.output
    assert "2 images" in result.output
    assert "colmap image_undistorter" in result.output
    assert float(read_depth(tmp_path / "out" / "weight" / "first view.npy").max()) == 1.0
    (tmp_path / "out" / "rgb").mkdir()
    from PIL import Image

    for name in ("first view", "second"):
        Image.new("RGB", (40, 30)).save(tmp_path / "out" / "rgb" / f"{name}.jpg")
    dataset = open_dataset("folder", tmp_path / "out")
    sample = dataset.load(0)
    assert int((sample.sparse > 0).sum()) == 2
    assert float(sample.sparse[0, 14, 20]) == 2.0
    assert sample.intrinsics.tolist() == [[20, 0, 19.5], [0, 20, 14.5], [0, 0, 1]]
