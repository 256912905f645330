"""Another network's depth map: it helps where it is right, costs nothing where it is wrong, at every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import gaussian_filter
from typer.testing import CliRunner

import gbpn
from gbpn import scenes
from gbpn.answer import CompletedDepth
from gbpn.cli import app
from gbpn.errors import DatasetError, InputError
from gbpn.sample import Sample


@pytest.fixture(scope="module")
def default() -> gbpn.DepthCompleter:
    return gbpn.DepthCompleter.from_pretrained(device="cpu", working_size="own", precision="float32")


@pytest.fixture(scope="module")
def room() -> Sample:
    return scenes.load("bedroom")


def truth(sample: Sample) -> np.ndarray:
    assert sample.target is not None
    depth = sample.target[0].numpy()
    return np.where(depth > 0, depth, np.median(depth[depth > 0]))


def points(sample: Sample, count: int) -> np.ndarray:
    """[H, W] metres at some pixels."""
    assert sample.target is not None
    depth = sample.target[0].numpy()
    places = np.flatnonzero(depth > 0)
    chosen = np.random.default_rng(3).choice(places, count, replace=False)
    out = np.zeros_like(depth)
    out.reshape(-1)[chosen] = depth.reshape(-1)[chosen]
    return out


def pixels(sample: Sample) -> np.ndarray:
    return (sample.image * 255).round().byte().permute(1, 2, 0).numpy()


def answer(
    completer: gbpn.DepthCompleter, sample: Sample, count: int, prior: Any = None, **options: Any
) -> CompletedDepth:
    camera = sample.intrinsics.numpy()
    return completer(pixels(sample), points(sample, count), camera, prior=prior, **options)


def error(sample: Sample, result: CompletedDepth) -> float:
    assert sample.target is not None
    depth = sample.target[0].numpy()
    return float(np.sqrt(np.square((result.depth - depth)[depth > 0]).mean()))


def share(result: CompletedDepth) -> float:
    verdict = result.distribution.prior
    assert verdict is not None
    return verdict.share


@pytest.mark.parametrize("count", [10, 100])
def test_a_good_map_pays_and_wrong_ones_cost_next_to_nothing(
    default: gbpn.DepthCompleter, room: Sample, count: int
) -> None:
    exact = np.exp(gaussian_filter(np.log(truth(room)), 2))
    alone = error(room, answer(default, room, count, sigmas=False))
    good = answer(default, room, count, 1 / exact, sigmas=False)
    assert good.distribution.prior is not None
    assert good.distribution.prior.kind == "disparity"
    assert error(room, good) < 0.9 * alone
    draw = np.random.default_rng(0)
    wrong = {
        "flat": np.full_like(exact, 3.0),
        "mirrored": exact[:, ::-1],
        "noise": gaussian_filter(draw.standard_normal(exact.shape), 3),
        "another picture": truth(scenes.load("kitchen")),
    }
    for name, values in wrong.items():
        assert error(room, answer(default, room, count, values, sigmas=False)) < 1.03 * alone, name


def test_below_five_measurements_a_map_is_believed_by_half_if_it_agrees(
    default: gbpn.DepthCompleter, room: Sample
) -> None:
    exact = np.exp(gaussian_filter(np.log(truth(room)), 2))
    noise = np.random.default_rng(0).standard_normal(exact.shape)
    agreeing, other = (answer(default, room, 3, x, sigmas=False) for x in (exact, noise))
    assert (share(agreeing), share(other)) == (0.5, 0.0)
    for result in (agreeing, other):
        assert result.distribution.prior is not None
        assert result.distribution.prior.checked == 0
        assert any(notice.startswith("prior: ") for notice in result.notices)
    np.testing.assert_array_equal(other.depth, answer(default, room, 3, sigmas=False).depth)


def test_neither_unit_nor_file_nor_size_of_a_map_matters(
    default: gbpn.DepthCompleter, room: Sample, tmp_path: Path
) -> None:
    exact = np.exp(gaussian_filter(np.log(truth(room)), 2)).astype(np.float32)
    known = answer(default, room, 50, exact, sigmas=False)
    np.save(tmp_path / "map.npy", exact)
    np.savez(tmp_path / "map.npz", prior=exact)
    Image.fromarray(exact).save(tmp_path / "map.tiff")
    Image.fromarray((exact * 5000).round().astype(np.uint16)).save(tmp_path / "map.png")
    same = [tmp_path / name for name in ("map.npy", "map.npz", "map.tiff")]
    for given in (*same, torch.from_numpy(exact)[None, None], 8 * exact):
        result = answer(default, room, 50, given, sigmas=False)
        np.testing.assert_allclose(result.depth, known.depth, rtol=1e-4)
    grey = (255 * (exact - exact.min()) / np.ptp(exact)).astype(np.uint8)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    Image.fromarray(np.stack([grey] * 3, axis=2)).save(tmp_path / "grey_as_colours.png")
    small = exact[::2, ::2]
    for near in (tmp_path / "map.png", tmp_path / "grey.png", tmp_path / "grey_as_colours.png", small):
        result = answer(default, room, 50, near, sigmas=False)
        assert np.median(np.abs(result.depth - known.depth)) < 0.03
    colours = np.zeros((*exact.shape, 3), np.uint8)
    colours[..., 0] = grey
    Image.fromarray(colours).save(tmp_path / "colours.png")
    with pytest.raises(DatasetError, match="colours instead of numbers"):
        answer(default, room, 50, tmp_path / "colours.png")
    with pytest.raises(InputError, match="turn the prior"):
        answer(default, room, 50, exact.T)
    with pytest.raises(InputError, match="no finite number"):
        answer(default, room, 50, np.full_like(exact, np.inf))


def test_holes_of_a_map_are_the_networks_own(default: gbpn.DepthCompleter, room: Sample) -> None:
    holes = truth(room).copy()
    holes[:, : holes.shape[1] // 2] = np.nan
    result = answer(default, room, 50, holes, sigmas=False)
    assert np.isfinite(result.depth).all()
    assert share(result) > 0


def test_sessions_streams_batches_and_loops_answer_as_one_call(
    default: gbpn.DepthCompleter, room: Sample
) -> None:
    exact, camera = truth(room), room.intrinsics.numpy()
    wanted = answer(default, room, 50, exact)
    session = default.session(pixels(room), camera, prior=exact)
    session.measure(points(room, 50))
    np.testing.assert_array_equal(session.depth, wanted.depth)
    np.testing.assert_array_equal(session.std, wanted.std)
    assert session.result.distribution.prior == wanted.distribution.prior
    session.next_image(pixels(room))
    assert session.result.distribution.prior is None
    (batch,) = default.batch([pixels(room)], [points(room, 50)], camera, priors=[exact])
    np.testing.assert_array_equal(batch.depth, wanted.depth)
    with gbpn.Live(default, intrinsics=camera) as live:
        live.push_depth(points(room, 50), 1.0)
        live.push_image(pixels(room), 1.0, prior=exact)
        seen = live.wait(60, after=0)
        assert seen is not None
        np.testing.assert_array_equal(seen.depth, wanted.depth)
    stream = gbpn.DepthCompleter(default.model, how=default.how, stream=1).stream()
    from gbpn.inputs.reading import frame_inputs

    first = stream.frame(frame_inputs(pixels(room), points(room, 50), camera, prior=exact))
    np.testing.assert_allclose(first.depth, wanted.depth, rtol=1e-5)
    mirrored = gbpn.DepthCompleter(default.model, how=default.how, mirror="on")
    assert error(room, answer(mirrored, room, 50, exact)) < error(room, answer(mirrored, room, 50))


def test_the_command_line_takes_files_and_folders_and_records_what_was_decided(
    room: Sample, tmp_path: Path
) -> None:
    for name in ("color", "depth", "maps"):
        (tmp_path / name).mkdir()
    for name in ("a", "b"):
        Image.fromarray(pixels(room)).save(tmp_path / "color" / f"{name}.png")
        np.save(tmp_path / "depth" / f"{name}.npy", points(room, 50))
        np.save(tmp_path / "maps" / f"{name}.npy", 1 / truth(room))

    def run(*words: str) -> Any:
        given = ["complete", str(tmp_path / "color"), str(tmp_path / "depth"), "-o", str(tmp_path / "out")]
        return CliRunner().invoke(app, [*given, "--device", "cpu", *words])

    maps = ["--prior", str(tmp_path / "maps")]
    assert run(*maps).exit_code == 0
    record = json.loads((tmp_path / "out" / "a.json").read_text())
    assert record["prior"]["kind"] == "disparity"
    assert record["prior"]["checked"] == 50
    assert record["how"]["prior_kind"] == "auto"
    assert "2 done before" in run(*maps).output
    np.save(tmp_path / "maps" / "a.npy", 2 / truth(room))  # the same map in another unit is another file
    assert "1 written, 1 done before" in run(*maps).output
    assert "2 written" in run(*maps, "--prior-kind", "depth").output
    for wrong, says in (
        (["--prior-kind", "depth"], "give --prior too"),
        (["--prior", str(tmp_path / "nothing")], "no such prior"),
        ([*maps, "--distributed", "here"], "one machine"),
        ([*maps, "--prior-kind", "metres"], "--prior-kind wants auto, depth, disparity or log"),
    ):
        answer = run(*wrong)
        assert answer.exit_code != 0
        assert says in f"{answer.output} {answer.exception}", wrong


def test_weights_without_a_map_of_their_own_refuse_one(completer: gbpn.DepthCompleter, room: Sample) -> None:
    with pytest.raises(InputError, match="draws no depth-like map"):
        answer(completer, room, 50, truth(room))
    with pytest.raises(InputError, match="draws no depth-like map"):
        completer.session(pixels(room), prior=truth(room))
    affine = gbpn.DepthCompleter(gbpn.build("v1", width=0.1), device="cpu")
    with pytest.raises(InputError, match="use weights in torch"):
        answer(affine, room, 50, truth(room))
