"""`gbpn complete` as a person meets it: every kind of measurement, many frames, and every kind of mistake."""

from __future__ import annotations

import json
import os
import resource
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from gbpn import cli
from gbpn.jobs.pairing import plan
from gbpn.jobs.run import Run
from gbpn.jobs.sources import Sensor

Command = Callable[..., tuple[int, str]]
CAMERA = "60,60,28,20"


@pytest.fixture
def gbpn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], weights: Path) -> Command:
    """gbpn("complete", …) → exit code and what was printed."""

    def run(*arguments: object, weights: object = weights) -> tuple[int, str]:
        verb, *rest = map(str, arguments)
        words = ["gbpn", verb, "--device", "cpu", "--weights", str(weights), *rest]
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), printed.out + printed.err

    return run


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


OUTPUTS = ["image.json", "image_confidence.npy", "image_depth.npy", "image_depth.png", "image_preview.png"]


def test_one_image(gbpn: Command, scene: Path, completer, depth: np.ndarray) -> None:
    before = {p.name: p.read_bytes() for p in scene.iterdir()}
    code, told = gbpn(
        "complete", scene / "image.png", scene / "depth.png", "--scale", 1000, "-o", scene / "out"
    )
    assert code == 0, told
    assert "60° along the longer side is assumed" in told
    assert files(scene / "out") == OUTPUTS
    assert all(str(scene / "out" / name) in told for name in OUTPUTS)
    assert {p.name: p.read_bytes() for p in scene.iterdir() if p.is_file()} == before
    wanted = completer(scene / "image.png", scene / "depth.png", scale=1000)
    np.testing.assert_array_equal(np.load(scene / "out" / "image_depth.npy"), wanted.depth)
    record = json.loads((scene / "out" / "image.json").read_text())
    assert record["measurements"] == 30
    assert record["observed"] == 1.0


@pytest.mark.parametrize("kind", ["depth.npy", "points.csv", "--points", "cloud.ply", "cloud.npy", "colmap"])
def test_every_kind_of_measurement_gives_the_same_depth(
    gbpn: Command, scene: Path, completer, depth: np.ndarray, kind: str
) -> None:
    wanted = completer(scene / "image.png", depth, (60, 60, 28, 20)).depth
    rows, columns = np.nonzero(depth)
    if kind.startswith("cloud"):  # in coordinates turned by 180° about z
        metres = depth[rows, columns]
        cloud = np.stack([-(columns - 28) / 60 * metres, -(rows - 20) / 60 * metres, metres], axis=1)
        (scene / "T.txt").write_text("-1 0 0 0  0 -1 0 0  0 0 1 0")
        write_cloud(scene / kind, cloud)
        keep = ["--extrinsics", scene / "T.txt", "--intrinsics", CAMERA]
        arguments = [scene / kind, *keep]
        wanted = None  # points seen through others are removed
    elif kind == "colmap":
        write_colmap(scene / "model", depth)
        arguments = [scene / "model", "--units", 2.0]
        wanted = completer(scene / "image.png", 2 * depth, (60, 60, 28, 20)).depth
    elif kind == "--points":
        pairs = [f"{x},{y},{depth[y, x]}" for y, x in zip(rows, columns, strict=True)]
        arguments = [*(word for pair in pairs for word in ("--points", pair)), "--intrinsics", CAMERA]
    else:
        arguments = [scene / kind, "--intrinsics", CAMERA]
    keep_all = ("--outliers", "keep")  # random depths contradict each other
    code, told = gbpn("complete", scene / "image.png", *arguments, "-o", scene / "out", "--cloud", *keep_all)
    assert code == 0, told
    assert "note:" not in told
    got = np.load(scene / "out" / "image_depth.npy")
    if wanted is None:
        count = json.loads((scene / "out" / "image.json").read_text())["measurements"]
        assert 15 <= count <= 30
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-3)
    assert (scene / "out" / "image.ply").is_file()


