"""A look says what is there, pairs it, and types a command that works."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import making_recordings
from gbpn.cli import app
from gbpn.errors import InputError
from gbpn.jobs import looking
from gbpn.jobs.look_at_files import kind_of

SIZE = (48, 64)


def write(folder: Path, names: list[str], others: list[str]) -> Path:
    """Pictures in rgb/ and depth in millimetres in depth/, by these names."""
    draw = np.random.default_rng(0)
    for place in ("rgb", "depth"):
        (folder / place).mkdir(parents=True)
    for name in names:
        pixels = draw.integers(0, 255, (*SIZE, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "rgb" / f"{name}.png")
    for name in others:
        depth = np.zeros(SIZE, np.uint16)
        depth[::6, ::6] = draw.integers(900, 3000, depth[::6, ::6].shape)
        Image.fromarray(depth).save(folder / "depth" / f"{name}.png")
    return folder


def test_files_are_known_by_what_is_in_them(tmp_path: Path) -> None:
    write(tmp_path, ["a"], ["a"])
    (tmp_path / "points.csv").write_text("x,y,depth\n1,2,3\n")
    (tmp_path / "list.txt").write_text("1.0 rgb/a.png 1.0 depth/a.png\n")
    kinds = {
        name: kind_of(tmp_path / name) for name in ("rgb/a.png", "depth/a.png", "points.csv", "list.txt")
    }
    assert list(kinds.values()) == ["pictures", "depth maps", "tables of points", ""]


@pytest.mark.parametrize(
    ("names", "others", "option"),
    [
        (["a", "b", "c"], ["a", "b", "c"], ""),
        (["a", "b", "c"], ["x", "y", "z"], "--by-order"),
        (
            ["1305031102.10", "1305031102.20"],
            ["1305031102.11", "1305031102.21", "1305031102.9"],
            "--pair nearest",
        ),
    ],
)
def test_folders_are_paired_as_most_frames_find_a_partner(
    tmp_path: Path, names: list[str], others: list[str], option: str
) -> None:
    with looking.look(str(write(tmp_path / "data", names, others))) as found:
        assert "--scale 1000" in found.typed
        assert option in found.typed
        assert ("--by-order" in found.typed) == (option == "--by-order")
        seen, wrong = looking.seen_of(found)
    assert (len(seen), wrong) == (len(names), [])


def test_the_command_line_shows_it_and_what_it_types_works(
    tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data", ["a", "b"], ["a", "b"])
    (tmp_path / "data" / "camera.txt").write_text("60 60 32 24\n")
    answer = CliRunner().invoke(app, ["look", "data"])
    assert answer.exit_code == 0, answer.output
    assert "88 points a frame" in answer.output
    with Image.open("data_look.jpg") as sheet:
        assert sheet.width > 2 * SIZE[1]
    typed = answer.output.splitlines()[-1].split("gbpn ", 1)[1]
    done = CliRunner().invoke(app, [*shlex.split(typed), "--weights", str(weights), "--device", "cpu"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "completed" / "b_depth.npy").is_file()


def test_a_refusal_says_what_to_type(tmp_path: Path) -> None:
    write(tmp_path / "data", ["a"], ["a"])
    answer = CliRunner().invoke(app, ["complete", str(tmp_path / "data" / "rgb")])
    assert "measurements are needed" in str(answer.exception)
    refused = CliRunner().invoke(app, ["complete", str(tmp_path / "data")])
    assert isinstance(refused.exception, InputError)
    assert "data/depth --scale 1000" in str(refused.exception)


def test_recordings_show_their_topics(tmp_path: Path) -> None:
    pytest.importorskip("rosbags", reason="needs pip install gbpn[ros]")
    depth = np.zeros(SIZE, np.float32)
    depth[::5, ::5] = 2.0
    image = np.zeros((*SIZE, 3), np.uint8)
    making_recordings.write_drive(
        tmp_path / "drive", "mcap", image, depth, (60.0, 60.0, 31.5, 23.5), frames=2
    )
    with looking.look(str(tmp_path / "drive")) as found:
        assert dict(found.facts)["/cam/image"].startswith("2 Image")
        assert "--image /cam/image --points /lidar/points" in found.typed
        assert len(looking.seen_of(found)[0]) == 2
