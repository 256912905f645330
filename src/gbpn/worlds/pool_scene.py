"""A scene of the pool layout on the disk: frames are added one by one, each whole or not there.

FOLDER/meta.json             settings, depth_scale, role
FOLDER/color/000123.jpg      written last: a frame that has its picture is complete
FOLDER/depth/000123.png      exact, 16 bits
FOLDER/camera/000123.json    K, pose (camera to world), world, what is seen, models used
FOLDER/<sensor>/000123.png
FOLDER/CREDITS.md            every model in these worlds, whose it is, and under which licence
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from gbpn.errors import DatasetError, InputError
from gbpn.files.atomic import checksum, remove_leftovers, replacing, write_bytes, write_text
from gbpn.worlds.assets import Stock
from gbpn.worlds.frame import THROUGH, DrawnFrame, Wanted
from gbpn.worlds.kinds import KINDS
from gbpn.worlds.lens import jpeg
from gbpn.worlds.scene import Credit
from gbpn.worlds.sensing.laser import Reading
from gbpn.worlds.sensing.rig import stored

__all__ = ["ROLES", "PoolScene"]

ROLES = ("train", "evaluation")
_FASTEST = 1
"""Compression of PNG: a third of the time of the usual one for a tenth more bytes."""


class PoolScene:
    """A folder of frames with equal settings."""

    def __init__(self, folder: Path, wanted: Wanted, role: str, stock: Stock | None) -> None:
        """A scene at `folder`, which `begin` makes."""
        if role not in ROLES:
            raise InputError(f"role must be one of {', '.join(ROLES)}; got {role!r}")
        self.folder, self.wanted, self.role = folder, wanted.checked(), role
        self._stock = stock

    def begin(self) -> None:
        """Make the folder, or go on in it; raises where other frames lie there already."""
        path = self.folder / "meta.json"
        meta = self._meta()
        if path.is_file():
            before = _settings(path)
            changed = [key for key, value in meta["drawn"].items() if before.get(key, False) != value]
            if changed:
                told = "; ".join(
                    f"{key} {before.get(key)} there, {meta['drawn'][key]} here" for key in changed
                )
                raise InputError(
                    f"{self.folder} has frames of other settings ({told}): give the same, or another --out"
                )
        elif self.folder.is_dir() and any(self.folder.iterdir()):
            raise InputError(f"{self.folder} is not empty and has no drawn frames: choose another --out")
        write_text(path, json.dumps(meta, indent=1) + "\n")

    @property
    def scale(self) -> float:
        """Stored depth is metres times this."""
        return KINDS[self.wanted.kind].depth_scale

    def done(self) -> set[int]:
        """Numbers of the complete frames."""
        return {int(path.stem) for path in self.folder.glob("color/*.jpg") if path.stem.isdigit()}

    def add(self, frame: DrawnFrame) -> None:
        """Write a frame; its picture comes last."""
        name = _name(frame.number)
        maps = {"depth": frame.depth}
        if THROUGH in (self.wanted.sensors or ()):
            maps[THROUGH] = frame.through
        exact = {folder: Reading(depth=depth) for folder, depth in maps.items()}
        for folder, values in stored(exact | frame.readings, self.scale).items():
            with replacing(self.folder / folder / f"{name}.png") as temporary:
                Image.fromarray(values).save(temporary, format="PNG", compress_level=_FASTEST)
        camera = {
            "K": np.round(frame.view.intrinsics, 6).tolist(),
            "pose": np.round(frame.view.pose, 9).tolist(),
            "world": self.wanted.world_of(frame.number),
            **frame.facts,
            "seen": frame.seen,
            "models": list(frame.credits),
        }
        write_text(self.folder / "camera" / f"{name}.json", json.dumps(camera))
        write_bytes(self.folder / "color" / f"{name}.jpg", jpeg(frame.image, frame.quality))

    def path(self, folder: str, number: int) -> Path:
        """The file of a frame in one of the folders of pictures."""
        return self.folder / folder / f"{_name(number)}.{'jpg' if folder == 'color' else 'png'}"

    def map_folders(self) -> set[str]:
        """Folders of depth maps and the like."""
        return {path.name for path in self.folder.iterdir() if path.is_dir()} - {"camera", "color"}

    def camera(self, number: int) -> dict[str, Any]:
        """What `camera/` says of a frame."""
        path = self.folder / "camera" / f"{_name(number)}.json"
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DatasetError(f"{path}: not readable ({error}): delete its picture in color/") from error
        return dict(read)

    def tidy(self) -> None:
        """Remove what killed processes left half written."""
        for folder in (self.folder, *(path for path in self.folder.iterdir() if path.is_dir())):
            remove_leftovers(folder)

    def credits(self) -> list[tuple[Credit, int]]:
        """Each model that is used, and in how many frames."""
        used = Counter(name for number in sorted(self.done()) for name in self.camera(number)["models"])
        known = {a.credit.name: a.credit for a in self._stock.assets} if self._stock is not None else {}
        missing = sorted(set(used) - set(known))
        if missing:
            raise DatasetError(f"{self.folder}: no model {missing[0]!r} among the installed libraries")
        return [(known[name], used[name]) for name in sorted(used)]

    def write_credits(self) -> Path:
        """CREDITS.md: to be kept beside the frames, and beside weights that were trained on them."""
        rows = self.credits()
        lines = [f"# Credits of {len(self.done())} drawn {self.wanted.kind}", ""]
        if rows:
            licences = Counter(credit.licence for credit, _ in rows)
            counted = ", ".join(f"{count} under {licence}" for licence, count in sorted(licences.items()))
            lines += [
                f"Made by gbpn from procedures of its own and {len(rows)} models of others: {counted}.",
                "Keep this list beside the frames and beside weights that were trained on them.",
                "",
                "| model | creator | licence | source | frames |",
                "|---|---|---|---|---|",
                *(f"| {c.name} | {c.creator} | {c.licence} | {c.source} | {count} |" for c, count in rows),
            ]
        else:
            lines.append(
                "Made by gbpn from procedures of its own only: no model or picture of others is in it."
            )
        return write_text(self.folder / "CREDITS.md", "\n".join(lines) + "\n")

    def _meta(self) -> dict[str, Any]:
        width, height = self.wanted.size
        settings = json.loads(json.dumps(asdict(self.wanted)))
        libraries = sorted(self._stock.folder.glob("*.sh3f")) if self._stock is not None else []
        settings["libraries"] = {path.stem: checksum(path) for path in libraries}
        return {
            "dataset": f"gbpn worlds ({self.wanted.kind})",
            "role": self.role,
            "width": width,
            "height": height,
            "depth_scale": self.scale,
            "depth_unit": f"metre = png/{self.scale:g}, 0 = nothing there or too far for 16 bits",
            "depth_source": "exact to the first surface, ray traced; sensors in folders of their names",
            "camera": "camera/<frame>.json: K, pose (camera to world: x right, y down, z forward)",
            "licence": "CREDITS.md names every model in it",
            "drawn": {"generator": _generator(), **settings},
        }


@cache
def _generator() -> str:
    """Of the code that draws: other code may draw other frames from equal settings."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _settings(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))["drawn"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not of drawn worlds: choose another --out") from error


def _name(number: int) -> str:
    return f"{number:06d}"
