"""COLMAP projects as they come: where models lie, which picture is which, resized and distorted cameras."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gbpn.errors import InputError
from gbpn.formats.colmap import read_model, sparse_view
from gbpn.formats.colmap_layout import largest_model, model_folders, registered
from gbpn.inputs.reading import UNDISTORTED
from gbpn.jobs.sources import Sensor

POINTS = "7 -0.5 0 3 1 2 3 0.0 1 0\n8 0.5 0.4 1 1 2 3 2.0 1 2\n"


def write(folder: Path, *names: str, camera: str = "PINHOLE 40 30 20 20 20 15") -> Path:
    folder.mkdir(parents=True)
    (folder / "cameras.txt").write_text(f"1 {camera}\n")
    lines = [f"{i + 1} 1 0 0 0 0.5 0 1 1 {name}\n10 10 7 20 12 8\n" for i, name in enumerate(names)]
    (folder / "images.txt").write_text("".join(lines))
    (folder / "points3D.txt").write_text(POINTS)
    return folder


@pytest.mark.parametrize("place", ["", "sparse", "sparse/0", "0"])
def test_a_model_is_found_where_it_lies(tmp_path: Path, place: str) -> None:
    folder = write(tmp_path / "project" / place, "a.jpg") if place else write(tmp_path / "project", "a.jpg")
    assert model_folders(tmp_path / "project") == [folder]
    model, notice = largest_model(tmp_path / "project")
    assert notice is None
    assert [picture.name for picture in model.pictures] == ["a.jpg"]


def test_of_several_models_the_largest_is_used_and_the_others_are_named(tmp_path: Path) -> None:
    for name, pictures in (("0", ["a.jpg"]), ("1", ["b.jpg", "c.jpg"]), ("10", ["d.jpg"])):
        write(tmp_path / "sparse" / name, *pictures)
    assert [folder.name for folder in model_folders(tmp_path)] == ["0", "1", "10"]
    model, notice = largest_model(tmp_path)
    assert len(model.pictures) == 2
    assert notice is not None
    assert "3 COLMAP models: 1 with 2 images is used, not 0 (1 images), 10 (1 images)" in notice
    assert not model_folders(tmp_path / "sparse" / "0" / "nothing")


def test_pictures_of_a_rig_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    model = read_model(write(tmp_path / "m", "left/1.jpg", "right/1.jpg", "only.jpg"))
    for name in ("left/1.jpg", "right/1.jpg"):
        assert registered(model, tmp_path / "photos" / name, 30, 40).picture.name == name
    assert registered(model, Path("elsewhere/only.jpg"), 30, 40).picture.name == "only.jpg"
    with pytest.raises(
        InputError, match=r"knows 2 images of this name, left/1.jpg, right/1.jpg: give the folder"
    ):
        registered(model, Path("flat/1.jpg"), 30, 40)
    with pytest.raises(InputError, match="is registered 0 times in the COLMAP model"):
        registered(model, Path("2.jpg"), 30, 40)


def test_resized_pictures_have_resized_cameras(tmp_path: Path) -> None:
    for place, camera in enumerate(("PINHOLE 40 30 20 20 20 15", "SIMPLE_RADIAL 40 30 20 20 15 0.1")):
        model = read_model(write(tmp_path / str(place), "a.jpg", camera=camera))
        found = registered(model, Path("a.jpg"), 60, 80)
        assert found.resized
        view = sparse_view(model, found.picture, camera=found.camera, undistorted=True)
        assert view.intrinsics.tolist() == [[40, 0, 39.5], [0, 40, 29.5], [0, 0, 1]]
        assert (found.lens is None) == (place == 0)
        assert float(view.sparse[0, 38, 60]) == 2.0  # point 8: (1, 0.4, 2) at 40 · (0.5, 0.2) + (39.5, 29.5)
    with pytest.raises(InputError, match="COLMAP saw it as 30×40"):
        registered(model, Path("a.jpg"), 60, 60)


@pytest.mark.parametrize("rectified", [True, False])
def test_what_was_made_of_a_model_is_said(tmp_path: Path, rectified: bool) -> None:
    bent = read_model(write(tmp_path / "bent", "a.jpg", camera="SIMPLE_RADIAL 40 30 20 20 15 0.1"))
    said = {
        (units, size): Sensor(reconstruction=bent, units=units, rectified=rectified).readings(
            Path("a.jpg"), None, *size
        )
        for units in (None, 1.0, 2.0)
        for size in ((30, 40), (60, 80))
    }
    for (units, size), found in said.items():
        notices = " ".join(found.notices)
        assert ("no unit" in notices) == (units is None)
        assert ("another size" in notices) == (size != (30, 40))
        assert (UNDISTORTED in found.notices) == (found.lens is not None) == (not rectified)
        assert float(found.measurements.sparse.max()) == (units or 1.0) * float(
            said[1.0, size].measurements.sparse.max()
        )


@pytest.mark.parametrize(
    "camera", ["OPENCV", "OPENCV_FISHEYE", "FULL_OPENCV", "SIMPLE_RADIAL_FISHEYE", "FOV"]
)
def test_lenses_bend_as_colmap_says(tmp_path: Path, camera: str) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    pinhole = [250.0, 255.0, 161.0, 118.0]
    values = {
        "OPENCV": [*pinhole, 0.05, -0.02, 0.001, -0.002],
        "OPENCV_FISHEYE": [*pinhole, 0.02, -0.01, 0.003, -0.001],
        "FULL_OPENCV": [*pinhole, 0.05, -0.02, 0.001, -0.002, 0.01, 0.2, -0.1, 0.02],
        "SIMPLE_RADIAL_FISHEYE": [250.0, 161.0, 118.0, 0.03],
        "FOV": [*pinhole, 0.8],
    }[camera]
    text = " ".join(map(str, values))
    model = read_model(write(tmp_path / "m", "a.jpg", camera=f"{camera} 320 240 {text}"))
    found = registered(model, Path("a.jpg"), 240, 320)
    theirs = pycolmap.Camera(model=camera, width=320, height=240, params=values)
    x, y = np.meshgrid(np.linspace(-0.4, 0.4, 5), np.linspace(-0.3, 0.3, 5))
    rays = np.stack([x.ravel(), y.ravel(), np.ones(x.size)], axis=1)
    wanted = theirs.img_from_cam(rays)
    bent = np.stack(found.lens.distort(rays[:, 0], rays[:, 1]), axis=1)
    focal, centre = (values[0], values[1:3]) if len(values) == 4 else (values[:2], values[2:4])
    np.testing.assert_allclose(bent * focal + centre, wanted, atol=1e-6)
