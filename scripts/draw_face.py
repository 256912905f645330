"""Make what README and site show that depends on the weights: pictures, film, plot, tables.

python scripts/draw_face.py                      # everything but the measurement; about a minute
python scripts/draw_face.py --measure FRAMES     # first measure error against points; about ten minutes
python scripts/draw_face.py hero film            # only these

FRAMES is a scene of gbpn's `pool` layout, such as nyuv2/test_public. Its numbers go to docs/points.json, from
which the plot is drawn again at any time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from face import film, hero

from gbpn.predict import DepthCompleter

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
PARTS: dict[str, Callable[[DepthCompleter], None]] = {
    "hero": lambda completer: hero.draw(completer, IMAGES / "hero.webp"),
    "film": lambda completer: film.draw(completer, IMAGES / "film.webp"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="default: all")
    parser.add_argument("--measure", type=Path, metavar="FRAMES")
    options = parser.parse_args()
    completer = DepthCompleter.from_pretrained()
    for name in options.parts or PARTS:
        PARTS[name](completer)
        print(name)


if __name__ == "__main__":
    main()
