"""Many frames in one process: the outputs of one machine's command, once each, from and to any storage."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_bucket import uri
from small_frames import COUNT, contents, downloaded, fill, write_frames, write_tar
from typer.testing import CliRunner

import gbpn.scale
from gbpn.cli import app
from gbpn.errors import GbpnError, InputError
from gbpn.how import How
from gbpn.jobs.sources import Sensor
from gbpn.scale.listing import listed
from gbpn.scale.storage import Storage, joined
from gbpn.scale.worker import ShardWorker


def test_outputs_are_those_of_one_machine_bit_for_bit(frames, instructions, plain, tmp_path) -> None:
    out = tmp_path / "out"
    summary = gbpn.scale.complete(
        str(frames / "color"), str(frames / "depth"), str(out), instructions=instructions, batch=3
    )
    assert (summary.written, summary.failed, summary.done_shards) == (COUNT, 0, 3)
    assert contents(out) == plain
    table = gbpn.scale.read_records(str(out)).to_pylist()
    assert [row["frame"] for row in table] == [f"{k:04}" for k in range(COUNT)]
    for row in table:
        stored = json.loads(plain[f"{row['frame']}.json"])
        assert row["observed"] == stored["observed"]
        assert row["weights"] == stored["weights"]
        assert row["gbpn"] == gbpn.__version__
        assert 0 < row["sigma_10"] <= row["sigma_50"] <= row["sigma_90"]
        assert set(row["files"]) == {name for name in plain if name.startswith(row["frame"])}
        assert row["size"] == sum(len(plain[name]) for name in row["files"])
        parts = (row[f"seconds_{part}"] for part in ("read", "network", "inference", "write"))
        assert sum(parts) == pytest.approx(row["seconds"], rel=0.05, abs=5e-3)


def test_a_second_start_does_only_what_is_missing(frames, instructions, tmp_path, monkeypatch) -> None:
    out = str(tmp_path / "out")
    call: dict[str, Any] = {"instructions": instructions, "batch": 2}
    source = str(frames / "color"), str(frames / "depth"), out
    whole = ShardWorker.shard
    monkeypatch.setattr(ShardWorker, "shard", lambda self, n: whole(self, n) if n < 2 else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        gbpn.scale.complete(*source, **call)
    monkeypatch.undo()
    assert len(gbpn.scale.read_records(out)) == 4
    again = gbpn.scale.complete(*source, **call)
    assert (again.before, again.written) == (4, COUNT - 4)
    third = gbpn.scale.complete(*source, **call)
    assert (third.before, third.written) == (COUNT, 0)
    assert len(gbpn.scale.read_records(out)) == COUNT


def test_a_shard_killed_before_its_record_is_done_again_with_the_same_bytes(
    frames, instructions, plain, tmp_path, monkeypatch
) -> None:
    from gbpn.scale import records

    out = tmp_path / "out"
    source = str(frames / "color"), str(frames / "depth"), str(out)
    commit = records.commit

    def killed(output, rows, report, storage) -> None:
        if report.shard == 1:
            raise KeyboardInterrupt
        commit(output, rows, report, storage)

    monkeypatch.setattr(records, "commit", killed)
    with pytest.raises(KeyboardInterrupt):
        gbpn.scale.complete(*source, instructions=instructions, batch=3)
    assert len(gbpn.scale.read_records(str(out))) == 3, "outputs without a record do not count"
    monkeypatch.undo()
    summary = gbpn.scale.complete(*source, instructions=instructions, batch=3)
    assert (summary.before, summary.written) == (3, COUNT - 3)
    assert contents(out) == plain


@pytest.mark.parametrize("change", ["option", "weights", "source", "pack"])
def test_results_of_two_kinds_never_share_an_output(change, frames, instructions, tmp_path, weights) -> None:
    from dataclasses import replace

    import torch

    out = str(tmp_path / "out")
    source = str(frames / "color"), str(frames / "depth")
    gbpn.scale.complete(*source, out, instructions=instructions)
    if change == "option":
        other = replace(instructions, how=How(device="cpu", iterations="1,1"))
    elif change == "weights":
        from gbpn.weights.files import save

        torch.manual_seed(1)
        save(gbpn.build("small-2", width=0.5), tmp_path / "other.safetensors")
        other = replace(instructions, weights=str(tmp_path / "other.safetensors"))
    elif change == "pack":
        other = replace(instructions, pack="tar")
    else:
        other, source = instructions, (str(frames / "color" / "*2.png"), str(frames / "depth"))
    wanted = {"option": "iterations", "weights": "weights", "source": "source", "pack": "pack"}[change]
    with pytest.raises(InputError, match=f"begun with other options.*{wanted}.*another -o"):
        gbpn.scale.complete(*source, out, instructions=other)


def test_bad_frames_go_to_quarantine_and_can_be_tried_again(instructions, tmp_path) -> None:
    frames = write_frames(tmp_path / "frames", 5)
    good = (frames / "depth" / "0002.png").read_bytes()
    (frames / "depth" / "0002.png").write_bytes(good[:40])
    (frames / "depth" / "0004.png").unlink()
    out = str(tmp_path / "out")
    source = str(frames / "color"), str(frames / "depth"), out
    summary = gbpn.scale.complete(*source, instructions=instructions, batch=2)
    assert (summary.written, summary.failed) == (3, 2)
    table = gbpn.scale.read_quarantine(out).to_pylist()
    assert [row["frame"] for row in table] == ["0002", "0004"]
    assert "0002.png" in table[0]["error"]
    assert "no sparse depth" in table[1]["error"]
    assert gbpn.scale.read_records(out)["frame"].to_pylist() == ["0000", "0001", "0003"]
    assert not (Path(out) / "0002.json").exists()
    with pytest.raises(GbpnError, match="more than --max-failures 0"):
        gbpn.scale.complete(*source[:2], str(tmp_path / "two"), instructions=instructions, max_failures=0)
    (frames / "depth" / "0002.png").write_bytes(good)
    assert gbpn.scale.complete(*source, instructions=instructions).written == 0
    mended = gbpn.scale.complete(*source, instructions=instructions, retry_failed=True)
    assert (mended.before, mended.written, mended.failed) == (2, 2, 1)
    assert gbpn.scale.read_quarantine(out)["frame"].to_pylist() == ["0004"]
    assert gbpn.scale.read_records(out)["frame"].to_pylist() == ["0000", "0001", "0002", "0003"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_manifests(kind, frames, instructions, plain, tmp_path) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    folder = tmp_path / "data"
    shutil.copytree(frames, folder)
    (folder / "camera.txt").write_text("60 60 27.5 19.5\n")
    rows = {
        "id": ["a/first", "b", "c"],
        "image": ["color/0000.png", str(folder / "color" / "0001.png"), "color/0002.png"],
        "depth": ["depth/0000.png", "depth/0001.png", "depth/0002.png"],
        "camera": ["", "60 60 27.5 19.5", "camera.txt"],
        "weather": ["sun", "rain", "fog"],
    }
    manifest = folder / f"frames.{kind}"
    (pa.csv.write_csv if kind == "csv" else pa.parquet.write_table)(pa.table(rows), manifest)
    out = tmp_path / "out"
    summary = gbpn.scale.complete(str(manifest), None, str(out), instructions=instructions)
    assert summary.written == 3, gbpn.scale.read_quarantine(str(out)).to_pylist()
    assert (out / "a" / "first_depth.npy").read_bytes() == plain["0000_depth.npy"]
    cameras = [json.loads((out / f"{name}.json").read_text())["intrinsics"][0][0] for name in ("b", "c")]
    assert cameras == [60.0, 60.0]
    manifest.write_bytes(manifest.read_bytes() + b" ")
    with pytest.raises(InputError, match="manifest"):
        gbpn.scale.complete(str(manifest), None, str(out), instructions=instructions)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,depth\na,b\n", "needs a column image.*got id, depth"),
        ("id,image\na,x.png\na,y.png\n", "two frames have the same name"),
        ("id,image\n../a,x.png\n", "climbs out"),
        ("id,image\ngbpn/a,x.png\n", "among the tables of the run"),
        ("id,image\na,\n", "row 1: no image"),
        ("id,image\n", "no frame"),
        ('id,image\n"a\nb,c,d,e\n', "not a readable table|row|no image"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_told_before_anything_is_done(
    text, message, instructions, tmp_path
) -> None:
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        gbpn.scale.complete(str(tmp_path / "m.csv"), None, str(tmp_path / "out"), instructions=instructions)
    assert not (tmp_path / "out" / "gbpn" / "run.json").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_damaged_manifests_are_told(kind, frames, instructions, tmp_path) -> None:
    """Every byte of a manifest may be anything: one error, and no other exception."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    place = tmp_path / f"m.{kind}"
    rows = {"image": ["color/0000.png", "color/0001.png"], "depth": ["depth/0000.png", "depth/0001.png"]}
    if kind == "csv":
        place.write_bytes("id,image,größe\na,x.png,1\n".encode("latin-1"))
        with pytest.raises(InputError, match="UTF-8"):
            list(listed(str(place), None, Storage()))
        place.write_text("image,depth\n" + "".join(f"{a},{b}\n" for a, b in zip(*rows.values(), strict=True)))
    else:
        pq.write_table(pa.table(rows), place)
    whole = place.read_bytes()
    assert len(list(listed(str(place), None, Storage()))) == 2
    rng = np.random.default_rng(3)
    told = 0
    for _ in range(300):
        content = bytearray(whole)
        for at in rng.integers(0, len(content), int(rng.integers(1, 6))):
            content[at] = int(rng.integers(256))
        place.write_bytes(content[: int(rng.integers(1, len(content)))] if rng.random() < 0.3 else content)
        try:
            list(listed(str(place), None, Storage()))
        except InputError:
            told += 1
    assert told > 30


