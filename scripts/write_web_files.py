"""What the page shares with the package, written from the package: palettes, and examples for its tests.

python scripts/write_web_files.py

web/src/palettes.ts      the colours of `gbpn.show.pictures`
web/tests/colours.json   values and their colours
web/tests/frames.json    one message of every kind, as frame and in plain words
web/tests/engine.json    what the engine's parts are in Python, which are its twins
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gbpn.engine import resizing
from gbpn.measurements import agreement, outliers
from gbpn.show import pictures
from gbpn.sigma import checkerboard, held_out
from gbpn.studio import protocol

WEB = Path(__file__).resolve().parents[1] / "web"
ENTRIES = 256
PALETTES = {"depth": pictures.DEPTH, "confidence": pictures.CONFIDENCE, "error": pictures.ERROR}


def palettes() -> str:
    """TypeScript with all entries as base64 of RGB bytes."""
    share = (np.arange(ENTRIES) + 0.5)[None] / ENTRIES
    lines = [
        "// Written by scripts/write_web_files.py: the colours of the previews, 256 RGB entries each.",
        "",
    ]
    for name, palette in PALETTES.items():
        table = base64.b64encode(pictures.colours(share, 0.0, 1.0, palette).tobytes()).decode("ascii")
        lines.append(f'export const {name.upper()} =\n  "{table}";')
    red, green, blue = pictures.UNKNOWN
    lines.append(f"export const UNKNOWN: readonly [number, number, number] = [{red}, {green}, {blue}];")
    return "\n".join(lines) + "\n"


def colours() -> str:
    """Values with their colours, and a colour range."""
    values = np.concatenate([np.linspace(0.3, 7.2, 40), [np.nan, np.inf]])
    examples = [
        {
            "name": name,
            "low": 0.5,
            "high": 6.5,
            "values": _plain(values),
            "colours": pictures.colours(values[None], 0.5, 6.5, palette)[0].tolist(),
        }
        for name, palette in PALETTES.items()
    ]
    some = np.random.default_rng(0).normal(2, 1, 200).astype(np.float32)
    low, high = pictures.value_range(some)
    return _json({"palettes": examples, "spread": {"values": _plain(some), "low": low, "high": high}})


def frames() -> str:
    """Every message, from the page and from the server."""
    found = {
        who: [{"fields": _fields(message), "frame": protocol.encode(message).hex()} for message in messages]
        for who, messages in (("page", _from_page()), ("server", _from_server()))
    }
    return _json({"version": protocol.VERSION, **found})


def engine() -> str:
    """Inputs of the engine's parts in NumPy and torch, and what these make of them."""
    return _json(
        {
            "checks": [_checked(*case) for case in _sparse_maps()],
            "explained": [_explained(seed) for seed in range(4)],
            "sizes": [
                {"given": given, "factor": resizing.working_scale(*given)}
                for given in (
                    (480, 640, 554.0, 3, 260.0),
                    (3024, 4032, 3100.0, 900, 260.0),
                    (120, 160, 100.0, 40, 260.0),
                )
            ],
            "even": _even(),
        }
    )


def _sparse_maps() -> list[tuple[str, np.ndarray]]:
    """Measurements [H, W] of several densities and patterns, outliers included."""
    rng = np.random.default_rng(0)
    depth = (2 + np.linspace(0, 3, 61)[None] + 0.01 * rng.standard_normal((43, 61))).astype(np.float32)
    maps = {share: np.where(rng.random(depth.shape) < share, depth, 0) for share in (0.005, 0.1, 0.95)}
    lines = np.zeros_like(depth)
    lines[::6, ::2] = depth[::6, ::2]
    wrong = maps[0.1].copy()
    wrong[tuple(np.argwhere(wrong > 0)[[5, 90]].T)] *= 9
    return [
        ("few", maps[0.005]),
        ("some", maps[0.1]),
        ("all", maps[0.95]),
        ("lines", lines),
        ("wrong", wrong),
    ]


def _checked(name: str, sparse: np.ndarray) -> dict[str, Any]:
    suspect = outliers.suspects(torch.from_numpy(sparse)[None, None])
    held = held_out.drawn_patches(sparse > 0)
    return {
        "name": name,
        "shape": list(sparse.shape),
        "depth": _short(sparse),
        "held": np.flatnonzero(held).tolist(),
        "trust": float(agreement.trust(agreement.certainty(sparse), 32.0).item()),
        "suspects": [] if suspect is None else np.flatnonzero(suspect.numpy()).tolist(),
    }