def write_cloud(path: Path, points: np.ndarray) -> None:
    if path.suffix == ".npy":
        np.save(path, points)
        return
    header = f"ply\nformat ascii 1.0\nelement vertex {len(points)}\n"
    header += "".join(f"property float {axis}\n" for axis in "xyz") + "end_header\n"
    path.write_text(header + "\n".join(" ".join(map(str, p)) for p in points) + "\n")


def write_colmap(folder: Path, depth: np.ndarray) -> None:
    folder.mkdir()
    (folder / "cameras.txt").write_text("1 PINHOLE 56 40 60 60 28.5 20.5\n")
    places = list(zip(*np.nonzero(depth), strict=True))
    seen = " ".join(f"{x} {y} {i}" for i, (y, x) in enumerate(places))
    (folder / "images.txt").write_text(f"1 1 0 0 0 0 0 0 1 image.png\n{seen}\n")
    lines = [
        f"{i} {(x - 28) / 60 * depth[y, x]} {(y - 20) / 60 * depth[y, x]} {depth[y, x]} 0 0 0 0.5 1 {i}"
        for i, (y, x) in enumerate(places)
    ]
    (folder / "points3D.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def sequence(scene: Path) -> Path:
    """Folders color/ and depth/ of four frames; the third image is broken, the fourth has no depth."""
    for folder in ("color", "depth"):
        (scene / folder).mkdir()
    for name in ("a", "b", "c", "d"):
        shutil.copy(scene / "image.png", scene / "color" / f"{name}.png")
        if name != "d":
            shutil.copy(scene / "depth.png", scene / "depth" / f"{name}.png")
    (scene / "color" / "c.png").write_bytes((scene / "image.png").read_bytes()[:900])
    return scene


def test_a_sequence_goes_on_after_bad_frames_and_resumes(gbpn: Command, sequence: Path) -> None:
    out = sequence / "out"
    command = ["complete", sequence / "color", sequence / "depth", "--scale", 1000, "-o", out]
    code, told = gbpn(*command, "--workers", 2)
    assert code == 3
    assert "4 frames: 2 written, 2 failed" in told
    assert "c.png: not a readable image" in told
    assert "d.png: no sparse depth" in told
    assert [n for n in files(out) if n.endswith(".json")] == ["a.json", "b.json"]

    written = (out / "a_depth.npy").stat().st_mtime_ns
    shutil.copy(sequence / "image.png", sequence / "color" / "c.png")
    (out / "b_preview.png").unlink()
    code, told = gbpn(*command)
    assert "4 frames: 2 written, 1 done before, 1 failed" in told  # c is new, b was not complete
    assert (out / "a_depth.npy").stat().st_mtime_ns == written

    code, told = gbpn(*command, "--iterations", "3,6")
    assert "3 written, 1 failed" in told  # other settings, other answer
    code, told = gbpn(*command, "--iterations", "3,6", "--again")
    assert "3 written, 1 failed" in told
    code, told = gbpn("complete", sequence / "color" / "[ab].png", sequence / "depth", *command[3:])
    assert code == 0, told


def test_pairs_by_name_or_by_order(sequence: Path) -> None:
    color, depth = str(sequence / "color"), str(sequence / "depth")
    assert [f.sparse.stem if f.sparse else None for f in plan(color, depth)] == ["a", "b", "c", None]
    for name in "abc":
        (sequence / "depth" / f"{name}.png").rename(sequence / "depth" / f"z{name}.png")
    (sequence / "color" / "d.png").unlink()
    pairs = plan(color, depth, by_order=True)
    assert [(f.image.stem, f.sparse.stem) for f in pairs if f.sparse] == [
        ("a", "za"),
        ("b", "zb"),
        ("c", "zc"),
    ]


def png_header(width: int, height: int) -> bytes:
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 100) + b"IDAT" + b"x" * 100


def other_version(weights: Path, path: Path) -> Path:
    with safe_open(weights, framework="pt") as file:
        metadata = {**file.metadata(), "version": "99"}
    save_file(load_file(weights), path, metadata)
    return path


def save_picture(path: Path, array: np.ndarray) -> Path:
    Image.fromarray(array).save(path)
    return path


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


GOOD = np.full((40, 56), 2.0, np.float32)
"""Depth that nothing is wrong with."""

