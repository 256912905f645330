"""Make what README and site show and what depends on the weights: pictures, film, plot, tables, badges.

python scripts/draw_face.py                      # everything but the measurement; about a minute
python scripts/draw_face.py --measure FRAMES     # first measure error against points; some minutes
python scripts/draw_face.py hero film            # only these

FRAMES is a scene of gbpn's `pool` layout, such as nyuv2/test_public. Its numbers go to docs/points.json, from
which the plot is drawn again at any time. Errors in the tables are those of the card inside the weights.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("GBPN_WEIGHTS_LICENCE", "read")

from face import badges, drawings, film, hero, notebooks, points, tables

from gbpn.predict import DepthCompleter

DOCS = Path(__file__).resolve().parents[1] / "docs"
IMAGES = DOCS / "images"
POINTS = DOCS / "points.json"


def _tables() -> None:
    facts = tables.measure()
    tables.write(facts, json.loads(POINTS.read_text(encoding="utf-8")))


PARTS: dict[str, Callable[[], None]] = {
    "hero": lambda: hero.draw(DepthCompleter.from_pretrained(), IMAGES / "hero.webp"),
    "film": lambda: film.draw(DepthCompleter.from_pretrained(), IMAGES / "film.webp"),
    "drawings": lambda: drawings.draw(DepthCompleter.from_pretrained(), IMAGES),
    "points": lambda: points.draw(POINTS, IMAGES / "points.svg"),
    "tables": _tables,
    "badges": badges.write,
    "notebooks": notebooks.write,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=f"{', '.join(PARTS)}; default: all")
    parser.add_argument("--measure", type=Path, metavar="FRAMES")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {unknown.pop()!r}: choose from {', '.join(PARTS)}")
    if options.measure is not None:
        points.measure(options.measure, POINTS, options.workers)
        print("measured")
    for name in options.parts or PARTS:
        PARTS[name]()
        print(name)


if __name__ == "__main__":
    main()