def _explained(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sigma = rng.uniform(0.01, 0.05, 60)
    error = np.abs(rng.standard_normal(60)) * sigma * (0.5, 1.0, 3.0, 1.0)[seed] + (seed == 3) * 0.03
    return {"error": error.tolist(), "sigma": sigma.tolist(), "found": held_out.explain(error, sigma)}


def _even() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:37, :50]
    logit = (np.sin(x / 9) + 0.2 * (-1.0) ** (x + y) + 0.1 * rng.standard_normal(x.shape)).astype(np.float32)
    known = rng.random(x.shape) < 0.9
    even = checkerboard.without_checkerboard(logit, known)
    return {
        "shape": [37, 50], "logit": _short(logit), "known": known.ravel().tolist(), "even": _short(even)
    }  # fmt: skip


def _from_page() -> list[Any]:
    x, y = np.array([3, 0], np.int32), np.array([1, 2], np.int32)
    metres, noise = np.array([1.5, 2.25], np.float32), np.array([0, 0.125], np.float32)
    content = np.arange(5, dtype=np.uint8)
    return [
        protocol.OpenScene(id=1, name="kitchen"),
        protocol.OpenUpload(
            id=2, name="Küche.jpg", depth_type=".npy", scale=1000.5, camera=[260.5, 261.5, 1.5, 2.5],
            camera_type=".json", picture=content, depth=content[:3], camera_file=content[:2],
        ),
        protocol.OpenUpload(
            id=3, name="p", depth_type="", scale=0.5, camera=[], camera_type="", picture=content
        ),
        protocol.SetPoints(id=4, x=x, y=y, depth=metres, std=noise),
        protocol.TakePattern(id=5, pattern="lidar", count=500, seed=7),
        protocol.Suggest(id=6, count=5),
        protocol.Film(id=7),
        protocol.Listen(id=8, x=3, y=4),
        protocol.Compare(id=9, to="exact"),
        protocol.FindOutliers(id=10, limit=4.5),
        protocol.Export(id=11, what="depth.png"),
    ]  # fmt: skip


def _from_server() -> list[Any]:
    places, numbers = np.array([3, 0, 9], np.int32), np.array([1.5, 2.25, 0.5], np.float32)
    grid = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    picture = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    return [
        protocol.Welcome(
            protocol=protocol.VERSION, version="0.1.0", model="small-2", stages=2, has_std=True,
            has_exact=False, learned_edges=True, scenes=["kitchen"], exports=["depth.png"],
            most_points=20000, upload_bytes=1000, offers=["film", "suggest"],
        ),
        protocol.Opened(
            reply=1, name="Küche", intrinsics=[1.5, 2.5, 3.5, 4.5], notices=["60°"], picture=picture,
            truth=grid, x=places, y=places, depth=numbers,
        ),
        protocol.Maps(
            reply=2, stage="last", seconds=0.25, notices=[], depth=grid, confidence=grid / 2, std=grid / 8
        ),
        protocol.Maps(reply=2, stage="first", seconds=0.25, notices=[], depth=grid),
        protocol.Taken(reply=3, x=places, y=places, depth=numbers),
        protocol.Suggested(reply=4, x=places, y=places, gain=numbers),
        protocol.FilmStill(reply=5, number=0, count=28, stage=1, iteration=1, part="left_right", depth=grid),
        protocol.Listened(reply=6, x=1, y=2, strength=grid, shares=numbers),
        protocol.Compared(reply=7, to="first", depth=grid),
        protocol.Outliers(reply=8, x=places, y=places, expected=numbers, sigmas=numbers),
        protocol.File(reply=9, name="a.npy", media_type="image/png", content=np.arange(9, dtype=np.uint8)),
        protocol.Waiting(reply=10, ahead=3),
        protocol.Failed(reply=11, message="no: do this"),
    ]  # fmt: skip


def _fields(message: Any) -> dict[str, Any]:
    """In plain words: arrays as type, shape and values."""
    out: dict[str, Any] = {"kind": type(message).__name__}
    for name, value in vars(message).items():
        if isinstance(value, np.ndarray):
            kind = value.dtype.str[1:]
            out[name] = {"type": kind, "shape": list(value.shape), "values": value.ravel().tolist()}
        elif value is not None:
            out[name] = value
    return out


def _plain(values: np.ndarray) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def _short(values: np.ndarray) -> list[float]:
    """As few digits as give back the same float32."""
    return [float(f"{value:.9g}") for value in values.ravel()]


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False) + "\n"


FILES = {
    "src/palettes.ts": palettes,
    "tests/colours.json": colours,
    "tests/frames.json": frames,
    "tests/engine.json": engine,
}

if __name__ == "__main__":
    for name, write in FILES.items():
        (WEB / name).write_text(write(), encoding="utf-8")
