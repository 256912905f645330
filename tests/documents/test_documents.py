"""What README and docs show is run: python and console blocks are executed, bash commands must be valid.

A page's blocks run in order, in one namespace, in a folder with the files that the pages name. `text` and
unmarked blocks are pictures. The weights are thin and untrained: this is about the calls.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from PIL import Image

import gbpn
from fields import symmetric_field
from gbpn import cli
from gbpn.distribution import SigmaCalibration
from gbpn.errors import CheckpointError
from gbpn.jobs.demo import write_example
from gbpn.network import construction
from gbpn.weights import files
from gbpn.weights.files import save
from making_recordings import TO_CAMERA, scanned, write_clip, write_drive

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)[^)]*\)")


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(language, text) for language, text in found if language in languages]


LONG = () if os.environ.get("GBPN_ALL_TESTS") else ("export.md",)
"""Pages whose blocks take minutes."""
ELSEWHERE = ("scale.md",)
"""Pages that a test of their own runs: tests/scale/test_page.py."""
RUNNABLE = [
    page for page in PAGES if blocks(page, "python", "console") and page.name not in (*LONG, *ELSEWHERE)
]


def picture(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def write_frames(folder: Path, count: int, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    for frame in range(count):
        picture(folder / "color" / f"{frame:04}.png", rng.integers(0, 255, (*size, 3), dtype=np.uint8))
        picture(folder / "depth" / f"{frame:04}.png", rng.integers(500, 5000, size).astype(np.uint16))


def write_tutorials(folder: Path) -> None:
    """A recording, its parts as files, folders with times, a COLMAP project and a dataset."""
    rng = np.random.default_rng(0)
    size, numbers = (64, 96), (80.0, 80.0, 47.5, 31.5)
    depth = np.zeros(size, np.float32)
    depth.reshape(-1)[rng.choice(depth.size, 200, replace=False)] = rng.uniform(1.8, 1.95, 200)
    image = rng.integers(0, 255, (*size, 3), dtype=np.uint8)
    drive = write_drive(folder / "drive_bag", "mcap", image, depth, numbers, frames=2)
    drive.rename(folder / "drive.mcap")
    picture(folder / "rgb" / "0000.png", image)
    picture(folder / "depth" / "0000.png", (depth * 1000).astype(np.uint16))
    points = "\n".join(" ".join(f"{v:.5f}" for v in point) for point in scanned(depth, numbers))
    header = (
        "ply\nformat ascii 1.0\nelement vertex 200\nproperty float x\nproperty float y\nproperty float z\n"
    )
    (folder / "lidar").mkdir()
    (folder / "lidar" / "0000.ply").write_text(f"{header}end_header\n{points}\n")
    (folder / "T.json").write_text(json.dumps({"T_cam_lidar": TO_CAMERA.tolist()}))
    camera = "image_width: 96\nimage_height: 64\ncamera_matrix: {data: [80, 0, 47.5, 0, 80, 31.5, 0, 0, 1]}\n"
    lens = "distortion_model: plumb_bob\ndistortion_coefficients: {data: [-0.1, 0.01, 0, 0, 0]}\n"
    (folder / "camera_info.yaml").write_text(camera + lens)
    (folder / "camchain.yaml").write_text(
        "cam0:\n  camera_model: pinhole\n  intrinsics: [80, 80, 47.5, 31.5]\n"
        "  distortion_model: equidistant\n  distortion_coeffs: [0.01, 0, 0, 0]\n  resolution: [96, 64]\n"
    )
    picture(folder / "timed" / "rgb" / "1305031102.175304.png", image)
    picture(folder / "timed" / "depth" / "1305031102.188200.png", (depth * 5000).astype(np.uint16))
    (folder / "timed" / "associations.txt").write_text(
        "1305031102.175304 rgb/1305031102.175304.png 1305031102.188200 depth/1305031102.188200.png\n"
    )
    smooth = np.repeat(np.linspace(0, 255, 96, dtype=np.uint8)[None, :, None], 64, axis=0).repeat(3, axis=2)
    write_clip(folder / "clip.mp4", smooth, frames=2)
    (folder / "clip_depth").mkdir()
    for frame in range(2):
        np.save(folder / "clip_depth" / f"{frame:06}.npy", depth)
    write_colmap_project(folder / "project", image, depth)
    for frame in range(4):
        picture(folder / "mine" / "rgb" / f"{frame:04}.png", np.roll(image, frame, axis=1))
        whole = np.full(size, 2000, np.uint16) + np.arange(size[1], dtype=np.uint16)
        picture(folder / "mine" / "gt" / f"{frame:04}.png", whole)
    (folder / "mine" / "intrinsics.txt").write_text("80 80 47.5 31.5\n")


def write_colmap_project(folder: Path, image: np.ndarray, depth: np.ndarray) -> None:
    """A rig of two cameras with equal file names, one lens, points that are those of `depth`."""
    model = folder / "sparse" / "0"
    model.mkdir(parents=True)
    (model / "cameras.txt").write_text("1 SIMPLE_RADIAL 96 64 80 48 32 0.02\n")
    points = scanned(depth, (80.0, 80.0, 47.5, 31.5), np.eye(4))
    observed = " ".join(f"0 0 {number + 1}" for number in range(len(points)))
    names = ("left/0001.png", "right/0001.png")
    lines = [f"{i + 1} 1 0 0 0 0 0 0 1 {name}\n{observed}\n" for i, name in enumerate(names)]
    (model / "images.txt").write_text("".join(lines))
    rows = [f"{i + 1} {x:.6f} {y:.6f} {z:.6f} 0 0 0 0.5 1 0\n" for i, (x, y, z) in enumerate(points)]
    (model / "points3D.txt").write_text("".join(rows))
    for name in names:
        picture(folder / "images" / name, image)


def write_phone(folder: Path) -> None:
    """Two frames of a phone, small: pictures, depth of an eighth of their size, confidence, poses, camera."""
    rng = np.random.default_rng(1)
    for part in ("depth", "confidence", "poses"):
        (folder / part).mkdir(parents=True)
    for frame in range(2):
        picture(folder / "color" / f"{frame:06}.jpg", rng.integers(0, 255, (64, 96, 3), dtype=np.uint8))
        np.save(folder / "depth" / f"{frame:06}.npy", rng.uniform(1, 3, (8, 12)).astype(np.float32))
        np.save(folder / "confidence" / f"{frame:06}.npy", rng.integers(0, 3, (8, 12), dtype=np.uint8))
        pose = np.eye(4)
        pose[0, 3] = 0.1 * frame
        np.savetxt(folder / "poses" / f"{frame:06}.txt", pose)
    (folder / "camera.txt").write_text("80 80 47.5 31.5")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages name."""
    folder = tmp_path_factory.mktemp("documents")
    write_example(folder / "example")
    write_example(folder / "gbpn-demo" / "example")
    write_frames(folder / "frames", 2, (64, 96))
    write_frames(folder / "datasets" / "pool" / "own" / "room", 4, (240, 320))
    meta = {"dataset": "own", "K": [[250.0, 0, 160], [0, 250, 120], [0, 0, 1]], "depth_scale": 1000.0}
    room = folder / "datasets" / "pool" / "own" / "room"
    (room / "meta.json").write_text(json.dumps({**meta, "role": "train"}))
    write_phone(folder / "phone")
    selection = folder / "datasets" / "kitti" / "depth_selection" / "val_selection_cropped"
    name = "2011_09_26_drive_0002_sync_{}_0000000005_image_02"
    picture(selection / "image" / f"{name.format('image')}.png", np.zeros((352, 1216, 3), np.uint8))
    for kind in ("velodyne_raw", "groundtruth_depth"):
        depth = np.full((352, 1216), 2560, np.uint16)
        picture(selection / kind / f"{name.format(kind)}.png", depth)
    (selection / "intrinsics").mkdir()
    (selection / "intrinsics" / f"{name.format('image')}.txt").write_text("721.5 0 596.5 0 721.5 149.8 0 0 1")
    (folder / "photo.jpg").write_bytes((folder / "example" / "photo.jpg").read_bytes())
    picture(folder / "depth.png", np.full((40, 50), 2000, np.uint16))
    np.save(folder / "depth.npy", np.full((40, 50), 2.0, np.float32))

    picture(folder / "pano" / "pano.jpg", np.random.default_rng(2).integers(0, 255, (32, 64, 3), np.uint8))
    picture(folder / "pano" / "range.png", np.full((32, 64), 2000, np.uint16))
    write_tutorials(folder)
    torch.manual_seed(0)
    model = gbpn.build("small-2", width=0.5)
    model.calibration = SigmaCalibration(knots=(-5.0, 5.0), log_std=(0.0, -3.0))
    save(model, folder / "weights.safetensors")
    save(model, folder / "embedded" / "nyuv2.safetensors")
    return folder


