"""`How`: everything that decides an answer besides the model and its inputs, as one record.

It is made once, at a door: the command line, a call in Python, a server, a worker's instructions, an exported
folder. It travels whole, stands whole in every record, and is compared whole when a run goes on or a worker
joins. Its fields are listed here and nowhere else: `gbpn complete --help` is made from them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from gbpn.errors import InputError
from gbpn.files.guard import shown

__all__ = ["How"]


def _field(default: Any, words: str, *choices: str, flag: Any = None, among: str = "Model") -> Any:
    """One option: what it says in --help, what it may be, what a bare flag means, and under which heading."""
    told = {"help": words, "choices": choices, "flag": flag, "panel": among}
    return field(default=default, metadata=told)


_MEASURED, _FRAMES = "What was measured", "Several frames"


@dataclass(frozen=True, kw_only=True)
class How:
    """How frames are completed; `Engine.of` settles "auto" once, against the model and the machine."""

    solver: str = _field(
        "gbp", "gbp (as trained), or exact: the mean by linear algebra, where there is one.", "gbp", "exact"
    )
    """Of the last stage; confidence is as with "gbp"."""
    iterations: tuple[int, ...] = _field((), "Iterations of each stage, such as 5 or 3,5, if not as trained.")
    """Empty: as trained."""
    outliers: str = _field(
        "auto",
        "drop single measurements that the rest contradicts, or keep them; auto: drop, if the model can.",
        "auto",
        "drop",
        "keep",
        among=_MEASURED,
    )
    """What is done with measurements that the others contradict."""
    precision: str = _field(
        "auto",
        "Of the convolutions: float32, bfloat16, or auto: bfloat16 where the processor computes it itself "
        "and the weights were checked with it.",
        "auto",
        "float32",
        "bfloat16",
    )
    """Input, heads, field and inference are float32 in any case."""
    working_size: str = _field(
        "auto",
        "auto: pictures are completed at the size that suits their focal length and the number of "
        "measurements, and answered at their own; own: at their own.",
        "auto",
        "own",
    )
    """Sessions and streams work at the picture's own size."""
    mirror: str = _field(
        "auto",
        "on: the mirrored picture is completed too, and both answers are averaged; auto: as the weights ask.",
        "auto",
        "on",
        "off",
    )
    """Twice the work, a little more accurate."""
    check_sigma: bool = _field(
        True, "Hold sigma against measurements that are held out, where the weights state one."
    )
    """Without it σ is what the weights alone say."""
    keep_measured: bool = _field(
        False, "Give measured pixels back unchanged, fill the rest.", among=_MEASURED
    )
    """Those that were dropped as outliers excepted."""
    answers_reach: float = _field(
        10.0,
        "Depths nearer than the nearest measurement divided by this, or farther than the farthest times "
        "this, are no answers.",
        among=_MEASURED,
    )
    """No σ is wider than the far end."""
    prior_kind: str = _field(
        "auto",
        "What --prior holds: depth, disparity (1/depth) or log (depth), each up to scale and shift; auto: "
        "what fits the measurements best.",
        "auto",
        "depth",
        "disparity",
        "log",
        among=_MEASURED,
    )
    """Of a foreign depth map, where one is given; the record says what was decided."""
    stream: int = _field(
        0, "Frames are a video: go on from the frame before, less flicker.", flag=1, among=_FRAMES
    )
    """Iterations of the first stage for each frame of a video; 0: every frame by itself."""
    engine: str = _field(
        "torch",
        "torch, or for a folder of gbpn export as weights: onnxruntime or openvino.",
        "torch",
        "onnxruntime",
        "openvino",
    )
    """What computes the networks."""
    device: str = _field("auto", "cpu, cuda, or auto.")
    """As torch names it."""

    def __post_init__(self) -> None:
        given = (self.iterations,) if isinstance(self.iterations, int) else self.iterations
        object.__setattr__(self, "iterations", _counts(() if given is None else given))
        object.__setattr__(self, "device", str(self.device))
        for one in fields(self):
            value, choices = getattr(self, one.name), one.metadata["choices"]
            if choices and value not in choices:
                raise InputError(f"{one.name} must be {_either(choices)}; got {shown(value)}")
            if isinstance(one.default, bool) and not isinstance(value, bool):
                raise InputError(f"{one.name} must be True or False; got {shown(value)}")
        if isinstance(self.stream, bool) or not isinstance(self.stream, int) or self.stream < 0:
            raise InputError(f"stream counts iterations per frame, 0 for single frames; got {self.stream!r}")
        reach = self.answers_reach
        if not isinstance(reach, int | float) or not (math.isfinite(reach) and reach >= 1):
            raise InputError(f"answers_reach is a factor of at least 1; got {reach!r}")
        object.__setattr__(self, "answers_reach", float(reach))

    @classmethod
    def of(cls, how: How | None = None, **options: Any) -> How:
        """`how`, by default the usual one, with some of its fields changed; None leaves a field as it is."""
        known = {one.name for one in fields(cls)}
        if unknown := sorted(set(options) - known):
            raise InputError(f"there is no option {unknown[0]!r}: the options are {', '.join(sorted(known))}")
        return replace(how or cls(), **{name: value for name, value in options.items() if value is not None})

    @classmethod
    def split(cls, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those of the options that are fields of `How`, and the others."""
        known = {one.name for one in fields(cls)}
        own = {name: value for name, value in options.items() if name in known}
        return own, {name: value for name, value in options.items() if name not in known}

    def as_json(self) -> dict[str, Any]:
        """Plain values by name, all of them."""
        return {**asdict(self), "iterations": list(self.iterations)}

    @classmethod
    def of_json(cls, stored: Any) -> How:
        """The same back; what is missing is as usual."""
        if not isinstance(stored, Mapping) or not all(isinstance(name, str) for name in stored):
            raise InputError(f"how a frame is completed is a table of options; got {shown(stored)}")
        return cls.of(**stored)

    @property
    def checksum(self) -> str:
        """Of all fields: equal if and only if they are."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()[:16]

    def differences(self, other: How) -> list[str]:
        """What another one says otherwise, in words."""
        mine, theirs = self.as_json(), other.as_json()
        return [
            f"{name} {shown(mine[name])} instead of {shown(theirs[name])}"
            for name in mine
            if mine[name] != theirs[name]
        ]


def _counts(given: Any) -> tuple[int, ...]:
    """Counts of iterations from numbers, or from words such as "3,5"."""
    words = given.split(",") if isinstance(given, str) and given else () if isinstance(given, str) else given
    try:
        counts = tuple(int(word) for word in words)
    except (TypeError, ValueError):
        counts = (0,)
    if any(count < 1 for count in counts):
        raise InputError(f"iterations are counts above 0 such as 5 or 3,5; got {shown(given)}")
    return counts


def _either(choices: tuple[str, ...]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
