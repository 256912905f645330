"""A batch that is killed, filled up or fed with damage: nothing is lost, nothing old is called done."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

import gbpn
from gbpn.answer.completed import CompletedDepth
from gbpn.errors import GbpnError
from gbpn.files.atomic import PARTIAL, checksum, hidden_folder, remove_leftovers
from gbpn.formats.colmap import read_model
from gbpn.jobs.pairing import plan
from gbpn.jobs.run import Outcome, Run
from gbpn.jobs.sources import Sensor


@pytest.fixture
def frames(scene: Path) -> Path:
    """Folders color/ and depth/ of three frames."""
    for folder, source in (("color", "image.png"), ("depth", "depth.npy")):
        (scene / folder).mkdir()
        for name in "abc":
            shutil.copy(scene / source, scene / folder / f"{name}{Path(source).suffix}")
    return scene


def complete(frames: Path, completer: gbpn.DepthCompleter, **options: object) -> list[Outcome]:
    jobs = plan(str(frames / "color"), str(frames / "depth"))
    run = Run(completer=completer, sensor=Sensor(), output=frames / "out", **options)
    return list(run.all(jobs))


def states(outcomes: list[Outcome]) -> list[str]:
    return [outcome.state for outcome in outcomes]


@pytest.mark.parametrize(
    "error",
    [
        *(KeyError("x"), RuntimeError("odd"), MemoryError(), IndexError(), RecursionError("deep")),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes"),
    ],
    ids=repr,
)
def test_one_bad_frame_never_ends_a_batch(
    frames: Path, completer: gbpn.DepthCompleter, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    read = Sensor.read

    def failing(self: Sensor, image: Path, sparse: Path | None) -> object:
        if image.stem == "b":
            raise error
        return read(self, image, sparse)

    monkeypatch.setattr(Sensor, "read", failing)
    outcomes = complete(frames, completer)
    assert states(outcomes) == ["written", "failed", "written"]
    assert "b.png" in outcomes[1].message
    lacks = isinstance(error, MemoryError) or "not enough memory" in str(error)
    assert ("not enough memory" if lacks else type(error).__name__) in outcomes[1].message


@pytest.mark.parametrize("workers", [1, 2])
def test_a_batch_that_is_left_does_not_go_on(
    frames: Path, completer: gbpn.DepthCompleter, workers: int
) -> None:
    """Whoever stops asking for outcomes waits for the frames that are under way, not for all of them."""
    for folder, suffix in (("color", ".png"), ("depth", ".npy")):
        for name in "defghijk":
            shutil.copy(frames / folder / f"a{suffix}", frames / folder / f"{name}{suffix}")
    jobs = plan(str(frames / "color"), str(frames / "depth"))
    outcomes = Run(completer=completer, sensor=Sensor(), output=frames / "out").all(jobs, workers)
    assert next(outcomes).state == "written"
    assert isinstance(outcomes, Generator)
    outcomes.close()
    done = len(list((frames / "out").glob("*.json")))
    assert 1 <= done <= 1 + workers < len(jobs)


def test_a_damaged_archive_is_one_failed_frame(frames: Path, completer: gbpn.DepthCompleter) -> None:
    (frames / "depth" / "b.npy").unlink()
    np.savez_compressed(frames / "depth" / "b.npz", np.load(frames / "depth.npy"))
    content = bytearray((frames / "depth" / "b.npz").read_bytes())
    content[60:90] = bytes(30)
    (frames / "depth" / "b.npz").write_bytes(content)
    outcomes = complete(frames, completer)
    assert states(outcomes) == ["written", "failed", "written"]
    assert len(outcomes[1].message) <= 501


def test_a_frame_is_done_again_if_its_camera_or_the_precision_changes(
    frames: Path, completer: gbpn.DepthCompleter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a camera file is not its contents."""
    jobs = plan(str(frames / "color"), str(frames / "depth"))
    camera = frames / "K.txt"

    def run(completer: gbpn.DepthCompleter = completer) -> list[str]:
        one = Run(completer=completer, sensor=Sensor(intrinsics=camera), output=frames / "out")
        return states(list(one.all(jobs)))

    camera.write_text("50 50 28 20\n")
    assert run() == ["written"] * 3
    assert run() == ["kept"] * 3
    os.utime(camera)
    assert run() == ["kept"] * 3
    camera.write_text("60 50 28 20\n")
    assert run() == ["written"] * 3
    monkeypatch.setattr("gbpn.model.settling.has_bfloat16", lambda: True)
    assert run(gbpn.DepthCompleter(completer.model, precision="bfloat16")) == ["written"] * 3


