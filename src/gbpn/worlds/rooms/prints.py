"""Pictures that fill their shape once: posters, photographs, pages, screens, labels, rugs, notice boards."""

from __future__ import annotations

import math

import numpy as np

from gbpn.worlds.painting import SIZE, X, Y, hsv, noise, tinted

__all__ = ["blossoms", "board", "clock", "label", "page", "photograph", "poster", "rug", "screen", "spine"]


def blossoms(rng: np.random.Generator, count: int, size: float) -> np.ndarray:
    """[SIZE, SIZE] 0 … 1: flowers of five petals here and there, which repeat without a seam."""
    mix = np.zeros((SIZE, SIZE))
    for x, y, turn, scale in zip(
        rng.random(count), rng.random(count), rng.random(count), rng.uniform(0.6, 1.6, count), strict=True
    ):
        dx, dy = (X - x + 0.5) % 1 - 0.5, (Y - y + 0.5) % 1 - 0.5
        angle, radius = np.arctan2(dy, dx), np.hypot(dx, dy) / (size * scale)
        mix = np.maximum(mix, np.clip(4 * (0.7 + 0.3 * np.cos(5 * angle + 6.3 * turn) - radius), 0, 1))
    return mix


def _rectangle(x: float, y: float, width: float, height: float) -> tuple[slice, slice]:
    """Rows and columns of a rectangle in shares of the picture."""
    rows = slice(max(0, int(y * SIZE)), max(0, math.ceil((y + height) * SIZE)))
    return rows, slice(max(0, int(x * SIZE)), max(0, math.ceil((x + width) * SIZE)))


def _lines(
    rng: np.random.Generator,
    picture: np.ndarray,
    place: tuple[float, float, float, float],
    step: float,
    ink: float,
) -> None:
    """Text from afar: words as bars in x, y, width, height."""
    x0, y0, width, height = place
    y = y0
    while y < y0 + height:
        x, end = x0, x0 + width * (1 if rng.random() < 0.8 else rng.uniform(0.2, 0.9))
        while x < end:
            word = rng.uniform(0.02, 0.08)
            picture[_rectangle(x, y, min(word, end - x), 0.5 * step)] *= ink
            x += word + 0.012
        y += step


def photograph(rng: np.random.Generator, number: int) -> np.ndarray:
    """What is seen on a photograph from afar: land and sky, a head and shoulders, a still life, a town."""
    kind = number % 4
    grey = rng.random() < 0.25
    if kind == 0:
        picture = _landscape(rng)
    elif kind == 1:
        picture = _portrait(rng)
    elif kind == 2:
        picture = _still_life(rng)
    else:
        picture = _town(rng)
    picture = picture * (1 + 0.05 * noise(rng, low=20, fall=0.5))[..., None]
    if grey:
        picture = np.repeat(picture.mean(axis=2, keepdims=True), 3, axis=2)
    if number % 3 == 0:  # a mount of card
        edge = np.minimum(np.minimum(X, 1 - X), np.minimum(Y, 1 - Y)) < rng.uniform(0.06, 0.16)
        picture[edge] = rng.uniform(0.82, 0.95)
    return np.asarray(picture)


def _landscape(rng: np.random.Generator) -> np.ndarray:
    sky = hsv(rng.choice([0.58, 0.56, 0.08]), rng.uniform(0.1, 0.45), rng.uniform(0.7, 0.95))
    picture = sky * (0.75 + 0.35 * Y)[..., None]
    cloud = np.clip(noise(rng, low=2, fall=1.5, stretch=1.6) - 0.3, 0, 1)[..., None]
    picture = picture + (0.95 - picture) * 0.7 * cloud
    for k in range(int(rng.integers(1, 4))):
        line = rng.uniform(0.35, 0.6) + 0.15 * k + rng.uniform(0.02, 0.1) * noise(rng, low=1, fall=1.6)[0]
        land = hsv(rng.choice([0.25, 0.3, 0.1, 0.6]), rng.uniform(0.1, 0.5), rng.uniform(0.2, 0.6))
        shade = 1 + 0.2 * noise(rng, low=4, fall=0.9)
        picture = np.where((line[None] < Y)[..., None], tinted(land, shade), picture)
    return np.asarray(picture)


