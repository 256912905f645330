"""Gaussian belief propagation on arrays, by the native core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gbpn.kernels.backends import native

__all__ = ["EDGES", "Array", "Beliefs", "infer"]

Array = np.ndarray
_MESSAGES = {"messages_local": 8, "messages_nonlocal": 1}
"""Groups of messages, and the planes of each."""
EDGES = (
    *("local_weight", "local_difference", "local_damping"),
    *("nonlocal_weight", "nonlocal_difference", "nonlocal_offset", "nonlocal_damping"),
)


class Beliefs(NamedTuple):
    """[1, 1, H, W] in information form, and the messages to go on from."""

    information: Array
    precision: Array
    messages: dict[str, Array]

    @property
    def mean(self) -> Array:
        """NaN where nothing is known."""
        informed = self.precision > 0
        safe = np.where(informed, self.precision, np.float32(1))
        return np.where(informed, self.information / safe, np.float32(np.nan))


def infer(
    drawn: Mapping[str, Array],
    depth: Array,
    weight: Array,
    messages: Mapping[str, Array] | None,
    *,
    iterations: int,
    steps: int,
    reweighting: float,
    threads: int,
) -> Beliefs:
    """Beliefs of a field with measurements `depth` of precision `weight`, [1, 1, H, W] each.

    drawn     edges, by the names of `EDGES`
    messages  what an earlier inference ended with; None starts empty
    """
    height, width = depth.shape[-2:]
    kinds = ("information", "precision")
    shapes = {f"{group}_{kind}": planes for group, planes in _MESSAGES.items() for kind in kinds}
    if messages is None:
        messages = {name: np.zeros((1, planes, height, width), np.float32) for name, planes in shapes.items()}
    outcome = {name: np.empty((1, planes, height, width), np.float32) for name, planes in shapes.items()}
    outcome |= {f"belief_{kind}": np.empty((1, 1, height, width), np.float32) for kind in kinds}
    native().gbp_infer(
        field={
            "unary_information": depth * weight,
            "unary_precision": weight,
            **messages,
            **{name: drawn.get(name) for name in EDGES},
        },
        outcome={**outcome, "tape": None},
        iterations=iterations,
        steps=steps,
        reweighting=reweighting,
        checkpoints=False,
        threads=threads,
    )
    ended = {name: outcome[name] for name in shapes}
    return Beliefs(outcome["belief_information"], outcome["belief_precision"], ended)
