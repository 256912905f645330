"""Rooms by kind: what stands in them and where, by simple rules of living."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gbpn.worlds.rooms import carpentry, upholstery
from gbpn.worlds.rooms.fitting import Fitter
from gbpn.worlds.rooms.layout import Piece, Placed

__all__ = ["KINDS", "PUBLIC", "Furnisher", "RoomKind"]


@dataclass(frozen=True, kw_only=True)
class RoomKind:
    """A kind of room: how often, how large, how high."""

    share: float
    width: tuple[float, float]
    depth: tuple[float, float]
    height: tuple[float, float] = (2.35, 2.9)


KINDS: dict[str, RoomKind] = {
    "living": RoomKind(share=0.2, width=(3.4, 6.0), depth=(3.8, 7.5)),
    "bedroom": RoomKind(share=0.18, width=(2.7, 4.6), depth=(3.0, 5.0)),
    "kitchen": RoomKind(share=0.14, width=(2.4, 4.6), depth=(2.8, 5.5)),
    "dining": RoomKind(share=0.08, width=(3.0, 5.0), depth=(3.4, 6.0)),
    "office": RoomKind(share=0.12, width=(3.0, 7.0), depth=(3.2, 7.5), height=(2.5, 3.2)),
    "study": RoomKind(share=0.06, width=(2.6, 4.2), depth=(2.8, 4.6)),
    "bathroom": RoomKind(share=0.07, width=(1.9, 3.2), depth=(2.2, 4.0)),
    "playroom": RoomKind(share=0.04, width=(2.8, 4.6), depth=(3.0, 5.5)),
    "classroom": RoomKind(share=0.04, width=(5.0, 7.5), depth=(5.5, 7.5), height=(2.7, 3.3)),
    "corridor": RoomKind(share=0.02, width=(1.3, 2.4), depth=(4.5, 7.5)),
    "shop": RoomKind(share=0.03, width=(4.0, 7.5), depth=(4.5, 7.5), height=(2.6, 3.4)),
    "storage": RoomKind(share=0.02, width=(2.2, 5.0), depth=(2.6, 6.0)),
}
PUBLIC = ("office", "classroom", "shop", "corridor")


class Furnisher(Fitter):
    """Furnishes one room."""

    def furnish(self, kind: str) -> None:
        recipes: dict[str, Callable[[], None]] = {
            "living": self._living,
            "bedroom": self._bedroom,
            "kitchen": self._kitchen,
            "dining": self._dining,
            "office": self._office,
            "study": self._study,
            "bathroom": self._bathroom,
            "playroom": self._playroom,
            "classroom": self._classroom,
            "corridor": self._corridor,
            "shop": self._shop,
            "storage": self._storage,
        }
        recipes[kind]()
        self._radiators()
        self._fill(kind)
        self.decorator.walls(kind)
        self._floor(kind)

    def _living(self) -> None:
        layout, rng = self.layout, self.rng
        sofa = self._model(
            "sofa", lambda: upholstery.sofa(self.palette, rng, self._uniform(1.5, 2.4)), 0.6, 3.0
        )
        placed = layout.along_wall(sofa, gap=self._uniform(0.02, 0.15), tries=30)
        if placed is not None:
            self._around_sofa(placed)
        if rng.random() < 0.7:

            def own() -> Piece:
                return carpentry.cupboard(
                    self.palette, rng, self._uniform(1.0, 1.9), 0.42, self._uniform(0.4, 0.6)
                )

            opposite = None if placed is None or placed.wall is None else (placed.wall + 2) % 4
            stand = layout.along_wall(self._model("tv stand", own, 0.5), opposite, tries=20)
            if stand is not None:
                self.decorator.screen_on(stand)
                self.clutter.on(stand, ("lived", "own"), 3 * self.mess)
        self._shelves(int(rng.integers(0, 3)))
        if rng.random() < 0.6:
            self._cupboard()
        for _ in range(int(rng.integers(0, 3))):
            piece = self._model(
                "armchair", lambda: upholstery.sofa(self.palette, rng, self._uniform(0.75, 0.95)), 0.6
            )
            layout.anywhere(piece, tries=6)
        if min(layout.half) > 2.0 and rng.random() < 0.5:
            self._dining_table(layout.anywhere)
        if rng.random() < 0.4:
            special = self.models.piece("special")
            if special is not None:
                layout.along_wall(special)
        self._plants(int(rng.integers(0, 3)))

    def _around_sofa(self, sofa: Placed) -> None:
        """A low table before it, a rug under that, armchairs, a lamp."""
        layout, rng = self.layout, self.rng
        depth = sofa.piece.size[1]
        self.clutter.on(sofa, ("clothes", "own", "lived", "toy"), 0.5 * self.mess)
        middle = sofa.at(self._uniform(-0.2, 0.2), -(depth / 2 + 0.75))
        if rng.random() < 0.65:
            self.decorator.rug(float(middle[0]), float(middle[1]), sofa.yaw)
        if rng.random() < 0.85:

            def own() -> Piece:
                return carpentry.table(
                    self.palette,
                    rng,
                    self._uniform(0.8, 1.3),
                    self._uniform(0.5, 0.75),
                    self._uniform(0.35, 0.47),
                    glass=rng.random() < 0.25,
                )

            low = self._model("coffee table", own, 0.45)
            placed = layout.try_put(
                low, float(middle[0]), float(middle[1]), sofa.yaw + self._uniform(-0.1, 0.1)
            )
            if placed is not None:
                self.clutter.on(placed, ("tableware", "lived", "own", "own"), 6 * self.mess)
        for side in (-1, 1):
            if rng.random() < 0.5:
                chair = self._model(
                    "armchair", lambda: upholstery.sofa(self.palette, rng, self._uniform(0.75, 0.95)), 0.6
                )
                x, y = sofa.at(side * (sofa.piece.size[0] / 2 + 0.5), -(depth / 2 + 0.7))
                layout.try_put(
                    chair, float(x), float(y), sofa.yaw - side * (math.pi / 2 + self._uniform(-0.4, 0.5))
                )
            if rng.random() < 0.5:
                x, y = sofa.at(side * (sofa.piece.size[0] / 2 + 0.28), 0.1)
                if rng.random() < 0.5:
                    self._lamp_beside(float(x), float(y))
                else:
                    small = carpentry.table(self.palette, rng, 0.42, 0.42, 0.5)
                    put = layout.try_put(small, float(x), float(y), sofa.yaw)
                    if put is not None:
                        self.clutter.on(put, ("table lamp", "small plant", "own"), 8)

    def _bedroom(self) -> None:
        layout, rng = self.layout, self.rng
        wide = self._uniform(0.9, 1.85)
        piece = self._model(
            "bed",
            lambda: upholstery.bed(self.palette, rng, wide),
            0.45,
            min(2.2, 1.5 * float(layout.half.min())),
        )
        placed = layout.along_wall(piece, tries=40, gap=0.03)
        if placed is not None:
            self.clutter.on(placed, ("clothes", "clothes", "own", "toy", "lived"), 0.5 * self.mess)
            for side in (-1, 1):
                if rng.random() < 0.75:

                    def own() -> Piece:
                        return carpentry.cupboard(
                            self.palette, rng, self._uniform(0.38, 0.5), 0.4, self._uniform(0.42, 0.6)
                        )

                    small = self._model("bedside", own, 0.4)
                    x, y = placed.at(
                        side * (piece.size[0] / 2 + small.size[0] / 2 + 0.05),
                        piece.size[1] / 2 - small.size[1] / 2,
                    )
                    stood = layout.try_put(small, float(x), float(y), placed.yaw)
                    if stood is not None:
                        self.clutter.on(stood, ("table lamp", "table lamp", "own", "lived"), 11)
            if rng.random() < 0.4:
                x, y = placed.at(self._uniform(-0.5, 0.5), -piece.size[1] / 2)
                self.decorator.rug(float(x), float(y), placed.yaw)
        if rng.random() < 0.8:

            def own() -> Piece:
                return carpentry.cupboard(
                    self.palette, rng, self._uniform(0.9, 2.2), 0.6, self._uniform(1.9, 2.25)
                )

            layout.along_wall(self._model("wardrobe", own, 0.4), tries=20)
        if rng.random() < 0.7:
            self._cupboard((0.7, 1.4), (0.7, 1.1))
        if rng.random() < 0.35:
            self._desk()
        if rng.random() < 0.5:
            layout.along_wall(self._chair(), tries=6)
        if rng.random() < 0.25:
            layout.along_wall(upholstery.clothes_rail(self.palette, rng))
        self._shelves(int(rng.random() < 0.4))
        if rng.random() < 0.3:
            self._lamp_beside(*(float(v) for v in (layout.half - 0.35) * rng.choice([-1, 1], 2)))
        self._plants(int(rng.random() < 0.3))

    def _kitchen(self) -> None:
        layout, rng = self.layout, self.rng
        first = int(rng.integers(4))
        self.decorator.kitchen_row(first, self.clutter, self.mess)
        if rng.random() < 0.55:
            self.decorator.kitchen_row(
                (first + int(rng.choice([1, 3]))) % 4, self.clutter, self.mess, fill=0.6
            )
        for role in ("fridge", "washer"):
            piece = self.models.piece(role)
            if piece is not None and rng.random() < 0.6:
                placed = layout.along_wall(piece)
                if placed is not None and role == "washer":
                    self.clutter.on(placed, ("kitchen thing", "own"), 5)
        if rng.random() < 0.75:
            self._dining_table(layout.anywhere)
        if rng.random() < 0.3:
            self._shelves(1, "boxes")
        if rng.random() < 0.25:
            self._cupboard()

    def _dining(self) -> None:
        layout, rng = self.layout, self.rng

        def own() -> Piece:
            return self._table((1.2, 2.2), (0.8, 1.1))

        piece = self._model("table", own, 0.55)
        yaw = float(rng.choice([0.0, math.pi / 2])) + float(rng.normal(0, 0.03))
        placed = layout.try_put(piece, self._uniform(-0.4, 0.4), self._uniform(-0.4, 0.4), yaw)
        if placed is not None:
            if rng.random() < 0.4:
                self.decorator.rug(placed.x, placed.y, placed.yaw, 1.5)
            self._seats_around(placed, self._chair(), int(rng.integers(4, 9)))
            if rng.random() < 0.2:
                self.decorator.cloth_on(placed)
            self.clutter.on(
                placed, ("tableware", "tableware", "tableware", "small plant", "own"), 6 * self.mess
            )
        for _ in range(int(rng.integers(1, 3))):
            self._cupboard()
        self._shelves(int(rng.integers(0, 2)))
        self._plants(int(rng.integers(0, 3)))

    def _office(self) -> None:
        layout, rng = self.layout, self.rng
        meeting = rng.random() < 0.25
        if meeting:
            table = self._table((1.8, 3.0), (0.9, 1.3))
            placed = layout.try_put(table, 0.0, self._uniform(-0.5, 0.5), float(rng.choice([0, math.pi / 2])))
            if placed is not None:
                self._seats_around(placed, self._chair(0.6, "office chair"), 10)
                self.clutter.on(placed, ("office thing", "tableware", "own"), 2 * self.mess)
        for _ in range(
            int(rng.integers(1, 3)) if meeting else max(1, int(layout.half[0] * layout.half[1] / 1.3))
        ):
            self._desk()
        if not meeting and min(layout.half) > 2.2 and rng.random() < 0.6:

            def own() -> Piece:
                return self._table((1.2, 1.8), (0.7, 0.85), 0.73)

            for _ in range(int(rng.integers(1, 4))):
                placed = layout.anywhere(self._model("desk", own, 0.3), straight=True)
                if placed is not None:
                    self._at_work(placed)
        for _ in range(int(rng.integers(0, 3))):

            def own() -> Piece:
                return carpentry.cupboard(
                    self.palette, rng, self._uniform(0.4, 1.0), 0.45, self._uniform(0.6, 1.9)
                )

            placed = layout.along_wall(self._model("filing", own, 0.4))
            if placed is not None:
                self.clutter.on(placed, ("office thing", "own", "small plant"), 6 * self.mess)
        self._shelves(int(rng.integers(0, 3)), str(rng.choice(["books", "boxes"])))
        self._plants(int(rng.integers(0, 2)))

    def _study(self) -> None:
        self._desk()
        if self.rng.random() < 0.4:
            self._desk()
        self._shelves(int(self.rng.integers(1, 4)))
        if self.rng.random() < 0.5:

            def own() -> Piece:
                return upholstery.sofa(self.palette, self.rng, self._uniform(0.8, 1.8))

            self.layout.along_wall(self._model("armchair", own, 0.4))
        self._cupboard()
        if self.rng.random() < 0.4:
            self.decorator.rug(self._uniform(-0.4, 0.4), self._uniform(-0.4, 0.4), 0.0)
        self._plants(int(self.rng.integers(0, 2)))

    def _bathroom(self) -> None:
        layout, rng = self.layout, self.rng
        for role, chance in (
            ("bath", 0.55),
            ("shower", 0.4),
            ("basin", 0.95),
            ("toilet", 0.8),
            ("bidet", 0.2),
            ("washer", 0.3),
        ):
            piece = self.models.piece(role, lambda size: size[0] < 1.5 * float(layout.half.min()) + 0.4)
            if piece is None or rng.random() > chance:
                continue
            hung = piece.name == "washbasin" and piece.size[2] < 0.6
            if hung:
                continue
            placed = layout.along_wall(piece, tries=25)
            if placed is not None and role in ("basin", "washer"):
                if role == "basin" and placed.wall is not None:
                    self.decorator.mirror_over(placed)
                self.clutter.on(placed, ("bath thing", "bath thing", "own"), 8 * self.mess)
        if rng.random() < 0.8:
            self._cupboard((0.4, 0.9), (0.5, 1.4))
        for role in ("bath floor", "towel rack"):
            piece = self.models.piece(role)
            if piece is None:
                continue
            if role == "bath floor":
                layout.along_wall(piece, tries=6)
            else:
                for _ in range(3):
                    k = int(rng.integers(4))
                    layout.hang(
                        piece, k, self._uniform(0.4, layout.walls[k].length - 0.4), self._uniform(0.9, 1.2)
                    )
        if rng.random() < 0.6:
            self.decorator.rug(self._uniform(-0.4, 0.4), self._uniform(-0.4, 0.4), 0.0, 0.4)

    def _playroom(self) -> None:
        layout, rng = self.layout, self.rng
        self._shelves(int(rng.integers(1, 4)), "boxes")
        bed = self.models.piece("child bed")
        if bed is not None and rng.random() < 0.6:
            layout.along_wall(bed, tries=20)
        self.decorator.rug(self._uniform(-0.5, 0.5), self._uniform(-0.5, 0.5), self._uniform(0, 3))
        low = carpentry.table(self.palette, rng, self._uniform(0.6, 0.9), self._uniform(0.5, 0.7), 0.48)
        placed = layout.anywhere(low)
        if placed is not None:
            self.clutter.on(placed, ("toy", "own"), 8 * self.mess)
        if rng.random() < 0.4:
            exercise = self.models.piece("exercise")
            if exercise is not None:
                layout.anywhere(exercise)
        self._cupboard()
        self._floor_things(("toy", "toy", "own", "clothes"), int(rng.integers(4, 22)))

    def _classroom(self) -> None:
        layout, rng = self.layout, self.rng
        chair = self._chair(0.5)
        if len(chair.mesh) > 4000:  # times forty
            chair = self._chair(0.0)
        table = self._table((1.1, 1.4), (0.5, 0.65), 0.72)
        x, y = layout.half
        aisle = self._uniform(0.5, 0.9)
        for py in np.arange(-y + 1.9, y - 0.6, self._uniform(1.2, 1.6)):
            for px in np.arange(-x + 0.9, x - 0.7, table.size[0] + aisle):
                placed = layout.try_put(
                    table,
                    float(px + rng.normal() * 0.04),
                    float(py + rng.normal() * 0.04),
                    float(rng.normal() * 0.03) + math.pi,
                )
                if placed is None:
                    continue
                self.clutter.on(placed, ("office thing", "own", "own"), 1.5 * self.mess)
                for side in (-0.3, 0.3):
                    if rng.random() < 0.85:
                        cx, cy = placed.at(side, table.size[1] / 2 + 0.12 + self._uniform(0, 0.15))
                        layout.builder.add(
                            chair.mesh.moved(
                                (float(cx), float(cy), 0), placed.yaw + float(rng.normal(0, 0.2))
                            )
                        )
        self.decorator.board(0)
        self._desk(0)
        self._shelves(int(rng.integers(0, 3)), "boxes")

    def _corridor(self) -> None:
        rng = self.rng
        for _ in range(int(rng.integers(1, 4))):
            if rng.random() < 0.4:
                self.layout.along_wall(carpentry.bench(self.palette, rng, self._uniform(0.9, 1.6)))
            elif rng.random() < 0.6:
                own = carpentry.cupboard(
                    self.palette,
                    rng,
                    self._uniform(0.6, 1.4),
                    self._uniform(0.25, 0.4),
                    self._uniform(0.7, 1.9),
                )
                placed = self.layout.along_wall(own)
                if placed is not None:
                    self.clutter.on(placed, ("lived", "clothes", "own"), 5)
        if rng.random() < 0.5:
            self.layout.along_wall(upholstery.clothes_rail(self.palette, rng))
        self._plants(int(rng.integers(0, 2)))

    def _shop(self) -> None:
        layout, rng = self.layout, self.rng
        kind = str(rng.choice(["goods", "goods", "books"]))
        for _ in range(int(rng.integers(3, 7))):
            placed = layout.along_wall(self._shelf((1.0, 1.8), (1.5, 2.2)))
            if placed is not None:
                self.clutter.fill(placed, kind)
        for px in np.arange(-layout.half[0] + 1.5, layout.half[0] - 1.2, self._uniform(1.5, 2.2)):
            for py in np.arange(-layout.half[1] + 1.6, layout.half[1] - 1.4, 1.7):
                shelf = carpentry.shelves(self.palette, rng, 1.5, 0.45, self._uniform(1.1, 1.7))
                for turn in (math.pi / 2, -math.pi / 2):
                    side = 0.23 if turn > 0 else -0.23
                    placed = layout.put(shelf, float(px) - side, float(py), turn)
                    if rng.random() < 0.97:
                        self.clutter.fill(placed, kind)
        counter = carpentry.cupboard(
            self.palette, rng, self._uniform(1.2, 2.0), 0.6, self._uniform(0.95, 1.1)
        )
        placed = layout.along_wall(counter)
        if placed is not None:
            self.decorator.workplace(placed)
            self.clutter.on(placed, ("own", "office thing"), 6)

    def _storage(self) -> None:
        rng = self.rng
        for _ in range(int(rng.integers(1, 5))):
            placed = self.layout.along_wall(self._shelf((0.8, 1.6), (1.2, 2.1)))
            if placed is not None:
                self.clutter.fill(placed, "boxes")
        for _ in range(int(rng.integers(3, 12))):
            piece = self.models.piece("storage thing", lambda size: max(size) < 2.0)
            piece = piece or self.clutter.thing(("own",))
            if piece is not None:
                self.layout.anywhere(piece, tries=5)
