"""Small things of our own, and how they are strewn: books, boxes, papers, bottles, cups, baskets, cables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.rooms.interior import CLOTHS, Interior
from gbpn.worlds.rooms.layout import Layout, Piece, Placed, Top
from gbpn.worlds.rooms.models import Models

__all__ = ["Clutter", "plant"]


class Clutter:
    """Puts things on tops, shelves and floors."""

    def __init__(self, layout: Layout, models: Models, palette: Interior, rng: np.random.Generator) -> None:
        self.layout, self.models, self.palette, self.rng = layout, models, palette, rng
        self._ready: dict[str, list[Piece]] = {}

    def on(self, placed: Placed, roles: Sequence[str], amount: float) -> None:
        """On each top of a piece about `amount` things a square metre, at least now and then one."""
        for top in placed.piece.tops if not self.layout.crowded else ():
            area = (top[1] - top[0]) * (top[3] - top[2])
            self._strew(placed, top, roles, int(self.rng.poisson(max(0.4, amount * area))))

    def fill(self, placed: Placed, kind: str) -> None:
        """Shelves full of books, boxes, or things one after the other."""
        for top in placed.piece.tops if not self.layout.crowded else ():
            mood = self.rng.random()
            if kind == "books" and mood < 0.6:
                self._books(placed, top, float(self.rng.uniform(0.4, 1.0)))
            elif kind == "goods" or (kind == "boxes" and mood < 0.85):
                self._row(placed, top)
            elif mood < 0.9:
                self._strew(placed, top, ("lived", "small plant", "own", "own"), int(self.rng.poisson(2.5)))

    def thing(self, roles: Sequence[str]) -> Piece | None:
        """One small thing; `own` ones are made here."""
        role = str(roles[int(self.rng.integers(len(roles)))])
        if role != "own":
            known = self._ready.setdefault(role, [])
            if len(known) > 3 and self.rng.random() < 0.6:
                return known[int(self.rng.integers(len(known)))]
            piece = self.models.piece(role, lambda size: max(size) < 0.62)
            if piece is not None:
                known.append(piece)
                return piece
        return _own(self.palette, self.rng)

    def _strew(self, placed: Placed, top: Top, roles: Sequence[str], count: int) -> None:
        done: list[tuple[float, float, float]] = []
        for _ in range(count):
            piece = self.thing(roles)
            if piece is None or piece.size[2] > top[5]:
                continue
            radius = 0.5 * math.hypot(*piece.size[:2])
            if 2 * min(piece.size[:2]) > 1.7 * min(top[1] - top[0], top[3] - top[2]):
                continue
            for _ in range(5):
                slack = min(radius, (top[1] - top[0]) / 2, (top[3] - top[2]) / 2)
                x = self.rng.uniform(top[0] + slack, top[1] - slack + 1e-6)
                y = self.rng.uniform(top[2] + slack, top[3] - slack + 1e-6)
                if all(math.hypot(x - a, y - b) > 0.8 * (radius + r) for a, b, r in done):
                    done.append((x, y, radius))
                    self._stand(placed, piece, x, y, top[4], float(self.rng.normal(0, 0.5)))
                    break

    def _stand(self, placed: Placed, piece: Piece, x: float, y: float, z: float, turn: float) -> None:
        wx, wy = placed.at(x, y)
        self.layout.builder.add(piece.mesh.moved((wx, wy, placed.z + z + 0.001), placed.yaw + turn))

    def _books(self, placed: Placed, top: Top, share: float) -> None:
        """A row of upright books of many sizes, some leaning at its end."""
        rng = self.rng
        x, end = top[0], top[0] + share * (top[1] - top[0])
        limit = min(top[5] * 0.95, 0.34)
        back = top[3] if rng.random() < 0.5 else min(top[2] + 0.24, top[3])
        rows: list[tuple[float, float, float, float, float, float]] = []
        covers: list[int] = []
        while x < end and limit > 0.12:
            thick = float(rng.uniform(0.012, 0.05))
            tall, deep = float(rng.uniform(0.55, 1.0)) * limit, float(rng.uniform(0.11, 0.2))
            if rng.random() < 0.5:
                covers.append(self.palette.paint(self.palette.pick(CLOTHS, 0.4)))
            else:
                covers.append(self.palette.cover("label", (0.75, 0.75, 0.75)))
            middle = x + thick / 2, back - deep / 2, top[4] + tall / 2
            rows.append((*middle, thick / 2 - 0.0006, deep / 2, tall / 2))
            x += thick + (float(rng.uniform(0.03, 0.15)) if rng.random() < 0.03 else 0.0)
        if rows:
            into = Assembly("books")
            table = np.array(rows)
            into.boxes(table[:, :3], table[:, 3:], np.array(covers), tile=0.4)
            self.layout.builder.add(into.mesh().moved((placed.x, placed.y, placed.z), placed.yaw))

    def _row(self, placed: Placed, top: Top) -> None:
        """Equal packages side by side and behind one another, as in a shop or a store."""
        rng = self.rng
        x = top[0]
        while x < top[1] - 0.05:
            piece = self._package(min(0.9 * top[5], 0.4))
            width, depth, _ = piece.size
            wide = width + float(rng.uniform(0.002, 0.02))
            count = max(1, min(int((top[1] - x) / wide), int(rng.integers(1, 7))))
            if x + width > top[1]:
                break
            for k in range(count):
                if rng.random() < 0.93 and x + k * wide + width <= top[1]:
                    self._stand(
                        placed,
                        piece,
                        x + k * wide + width / 2,
                        top[2] + depth / 2 + 0.01,
                        top[4],
                        float(rng.normal(0, 0.03)),
                    )
            x += count * wide + float(rng.exponential(0.04))

    def _package(self, high: float) -> Piece:
        rng = self.rng
        if rng.random() < 0.3:
            return _bottle(self.palette, rng, min(high, float(rng.uniform(0.12, 0.32))))
        size = (
            float(rng.uniform(0.05, 0.3)),
            float(rng.uniform(0.05, 0.25)),
            float(rng.uniform(0.35, 1.0) * high),
        )
        return _carton(self.palette, rng, size)


def _single(into: Assembly, name: str, size: tuple[float, float, float]) -> Piece:
    return Piece(name=name, mesh=into.mesh(), size=size)


def _carton(palette: Interior, rng: np.random.Generator, size: tuple[float, float, float]) -> Piece:
    into = Assembly("box")
    kind = (
        palette.cover("label", (0.85, 0.85, 0.85))
        if rng.random() < 0.8
        else palette.paint(palette.pick(CLOTHS, 0.4))
    )
    width, depth, high = size
    faces = np.array(
        [
            [[-1, -1, -1], [1, -1, -1], [1, -1, 1], [-1, -1, 1]],
            [[1, -1, -1], [1, 1, -1], [1, 1, 1], [1, -1, 1]],
            [[1, 1, -1], [-1, 1, -1], [-1, 1, 1], [1, 1, 1]],
            [[-1, 1, -1], [-1, -1, -1], [-1, -1, 1], [-1, 1, 1]],
            [[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]],
        ],
        float,
    )
    corners = faces * np.array([width / 2, depth / 2, high / 2]) + np.array([0, 0, high / 2])
    into.quads(corners, kind, coordinates=np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]))
    return _single(into, "box", size)


def _bottle(palette: Interior, rng: np.random.Generator, high: float) -> Piece:
    """Also cups, jars and vases: a profile turned about its axis."""
    into = Assembly("bottle")
    radius = float(rng.uniform(0.1, 0.32)) * high
    radius = float(np.clip(radius, 0.02, 0.09))
    kind = int(rng.integers(4))
    shapes = (
        ((1, 0), (1, 0.6), (0.9, 0.7), (0.35, 0.8), (0.32, 1.0)),
        ((0.7, 0), (0.9, 0.5), (1.0, 1.0)),
        ((0.6, 0), (1.0, 0.35), (0.9, 0.6), (0.45, 0.85), (0.6, 1.0)),
        ((1, 0), (1, 0.9), (0.85, 0.92), (0.85, 1.0)),
    )
    angle = np.linspace(0, 2 * math.pi, 15)
    points = np.stack(
        [
            np.c_[np.cos(angle) * r * radius, np.sin(angle) * r * radius, np.full(15, z * high)]
            for r, z in shapes[kind]
        ]
    )
    shine = float(rng.choice([0.0, 0.05, 0.05]))
    colour = palette.pick(
        (
            (0.05, 0.12, 0.06),
            (0.75, 0.75, 0.72),
            (0.3, 0.05, 0.04),
            (0.06, 0.1, 0.25),
            (0.5, 0.4, 0.2),
            (0.1, 0.05, 0.02),
        ),
        0.3,
    )
    into.loft(points, palette.paint(colour, roughness=0.2, mirror=shine))
    if kind != 1:
        into.discs(
            [[0, 0, high]], (0, 0, 1), shapes[kind][-1][0] * radius, palette.paint((0.3, 0.3, 0.3)), sides=12
        )
    return _single(into, "bottle", (2 * radius, 2 * radius, high))


def _papers(palette: Interior, rng: np.random.Generator) -> Piece:
    """Loose sheets, a magazine, a pile of books."""
    into = Assembly("papers")
    z = 0.0
    pile = int(rng.integers(1, 7))
    books = rng.random() < 0.5
    for _ in range(pile):
        width, depth = (
            (float(rng.uniform(0.13, 0.24)), float(rng.uniform(0.18, 0.3))) if books else (0.21, 0.297)
        )
        thick = float(rng.uniform(0.01, 0.045)) if books else 0.0015
        turn = float(rng.normal(0, 0.25))
        kind = palette.cover("label" if books else "page", (0.85, 0.85, 0.85))
        side = palette.paint((0.6, 0.58, 0.52)) if books else kind
        into.boxes([[0, 0, z + thick / 2]], [[width / 2, depth / 2, thick / 2]], side, turn=turn)
        c, s = math.cos(turn), math.sin(turn)
        flat = (
            np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
            * [width / 2, depth / 2]
            @ np.array([[c, s], [-s, c]])
        )
        into.quads(
            np.c_[flat, np.full(4, z + thick + 0.0006)][None],
            kind,
            coordinates=np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]),
        )
        z += thick + 0.0008
    return _single(into, "papers", (0.24, 0.3, z + 0.001))


def _basket(palette: Interior, rng: np.random.Generator) -> Piece:
    into = Assembly("basket")
    width, depth, high = (
        float(rng.uniform(0.15, 0.4)),
        float(rng.uniform(0.12, 0.3)),
        float(rng.uniform(0.1, 0.28)),
    )
    kind = palette.cover("wicker") if rng.random() < 0.6 else palette.paint(palette.pick(CLOTHS, 0.3))
    for x, y, hx, hy in (
        (0, depth / 2, width / 2, 0.004),
        (0, -depth / 2, width / 2, 0.004),
        (width / 2, 0, 0.004, depth / 2),
        (-width / 2, 0, 0.004, depth / 2),
    ):
        into.boxes([[x, y, high / 2]], [[hx, hy, high / 2]], kind, tile=0.25)
    into.boxes([[0, 0, 0.005]], [[width / 2, depth / 2, 0.005]], kind, tile=0.25)
    return _single(into, "basket", (width, depth, high))


def _frame(palette: Interior, rng: np.random.Generator) -> Piece:
    """A small picture that leans back."""
    into = Assembly("frame")
    width, high = float(rng.uniform(0.1, 0.2)), float(rng.uniform(0.13, 0.25))
    lean = 0.25 * high
    edge = palette.wooden_or_lacquered()
    a, b = width / 2, width / 2 - 0.012
    into.quads(np.array([[[-a, 0.002, 0], [a, 0.002, 0], [a, lean, high], [-a, lean, high]]]), edge, tile=0.9)
    inner = np.array(
        [[[-b, 0, 0.012], [b, 0, 0.012], [b, lean - 0.004, high - 0.012], [-b, lean - 0.004, high - 0.012]]]
    )
    into.quads(
        inner - [0, 0.003, 0],
        palette.cover("photograph"),
        coordinates=np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]),
    )
    into.tubes(np.array([[[0, lean * 0.8, high * 0.8], [0, lean + 0.08, 0]]]), 0.004, edge, sides=4)
    return _single(into, "frame", (width, lean + 0.1, high))


def _bag(palette: Interior, rng: np.random.Generator) -> Piece:
    """Something soft and crumpled."""
    into = Assembly("bag")
    size = rng.uniform([0.08, 0.08, 0.04], [0.22, 0.18, 0.14])
    v, u = np.linspace(0, math.pi, 9)[:, None], np.linspace(0, 2 * math.pi, 17)[None]
    radius = (
        1
        + 0.16 * np.sin(3 * u + 2 * v + rng.uniform(0, 6)) * np.sin(v)
        + 0.1 * np.sin(5 * u - 3 * v) * np.sin(v)
    )
    unit = np.stack(
        [
            np.sin(v) * np.cos(u) * radius,
            np.sin(v) * np.sin(u) * radius,
            np.clip(np.cos(v) * (1 + 0 * u), -0.7, 1),
        ],
        -1,
    )
    into.loft(unit * size + [0, 0, 0.7 * size[2]], palette.cloth(), tile=0.6)
    return _single(into, "bag", (2.3 * float(size[0]), 2.3 * float(size[1]), 1.7 * float(size[2])))


def _own(palette: Interior, rng: np.random.Generator) -> Piece:
    kind = int(rng.choice(6, p=[0.28, 0.2, 0.22, 0.1, 0.1, 0.1]))
    if kind == 0:
        return _papers(palette, rng)
    if kind == 1:
        size = rng.uniform([0.06, 0.05, 0.03], [0.32, 0.26, 0.24]) * rng.choice([0.6, 1.0])
        return _carton(palette, rng, (float(size[0]), float(size[1]), float(size[2])))
    if kind == 2:
        return _bottle(palette, rng, float(rng.uniform(0.07, 0.33)))
    return (_basket, _frame, _bag)[kind - 3](palette, rng)


def plant(palette: Interior, rng: np.random.Generator, high: float) -> Piece:
    """A pot with bent leaves: long ones from the ground, or twigs with many."""
    into = Assembly("plant")
    pot = float(np.clip(0.16 * high + 0.05, 0.06, 0.2))
    angle = np.linspace(0, 2 * math.pi, 17)
    clay = palette.paint(
        palette.pick(((0.4, 0.17, 0.08), (0.7, 0.69, 0.66), (0.08, 0.08, 0.08), (0.3, 0.32, 0.34))),
        roughness=0.4,
        mirror=0.02,
    )
    profile = ((0.7, 0), (0.95, 1.5), (1.0, 1.6), (0.9, 1.55), (0.0, 1.45))
    into.loft(
        np.stack(
            [
                np.c_[np.cos(angle) * r * pot, np.sin(angle) * r * pot, np.full(17, z * pot)]
                for r, z in profile
            ]
        ),
        clay,
    )
    leaf = palette.cover("leaf", roughness=0.5, mirror=0.02)
    base = 1.5 * pot
    twigs = rng.random() < 0.5
    count = int(rng.integers(30, 90)) if twigs else int(rng.integers(12, 40))
    turn = rng.uniform(0, 2 * math.pi, count)
    lean = rng.uniform(0.1, 1.1, count)
    length = (
        (high - base) * rng.uniform(0.35, 0.6, count)
        if twigs
        else (high - base) * rng.uniform(0.6, 1.1, count)
    )
    wide = length * (0.22 if twigs else rng.uniform(0.05, 0.14))
    start = np.zeros((count, 3))
    start[:, 2] = base
    if twigs:
        up = rng.uniform(0.15, 0.75, count)
        start = np.c_[np.cos(turn) * 0.12 * up, np.sin(turn) * 0.12 * up, base + up * (high - base)]
        length = length * 0.6
        into.tubes(
            np.stack([np.tile([0, 0, base], (count // 3, 1)), start[: count // 3]], 1),
            0.005,
            palette.paint((0.1, 0.07, 0.03)),
            sides=4,
        )
    t = np.linspace(0, 1, 6)[None]
    out = length[:, None] * np.sin(lean[:, None] * (0.4 + t)) * t
    rise = length[:, None] * np.cos(lean[:, None] * (0.3 + 1.2 * t)) * t
    half = wide[:, None] * np.sin(np.pi * (0.06 + 0.92 * t)) ** 0.8
    c, s = np.cos(turn)[:, None], np.sin(turn)[:, None]
    middle = np.stack([c * out, s * out, rise], -1) + start[:, None]  # [leaves, 6, 3]
    side = np.stack(np.broadcast_arrays(-s * half, c * half, 0 * half), -1)
    dent = np.stack(np.broadcast_arrays(0.0, 0.0, 0.15 * wide[:, None] + 0 * half), -1)
    rows = np.stack([middle - side, middle - dent, middle + side], 1)  # [leaves, 3, 6, 3]
    u, v = np.broadcast_arrays(np.array([0, 0.5, 1])[:, None], t)
    places = np.broadcast_to(np.stack([u, v], -1), (count, 3, 6, 2))

    def cells(grid: np.ndarray) -> np.ndarray:
        four = [grid[:, :-1, :-1], grid[:, 1:, :-1], grid[:, 1:, 1:], grid[:, :-1, 1:]]
        return np.stack(four, 3).reshape(-1, 4, grid.shape[-1])

    into.quads(cells(rows), leaf, coordinates=cells(places))
    spread = float(min(0.6, 1.2 * length.max()))
    return Piece(name="plant", mesh=into.mesh(), size=(spread, spread, high))
