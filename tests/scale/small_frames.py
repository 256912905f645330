"""Small frames as files, tar shards and objects of a bucket, and what an output holds."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from gbpn.scale.storage import Storage

HEIGHT, WIDTH = 40, 56
COUNT = 7


def write_frames(folder: Path, count: int = COUNT, size: tuple[int, int] = (HEIGHT, WIDTH)) -> Path:
    """Folders color/ and depth/ (millimetres)."""
    (folder / "color").mkdir(parents=True)
    (folder / "depth").mkdir()
    for frame in range(count):
        rng = np.random.default_rng(frame)
        Image.fromarray(rng.integers(0, 256, (*size, 3), dtype=np.uint8)).save(
            folder / "color" / f"{frame:04}.png"
        )
        depth = np.zeros(size, np.uint16)
        depth.reshape(-1)[rng.choice(depth.size, 60, replace=False)] = rng.integers(1000, 4000, 60)
        Image.fromarray(depth).save(folder / "depth" / f"{frame:04}.png")
    return folder


def write_tar(path: Path, frames: Path, names: list[str]) -> None:
    with tarfile.open(path, "w") as tar:
        for name in names:
            parts = {"png": "color", "depth.png": "depth"}
            contents = {ending: (frames / p / f"{name}.png").read_bytes() for ending, p in parts.items()}
            contents |= {"camera.txt": b"60 60 27.5 19.5\n", "txt": b"a caption"}
            for ending, data in contents.items():
                member = tarfile.TarInfo(f"{name}.{ending}")
                member.size, member.mtime = len(data), 1_700_000_000
                tar.addfile(member, io.BytesIO(data))


def contents(folder: Path) -> dict[str, bytes]:
    """All files of an output besides the run's own tables."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.relative_to(folder).parts[0] != "gbpn"
    }


def fill(storage: Storage, folder: Path, target: str) -> None:
    """Put the files of a folder into a bucket."""
    from gbpn.scale.storage import joined

    for file in sorted(folder.rglob("*")):
        if file.is_file():
            storage.write(joined(target, file.relative_to(folder).as_posix()), file.read_bytes())


def downloaded(storage: Storage, output: str) -> dict[str, bytes]:
    return {
        entry.uri.split("?")[0].rpartition("/")[2]: storage.read(entry.uri) for entry in storage.files(output)
    }
