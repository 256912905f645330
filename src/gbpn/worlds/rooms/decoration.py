"""What hangs on walls and belongs to a place: pictures, mirrors, boards, screens, rugs, kitchens."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.rooms import carpentry
from gbpn.worlds.rooms.interior import FRONTS, Interior
from gbpn.worlds.rooms.layout import Layout, Piece, Placed
from gbpn.worlds.rooms.models import Models

if TYPE_CHECKING:
    from gbpn.worlds.rooms.things import Clutter

__all__ = ["Decorator"]

_ONCE = np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]])


class Decorator:
    """Hangs, lays and sets up."""

    def __init__(self, layout: Layout, models: Models, palette: Interior, rng: np.random.Generator) -> None:
        self.layout, self.models, self.palette, self.rng = layout, models, palette, rng

    def walls(self, kind: str) -> None:
        """Pictures, posters, shelves, clocks and mirrors on bare places."""
        rng = self.rng
        plain = rng.random() < 0.2
        for k, wall in enumerate(self.layout.walls):
            for _ in range(int(rng.poisson(0.25 if plain else 1.5))):
                self._picture(k, kind)
            if rng.random() < 0.22 and kind not in ("corridor", "bathroom"):
                self._wall_shelf(k)
            if rng.random() < 0.1:
                piece = self.models.piece("wall thing")
                if piece is not None:
                    self.layout.hang(
                        piece, k, float(rng.uniform(0.4, wall.length - 0.4)), float(rng.uniform(1.3, 1.7))
                    )
            if rng.random() < 0.06:
                self._clock(k)
            if rng.random() < (0.25 if kind in ("office", "classroom", "study") else 0.0):
                self.board(k)
            if rng.random() < (0.12 if kind in ("bedroom", "living", "corridor") else 0.0):
                self._mirror(
                    k, float(rng.uniform(0.3, wall.length - 0.3)), 0.15 if rng.random() < 0.4 else 1.1
                )

    def _framed(self, image: int, width: float, high: float, *, border: float, deep: float = 0.02) -> Piece:
        """A picture in a frame, or without one if its border is 0; some are behind glass."""
        into = Assembly("picture")
        a, b = width / 2, high
        into.quads(
            np.array([[[-a, -0.004, 0], [a, -0.004, 0], [a, -0.004, b], [-a, -0.004, b]]]),
            image,
            coordinates=_ONCE,
        )
        if border > 0:
            edge = self.palette.wooden_or_lacquered() if self.rng.random() < 0.7 else self.palette.metal()
            c = border / 2
            for x, z, hx, hz in (
                (0, c, a, c),
                (0, b - c, a, c),
                (a - c, b / 2, c, b / 2),
                (c - a, b / 2, c, b / 2),
            ):
                into.boxes([[x, -deep / 2, z]], [[hx, deep / 2, hz]], edge, tile=0.9)
        return Piece(name="picture", mesh=into.mesh(), size=(width, 2 * deep, high))

    def _picture(self, k: int, kind: str) -> None:
        rng, wall = self.rng, self.layout.walls[k]
        sheet = str(rng.choice(["poster", "photograph", "page"], p=[0.4, 0.45, 0.15]))
        if kind in ("office", "classroom", "study"):
            sheet = str(rng.choice(["poster", "photograph", "page"], p=[0.4, 0.2, 0.4]))
        bare = sheet == "page" or (sheet == "poster" and rng.random() < 0.5)
        width, high = (
            (0.21, 0.297) if sheet == "page" else (float(rng.uniform(0.2, 1.1)), float(rng.uniform(0.2, 0.9)))
        )
        shine = 0.0 if bare else float(rng.choice([0.0, 0.04]))
        image = self.palette.cover(sheet, (0.85, 0.85, 0.85), roughness=0.1, mirror=shine)
        piece = self._framed(image, width, high, border=0.0 if bare else float(rng.uniform(0.01, 0.05)))
        s, low = float(rng.uniform(0.2, max(0.21, wall.length - 0.2))), float(rng.uniform(1.15, 1.6))
        count = int(rng.integers(2, 5)) if rng.random() < 0.2 else 1
        for j in range(count):
            self.layout.hang(piece, k, s + j * (width + 0.1), low)

    def _mirror(self, k: int, s: float, low: float) -> None:
        rng = self.rng
        high = float(rng.uniform(0.5, 0.9)) if low > 0.5 else float(rng.uniform(1.3, 1.7))
        piece = self._framed(
            self.palette.mirror(),
            float(rng.uniform(0.35, 0.9)),
            high,
            border=float(rng.choice([0.0, 0.03, 0.05])),
        )
        self.layout.hang(piece, k, s, low)

    def mirror_over(self, placed: Placed) -> None:
        """Over a washbasin."""
        if placed.wall is None:
            return
        wall = self.layout.walls[placed.wall]
        s = float((np.array([placed.x, placed.y]) - wall.corner) @ wall.along)
        self._mirror(placed.wall, s, max(1.0, placed.piece.size[2] + 0.1))

    def board(self, k: int) -> None:
        """White, black or cork."""
        wall, rng = self.layout.walls[k], self.rng
        width = float(rng.uniform(1.0, min(3.2, max(1.1, wall.length - 0.6))))
        shine = 0.05 if rng.random() < 0.5 else 0.0
        image = self.palette.cover("board", roughness=0.15, mirror=shine)
        piece = self._framed(image, width, float(rng.uniform(0.8, 1.25)), border=0.025)
        self.layout.hang(
            piece, k, wall.length / 2 + float(rng.uniform(-0.3, 0.3)), float(rng.uniform(0.85, 1.0))
        )

    def _clock(self, k: int) -> None:
        into = Assembly("clock")
        into.discs([[0, -0.03, 0.15]], (0, -1, 0), 0.15, self.palette.cover("clock"), sides=28)
        into.tubes(np.array([[[0, 0, 0.15], [0, -0.03, 0.15]]]), 0.15, self.palette.metal(), sides=28)
        piece = Piece(name="clock", mesh=into.mesh(), size=(0.3, 0.03, 0.3))
        self.layout.hang(
            piece,
            k,
            float(self.rng.uniform(0.4, self.layout.walls[k].length - 0.4)),
            float(self.rng.uniform(1.7, 2.0)),
        )

    def _wall_shelf(self, k: int) -> None:
        """A board on two brackets with things on it."""
        from gbpn.worlds.rooms.things import Clutter

        rng = self.rng
        width, deep = float(rng.uniform(0.5, 1.5)), float(rng.uniform(0.15, 0.3))
        into = Assembly("shelf")
        wood = self.palette.wooden_or_lacquered()
        into.boxes([[0, 0, 0.012]], [[width / 2, deep / 2, 0.012]], wood, tile=0.9)
        metal = self.palette.metal()
        for x in (-0.35 * width, 0.35 * width):
            into.tubes(np.array([[[x, deep / 2, -0.12], [x, -0.3 * deep, 0.0]]]), 0.006, metal, sides=5)
        top = (-width / 2 + 0.02, width / 2 - 0.02, -deep / 2, deep / 2, 0.024, 0.36)
        piece = Piece(name="shelf", mesh=into.mesh(), size=(width, deep, 0.4), tops=(top,))
        s = float(rng.uniform(0.3, max(0.31, self.layout.walls[k].length - 0.3)))
        placed = self.layout.hang(piece, k, s, float(rng.uniform(1.2, 1.75)))
        if placed is not None:
            Clutter(self.layout, self.models, self.palette, rng).fill(
                placed, str(rng.choice(["books", "mixed"]))
            )

    def rug(self, x: float, y: float, yaw: float, half: float | None = None) -> None:
        """Lies on the floor, cut to the room."""
        rng = self.rng
        a = half or float(rng.uniform(0.6, 1.3))
        b = a * float(rng.uniform(0.6, 1.0))
        limit = float((self.layout.half - np.abs([x, y])).min()) - 0.05
        if limit < 0.35:
            return
        a, b = min(a, limit * 1.1), min(b, limit)
        into = Assembly("rug")
        high = float(rng.uniform(0.006, 0.014))
        cover = self.palette.cover("rug") if rng.random() < 0.8 else self.palette.cover("carpet")
        corners = np.array([[-a, -b], [a, -b], [a, b], [-a, b]])
        if rng.random() < 0.15:
            into.discs([[0, 0, high]], (0, 0, 1), b, cover, sides=32)
        else:
            into.quads(
                np.c_[corners, np.full(4, high)][None],
                cover,
                coordinates=_ONCE[:, ::-1] if rng.random() < 0.5 else _ONCE,
            )
            into.boxes([[0, 0, high / 2 - 0.001]], [[a, b, high / 2]], self.palette.paint((0.3, 0.25, 0.2)))
        self.layout.builder.add(into.mesh().moved((x, y, 0.0005), yaw))

    def cloth_on(self, placed: Placed) -> None:
        """A cloth over a table's top that hangs down in folds."""
        piece = placed.piece
        if not piece.tops:
            return
        x, y, z = piece.size[0] / 2 + 0.005, piece.size[1] / 2 + 0.005, piece.tops[0][4] + 0.003
        t = np.linspace(0, 2 * math.pi, 121)
        power = 0.25
        rim = np.stack(
            [
                np.sign(np.cos(t)) * np.abs(np.cos(t)) ** power * x,
                np.sign(np.sin(t)) * np.abs(np.sin(t)) ** power * y,
            ],
            1,
        )
        into = Assembly("tablecloth")
        cloth = self.palette.cloth()
        rows = []
        for drop in np.linspace(0, float(self.rng.uniform(0.12, 0.4)), 6):
            out = 1 + (0.02 + 0.03 * np.sin(t * 17)) * drop * 3
            rows.append(np.c_[rim * out[:, None], np.full(121, z - drop)])
        rows.insert(0, np.c_[rim * 0.0, np.full(121, z)])
        grid = np.stack(rows)
        into.loft(
            grid,
            cloth,
            coordinates=np.stack([grid[..., 0] + grid[..., 2], grid[..., 1] + grid[..., 2]], -1) / 0.6,
        )
        self.layout.builder.add(into.mesh().moved((placed.x, placed.y, placed.z), placed.yaw))

    def screen_on(self, stand: Placed) -> None:
        """A television on its stand."""
        rng = self.rng
        piece = self.models.piece("tv") if rng.random() < 0.35 else None
        piece = piece or self._screen(float(rng.uniform(0.7, 1.25)), stand=True)
        if not stand.piece.tops:
            return
        x, y = stand.at(0.0, 0.05)
        self.layout.put(
            piece, float(x), float(y), stand.yaw + float(rng.normal(0, 0.1)), z=stand.piece.tops[0][4]
        )

    def _screen(self, width: float, *, stand: bool) -> Piece:
        into = Assembly("screen")
        high = width * 0.57
        foot = 0.12 if stand else 0.0
        black = self.palette.paint((0.02, 0.02, 0.02), roughness=0.3, mirror=0.04)
        glow = self.rng.random() < 0.5
        image = self.palette.cover("screen", roughness=0.1, mirror=0.05, emission=0.35) if glow else black
        into.boxes([[0, 0.015, foot + high / 2]], [[width / 2, 0.015, high / 2]], black)
        a, z0, z1 = width / 2 - 0.012, foot + 0.012, foot + high - 0.012
        into.quads(
            np.array([[[-a, -0.001, z0], [a, -0.001, z0], [a, -0.001, z1], [-a, -0.001, z1]]]),
            image,
            coordinates=_ONCE,
        )
        if stand:
            into.boxes([[0, 0.03, foot / 2]], [[0.02, 0.012, foot / 2 + 0.05]], black)
            into.boxes([[0, 0.02, 0.006]], [[0.28 * width, 0.09, 0.006]], black)
        return Piece(name="screen", mesh=into.mesh(), size=(width, 0.2, foot + high))

    def workplace(self, desk: Placed) -> None:
        """A monitor, a keyboard, a mouse, and cables down to the floor."""
        if not desk.piece.tops:
            return
        rng, top = self.rng, desk.piece.tops[0]
        into = Assembly("keyboard")
        z = top[4]
        x = float(rng.uniform(-0.2, 0.2)) * desk.piece.size[0]
        dark = (
            self.palette.paint((0.03, 0.03, 0.03))
            if rng.random() < 0.6
            else self.palette.paint((0.55, 0.55, 0.53))
        )
        into.boxes([[x, top[2] + 0.16, z + 0.012]], [[0.21, 0.065, 0.01]], dark)
        into.ellipsoids([[x + 0.3, top[2] + 0.16, z + 0.015]], [[0.03, 0.05, 0.018]], dark, detail=5)
        for _ in range(int(rng.integers(1, 4))):  # cables
            start = np.array([x + rng.uniform(-0.2, 0.2), top[3] - 0.02, z + 0.01])
            t = np.linspace(0, 1, 14)[:, None]
            end = np.array([start[0] + rng.uniform(-0.5, 0.5), desk.piece.size[1] / 2 - 0.02, 0.02])
            sag = np.array([rng.uniform(-0.15, 0.15), 0.0, -0.1])
            path = start + (end - start) * t + sag * np.sin(np.pi * t)
            into.tubes(path[None], 0.0035, dark, sides=4)
        self.layout.builder.add(into.mesh().moved((desk.x, desk.y, 0), desk.yaw))
        for k in range(1 if rng.random() < 0.7 else 2):
            screen = self._screen(float(rng.uniform(0.42, 0.65)), stand=True)
            sx, sy = desk.at(x + (k - 0.0) * 0.62, top[3] - 0.16)
            self.layout.put(screen, float(sx), float(sy), desk.yaw + float(rng.normal(0, 0.15)), z=z + 0.001)

    def kitchen_row(self, k: int, clutter: Clutter, mess: float, *, fill: float = 0.9) -> None:
        """Cupboards under a worktop along a wall, a sink, a cooker, cupboards and a hood above."""
        rng, wall = self.rng, self.layout.walls[k]
        front = (
            self.palette.wood()
            if rng.random() < 0.45
            else self.palette.paint(
                self.palette.pick(FRONTS), roughness=0.35, mirror=float(rng.choice([0.0, 0.04]))
            )
        )
        s, high = float(rng.uniform(0.02, 0.3)), float(rng.uniform(0.86, 0.92))
        end = wall.length * fill
        if rng.random() < 0.65 and not any(hole.low < 1.4 and hole.start < end for hole in wall.openings):
            tiles = self.palette.cover("wall_tile", roughness=0.25, mirror=0.04)
            into = Assembly("tiles")
            a, b = s, min(end + 0.3, wall.length)
            corners = [
                wall.at(a, high, 0.006),
                wall.at(b, high, 0.006),
                wall.at(b, 1.42, 0.006),
                wall.at(a, 1.42, 0.006),
            ]
            into.quads(np.array([corners]), tiles, tile=self.palette.tile("wall_tile"))
            self.layout.builder.add(into.mesh())
        above = rng.random() < 0.8
        while s < end:
            role = rng.random()
            piece = None
            if role < 0.16:
                piece = self.models.piece("cooker")
            elif role < 0.26:
                piece = self.models.piece("fridge")
            elif role < 0.32:
                piece = self.models.piece("washer")
            width = float(rng.choice([0.45, 0.6, 0.6, 0.9, 1.2]))
            piece = piece or carpentry.cupboard(
                self.palette, rng, width, 0.6, high, worktop=True, front=front
            )
            width = piece.size[0]
            if s + width > wall.length:
                break
            placed = self.layout.along_wall(piece, k, s + width / 2, gap=0.005, tries=1)
            if placed is not None and piece.tops:
                if width > 0.55 and rng.random() < 0.3:
                    self._sink(placed)
                clutter.on(placed, ("kitchen thing", "kitchen thing", "tableware", "own", "own"), 5 * mess)
            if above and placed is not None and piece.size[2] < 1.2:
                over = carpentry.cupboard(
                    self.palette, rng, width, 0.34, float(rng.uniform(0.55, 0.75)), plinth=0.0, front=front
                )
                if rng.random() < 0.85:
                    self.layout.hang(over, k, s + width / 2, 1.42)
            s += width + 0.002

    def _sink(self, placed: Placed) -> None:
        """A shining basin with a tap."""
        into = Assembly("sink")
        steel = self.palette.paint((0.5, 0.5, 0.5), roughness=0.25, mirror=0.35)
        z = placed.piece.size[2]
        into.boxes([[0, 0, z + 0.003]], [[0.25, 0.21, 0.003]], steel)
        into.boxes(
            [[0, -0.02, z + 0.007]],
            [[0.19, 0.14, 0.001]],
            self.palette.paint((0.16, 0.16, 0.16), roughness=0.3, mirror=0.2),
        )
        t = np.linspace(0, math.pi, 10)
        arc = np.stack([0 * t, 0.17 - 0.09 * (1 - np.cos(t)), z + 0.18 + 0.09 * np.sin(t)], 1)
        into.tubes(np.concatenate([[[0, 0.17, z]], arc])[None], 0.011, steel, sides=8)
        self.layout.builder.add(into.mesh().moved((placed.x, placed.y, placed.z), placed.yaw))