@pytest.fixture(scope="module")
def done() -> set[str]:
    """Commands that ran already."""
    return set()


def metric_maps() -> dict[str, Any]:
    target = torch.rand(2, 1, 20, 30) + 1
    mean = target + 0.1 * torch.randn_like(target)
    return {
        "mean": mean,
        "target": target,
        "logit": torch.randn_like(mean),
        "std": torch.full_like(mean, 0.1),
        "names": ["a", "b"],
    }


def model_inputs() -> dict[str, Any]:
    sparse = torch.zeros(1, 1, 64, 96)
    sparse[..., 10, 10] = 2.0
    return {"image": torch.rand(1, 3, 64, 96), "sparse": sparse, "intrinsics": None}


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "inference.md": lambda: {"mrf": symmetric_field(12, 15)},
    "model.md": model_inputs,
    "uncertainty.md": metric_maps,
}
"""Variables that a page takes as given."""


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_what_a_page_shows_runs(
    page: Path,
    place: Path,
    done: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(files, "EMBEDDED", place / "embedded")
    monkeypatch.setattr(construction, "ENCODERS", dict(construction.ENCODERS))
    namespace = GIVEN.get(page.name, dict)()
    for language, text in blocks(page, "python", "console"):
        if language == "python":
            exec(compile(text, f"{page.name}: {text.splitlines()[0]}", "exec"), namespace)
            continue
        for line in text.splitlines():
            if line.startswith("$ ") and line not in done:  # all pages share the folder
                done.add(line)
                monkeypatch.setattr("sys.argv", shlex.split(line[2:]))
                assert sys.argv[0] == "gbpn", f"console blocks run gbpn only; got {line}"
                with pytest.raises(SystemExit) as stopped:
                    cli.main()
                assert not stopped.value.code, (line, capsys.readouterr())


HELD = re.findall(r"\| `(gbpn complete [^`]*)` \|", (ROOT / "README.md").read_text(encoding="utf-8"))
"""The commands of the table *what you hold → what you type*."""


@pytest.mark.parametrize("line", HELD)
def test_what_the_readme_says_to_type_runs(
    line: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On files of the true formats, and every frame gets its depth."""
    monkeypatch.chdir(place)
    monkeypatch.setattr(files, "EMBEDDED", place / "embedded")
    monkeypatch.setattr("sys.argv", [*shlex.split(line), "-o", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    frames = 1 if line.split()[2] in ("photo.jpg", "rgb") else 2
    assert len(list(tmp_path.rglob("*_depth.npy"))) == frames


def test_the_readme_names_seven_kinds_of_things() -> None:
    assert len(HELD) == 7


def test_the_encoder_of_the_page_is_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File and line as the page says: all of it learns, folds into its convolutions, and comes back."""
    monkeypatch.setattr(construction, "ENCODERS", dict(construction.ENCODERS))
    namespace: dict[str, Any] = {}
    for _, text in blocks(ROOT / "docs" / "own-encoder.md", "python")[:2]:
        exec(text, namespace)
    torch.manual_seed(0)
    model = gbpn.build("gbpn-2", encoder="plain", width=0.25, iterations=(1, 1))
    for part in model.modules():  # heads that say something
        if isinstance(part, torch.nn.ConvTranspose2d):
            torch.nn.init.normal_(part.weight, std=0.05)
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(part.weight, 0.5, 1.0)
    inputs = model_inputs()
    model(**inputs).confidence_logit.square().sum().backward()
    encoders = [part for part in model.modules() if isinstance(part, namespace["PlainEncoder"])]
    assert len(encoders) == 2
    for encoder in encoders:
        assert all(parameter.grad is not None and parameter.grad.any() for parameter in encoder.parameters())
    with torch.inference_mode():
        wanted = model.eval()(**inputs).mean
        save(model, tmp_path / "plain.safetensors")
        torch.testing.assert_close(gbpn.load(tmp_path / "plain.safetensors")(**inputs).mean, wanted)
        torch.testing.assert_close(
            model.prepared("float32", "cpu")(**inputs).mean, wanted, rtol=1e-4, atol=1e-4
        )
    del construction.ENCODERS["plain"]
    with pytest.raises(CheckpointError, match=r"one of global-local, efficientnet-lite0; got 'plain'"):
        gbpn.load(tmp_path / "plain.safetensors")


def test_the_files_of_the_network_are_the_documented_ones() -> None:
    """The table of docs/model.md and the folder: no file is named that is not there, none is left out."""
    table = (ROOT / "docs" / "model.md").read_text(encoding="utf-8").split("## Use")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([\w/.]+)`", row)}
    folder = ROOT / "src" / "gbpn" / "network"
    found = {p.name + "/" * p.is_dir() for p in folder.iterdir() if not p.name.startswith("_")}
    assert named == found


def commands() -> list[tuple[str, str]]:
    """Every `gbpn` command of a bash block, with its page."""
    found = []
    for page in PAGES:
        for _, text in blocks(page, "bash"):
            joined = text.replace("\\\n", " ")
            found += [(page.name, line) for line in joined.splitlines() if line.startswith("gbpn ")]
    table = (ROOT / "README.md").read_text(encoding="utf-8")
    found += [("README.md", line) for line in re.findall(r"`(gbpn [a-z]+[^`]*)`", table)]
    return found


@pytest.mark.parametrize(("page", "line"), commands(), ids=lambda part: part[:60])
def test_commands_are_valid_calls(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command: Any = typer.main.get_command(cli.app)
    while hasattr(command, "commands"):
        name = words.pop(0)
        assert name in command.commands, f"{page}: gbpn has no {name!r}"
        command = command.commands[name]
    command.make_context(command.name, words)  # raises on unknown options and missing arguments


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert not missing


def test_every_entry_of_the_log_follows_its_template() -> None:
    folder = ROOT / "docs" / "log"
    index = FENCE.sub("", (folder / "README.md").read_text(encoding="utf-8"))
    listed = re.findall(r"^\| \[(.+?)\]\((.+?)\) \| \S", index, flags=re.MULTILINE)
    assert {name for _, name in listed} == {path.name for path in folder.glob("2*.md")}
    dates = [title[:10] for title, _ in listed]
    assert dates == sorted(dates, reverse=True)
    for title, name in listed:
        entry = (folder / name).read_text(encoding="utf-8")
        assert entry.startswith(f"# {title}\n"), name
        assert name.startswith(title[:10]), name
        named = re.findall(r"^- \*\*(\w+)\*\*: \S", entry.split("\n\n")[1], flags=re.MULTILINE)
        assert named == ["Question", "Change", "Result", "Verdict"], name


def test_the_site_builds(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs pip install gbpn[docs]")
    command = [sys.executable, "-W", "ignore", "-m", "mkdocs", "build", "--strict"]
    built = subprocess.run(
        [*command, "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert "five minutes" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    reference = (tmp_path / "site" / "reference.html").read_text(encoding="utf-8")
    missing = [name for name in gbpn.__all__ if f'.{name}"' not in reference]
    assert not missing, f"docs/reference.md lacks {missing}"
