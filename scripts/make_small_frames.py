"""Small frames to measure with: the embedded rooms, shifted, 320×240, with 500 measurements each.

    python scripts/make_small_frames.py FOLDER [COUNT]

writes FOLDER/color/*.png, FOLDER/depth/*.png (millimetres) and FOLDER/frames.csv.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from gbpn import scenes

WIDTH, POINTS = 320, 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    asked = parser.parse_args()
    rooms = [scenes.load(name) for name in scenes.ROOMS]
    for part in ("color", "depth"):
        (asked.folder / part).mkdir(parents=True, exist_ok=True)
    lines = ["id,image,depth"]
    for number in range(asked.count):
        rng = np.random.default_rng(number)
        room = rooms[number % len(rooms)]
        assert room.target is not None
        shift = int(rng.integers(0, WIDTH))  # the scenes are as large: turned, so that frames differ
        image = (room.image.roll(shift, 2).permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)
        depth = (room.target[0].roll(shift, 1).numpy() * 1000).round().astype(np.uint16)
        keep = np.zeros(depth.size, bool)
        keep[rng.choice(depth.size, POINTS, replace=False)] = True
        name = f"{number:06}.png"
        Image.fromarray(image).save(asked.folder / "color" / name, compress_level=1)
        Image.fromarray(np.where(keep.reshape(depth.shape), depth, 0).astype(np.uint16)).save(
            asked.folder / "depth" / name
        )
        lines.append(f"{number:06},color/{name},depth/{name}")
    (asked.folder / "frames.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
