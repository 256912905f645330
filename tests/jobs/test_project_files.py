"""Projects of the studio: what the page saves is what the command line completes."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gbpn.errors import GbpnError
from gbpn.formats.point_tables import read_point_table
from gbpn.jobs.project_files import read_project, unpacked

POINTS = "x,y,depth,std\n0,0,2.5,0\n29,19,1.25,0.1\n"


def saved(path: Path, **changes: Any) -> Path:
    Image.fromarray(np.zeros((60, 90, 3), np.uint8)).save(path.with_suffix(".png"))
    told = {
        "format": "gbpn-project", "version": 1, "written_by": "test", "name": "my photo",
        "photo": "photo.png", "size": [20, 30], "camera": [100, 100, 44.5, 29.5], "how": {}, **changes,
    }  # fmt: skip
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("project.json", json.dumps(told))
        packed.writestr("points.csv", POINTS)
        packed.write(path.with_suffix(".png"), "photo.png")
    return path


def test_points_are_pixels_of_the_photo(tmp_path: Path) -> None:
    project = read_project(saved(tmp_path / "a.gbpn"))
    photo, table, camera = unpacked(project, tmp_path)
    assert photo.name == "my_photo.png"
    assert photo.read_bytes() == (tmp_path / "a.png").read_bytes()
    assert camera == "100,100,44.5,29.5"
    np.testing.assert_allclose(read_point_table(table)[:, :4], [[1, 1, 2.5, 0], [88, 58, 1.25, 0.1]])


def test_a_scene_is_the_packages_own(tmp_path: Path) -> None:
    project = read_project(saved(tmp_path / "a.gbpn", scene="kitchen", camera=[]))
    photo, _, camera = unpacked(project, tmp_path)
    with Image.open(photo) as picture:
        assert picture.size == (320, 240)
    assert camera is None


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "other"}, {"version": 2}, {"photo": "../a.png"}, {"photo": "photo.exe"}, {"camera": [1]},
        {"size": [0, 3]}, {"size": 7}, {"scene": "../kitchen"}, {"how": 3}, {"camera_file": "camera.json"},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_project_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(GbpnError):
        read_project(saved(tmp_path / "a.gbpn", **changes))


def test_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gbpn").write_bytes(b"nothing of the kind")
    with pytest.raises(GbpnError, match="project"):
        read_project(tmp_path / "a.gbpn")


@pytest.mark.parametrize("photo", [b"", b"no picture", b"%!PS-Adobe-3.0 EPSF-3.0"], ids=str)
def test_a_photo_that_is_none_is_refused(tmp_path: Path, photo: bytes) -> None:
    project = replace(read_project(saved(tmp_path / "a.gbpn")), photo=photo)
    with pytest.raises(GbpnError, match="picture"):
        unpacked(project, tmp_path)


def test_a_damaged_photo_is_refused(tmp_path: Path) -> None:
    project = read_project(saved(tmp_path / "a.gbpn"))
    with pytest.raises(GbpnError, match="picture"):
        unpacked(replace(project, photo=project.photo[:-30]), tmp_path)
