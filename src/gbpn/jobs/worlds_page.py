"""The page beside a drawn scene: what its frames look like, and numbers that say whether to trust them."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from PIL import Image

from gbpn.files.atomic import write_bytes, write_text
from gbpn.show.html_page import document, embedded
from gbpn.show.pictures import DEPTH, Array, colours, grid, titled
from gbpn.worlds.pool_scene import PoolScene
from gbpn.worlds.statistics import EDGE, POINTS, STEPS, SceneNumbers, numbers_of, stored_depth

__all__ = ["write_page"]

_PHOTOGRAPHS, _COLUMNS, _TILE = 60, 6, 200
_CLOSELY, _WIDE = 8, 240
_STYLE = """
table { border-collapse: collapse; margin: 12px 0; } td, th { padding: 4px 14px 4px 0; text-align: right;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; font-weight: normal;
  white-space: nowrap; } th { white-space: normal; vertical-align: bottom; }
td:first-child, th:first-child { text-align: left; } th { color: var(--faint); }
p { max-width: 75ch; } svg { width: 100%; max-width: 760px; height: auto; } .key { color: var(--faint); }
.own { fill: var(--accent); } .other { fill: none; stroke: var(--ink); stroke-width: 1.5; }
svg text { font-size: 11px; fill: var(--faint); }
"""


def write_page(scene: PoolScene, *, beside: Sequence[Path] = (), rate: float | None = None) -> Path:
    """`index.html` and `sheet.jpg` in the scene's folder; `beside` are scenes of the pool to compare with.

    rate  frames an hour, all processes together
    """
    numbers = [numbers_of(folder) for folder in (scene.folder, *beside)]
    chosen = _drawn_by_lot(scene, _PHOTOGRAPHS)
    sheet = _jpeg(_sheet(scene, chosen))
    write_bytes(scene.folder / "sheet.jpg", sheet)
    own = numbers[0]
    kind = scene.wanted.kind
    parts = [
        f"<h1>{own.frames:,} drawn {kind}</h1><p>{escape(_sentence(scene, own, rate))}</p>",
        f"<h2>{len(chosen)} of them, drawn at random</h2>{_image(sheet)}",
        f"<h2>Closely</h2>{_image(_jpeg(_rows(scene, chosen[:_CLOSELY])))}",
        f"<h2>Depth</h2>{_histogram(numbers)}{_depths(numbers)}",
        _sensors(own),
        _things(own),
        _licences(scene),
    ]
    return write_text(
        scene.folder / "index.html", document(f"{kind}: drawn worlds", "\n".join(parts), style=_STYLE)
    )


def _sentence(scene: PoolScene, own: SceneNumbers, rate: float | None) -> str:
    wanted = scene.wanted
    width, height = wanted.size
    told = (
        f"Seed {wanted.seed}, {width}×{height} pixels, {wanted.frames_of_a_world} views of each world, "
        f"role {scene.role}, models: {'CC0 only' if wanted.licence == 'cc0' else 'any free licence'}."
    )
    return told + (f" Drawn at {rate:,.0f} frames an hour." if rate else "")


def _drawn_by_lot(scene: PoolScene, count: int) -> list[int]:
    """Frames of different worlds as far as there are enough."""
    done = sorted(scene.done())
    rng = np.random.default_rng(0)
    order = rng.permutation(len(done))
    worlds: set[int] = set()
    first: list[int] = []
    later: list[int] = []
    for k in order:
        world = scene.wanted.world_of(done[k])
        (later if world in worlds else first).append(done[k])
        worlds.add(world)
    return (first + later)[:count]


def _sheet(scene: PoolScene, numbers: Sequence[int]) -> Array:
    tiles = [_small(_photograph(scene, number), _TILE) for number in numbers]
    return grid([tiles[k : k + _COLUMNS] for k in range(0, len(tiles), _COLUMNS)])


def _rows(scene: PoolScene, numbers: Sequence[int]) -> Array:
    """Photograph, exact depth and each sensor of some frames."""
    folders = ["depth", *sorted(scene.map_folders() - {"depth", "ring"})]
    rows = []
    for number in numbers:
        exact = stored_depth(scene.path("depth", number), scene.scale)
        known = exact[exact > 0]
        low, high = np.quantile(known, (0.02, 0.95)) if known.size else (0.0, 1.0)
        panels = [titled(_small(_photograph(scene, number), _WIDE), f"{number}")]
        for folder in folders:
            depth = stored_depth(scene.path(folder, number), scene.scale)
            panels.append(titled(_coloured(depth, float(low), float(high)), folder.replace("_", " ")))
        rows.append(panels)
    return grid(rows)


def _coloured(depth: Array, low: float, high: float) -> Array:
    """A map as wide as the panel; few measurements are drawn larger, the nearest on top."""
    share = (depth > 0).mean()
    if 0 < share < 0.3:
        from scipy import ndimage

        nearness = np.where(depth > 0, 1 / np.maximum(depth, 1e-6), 0)
        nearness = ndimage.maximum_filter(nearness, 3 if share > 0.02 else 5)
        depth = np.where(nearness > 0, 1 / np.maximum(nearness, 1e-9), 0)
    logarithm = np.log(np.where(depth > 0, depth, np.nan))
    picture = colours(logarithm, float(np.log(max(low, 0.1))), float(np.log(max(high, 0.2))), DEPTH)
    return _small(picture, _WIDE, Image.Resampling.NEAREST)


def _photograph(scene: PoolScene, number: int) -> Array:
    with Image.open(scene.path("color", number)) as file:
        return np.asarray(file.convert("RGB"))


def _small(picture: Array, width: int, by: Image.Resampling = Image.Resampling.BOX) -> Array:
    height = max(1, round(picture.shape[0] * width / picture.shape[1]))
    return np.asarray(Image.fromarray(picture).resize((width, height), by))


def _jpeg(picture: Array) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="JPEG", quality=88)
    return file.getvalue()


def _image(data: bytes) -> str:
    return f'<img alt="" src="{embedded(data, "jpeg")}">'


def _histogram(numbers: Sequence[SceneNumbers]) -> str:
    """Bars of this scene, a line for each other one; metres on a logarithmic axis."""
    width, height, foot = 760, 220, 24
    highest = max(max(one.histogram) for one in numbers) or 1.0
    step = width / (len(STEPS) - 1)
    drawn = []
    for one in numbers:
        tops = [height - share / highest * (height - 12) for share in one.histogram]
        if one is numbers[0]:
            drawn += [
                f'<rect class="own" x="{k * step:.1f}" y="{top:.1f}" '
                f'width="{step - 1:.1f}" height="{height - top:.1f}"/>'
                for k, top in enumerate(tops)
            ]
        else:
            path = " ".join(
                f"{k * step:.1f},{top:.1f} {(k + 1) * step:.1f},{top:.1f}" for k, top in enumerate(tops)
            )
            drawn.append(f'<polyline class="other" points="{path}"/>')
    low, high = np.log(STEPS[0]), np.log(STEPS[-1])
    for metres in (0.5, 1, 2, 4, 8, 16, 32, 64, 128):
        x = (np.log(metres) - low) / (high - low) * width
        drawn.append(f'<text x="{x:.1f}" y="{height + 16}" text-anchor="middle">{metres:g} m</text>')
    others = f"; line: {', '.join(escape(one.name) for one in numbers[1:])}" if len(numbers) > 1 else ""
    key = f'<p class="key">Share of pixels by depth. Bars: {escape(numbers[0].name)}{others}</p>'
    return f'<svg viewBox="0 0 {width} {height + foot}">{"".join(drawn)}</svg>{key}'


def _depths(numbers: Sequence[SceneNumbers]) -> str:
    head = (
        "scene", "frames", "with depth", "5 %", "25 %", "half", "75 %", "95 % of pixels nearer than",
        f"edge pixels (steps over {EDGE:.0%})", f"linear interpolation of {POINTS} points errs by",
    )  # fmt: skip
    rows = [
        (
            one.name,
            f"{one.frames:,}",
            f"{one.known:.1%}",
            *(f"{metres:.2f} m" for metres in one.quantiles),
            f"{one.edges:.1%}",
            f"{one.linear:.3f} m",
        )
        for one in numbers
    ]
    return _table(head, rows)


def _sensors(own: SceneNumbers) -> str:
    if not own.sensors:
        return ""
    head = ("sensor", "pixels measured", "median error", "more than 5 % off")
    rows = [(s.name, f"{s.measured:.1%}", f"{s.error * 1000:.1f} mm", f"{s.apart:.1%}") for s in own.sensors]
    told = (
        "<p>Against the exact depth of the same pixel: what is seen past an edge differs, as it should.</p>"
    )
    return f"<h2>Sensors</h2>{told}{_table(head, rows)}"


def _things(own: SceneNumbers) -> str:
    if own.things is None:
        return ""
    named = ", ".join(f"{escape(name)} {share:.0%}" for name, share in own.seen[:60])
    told = f"{own.things:g} kinds of things in the usual frame. Frames that show them: {named}."
    return f"<h2>Things</h2><p>{told}</p>"


def _licences(scene: PoolScene) -> str:
    credits = [credit for credit, _ in scene.credits()]
    if not credits:
        return "<h2>Licences</h2><p>No model or picture of others is in these frames.</p>"
    counted = Counter((credit.licence, credit.creator) for credit in credits)
    rows = [(licence, creator, str(count)) for (licence, creator), count in sorted(counted.items())]
    told = f"<p>{len(credits)} models of others; <code>CREDITS.md</code> lists them all.</p>"
    return f"<h2>Licences</h2>{told}{_table(('licence', 'creator', 'models'), rows)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"