def test_a_frame_is_done_again_if_its_measurements_change_at_equal_size_and_time(
    frames: Path, completer: gbpn.DepthCompleter
) -> None:
    assert states(complete(frames, completer)) == ["written"] * 3
    place = frames / "depth" / "b.npy"
    before, depth = place.stat(), np.load(place)
    np.save(place, depth * np.float32(1.5))
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert place.stat().st_size == before.st_size
    assert states(complete(frames, completer)) == ["kept", "written", "kept"]
    os.utime(place)
    assert states(complete(frames, completer)) == ["kept"] * 3


def test_a_loop_of_links_costs_its_frame_only(frames: Path, completer: gbpn.DepthCompleter) -> None:
    for name in "xy":
        (frames / "color" / f"{name}.png").symlink_to(f"{'y' if name == 'x' else 'x'}.png")
    (frames / "depth" / "c.npy").unlink()
    (frames / "depth" / "c.npy").symlink_to("c.npy")
    jobs = plan(str(frames / "color"), str(frames / "depth"))
    run = Run(completer=completer, sensor=Sensor(), output=frames / "out")
    run.check(jobs)
    outcomes = list(run.all(jobs))
    assert states(outcomes) == ["written", "written", "failed", "failed", "failed"]


def test_settings_of_a_sensor_know_its_files_by_contents(tmp_path: Path) -> None:
    (tmp_path / "calib").mkdir()
    for name in ("cameras", "images", "points3D"):
        (tmp_path / f"{name}.txt").write_text("# nothing\n")

    def settings() -> dict[str, object]:
        model = read_model(tmp_path)
        return Sensor(calib=tmp_path / "calib", reconstruction=model, sigma=0.1).settings()

    (tmp_path / "calib" / "calib_cam_to_cam.txt").write_text("P2: 1")
    first = settings()
    assert first == settings() == json.loads(json.dumps(first))
    (tmp_path / "calib" / "calib_cam_to_cam.txt").write_text("P2: 2")
    second = settings()
    assert {name for name in first if first[name] != second[name]} == {"calib"}
    (tmp_path / "points3D.txt").write_text("# another\n")
    assert {name for name in first if settings()[name] != second[name]} == {"reconstruction"}


@pytest.mark.parametrize("damage", ["empty", "altered", "missing", "longer"])
def test_an_output_that_changed_is_not_done(
    frames: Path, completer: gbpn.DepthCompleter, damage: str
) -> None:
    assert states(complete(frames, completer)) == ["written"] * 3
    assert states(complete(frames, completer)) == ["kept"] * 3
    victim = frames / "out" / "b_depth.npy"
    good = victim.read_bytes()
    if damage == "missing":
        victim.unlink()
    else:
        altered = good[:-1] + bytes([good[-1] ^ 1])
        victim.write_bytes({"empty": b"", "altered": altered, "longer": good + b"x"}[damage])
    assert states(complete(frames, completer)) == ["kept", "written", "kept"]
    assert victim.read_bytes() == good


