"""What was asked is what is done, whichever way in: every field of `How` at every door.

Of each field one other value is asked. It changes the maps of a direct call that it is named for, and a door
answers as the direct call does, bit for bit, and says so in its record, or refuses with an error of ours.
The fields are those of `How` itself: a new one without a row here fails.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from doors import DOORS, Found, Given, call, runtime
from engine_frames import CAMERA, model_of, points

import gbpn
from gbpn.engine import explanation
from gbpn.errors import GbpnError
from gbpn.how import How
from gbpn.network.convolution import has_bfloat16
from gbpn.weights.files import save
from handmade_export import write_folder

USUAL = {"device": "cpu", "precision": "float32", "working_size": "own"}
FIELDS = tuple(one.name for one in fields(How))
OWN = {"working_size": "own"}
DECIDED: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("session", "socket", "runtime"), OWN),
    "stream": {**OWN, "stream": 1},
}
"""What a door decides by what it is, and says in its record."""
NO_PRIOR = ("socket",)
"""Doors that nobody hands another network's map through."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Another value of one field."""

    value: Any
    moves: tuple[str, ...] = ("depth",)
    """Maps of a direct call that it changes; the others stay as they are only where `std` alone is named."""
    frames: int = 1
    count: int = 120
    """Measurements."""
    wrong: int = 0
    """Gross errors among the measurements."""
    prior: bool = False
    exact: bool = True
    """Whether all bits are the same; else the sums are taken in another order."""
    refused: tuple[tuple[str, str], ...] = ()
    """Doors that cannot do it, and what they say."""


def _at(doors: str, says: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, says) for name in doors.split())


ALL = " ".join(DOORS)
ROWS: dict[str, Row] = {
    "solver": Row(value="exact"),
    "iterations": Row(value=(2, 1)),
    "outliers": Row(value="keep", wrong=3),
    "precision": Row(
        value="bfloat16", refused=() if has_bfloat16() else _at(ALL, "needs a processor that computes it")
    ),
    "working_size": Row(value="auto"),
    "mirror": Row(value="on", refused=_at("stream", "no mirror image")),
    "check_sigma": Row(value=False, wrong=60, moves=("std",)),  # so wrong that σ is widened
    "keep_measured": Row(value=True),
    "answers_reach": Row(value=1.0, count=1, moves=("depth", "std")),
    "prior_kind": Row(value="log", prior=True, refused=_at("distributed ray", "--prior is for one machine")),
    "stream": Row(
        value=1,
        frames=2,
        refused=(
            *_at("call batch session live http socket", "frames of a video"),
            *_at("distributed ray", "--stream takes frames one after the other"),
        ),
    ),
    "engine": Row(value="onnxruntime", refused=_at(ALL, "wants --weights FOLDER as written by gbpn export")),
    "device": Row(value="elsewhere", moves=(), exact=False),
}


