"""How a session came to its answer: its sweeps, what a pixel listens to, other answers beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gbpn.engine.session import Session
from gbpn.errors import InputError
from gbpn.gbp import Inference, Messages, Scheme, infer
from gbpn.mrf import MRF

__all__ = ["Listening", "Still", "exact", "film", "first_stage", "listening"]

_WHISPER = 1e-5
"""Precision that pixels without a measurement are given when it is asked whom a pixel listens to: so small
beside any edge that it changes nothing, so that what would be heard of them can be read off."""


@dataclass(frozen=True, kw_only=True)
class Still:
    """One picture of the film: what is believed after one sweep."""

    stage: int
    """1 or 2."""
    iteration: int
    """From 1."""
    part: str
    """A sweep, as in `gbpn.mrf.DIRECTIONS`, or "nonlocal"."""
    depth: np.ndarray
    """[H, W] metres; NaN where nothing has arrived yet."""
    precision: np.ndarray
    """[H, W] of the belief, in the field's unit."""


@dataclass(frozen=True, kw_only=True)
class Listening:
    """What the answer at one pixel is made of."""

    x: int
    y: int
    strength: np.ndarray
    """[H, W] how strongly a measurement at each pixel would be heard; the loudest is 1."""
    shares: np.ndarray
    """[N] of the session's measurements in their order: by what part of its own change each moves the answer,
    in the field's unit (relative for models that count in logarithms)."""


def film(session: Session) -> Iterator[Still]:
    """Every sweep of every stage, from empty messages."""
    messages: Messages | None = None
    for number, stage in enumerate(session.stages(), 1):
        done = _again(session, stage.field, messages, number - 1, record=True)
        for snapshot in done.snapshots:
            yield Still(
                stage=number,
                iteration=snapshot.iteration + 1,
                part=snapshot.part,
                depth=session.metres(snapshot.belief.mean),
                precision=session.cropped(snapshot.belief.precision),
            )
        messages = done.messages


def listening(session: Session, x: int, y: int) -> Listening:
    """Derivatives of the answer at a pixel through all sweeps; the drawn fields are held fixed."""
    height, width = session.size
    if not (0 <= x < width and 0 <= y < height):
        raise InputError(f"a pixel is x, y inside {width}×{height}; got {x}, {y}")
    stages = session.stages()
    top, left = session.corner
    depth = stages[0].field.depth.clone().requires_grad_()
    messages: Messages | None = None
    with torch.inference_mode(False), torch.enable_grad():
        for number, stage in enumerate(stages):
            field = _outside_inference(stage.field)
            weight = torch.where(field.weight > 0, field.weight, _WHISPER)
            done = _again(session, replace(field, depth=depth, weight=weight), messages, number)
            messages = done.messages
        (gradient,) = torch.autograd.grad(done.belief.mean[0, 0, y + top, x + left], depth)
    shares = session.cropped(gradient)
    # a measurement of precision w moves its own information by w times its change
    strength = session.cropped((gradient / weight).abs())
    loudest = float(np.nanmax(strength, initial=0))
    rows, columns = [one.y for one in session.measurements], [one.x for one in session.measurements]
    return Listening(
        x=x, y=y, strength=strength / loudest if loudest else strength, shares=shares[rows, columns]
    )


def first_stage(session: Session) -> np.ndarray:
    """[H, W] metres: what the first stage alone says, from empty messages."""
    return session.metres(session.stages()[0].inference.belief.mean)


def exact(session: Session) -> np.ndarray:
    """[H, W] metres: the last field's exact mean, which belief propagation approaches."""
    with torch.inference_mode():
        return session.metres(infer(session.stages()[-1].field, solver="exact", check=False).belief.mean)


def _again(
    session: Session, field: MRF, messages: Messages | None, stage: int, *, record: bool = False
) -> Inference:
    pipeline = session.pipeline
    return infer(
        field,
        messages,
        iterations=pipeline.iterations[stage],
        nonlocal_steps=pipeline.config.nonlocal_steps,
        backend=pipeline.backend,
        reweighting=pipeline.config.reweighting,
        scheme=Scheme.of(pipeline.config),
        record=record,
        check=False,
    )


def _outside_inference(field: MRF) -> MRF:
    """A copy that autograd may look at."""

    def copied(part: object) -> dict[str, Tensor]:
        return {name: tensor.clone() for name, tensor in vars(part).items()}

    local, far = field.local, field.nonlocal_
    return MRF(
        depth=field.depth.clone(),
        weight=field.weight.clone(),
        local=replace(local, **copied(local)),
        nonlocal_=None if far is None else replace(far, **copied(far)),
    )
