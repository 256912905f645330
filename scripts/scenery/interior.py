"""The empty room and the things in it that are built rather than fetched from the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

import bpy
import numpy as np

from scenery import materials
from scenery.capture import Point, point_light
from scenery.shapes import Solid

Material = bpy.types.Material
WHITE = (0.78, 0.77, 0.74)
COVERS = (
    (0.35, 0.04, 0.03),
    (0.03, 0.06, 0.16),
    (0.05, 0.13, 0.07),
    (0.5, 0.38, 0.2),
    (0.62, 0.58, 0.48),
    (0.02, 0.02, 0.025),
    (0.3, 0.13, 0.04),
    (0.08, 0.2, 0.26),
    (0.45, 0.2, 0.02),
    (0.2, 0.2, 0.19),
)
"""Book covers as they stand in real shelves: dull reds, navy, green, buff, cream."""


@dataclass(frozen=True, kw_only=True)
class Shell:
    """An empty rectangular room with windows in its side walls (x = x0 and x = x1)."""

    low: tuple[float, float]
    """Corner of the floor with the least x and y."""
    high: tuple[float, float]
    """The opposite corner."""
    height: float = 2.6
    """Ceiling height."""
    floor: Material
    """What the floor is made of."""
    wall: Material
    """What the walls are made of."""
    accent: Material | None = None
    """What the far wall (y = y1) is made of, if it differs."""
    left_windows: tuple[tuple[float, float], ...] = ()
    """(from, to) in y of each window in the wall x = x0."""
    right_windows: tuple[tuple[float, float], ...] = ()
    """(from, to) in y of each window in the wall x = x1."""
    sill: float = 0.85
    """Lower edge of the windows."""
    lintel: float = 2.25
    """Upper edge of the windows."""

    def build(self) -> None:
        """Floor, ceiling, walls, windows and skirting, each its own object."""
        (x0, y0), (x1, y1), top = self.low, self.high, self.height
        white = materials.paint(WHITE, 0.5, 0.03)
        Solid("floor").box((x0, y0, -0.1), (x1, y1, 0), self.floor).build()
        Solid("ceiling").box((x0, y0, top), (x1, y1, top + 0.1), white).build()
        Solid("wall").box((x0, y1, 0), (x1, y1 + 0.2, top), self.accent or self.wall).build()
        Solid("wall").box((x0, y0 - 0.2, 0), (x1, y0, top), self.wall).build()
        self._side(x0 - 0.2, x0, self.left_windows, white)
        self._side(x1, x1 + 0.2, self.right_windows, white)
        skirting = Solid("skirting").box((x0, y1 - 0.015, 0), (x1, y1, 0.09), white)
        skirting.box((x0, y0, 0), (x0 + 0.015, y1, 0.09), white).box(
            (x1 - 0.015, y0, 0), (x1, y1, 0.09), white
        )
        skirting.build()

    def _side(self, x0: float, x1: float, windows: tuple[tuple[float, float], ...], frame: Material) -> None:
        wall, y = Solid("wall"), self.low[1]
        for start, end in windows:
            wall.box((x0, y, 0), (x1, start, self.height), self.wall)
            wall.box((x0, start, 0), (x1, end, self.sill), self.wall)
            wall.box((x0, start, self.lintel), (x1, end, self.height), self.wall)
            _window_frame((x0 + x1) / 2, start, end, self.sill, self.lintel, frame)
            y = end
        wall.box((x0, y, 0), (x1, self.high[1], self.height), self.wall).build()


def _window_frame(x: float, y0: float, y1: float, z0: float, z1: float, frame: Material) -> None:
    """Jambs, a mullion and a transom, without glass: the sky behind has no depth anyway."""
    bars = Solid("window frame")
    middle, across = (y0 + y1) / 2, z0 + 0.68 * (z1 - z0)
    for a, b in ((y0, y0 + 0.05), (middle - 0.03, middle + 0.03), (y1 - 0.05, y1)):
        bars.box((x - 0.03, a, z0), (x + 0.03, b, z1), frame)
    for a, b in ((z0, z0 + 0.06), (across - 0.02, across + 0.02), (z1 - 0.05, z1)):
        bars.box((x - 0.03, y0, a), (x + 0.03, y1, b), frame)
    bars.box((x - 0.12, y0 - 0.04, z0 - 0.04), (x + 0.16, y1 + 0.04, z0), frame).build(bevel=0.004)


def framed(
    x: float, y: float, z: float, width: float, height: float, art: Material, yaw: float = 0.0
) -> None:
    """A picture with a mount and a thin black frame; its back at (x, y), its middle at height z."""
    black, mount = materials.gloss((0.02, 0.02, 0.02), 0.4), materials.paint((0.8, 0.79, 0.75), 0.8)
    w, h = width / 2, height / 2
    whole = Solid("picture").box((-w, -0.03, -h), (w, 0, h), black)
    whole.box((-w + 0.02, -0.032, -h + 0.02), (w - 0.02, -0.028, h - 0.02), mount)
    whole.box((-w + 0.08, -0.034, -h + 0.08), (w - 0.08, -0.03, h - 0.08), art)
    whole.build((x, y, z), yaw)


def rug(
    x: float, y: float, width: float, depth: float, pattern: Material, border: Material, yaw: float = 0.0
) -> None:
    """A rug 12 mm thick with a border."""
    w, d = width / 2, depth / 2
    whole = Solid("rug").box((-w, -d, 0), (w, d, 0.011), border)
    whole.box((-w + 0.09, -d + 0.09, 0.004), (w - 0.09, d - 0.09, 0.012), pattern).build((x, y, 0), yaw)


def books(
    x: float, y: float, z: float, length: float, seed: int, yaw: float = 0.0, tallest: float = 0.27
) -> None:
    """A row of books standing from x to x + length (before turning), spines towards −y."""
    rng = np.random.default_rng(seed)
    covers = [materials.paint(COVERS[i], 0.5) for i in rng.choice(len(COVERS), 7, replace=False)]
    row, along = Solid("books"), 0.0
    while True:
        thick, tall, deep = (
            rng.uniform(0.015, 0.045),
            rng.uniform(0.65, 1.0) * tallest,
            rng.uniform(0.13, 0.2),
        )
        if along + thick > length:
            break
        row.box((along, -deep, 0), (along + thick - 0.001, 0, tall), covers[rng.integers(7)])
        along += thick
    row.build((x, y, z), yaw)


def shelf_wall(
    x: float, y: float, width: float, levels: tuple[float, ...], seed: int, wood: Material
) -> None:
    """An open book case: its back at y, from x to x + width, boards at `levels` (the last is the top)."""
    deep, board = 0.28, 0.025
    case = Solid("book case")
    case.box((0, -deep, 0), (board, 0, levels[-1]), wood)
    case.box((width - board, -deep, 0), (width, 0, levels[-1]), wood)
    case.box((board, -0.01, 0), (width - board, 0, levels[-1]), wood)
    for level in levels:
        case.box((0.001, -deep + 0.001, level - board), (width - 0.001, -0.001, level), wood)
    case.build((x, y, 0))
    rng = np.random.default_rng(seed)
    for index, level in enumerate(levels[:-1]):
        room = levels[index + 1] - level - board
        length = (width - 2 * board) * rng.uniform(0.55, 0.97)
        books(x + board, y - 0.03, level, length, seed + 7 * index, tallest=min(0.29, 0.92 * room))


def low_table(
    x: float, y: float, width: float, depth: float, height: float, wood: Material, yaw: float = 0.0
) -> None:
    """A table with four square legs."""
    w, d, leg = width / 2, depth / 2, 0.05
    whole = Solid("table").box((-w, -d, height - 0.035), (w, d, height), wood)
    for sx in (-w + 0.04, w - 0.04 - leg):
        for sy in (-d + 0.04, d - 0.04 - leg):
            whole.box((sx, sy, 0), (sx + leg, sy + leg, height - 0.03), wood)
    whole.build((x, y, 0), yaw, bevel=0.006)


def floor_lamp(x: float, y: float, power: float, height: float = 1.62) -> None:
    """A standing lamp with a glowing shade."""
    metal = materials.gloss((0.05, 0.045, 0.04), 0.3, 1.0)
    lamp = Solid("floor lamp").tube((0, 0, 0), (0, 0, 0.025), 0.14, metal)
    lamp.tube((0, 0, 0.02), (0, 0, height - 0.05), 0.012, metal, sides=12)
    lamp.tube((0, 0, height - 0.28), (0, 0, height), 0.22, materials.glow((1.0, 0.78, 0.5), 2.2), 0.15)
    lamp.build((x, y, 0))
    point_light((x, y, height + 0.05), power)


def curtain(x: float, y0: float, y1: float, top: float, material: Material) -> None:
    """A folded curtain hanging along a side wall, from the floor to `top`."""
    y = np.arange(y0, y1, 0.012)
    folds = x + 0.035 * np.sin(y * 62.0) + 0.012 * np.sin(y * 23.0)
    points: list[Point] = [
        (float(a), float(b), z) for a, b in zip(folds, y, strict=True) for z in (0.02, top)
    ]
    quads = [(2 * i, 2 * i + 2, 2 * i + 3, 2 * i + 1) for i in range(len(y) - 1)]
    Solid("curtain").faces(points, quads, material).build()


def flat_books(x: float, y: float, z: float, count: int, seed: int, yaw: float = 0.0) -> None:
    """A small pile of books lying on a surface at height z."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        thick, w, d = rng.uniform(0.015, 0.035), rng.uniform(0.07, 0.1), rng.uniform(0.1, 0.14)
        book = Solid("books").box(
            (-w, -d, 0), (w, d, thick), materials.paint(COVERS[rng.integers(len(COVERS))], 0.5)
        )
        book.build((x, y, z), yaw + rng.uniform(-18, 18))
        z += thick + 0.0005