def test_every_field_has_a_row() -> None:
    for rows in (ROWS, FOLDER_ROWS):
        assert set(rows) == set(FIELDS)
        for name, row in rows.items():
            assert How.of(**{**(USUAL if rows is ROWS else FOLDER_USUAL), name: row.value}) != How()
            assert {one for one, _ in row.refused} <= {*DOORS, "runtime"}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That draw a map whose place a prior takes, or that have an exact answer."""
    folder = tmp_path_factory.mktemp("ways")
    card = {"bfloat16": {}, "trained_for": {"focal": 90.0}}
    for name in ("small-2", "small-prior"):
        save(model_of(name=name), folder / f"{name}.safetensors", card=card)
    return folder


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Servers compute in threads of their own, and two sum in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def answered(door: str, file: Path, how: How, row: Row, prior: bool) -> tuple[Found, ...]:
    still = Given.drawn(count=row.count, wrong=row.wrong, prior=prior)  # a video goes on where nothing moves
    return tuple({**DOORS, "runtime": runtime}[door](file, how, [still] * row.frames))


def same(got: Found, wanted: Found, *, exact: bool = True) -> None:
    for name in ("depth", "confidence", "std"):
        one, other = getattr(got, name), getattr(wanted, name)
        if exact:
            np.testing.assert_array_equal(one, other, err_msg=name)
        else:
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4, err_msg=name)


def hold(field: str, door: str, row: Row, file: Path, usual: How, asked: How) -> None:
    """The law, for one field at one door."""
    prior = row.prior and door not in NO_PRIOR
    if door in dict(row.refused):
        with pytest.raises(GbpnError, match=dict(row.refused)[door]):
            answered(door, file, asked, row, prior)
        return
    decided = {} if field == "stream" else DECIDED.get(door, {})
    # frames of a video are the same at both doors for them; all others are those of the direct call
    direct, single = "stream" if asked.stream else "call", {**decided, "stream": None}
    wanted = answered(direct, file, How.of(asked, **single), row, prior)
    for got, other in zip(answered(door, file, asked, row, prior), wanted, strict=True):
        same(got, other, exact=row.exact and door != "runtime")
        assert got.how == {**other.how, **decided}
        value = getattr(asked, field)
        assert got.how[field] == decided.get(field, list(value) if isinstance(value, tuple) else value)
    if door != direct:
        return
    before, after = answered("call", file, usual, row, row.prior)[-1], wanted[-1]
    for name in row.moves:
        assert not np.array_equal(getattr(before, name), getattr(after, name), equal_nan=True), name
    if row.moves == ("std",):
        np.testing.assert_array_equal(before.depth, after.depth)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_at_a_door(field: str, door: str, weights: Path, request: pytest.FixtureRequest) -> None:
    other_half = door != "call" and (FIELDS.index(field) + list(DOORS).index(door)) % 2 == 1
    if (door == "ray" or other_half) and "GBPN_ALL_TESTS" not in os.environ:
        pytest.skip("every second one by default, and no cluster: set GBPN_ALL_TESTS=1")
    if door == "ray":
        pytest.importorskip("ray", reason="needs pip install gbpn[scale]")
    row = ROWS[field]
    value = request.getfixturevalue("second_device") if field == "device" else row.value
    file = weights / ("small-prior.safetensors" if row.prior else "small-2.safetensors")
    hold(field, door, row, file, How.of(**USUAL), How.of(**{**USUAL, field: value}))


FOLDER_DOORS = (*(name for name in DOORS if name != "ray"), "runtime")
_EVERY = " ".join(FOLDER_DOORS)
_NO_MESSAGES = _at("session stream socket", "keeps no messages")
_ON_THE_CPU = _at(" ".join(set(FOLDER_DOORS) - {"runtime"}), "runs belief propagation on the CPU")
FOLDER_ROWS: dict[str, Row] = {
    "solver": Row(value="exact", refused=(*_ON_THE_CPU, *_at("runtime", "got solver exact"))),
    "iterations": Row(value=(4,), refused=_NO_MESSAGES),
    "outliers": Row(value="drop", wrong=3, refused=(*_NO_MESSAGES, *_at("runtime", "got outliers drop"))),
    "precision": Row(value="bfloat16", refused=_at(_EVERY, "use openvino for bfloat16")),
    "working_size": Row(value="auto", refused=_NO_MESSAGES),
    "mirror": Row(
        value="on",
        refused=(*_at(_EVERY, "has no mirror"), *_at("runtime", "got mirror on")),
    ),
    "check_sigma": Row(value=False, moves=("std",), refused=_NO_MESSAGES),
    "keep_measured": Row(value=True, refused=(*_NO_MESSAGES, *_at("runtime", "got keep_measured"))),
    "answers_reach": Row(value=1.0, count=9, moves=("depth", "std"), refused=_NO_MESSAGES),
    "prior_kind": Row(
        value="log",
        prior=True,
        refused=(
            *_at("call batch live files http", "does not show"),
            *_NO_MESSAGES,
            *_at("distributed", "--prior is for one machine"),
            *_at("runtime", "got prior_kind log"),
        ),
    ),
    "stream": Row(
        value=1,
        frames=2,
        refused=(
            *_at(_EVERY, "has no stream"),
            *_at("distributed", "--stream takes frames one after the other"),
            *_at("runtime", "got stream"),
        ),
    ),
    "engine": Row(value="openvino", refused=_at(_EVERY, "pip install openvino")),
    "device": Row(value="cuda", refused=(*_ON_THE_CPU, *_at("runtime", "got device cuda"))),
}
FOLDER_USUAL = {"engine": "onnxruntime", "outliers": "keep", "working_size": "own"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx", reason="needs pip install gbpn[onnx]")
    pytest.importorskip("onnxruntime", reason="needs pip install onnxruntime")
    return write_folder(tmp_path_factory.mktemp("exported") / "one", trained_for={"focal": 90.0})


@pytest.mark.parametrize("door", FOLDER_DOORS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_an_exported_folder_at_a_door(field: str, door: str, folder: Path) -> None:
    row = FOLDER_ROWS[field]
    if field == "engine" and importlib.util.find_spec("openvino") is not None:
        row = replace(row, refused=_NO_MESSAGES, exact=False, moves=())
    usual = How.of(**FOLDER_USUAL)
    hold(field, door, row, folder, usual, How.of(usual, **{field: row.value}))


GATED = tuple(name for name in DOORS if name != "ray")


@pytest.mark.parametrize("door", [*GATED, "runtime"])
def test_the_gates_hold_at_every_door(door: str, weights: Path, request: pytest.FixtureRequest) -> None:
    """What no sensor measured is dropped with a notice, and answers lie in reach of what was measured."""
    exported = door == "runtime"
    file = request.getfixturevalue("folder") if exported else weights / "small-2.safetensors"
    how = How.of(**(FOLDER_USUAL if exported else USUAL))
    given = Given.drawn()
    spoilt = given.depth.copy()
    spoilt[0, :3] = 65.535, 5000.0, 1e-6  # saturated, beyond every sensor, and a speck
    enter = runtime if exported else DOORS[door]
    (got,), (clean,) = enter(file, how, [replace(given, depth=spoilt)]), enter(file, how, [given])
    assert any("3 of" in notice and "dropped" in notice for notice in got.notices)
    there = np.isfinite(got.depth)
    known = given.depth[given.depth > 0]
    assert (got.depth[there] >= known.min() / 10).all()
    assert (got.depth[there] <= known.max() * 10).all()
    assert (got.std[there] <= known.max() * 10 * (1 + 1e-6)).all()
    if not given.depth[0, :3].any():
        same(got, clean)
    nothing = np.where(given.depth > 0, np.float32(65.535), 0).astype(np.float32)
    with pytest.raises(GbpnError, match=r"nothing was measured|largest number"):
        enter(file, how, [replace(given, depth=nothing)])


LOOKS: dict[str, Any] = {
    "depth": lambda session: session.depth,
    "std": lambda session: session.std,
    "confidence": lambda session: session.confidence,
    "result": lambda session: session.result.preview(),
    "cloud": lambda session: session.result.to_point_cloud(),
    "quick": lambda session: session.quick(),
    "quick_depth": lambda session: session.quick_depth(),
    "stages": lambda session: session.metres(session.stages()[-1].inference.belief.mean),
    "outliers": lambda session: session.outliers(),
    "suggest": lambda session: session.suggest(2),
    "film": lambda session: list(explanation.film(session)),
    "exact": lambda session: explanation.exact(session),
    "first stage": lambda session: explanation.first_stage(session),
    "copy": lambda session: session.copy().add(1, 1, 2.5),
}


@pytest.fixture(scope="module")
def completer() -> gbpn.DepthCompleter:
    return gbpn.DepthCompleter(model_of(), **USUAL, mirror="on")


@pytest.mark.parametrize("look", LOOKS)
def test_looking_changes_nothing(look: str, completer: gbpn.DepthCompleter) -> None:
    given = Given.drawn(wrong=2)
    session = completer.session(given.picture, CAMERA)
    session.add(*points(given.depth))
    LOOKS[look](session)
    session.remove(*(part[:1] for part in points(given.depth)[:2]))
    LOOKS[look](session)
    depth = given.depth.copy()
    depth[points(given.depth)[1][0], points(given.depth)[0][0]] = 0
    same(Found.of(session.result), Found.of(completer(given.picture, depth, CAMERA)))


@pytest.mark.parametrize("seed", range(6))
def test_a_session_after_any_edits_is_a_new_one(seed: int, completer: gbpn.DepthCompleter) -> None:
    """To the bit, so there is no exact call to ask for: every look is one."""
    rng = np.random.default_rng(seed)
    given = Given.drawn(seed, count=40)
    session, table = completer.session(given.picture, CAMERA), np.zeros_like(given.depth)
    for _ in range(12):
        edit = rng.choice(["add", "add", "update", "remove", "measure", "look"])
        there = np.argwhere(table)
        y, x = rng.integers(48, size=8), rng.integers(64, size=8)
        metres = rng.uniform(1, 5, 8).astype(np.float32)
        if edit == "measure":
            table = given.depth.copy()
            session.measure(table)
        elif edit == "add" or not len(there):
            session.add(x, y, metres)
            table[y, x] = metres  # where two fall on one pixel, the later stays
        elif edit == "look":
            session.quick(), session.depth
        else:
            (y, x), metre = there[rng.integers(len(there))], float(metres[0])
            table[y, x] = metre if edit == "update" else 0
            if edit == "update":
                session.update(int(x), int(y), metre)
            else:
                session.remove(int(x), int(y))
    if not table.any():
        session.measure(given.depth)
        table = given.depth
    anew = completer.session(given.picture, CAMERA)
    anew.add(*points(table))
    same(Found.of(session.result), Found.of(anew.result))
    same(Found.of(session.result), Found.of(completer(given.picture, table, CAMERA)))


@pytest.mark.parametrize("door", GATED)
def test_company_changes_no_bit(door: str, weights: Path) -> None:
    """Of a frame that is alone, or the second of two."""
    if door == "stream":
        pytest.skip("a frame of a video has a past")
    file, how = weights / "small-2.safetensors", How.of(**USUAL)
    one, other = Given.drawn(0), Given.drawn(1, count=60)
    (alone,) = DOORS[door](file, how, [one])
    same(DOORS[door](file, how, [other, one])[1], alone)


def test_the_order_of_points_and_sigma_change_no_bit(weights: Path) -> None:
    given = Given.drawn()
    (alone,) = call(weights / "small-2.safetensors", How.of(**USUAL), [given])
    completer = gbpn.DepthCompleter(model_of(), **USUAL)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(120)
        table = np.stack(points(given.depth), axis=1)[order].astype(np.float32)
        same(Found.of(completer(given.picture, table, CAMERA)), alone)
        without = completer(given.picture, table, CAMERA, sigmas=False)
        np.testing.assert_array_equal(without.depth, alone.depth)
        np.testing.assert_array_equal(without.confidence, alone.confidence)
