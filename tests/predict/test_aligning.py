"""A calibration that is wrong by a known rotation: told by `look` and `complete`, mended where asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gbpn.camera.pinhole import points
from gbpn.camera.rotation import Rotation
from gbpn.camera.wide import Panorama
from gbpn.cli import app
from gbpn.errors import InputError
from gbpn.formats.camera_files import CameraFile
from gbpn.formats.colmap import Reconstruction
from gbpn.formats.images import write_image
from gbpn.jobs.aligning import refined, suspicion
from gbpn.jobs.pairing import plan
from gbpn.jobs.recorded import frame_of
from gbpn.jobs.sources import Sensor, read_job
from gbpn.measurements.validity import measured
from gbpn.recordings.bags import RecordedFrame
from scanned import scanned, scans

WRONG = Rotation(x=0.5, y=-0.9, z=0.3)
WITHIN = 0.2
"""Degrees."""
COUNT = 8


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """rgb, exact (maps as they should be), turned (maps of a wrong calibration), clouds (the same as points
    of a scanner, with extrinsics.txt)."""
    root = tmp_path_factory.mktemp("scanned")
    for name in ("rgb", "exact", "turned", "clouds"):
        (root / name).mkdir()
    mount = np.array([[0.0, -1, 0, 0.02], [0, 0, -1, -0.05], [1, 0, 0, -0.1], [0, 0, 0, 1]])
    np.savetxt(root / "extrinsics.txt", mount)
    for number, sample in enumerate(scans()[:COUNT]):
        write_image(root / "rgb" / f"{number:03}.png", sample.image)
        turned = scanned(sample, WRONG)
        np.save(root / "exact" / f"{number:03}.npy", sample.sparse[0].numpy())
        np.save(root / "turned" / f"{number:03}.npy", turned.sparse[0].numpy())
        rays = points(turned.sparse[None].double(), sample.intrinsics[None].double())[0]
        seen = rays[:, measured(turned.sparse[0])].numpy()  # [3, N]
        scanner = mount[:3, :3].T @ (seen - mount[:3, 3:])
        np.save(root / "clouds" / f"{number:03}.npy", scanner.T.astype(np.float32))
        camera = sample.intrinsics
        np.savetxt(root / "rgb" / "camera.txt", camera[None, [0, 1, 0, 1], [0, 1, 2, 2]].numpy())
    return root


def sensor(folders: Path, kind: str = "") -> Sensor:
    extrinsics = folders / "extrinsics.txt" if kind == "clouds" else None
    return Sensor(intrinsics=folders / "rgb" / "camera.txt", extrinsics=extrinsics)


@pytest.mark.parametrize("kind", ["turned", "clouds"])
def test_a_wrong_calibration_is_told_and_mended(folders: Path, kind: str) -> None:
    jobs = plan(str(folders / "rgb"), str(folders / kind))
    given = sensor(folders, kind)
    told = suspicion(given, jobs)
    assert told is not None
    assert "--refine-extrinsics" in told
    mended, decided = refined(given, jobs)
    assert mended.rotation is not None
    assert str(mended.rotation) in decided
    left = mended.rotation.matrix @ WRONG.matrix
    assert np.degrees(np.arccos((np.trace(left) - 1) / 2)) < WITHIN
    assert suspicion(mended, jobs) is None
    assert mended.settings()["rotation"] == {axis: getattr(mended.rotation, axis) for axis in ("x", "y", "z")}
    right = read_job(plan(str(folders / "rgb"), str(folders / "exact"))[0], sensor(folders))
    before, after = read_job(jobs[0], given), read_job(jobs[0], mended)
    assert any(str(mended.rotation) in notice for notice in after.notices)
    assert after.sparse.sum() != before.sparse.sum()

    def error(sparse: torch.Tensor) -> float:
        """Share of those measured that are far from the exact ones around them."""
        near = torch.nn.functional.max_pool2d(right.sparse, 5, 1, 2)
        known = measured(sparse) & (near > 0)
        return float(((sparse / near - 1).abs() > 0.1)[known].float().mean())

    assert error(after.sparse) < 0.5 * error(before.sparse)


def test_a_right_calibration_is_left_alone(folders: Path) -> None:
    jobs = plan(str(folders / "rgb"), str(folders / "exact"))
    assert suspicion(sensor(folders), jobs) is None
    for given in ([], jobs[:3]):
        assert suspicion(sensor(folders), given) is None
        with pytest.raises(InputError, match=f"got {len(given)} of {len(given)} frames"):
            refined(sensor(folders), given)


@pytest.mark.parametrize("has_points", [True, False])
def test_frames_of_recordings_are_turned_too(has_points: bool) -> None:
    sample = scans()[0]
    depth = sample.sparse[0].numpy()
    seen = points(sample.sparse[None].double(), sample.intrinsics[None].double())[0]
    cloud = seen[:, measured(sample.sparse[0])].T.numpy()
    frame = RecordedFrame(
        picture=(sample.image.permute(1, 2, 0).numpy() * 255).astype(np.uint8),
        camera=CameraFile(intrinsics=sample.intrinsics.double()),
        points=cloud if has_points else None,
        to_camera=np.eye(4) if has_points else None,
        depth=None if has_points else depth,
    )
    still = frame_of(frame, Sensor(), Path("a.bag"))
    turned = frame_of(frame, Sensor(rotation=Rotation(x=0, y=2, z=0)), Path("a.bag"))
    assert any("turned by 2.00°" in notice for notice in turned.notices)
    assert not still.notices
    pixels = round(float(sample.intrinsics[0, 0]) * np.tan(np.radians(2)))
    there = measured(still.sparse[0])[:, :-pixels]
    arrived = torch.nn.functional.max_pool2d(turned.sparse, 7, 1, 3)[0, :, pixels:] > 0
    assert float(arrived[there].float().mean()) > 0.95
    assert not bool((turned.sparse[0, :, : pixels - 2] > 0).any())


def test_what_a_person_sees(folders: Path, weights: Path, tmp_path: Path) -> None:
    camera = ["--intrinsics", str(folders / "rgb" / "camera.txt")]
    words = ["complete", str(folders / "rgb" / "00[0-4].png"), str(folders / "turned"), *camera]
    words += ["--weights", str(weights), "--iterations", "1,1", "-o", str(tmp_path / "out")]
    plain = CliRunner().invoke(app, words)
    assert plain.exit_code == 0, plain.output
    assert "seem to be turned" in plain.output
    mended = CliRunner().invoke(app, [*words, "--refine-extrinsics"])
    assert mended.exit_code == 0, mended.output
    assert "fit best with the measurements turned by" in mended.output
    assert "5 written" in mended.output
    record = json.loads((tmp_path / "out" / "000.json").read_text())
    assert set(record["settings"]["rotation"]) == {"x", "y", "z"}
    assert any("what was measured is turned by" in notice for notice in record["notices"])
    again = CliRunner().invoke(app, [*words, "--refine-extrinsics"])
    assert "5 done before" in again.output
    seen = CliRunner().invoke(app, ["look", str(folders / "rgb"), str(folders / "turned"), "--no-sheet"])
    assert "seem to be turned" in seen.output, seen.output


def test_doors_that_cannot_refine_refuse(folders: Path, tmp_path: Path) -> None:
    words = ["complete", str(folders / "rgb"), str(folders / "turned"), "-o", str(tmp_path / "out")]
    many = CliRunner().invoke(app, [*words, "--refine-extrinsics", "--distributed", "here"])
    assert isinstance(many.exception, InputError)
    assert "--refine-extrinsics is for one machine" in str(many.exception)
    model = Reconstruction(cameras={}, pictures=[], points={})
    with pytest.raises(InputError, match="COLMAP"):
        refined(Sensor(reconstruction=model), [])
    wide = Sensor(intrinsics=Panorama())
    with pytest.raises(InputError, match="pinhole pictures"):
        refined(wide, [])
    assert suspicion(wide, plan(str(folders / "rgb"), str(folders / "turned"))) is None
