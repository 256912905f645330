"""The page of `gbpn demo`: one scene to play with, all others, numbers; one file that needs nothing else."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from gbpn.measurements.validity import measured
from gbpn.show import pictures
from gbpn.show.html_page import document, embedded
from gbpn.show.pictures import Array

if TYPE_CHECKING:
    from gbpn.jobs.demo import Shown
    from gbpn.predict.completer import DepthCompleter

__all__ = ["page"]

_ENLARGED = 2
"""Rendered scenes are small; their pictures are drawn so many times as large."""
_HERO = "living_room", "500"
_MILLIMETRES = 1000
_RAMP = 12
"""Colours that a scale is drawn with."""
_SIGMA = pictures.ERROR


def page(shown: Sequence[Shown], completer: DepthCompleter) -> str:
    """The whole document, pictures inside."""
    good = sorted((one for one in shown if not _is_weak(one)), key=_share)
    weak = [one for one in shown if _is_weak(one)]
    hero = next((one for one in shown if (one.case.scene, one.case.name) == _HERO), (good or list(shown))[0])
    config = completer.model.config
    body = _filled(
        "demo.html",
        sentence=escape(_sentence(hero)),
        hero=_hero(hero),
        gallery="".join(_card(one) for one in good if one is not hero),
        model=escape(config.name),
        iterations="+".join(map(str, config.iterations)),
        device=escape(str(completer.how.device)),
        table=_table(shown),
        weak=_filled("demo_weak.html", gallery="".join(map(_card, weak))) if weak else "",
    )
    return document("gbpn demo", body, style=_static("demo.css"), script=_static("demo.js"))


def _filled(name: str, **parts: str) -> str:
    return Template(_static(name)).substitute(parts)


def _static(name: str) -> str:
    return (files("gbpn.show") / "static" / name).read_text(encoding="utf-8")


def _share(shown: Shown) -> float:
    """Error as a share of what interpolation errs."""
    return shown.rmse / shown.interpolated


def _is_weak(shown: Shown) -> bool:
    """No better than interpolation, or a single measurement."""
    return shown.points <= 1 or not _share(shown) < 1


def _sentence(shown: Shown) -> str:
    share = 1 - _share(shown)
    compared = f", {share:.0%} less than interpolating between the points" if share > 0 else ""
    error = f"the depth of all others errs by {_length(shown.rmse)}{compared}."
    return f"{shown.points} points of this room were measured; {error}"


def _title(shown: Shown) -> str:
    return shown.case.scene.replace("_", " ").capitalize()


def _length(metres: float) -> str:
    return f"{100 * metres:.0f} cm" if metres < 1 else f"{metres:.1f} m"


# --- the scene to play with --------------------------------------------------------------------------------


def _hero(shown: Shown) -> str:
    sample, result = shown.sample, shown.result
    assert sample.target is not None
    exact = np.where(measured(sample.target[0]).numpy(), sample.target[0].numpy(), np.nan)
    low, high = pictures.value_range(exact)
    layers = [("depth", "depth", result.depth, low, high, pictures.DEPTH)]
    if result.calibrated:
        top = pictures.value_range(result.std)[1]
        layers.append(("sigma", "± sigma", result.std, 0.0, top, _SIGMA))
    error = np.abs(result.depth - exact)
    layers.append(("error", "error", error, 0.0, pictures.value_range(error)[1], pictures.ERROR))
    layers.append(("exact", "exact depth", exact, low, high, pictures.DEPTH))
    hidden, buttons, scales = [], [], []
    for number, (name, title, values, bottom, top, palette) in enumerate(layers):
        picture = _address(_enlarged(pictures.colours(values, bottom, top, palette)))
        hidden.append(f'<img id="layer-{name}" hidden alt="" src="{picture}">')
        pressed = "true" if number == 0 else "false"
        buttons.append(f'<button data-layer="layer-{name}" aria-pressed="{pressed}">{escape(title)}</button>')
        scales.append(_scale(f"layer-{name}", bottom, top, palette, hidden=number > 0))
    return _filled(
        "demo_hero.html",
        scene=escape(_title(shown)),
        points=str(shown.points),
        photo=_address(_points(shown, low, high)),
        first=_address(_enlarged(pictures.colours(result.depth, low, high, pictures.DEPTH))),
        scales="".join(scales),
        buttons="".join(buttons),
        layers="".join(hidden),
        data=_data(shown),
    )


def _data(shown: Shown) -> str:
    """What the script draws from: camera, millimetres of depth and sigma, colours."""
    result = shown.result
    height, width = result.depth.shape
    camera = shown.sample.intrinsics
    numbers = {"width": width, "height": height, "fx": float(camera[0, 0]), "fy": float(camera[1, 1])}
    numbers |= {"cx": float(camera[0, 2]), "cy": float(camera[1, 2])}
    std = result.std if result.calibrated else np.zeros_like(result.depth)
    arrays = {
        "hero-depth": _stored(result.depth),
        "hero-sigma": _stored(std),
        "hero-colour": pictures.photo(shown.sample.image),
    }
    parts = [f'<script type="application/json" id="hero-camera">{json.dumps(numbers)}</script>']
    for name, array in arrays.items():
        text = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
        parts.append(f'<script type="text/plain" id="{name}">{text}</script>')
    return "".join(parts)


def _stored(metres: Array) -> Array:
    """Whole millimetres up to 65 m; 0 where nothing is known."""
    stored: Array = np.nan_to_num(metres * _MILLIMETRES, nan=0.0, posinf=0.0).clip(0, 65535).astype("<u2")
    return stored


def _scale(name: str, low: float, high: float, palette: str, *, hidden: bool) -> str:
    colours = pictures.colours(np.linspace(low, high, _RAMP)[None], low, high, palette)[0]
    ramp = ", ".join(f"rgb({r}, {g}, {b})" for r, g, b in colours)
    return (
        f'<div data-scale="{name}"{" hidden" if hidden else ""}><div class="scale" '
        f'style="background: linear-gradient(90deg, {ramp})"></div>'
        f'<div class="ends"><span>{low:.2g} m</span><span>{high:.2g} m</span></div></div>'
    )


# --- all others --------------------------------------------------------------------------------------------


def _card(shown: Shown) -> str:
    assert shown.sample.target is not None
    low, high = pictures.value_range(shown.sample.target[0].numpy())
    height, width = shown.result.depth.shape
    depth = _enlarged(pictures.colours(shown.result.depth, low, high, pictures.DEPTH))
    doubt = ""
    if shown.result.calibrated:
        doubt = (
            f"; half of its pixels claim to be surer than ± {_length(float(np.nanmedian(shown.result.std)))}"
        )
    return _filled(
        "demo_card.html",
        shape=' class="wide"' if width > 2 * height else "",
        scene=escape(_title(shown)),
        caption=escape(shown.case.caption),
        photo=_address(_points(shown, low, high)),
        depth=_address(depth),
        numbers=f"errs by {_length(shown.rmse)} (interpolation: {_length(shown.interpolated)}){doubt}",
    )


def _points(shown: Shown, low: float, high: float) -> Array:
    """The photo with the measurements on it, larger than life."""
    enlarged = _enlarged(pictures.photo(shown.sample.image))
    rows, columns = np.nonzero(shown.sample.sparse[0].numpy())
    values = shown.sample.sparse[0].numpy()[rows, columns]
    centre = _ENLARGED // 2
    return pictures.dotted(
        enlarged,
        rows * _ENLARGED + centre,
        columns * _ENLARGED + centre,
        pictures.colours(values[None], low, high, pictures.DEPTH)[0],
    )


def _enlarged(picture: Array) -> Array:
    size = (picture.shape[1] * _ENLARGED, picture.shape[0] * _ENLARGED)
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BICUBIC))


def _address(picture: Array) -> str:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format="JPEG", quality=86)
    return embedded(buffer.getvalue(), "jpeg")


def _table(shown: Sequence[Shown]) -> str:
    heads = ["scene", "measured", "points", "error, m", "interpolation, m", "truth within ± σ", "seconds"]
    rows = [
        [
            one.case.scene.replace("_", " "),
            one.case.caption,
            str(one.points),
            f"{one.rmse:.3f}",
            f"{one.interpolated:.3f}",
            "–" if one.within is None else f"{one.within:.0%}",
            f"{one.seconds:.2f}",
        ]
        for one in shown
    ]
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
