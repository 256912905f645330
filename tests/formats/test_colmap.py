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
from gbpn.formats.colmap import MODELS, read_model, sparse_view
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
    assert float(view.std.max()) == 0.0, "what no other picture observes states no noise"
    assert float(view.sparse[0, 18, 30]) == 4.0  # point 8: (1, 0.4, 2)
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
    assert float(read_depth(tmp_path / "out" / "std" / "first view.npy").max()) == 0.0, (
        "one view says nothing"
    )
    (tmp_path / "out" / "rgb").mkdir()
    from PIL import Image

    for name in ("first view", "second"):
        Image.new("RGB", (40, 30)).save(tmp_path / "out" / "rgb" / f"{name}.jpg")
    dataset = open_dataset("folder", tmp_path / "out")
    sample = dataset.load(0)
    assert int((sample.sparse > 0).sum()) == 2
    assert float(sample.sparse[0, 14, 20]) == 2.0
    assert sample.intrinsics.tolist() == [[20, 0, 19.5], [0, 20, 14.5], [0, 0, 1]]


@pytest.mark.parametrize("number", MODELS)
def test_a_binary_model_says_what_its_text_does(tmp_path: Path, number: int) -> None:
    """Written by COLMAP's description of its files: every camera, poses of any turn, points and their ids."""
    rng = np.random.default_rng(number)
    name, count = MODELS[number]
    parameters = rng.uniform(0.1, 20, count)
    turns, places = rng.normal(size=(3, 4)), rng.normal(size=(3, 3))
    names = ["b c.jpg", "a.png", "sub/é.jpg"]
    seen = [rng.integers(-1, 9, k) for k in (4, 0, 1)]
    points = {int(k): rng.normal(size=4) for k in rng.permutation(9)}
    text, binary = tmp_path / "text", tmp_path / "binary"
    for folder in (text, binary):
        folder.mkdir()

    def words(*values: object) -> str:
        return " ".join(repr(float(v)) if isinstance(v, float) else str(v) for v in values)

    (text / "cameras.txt").write_text(words(5, name, 40, 30, *parameters.tolist()) + "\n")
    (text / "images.txt").write_text(
        "".join(
            words(k, *turns[k].tolist(), *places[k].tolist(), 5, names[k])
            + "\n"
            + words(*(v for point in seen[k] for v in (1.5, 2.5, int(point))))
            + "\n"
            for k in range(3)
        )
    )
    (text / "points3D.txt").write_text(
        "".join(words(k, *p[:3].tolist(), 1, 2, 3, float(p[3]), 1, 0) + "\n" for k, p in points.items())
    )
    (binary / "cameras.bin").write_bytes(
        struct.pack("<QiiQQ", 1, 5, number, 40, 30) + struct.pack(f"<{count}d", *parameters)
    )
    (binary / "images.bin").write_bytes(
        struct.pack("<Q", 3)
        + b"".join(
            struct.pack("<i7di", k, *turns[k], *places[k], 5)
            + names[k].encode()
            + struct.pack("<xQ", len(seen[k]))
            + b"".join(struct.pack("<ddq", 1.5, 2.5, point) for point in seen[k])
            for k in range(3)
        )
    )
    (binary / "points3D.bin").write_bytes(
        struct.pack("<Q", 9)
        + b"".join(struct.pack("<Q3d3BdQii", k, *p[:3], 1, 2, 3, p[3], 1, 7, 0) for k, p in points.items())
    )
    one, other = read_model(text), read_model(binary)
    assert one.cameras.keys() == other.cameras.keys() == {5}
    for model in (one, other):
        camera = model.cameras[5]
        assert (camera.model, camera.width, camera.height) == (name, 40, 30)
        np.testing.assert_allclose(camera.parameters, parameters)
        assert [picture.name for picture in model.pictures] == sorted(names)
        for picture in model.pictures:
            k = names.index(picture.name)
            assert picture.camera == 5
            np.testing.assert_allclose(picture.translation, places[k])
            np.testing.assert_array_equal(picture.points, seen[k])
            w, *axis = turns[k] / np.linalg.norm(turns[k])
            across = np.cross(axis, np.eye(3)).T  # v → axis × v
            np.testing.assert_allclose(
                picture.rotation, np.eye(3) + 2 * w * across + 2 * across @ across, atol=1e-12
            )
        assert model.points.keys() == points.keys()
        for k, point in points.items():
            np.testing.assert_allclose(model.points[k], point)
