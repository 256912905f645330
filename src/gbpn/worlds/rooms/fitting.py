"""Things that belong together: chairs around a table, what is on a desk, what lines walls."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gbpn.worlds.rooms import carpentry, upholstery
from gbpn.worlds.rooms.decoration import Decorator
from gbpn.worlds.rooms.interior import Interior
from gbpn.worlds.rooms.layout import Layout, Piece, Placed
from gbpn.worlds.rooms.models import Models
from gbpn.worlds.rooms.things import Clutter, plant

__all__ = ["Fitter"]


class Fitter:
    """Puts groups of things into one room."""

    def __init__(self, layout: Layout, models: Models, palette: Interior, rng: np.random.Generator) -> None:
        self.layout, self.models, self.palette, self.rng = layout, models, palette, rng
        self.clutter = Clutter(layout, models, palette, rng)
        self.decorator = Decorator(layout, models, palette, rng)
        self.mess = float(rng.choice([0.6, 1.0, 1.4, 2.0, 3.2]))
        """How much lies about."""

    def _model(self, role: str, own: Callable[[], Piece], chance: float = 0.75, limit: float = 9.0) -> Piece:
        """A model of the stock, or one of ours."""
        if self.rng.random() < chance:
            piece = self.models.piece(role, lambda size: size[0] < limit)
            if piece is not None:
                return piece
        return own()

    def _uniform(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def _chair(self, chance: float = 0.6, role: str = "chair") -> Piece:
        return self._model(role, lambda: carpentry.chair(self.palette, self.rng), chance)

    def _table(self, width: tuple[float, float], depth: tuple[float, float], high: float = 0.74) -> Piece:
        glass = self.rng.random() < 0.08
        return carpentry.table(
            self.palette, self.rng, self._uniform(*width), self._uniform(*depth), high, glass=glass
        )

    def _shelf(
        self, width: tuple[float, float] = (0.6, 1.6), high: tuple[float, float] = (0.8, 2.1)
    ) -> Piece:
        return carpentry.shelves(
            self.palette, self.rng, self._uniform(*width), self._uniform(0.25, 0.4), self._uniform(*high)
        )

    def _shelves(self, count: int, kind: str = "books") -> None:
        for _ in range(count):
            if self.rng.random() < 0.3:
                piece = self.models.piece("bookcase")
                placed = self.layout.along_wall(piece) if piece is not None else None
                if placed is not None:
                    self.clutter.on(placed, ("lived", "small plant", "own"), 4)
                continue
            placed = self.layout.along_wall(self._shelf())
            if placed is not None:
                self.clutter.fill(placed, kind)

    def _cupboard(
        self, width: tuple[float, float] = (0.6, 1.7), high: tuple[float, float] = (0.6, 1.3)
    ) -> Placed | None:
        def own() -> Piece:
            return carpentry.cupboard(
                self.palette, self.rng, self._uniform(*width), self._uniform(0.35, 0.5), self._uniform(*high)
            )

        placed = self.layout.along_wall(self._model("sideboard", own, 0.4))
        if placed is not None:
            self.clutter.on(placed, ("lived", "small plant", "table lamp", "own", "own"), 5 * self.mess)
        return placed

    def _seats_around(self, placed: Placed, chair: Piece, count: int) -> None:
        """Chairs along the sides of a table, pushed in more or less."""
        width, depth = placed.piece.size[:2]
        sides = [(x, -1) for x in np.linspace(-width / 2, width / 2, max(1, int(width / 0.6)) + 2)[1:-1]]
        places = [
            (x, s * (depth / 2 + 0.16 + self._uniform(-0.05, 0.25)), 0.0 if s > 0 else math.pi)
            for x, _ in sides
            for s in (-1, 1)
        ]
        places += [
            (s * (width / 2 + 0.16 + self._uniform(-0.05, 0.25)), 0.0, -s * math.pi / 2) for s in (-1, 1)
        ]
        order = self.rng.permutation(len(places))
        hidden = self.layout.taken.pop() if placed.z < 0.3 else None
        put = []
        for k in order[:count]:
            x, y, turn = places[k]
            wx, wy = placed.at(x, y)
            yaw = placed.yaw + turn + float(self.rng.normal(0, 0.12 if self.rng.random() < 0.8 else 0.7))
            if abs(wx) < self.layout.half[0] - 0.25 and abs(wy) < self.layout.half[1] - 0.25:
                put.append((float(wx), float(wy), yaw))
        for wx, wy, yaw in put:
            self.layout.try_put(chair, wx, wy, yaw, -0.06)
        if hidden is not None:
            self.layout.taken.append(hidden)

    def _lamp_beside(self, x: float, y: float) -> None:
        piece = upholstery.floor_lamp(self.palette, self.rng)
        self.layout.try_put(piece, x, y, self._uniform(0, 6))

    def _plants(self, count: int) -> None:
        for _ in range(count):
            piece = self.models.piece("plant") if self.rng.random() < 0.6 else None
            piece = piece or plant(self.palette, self.rng, self._uniform(0.5, 1.7))
            x, y = (self.layout.half - 0.35) * self.rng.choice([-1, 1], 2)
            if self.layout.try_put(piece, float(x), float(y), self._uniform(0, 6)) is None:
                self.layout.along_wall(piece, tries=4)

    def _dining_table(self, how: Callable[..., Placed | None]) -> None:
        rng = self.rng

        def own() -> Piece:
            return self._table((0.9, 2.0), (0.75, 1.05))

        placed = how(self._model("table", own, 0.5, 2.0), straight=True, tries=14)
        if placed is None:
            return
        self._seats_around(placed, self._chair(), int(rng.integers(2, 7)))
        if rng.random() < 0.15:
            self.decorator.cloth_on(placed)
        self.clutter.on(placed, ("tableware", "tableware", "small plant", "own"), 5 * self.mess)

    def _desk(self, wall: int | None = None) -> Placed | None:
        """A desk at a wall with what is on it, and its chair."""

        def own() -> Piece:
            return self._table((1.0, 1.7), (0.55, 0.8), 0.73)

        placed = self.layout.along_wall(self._model("desk", own, 0.4), wall, front=0.35)
        if placed is not None:
            self._at_work(placed)
        return placed

    def _at_work(self, desk: Placed) -> None:
        rng = self.rng
        if rng.random() < 0.75:
            self.decorator.workplace(desk)
        self.clutter.on(desk, ("office thing", "own", "own", "tableware", "lived"), 5 * self.mess)
        chair = self._chair(0.7, "office chair")
        x, y = desk.at(self._uniform(-0.2, 0.2), -(desk.piece.size[1] / 2 + 0.2 + self._uniform(-0.1, 0.3)))
        self.layout.try_put(chair, float(x), float(y), desk.yaw + math.pi + float(rng.normal(0, 0.4)), -0.1)

    def _fill(self, kind: str) -> None:
        """Until the walls are lined: what else such a room has."""
        extra = {
            "living": ("shelf", "cupboard", "armchair", "special", "chair", "plant", "stool", "lamp"),
            "bedroom": ("cupboard", "chair", "shelf", "clothes", "special", "dressing table", "lamp"),
            "kitchen": ("cupboard", "chair", "shelf", "stool", "storage thing"),
            "dining": ("cupboard", "chair", "shelf", "plant", "special", "armchair"),
            "office": ("shelf", "filing", "chair", "plant", "desk", "special"),
            "study": ("shelf", "cupboard", "chair", "armchair", "plant", "special", "lamp"),
            "bathroom": ("cupboard", "bath floor", "stool", "radiator"),
            "playroom": ("shelf", "cupboard", "chair", "toy", "exercise"),
            "classroom": ("shelf", "filing", "chair", "cupboard"),
            "corridor": ("cupboard", "bench", "chair", "plant"),
            "shop": ("shelf", "cupboard", "stool"),
            "storage": ("shelf", "storage thing", "storage thing", "exercise", "cupboard"),
        }[kind]
        for _ in range(int(self._uniform(0.35, 0.8) * float(np.prod(2 * self.layout.half))) + 2):
            if self.layout.crowded:
                break
            what = extra[int(self.rng.integers(len(extra)))]
            if what == "shelf":
                self._shelves(1, "books" if kind in ("living", "study", "office", "bedroom") else "boxes")
            elif what == "cupboard":
                self._cupboard()
            elif what == "plant":
                self._plants(1)
            elif what == "desk":
                self._desk()
            elif what == "lamp":
                self._lamp_beside(*(float(v) for v in (self.layout.half - 0.3) * self.rng.choice([-1, 1], 2)))
            elif what in ("chair", "stool", "bench", "clothes"):
                made: dict[str, Callable[[], Piece]] = {
                    "chair": self._chair,
                    "clothes": lambda: upholstery.clothes_rail(self.palette, self.rng),
                    "stool": lambda: carpentry.chair(self.palette, self.rng, stool=True),
                    "bench": lambda: carpentry.bench(self.palette, self.rng, 1.2),
                }
                piece = made[what]()
                self.layout.along_wall(piece, gap=self._uniform(0.02, 0.2), tries=8)
            else:
                model = self.models.piece(what)
                placed = self.layout.along_wall(model) if model is not None else None
                if placed is not None:
                    self.clutter.on(placed, ("lived", "own"), 4 * self.mess)

    def _radiators(self) -> None:
        """Under windows, where nothing stands."""
        for k, wall in enumerate(self.layout.walls):
            for hole in wall.openings:
                if hole.kind == "window" and hole.low > 0.55 and self.rng.random() < 0.6:
                    piece = upholstery.radiator(
                        self.palette, self.rng, min(hole.end - hole.start, self._uniform(0.6, 1.4))
                    )
                    if piece.size[2] < hole.low - 0.05:
                        self.layout.along_wall(
                            piece,
                            k,
                            (hole.start + hole.end) / 2,
                            gap=0.04,
                            tries=1,
                        )

    def _floor(self, kind: str) -> None:
        """What lies or stands about, and who is there."""
        rng = self.rng
        roles = {
            "bedroom": ("clothes", "clothes", "own", "floor thing"),
            "playroom": ("toy",),
            "bathroom": ("bath floor",),
            "kitchen": ("floor thing", "own"),
        }.get(kind, ("floor thing", "own", "own"))
        self._floor_things(roles, int(rng.poisson(1.5 * self.mess)))
        if rng.random() < 0.13:
            for _ in range(int(rng.integers(1, 3))):
                person = self.models.piece("person")
                if person is not None:
                    self.layout.anywhere(person, tries=4)

    def _floor_things(self, roles: tuple[str, ...], count: int) -> None:
        for _ in range(count):
            role = roles[int(self.rng.integers(len(roles)))]
            piece = self.models.piece(role) if role == "floor thing" else self.clutter.thing((role,))
            if piece is not None:
                if self.rng.random() < 0.5:
                    self.layout.along_wall(piece, gap=self._uniform(0.02, 0.3), tries=4)
                else:
                    self.layout.anywhere(piece, tries=4)
