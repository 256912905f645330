"""Which image goes with which measurement: by name, by order, in time; and what is done only once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import gbpn
from gbpn.errors import InputError
from gbpn.jobs import pairing
from gbpn.jobs.pairing import MEASUREMENTS, jobs_in_time, plan, require_distinct, require_one_pair
from gbpn.jobs.run import Job, Outcome, Run
from gbpn.jobs.sources import Sensor
from gbpn.jobs.written import parse_intrinsics, parse_point
from gbpn.recordings import timestamps
from gbpn.sigma.limit import SigmaLimit


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_a_folder_is_its_files_of_the_kind_sorted_and_not_the_hidden_ones(tmp_path: Path) -> None:
    touch(tmp_path, "b.png", "a.PNG", ".hidden.png", "note.txt", "deep/c.png")
    names = [path.name for path in pairing.files(str(tmp_path), (".png",), "image")]
    assert names == ["a.PNG", "b.png"]
    nested = [path.name for path in pairing.files(str(tmp_path), (".png",), "image", nested=True)]
    assert nested == ["a.PNG", "b.png", "c.png"]
    # a glob and a single file are taken as they are
    assert [p.name for p in pairing.files(str(tmp_path / "**" / "*.png"), (".png",), "image")] == [
        "b.png",
        "c.png",
    ]
    assert pairing.files(str(tmp_path / "note.txt"), (".png",), "image") == [tmp_path / "note.txt"]
    for empty, message in ((tmp_path / "deep", "no image in this folder; known are .jpg"), ("?", "no such")):
        with pytest.raises(InputError, match=message):
            pairing.files(str(empty), (".jpg",), "image")


def test_pictures_of_a_project_keep_their_folders(tmp_path: Path) -> None:
    touch(tmp_path, "left/1.png", "right/1.png", "x.jpg")
    assert [job.name for job in pairing.jobs_of_project(str(tmp_path))] == ["left/1", "right/1", "x"]
    (single,) = pairing.jobs_of_project(str(tmp_path / "left" / "1.png"))
    assert (single.name, single.sparse) == ("1", None)
    touch(tmp_path, "x.png")
    with pytest.raises(InputError, match=r"x.jpg and .*x.png would be written to the same files"):
        pairing.jobs_of_project(str(tmp_path))


def test_associations_are_taken_in_pairs_and_the_first_is_looked_for(tmp_path: Path) -> None:
    touch(tmp_path, "rgb/1.png", "depth/1.png")
    (tmp_path / "list.txt").write_text("1.0 rgb/1.png 1.1 depth/1.png\n2.0 rgb/2.png 2.1 depth/2.png\n")
    first, second = plan(str(tmp_path / "list.txt"), None)
    assert (first.image, first.sparse, first.name) == (tmp_path / "rgb/1.png", tmp_path / "depth/1.png", "1")
    assert second.sparse == tmp_path / "depth/2.png"
    for missing in ("rgb/1.png", "depth/1.png"):
        (tmp_path / missing).unlink()
        with pytest.raises(InputError, match=f"{missing}, which is not there"):
            plan(str(tmp_path / "list.txt"), None)
        touch(tmp_path, missing)


@given(
    st.lists(st.integers(0, 5000), min_size=1, max_size=8, unique=True),
    st.lists(st.integers(0, 5000), min_size=1, max_size=8, unique=True),
    st.integers(0, 800),
)
def test_in_time_every_image_has_the_nearest_and_the_rest_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, images: list[int], depths: list[int], allowed: int
) -> None:
    """Times and the tolerance are milliseconds; a gap of exactly the tolerance is within it."""
    folder = tmp_path_factory.mktemp("timed")
    touch(
        folder, *(f"rgb/{t / 1000:.3f}.png" for t in images), *(f"depth/{t / 1000:.3f}.png" for t in depths)
    )
    gap = {image: min(abs(image - depth) for depth in depths) for image in images}
    call = (str(folder / "rgb"), str(folder / "depth"), allowed / 1000)
    if min(gap.values()) > allowed:
        with pytest.raises(InputError, match="raise --tolerance"):
            jobs_in_time(*call)
        return
    jobs = jobs_in_time(*call)
    assert sorted(round(float(job.name) * 1000) for job in jobs) == sorted(images)
    for job in jobs:
        wanted = gap[round(float(job.name) * 1000)]
        assert job.settings["apart"] == pytest.approx(wanted / 1000)
        assert job.sparse is not None
        assert abs(float(job.sparse.stem) - float(job.name)) == pytest.approx(wanted / 1000)
        assert (job.left_out == "") == (wanted <= allowed)
        assert job.left_out in ("", f"no measurement within {allowed / 1000:g} s")


def test_one_pair_is_enough_and_the_error_says_how_far_the_closest_is() -> None:
    require_one_pair([10, 5, 30], 5, "a", "b")
    second = timestamps.NANOSECONDS
    with pytest.raises(InputError, match=r"within 0.5 s of an image of a: the closest are 0.75 s apart"):
        require_one_pair([second, 3 * second // 4], second // 2, "a", "b")


def test_lists_of_times_belong_to_their_own_folder(tmp_path: Path) -> None:
    (tmp_path / "rgb.txt").write_text("# time file\n1.5 rgb/a.png\n2.5 rgb/b.png\n")
    (tmp_path / "depth.txt").write_text("1.6 depth/x.png\n")
    near, far = jobs_in_time(str(tmp_path / "rgb.txt"), str(tmp_path / "depth.txt"), 0.2)
    assert (near.image, near.sparse) == (tmp_path / "rgb" / "a.png", tmp_path / "depth" / "x.png")
    assert near.left_out == ""
    assert far.left_out
    assert near.settings["apart"] == pytest.approx(0.1)


def test_names_pair_and_doubts_are_told(tmp_path: Path) -> None:
    touch(tmp_path, "rgb/a.png", "rgb/b.png", "depth/b.npy", "depth/a.png", "one/a.npy")
    rgb, depth = str(tmp_path / "rgb"), str(tmp_path / "depth")
    assert {j.name: j.sparse.name for j in plan(rgb, depth) if j.sparse} == {"a": "a.png", "b": "b.npy"}
    (lonely,) = plan(str(tmp_path / "rgb" / "a.png"), depth)  # one image looks for its name in a folder
    assert lonely.sparse == tmp_path / "depth" / "a.png"
    jobs = plan(rgb, str(tmp_path / "one"))
    assert [job.problem for job in jobs] == ["", "no sparse depth"]
    assert [job.problem for job in plan(rgb, str(tmp_path / "one"), others=True)] == ["", ""]
    assert [(j.sparse, j.problem) for j in plan(rgb, None, others=True)] == [(None, "")] * 2
    assert [j.sparse.name for j in plan(rgb, depth, by_order=True) if j.sparse] == ["a.png", "b.npy"]
    touch(tmp_path, "depth/a.npy")
    with pytest.raises(InputError, match="two measurements for one image"):
        plan(rgb, depth)
    with pytest.raises(InputError, match="got 2, 3"):
        plan(rgb, depth, by_order=True)
    with pytest.raises(InputError, match=r"has the name of its image: b\.png and a\.npy"):
        plan(str(tmp_path / "rgb" / "b.png"), str(tmp_path / "one"))
    with pytest.raises(InputError, match="2 images and one file"):
        plan(rgb, str(tmp_path / "depth" / "b.npy"))
    with pytest.raises(InputError, match="measurements are needed"):
        plan(rgb, None)


def test_outputs_of_two_frames_never_share_a_name() -> None:
    frames = [Job(image=Path(f"{n}.png"), sparse=None, name=n) for n in "abc"]
    require_distinct(frames)
    with pytest.raises(InputError, match=r"b\.png and other\.png would be written"):
        require_distinct([*frames, Job(image=Path("other.png"), sparse=None, name="b")])


def run_of(
    completer: gbpn.DepthCompleter, output: Path, sensor: Sensor | None = None, **options: object
) -> Run:
    return Run(completer=completer, sensor=sensor or Sensor(), output=output, **options)


@pytest.fixture
def frames(scene: Path) -> Path:
    for folder, source in (("color", "image.png"), ("depth", "depth.npy")):
        (scene / folder).mkdir()
        for name in "ab":
            shutil.copy(scene / source, scene / folder / f"{name}{Path(source).suffix}")
    return scene


def darker(path: Path) -> dict[str, object]:
    Image.fromarray(np.asarray(Image.open(path)) // 2).save(path)
    return {}


def farther(path: Path) -> dict[str, object]:
    np.save(path, np.load(path) * 1.1)
    return {}


CHANGES: dict[str, Callable[[Path, gbpn.DepthCompleter], dict[str, object]]] = {
    "cloud": lambda *_: {"cloud": True},
    "also": lambda *_: {"also": ("mask",)},
    "max_sigma": lambda *_: {"max_sigma": SigmaLimit.of("1%")},
    "keep_measured": lambda _, c: {"completer": gbpn.DepthCompleter(c.model, keep_measured=True)},
    "sensor": lambda *_: {"sensor": Sensor(points=((1.0, 2.0, 3.0),))},
    "outliers": lambda _, c: {"completer": gbpn.DepthCompleter(c.model, outliers="keep")},
    "iterations": lambda _, c: {"completer": gbpn.DepthCompleter(c.model, iterations=(2, 2))},
    "solver": lambda _, c: {"completer": gbpn.DepthCompleter(c.model, solver="exact")},
    "image": lambda folder, _: darker(folder / "color" / "a.png"),
    "measurements": lambda folder, _: farther(folder / "depth" / "a.npy"),
}


def states(run: Run, jobs: list[Job]) -> list[str]:
    return [outcome.state for outcome in run.all(jobs)]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_an_answer_depends_on_makes_it_anew(
    change: str, frames: Path, completer: gbpn.DepthCompleter
) -> None:
    jobs = plan(str(frames / "color" / "a.png"), str(frames / "depth"))
    first = run_of(completer, frames / "out")
    assert states(first, jobs) == ["written"]
    assert states(first, jobs) == ["kept"]
    changed = {"completer": completer, "output": frames / "out", "sensor": Sensor()}
    run = Run(**(changed | CHANGES[change](frames, completer)))
    assert states(run, jobs) == ["written"]
    assert states(run, jobs) == ["kept"]


def test_other_weights_are_other_answers(frames: Path, completer: gbpn.DepthCompleter) -> None:
    jobs = plan(str(frames / "color"), str(frames / "depth"))
    assert states(run_of(completer, frames / "out"), jobs) == ["written"] * 2
    torch.manual_seed(1)
    other = gbpn.DepthCompleter(gbpn.build("small-2", width=0.5))
    assert other.model.config.name == completer.model.config.name
    assert states(run_of(other, frames / "out"), jobs) == ["written"] * 2


def outcomes(run: Run, jobs: list[Job], workers: int = 1) -> dict[str, Outcome]:
    return {outcome.job.name: outcome for outcome in run.all(jobs, workers)}


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_does_the_same(
    workers: int, frames: Path, completer: gbpn.DepthCompleter
) -> None:
    jobs = plan(str(frames / "color"), str(frames / "depth"))
    late = replace(jobs[0], name="late", left_out="no measurement within 1 s")
    wrong = replace(jobs[0], name="wrong", problem="no sparse depth")
    found = outcomes(run_of(completer, frames / "out"), [*jobs, late, wrong], workers)
    assert {name: one.state for name, one in found.items()} == {
        "a": "written",
        "b": "written",
        "late": "left out",
        "wrong": "failed",
    }
    assert found["late"].message == late.left_out
    assert "no sparse depth" in found["wrong"].message
    written = {path.name for path in found["a"].files}
    assert written == {path.name for path in (frames / "out").glob("a*")}
    assert found["a"].change > 0
    assert found["late"].change == 0


def test_a_frame_among_its_own_results_is_refused(frames: Path, completer: gbpn.DepthCompleter) -> None:
    jobs = plan(str(frames / "color"), str(frames / "depth"))
    with pytest.raises(InputError, match="holds the images"):
        run_of(completer, frames / "color").check(jobs)
    run_of(completer, frames / "color").check(jobs[:1])  # one image: nothing of it is replaced
    run_of(completer, frames / "new").check(jobs)
    (frames / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        run_of(completer, frames / "file").check(jobs)
    shutil.copy(frames / "depth" / "a.npy", frames / "color" / "a_depth.npy")
    fed_back = replace(jobs[0], sparse=frames / "color" / "a_depth.npy")
    with pytest.raises(InputError, match="is an input and would be overwritten"):
        run_of(completer, frames / "color").check([fed_back])


def test_what_was_not_used_is_in_the_record_as_points(frames: Path, completer: gbpn.DepthCompleter) -> None:
    depth = np.full((40, 56), 2.0, np.float32)
    depth[20, 30] = 60.0
    np.save(frames / "depth" / "a.npy", depth)
    jobs = plan(str(frames / "color" / "a.png"), str(frames / "depth"))
    (outcome,) = run_of(completer, frames / "out").all(jobs)
    record = json.loads((frames / "out" / "a.json").read_text())
    assert record["dropped"] == ["30,20,60"]
    assert parse_point(record["dropped"][0]) == (30.0, 20.0, 60.0)
    assert outcome.dropped == 1
    assert not any("not used" in notice for notice in outcome.notices)  # told once for all frames
    assert record["measurements"] == 40 * 56
    assert record["size"] == [40, 56]
    assert record["change"]["largest"] == pytest.approx(outcome.change)
    assert 0 <= record["change"]["median"] <= record["change"]["largest"]
    # the record is enough to repeat the frame with what is left
    keeping = gbpn.DepthCompleter(completer.model, keep_measured=True)
    again = run_of(keeping, frames / "out", again=True)
    (kept,) = again.all(jobs)
    assert kept.change == 0


def test_points_and_cameras_in_words(tmp_path: Path) -> None:
    assert parse_point("1,2,3.5") == parse_point("1 2 3.5") == (1.0, 2.0, 3.5)
    assert parse_intrinsics(None) is None
    found = parse_intrinsics("50,60,20,10")
    assert torch.is_tensor(found)
    assert found.tolist() == [[50, 0, 20], [0, 60, 10], [0, 0, 1]]
    (tmp_path / "k.dat").write_text("50 60 20 10")
    assert parse_intrinsics(str(tmp_path / "k.dat")) == tmp_path / "k.dat"
    for suffix in (".npy", ".png", ".ply", ".csv"):
        assert suffix in MEASUREMENTS
