"""Runs whose files were damaged, or that two processes want at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gbpn.errors import TrainingError
from gbpn.train.checkpoints import DAMAGED, Checkpoints
from gbpn.train.progress import Table, TrainingProgress, read_rows
from gbpn.train.recipe import named
from gbpn.train.run_folder import RunFolder
from gbpn.train.run_lock import LOCK, locked


def write_two(folder: Path) -> list[Path]:
    checkpoints = Checkpoints(folder)
    return [checkpoints.write(step, {"step": step, "model": {"w": torch.randn(999)}}) for step in (2, 4)]


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


def test_a_flipped_bit_in_a_checkpoint_is_noticed(tmp_path: Path) -> None:
    _, newest = write_two(tmp_path)
    where = newest.read_bytes().index(torch.load(newest)["model"]["w"].numpy().tobytes())
    flip(newest, where + 1000)
    assert torch.load(newest)["step"] == 4  # torch does not look
    with pytest.raises(TrainingError, match="checksum"):
        Checkpoints(tmp_path).read(newest)


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "text"])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(tmp_path: Path, damage: str) -> None:
    before, newest = write_two(tmp_path)
    content = newest.read_bytes()
    if damage == "flipped":
        flip(newest, len(content) // 2)
    else:
        newest.write_bytes(
            {"truncated": content[: len(content) // 2], "empty": b"", "text": b"hello"}[damage]
        )
    checkpoints = Checkpoints(tmp_path)
    told = checkpoints.set_damaged_aside()
    assert len(told) == 1
    assert newest.name in told[0]
    assert checkpoints.latest() == before
    assert newest.with_name(f"{DAMAGED}{newest.name}").is_file()
    assert checkpoints.set_damaged_aside() == []


def test_where_every_checkpoint_is_damaged_the_run_says_so(tmp_path: Path) -> None:
    for path in write_two(tmp_path):
        path.write_bytes(b"")
    with pytest.raises(TrainingError, match=r"no checkpoint in .* can be read"):
        Checkpoints(tmp_path).set_damaged_aside()


def test_no_advice_to_unpickle(tmp_path: Path) -> None:
    path = tmp_path / "step-00000001.pt"
    torch.save({"step": 1, "code": Path("x")}, path)
    with pytest.raises(TrainingError) as caught:
        Checkpoints(tmp_path).read(path)
    assert "weights_only" not in str(caught.value)
    assert "trust" not in str(caught.value)


HOLD = """
import os, sys, time
from pathlib import Path
from gbpn.train.run_lock import locked
with locked(Path(sys.argv[1])):
    if os.fork() == 0:
        time.sleep(30)  # as a process that loads data outlives its run for a while
        os._exit(0)
    print("held", flush=True)
    time.sleep(30)
"""


def test_a_second_process_is_refused_and_a_dead_ones_lock_is_taken_over(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        with pytest.raises(TrainingError, match=f"in use: process {holder.pid}"), locked(tmp_path):
            pass
        holder.kill()
        holder.wait()
        with locked(tmp_path):
            assert f"process {os.getpid()} " in (tmp_path / LOCK).read_text()
    finally:
        holder.stdout.close()
        os.killpg(holder.pid, 9)


def test_damaged_rows_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    sound = "step,loss\r\n1,0.5\r\n"
    path.write_bytes((sound + "2,\0\0\r\n3\r\n4,1,2\r\nx,1\r\n5,abc\r\n6,0.25\r\n7,0.1").encode() + b"\xff")
    assert [row["step"] for row in read_rows(path)] == ["1", "6"]
    table = Table(path, 6)
    table.add({"step": 8, "loss": 0.125})
    assert path.read_text().splitlines() == ["step,loss", "1,0.5", "6,0.25", "8,0.125"]
    path.write_bytes(b"\x00\xff\x00")
    assert read_rows(path) == []


@pytest.mark.parametrize("content", ["", "[]", "{", "null"])
def test_a_damaged_recipe_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "recipe.json").write_text(content)
    with pytest.raises(TrainingError, match=r"recipe\.json"):
        RunFolder(tmp_path).open(named("small"), resume=True)


def test_a_message_about_a_name_that_looks_like_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = TrainingProgress(tmp_path, steps=1, first=0, active=True, progress=False)
    with watch:
        watch.say("[yellow]skipped:[/]", about="seq[/a]/x.png")
    assert "skipped: seq[/a]/x.png" in capsys.readouterr().out


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    pytest.importorskip("lightning_fabric", reason="training needs gbpn[train]")
    from gbpn.train.loop import Machine, train

    (tmp_path / "run").write_text("x")
    with pytest.raises(TrainingError, match="cannot go on"):
        train(named("synthetic"), None, tmp_path / "run", machine=Machine(accelerator="cpu", progress=False))
