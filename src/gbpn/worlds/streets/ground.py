"""What one walks and drives on: lanes with their markings, kerbs, pavements, verges, and the land around."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbpn.worlds.assembly import Assembly
from gbpn.worlds.streets.course import BACK, FRONT, Course
from gbpn.worlds.streets.palette import Palette

__all__ = ["Profile", "land", "ribbon", "road"]

_STEP = 2.0
"""Metres between cuts along the street."""
_PAINT = 0.006
"""Metres by which markings lie above the road."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A street across, each side alike; metres."""

    lane: float
    """Width of one lane; there are two."""
    parking: float
    """Width of a parking strip at each side, on the road; 0 for none."""
    kerb: float
    """Height of the kerb; 0 where there is none."""
    verge: float
    """Width of grass between kerb and pavement."""
    pavement: float
    """Width of the pavement; 0 for none."""
    garden: float
    """From the pavement to the houses."""

    @property
    def road(self) -> float:
        """Half the width of the road."""
        return self.lane + self.parking

    @property
    def walk(self) -> float:
        """From the middle to where the pavement starts."""
        return self.road + (0.15 if self.kerb else 0) + self.verge

    @property
    def front(self) -> float:
        """From the middle to where private ground starts."""
        return self.walk + self.pavement


def ribbon(
    into: Assembly,
    course: Course,
    s: tuple[float, float],
    t: tuple[float, float],
    z: tuple[float, float],
    material: int,
    *,
    tile: float = 1.0,
) -> None:
    """A strip along the street from (t[0], z[0]) to (t[1], z[1])."""
    cuts = max(2, int(np.ceil(abs(s[1] - s[0]) / _STEP)) + 1)
    along = np.linspace(s[0], s[1], cuts)
    width = abs(t[1] - t[0]) + abs(z[1] - z[0])
    across = np.linspace(0, 1, max(2, int(np.ceil(width / 6)) + 1))
    points = course.place(along[:, None], t[0] + (t[1] - t[0]) * across, z[0] + (z[1] - z[0]) * across)
    coordinates = np.stack(np.broadcast_arrays(along[:, None], (across * width)[None]), -1) / tile
    into.loft(points, material, coordinates=coordinates)


def road(
    into: Assembly, course: Course, profile: Profile, palette: Palette, rng: np.random.Generator
) -> None:
    """The street's own strips from one end to the other, with what is painted and patched on it."""
    kind = "cobbles" if rng.random() < 0.05 else "asphalt"
    shade = rng.uniform(0.7, 1.25)
    cover = palette.cover(kind, (shade, shade, shade), roughness=0.85)
    whole, edge = (BACK, FRONT), profile.road
    into.next_thing("road")
    ribbon(into, course, whole, (-edge, edge), (0, 0), cover, tile=palette.tile(kind))
    if profile.parking and rng.random() < 0.5:
        strip = palette.cover(str(rng.choice(["paving", "cobbles", "asphalt"])), (0.8, 0.8, 0.8))
        for side in (-1, 1):
            t = side * profile.lane, side * edge
            ribbon(into, course, whole, t, (0.004, 0.004), strip, tile=2.0)
    if kind == "asphalt":
        _patches(into, course, profile, palette, rng)
        _markings(into, course, profile, palette, rng)
    into.next_thing("pavement")
    stone = palette.cover("concrete", (0.85, 0.85, 0.85))
    walk = str(rng.choice(["paving", "paving", "asphalt", "concrete", "cobbles"]))
    tone = rng.uniform(0.8, 1.1)
    walked = palette.cover(walk, (tone, tone, tone * 0.98))
    grass = palette.cover("grass")
    high = profile.kerb
    for side in (-1, 1):
        if high:
            ribbon(into, course, whole, (side * edge, side * edge), (0, high), stone, tile=3.0)
            ribbon(into, course, whole, (side * edge, side * (edge + 0.15)), (high, high), stone, tile=3.0)
        inner = edge + (0.15 if high else 0)
        if profile.verge:
            ribbon(into, course, whole, (side * inner, side * profile.walk), (high, high), grass, tile=3.5)
        if profile.pavement:
            outer = side * profile.walk, side * profile.front
            ribbon(into, course, whole, outer, (high, high), walked, tile=palette.tile(walk))


