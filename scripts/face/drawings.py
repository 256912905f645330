"""Drawings of the page how-it-works: the field as springs, sweeps, the way of an answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from face import canvas
from gbpn import scenes
from gbpn.engine.explanation import film
from gbpn.engine.session import Session
from gbpn.predict import DepthCompleter
from gbpn.sensors import patterns
from gbpn.show import pictures
from gbpn.show.pictures import Array

SCENE, SEED = "living_room", 7
WORDS, GAP = 15, 10
INK, CALM, STRONG, MEASURED = "#181a1f", "#a4abb6", "#0b6bcb", "#d1495b"
SWEEPS = {
    "left_right": "1st sweep: to the right",
    "top_bottom": "2nd: downwards",
    "right_left": "3rd: to the left",
    "bottom_top": "4th: upwards",
}


def draw(completer: DepthCompleter, folder: Path) -> None:
    """Write all of them."""
    field(folder / "field.svg")
    sweeps(completer, folder / "sweeps.webp")
    stages(completer, folder / "stages.webp")


def field(path: Path) -> None:
    """A row of pixels of a wall and a chair: springs between them, cut where the surface ends."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "gbpn", "font.family": "DejaVu Sans", "font.size": 11}
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9.2, 3.9), layout="constrained")
    depth = np.array([4.0, 4.0, 4.0, 4.0, 4.0, 2.2, 2.1, 2.0, 1.9])
    places = np.arange(len(depth))
    for left in places[:-1]:
        cut = left == 4
        style = {"color": CALM, "lw": 1.2, "ls": ":"} if cut else {"color": STRONG, "lw": 2.6}
        axes.plot(
            *_spring(left, depth[left], left + 1, depth[left + 1], turns=0 if cut else 7), **style, zorder=1
        )
    for place in (1, 7):
        axes.plot([place] * 2, [depth[place], depth[place] - 0.75], color=MEASURED, lw=2.6, zorder=1)
        axes.plot(place, depth[place] - 0.75, "s", color=MEASURED, ms=11, zorder=3)
    axes.plot(places, depth, "o", ms=19, mfc="white", mec=INK, mew=1.8, zorder=2)
    for place in places:
        axes.text(
            place, depth[place], f"x{'₁₂₃₄₅₆₇₈₉'[place]}", ha="center", va="center", fontsize=9.5, zorder=4
        )
    notes = (
        (1.25, 3.22, "a measurement s₂\npulls with weight w₂", MEASURED),
        (1.9, 4.32, "pixels of one surface agree: strong edges", STRONG),
        (4.75, 3.3, "an edge of the picture:\nweight ≈ 0, nothing is passed on", "#6b7280"),
        (6.05, 2.5, "a slope: the edge expects a difference r", STRONG),
        (7.25, 1.2, "s₈, w₈", MEASURED),
    )
    for x, y, words, colour in notes:
        axes.text(x, y, words, color=colour, fontsize=10.5, va="center")
    axes.set(xlim=(-0.5, 9.9), ylim=(0.8, 4.6), ylabel="depth, metres", xlabel="pixels of one line")
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _spring(x0: float, y0: float, x1: float, y1: float, turns: int) -> tuple[Array, Array]:
    """A zigzag from one place to the other; a straight line without turns."""
    share = np.linspace(0, 1, 4 * max(turns, 1) + 1)
    swing = 0.07 * np.sin(share * turns * 2 * np.pi) * (turns > 0) * (share > 0.2) * (share < 0.8)
    return x0 + share * (x1 - x0), y0 + share * (y1 - y0) + swing


def sweeps(completer: DepthCompleter, path: Path) -> None:
    """What is believed after each of the first four sweeps, from eight points."""
    session = _session(completer, 8)
    stills = [still for still in film(session) if still.part in SWEEPS][:4]
    low, high = _range()
    cards = []
    places = np.array([[one.x + 0.5, one.y + 0.5] for one in session.measurements])
    paint = pictures.colours(
        np.array([[one.depth for one in session.measurements]]), low, high, pictures.DEPTH
    )[0]
    for still in stills:
        panel = Image.fromarray(pictures.colours(still.depth, low, high, pictures.DEPTH))
        cards.append(canvas.card(canvas.with_points(panel, places, paint, 4), SWEEPS[still.part], WORDS))
    canvas.tiled([cards[:2], cards[2:]], GAP).save(path, quality=86, method=6)


def stages(completer: DepthCompleter, path: Path) -> None:
    """Photo and points, how strongly neighbours are tied, the first answer, the second, σ."""
    session = _session(completer, 100)
    low, high = _range()
    found = list(session.stages())
    height, width = session.size
    top, left = session.corner
    weight = found[0].field.directed().local.weight[0, -1].mean((0, 1))  # [H, W] padded
    ties = np.log(weight[top : top + height, left : left + width].numpy().clip(1e-4))
    sample = scenes.load(SCENE)
    places = np.array([[one.x + 0.5, one.y + 0.5] for one in session.measurements])
    paint = pictures.colours(
        np.array([[one.depth for one in session.measurements]]), low, high, pictures.DEPTH
    )[0]
    photo = canvas.with_points(Image.fromarray(pictures.photo(sample.image)), places, paint, 3)
    ends = float(np.quantile(ties, 0.02)), float(np.quantile(ties, 0.98))
    shown = [
        (photo, "photo and 100 points"),
        (Image.fromarray(pictures.colours(ties, *ends, "bone")), "ties between neighbours"),
        *(
            (
                Image.fromarray(
                    pictures.colours(session.metres(stage.inference.belief.mean), low, high, pictures.DEPTH)
                ),
                words,
            )
            for stage, words in zip(found, ("first field, inferred", "second field, inferred"), strict=False)
        ),
    ]
    cards = [canvas.card(panel, words, WORDS) for panel, words in shown]
    canvas.tiled([cards[:2], cards[2:]], GAP).save(path, quality=86, method=6)


def _session(completer: DepthCompleter, count: int) -> Session:
    sample = scenes.load(SCENE)
    assert sample.target is not None
    session = completer.session(sample.image, sample.intrinsics)
    sparse = patterns.random_points(sample.target, np.random.default_rng(SEED), count)[0].numpy()
    for row, column in zip(*np.nonzero(sparse), strict=True):
        session.add(int(column), int(row), float(sparse[row, column]))
    return session


def _range() -> tuple[float, float]:
    target = scenes.load(SCENE).target
    assert target is not None
    return pictures.value_range(target[0].numpy())
