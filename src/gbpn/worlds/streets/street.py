"""A whole street from its number: its course, what stands at both sides, who moves on it, and its light."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.assets import Stock
from gbpn.worlds.scene import Light, SceneBuilder, World
from gbpn.worlds.streets import furniture, houses, plants
from gbpn.worlds.streets.course import BACK, FRONT, Course
from gbpn.worlds.streets.daylight import Daylight, daylight
from gbpn.worlds.streets.figures import standing_people
from gbpn.worlds.streets.ground import Profile, land, ribbon, road
from gbpn.worlds.streets.palette import Palette
from gbpn.worlds.streets.traffic import traffic

__all__ = ["STYLES", "Street", "build"]

STYLES = ("terrace", "suburb", "village", "avenue", "country", "works")
_SHARES = (0.25, 0.27, 0.18, 0.14, 0.1, 0.06)
_HOUSES = 12
"""Different houses in a street; farther on they come again."""


@dataclass(frozen=True, kw_only=True)
class Street:
    """A street to take pictures of."""

    scene: World
    course: Course
    profile: Profile
    style: str
    day: Daylight
    side: int
    """+1 where traffic keeps to the left (t > 0), −1 where it keeps to the right."""


def build(seed: int, number: int, stock: Stock | None = None) -> Street:
    """The street of this seed and number, the same in any process; most people are models of the stock."""
    rng = np.random.default_rng([seed, number, 31])
    style = str(rng.choice(STYLES, p=_SHARES))
    builder = SceneBuilder()
    palette = Palette(builder, rng)
    bend = 0.0 if style == "avenue" or rng.random() < 0.35 else float(rng.uniform(0.001, 0.008))
    course = Course(rng, bend=bend, hill=float(rng.choice([0.0, rng.uniform(0, 0.03), rng.uniform(0, 0.07)])))
    profile = _profile(style, rng)
    day = daylight(rng)
    into = Assembly()
    season = str(rng.choice(["summer", "autumn", "winter"], p=[0.72, 0.13, 0.15]))
    plan = _Plan(
        into=into,
        course=course,
        profile=profile,
        palette=palette,
        rng=rng,
        style=style,
        day=day,
        season=season,
    )
    land(into, course, profile, palette, rng)
    road(into, course, profile, palette, rng)
    _lots(plan)
    _backdrop(plan)
    lamps = _along_the_kerb(plan)
    side = -1 if rng.random() < 0.8 else 1
    traffic(
        into,
        course,
        profile,
        palette,
        rng,
        side=side,
        lit=day.lamps,
        busy=style in ("terrace", "avenue", "suburb"),
        models=standing_people(stock),
    )
    builder.add(into.mesh())
    if day.sun is not None:
        builder.lights.append(day.sun)
    if day.lamps:
        builder.lights += lamps
    ground = tuple(0.25 * value for value in day.sky)
    builder.lights.append(Light.sky(day.sky, day.haze_colour, ground, panorama=builder.texture(day.panorama)))
    return Street(scene=builder.build(), course=course, profile=profile, style=style, day=day, side=side)


def _profile(style: str, rng: np.random.Generator) -> Profile:
    wide = {
        "terrace": (2.3, 3.2),
        "suburb": (2.4, 3.2),
        "village": (2.1, 2.8),
        "avenue": (3.0, 5.5),
        "country": (2.2, 3.4),
        "works": (3.0, 3.8),
    }
    garden = {
        "terrace": (0.0, 2.0),
        "suburb": (3.0, 7.0),
        "village": (0.3, 5.0),
        "avenue": (0.0, 1.0),
        "country": (2.0, 6.0),
        "works": (3.0, 10.0),
    }
    walk = style != "country" and rng.random() < 0.95
    return Profile(
        lane=float(rng.uniform(*wide[style])),
        parking=2.1 if style in ("terrace", "avenue", "suburb") and rng.random() < 0.7 else 0.0,
        kerb=float(rng.choice([0.06, 0.1, 0.13])) if walk else 0.0,
        verge=float(rng.uniform(0.8, 2.5)) if rng.random() < 0.3 or style == "country" else 0.0,
        pavement=float(rng.uniform(1.3, 3.6)) if walk else 0.0,
        garden=float(rng.uniform(*garden[style])),
    )


@dataclass(kw_only=True)
class _Plan:
    """What the parts of a street are put into."""

    into: Assembly
    course: Course
    profile: Profile
    palette: Palette
    rng: np.random.Generator
    style: str
    day: Daylight
    season: str
    trees: tuple[list[Assembly], list[Assembly]] = field(default_factory=lambda: ([], []))
    """Near and far ones, made when first wanted."""

    def put(
        self,
        part: Assembly,
        name: str,
        s: float,
        t: float,
        z: float = 0.0,
        turn: float = 0.0,
        size: float = 1.0,
    ) -> None:
        """A copy at (s, t); turn 0 heads along the street."""
        self.into.next_thing(name)
        self.into.add(part, self.course.place(s, t, z), float(self.course.heading(s)) + turn, size)

    def facing(self, side: int) -> float:
        """The turn with which a part that faces −y looks at the street from a side."""
        return 0.0 if side > 0 else math.pi


def _lots(plan: _Plan) -> None:
    """House after house along both sides, with what is before them; gaps, side roads, fields."""
    rng, style = plan.rng, plan.style
    widths = {
        "terrace": (6, 11),
        "suburb": (8, 13),
        "village": (8, 15),
        "avenue": (12, 24),
        "country": (9, 14),
        "works": (18, 40),
    }[style]
    kind = "suburb" if style == "country" else style
    ready: list[tuple[houses.House, Assembly]] = []
    for _ in range(_HOUSES):
        house = houses.drawn(rng, kind, float(rng.uniform(*widths)))
        ready.append((house, houses.build(house, plan.palette, rng)))
    apart = {"terrace": 0.0, "suburb": 5.0, "village": 2.5, "avenue": 0.0, "country": 25.0, "works": 9.0}[
        style
    ]
    missing = {
        "terrace": 0.04,
        "suburb": 0.1,
        "village": 0.22,
        "avenue": 0.05,
        "country": 0.72,
        "works": 0.25,
    }[style]
    for side in (-1, 1):
        order = rng.permutation(_HOUSES)
        s, turn = BACK, 0
        crossing = float(rng.uniform(12, 90)) if rng.random() < 0.5 else math.inf
        while s < FRONT:
            gap = (
                float(rng.uniform(0.3, 1) * apart)
                if apart
                else (float(rng.uniform(1, 4)) if rng.random() < 0.08 else 0.0)
            )
            if s <= crossing < s + 14:
                _side_road(plan, s + gap, side)
                s, crossing = s + gap + 9.0, math.inf
                continue
            if rng.random() < missing:
                length = float(rng.uniform(8, 25))
                _open_ground(plan, s, length, side)
                s += length
                continue
            house, built = ready[order[turn % _HOUSES]]
            turn += 1
            middle = s + gap / 2 + house.width / 2
            back = float(rng.uniform(-0.3, 1.5)) if house.detached else 0.0
            front = plan.profile.front + max(plan.profile.garden + back, 0.0)
            plan.put(built, "house", middle, side * front, plan.profile.kerb, plan.facing(side))
            _front_garden(plan, s, gap + house.width, side, front)
            s += gap + house.width


def _front_garden(plan: _Plan, s: float, length: float, side: int, front: float) -> None:
    """A fence with a gate, a path, plants, bins."""
    rng, palette, profile = plan.rng, plan.palette, plan.profile
    room = front - profile.front
    if room < 1.2:
        return
    high = profile.kerb
    gate = float(rng.uniform(0.35, 0.65)) * length
    path = palette.cover(str(rng.choice(["paving", "concrete", "cobbles"])), (0.9, 0.9, 0.9))
    wide = 3.0 if rng.random() < 0.4 else 1.2
    t = side * profile.front, side * front
    ribbon(
        plan.into,
        plan.course,
        (s + gate - wide / 2, s + gate + wide / 2),
        t,
        (high + 0.01, high + 0.01),
        path,
        tile=2.4,
    )
    if s > 130:
        return
    if rng.random() < 0.75:
        kind = str(rng.choice(furniture.FENCES))
        for a, b in ((s, s + gate - wide / 2), (s + gate + wide / 2, s + length)):
            if b - a > 1:
                part = furniture.fence(kind, b - a, palette, rng)
                start = a if side > 0 else b
                plan.put(part, "fence", start, side * (profile.front + 0.1), high, plan.facing(side))
    for _ in range(int(rng.integers(0, 4))):
        place = float(s + rng.uniform(0.1, 0.9) * length)
        if abs(place - s - gate) > wide / 2 + 0.8:
            part = plants.bush(palette, rng)
            plan.put(
                part, "bush", place, side * (profile.front + rng.uniform(0.8, max(room - 0.8, 0.9))), high
            )
    if rng.random() < 0.4:
        plan.put(
            furniture.bin_(palette, rng),
            "bin",
            s + gate + wide / 2 + 0.5,
            side * (profile.front + 0.6),
            high,
            float(rng.uniform(0, 6)),
        )


def _open_ground(plan: _Plan, s: float, length: float, side: int) -> None:
    """A fence before a meadow, with trees and bushes on it."""
    rng, profile = plan.rng, plan.profile
    if rng.random() < 0.7 and s < 150:
        kind = str(rng.choice(["wires", "hedge", "boards", "pickets", "wall"]))
        part = furniture.fence(kind, length, plan.palette, rng)
        start = s if side > 0 else s + length
        plan.put(part, "fence", start, side * (profile.front + 0.2), profile.kerb, plan.facing(side))
    for _ in range(int(rng.integers(0, 4))):
        place, away = float(s + rng.uniform(0, length)), float(rng.uniform(1.5, 12))
        plan.put(
            _tree(plan, far=bool(abs(place - 25) > 60)),
            "tree",
            place,
            side * (profile.front + away),
            0,
            float(rng.uniform(0, 6)),
        )


def _side_road(plan: _Plan, s: float, side: int) -> None:
    """A street that branches off over a raised entrance."""
    profile, palette = plan.profile, plan.palette
    cover = palette.cover("asphalt", (0.9, 0.9, 0.9))
    rows = np.linspace(s + 1.5, s + 7.5, 4)
    columns = side * np.linspace(profile.road, 90, 40)
    points = plan.course.place(rows[:, None], columns[None], profile.kerb + 0.012)
    plan.into.next_thing("road")
    plan.into.loft(points, cover, tile=5)
    plan.put(
        furniture.sign(palette, plan.rng),
        "sign",
        s + 0.8,
        side * (profile.walk + 0.3),
        profile.kerb,
        math.pi / 2,
    )
    for t in (45.0, 70.0):
        plan.put(_tree(plan, far=True), "tree", s + float(plan.rng.choice([-2, 11])), side * t)


def _tree(plan: _Plan, *, far: bool = False) -> Assembly:
    """One of a few trees of this street; `far` ones have fewer, larger leaves."""
    if not plan.trees[far]:
        for _ in range(4):
            if plan.rng.random() < 0.22:
                plan.trees[far].append(plants.conifer(plan.palette, plan.rng))
            else:
                leaves = 1300 if far else 6500
                plan.trees[far].append(plants.tree(plan.palette, plan.rng, season=plan.season, leaves=leaves))
    return plan.trees[far][int(plan.rng.integers(4))]


def _backdrop(plan: _Plan) -> None:
    """Trees and houses behind the first row, and where the street ends."""
    rng, profile = plan.rng, plan.profile
    behind = profile.front + profile.garden + 15
    for side in (-1, 1):
        for s in np.arange(BACK, FRONT + 60, rng.uniform(9, 22)):
            if rng.random() < 0.7:
                t = side * float(behind + rng.exponential(14))
                size = float(rng.uniform(0.7, 1.5))
                plan.put(
                    _tree(plan, far=True),
                    "tree",
                    float(s + rng.normal(0, 3)),
                    t,
                    -0.3,
                    float(rng.uniform(0, 6)),
                    size,
                )
    for t in np.arange(-60, 61, 7.0):  # the end of the view
        s = float(FRONT + rng.uniform(5, 40))
        plan.put(
            _tree(plan, far=True),
            "tree",
            s,
            float(t + rng.normal(0, 2)),
            -0.3,
            0.0,
            float(rng.uniform(0.9, 1.7)),
        )


def _along_the_kerb(plan: _Plan) -> list[Light]:
    """Lamps, signs, bollards, bins, benches, trees and wires; the lights of the lamps."""
    rng, profile, palette = plan.rng, plan.profile, plan.palette
    lights: list[Light] = []
    edge = profile.road + 0.45
    if plan.style != "country" or rng.random() < 0.3:
        part = furniture.lamp(palette, rng, lit=plan.day.lamps)
        every = float(rng.uniform(22, 38))
        both = rng.random() < 0.4
        for number, s in enumerate(np.arange(BACK + rng.uniform(0, every), 200, every)):
            for side in (-1, 1) if both else ((1,) if number % 2 else (-1,)):
                plan.put(part, "lamp", float(s), side * edge, profile.kerb, plan.facing(side) + math.pi)
                if plan.day.lamps and 0 < s < 70 and len(lights) < 8:
                    x, y, z = plan.course.place(float(s), side * (edge - 1.2), 6.5)
                    lights.append(Light.area((x - 0.3, y - 0.3, z), (0, 0.6, 0), (0.6, 0, 0), (14, 11, 7)))
    for _ in range(int(rng.integers(1, 6))):
        side = int(rng.choice([-1, 1]))
        turn = 0.0 if side < 0 else math.pi
        plan.put(
            furniture.sign(palette, rng),
            "sign",
            float(rng.uniform(4, 90)),
            side * edge,
            profile.kerb,
            turn + float(rng.normal(0, 0.15)),
        )
    if rng.random() < 0.25 and profile.pavement:
        part, side = furniture.bollard(palette, rng), int(rng.choice([-1, 1]))
        for s in np.arange(rng.uniform(2, 20), rng.uniform(30, 80), rng.uniform(1.6, 3)):
            plan.put(part, "bollard", float(s), side * (profile.road + 0.4), profile.kerb)
    _kerb_trees(plan, edge)
    if plan.style in ("suburb", "village", "country", "works") and rng.random() < 0.6:
        _wired_poles(plan)
    for _ in range(int(rng.integers(0, 5))):
        side, s = int(rng.choice([-1, 1])), float(rng.uniform(4, 60))
        if profile.pavement > 1.6:
            part, name = (
                (furniture.bench(palette, rng), "bench")
                if rng.random() < 0.3
                else (furniture.bin_(palette, rng), "bin")
            )
            plan.put(part, name, s, side * (profile.front - 0.5), profile.kerb, plan.facing(side))
    return lights


def _kerb_trees(plan: _Plan, edge: float) -> None:
    """Rows of trees in verges and along avenues."""
    rng, profile = plan.rng, plan.profile
    chance = {"avenue": 0.75, "terrace": 0.25, "suburb": 0.35, "country": 0.4, "village": 0.2, "works": 0.2}[
        plan.style
    ]
    if rng.random() > chance or (profile.pavement < 1.8 and not profile.verge):
        return
    every = float(rng.uniform(8, 16))
    sides = (-1, 1) if rng.random() < 0.6 else (int(rng.choice([-1, 1])),)
    for side in sides:
        for s in np.arange(BACK, 190, every):
            if rng.random() < 0.88:
                t = side * (edge + 0.45 + (profile.verge / 2 if profile.verge else 0))
                size = float(rng.uniform(0.7, 1.05))
                plan.put(
                    _tree(plan, far=bool(abs(s - 25) > 60)),
                    "tree",
                    float(s + rng.normal(0, 0.5)),
                    t,
                    profile.kerb,
                    float(rng.uniform(0, 6)),
                    size,
                )


def _wired_poles(plan: _Plan) -> None:
    """Masts along one side, wires between them, and to some houses."""
    rng, profile, palette = plan.rng, plan.profile, plan.palette
    tall, side = float(rng.uniform(6.5, 9)), int(rng.choice([-1, 1]))
    part = furniture.pole(palette, rng, tall)
    t = side * (profile.front - 0.2 if profile.pavement else profile.road + 1.2)
    along = np.arange(BACK + rng.uniform(0, 20), 200, rng.uniform(28, 42))
    for s in along:
        plan.put(part, "pole", float(s), t, profile.kerb)
    black = palette.paint((0.015, 0.015, 0.015))
    tops = plan.course.place(along, t, profile.kerb + tall - 0.12)
    heading = plan.course.heading(along)
    across = np.stack([-np.sin(heading), np.cos(heading), 0 * heading], 1)
    offsets = across[:, None] * np.array([-0.65, -0.3, 0.3, 0.65])[None, :, None]
    plan.into.next_thing("wires")
    furniture.wires(plan.into, tops, offsets, black, float(rng.uniform(0.3, 0.9)))
    for s in along[rng.random(len(along)) < 0.6]:
        ends = np.stack(
            [
                plan.course.place(float(s), t, tall),
                plan.course.place(float(s + rng.uniform(-6, 6)), -t * 1.6, 5.0),
            ]
        )
        furniture.wires(plan.into, ends, np.zeros((2, 1, 3)), black, 0.4)
