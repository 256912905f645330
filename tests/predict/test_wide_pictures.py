"""Panoramas and wide fisheye lenses at the doors: files, clouds, range images, and who refuses them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import gbpn as package
from gbpn import cli
from gbpn.camera.lens import Lens
from gbpn.camera.wide import Fisheye, Panorama
from gbpn.errors import DatasetError, InputError
from gbpn.inputs.measurements import DepthSensor
from gbpn.inputs.reading import as_measurements, frame_inputs
from gbpn.jobs.completed_folder import read_record
from gbpn.jobs.sources import Sensor
from gbpn.scale.instructions import Instructions

HEIGHT, WIDTH = 32, 64
WHOLE = Panorama().seen(HEIGHT, WIDTH)
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def gbpn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], weights: Path) -> Command:
    def run(*arguments: object) -> tuple[int, str]:
        verb, *rest = map(str, arguments)
        own = ["--device", "cpu", "--weights", str(weights)] if verb == "complete" else []
        monkeypatch.setattr("sys.argv", ["gbpn", verb, *own, *rest])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), " ".join((printed.out + printed.err).split())

    return run


@pytest.fixture
def ranges() -> np.ndarray:
    """[H, W] float32 metres at 200 pixels."""
    rng = np.random.default_rng(0)
    out = np.zeros(HEIGHT * WIDTH, np.float32)
    out[rng.choice(out.size, 200, replace=False)] = rng.integers(2000, 4000, 200) / np.float32(1000)
    return out.reshape(HEIGHT, WIDTH)


@pytest.fixture
def folder(tmp_path: Path, ranges: np.ndarray) -> Path:
    """pano.jpg, range.png (millimetres) and the same points as cloud.npy, two metres behind the camera."""
    pixels = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "pano.jpg")
    Image.fromarray((ranges * 1000).round().astype(np.uint16)).save(tmp_path / "range.png")
    np.save(tmp_path / "cloud.npy", points(ranges) + np.array((0, 0, 2.0)))
    pose = np.eye(4)
    pose[2, 3] = -2.0
    np.savetxt(tmp_path / "T.txt", pose)
    return tmp_path


def points(ranges: np.ndarray) -> np.ndarray:
    return np.asarray((WHOLE.directions(*ranges.shape) * ranges[..., None])[ranges > 0])


def test_a_panorama_becomes_files_and_its_cloud_is_all_around(
    gbpn: Command, folder: Path, completer: package.DepthCompleter
) -> None:
    code, told = gbpn(
        *("complete", folder / "pano.jpg", folder / "range.png", "--scale", 1000),
        *("--intrinsics", "panorama", "--cloud", "-o", folder / "out"),
    )
    assert code == 0, told
    assert "completed through 12 views of 105°; depth is the range along each pixel's ray" in told
    assert "camera panorama, 360° × 180°" in told
    depth = np.load(folder / "out" / "pano_depth.npy")
    wanted = completer(folder / "pano.jpg", folder / "range.png", "panorama", scale=1000)
    np.testing.assert_array_equal(depth, wanted.depth)
    record = json.loads((folder / "out" / "pano.json").read_text())
    assert record["camera"] == {
        "kind": "panorama", "top": 90.0, "bottom": -90.0, "depth": "range along the ray"
    }  # fmt: skip
    cloud, _ = wanted.to_point_cloud(drop=0.0)
    assert (folder / "out" / "pano.ply").stat().st_size > 0
    assert (cloud.min(axis=0) < -0.5).all()
    assert (cloud.max(axis=0) > 0.5).all()


def test_a_cloud_and_its_range_image_are_the_same_measurements(folder: Path, ranges: np.ndarray) -> None:
    sensor = Sensor(intrinsics=Panorama(), extrinsics=folder / "T.txt")
    seen = sensor.read(folder / "pano.jpg", folder / "cloud.npy").sparse[0].numpy()
    kept = seen > 0  # points seen through others are not
    assert kept.sum() > 20
    np.testing.assert_allclose(seen[kept], ranges[kept], rtol=1e-5)


def test_a_scanners_range_image_goes_into_a_panorama_and_into_a_photo() -> None:
    """16 rows from 15° to −15°, and a scanner 0.2 m above the camera."""
    scanner = Panorama(top=15, bottom=-15)
    given = np.full((16, 128), 3.0, np.float32)
    raised = np.eye(4)
    raised[1, 3] = -0.2
    sensor = DepthSensor(intrinsics="panorama,15,-15", to_image=raised)
    found = as_measurements(given, HEIGHT, WIDTH, None, sensor, WHOLE).sparse[0].numpy()
    rows, columns = np.nonzero(found)
    place = WHOLE.directions(HEIGHT, WIDTH)[rows, columns] * found[rows, columns, None]
    np.testing.assert_allclose(np.linalg.norm(place + np.array((0, 0.2, 0)), axis=-1), 3.0, atol=0.02)
    assert set(columns) == set(range(WIDTH))
    frame = frame_inputs(
        np.zeros((40, 56, 3), np.uint8),
        given,
        (60, 60, 27.5, 19.5),
        sensor=DepthSensor(intrinsics=scanner),
    )
    rows, columns = np.nonzero(frame.sparse[0].numpy())
    depth = frame.sparse[0].numpy()[rows, columns]
    rays = np.stack([(columns - 27.5) / 60, (rows - 19.5) / 60, np.ones(len(rows))], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(rays * depth[:, None], axis=-1), 3.0, atol=0.02)


def camera_file(folder: Path) -> Path:
    path = folder / "fisheye.yaml"
    path.write_text(
        "distortion_model: equidistant\nwidth: 48\nheight: 48\nK: [15, 0, 23.5, 0, 15, 23.5, 0, 0, 1]\n"
        "D: [0.01, 0, 0, 0]\n"
    )
    return path


def test_a_wide_fisheye_is_completed_as_far_as_it_sees(gbpn: Command, tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "eye.png")
    sparse = np.zeros((48, 48), np.float32)
    sparse[::5, ::5] = 2.0
    np.save(tmp_path / "range.npy", sparse)
    code, told = gbpn(
        *("complete", tmp_path / "eye.png", tmp_path / "range.npy", "-o", tmp_path / "out"),
        *("--intrinsics", camera_file(tmp_path), "--fisheye", 170),
    )
    assert code == 0, told
    assert "fisheye, 170°" in told
    assert "lie outside of what the fisheye, 170° sees: not used" in told
    depth = np.load(tmp_path / "out" / "eye_depth.npy")
    lens = Lens(kind="equidistant", parameters=(0.01, 0, 0, 0))
    eye = Fisheye(intrinsics=(15, 15, 23.5, 23.5), lens=lens, field=170)
    np.testing.assert_array_equal(np.isfinite(depth), np.isfinite(eye.directions(48, 48)[..., 0]))
    assert json.loads((tmp_path / "out" / "eye.json").read_text())["camera"]["field"] == 170


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--intrinsics", "panorama", "--stream"), "--stream is for pinhole pictures"),
        (("--intrinsics", "panorama", "--also", "mesh"), "--also mesh is for pinhole pictures"),
        (("--intrinsics", "panorama", "--rectified"), "--rectified is for pinhole pictures"),
        (("--intrinsics", "panorama", "--prior", "range.png"), "--prior is for pinhole pictures"),
        (("--intrinsics", "panorama,80,90"), "within −90° to 90°; got top 80, bottom 90"),
        (("--fisheye", "190"), "--fisheye wants the file of a camera with an equidistant lens"),
    ],
)
def test_what_panoramas_do_not_have_is_refused(
    gbpn: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(folder)
    code, printed = gbpn("complete", "pano.jpg", "range.png", "--scale", 1000, "-o", "out", *options)
    assert code == 2
    assert told in printed
    assert not (folder / "out").exists()


def test_who_works_on_pinhole_pictures_refuses_panoramas(
    completer: package.DepthCompleter, folder: Path, ranges: np.ndarray
) -> None:
    picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    with pytest.raises(InputError, match="works on pinhole pictures; got a panorama"):
        completer.session(picture, "panorama")
    with pytest.raises(InputError, match="a stream takes pinhole pictures; got a panorama"):
        completer.stream().frame(frame_inputs(picture, ranges, "panorama"))
    with pytest.raises(InputError, match="a prior is of a pinhole picture"):
        completer(picture, ranges, "panorama", prior=ranges)
    with pytest.raises(InputError, match="works on pinhole pictures; panoramas"):
        Sensor(intrinsics=Panorama()).measure(folder / "pano.jpg", None, HEIGHT, WIDTH)
    with pytest.raises(InputError, match="on one machine: leave out --distributed"):
        Instructions(sensor=Sensor(intrinsics=Panorama()))
    with pytest.raises(InputError, match="wants a camera file with an equidistant lens"):
        completer(picture, ranges, fisheye=190)
    record = {"intrinsics": np.eye(3).tolist(), "camera": WHOLE.as_json()}
    (folder / "pano.json").write_text(json.dumps(record))
    with pytest.raises(DatasetError, match="was completed as panorama"):
        read_record(folder, "pano")