def test_names_that_no_file_has_cost_their_rows_only(frames, instructions, tmp_path) -> None:
    for text, message in (("file://[", "row 2"), (".", "row 2")):
        (tmp_path / "m.csv").write_text(
            f"image,depth\n{frames}/color/0000.png,{frames}/depth/0000.png\n{text},b\n"
        )
        with pytest.raises(InputError, match=message):
            list(listed(str(tmp_path / "m.csv"), None, Storage()))
    good = f"{frames}/color/0000.png,{frames}/depth/0000.png"
    (tmp_path / "m.csv").write_text(f"image,depth\n{good}\nodd://x/b.png,odd://x/b.png\n")
    summary = gbpn.scale.complete(
        str(tmp_path / "m.csv"), None, str(tmp_path / "out"), instructions=instructions
    )
    assert (summary.written, summary.failed) == (1, 1)


def _header(name: str, length: int, /, **pax: str) -> bytes:
    """The header of a member, which may say more than there is."""
    member = tarfile.TarInfo(name)
    member.size, member.pax_headers = length, pax
    return member.tobuf(tarfile.PAX_FORMAT)


@pytest.mark.parametrize(
    (
        "extra",
        "written",
        "failed",
    ),  # where no name says that another frame begins, the one before may lack files
    [
        pytest.param(_header("0001.png", 10, size="99999999999999") + b"x" * 512, 1, 1, id="size of a bomb"),
        pytest.param(_header("0001.png", 10, size="-9") + b"x" * 512, 1, 1, id="negative size"),
        pytest.param(_header("0001.png", 10, size="x") + b"x" * 512, 1, 2, id="size that is no number"),
        pytest.param(_header("0001.depth.png", 4, mtime="1e30") + b"abcd".ljust(512, b"\0"), 1, 1, id="1e30"),
        pytest.param(_header("0001.depth.png", 4, mtime="nan") + b"abcd".ljust(512, b"\0"), 1, 1, id="nan"),
        pytest.param(b"\xff" * 512, 0, 2, id="no header"),
        pytest.param(_header("0001.png", 0, path="a\udcff/b.png"), 1, 1, id="half a letter"),
        pytest.param(
            tarfile.TarInfo.create_pax_global_header({"comment": "x" * (3 << 20)}), 0, 2, id="long header"
        ),
    ],
)
def test_a_bad_tar_goes_to_quarantine_and_its_good_frames_are_done(
    extra, written, failed, frames, instructions, tmp_path
) -> None:
    write_tar(tmp_path / "a.tar", frames, ["0000"])
    content = (tmp_path / "a.tar").read_bytes().rstrip(b"\0")
    content += b"\0" * (-len(content) % 512)
    (tmp_path / "a.tar").write_bytes(content + extra + b"\0" * 1024)
    out = str(tmp_path / "out")
    summary = gbpn.scale.complete(str(tmp_path / "a.tar"), None, out, instructions=instructions)
    assert (summary.written, summary.failed) == (written, failed)
    assert len(gbpn.scale.read_quarantine(out)) == failed


