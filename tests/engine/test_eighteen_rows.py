"""Where the product said one thing and did another: each row of the table by its number.

Each uses names that the tree from before (7b2e58a) has too, and is red there.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engine_frames import CAMERA, frame, model_of, points, written
from typer.testing import CliRunner

import gbpn
from gbpn import errors
from gbpn.cli import app
from gbpn.errors import GbpnError, InputError
from gbpn.weights.files import save


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("rows"), wrong=3)


def complete(folder: Path, out: Path, *words: str) -> list[dict[str, Any]]:
    """What `gbpn complete` says in its records."""
    given = ["complete", str(folder / "color"), str(folder / "depth"), "-o", str(out)]
    given += ["--weights", str(folder / "weights.safetensors"), "--intrinsics", str(folder / "K.txt")]
    answer = CliRunner().invoke(app, [*given, "--device", "cpu", *words])
    assert answer.exit_code == 0, answer.output
    return [json.loads(path.read_text()) for path in sorted(out.glob("[0-9].json"))]


def said(record: dict[str, Any], name: str) -> Any:
    """An option, where either tree writes it."""
    return record.get("how", record)[name]


def able(monkeypatch: pytest.MonkeyPatch, bfloat16: bool) -> None:
    """A processor with bfloat16, or without."""
    for place in ("gbpn.model.settling", "gbpn.model.models"):
        monkeypatch.setattr(f"{place}.has_bfloat16", lambda: bfloat16, raising=False)


def test_row_1_a_stream_drops_outliers(folder: Path, tmp_path: Path) -> None:
    alone = complete(folder, tmp_path / "alone")
    stream = complete(folder, tmp_path / "stream", "--stream")
    assert [len(record["dropped"]) for record in alone] == [3, 3]
    assert [record["dropped"] for record in stream] == [record["dropped"] for record in alone]
    assert said(stream[0], "outliers") == "drop"


def test_row_2_many_machines_obey_precision_and_working_size(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    able(monkeypatch, True)
    asked = ("--precision", "float32", "--working-size", "own")
    here = complete(folder, tmp_path / "one", *asked)
    many = complete(folder, tmp_path / "many", *asked, "--distributed", "here")
    for record in (*here, *many):
        assert (said(record, "precision"), said(record, "working_size")) == ("float32", "own")
    for name in ("0_depth.npy", "1_std.npy"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


def test_row_3_a_machine_that_cannot_do_it_does_not_join(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gbpn.scale.instructions import Instructions
    from gbpn.scale.worker import ShardWorker
    from gbpn.scale.worklist import Worklist

    able(monkeypatch, True)
    (record, _) = complete(folder, tmp_path / "out", "--distributed", "here")
    assert said(record, "precision") == "bfloat16"
    run = json.loads((tmp_path / "out" / "gbpn" / "run.json").read_text())
    able(monkeypatch, False)
    with pytest.raises(GbpnError, match="bfloat16"):
        ShardWorker(
            Instructions(weights=str(folder / "weights.safetensors")),
            Worklist(output=str(tmp_path / "out"), facts=run),
        )


def test_row_4_a_model_is_a_module_as_any_other(tmp_path: Path) -> None:
    files = [save(model_of(seed), tmp_path / f"{seed}.safetensors") for seed in (0, 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        model, other = (gbpn.load(file, fuse=True) for file in files)
    picture, depth = frame()
    inputs = torch.from_numpy(picture).permute(2, 0, 1)[None] / 255, torch.from_numpy(depth)[None, None]

    def answer(one: Any) -> torch.Tensor:
        with torch.no_grad():
            return one.complete(*inputs, sigmas=False).mean

    before = answer(model)
    completer = gbpn.DepthCompleter(model)
    then = completer(picture, depth, CAMERA).depth
    model.load_state_dict(other.state_dict())
    torch.testing.assert_close(answer(model), answer(other), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(answer(model), before, rtol=2e-5)
    np.testing.assert_array_equal(completer(picture, depth, CAMERA).depth, then)
    with torch.no_grad():
        for one in (model, other):
            for weight in one.parameters():
                weight.mul_(1.01)
    torch.testing.assert_close(answer(model), answer(other), rtol=1e-5, atol=1e-5)
    again = gbpn.DepthCompleter(model)(picture, depth, CAMERA).depth
    np.testing.assert_array_equal(again, gbpn.DepthCompleter(other)(picture, depth, CAMERA).depth)
    revived = pickle.loads(pickle.dumps(model))
    torch.testing.assert_close(answer(revived), answer(model))


def test_row_5_a_quick_look_changes_nothing(completer: gbpn.DepthCompleter) -> None:
    picture, depth = frame()
    looked, blind = (completer.session(picture, CAMERA) for _ in range(2))
    for session in (looked, blind):
        session.add(*points(depth))
    _ = looked.result, blind.result
    for session in (looked, blind):
        session.add(5, 6, 2.6)
    for _ in range(3):
        looked.quick(), looked.quick_depth()
    np.testing.assert_array_equal(looked.result.depth, blind.result.depth)
    np.testing.assert_array_equal(looked.result.std, blind.result.std)


@pytest.mark.parametrize(("x", "metres"), [(5, 1e30), (5, 3e38), (5, 1e-8), (5, 65.535), (5, 1e6)])
def test_row_6_sessions_have_the_gates_of_every_frame(
    completer: gbpn.DepthCompleter, x: int, metres: float
) -> None:
    picture, depth = frame()
    session = completer.session(picture, CAMERA)
    session.add(*points(depth))
    session.add(x, 6, metres)
    result = session.result
    known = result.sparse[result.sparse > 0]
    low, high = float(known.min()) / 10, float(known.max()) * 10
    assert high < 100, "what no sensor measures is dropped"
    assert any("dropped" in notice or "not used" in notice for notice in result.notices)
    for found in (result, session.quick()):
        seen = found.depth[found.observed]
        assert seen.size
        assert (seen >= low).all()
        assert (seen <= high).all()
    alone = completer.session(picture, CAMERA)
    alone.add(1, 1, metres)
    if metres > 1e6 or metres < 1e-4:
        with pytest.raises(InputError):
            _ = alone.result


@pytest.mark.parametrize("count", [40, 400])
def test_row_7_the_same_bits_alone_in_a_batch_with_sigma_and_without(count: int) -> None:
    completer = gbpn.DepthCompleter(model_of(name="small-prior"))
    frames = [frame(seed, count) for seed in range(3)]
    pictures, depths = zip(*frames, strict=True)
    batch = completer.batch(pictures, depths, CAMERA, sigmas=True)
    for (picture, depth), together in zip(frames, batch, strict=True):
        table = np.stack(points(depth), axis=1).astype(np.float32)
        turned = np.random.default_rng(0).permutation(table)
        for alone in (
            completer(picture, depth, CAMERA, sigmas=True),
            completer(picture, depth, CAMERA, sigmas=False),
            completer(picture, turned, CAMERA),
        ):
            np.testing.assert_array_equal(alone.depth, together.depth)
            np.testing.assert_array_equal(alone.confidence, together.confidence)


def test_row_8_an_answer_is_plain_data() -> None:
    model = model_of()
    completer = gbpn.DepthCompleter(model)
    picture, depth = frame()
    result = completer(picture, depth, CAMERA)
    packed = pickle.dumps(result)
    maps = sum(array.nbytes for array in (result.depth, result.std, result.confidence, result.image.numpy()))
    assert len(packed) <= 2 * maps
    model.load_state_dict(model_of(1).state_dict())
    expected = gbpn.DepthCompleter(model_of())(picture, depth, CAMERA)
    np.testing.assert_array_equal(result.std, expected.std)
    np.testing.assert_array_equal(pickle.loads(packed).std, expected.std)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        np.testing.assert_array_equal(pool.submit(_std, result).result(120), expected.std)
    taken = result.depth
    taken[:] = 0
    np.testing.assert_array_equal(result.depth, expected.depth)
    result.distribution.mean.mul_(2)  # a tensor as any other


def _std(result: gbpn.CompletedDepth) -> np.ndarray:
    """In another process."""
    return result.std


@pytest.mark.parametrize("kind", ["none", "files", "numbers", "matrices"])
def test_row_10_a_list_of_four_cameras(kind: str, completer: gbpn.DepthCompleter, tmp_path: Path) -> None:
    matrix = np.array([[60, 0, 31.5], [0, 60, 23.5], [0, 0, 1]])
    (tmp_path / "K.txt").write_text("60 60 31.5 23.5")
    one = {"none": None, "files": str(tmp_path / "K.txt"), "numbers": CAMERA, "matrices": matrix}[kind]
    frames = [frame(seed) for seed in range(4)]
    pictures, depths = zip(*frames, strict=True)
    found = completer.batch(pictures, depths, [one] * 4)
    assert len(found) == 4
    wanted = completer(pictures[3], depths[3], one)
    np.testing.assert_array_equal(found[3].depth, wanted.depth)


def test_row_11_what_is_pushed_is_what_is_answered(completer: gbpn.DepthCompleter) -> None:
    picture, depth = frame()
    with gbpn.Live(completer, CAMERA) as live:
        buffers = picture.copy(), depth.copy()
        live.push_image(buffers[0], 0.0)
        buffers[0][:] = 0  # the driver's next picture
        live.push_depth(buffers[1], 0.0)
        answer = live.wait(60, after=0)
    assert answer is not None
    wanted = completer(picture, depth, CAMERA)
    np.testing.assert_array_equal(answer.depth, wanted.depth)
    assert torch.equal(answer.result.image, wanted.image)


def test_row_12_what_a_session_hands_out_is_yours_and_mistakes_are_told(
    completer: gbpn.DepthCompleter,
) -> None:
    picture, depth = frame()
    session = completer.session(picture, CAMERA)
    session.add(*points(depth))
    before, result = session.depth.copy(), session.result
    taken = session.depth
    taken[:] = 0
    for array in (session.confidence, session.std, session.quick_depth()):
        array[:] = 0
    np.testing.assert_array_equal(session.depth, before)
    np.testing.assert_array_equal(session.result.depth, before)
    assert result.confidence.any()
    with pytest.raises(InputError, match="one length"):
        session.remove([1, 2], [3])
    session.next_image(picture[:, :40])
    session.add(1, 1, 2.0)
    assert float(session.result.intrinsics[0, 2]) < 40
    assert any("assumed" in notice for notice in session.result.notices)


def test_row_15_sigma_of_a_session_is_that_of_a_call(completer: gbpn.DepthCompleter) -> None:
    """Of additions one by one; how often it holds on real frames: `test_coverage_of_sessions.py`."""
    picture, depth = frame(count=60)
    x, y, metres = points(depth)
    session = completer.session(picture, CAMERA)
    session.add(x[10:], y[10:], metres[10:])
    for number in range(10):
        _ = session.result
        session.add(x[number], y[number], metres[number])
    np.testing.assert_array_equal(session.std, completer(picture, depth, CAMERA).std)


@pytest.mark.parametrize("edits", ["removed", "corrected", "added one by one", "measured anew"])
def test_row_16_a_session_is_a_new_one_with_its_measurements(
    edits: str, completer: gbpn.DepthCompleter
) -> None:
    picture, depth = frame()
    x, y, metres = points(depth)
    session = completer.session(picture, CAMERA)
    if edits == "removed":
        session.add([3, 4], [3, 3], [4.0, 4.2])  # far: what the first points set must not stay
        _ = session.result
        session.add(x, y, metres)
        _ = session.result
        session.remove([3, 4], [3, 3])
    elif edits == "corrected":
        session.add(x, y, 3 * metres)
        _ = session.depth
        session.update(x, y, metres)
    elif edits == "added one by one":
        for one in zip(x, y, metres, strict=True):
            session.add(*one)
    else:
        session.add(1, 1, 9.0)
        _ = session.result
        session.measure(depth)
    wanted = completer(picture, depth, CAMERA)
    np.testing.assert_array_equal(session.depth, wanted.depth)
    np.testing.assert_array_equal(session.std, wanted.std)
    np.testing.assert_array_equal(session.result.confidence, wanted.confidence)


def test_row_17_a_model_that_is_trained_stays_in_training() -> None:
    model = model_of().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    completer = gbpn.DepthCompleter(model)
    picture, depth = frame()
    one, two = completer(picture, depth, CAMERA), completer(picture, 2 * depth, CAMERA)
    assert model.training
    assert all(part.training for part in model.modules())
    assert all(weight.requires_grad for weight in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    np.testing.assert_allclose(two.std, 2 * one.std, rtol=1e-3)  # the same scene in another unit


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_answers(two_threads: None, completer: gbpn.DepthCompleter) -> None:
    """It hung for ever: the threads of its parent are not copied."""
    picture, depth = (np.tile(part, (4, 4, 1)[: part.ndim]) for part in frame())
    wanted = completer(picture, depth).depth
    child = os.fork()
    if child == 0:
        right = np.allclose(completer(picture, depth).depth, wanted, rtol=1e-2, equal_nan=True)
        os._exit(0 if right else 1)
    ended, status, patience = 0, 0, time.monotonic() + 120
    while not ended and time.monotonic() < patience:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.05)
    if not ended:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert (ended, status) == (child, 0)


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_can_be_pickled(name: str) -> None:
    error = getattr(errors, name)("wanted this, got that")
    revived = pickle.loads(pickle.dumps(error))
    assert (type(revived), str(revived)) == (type(error), str(error))