def _portrait(rng: np.random.Generator) -> np.ndarray:
    back = hsv(rng.random(), rng.uniform(0, 0.35), rng.uniform(0.2, 0.8))
    picture = tinted(back, 1 + 0.12 * noise(rng, low=1, fall=1.6))
    for x in np.linspace(0.5, 0.5, 1) if rng.random() < 0.6 else np.array([0.33, 0.67]):
        top, size = rng.uniform(0.36, 0.46), rng.uniform(0.11, 0.16)
        coat = hsv(rng.random(), rng.uniform(0, 0.5), rng.uniform(0.15, 0.7))
        picture[((X - x) / (2 * size)) ** 2 + ((Y - 1.05) / 0.45) ** 2 < 1] = coat
        hair = hsv(0.07, 0.4, rng.uniform(0.08, 0.5))
        picture[((X - x) / (1.15 * size)) ** 2 + ((Y - top + 0.03) / (1.35 * size)) ** 2 < 1] = hair
        skin = hsv(0.06, rng.uniform(0.3, 0.5), rng.uniform(0.4, 0.85))
        face = ((X - x) / (0.85 * size)) ** 2 + ((Y - top - 0.01) / (1.15 * size)) ** 2 < 1
        picture[face] = skin
        for side in (-0.35, 0.35):
            picture[np.hypot(X - x - side * size, Y - top) < 0.12 * size] = 0.12
    return np.asarray(picture)


def _still_life(rng: np.random.Generator) -> np.ndarray:
    picture = tinted(
        hsv(rng.random(), rng.uniform(0.05, 0.4), rng.uniform(0.3, 0.8)), 1 + 0.1 * noise(rng, low=1)
    )
    table = rng.uniform(0.6, 0.75) < Y
    picture[table] = hsv(0.08, rng.uniform(0.1, 0.5), rng.uniform(0.25, 0.7))
    for _ in range(int(rng.integers(3, 9))):
        x, y, r = rng.uniform(0.15, 0.85), rng.uniform(0.45, 0.8), rng.uniform(0.05, 0.15)
        ball = ((X - x) / r) ** 2 + ((Y - y) / (r * rng.uniform(0.8, 1.6))) ** 2
        colour = hsv(rng.random(), rng.uniform(0.2, 0.7), rng.uniform(0.3, 0.9))
        lit = np.clip(1.15 - 0.9 * np.hypot(X - x + r / 3, Y - y + r / 3) / r, 0.2, 1.2)
        picture = np.where((ball < 1)[..., None], tinted(colour, lit), picture)
    return np.asarray(picture)


def _town(rng: np.random.Generator) -> np.ndarray:
    picture = hsv(0.58, rng.uniform(0, 0.3), rng.uniform(0.6, 0.95)) * np.ones((SIZE, SIZE, 1))
    x = 0.0
    while x < 1:
        width, top = rng.uniform(0.08, 0.25), rng.uniform(0.2, 0.65)
        house = hsv(rng.choice([0.05, 0.1, 0.6]), rng.uniform(0, 0.35), rng.uniform(0.25, 0.8))
        picture[_rectangle(x, top, width, 1)] = house
        for wy in np.arange(top + 0.04, 0.95, 0.09):
            for wx in np.arange(x + 0.02, x + width - 0.03, 0.05):
                picture[_rectangle(wx, wy, 0.025, 0.045)] = house * rng.choice([0.4, 0.5, 1.25])
        x += width
    return np.asarray(picture)


