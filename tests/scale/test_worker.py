"""A worker tells what goes wrong, whatever it is, and leaves nothing behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hostile_bucket import Mood, hostile, uri
from small_frames import fill

import gbpn.scale
from gbpn.scale.storage import Patience, Storage, joined
from gbpn.scale.worker import ShardWorker
from gbpn.scale.worklist import Worklist


def _listed(monkeypatch: pytest.MonkeyPatch, *source: str, instructions, **call) -> Worklist:
    """The list of a run whose frames are all still to be done."""
    lists: list[Worklist] = []

    def ends(self: ShardWorker, _: int) -> None:
        lists.append(self.worklist)
        raise KeyboardInterrupt

    monkeypatch.setattr(ShardWorker, "shard", ends)
    with pytest.raises(KeyboardInterrupt):
        gbpn.scale.complete(*source, instructions=instructions, batch=3, **call)
    monkeypatch.undo()
    return lists[0]


def test_row_13_shard_tells_every_error(frames, instructions, tmp_path, monkeypatch) -> None:
    source = str(frames / "color"), str(frames / "depth"), str(tmp_path / "out")
    worker = ShardWorker(instructions, _listed(monkeypatch, *source, instructions=instructions))

    def broken(*_: object) -> None:
        raise ValueError("cannot reshape array")

    monkeypatch.setattr(worker, "_rows", broken)
    report = worker.shard(0)
    worker.close()
    assert report.state == "fatal"
    assert "ValueError: cannot reshape array" in report.message
    assert "the same command goes on" in report.message


def test_row_13_half_fetched_frames_leave_nothing(
    frames, instructions, bucket, tmp_path, monkeypatch
) -> None:
    """The photo came, its depth did not: five shards later the scratch folder is as empty as before."""
    fill(Storage(), frames, uri(bucket, "frames/halves"))
    mood = Mood()
    with hostile(bucket, mood) as port:
        base = uri(port, "frames/halves")
        storage = Storage(patience=Patience(attempts=2, first=0.01))
        source = joined(base, "color"), joined(base, "depth"), str(tmp_path / "out")
        listed = _listed(monkeypatch, *source, instructions=instructions, storage=storage)
        worker = ShardWorker(replace(instructions, pack="files"), listed, storage=storage)
        mood.broken = "depth/"
        for _ in range(5):
            assert worker.shard(0).state == "postponed"
        worker._pool.shutdown(wait=True)
        left = [path for path in Path(worker.scratch).rglob("*") if path.is_file()]
        worker.close()
    assert left == []
