"""Projects that the studio's page saves: a photo, what was measured in it, its camera, in one file.

    NAME.gbpn = ZIP of project.json | photo, as it was opened | points.csv | camera file, if one came along

project.json holds `format`, `version`, `written_by`, `name`, `scene` (an embedded one) or `photo` (its file),
`size` [H, W] of the picture that the points are pixels of, `camera` (fx, fy, cx, cy of the photo; empty if it
was not told), perhaps `camera_file`, and `how`. points.csv has x, y, depth, std.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gbpn.errors import DatasetError
from gbpn.files.guard import reading, shown

__all__ = ["SUFFIX", "Project", "read_project", "unpacked"]

SUFFIX = ".gbpn"
_FORMAT, _VERSION = "gbpn-project", 1
_MOST_BYTES = 128_000_000
"""Of everything inside."""
_PHOTOS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".heif")


@dataclass(frozen=True, kw_only=True)
class Project:
    """What was saved."""

    name: str
    """Of the photo or scene, letters and digits."""
    photo: bytes
    suffix: str
    """Of the photo."""
    size: tuple[int, int]
    """(H, W) of the picture that `points` are pixels of, which may be smaller than the photo."""
    points: str
    """Lines of x, y, depth, std."""
    camera: tuple[float, ...]
    """fx, fy, cx, cy in pixels of the photo; empty: not told."""
    how: dict[str, Any]
    """Fields of `How` that are not as usual."""


def read_project(path: Path) -> Project:
    """The contents; nothing of it is unpacked by a name of its own."""
    expected = f"what the studio saves as {SUFFIX}"
    with reading(path, "project", expected, error=DatasetError), zipfile.ZipFile(path) as packed:
        if sum(one.file_size for one in packed.infolist()) > _MOST_BYTES:
            raise DatasetError(f"{shown(path)} holds more than {_MOST_BYTES / 1e6:g} MB: no project does")
        told = json.loads(packed.read("project.json"))
        if (told["format"], told["version"]) != (_FORMAT, _VERSION):
            raise DatasetError(
                f"{shown(path)} must be of format {_FORMAT} {_VERSION}; got {shown(told['format'])} "
                f"{shown(told['version'])}: save it again with this version of the studio"
            )
        photo, suffix = _photo(packed, told)
        height, width = (int(length) for length in told["size"])
        camera = tuple(float(number) for number in told["camera"])
        if len(camera) not in (0, 4) or min(height, width) < 1 or not isinstance(told["how"], dict):
            raise DatasetError(f"{shown(path)}: camera, size or how are not as they are saved: save it again")
        if "camera_file" in told:
            raise DatasetError(
                f"{shown(path)} has a camera file inside, which only the studio reads: unzip the project, "
                "and give photo, points and --intrinsics"
            )
        return Project(
            name=_plain(str(told["name"])),
            photo=photo,
            suffix=suffix,
            size=(height, width),
            points=packed.read("points.csv").decode("utf-8"),
            camera=camera,
            how=told["how"],
        )


def _plain(name: str) -> str:
    """Letters and digits: it becomes a file name."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name)[:40] or "picture"


def _photo(packed: zipfile.ZipFile, told: dict[str, Any]) -> tuple[bytes, str]:
    if told.get("scene"):
        from importlib.resources import files

        from gbpn import scenes

        scenes.describe(told["scene"])  # or it is none
        return (files(scenes) / told["scene"] / "image.jpg").read_bytes(), ".jpg"
    suffix = Path(str(told["photo"])).suffix.lower()
    if suffix not in _PHOTOS:
        raise DatasetError(f"a project's photo is one of {', '.join(_PHOTOS)}; got {shown(told['photo'])}")
    return packed.read(told["photo"]), suffix


def unpacked(project: Project, folder: Path) -> tuple[Path, Path, str | None]:
    """Photo and points as files in `folder`, and what `--intrinsics` would say.

    Points are then pixels of the photo: the centre of each pixel of the smaller picture.
    """
    from gbpn.formats.images import read_pixels
    from gbpn.formats.point_tables import read_point_table

    picture, table = folder / f"{project.name}{project.suffix}", folder / f"{project.name}.csv"
    picture.write_bytes(project.photo)
    height, width, _ = read_pixels(picture).shape
    across, down = width / project.size[1], height / project.size[0]
    table.write_text(project.points, encoding="utf-8")
    points = read_point_table(table)
    points[:, 0] = (points[:, 0] + 0.5) * across - 0.5
    points[:, 1] = (points[:, 1] + 0.5) * down - 0.5
    lines = [",".join(f"{value:.9g}" for value in row[:4]) for row in points.tolist()]
    table.write_text("\n".join(["x,y,depth,std", *lines]) + "\n", encoding="utf-8")
    return picture, table, ",".join(f"{number:.9g}" for number in project.camera) or None