def poster(rng: np.random.Generator, number: int) -> np.ndarray:
    """A heading, a picture or shapes, some text; or a painting without any."""
    if number % 3 == 0:
        return _abstract(rng)
    paper = hsv(rng.random(), rng.choice([0.03, 0.1, 0.5]), rng.uniform(0.55, 0.97))
    out = paper * np.ones((SIZE, SIZE, 1))
    if number % 3 == 1:
        inner = photograph(rng, int(rng.integers(0, 4)) * 4 + int(rng.integers(4)))
        half = inner[::2, ::2]
        y = int(rng.uniform(0.1, 0.35) * SIZE)
        wide = np.repeat(np.repeat(half, 2, axis=1), 1, axis=0)
        out[y : y + SIZE // 2] = wide
    else:
        for _ in range(int(rng.integers(2, 6))):
            x, y, w, h = *rng.uniform(0, 0.8, 2), *rng.uniform(0.1, 0.5, 2)
            out[_rectangle(x, y, w, h)] = hsv(rng.random(), rng.uniform(0.1, 0.7), rng.uniform(0.2, 0.9))
    ink = 0.2 if paper.mean() > 0.5 else 2.2
    _lines(rng, out, (0.08, 0.04, 0.8, 0.05), 0.14, ink)
    _lines(rng, out, (0.08, 0.8, 0.84, 0.14), 0.04, ink)
    return out


def _abstract(rng: np.random.Generator) -> np.ndarray:
    colours = [hsv(rng.random(), rng.uniform(0.1, 0.7), rng.uniform(0.2, 0.9)) for _ in range(4)]
    kind = int(rng.integers(3))
    if kind == 0:  # brushed clouds of colour
        out = colours[0] * np.ones((SIZE, SIZE, 1))
        for colour in colours[1:]:
            mask = np.clip(noise(rng, low=1, fall=1.5, stretch=rng.uniform(0.4, 2.5)) * 1.5, 0, 1)[..., None]
            out = out + (colour - out) * mask
        return out * (1 + 0.08 * noise(rng, low=12, fall=0.5))[..., None]
    out = colours[0] * np.ones((SIZE, SIZE, 1))
    for _ in range(int(rng.integers(4, 16))):
        x, y, w, h = *rng.uniform(-0.1, 0.9, 2), *rng.uniform(0.03, 0.5, 2)
        colour = colours[int(rng.integers(4))] * rng.uniform(0.7, 1.2)
        if kind == 1:
            out[_rectangle(x, y, w, h)] = colour
        else:
            out[((X - x) / w) ** 2 + ((Y - y) / h) ** 2 < 0.5] = colour
    return np.asarray(out)


def page(rng: np.random.Generator, number: int) -> np.ndarray:
    """A printed sheet: text, perhaps a figure or a table."""
    out = np.ones((SIZE, SIZE, 3)) * np.array([0.95, 0.95, 0.93]) * rng.uniform(0.9, 1)
    _lines(rng, out, (0.1, 0.08, rng.uniform(0.3, 0.8), 0.04), 0.09, 0.25)
    split = rng.uniform(0.3, 0.6)
    _lines(rng, out, (0.1, 0.18, 0.8, split - 0.2), 0.035, 0.45)
    if number % 3 == 0:
        out[_rectangle(0.15, split, 0.7, 0.3)] = hsv(rng.random(), rng.uniform(0, 0.5), rng.uniform(0.4, 0.9))
    elif number % 3 == 1:
        for x in np.linspace(0.1, 0.9, 5):
            out[_rectangle(x, split, 0.006, 0.35)] = 0.4
        for y in np.linspace(split, split + 0.35, 7):
            out[_rectangle(0.1, y, 0.8, 0.006)] = 0.4
    _lines(rng, out, (0.1, split + 0.37, 0.8, 0.93 - split - 0.37), 0.035, 0.45)
    return np.asarray(out)


def screen(rng: np.random.Generator, number: int) -> np.ndarray:
    """A monitor or television: off, a desktop with windows, or a film."""
    if number % 4 == 0:
        return np.full((SIZE, SIZE, 3), 0.05)
    if number % 4 == 1:
        return np.asarray(photograph(rng, number * 4 + 1) * 0.9)
    out = hsv(0.6, rng.uniform(0.1, 0.6), rng.uniform(0.2, 0.6)) * np.ones((SIZE, SIZE, 1))
    for _ in range(int(rng.integers(1, 4))):
        x, y, w, h = *rng.uniform(0, 0.4, 2), *rng.uniform(0.35, 0.75, 2)
        out[_rectangle(x, y, w, h)] = 0.93 if rng.random() < 0.7 else 0.13
        out[_rectangle(x, y, w, 0.03)] = rng.uniform(0.3, 0.8)
        _lines(
            rng,
            out,
            (x + 0.02, y + 0.06, w - 0.05, h - 0.1),
            0.04,
            0.4 if out[int(y * SIZE) + 20].mean() > 0.3 else 3.0,
        )
    out[_rectangle(0, 0.95, 1, 0.05)] = 0.12
    return out


def label(rng: np.random.Generator, number: int) -> np.ndarray:
    """Packaging, book covers, cartons."""
    if number % 5 == 0:  # brown card with tape
        out = tinted(hsv(0.085, 0.38, rng.uniform(0.55, 0.7)), 1 + 0.03 * noise(rng, low=1, fall=1.0))
        out[_rectangle(0.42, 0, 0.16, 1)] *= np.array([0.92, 0.88, 0.8])
        if rng.random() < 0.6:
            _lines(rng, out, (0.08, 0.65, 0.3, 0.2), 0.06, 0.4)
        return out
    base = hsv(rng.random(), rng.choice([0.05, 0.3, 0.65]), rng.uniform(0.2, 0.92))
    out = base * np.ones((SIZE, SIZE, 1))
    for _ in range(int(rng.integers(1, 4))):
        x, y, w, h = rng.uniform(0, 0.5), rng.uniform(0.1, 0.7), rng.uniform(0.2, 1), rng.uniform(0.08, 0.35)
        out[_rectangle(x, y, w, h)] = hsv(rng.random(), rng.uniform(0, 0.7), rng.uniform(0.2, 0.95))
    _lines(rng, out, (0.12, rng.uniform(0.15, 0.4), 0.7, 0.2), 0.12, 0.25 if base.mean() > 0.45 else 2.5)
    return out


def spine(rng: np.random.Generator, number: int) -> np.ndarray:
    """A row of books from the back."""
    out = np.full((SIZE, SIZE, 3), 0.08)
    x = 0.0
    while x < 1:
        width, top = rng.uniform(0.02, 0.06), rng.uniform(0.0, 0.22)
        colour = hsv(rng.random(), rng.choice([0.05, 0.25, 0.55]), rng.uniform(0.15, 0.85))
        out[_rectangle(x, top, width - 0.003, 1)] = colour
        out[_rectangle(x, top + 0.12, width - 0.003, rng.uniform(0.1, 0.35))] = np.clip(
            colour * rng.uniform(0.5, 1.6), 0, 1
        )
        x += width
    return out


def board(rng: np.random.Generator, number: int) -> np.ndarray:
    """A white board with writing, a black one, or cork with pinned sheets."""
    kind = number % 3
    back = (np.array([0.93, 0.94, 0.94]), np.array([0.12, 0.2, 0.16]), hsv(0.085, 0.4, 0.62))[kind]
    out = tinted(back, 1 + (0.012, 0.06, 0.05)[kind] * noise(rng, low=2 if kind < 2 else 20, fall=0.9))
    if kind == 2:
        for _ in range(int(rng.integers(4, 16))):
            x, y, w, h = *rng.uniform(0.02, 0.85, 2), *rng.uniform(0.08, 0.22, 2)
            out[_rectangle(x, y, w, h)] = hsv(
                rng.random(), rng.choice([0.02, 0.02, 0.4]), rng.uniform(0.75, 0.97)
            )
            _lines(rng, out, (x + 0.015, y + 0.02, w - 0.03, h - 0.03), 0.03, 0.5)
        return out
    for _ in range(int(rng.integers(0, 5))):  # handwriting: wavy strokes
        y, x0, x1 = rng.uniform(0.1, 0.85), rng.uniform(0.05, 0.4), rng.uniform(0.5, 0.95)
        wave = y + 0.012 * np.sin(X[0] * rng.uniform(120, 260)) + 0.008 * np.sin(X[0] * 77)
        ink = (np.abs(Y - wave) < 0.006) & (x0 < X) & (x1 > X)
        out[ink] = hsv(rng.choice([0.0, 0.6, 0.35]), 0.7, 0.4) if kind == 0 else np.full(3, 0.85)
    return np.asarray(out)


def clock(rng: np.random.Generator, number: int) -> np.ndarray:
    radius = np.hypot(X - 0.5, Y - 0.5) * 2
    angle = np.arctan2(Y - 0.5, X - 0.5)
    out = np.full((SIZE, SIZE, 3), 0.93)
    out[(radius > 0.75) & (radius < 0.88) & (np.abs(np.sin(6 * angle)) < 0.25)] = 0.1
    for turn, length in ((rng.uniform(0, 6.28), 0.75), (rng.uniform(0, 6.28), 0.5)):
        along = (X - 0.5) * np.cos(turn) + (Y - 0.5) * np.sin(turn)
        across = np.abs((Y - 0.5) * np.cos(turn) - (X - 0.5) * np.sin(turn))
        out[(across < 0.018) & (along > 0) & (along < length / 2)] = 0.08
    out[radius > 0.93] = hsv(0.08, 0.3, (0.1, 0.4, 0.6, 0.75)[number % 4])
    return out


def rug(rng: np.random.Generator, number: int) -> np.ndarray:
    """Oriental with a border and a medallion, stripes, plain with an edge, geometric."""
    colours = [
        hsv(rng.choice([0.0, 0.03, 0.08, 0.6, 0.1, 0.33]), rng.uniform(0.05, 0.42), rng.uniform(0.18, 0.7))
        for _ in range(4)
    ]
    edge = np.minimum(np.minimum(X, 1 - X), np.minimum(Y, 1 - Y))
    kind = number % 4
    out = colours[0] * np.ones((SIZE, SIZE, 1))
    if kind == 0:
        mirrored = blossoms(rng, 40, 0.05)
        mirrored = np.maximum(mirrored, mirrored[:, ::-1])
        mirrored = np.maximum(mirrored, mirrored[::-1])
        out = out + (colours[1] - out) * mirrored[..., None]
        medallion = (
            (np.abs(X - 0.5) / 0.25) ** 1.4
            + (np.abs(Y - 0.5) / 0.35) ** 1.4
            + 0.12 * np.cos(12 * np.arctan2(Y - 0.5, X - 0.5))
        )
        out[(medallion < 1)] = colours[2]
        out[(medallion < 0.5)] = colours[1]
        for low, high, colour in ((0.0, 0.02, 3), (0.02, 0.11, 2), (0.11, 0.125, 1)):
            out[(edge >= low) & (edge < high)] = colours[colour]
        ring = (edge > 0.03) & (edge < 0.1) & (np.sin(40 * np.pi * (X + Y)) > 0.2)
        out[ring] = colours[1]
    elif kind == 1:
        bands = np.floor(Y * rng.integers(5, 18) + 0.3 * np.sin(Y * 25)).astype(int)
        out = np.stack(colours)[bands % 4] * np.ones((SIZE, SIZE, 1))
    elif kind == 2:
        out[(edge > 0.06) & (edge < 0.09)] = colours[1]
    else:
        n = int(rng.integers(3, 8))
        cell = np.abs((X * n) % 1 - 0.5) + np.abs((Y * n) % 1 - 0.5)
        out = np.where(
            (cell < 0.3)[..., None], colours[1], np.where((cell < 0.42)[..., None], colours[2], out)
        )
    return np.asarray(
        out * (1 + 0.07 * noise(rng, low=40, fall=0.1) + 0.03 * noise(rng, low=1, fall=1.3))[..., None]
    )