@pytest.mark.parametrize("record", ["", "[]", "{}", '{"files": ["b_depth.npy"]}', '{"files": {"../a": {}}}'])
def test_a_record_that_says_too_little_is_not_believed(
    frames: Path, completer: gbpn.DepthCompleter, record: str
) -> None:
    complete(frames, completer)
    (frames / "out" / "b.json").write_text(record)
    assert states(complete(frames, completer)) == ["kept", "written", "kept"]


def test_no_record_stands_beside_files_of_two_runs(
    frames: Path, completer: gbpn.DepthCompleter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between two files of a run with other options, the first run's record is gone already."""
    complete(frames, completer)

    def killed(self: CompletedDepth, *_: object, **__: object) -> list[Path]:
        assert not (frames / "out" / "a.json").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(CompletedDepth, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        complete(frames, completer, again=True)
    monkeypatch.undo()
    assert states(complete(frames, completer)) == ["written", "kept", "kept"]


def test_a_record_knows_its_files(frames: Path, completer: gbpn.DepthCompleter) -> None:
    complete(frames, completer)
    record = json.loads((frames / "out" / "a.json").read_text())
    for name, contents in record["files"].items():
        file = frames / "out" / name
        assert contents == {"bytes": file.stat().st_size, "crc32": checksum(file)}
    assert record["how"] == completer.how.as_json()
    assert record["how"]["outliers"] == "drop"
    assert record["dropped"] == []


def test_what_a_dead_run_left_is_removed_and_a_living_ones_stays(
    frames: Path, completer: gbpn.DepthCompleter
) -> None:
    out = frames / "out"
    out.mkdir()
    code = (
        "import os, sys; from gbpn.files.atomic import hidden_folder, replacing\n"
        "with hidden_folder(sys.argv[1]) as folder, replacing(sys.argv[1] + '/x.npy') as path:\n"
        "    (folder / 'half').write_text('x'); path.write_text('y'); os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(out)], check=False)
    assert len(list(out.glob(f"{PARTIAL}*"))) == 2
    with hidden_folder(out) as mine:
        assert states(complete(frames, completer)) == ["written"] * 3
        assert list(out.glob(f"{PARTIAL}*")) == [mine]


def test_unfinished_files_of_another_machine_are_left_for_a_day(tmp_path: Path) -> None:
    foreign = tmp_path / f"{PARTIAL}00000000.1.5-abc.png"
    foreign.write_text("half")
    assert remove_leftovers(tmp_path) == 0
    os.utime(foreign, (0, 0))
    assert remove_leftovers(tmp_path) == 1


@pytest.mark.parametrize("where", ["gbpn.answer.completed.CompletedDepth.save", "tempfile.mkstemp"])
def test_a_full_disk_ends_the_batch_with_one_clear_error(
    where: str, frames: Path, completer: gbpn.DepthCompleter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> list[Path]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(where, full)
    with pytest.raises(GbpnError, match=r"cannot write to .*No space left.*what was finished is kept"):
        complete(frames, completer)


def test_a_name_that_cannot_be_written_costs_its_frame_only(
    frames: Path, completer: gbpn.DepthCompleter
) -> None:
    (frames / "out" / "b_depth.npy").mkdir(parents=True)
    outcomes = complete(frames, completer)
    assert states(outcomes) == ["written", "failed", "written"]
    assert "cannot write to" in outcomes[1].message


def test_names_that_look_like_markup(
    frames: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], weights: Path
) -> None:
    from gbpn import cli

    odd = frames / "seq[" / "a]"
    odd.mkdir(parents=True)
    for name in ("x[b]", "y[bold]"):
        (odd / f"{name}.png").write_bytes(b"no picture")
        shutil.copy(frames / "depth.npy", frames / "depth" / f"{name}.npy")
    words = ["gbpn", "complete", str(odd), str(frames / "depth"), "-o", str(frames / "[out]")]
    monkeypatch.setattr("sys.argv", [*words, "--device", "cpu", "--weights", str(weights)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 3
    told = capsys.readouterr().out
    assert "seq[/a]/x[b].png" in told
    assert "y[bold]" in told