MISTAKES: dict[str, tuple[Callable[[Path], list[object]], str]] = {
    "no image": (lambda s: [s / "none.png", s / "depth.npy"], "none.png: no such image"),
    "no sparse": (lambda s: [s / "image.png", s / "none.npy"], "none.npy: no such sparse depth"),
    "no measurements asked for": (lambda s: [s / "image.png"], "measurements are needed"),
    "not an image": (
        lambda s: [write(s / "text.png", b"hello"), s / "depth.npy"],
        "text.png: not a readable image",
    ),
    "truncated image": (
        lambda s: [write(s / "cut.png", (s / "image.png").read_bytes()[:900]), s / "depth.npy"],
        "cut.png: not a readable image",
    ),
    "truncated depth": (
        lambda s: [
            s / "image.png",
            write(s / "cut.png", (s / "depth.png").read_bytes()[:200]),
            "--scale",
            1000,
        ],
        "cut.png: not a readable depth file",
    ),
    "decompression bomb": (
        lambda s: [write(s / "bomb.png", png_header(30000, 30000)), s / "depth.npy"],
        "bomb.png: not a readable image",
    ),
    "smaller bomb": (
        lambda s: [write(s / "bomb.png", png_header(12000, 12000)), s / "depth.npy"],
        "bomb.png: not a readable image",
    ),
    "1-pixel image": (
        lambda s: [save_picture(s / "dot.png", np.zeros((1, 1, 3), np.uint8)), s / "depth.npy"],
        "must have the size of the image, 1×1",
    ),
    "8-bit depth": (
        lambda s: [s / "image.png", save_picture(s / "d8.png", np.ones((40, 56), np.uint8)), "--scale", 1000],
        "expected 16-bit",
    ),
    "depth without unit": (lambda s: [s / "image.png", s / "depth.png"], "1000 for millimetres"),
    "depth in colour": (lambda s: [s / "image.png", s / "image.png", "--scale", 1], "one channel"),
    "zero scale": (lambda s: [s / "image.png", s / "depth.png", "--scale", 0], "scale must be positive"),
    "all-zero depth": (
        lambda s: [s / "image.png", write_array(s / "zero.npy", 0 * GOOD)],
        "there is no measurement",
    ),
    "all NaN": (
        lambda s: [s / "image.png", write_array(s / "nan.npy", np.nan * GOOD)],
        "there is no measurement",
    ),
    "negative depth": (
        lambda s: [s / "image.png", write_array(s / "minus.npy", -GOOD)],
        "must not be negative; got -2",
    ),
    "other size": (
        lambda s: [s / "image.png", write_array(s / "small.npy", GOOD[:, :40])],
        "size of the image, 40×56; got 40×40",
    ),
    "millimetres as metres": (
        lambda s: [s / "image.png", write_array(s / "mm.npy", 1000 * GOOD)],
        "depths from 2000 to 2000 m (median 2000): millimetres read as metres?",
    ),
    "point outside": (lambda s: [s / "image.png", "--points", "56,0,1"], "inside 56×40"),
    "point of two numbers": (lambda s: [s / "image.png", "--points", "5,6"], "wants x,y,depth"),
    "bad intrinsics": (
        lambda s: [s / "image.png", s / "depth.npy", "--intrinsics", "a,b"],
        "wants fx,fy,cx,cy",
    ),
    "no intrinsics file": (
        lambda s: [s / "image.png", s / "depth.npy", "--intrinsics", s / "K.txt"],
        "K.txt: no such file",
    ),
    "cloud without camera": (
        lambda s: [s / "image.png", write(s / "c.bin", b"\0" * 16)],
        "is a point cloud: give --calib",
    ),
    "cloud out of sight": (
        lambda s: [s / "image.png", write(s / "c.bin", b"\0" * 16), "--intrinsics", CAMERA],
        "none of its 1 points",
    ),
    "too many cameras": (
        lambda s: [s / "image.png", s / "depth.npy", "--intrinsics", CAMERA, "--calib", s],
        "not both",
    ),
    "unknown solver": (lambda s: [s / "image.png", s / "depth.npy", "--solver", "magic"], "gbp or exact"),
    "unknown device": (lambda s: [s / "image.png", s / "depth.npy", "--device", "warp"], "got 'warp'"),
    "iterations of one stage": (
        lambda s: [s / "image.png", s / "depth.npy", "--iterations", "5"],
        "has 2 stages",
    ),
    "many images, one depth": (lambda s: [s / "*.png", s / "depth.npy"], "one file per image"),
    "empty folder": (lambda s: [empty(s / "empty"), s / "depth.npy"], "no image in this folder"),
}