def test_tar_shards_in_and_out(frames, instructions, plain, tmp_path) -> None:
    """A second run reads the tars of inputs; its outputs lie in tars that are the same each time."""
    for number, names in enumerate((["0000", "0001"], ["0002"], ["0003", "0004"])):
        write_tar(tmp_path / f"train-{number:03}.tar", frames, names)
    broken = (tmp_path / "train-002.tar").read_bytes()
    (tmp_path / "train-002.tar").write_bytes(broken[: len(broken) // 2 + 900])
    from dataclasses import replace

    packed = replace(instructions, pack="tar")
    outs = []
    for source in (str(tmp_path / "*.tar"), str(tmp_path / "train-{000..002}.tar")):
        out = tmp_path / f"out{len(outs)}"
        summary = gbpn.scale.complete(source, None, str(out), instructions=packed)
        assert summary.written == 4
        assert "not a whole tar" in gbpn.scale.read_quarantine(str(out)).to_pylist()[-1]["error"]
        outs.append(contents(out))
    assert outs[0] == outs[1]
    assert sorted(outs[0]) == [f"shard-{n:010d}.tar" for n in range(3)]
    with tarfile.open(fileobj=io.BytesIO(outs[0]["shard-0000000000.tar"])) as tar:
        names = tar.getnames()
        assert {name.split(".")[0] for name in names} == {"train-000/0000", "train-000/0001"}
        assert {"train-000/0001.depth.npy", "train-000/0001.json", "train-000/0001.std.npy"} <= set(names)
        facts = json.load(tar.extractfile("train-000/0001.json"))
    assert facts["intrinsics"][0][0] == 60.0
    rows = gbpn.scale.read_records(str(tmp_path / "out0")).to_pylist()
    assert rows[0]["packed"] == "shard-0000000000.tar"
    assert rows[0]["files"][0] in names


def test_outputs_inside_the_table(frames, instructions, plain, tmp_path) -> None:
    from dataclasses import replace

    out = str(tmp_path / "out")
    source = str(frames / "color"), str(frames / "depth"), out
    gbpn.scale.complete(*source, instructions=replace(instructions, pack="parquet"))
    inside = {}
    for row in gbpn.scale.read_records(out, contents=True).to_pylist():
        inside |= dict(row["contents"])
    assert inside == plain
    assert contents(Path(out)) == {}


def test_from_bucket_to_bucket(frames, instructions, plain, bucket) -> None:
    storage = Storage()
    base = uri(bucket, "frames/plain")
    fill(storage, frames, base)
    out = joined(base, "out")
    call: dict[str, Any] = {"instructions": instructions, "batch": 3}
    summary = gbpn.scale.complete(joined(base, "color"), joined(base, "depth"), out, **call)
    assert (summary.written, summary.failed) == (COUNT, 0)
    assert downloaded(storage, out) == plain
    assert summary.bytes_read > 0
    assert summary.bytes_written == sum(map(len, plain.values()))
    assert gbpn.scale.complete(joined(base, "color"), joined(base, "depth"), out, **call).before == COUNT
    assert "test" not in gbpn.scale.read_records(out)["image"][0].as_py().partition("?")[2], (
        "no keys in tables"
    )


def test_a_worker_with_other_weights_or_another_disk_is_refused(frames, instructions, tmp_path) -> None:
    from dataclasses import replace

    from gbpn.scale.worklist import Worklist

    out = str(tmp_path / "out")
    gbpn.scale.complete(str(frames / "color"), str(frames / "depth"), out, instructions=instructions)
    facts = json.loads((tmp_path / "out" / "gbpn" / "run.json").read_text())
    other = replace(instructions, how=How(device="cpu", iterations="1,1"))
    with closing(ShardWorker(other, Worklist(output=out, facts=facts))) as worker:
        assert worker.completer.how == How.of_json(facts["identity"]["how"])  # the run's, not its own
    opener = other.open
    with pytest.raises(InputError, match=r"completes otherwise than the run: iterations \[1, 1\] instead of"):
        ShardWorker(instructions, Worklist(output=out, facts=facts), opener=opener)
    with pytest.raises(InputError, match=r"does not see .*elsewhere.*share"):
        ShardWorker(instructions, Worklist(output=str(tmp_path / "elsewhere"), facts=facts))


def test_files_travel_with_the_instructions(frames, instructions, weights, tmp_path) -> None:
    from dataclasses import replace

    camera = tmp_path / "camera.txt"
    camera.write_text("60 60 27.5 19.5\n")
    copy = tmp_path / "copy.safetensors"
    shutil.copy(weights, copy)
    given = replace(
        instructions, weights=str(copy), sensor=Sensor(scale=1000.0, intrinsics=camera)
    ).packed_up()
    camera.unlink()
    copy.unlink()
    there = given.unpacked(tmp_path / "other machine")
    assert Path(there.weights).read_bytes() == weights.read_bytes()
    assert isinstance(there.sensor.intrinsics, Path)
    assert there.sensor.intrinsics.read_text() == "60 60 27.5 19.5\n"
    assert there.open().how == instructions.open().how


def test_the_command_line(frames, weights, plain, tmp_path) -> None:
    lines = [f"{n:04},color/{n:04}.png,depth/{n:04}.png" for n in range(3)]
    folder = tmp_path / "data"
    shutil.copytree(frames, folder)
    (folder / "m.csv").write_text("\n".join(["id,image,depth", *lines, "bad,color/none.png,depth/none.png"]))
    out = tmp_path / "out"
    words = ["complete", str(folder / "m.csv"), "-o", str(out), "--scale", "1000", "--weights", str(weights)]
    answer = CliRunner().invoke(app, [*words, "--device", "cpu", "--batch", "2"])
    assert answer.exit_code == 3, answer.output
    for said in (
        "4 frames: 3 written, 1 failed",
        "frames/s",
        "belief propagation",
        "failed: bad",
        "--retry-failed",
    ):
        assert said in answer.output
    assert (out / "0001_std.npy").read_bytes() == plain["0001_std.npy"]
    refused = CliRunner().invoke(app, [*words, "--again", "--distributed", "here"])
    assert isinstance(refused.exception, InputError)
    assert "--again is for one machine" in str(refused.exception)
