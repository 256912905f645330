"""A run: equal in any number of processes, any batch, any order; resumed; and not ended by a broken frame."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbpn.distribution import DepthDistribution
from gbpn.errors import GbpnError, InputError
from gbpn.evaluate.methods import distinct, method_entry, read_prediction, split_iterations, weight_entries
from gbpn.evaluate.report import rows
from gbpn.evaluate.run import Plan, Worker, run
from gbpn.evaluate.settings import Setting


def plan(tree: Path, *methods: str, weights: Path | None = None, **options) -> Plan:
    entries = [*(weight_entries(str(weights)) if weights else []), *map(method_entry, methods)]
    options = {"settings": (Setting(points=60),), **options}
    return Plan(dataset="pool", root=str(tree), entries=tuple(distinct(entries)), **options)


def averages(plan_: Plan, lines: list[dict]) -> dict[str, dict[str, float]]:
    return {row.method: row.values for row in rows(plan_, lines)}


def cropped_mean(sample) -> DepthDistribution:
    """A method of somebody else: fails on one frame, and leaves a column out on all."""
    if sample.name.endswith("wall/0003"):
        raise RuntimeError("I do not like this wall")
    assert sample.target is None
    mean = torch.full_like(sample.sparse, float(sample.sparse[sample.sparse > 0].mean()))
    mean[..., 0] = torch.nan
    return DepthDistribution.of_depth(mean[None])


def test_two_processes_and_batches_give_the_same_numbers(tree, weights, tmp_path) -> None:
    one = plan(tree, "linear", "gbp_handmade", weights=weights, limit=5)
    wanted = averages(one, run(one, tmp_path / "one.jsonl"))
    four = replace(one, batch=4)
    shared_out = averages(four, run(four, tmp_path / "four.jsonl", workers=2))
    assert set(wanted) == {"v3", "v9", "linear", "gbp_handmade"}
    for method, values in wanted.items():
        assert shared_out[method].keys() == values.keys()
        for name, value in values.items():
            assert shared_out[method][name] == pytest.approx(value, rel=2e-5, abs=1e-6), (method, name)
        if method in ("linear", "gbp_handmade"):  # never batched: equal to the last digit
            assert shared_out[method] == values


def test_order_does_not_matter(tree, tmp_path) -> None:
    whole = plan(tree, "nearest")
    lines = run(whole, tmp_path / "frames.jsonl")
    assert averages(whole, lines[::-1]) == averages(whole, lines)
    assert (tmp_path / "frames.jsonl").read_text().count("\n") == 11


def test_an_interrupted_run_continues(tree, tmp_path, monkeypatch) -> None:
    store = tmp_path / "frames.jsonl"
    whole = plan(tree, "nearest", "linear")
    wanted = averages(whole, run(whole, tmp_path / "reference.jsonl"))
    kept = (tmp_path / "reference.jsonl").read_text().splitlines()[:8]
    store.write_text(
        "\n".join(kept) + '\n{"setting":"points=60","seed":0,"fra'
    )  # torn in the middle of a line
    done: list[Any] = []
    work = Worker.work

    def noted(self: Worker, task: Any) -> Any:
        done.append(task)
        return work(self, task)

    monkeypatch.setattr(Worker, "work", noted)
    assert averages(whole, run(whole, store)) == wanted
    assert sum(len(missing) for task in done for missing in task.missing) == 20 - 7
    done.clear()
    assert averages(whole, run(whole, store)) == wanted
    assert not done


@pytest.mark.parametrize(
    "damage",
    [
        b"\xff\xfe\n",
        b"[]\n",
        b"5\n",
        b"{}\n",
        b'{"setting":1,"seed":0,"frame":"x","method":"nearest"}\n',
        b"\0" * 9,
    ],
)
def test_damaged_lines_of_a_store_are_computed_again(tree, tmp_path, damage: bytes) -> None:
    store = tmp_path / "frames.jsonl"
    whole = plan(tree, "nearest")
    wanted = averages(whole, run(whole, store))
    head, first, *rest = store.read_bytes().splitlines(keepends=True)
    store.write_bytes(b"".join([head, damage, first.replace(b"0.", b"9.", 1), *rest]))  # a digit was flipped
    assert averages(whole, run(whole, store)) == wanted


@pytest.mark.parametrize("head", [b"\xff\n", b"[]\n", b"7\n", b'{"run": []}\n', b'{"run": {"methods": 3}}\n'])
def test_a_store_with_another_head_is_refused(tree, tmp_path, head: bytes) -> None:
    (tmp_path / "frames.jsonl").write_bytes(head)
    with pytest.raises(InputError, match="holds the results of another run"):
        run(plan(tree, "nearest", limit=1), tmp_path / "frames.jsonl")


def test_methods_and_settings_can_be_added_later(tree, tmp_path) -> None:
    store = tmp_path / "frames.jsonl"
    run(plan(tree, "nearest"), store)
    more = plan(tree, "linear", settings=(Setting(points=60), Setting(points=20)))
    assert set(averages(more, run(more, store))) == {"linear"}
    assert len(run(plan(tree, "nearest"), store)) == 10
    assert store.read_text().count('"method":"nearest"') == 10


def test_results_of_another_run_are_not_mixed_in(tree, weights, tmp_path) -> None:
    store = tmp_path / "frames.jsonl"
    changed = tmp_path / "changed"
    shutil.copytree(weights, changed)
    run(plan(tree, weights=changed, limit=1), store)
    shutil.copy(changed / "v3.safetensors", changed / "v9.safetensors")
    with pytest.raises(InputError, match="--fresh"):
        run(plan(tree, weights=changed, limit=1), store)
    assert len(run(plan(tree, weights=changed, limit=1), store, fresh=True)) == 2


def test_a_failing_frame_is_listed_and_not_fatal(tree, tmp_path) -> None:
    other = f"{__name__}:cropped_mean"
    both = plan(tree, "nearest", other, batch=4)
    lines = run(both, tmp_path / "frames.jsonl")
    found = {row.method: row for row in rows(both, lines)}
    assert found["nearest"].table.samples == 10
    assert found["cropped_mean"].table.samples == 9
    assert found["cropped_mean"].failed == (
        "toys/wall/0003: cropped_mean: RuntimeError: I do not like this wall",
    )
    assert 0.97 < found["cropped_mean"].values["observed"] < 1


def test_a_broken_file_is_listed_for_every_method(tree, tmp_path) -> None:
    root = tmp_path / "data"
    shutil.copytree(tree, root)
    (root / "toys" / "box" / "depth" / "0002.png").write_bytes(b"not a picture")
    both = plan(root, "nearest", "linear")
    for row in rows(both, run(both, tmp_path / "frames.jsonl")):
        assert row.table.samples == 9
        assert len(row.failed) == 1
        assert row.failed[0].startswith("toys/box/0002")


def test_limit_spreads_over_the_dataset(tree) -> None:
    few = plan(tree, "nearest", limit=4)
    assert few.frames(few.open()) == [0, 2, 5, 7]


def test_predictions_from_a_folder(tree, tmp_path) -> None:
    source = plan(tree, "linear")
    dataset = source.open()
    for index, name in enumerate(dataset.names):
        sample = Setting(points=60).measure(dataset.load(index))
        mean = method_entry("linear").load()([sample], Setting()).mean[0]
        path = tmp_path / "theirs" / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, mean[0].numpy())
    both = plan(tree, "linear", str(tmp_path / "theirs"))
    values = averages(both, run(both, tmp_path / "frames.jsonl"))
    assert values["theirs"]["rmse"] == pytest.approx(values["linear"]["rmse"], rel=1e-6)
    with pytest.raises(InputError, match="no prediction for elsewhere"):
        read_prediction(tmp_path / "theirs", 256.0, replace(dataset.load(0), name="elsewhere"))


def test_predictions_as_16_bit_pictures(tree, tmp_path) -> None:
    from gbpn.formats.depth_files import write_depth

    sample = plan(tree, "linear").open().load(0)
    depth = torch.full_like(sample.sparse, 2.5)
    depth[0, 0, 0] = 0
    write_depth(tmp_path / f"{sample.name.replace('/', '_')}.png", depth, 1000)
    entry = method_entry(f"{tmp_path}@1000")
    mean = entry.load()([sample], Setting()).mean[0]
    assert torch.allclose(mean[0, 1:], torch.tensor(2.5))
    assert bool(mean[0, 0, 0].isnan())  # 0 in a file means no prediction


def test_unknown_methods_are_named() -> None:
    with pytest.raises(InputError, match="choose from nearest, linear"):
        method_entry("nearset")
    with pytest.raises(InputError, match="cannot be imported"):
        method_entry("no.such:thing").load()


def test_iterations_are_shared_by_the_stages() -> None:
    assert [split_iterations((5, 8), n) for n in (5, 7, 9, 11, 13)] == [
        (2, 3),
        (3, 4),
        (3, 6),
        (4, 7),
        (5, 8),
    ]
    assert split_iterations((5,), 7) == (7,)
    with pytest.raises(InputError, match="at least 2"):
        split_iterations((5, 8), 1)


def test_iterations_reach_the_network(tree, weights, tmp_path) -> None:
    few = plan(
        tree, weights=weights, limit=1, settings=tuple(Setting(points=60, iterations=n) for n in (1, 3))
    )
    lines = run(few, tmp_path / "frames.jsonl")
    rmse = {line["setting"]: line["scores"]["values"]["rmse"] for line in lines if line["method"] == "v9"}
    assert len(set(rmse.values())) == 2


def test_lines_are_plain_json(tree, tmp_path) -> None:
    few = plan(tree, "gbp_handmade", limit=2)
    run(few, tmp_path / "frames.jsonl")
    head, *rest = (tmp_path / "frames.jsonl").read_text().splitlines()
    assert set(json.loads(head)["run"]) == {"gbpn", "dataset", "split", "options", "frames", "methods"}
    for line in map(json.loads, rest):
        assert line["measurements"] > 0
        assert line["scores"]["values"]["rmse"] > 0


def dies(sample) -> DepthDistribution:
    """A method that takes its whole process with it."""
    os._exit(1)


def test_a_dead_process_is_explained(tree, tmp_path) -> None:
    with pytest.raises(GbpnError, match="a worker process died"):
        run(plan(tree, f"{__name__}:dies", limit=2), tmp_path / "frames.jsonl", workers=2)


def test_where_every_frame_failed_the_reason_is_told(tree: Path, tmp_path: Path) -> None:
    """A folder of PNGs without a scale fails at each frame; once this ended in a StopIteration."""
    from rich.console import Console

    from gbpn.evaluate.evaluation import Request, perform

    scene = tree / "toys" / "box"
    root = tmp_path / "own"
    for old, new in (("color", "image"), ("depth", "depth")):
        (root / new).mkdir(parents=True)
        for file in (scene / old).iterdir():
            (root / new / file.name).write_bytes(file.read_bytes())
    (root / "intrinsics.txt").write_text("50 50 27.5 19.5")
    request = Request(dataset="folder", root=str(root), output=tmp_path / "out", methods=("nearest",))
    with pytest.raises(GbpnError, match="1000 for millimetres"):
        perform(request, Console(quiet=True))