def write_array(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


def empty(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_and_nothing_is_written(gbpn: Command, scene: Path, mistake: str) -> None:
    arguments, message = MISTAKES[mistake]
    words = arguments(scene)
    code, told = gbpn("complete", *words, "-o", scene / "out")
    assert code == 2, told
    assert message in told
    assert not (scene / "out").exists()


def test_weights_that_are_not(gbpn: Command, scene: Path, weights: Path) -> None:
    cut = write(scene / "cut.safetensors", weights.read_bytes()[:5000])
    for choice, message in (
        ("nonesuch", "no weights 'nonesuch'"),
        (scene / "none.safetensors", "no weights"),
        (cut, "truncated"),
        (scene / "image.png", "truncated or not a file of plain tensors"),
        (other_version(weights, scene / "new.safetensors"), "version '99'"),
    ):
        code, told = gbpn(
            "complete", scene / "image.png", scene / "depth.npy", "-o", scene / "out", weights=choice
        )
        assert code == 2
        assert message in told
        assert not (scene / "out").exists()


def test_places_that_cannot_be_written(gbpn: Command, scene: Path) -> None:
    command = ["complete", scene / "image.png", scene / "depth.npy"]
    code, told = gbpn(*command, "-o", scene / "points.csv")
    assert code == 2
    assert "points.csv is a file: -o wants a folder" in told
    code, told = gbpn(*command, "-o", scene / "points.csv" / "out")
    assert code == 2
    assert "cannot write to" in told
    if os.geteuid():  # root may write anywhere
        (scene / "locked").mkdir(mode=0o500)
        code, told = gbpn(*command, "-o", scene / "locked")
        assert code == 2
        assert "Permission denied" in told


def test_a_full_disk_leaves_nothing(gbpn: Command, scene: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, hard))  # depth.png fits, depth.npy does not
    try:
        code, told = gbpn("complete", scene / "image.png", scene / "depth.npy", "-o", scene / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 2
    assert "cannot write to" in told
    assert "File too large" in told
    assert files(scene / "out") == []


def test_two_runs_into_one_folder(scene: Path, completer, depth: np.ndarray) -> None:
    """Whoever is last wins, with whole files."""
    from concurrent.futures import ThreadPoolExecutor

    frames = plan(str(scene / "image.png"), str(scene / "depth.npy")) * 4
    runs = [Run(completer=completer, sensor=Sensor(), output=scene / "out", again=True) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        outcomes = [o for found in pool.map(lambda run: list(run.all(frames, 2)), runs) for o in found]
    assert {outcome.state for outcome in outcomes} == {"written"}
    assert files(scene / "out") == OUTPUTS
    wanted = completer(scene / "image.png", depth).depth
    np.testing.assert_array_equal(np.load(scene / "out" / "image_depth.npy"), wanted)


def test_inputs_are_never_overwritten(gbpn: Command, scene: Path) -> None:
    shutil.copy(scene / "depth.npy", scene / "image_depth.npy")
    code, told = gbpn("complete", scene / "image.png", scene / "image_depth.npy", "-o", scene)
    assert code == 2
    assert "is an input and would be overwritten" in told
    assert (scene / "image_depth.npy").read_bytes() == (scene / "depth.npy").read_bytes()


def test_a_doubtful_range_can_be_insisted_on(gbpn: Command, scene: Path) -> None:
    np.save(scene / "far.npy", 1000 * GOOD)
    code, told = gbpn("complete", scene / "image.png", scene / "far.npy", "--scale", 1, "-o", scene / "out")
    assert code == 0, told
    assert "note:" in told
    assert "millimetres read as metres?" in told
