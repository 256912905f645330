"""What answers people, with the model on a device that is not the CPU, see `second_device.py`.

The other doors are those of `test_ways.py`.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
from engine_frames import CAMERA, frame, points

import gbpn
from fields import directed_field
from gbpn.engine import explanation
from gbpn.gbp import infer
from gbpn.inputs.reading import frame_inputs
from second_device import Elsewhere, elsewhere


@pytest.fixture
def away(second_device: str, model: gbpn.GBPN) -> gbpn.DepthCompleter:
    return gbpn.DepthCompleter(model, device=second_device)


@pytest.fixture(scope="module")
def here(model: gbpn.GBPN) -> gbpn.DepthCompleter:
    return gbpn.DepthCompleter(model, precision="float32", device="cpu")


def alike(got: Any, wanted: Any) -> None:
    """Two devices: the same sums in another order."""
    np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-4)


def same(got: gbpn.CompletedDepth, wanted: gbpn.CompletedDepth) -> None:
    alike(got.depth, wanted.depth)
    alike(got.confidence, wanted.confidence)
    if wanted.distribution.calibrated:
        alike(got.std, wanted.std)
    assert got.notices == wanted.notices


def test_the_device_refuses_what_a_gpu_refuses() -> None:
    here = torch.ones(3, 4)
    there = here.to(elsewhere())
    assert str(there.device).startswith("elsewhere")
    mixtures = [
        lambda: there + here,
        lambda: torch.cat((there, here)),
        lambda: here[there > 0],
        lambda: torch.where(there > 0, here, there),
        lambda: there.sub_(here),
    ]
    for mixture in mixtures:
        with pytest.raises(RuntimeError, match="same device"):
            mixture()
    for numbers in (lambda: there.numpy(), lambda: np.asarray(there)):
        with pytest.raises((TypeError, RuntimeError), match="numpy"):
            numbers()
    with pytest.raises(RuntimeError, match="no kernel"):
        torch.ops.gbpn.upscale(there.view(1, 1, 3, 4), there, there[0])
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(torch.zeros(3, 4, device=there.device) + there))
    thread.start()
    thread.join()
    assert isinstance(found[0], Elsewhere)
    assert torch.equal(found[0].cpu(), here)
    there[0] = torch.tensor(5.0)  # a number without dimensions goes anywhere
    there[torch.tensor([1, 2])] *= 2  # and so do positions
    assert there.cpu().sum() == 4 * 5 + 8 * 2


def test_inference_step_by_step() -> None:
    """The definition itself, each of its operations."""
    field = directed_field(4, 5, iterations=2)
    wanted = infer(field, nonlocal_steps=2, backend="reference").belief
    moved = _moved(field)
    got = infer(moved, nonlocal_steps=2).belief
    assert isinstance(got.mean, Elsewhere)
    torch.testing.assert_close(got.mean.cpu(), wanted.mean)
    torch.testing.assert_close(got.precision.cpu(), wanted.precision)


def _moved(box: Any) -> Any:
    import dataclasses

    if isinstance(box, torch.Tensor):
        return box.to(elsewhere())
    parts = {one.name: _moved(getattr(box, one.name)) for one in dataclasses.fields(box)}
    return dataclasses.replace(box, **parts)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"outliers": "drop", "keep_measured": True},
        {"mirror": "on", "check_sigma": False},
        {"solver": "exact"},
        {"iterations": (2, 1), "answers_reach": 1.5},
    ],
    ids=str,
)
def test_a_call(second_device: str, model: gbpn.GBPN, options: dict[str, Any]) -> None:
    picture, depth = frame(wrong=3)
    got, wanted = (
        gbpn.DepthCompleter(model, device=device, precision="float32", **options)(picture, depth, CAMERA)
        for device in (second_device, "cpu")
    )
    same(got, wanted)


def test_other_measurements(away: gbpn.DepthCompleter, here: gbpn.DepthCompleter) -> None:
    picture, depth = frame()
    table = np.stack(points(depth), axis=1).astype(np.float32)
    noisy = np.where(depth > 0, 0.1, 0).astype(np.float32)
    areas = np.linspace(2, 3, 8, dtype=np.float32)[None].repeat(6, 0)  # a depth camera of 8×6 zones
    for given in ({"sparse": table}, {"sparse": depth, "sigma": noisy}, {"sparse": areas}):
        wanted = here(picture, intrinsics=CAMERA, **given)
        same(away(picture, intrinsics=CAMERA, **given), wanted)


def looked(completer: gbpn.DepthCompleter) -> list[Any]:
    """All that a session shows."""
    picture, depth = frame()
    x, y, metres = points(depth)
    session = completer.session(picture, CAMERA)
    seen: list[Any] = [[one.x for one in session.suggest(2)]]
    session.add(x, y, metres, 0.01)
    session.add(5, 6, 22.0)
    seen += [session.quick_depth(), session.quick().confidence, session.depth, session.std]
    seen += [[(one.x, one.y) for one in session.outliers()], [one.x for one in session.suggest(2)]]
    session.remove(5, 6)
    stages = session.stages()
    seen += [session.metres(stages[-1].inference.belief.mean), len(stages)]
    stills = list(explanation.film(session))
    seen += [len(stills), stills[0].depth, stills[-1].precision]
    seen += [explanation.exact(session), explanation.first_stage(session)]
    session.next_image(frame(1)[0])
    return [*seen, session.confidence, session.copy().depth]


def test_a_session(away: gbpn.DepthCompleter, here: gbpn.DepthCompleter) -> None:
    for got, wanted in zip(looked(away), looked(here), strict=True):
        alike(got, wanted)


def test_what_a_pixel_listens_to(second_device: str, model: gbpn.GBPN) -> None:
    found = []
    for device in (second_device, "cpu"):
        completer = gbpn.DepthCompleter(model, device=device, precision="float32", iterations=(1, 1))
        session = completer.session(frame()[0][:32, :32], (60.0, 60.0, 15.5, 15.5))
        session.add([3, 9], [4, 9], [2.0, 3.0])
        found.append(explanation.listening(session, 7, 9))
    alike(found[0].strength, found[1].strength)
    alike(found[0].shares, found[1].shares)


def test_a_stream(away: gbpn.DepthCompleter, here: gbpn.DepthCompleter) -> None:
    streams = away.stream(), here.stream()
    for seed in (0, 0, 1):
        picture, depth = frame(seed)
        got, wanted = (stream.frame(frame_inputs(picture, depth, CAMERA)) for stream in streams)
        same(got, wanted)