def _patches(
    into: Assembly, course: Course, profile: Profile, palette: Palette, rng: np.random.Generator
) -> None:
    """Mended asphalt, and the lids of drains."""
    for _ in range(int(rng.integers(2, 12))):
        shade = float(rng.uniform(0.55, 1.1))
        tone = palette.cover("asphalt", (shade, shade, shade))
        s, t = rng.uniform(BACK, 120), rng.uniform(-0.8, 0.8) * profile.road
        length, width = rng.uniform(0.6, 14), rng.uniform(0.4, 1.4)
        ends = max(t - width, -profile.road), min(t + width, profile.road)
        ribbon(into, course, (s, s + length), ends, (0.003, 0.003), tone, tile=5.0)
    count = int(rng.integers(3, 12))
    lids = rng.uniform(BACK, 120, count), rng.choice([-0.5, 0.5, 0.93, -0.93], count) * profile.road
    iron = palette.paint((0.07, 0.068, 0.065), roughness=0.6)
    into.discs(course.place(*lids, 0.008), (0, 0, 1), 0.32, iron)


def _markings(
    into: Assembly, course: Course, profile: Profile, palette: Palette, rng: np.random.Generator
) -> None:
    """White paint, worn more or less: the middle line, edges, parking bays, a crossing."""
    worn = float(rng.uniform(0.35, 0.75))
    white = palette.cover("concrete", (worn * 1.25, worn * 1.25, worn * 1.22), roughness=0.9)
    style = rng.choice(["none", "dashes", "line"], p=[0.4, 0.45, 0.15])
    half = 0.06

    def line(s: tuple[float, float], t: float) -> None:
        ribbon(into, course, s, (t - half, t + half), (_PAINT, _PAINT), white, tile=4.0)

    if style == "dashes":
        long, gap = (3.0, 6.0) if rng.random() < 0.5 else (4.0, 4.0)
        for s in np.arange(BACK, FRONT, long + gap):
            line((float(s), float(s + long)), 0.0)
    elif style == "line":
        line((BACK, FRONT), 0.0)
    if style != "none" and rng.random() < 0.4:
        for side in (-1, 1):
            line((BACK, FRONT), side * (profile.lane - 0.15))
    if profile.parking and rng.random() < 0.6:
        for side in (-1, 1):
            line((BACK, FRONT), side * profile.lane)
            for s in np.arange(BACK, FRONT, 5.6):
                ends = side * profile.lane, side * profile.road
                ribbon(into, course, (float(s), float(s) + 0.1), ends, (_PAINT, _PAINT), white, tile=4.0)
    if rng.random() < 0.35:  # a crossing for people on foot
        s = float(rng.uniform(6, 60))
        for t in np.arange(-profile.road + 0.4, profile.road - 0.4, 1.0):
            ends = float(t), float(t + 0.5)
            ribbon(into, course, (s, s + 3.5), ends, (_PAINT, _PAINT), white, tile=4.0)


def land(
    into: Assembly, course: Course, profile: Profile, palette: Palette, rng: np.random.Generator
) -> None:
    """Gardens beside the pavement, then fields and hills to the horizon."""
    into.next_thing("land")
    near = palette.cover("grass", (1.0, 1.0, 1.0))
    for side in (-1, 1):
        high = profile.kerb
        ribbon(
            into,
            course,
            (BACK, FRONT),
            (side * profile.front, side * (profile.front + 24)),
            (high, high - 0.05),
            near,
            tile=3.5,
        )
    radii = np.concatenate([np.arange(0, 150, 6.0), np.geomspace(150, 2600, 46)])
    angles = np.linspace(0, 2 * np.pi, 145)
    middle = 70.0
    x, y = middle + radii[:, None] * np.cos(angles), radii[:, None] * np.sin(angles)
    points = np.stack([x, y, course.height(x, y) - 0.35], axis=-1)
    kinds = [palette.cover("grass"), palette.cover("field"), palette.cover("grass"), palette.cover("field")]
    # Fields of some size, each of one kind.
    plots = rng.integers(0, len(kinds), (12, 24))
    row = np.minimum(np.arange(len(radii) - 1) // 6, 11)
    cells = plots[row[:, None], (np.arange(144) // 6)[None]]
    cells[radii[:-1] < 60] = 0
    into.loft(points, np.asarray(kinds)[cells], coordinates=points[..., :2] / 9.0)
