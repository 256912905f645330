"""Whether measurements are turned against the picture, and by how much: edges of depth on edges of pictures.

A rotation is looked for from coarse to fine. It is believed only if it holds on frames that it was not made
from: half of the frames find it, the other half tell what it gains, and the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from gbpn.camera.rotation import Rotation, rotations
from gbpn.errors import InputError
from gbpn.sensors.edges import FEWEST_EDGES, LARGEST, FrameEdges

__all__ = ["FEWEST_FRAMES", "Alignment", "aligned"]

FEWEST_FRAMES = 4
"""Of which at least some edges are needed; fewer prove nothing."""
_STEPS = (0.75, 0.375, 0.1875, 0.094, 0.047)
"""Degrees between the rotations that are compared, from coarse to fine."""
_KEPT = (6, 4, 2, 1, 1)
"""Rotations whose surroundings are looked at in the next step."""
_SURE = 3.0
"""Standard errors by which the gain on other frames must be above 0."""
_AGREED = 0.5
"""Degrees that the two halves may differ by."""


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """What the edges say."""

    rotation: Rotation
    """That brings what was measured onto the picture."""
    gain: float
    """Score of frames turned as the others want it, less their score as they are."""
    error: float
    """Standard error of that."""
    apart: float
    """Degrees between what the two halves of the frames want."""
    frames: int
    """That have edges enough."""

    @property
    def clear(self) -> bool:
        """Whether the rotation is more than chance."""
        return self.gain > _SURE * self.error and self.apart < _AGREED


def aligned(frames: Sequence[FrameEdges]) -> Alignment:
    """The rotation up to `LARGEST` degrees that fits all frames best."""
    usable = [frame for frame in frames if len(frame.rays) >= FEWEST_EDGES]
    if len(usable) < FEWEST_FRAMES:
        raise InputError(
            f"a rotation is found from depth edges of at least {FEWEST_FRAMES} frames; got {len(usable)} of "
            f"{len(frames)} frames with {FEWEST_EDGES} edges or more: dense depth or scan lines are wanted"
        )
    halves = usable[::2], usable[1::2]
    found = [_best(half) for half in halves]
    gains = [
        _gain(frame, vector) for vector, others in zip(found, halves[::-1], strict=True) for frame in others
    ]
    best = _best(usable)
    return Alignment(
        rotation=Rotation(**dict(zip("xyz", (round(float(v), 3) for v in best), strict=True))),
        gain=float(np.mean(gains)),
        error=float(np.std(gains, ddof=1) / np.sqrt(len(gains))),
        apart=float(np.linalg.norm(found[0] - found[1])),
        frames=len(usable),
    )


def _gain(frame: FrameEdges, vector: np.ndarray) -> float:
    turned, still = frame.scores(rotations(np.stack([vector, np.zeros(3)])), 0)
    return float(turned - still)


def _best(frames: Sequence[FrameEdges]) -> np.ndarray:
    """[3] degrees."""
    side = np.arange(-LARGEST, LARGEST + 1e-6, _STEPS[0])
    candidates = _inside(np.array(list(product(side, side, side))))
    around = np.array(list(product((-1, 0, 1), repeat=3)), np.float64)
    for step, finer, kept in zip(_STEPS, (*_STEPS[1:], None), _KEPT, strict=True):
        total = _total(frames, candidates, step)
        best = candidates[np.argsort(-total)[:kept]]
        if finer is not None:
            candidates = _inside(np.unique((best[:, None] + around * finer).reshape(-1, 3).round(6), axis=0))
    return _summit(frames, best[0])


def _inside(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors[np.linalg.norm(vectors, axis=1) <= LARGEST + 0.1])


def _total(frames: Sequence[FrameEdges], vectors: np.ndarray, step: float) -> np.ndarray:
    """[M] scores of rotations, at the level whose pixels are as wide as a step."""
    matrices, total = rotations(vectors), np.zeros(len(vectors))
    for frame in frames:
        pixels = np.radians(step) * frame.intrinsics[0, 0]
        total += frame.scores(matrices, max(0, round(float(np.log2(pixels)))))
    return total


def _summit(frames: Sequence[FrameEdges], vector: np.ndarray) -> np.ndarray:
    """Between the finest steps: along each axis the top of the parabola through five scores."""
    steps = np.arange(-2, 3) * 2 * _STEPS[-1]
    out = vector.copy()
    for axis in range(3):
        around = np.repeat(vector[None], len(steps), axis=0)
        around[:, axis] += steps
        bend, slope, _ = np.polyfit(steps, _total(frames, around, _STEPS[-1]), 2)
        if bend < 0:
            out[axis] += np.clip(-slope / (2 * bend), steps[1], steps[-2])
    return out
