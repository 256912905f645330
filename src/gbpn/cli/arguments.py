"""What was typed, checked before torch is loaded: a slip of the finger is answered at once."""

from __future__ import annotations

import difflib
import glob
import re
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from gbpn.errors import InputError
from gbpn.files.guard import shown
from gbpn.how import How

__all__ = [
    "CHOICES",
    "camera_of",
    "is_listed",
    "option_of",
    "require_choice",
    "require_first_frame",
    "require_own_cloud",
    "require_paths",
    "require_prior",
    "with_whole_points",
]


def option_of(one: Field[Any]) -> str:
    """What a field of `How` is called on the command line."""
    return "--" + one.name.replace("_", "-")


CHOICES: dict[str, tuple[str, ...]] = {
    **{option_of(one): one.metadata["choices"] for one in fields(How) if one.metadata["choices"]},
    "--pair": ("name", "order", "nearest"),
    "--distributed": ("ray", "here"),
    "--pack": ("files", "tar", "parquet"),
}
"""What options with few words take."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?,?", re.IGNORECASE)


def with_whole_points(words: Sequence[str]) -> list[str]:
    """The words of a command line, `--points 265 235 1.2` as one measurement."""
    out: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        out.append(word)
        if word == "--":
            return out + rest
        numbers = rest[:3]
        if word == "--points" and len(numbers) == 3 and all(_NUMBER.fullmatch(n) for n in numbers):
            out.append(",".join(number.rstrip(",") for number in numbers))
            del rest[:3]
    return out


def require_choice(given: Mapping[str, str | None]) -> None:
    """Raise for a word that an option does not take."""
    for option, word in given.items():
        if word is not None and word not in CHOICES[option]:
            raise InputError(f"{option} wants {_either(CHOICES[option])}; got {shown(repr(word))}")


def require_paths(output: str, **paths: str | Path | None) -> None:
    """Raise for a file that is not there, with the name that may have been meant; addresses are not asked."""
    for what, given in paths.items():
        if given is None or "://" in str(given) or Path(given).exists() or glob.glob(str(given)):
            continue
        raise InputError(f"{shown(given)}: no such {what.replace('_', ' ')}{_meant(Path(given))}")
    if "://" not in output and Path(output).exists() and not Path(output).is_dir():
        raise InputError(f"{shown(output)} is a file: -o wants a folder")


def is_listed(source: str, output: str) -> bool:
    """Whether source or output are of a kind that only `gbpn.scale` knows."""
    return "://" in source or "://" in output or Path(source).suffix.lower() in (".csv", ".parquet", ".tar")


def camera_of(intrinsics: str | None, focal_mm: float | None) -> str | None:
    """What was said of the camera, in one word of `--intrinsics`."""
    if focal_mm is None:
        return intrinsics
    if intrinsics is not None:
        raise InputError("give either --intrinsics or --focal-mm, not both")
    return f"{focal_mm:g}mm"


def require_first_frame(
    images: str,
    sparse: str | None,
    scale: float | None,
    *,
    output: str,
    points: Sequence[str] | None,
    pairing: Mapping[str, Any],
) -> None:
    """Raise if images and measurements do not pair, or the first depth file needs words that are missing.

    Recordings, videos and lists of frames are looked at by those who open them.
    """
    from gbpn.formats.depth_files import read_stored, require_scale
    from gbpn.jobs.pairing import plan
    from gbpn.jobs.written import parse_point
    from gbpn.recordings.bags import is_recording
    from gbpn.recordings.video import VIDEOS

    require_scale(scale)
    if is_recording(images) or Path(images).suffix.lower() in VIDEOS or is_listed(images, output):
        return
    for point in points or ():
        parse_point(point)
    first = plan(images, sparse, others=bool(points), **pairing)[0]
    if first.sparse is not None and first.sparse.suffix.lower() in (".png", ".tif", ".tiff"):
        read_stored(first.sparse, scale)


def require_own_cloud(how: How, also: Sequence[str], *, rerun: Path | None) -> None:
    """Raise for what panoramas and fisheye pictures do not have: a video's memory, meshes, a pinhole."""
    asked = {"--stream": how.stream, "--also mesh": "mesh" in also, "--rerun": rerun is not None}
    for option, given in asked.items():
        if given:
            raise InputError(f"{option} is for pinhole pictures: leave it out for panoramas and --fisheye")


def require_prior(images: str, prior: Path | None, how: How) -> None:
    """Raise for a foreign depth map of pictures that are no files, and for its kind without one."""
    from gbpn.recordings.bags import is_recording
    from gbpn.recordings.video import VIDEOS

    if prior is None:
        if how.prior_kind != How().prior_kind:
            raise InputError("--prior-kind says what the map of --prior holds: give --prior too")
        return
    if is_recording(images) or Path(images).suffix.lower() in VIDEOS:
        raise InputError("--prior belongs to pictures that are files: write the frames to a folder first")


def _meant(path: Path) -> str:
    """The names in the same folder that are most like it."""
    if not path.parent.is_dir():
        return f" (there is no folder {shown(path.parent)})"
    names = [entry.name for entry in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=2, cutoff=0.6)
    return f"; there is {_either([shown(path.parent / name) for name in near])}" if near else ""


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
