"""Real structure from motion, from pictures to a cloud: what 90 % intervals hold, and no made-up metres."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.formats.point_clouds import read_points

pycolmap = pytest.importorskip("pycolmap")
DESK = Path(__file__).parents[3] / "shared" / "data" / "tum_rgbd" / "fr1_desk"
pytestmark = pytest.mark.skipif(not DESK.is_dir(), reason="needs the frames of TUM fr1_desk")
COMPLETED = 15
"""Frames; all 60 are reconstructed."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("desk")
    shutil.copytree(DESK / "color", root / "images")
    matrix = json.loads((DESK / "meta.json").read_text())["K"]
    camera = pycolmap.ImageReaderOptions()
    camera.camera_model = "PINHOLE"
    camera.camera_params = f"{matrix[0][0]},{matrix[1][1]},{matrix[0][2] + 0.5},{matrix[1][2] + 0.5}"
    database = root / "database.db"
    pycolmap.extract_features(
        database, root / "images", camera_mode=pycolmap.CameraMode.SINGLE, reader_options=camera
    )
    pycolmap.match_exhaustive(database)
    models = pycolmap.incremental_mapping(database, root / "images", root / "sparse")
    assert models[0].num_reg_images() >= 55
    return root


def test_points_of_a_real_reconstruction(project: Path, tmp_path: Path) -> None:
    for number, picture in enumerate(sorted((project / "images").iterdir())):
        if number % (60 // COMPLETED):
            picture.unlink()
    words = ["complete", str(project), "-o", str(tmp_path / "out"), "--merge", str(tmp_path / "world.ply")]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    told = " ".join(answer.output.split())
    assert "depths have no unit" in told
    assert "trained for 0." not in told, "a range in metres says nothing of depths without a unit"
    depth, std, true = (np.concatenate(maps) for maps in zip(*_maps(tmp_path / "out"), strict=True))
    scale = float(np.median(true / depth))
    error = np.abs(depth * scale - true)
    held = float(np.mean(error < 1.6449 * std * scale))
    assert 0.86 <= held <= 0.94, f"90 % intervals hold {held:.1%}"
    assert float(np.sqrt(np.mean(error**2))) < 0.26, "linear interpolation of the same points errs by 0.264 m"
    assert len(read_points(tmp_path / "world.ply")) > 10_000


def _maps(out: Path) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Depth and σ in the model's unit and metres as measured, of the pixels that have all."""
    found = []
    for file in sorted(out.glob("*_depth.npy")):
        name = file.name.removesuffix("_depth.npy")
        true = np.asarray(Image.open(DESK / "depth" / f"{name}.png")).astype(float) / 1000
        depth, std = np.load(file), np.load(out / f"{name}_std.npy")
        known = (true > 0) & np.isfinite(depth)
        found.append((depth[known], std[known], true[known]))
    assert len(found) == COMPLETED
    return found
