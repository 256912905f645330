"""The paper's experiments by name: which settings are run, what is drawn over what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gbpn.errors import InputError
from gbpn.evaluate import acceptance, trust
from gbpn.evaluate.report import Row
from gbpn.evaluate.settings import Setting

__all__ = [
    "FAST",
    "GALLERY_POINTS",
    "LINES",
    "POINTS",
    "PUBLISHED_ITERATIONS",
    "SUITES",
    "Suite",
    "iterations_up_to",
    "suite",
]

POINTS = (10, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)
GALLERY_POINTS = (1, 10, 50, 100, 500, 20000)
LINES = (8, 16, 32, 64)
_NOISE = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)
FAST = ("nearest", "linear", "natural_neighbour", "ip_basic", "guided", "fast_global", "gbp_handmade")
"""Baselines that take well under a second a frame."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One experiment."""

    name: str
    about: str
    settings: tuple[Setting, ...] = (Setting(),)
    """Run unless the command line gives its own values."""
    axis: str = ""
    """Name in a setting that the plot has along x."""
    metric: str = "rmse"
    """What the plot has along y."""
    methods: tuple[str, ...] = FAST
    """Run beside the weights where no method was named."""
    needs_weights: bool = False
    seeds: int = 1
    by_scene: bool = False
    """Whether every scene has rows of its own."""
    published: bool = True
    """Whether the paper's rows stand in the table of errors."""
    as_used: bool = False
    """Whether weights run as `gbpn complete` runs them, see `methods.Entry.as_used`."""
    surfaces: bool = False
    """Whether normals, edges and patterns are measured too, and the depth-like map by itself."""
    judge: Callable[[Sequence[Row], Iterable[str]], dict[str, list[dict[str, Any]]]] | None = None
    """Makes tables of the rows and the names of the weights, in place of the table of errors."""
    trust: bool = False
    """Whether intervals are held against the truth by place too."""

    @property
    def judged(self) -> bool:
        """Whether tables of its own take the place of the table of errors on the screen."""
        return self.judge is not None


PUBLISHED_ITERATIONS = 13
"""Of both stages of the paper's network."""


def iterations_up_to(most: int) -> tuple[Setting, ...]:
    """Five settings or fewer, two iterations apart, up to what weights have parameters for: 5 … 13 for 13."""
    return tuple(Setting(iterations=n) for n in range(most, 1, -2)[:5][::-1])


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            name="main",
            about="All methods in the dataset's own protocol.",
            methods=(*FAST, "thin_plate", "colourisation", "diebel_thrun"),
        ),
        Suite(
            name="ablation",
            about="Weights V1 to V9 against each other: give a folder with v1.safetensors and so on.",
            methods=("linear",),
            needs_weights=True,
        ),
        Suite(
            name="points",
            about="From 10 to 20000 measurements, several samplings of each frame.",
            settings=tuple(Setting(points=n) for n in POINTS),
            axis="points",
            metric="rel",
            seeds=3,
        ),
        Suite(
            name="lines",
            about="LiDAR thinned to 8, 16, 32 and 64 scan lines.",
            settings=tuple(Setting(lines=n) for n in LINES),
            axis="lines",
        ),
        Suite(
            name="noise",
            about="Relative errors of up to 5 % in the measurements.",
            settings=tuple(Setting(noise=n) for n in _NOISE),
            axis="noise",
        ),
        Suite(
            name="transfer",
            about="Zero-shot: the same weights on other data, scene by scene.",
            by_scene=True,
            axis="scene",
        ),
        Suite(
            name="iterations",
            about="Fewer and more belief propagation iterations with the same weights.",
            settings=iterations_up_to(PUBLISHED_ITERATIONS),
            axis="iterations",
            methods=("gbp_handmade",),
        ),
        Suite(
            name="runtime",
            about="Time, memory and parameters, the network and belief propagation apart.",
            published=False,
        ),
        Suite(
            name="propagation",
            about="How far one measurement reaches: the derivative of every depth by it, on one frame.",
            settings=tuple(Setting(points=n, frames=1) for n in (20, 500)),
            methods=("nearest", "linear", "guided", "gbp_handmade"),
            published=False,
        ),
        Suite(
            name="gallery",
            about="Sparsity × method as pictures, one frame: depth, error, precision and sigma.",
            settings=tuple(Setting(points=n, frames=1) for n in GALLERY_POINTS),
            axis="points",
            methods=("linear", "gbp_handmade"),
            published=False,
        ),
        Suite(
            name="acceptance",
            about="What weights must show before they ship, on a whole pool: see docs/evaluation.md.",
            settings=acceptance.SETTINGS,
            needs_weights=True,
            published=False,
            as_used=True,
            judge=acceptance.tables,
        ),
        Suite(
            name="trust",
            about="Whether sigma holds where nothing was measured: 90 % intervals by setting and by place.",
            settings=trust.SETTINGS,
            methods=("spread",),
            published=False,
            as_used=True,
            judge=trust.tables,
            trust=True,
        ),
        Suite(
            name="sizes",
            about="The same scenes with the same points at several sizes, on a whole pool.",
            settings=acceptance.SIZES,
            methods=("none",),
            needs_weights=True,
            published=False,
            as_used=True,
            judge=acceptance.tables,
        ),
        Suite(
            name="sharpness",
            about="How surfaces lie, how sharp edges are, what pattern lies on them: for exact depth.",
            settings=tuple(Setting(points=n) for n in (10, 40, 100, 500)),
            axis="points",
            methods=("linear",),
            published=False,
            surfaces=True,
        ),
        Suite(
            name="prior",
            about="What another network's depth map brings and costs: good and wrong ones from the truth.",
            settings=tuple(Setting(points=n) for n in (1, 10, 50, 500)),
            axis="points",
            methods=("none",),
            needs_weights=True,
            published=False,
        ),
        Suite(
            name="parts",
            about="What each part of weights brings: the same without it, nothing learned anew.",
            settings=tuple(Setting(points=n) for n in (50, 500)),
            axis="points",
            methods=("none",),
            needs_weights=True,
            published=False,
        ),
        Suite(
            name="confidence",
            about="What the uncertainty is worth: dropping the least confident, AUSE, coverage, likelihood.",
            methods=("nearest", "linear", "fast_global", "gbp_handmade"),
        ),
    )
}


def suite(name: str) -> Suite:
    """By name, or an error that lists the names."""
    if name not in SUITES:
        raise InputError(f"unknown suite {name!r}: choose from {', '.join(SUITES)}")
    return SUITES[name]
