"""Files to take away, as bytes."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
from PIL import Image

from gbpn.answer.completed import CompletedDepth
from gbpn.engine.measured_pixels import Measurement
from gbpn.engine.session import Session
from gbpn.errors import InputError
from gbpn.formats import glb
from gbpn.how import How
from gbpn.studio.material import Material

__all__ = ["EXPORTS", "PNG", "depth_png", "make", "npy", "png", "written"]

_INLINE = 200
"""Points up to which the snippet lists them itself; more are read from points.csv."""


def make(what: str, session: Session, material: Material, weights: str) -> tuple[str, str, bytes]:
    """(file name, media type, content) of one of `EXPORTS`."""
    if what not in EXPORTS:
        raise InputError(f"there is no export {what!r}: choose from {', '.join(EXPORTS)}")
    media_type, needs_answer, write = EXPORTS[what]
    if needs_answer and not session.measurements:
        raise InputError("there is nothing to take away yet: measure a point first")
    return f"{_plain(material.name)}_{what}", media_type, write(session, material, weights)


def _points_table(points: list[Measurement]) -> str:
    """CSV of x, y, depth, std."""
    return "\n".join(["x,y,depth,std", *(f"{p.x},{p.y},{p.depth!r},{p.std!r}" for p in points)]) + "\n"


def _snippet(session: Session, material: Material, weights: str) -> str:
    """Python that repeats this very result."""
    name, points = _plain(material.name), session.measurements
    lines = ["import gbpn"]
    if len(points) > _INLINE:
        lines.append("import numpy as np")
    if material.scene:
        lines.append("from gbpn import scenes")
    lines += [
        "",
        f"completer = gbpn.DepthCompleter.from_pretrained({weights!r}{_unusual(session)})",
    ]
    if material.scene:
        lines += [f"scene = scenes.load({material.scene!r})"]
        picture, camera = "scene.image", "scene.intrinsics"
    else:
        camera = repr(list(material.intrinsics))
        lines += [f"# {name}_image.png is the picture as the studio shows it, from its list of files"]
        picture = repr(f"{name}_image.png")
    lines.append(f"session = completer.session({picture}, {camera})")
    if len(points) > _INLINE:
        lines += [
            f"table = np.loadtxt({name + '_points.csv'!r}, delimiter=',', skiprows=1)",
            "x, y, depth, std = table.T",
            "session.add(x, y, depth, std)",
        ]
    elif points:
        columns = [[getattr(p, part) for p in points] for part in ("x", "y", "depth", "std")]
        lines += ["session.add(", *(f"    {column}," for column in columns), ")"]
    lines += [
        "",
        "result = session.result",
        "result.depth, result.confidence  # [H, W] metres, and in [0, 1)",
    ]
    if session.two_stages and session.pipeline.calibration is not None:
        lines.append("result.std  # [H, W] metres")
    lines.append(f"result.preview({name + '_preview.png'!r})")
    return "\n".join(lines) + "\n"


def _unusual(session: Session) -> str:
    """What this server was asked besides the usual, as arguments; the device always."""
    how = session.engine.how
    usual = session.engine.model.settled(How(device=how.device))
    names = [one.name for one in fields(How) if one.name not in ("device", "working_size")]
    changed = [name for name in names if getattr(how, name) != getattr(usual, name)]
    return "".join(f", {name}={getattr(how, name)!r}" for name in ["device", *changed])


def npy(array: np.ndarray) -> bytes:
    """As `np.save`."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def png(pixels: np.ndarray) -> bytes:
    """[H, W] or [H, W, 3] uint8."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


def written(name: str, write: Callable[[Path], object]) -> bytes:
    """What `write` writes to a path."""
    with tempfile.TemporaryDirectory(prefix="gbpn-studio-") as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def depth_png(result: CompletedDepth) -> bytes:
    """16 bit, millimetres or as `CompletedDepth.to_png` says."""
    return written("depth.png", result.to_png)


def _std(session: Session) -> bytes:
    if not session.result.calibrated:
        raise InputError("these weights state no sigma: take the confidence")
    return npy(session.result.std)


def _plain(name: str) -> str:
    """Letters and digits only: it becomes a file name and stands in code."""
    stem = name.rsplit(".", 1)[0] if "." in name[1:] else name
    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in stem).strip("_")
    return kept[:40] or "picture"


_Writer = Callable[[Session, Material, str], bytes]
PNG, _BINARY, _GLTF = "image/png", "application/octet-stream", "model/gltf-binary"
EXPORTS: dict[str, tuple[str, bool, _Writer]] = {
    "depth.png": (PNG, True, lambda s, m, w: depth_png(s.result)),
    "depth.npy": (_BINARY, True, lambda s, m, w: npy(s.result.depth)),
    "std.npy": (_BINARY, True, lambda s, m, w: _std(s)),
    "confidence.npy": (_BINARY, True, lambda s, m, w: npy(s.result.confidence)),
    "mask.png": (PNG, True, lambda s, m, w: png(s.result.observed.astype(np.uint8) * 255)),
    "cloud.ply": (_BINARY, True, lambda s, m, w: written("cloud.ply", s.result.to_point_cloud)),
    "cloud.glb": (_GLTF, True, lambda s, m, w: glb.glb(s.result.depth, m.image, m.intrinsics, mesh=False)),
    "mesh.glb": (_GLTF, True, lambda s, m, w: glb.glb(s.result.depth, m.image, m.intrinsics, mesh=True)),
    "preview.png": (PNG, True, lambda s, m, w: written("preview.png", s.result.preview)),
    "image.png": (PNG, False, lambda s, m, w: png(m.image)),
    "points.csv": ("text/csv", False, lambda s, m, w: _points_table(s.measurements).encode()),
    "repeat.py": ("text/x-python", True, lambda s, m, w: _snippet(s, m, w).encode()),
}
"""Name → (media type, whether an answer is needed, what writes it)."""
