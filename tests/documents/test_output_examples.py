"""The examples of what comes out, run on small data in the true formats."""

from __future__ import annotations

import io
import json
import runpy
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import gbpn
from gbpn.weights.files import save

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def recording(path: Path, pack) -> None:
    """Two frames as Record3D writes them: a phone held upright, turned by 90° about its view."""
    rng = np.random.default_rng(0)
    half = np.sqrt(0.5)
    camera = [[80.0, 0, 48], [0, 80, 32], [0, 0, 1]]
    about = {"w": 96, "h": 64, "dw": 12, "dh": 8, "fps": 30, "K": np.array(camera).T.ravel().tolist()}
    about["poses"] = [[0, 0, half, half, 0.1 * k, 0.2, 0.3] for k in range(2)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata", json.dumps(about))
        for k in range(2):
            jpeg = io.BytesIO()
            Image.fromarray(rng.integers(0, 255, (64, 96, 3), dtype=np.uint8)).save(jpeg, format="JPEG")
            archive.writestr(f"rgbd/{k}.jpg", jpeg.getvalue())
            archive.writestr(f"rgbd/{k}.depth", pack(np.full((8, 12), 2 + k, np.float32).tobytes()))
            archive.writestr(f"rgbd/{k}.conf", pack(np.full((8, 12), 2, np.uint8).tobytes()))


def test_a_phone_s_recording_becomes_folders(tmp_path: Path) -> None:
    lzfse = pytest.importorskip("lzfse", reason="needs pip install lzfse")
    recording(tmp_path / "a.r3d", lzfse.compress)
    main = runpy.run_path(str(EXAMPLES / "iphone_record3d.py"))["main"]
    main(str(tmp_path / "a.r3d"), str(tmp_path / "phone"))
    assert np.load(tmp_path / "phone" / "depth" / "000001.npy").tolist() == np.full((8, 12), 3.0).tolist()
    assert np.load(tmp_path / "phone" / "confidence" / "000000.npy").max() == 2
    assert (tmp_path / "phone" / "camera.txt").read_text() == "80.000000 80.000000 47.500000 31.500000\n"
    assert np.loadtxt(tmp_path / "phone" / "poses" / "000001.txt").shape == (4, 4)


def test_a_phone_s_pose_is_turned_to_our_axes() -> None:
    """ARKit's camera looks along −z with y up; here along z with y down."""
    half = np.sqrt(0.5)
    pose = runpy.run_path(str(EXAMPLES / "iphone_record3d.py"))["matrix"]([0, 0, half, half, 0.1, 0.2, 0.3])
    np.testing.assert_allclose(pose[:3, 2], [0, 0, -1], atol=1e-9)
    np.testing.assert_allclose(pose[:3, 0], [0, 1, 0], atol=1e-9)
    np.testing.assert_allclose(pose[:3, 3], [0.1, 0.2, 0.3])


def test_frames_become_a_nerfstudio_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    weights = save(gbpn.build("small-2", width=0.5), tmp_path / "thin.safetensors")
    rng = np.random.default_rng(0)
    for part in ("color", "depth", "poses"):
        (tmp_path / part).mkdir()
    for k in range(2):
        Image.fromarray(rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)).save(
            tmp_path / "color" / f"{k}.png"
        )
        Image.fromarray(np.full((12, 16), 2000, np.uint16)).save(tmp_path / "depth" / f"{k}.png")
        np.savetxt(tmp_path / "poses" / f"{k}.txt", np.eye(4))
    main = runpy.run_path(str(EXAMPLES / "nerfstudio.py"))["main"]
    folders = (str(tmp_path / part) for part in ("color", "depth", "poses"))
    main(*folders, "60,60,31.5,23.5", str(tmp_path / "out"), str(weights))
    assert "2 frames" in capsys.readouterr().out
    told = json.loads((tmp_path / "out" / "transforms.json").read_text())
    assert len(told["frames"]) == 2
    assert (tmp_path / "out" / "points3D.ply").is_file()
