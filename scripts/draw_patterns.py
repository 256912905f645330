"""Draw docs/images/patterns.png: every sparsity pattern and corruption on one synthetic frame.

python scripts/draw_patterns.py docs/images/patterns.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from gbpn.datasets import SyntheticDataset
from gbpn.datasets.contact_sheet import depth_picture, grown
from gbpn.files.atomic import replacing
from gbpn.formats.images import to_pixels
from gbpn.sensors.sampling import sparsify

FRAMES = {"room": 24, "street": 11}
"""Kind → index of the frame drawn."""
TILE = (160, 120)
COLUMNS = 5
SPECS = [
    ("room", "points:500"),
    ("room", "fixed:500"),
    ("room", "corners:500"),
    ("room", "grid:16"),
    ("room", "tof:16"),
    ("street", "lidar:64"),
    ("street", "lidar:16"),
    ("street", "lines:32"),
    ("street", "elevation:32"),
    ("street", "elevation:8"),
    ("room", "holes:0.5"),
    ("room", "near:2.5"),
    ("room", "points:500+noise:0.2"),
    ("room", "points:500+outliers:0.2"),
    ("room", "points:500+cut:0.5"),
    ("room", "points:500+missing:0.7"),
    ("room", "points:2000+reach:2.5"),
    ("room", "grid:8+shift:10"),
]


def main(path: Path) -> None:
    samples = {kind: SyntheticDataset("", kinds=(kind,)).load(index) for kind, index in FRAMES.items()}
    tiles = [(f"{kind}", Image.fromarray(to_pixels(sample.image))) for kind, sample in samples.items()]
    for kind, spec in SPECS:
        sample = samples[kind]
        if "lines" in spec or "elevation" in spec:  # they thin out a scanner's sweep
            sample = sparsify(sample, "lidar:64", np.random.default_rng(0))
        measured = sparsify(sample, spec, np.random.default_rng(0)).sparse
        known = sample.target[sample.target > 0]
        limits = (float(known.quantile(0.02)), float(known.quantile(0.98)))
        dense = float((measured > 0).float().mean()) > 0.2
        dots = measured if dense or spec.startswith("l") else grown(measured, 1)
        tiles.append((spec, depth_picture(dots, limits, sample.image * 0.35)))
    rows = -(-len(tiles) // COLUMNS)
    figure = Image.new("RGB", (COLUMNS * (TILE[0] + 4), rows * (TILE[1] + 18)), "white")
    for place, (label, tile) in enumerate(tiles):
        left, top = place % COLUMNS * (TILE[0] + 4), place // COLUMNS * (TILE[1] + 18)
        figure.paste(tile.resize(TILE, Image.Resampling.BOX), (left, top + 15))
        ImageDraw.Draw(figure).text((left + 2, top + 2), label, fill="black")
    with replacing(path) as temporary:
        figure.quantize(256, dither=Image.Dither.NONE).save(temporary, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/patterns.png"))
