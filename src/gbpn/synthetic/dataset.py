"""Rooms and streets with known answers, made on the fly: nothing to download, no noise in the depth.

A frame depends on (split, seed, index) only. Depth is exact to float32; colour is textured, lit by one lamp
or the sun and slightly noisy. The sky and what lies beyond 100 m have no depth.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch

from gbpn.errors import InputError
from gbpn.sample import Sample
from gbpn.synthetic.raycast import DepthBuffer, View, turn
from gbpn.synthetic.textures import Texture, grain_table, paint, random_material

__all__ = ["FARTHEST", "KINDS", "SyntheticDataset"]

_SPLITS = ("train", "validation", "evaluation")
KINDS = ("room", "street")
FARTHEST = 100.0
"""Metres; beyond is sky."""


class SyntheticDataset:
    """Frames of invented places; `root` is not used."""

    def __init__(
        self,
        root: str | Path = "",
        split: str = "train",
        *,
        count: int = 1000,
        height: int = 240,
        width: int = 320,
        kinds: tuple[str, ...] = KINDS,
        seed: int = 0,
    ) -> None:
        """`count` frames; `kinds` take turns. Splits share no frame."""
        if split not in _SPLITS:
            raise InputError(f"split must be one of {', '.join(_SPLITS)}; got {split!r}")
        if not kinds or any(kind not in KINDS for kind in kinds):
            raise InputError(f"kinds are {', '.join(KINDS)}; got {kinds}")
        if count < 1 or height < 1 or width < 1:
            raise InputError(f"count, height and width must be positive; got {count}, {height}, {width}")
        self.height, self.width, self.kinds = height, width, kinds
        self._seed = (_SPLITS.index(split), seed)
        self.names = [f"{kinds[index % len(kinds)]}/{index:05}" for index in range(count)]

    def __len__(self) -> int:
        return len(self.names)

    def load(self, index: int) -> Sample:
        """The frame; `sparse` is empty: choose a pattern."""
        return self.frame(index)

    def frame(self, index: int) -> Sample:
        """As `load`."""
        name = self.names[index]
        rng = np.random.default_rng(np.random.SeedSequence([*self._seed, index % len(self.names)]))
        build = _build_room if name.startswith("room") else _build_street
        buffer, materials, lamp = build(rng, self.height, self.width)
        image = _picture(buffer, materials, lamp, rng)
        depth = np.where(buffer.depth < FARTHEST, buffer.depth, 0).astype(np.float32)
        return Sample(
            image=torch.from_numpy(image),
            sparse=torch.zeros(1, self.height, self.width),
            target=torch.from_numpy(depth)[None],
            intrinsics=torch.from_numpy(buffer.view.intrinsics.astype(np.float32)),
            name=name,
        )


def _build_room(
    rng: np.random.Generator, height: int, width: int
) -> tuple[DepthBuffer, list[Texture], np.ndarray]:
    """A furnished room seen from inside: buffer, materials and the lamp's position."""
    size = np.array([rng.uniform(2.5, 8), rng.uniform(2.3, 3.5), rng.uniform(2.5, 9)])
    eye = np.array([0.0, size[1] / 2 - rng.uniform(0.8, min(1.9, size[1] - 0.4)), 0.0])
    eye[[0, 2]] = rng.uniform(-0.5, 0.5, 2) * (size[[0, 2]] - 1.0)
    inwards = math.atan2(-eye[0], -eye[2])  # towards the middle, where there is something to see
    rotation = turn(inwards + rng.normal(0, 0.5), rng.normal(-0.15, 0.15), rng.normal(0, 0.04))
    buffer = DepthBuffer(_view(rng, rotation, eye, height, width))
    materials = [random_material(rng, sizes=(0.15, 1.5)) for _ in range(6)]
    buffer.box(np.zeros(3), size / 2, 0.0, tuple(range(6)), inside=True)
    floor = size[1] / 2
    for _ in range(int(rng.integers(6, 20))):
        materials.append(random_material(rng, sizes=(0.05, 0.6)))
        _furnish(buffer, rng, len(materials) - 1, size, floor)
    lamp = np.array([rng.uniform(-0.3, 0.3) * size[0], -0.45 * size[1], rng.uniform(-0.3, 0.3) * size[2]])
    return buffer, materials, lamp


def _build_street(
    rng: np.random.Generator, height: int, width: int
) -> tuple[DepthBuffer, list[Texture], np.ndarray]:
    """A street between houses with cars, poles, trees and people: buffer, materials, a far-away sun."""
    eye = np.array([rng.uniform(-1.5, 1.5), 0.0, 0.0])
    level = rng.uniform(1.2, 2.2)
    rotation = turn(rng.normal(0, 0.15), rng.normal(0, 0.04), rng.normal(0, 0.02))
    buffer = DepthBuffer(_view(rng, rotation, eye, height, width))
    materials = [random_material(rng, ("noise", "plain", "patches"), (0.3, 2.0))]
    buffer.ground(level, 0, FARTHEST)
    half_street = rng.uniform(5, 10)
    for side in (-1, 1):
        z = rng.uniform(-10, 2)
        while z < 95:
            length, gap = rng.uniform(6, 18), rng.choice([0.0, rng.uniform(1, 6)], p=[0.7, 0.3])
            half = np.array([4.0, rng.uniform(3, 9), length / 2])
            centre = np.array(
                [side * (half_street + 4 + rng.uniform(0, 1.5)), level - half[1], z + length / 2]
            )
            materials.append(random_material(rng, ("windows", "bricks", "noise", "plain"), (1.5, 4.0)))
            buffer.box(centre, half, 0.0, (len(materials) - 1,) * 6)
            z += length + gap
    for _ in range(int(rng.integers(6, 18))):
        materials.append(random_material(rng, sizes=(0.2, 1.0)))
        _populate(buffer, rng, len(materials) - 1, half_street, level)
    sun = np.array([rng.uniform(-1, 1), -rng.uniform(0.5, 1.5), rng.uniform(-1, 0.5)]) * 1e4
    return buffer, materials, sun


def _furnish(
    buffer: DepthBuffer, rng: np.random.Generator, material: int, size: np.ndarray, floor: float
) -> None:
    """One thing in a room; never around the camera."""
    # Most things stand where the camera looks.
    away, aside = rng.uniform(0.8, 1.2 * math.hypot(size[0], size[2])), rng.normal(0, 0.5)
    ahead = buffer.view.rotation @ np.array([math.sin(aside), 0, math.cos(aside)])
    inner = size / 2 - 0.15
    x, _, z = np.clip(buffer.view.position + away * ahead, -inner, inner)
    thing = rng.choice(["cupboard", "table", "shelf", "ball", "column"], p=[0.4, 0.2, 0.15, 0.15, 0.1])
    half = np.array([rng.uniform(0.15, 0.8), rng.uniform(0.1, 1.0), rng.uniform(0.15, 0.8)])
    away = math.hypot(*(buffer.view.position[[0, 2]] - [x, z]))
    if away < 0.4 + math.hypot(half[0], half[2]):
        return
    yaw = float(rng.choice([0.0, rng.uniform(-1.6, 1.6)]))
    six = (material,) * 6
    if thing == "cupboard":
        buffer.box(np.array([x, floor - half[1], z]), half, yaw, six)
    elif thing == "table":
        top = floor - rng.uniform(0.4, 0.9)
        buffer.box(np.array([x, top, z]), np.array([half[0], 0.02, half[2]]), yaw, six)
        leg = np.array([0.025, (floor - top) / 2, 0.025])
        for corner in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            offset = turn(yaw) @ np.array([corner[0] * half[0] * 0.9, 0, corner[1] * half[2] * 0.9])
            buffer.box(np.array([x, floor - leg[1], z]) + offset, leg, yaw, six)
        radius = rng.uniform(0.05, 0.2)
        buffer.sphere(np.array([x, top - 0.02 - radius, z]), radius, material)
    elif thing == "shelf":
        wall = rng.choice([-1, 1]) * (size[0] / 2 - 0.15)
        buffer.box(
            np.array([wall, rng.uniform(-0.8, 0.4), z]), np.array([0.15, half[1] / 2, half[2]]), 0.0, six
        )
    elif thing == "ball":
        radius = rng.uniform(0.1, 0.4)
        buffer.sphere(np.array([x, floor - radius, z]), radius, material)
    else:
        buffer.cylinder(np.array([x, floor - half[1], z]), float(half[0]) * 0.5, float(half[1]), material)


def _populate(
    buffer: DepthBuffer, rng: np.random.Generator, material: int, half_street: float, level: float
) -> None:
    """One thing on a street, ahead of the camera."""
    z = float(np.exp(rng.uniform(np.log(5), np.log(70))))
    side = float(rng.choice([-1, 1]))
    thing = rng.choice(["car", "pole", "tree", "person"], p=[0.45, 0.2, 0.15, 0.2])
    if thing == "car":
        x, yaw = side * rng.uniform(0.25, 0.75) * half_street, rng.normal(0, 0.06)
        if abs(x - buffer.view.position[0]) < 1.3 and z < 6:
            return
        body = np.array([0.9, 0.45, rng.uniform(1.8, 2.4)])
        buffer.box(np.array([x, level - 0.25 - body[1], z]), body, yaw, (material,) * 6)
        cabin = np.array([0.75, 0.3, body[2] * 0.55])
        buffer.box(np.array([x, level - 0.25 - 2 * body[1] - cabin[1], z]), cabin, yaw, (material,) * 6)
    elif thing == "person":
        x = rng.uniform(-0.9, 0.9) * half_street
        buffer.cylinder(np.array([x, level - 0.75, z]), 0.22, 0.75, material)
        buffer.sphere(np.array([x, level - 1.62, z]), 0.13, material)
    else:
        x, tall = side * half_street * rng.uniform(0.8, 0.98), rng.uniform(1.5, 3.5)
        buffer.cylinder(np.array([x, level - tall, z]), rng.uniform(0.05, 0.2), tall, material)
        if thing == "tree":
            buffer.sphere(np.array([x, level - 2 * tall, z]), rng.uniform(1.0, 2.2), material)


def _view(rng: np.random.Generator, rotation: np.ndarray, eye: np.ndarray, height: int, width: int) -> View:
    """A camera with 50° to 75° across and its principal point near the middle."""
    focal = width / (2 * math.tan(math.radians(rng.uniform(50, 75)) / 2))
    cx, cy = (np.array([width, height]) - 1) / 2 + rng.normal(0, 0.01, 2) * width
    intrinsics = np.array([[focal, 0, cx], [0, focal, cy], [0, 0, 1]])
    return View(intrinsics=intrinsics, rotation=rotation, position=eye, height=height, width=width)


def _picture(
    buffer: DepthBuffer, materials: list[Texture], lamp: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """[3, H, W] float32 in [0, 1]: painted, lit, slightly blurred and noisy."""
    height, width = buffer.depth.shape
    grain = grain_table(rng)
    flat = buffer.material.reshape(-1)
    colour = np.empty((3, height * width), np.float32)
    order = np.argsort(flat, kind="stable")
    starts = np.searchsorted(flat[order], np.arange(-1, len(materials) + 1))
    cloudy = np.float32(rng.random())
    sky = (1 - cloudy) * np.array([0.35, 0.55, 0.9], np.float32) + cloudy * np.float32(0.92)
    place = buffer.place.reshape(2, -1)
    for number in range(-1, len(materials)):
        pixels = order[starts[number + 1] : starts[number + 2]]
        if number < 0:
            colour[:, pixels] = sky[:, None]
        elif pixels.size:
            colour[:, pixels] = paint(materials[number], place[:, pixels], grain)
    colour *= np.where(flat >= 0, _light(buffer, lamp, rng).reshape(-1), 1)
    picture = np.pad(colour.reshape(3, height, width), ((0, 0), (1, 1), (1, 1)), mode="edge")
    # A lens is never sharper than its pixels.
    picture = np.float32(0.6) * picture[:, 1:-1] + np.float32(0.2) * (picture[:, :-2] + picture[:, 2:])
    picture = np.float32(0.6) * picture[..., 1:-1] + np.float32(0.2) * (picture[..., :-2] + picture[..., 2:])
    picture *= np.float32(rng.uniform(0.7, 1.3)) * rng.uniform(0.92, 1.08, (3, 1, 1)).astype(np.float32)
    picture += np.float32(rng.uniform(0, 0.02)) * rng.standard_normal(picture.shape, dtype=np.float32)
    return picture.clip(0, 1, out=picture)


def _light(buffer: DepthBuffer, lamp: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """[H, W] brightness: what comes from all sides, plus the lamp by its angle."""
    depth = np.where(np.isfinite(buffer.depth), buffer.depth, np.float32(1))
    cosine, squared = np.zeros_like(depth), np.full_like(depth, 1e-6)
    for axis in range(3):
        towards = np.float32(lamp[axis] - buffer.view.position[axis]) - depth * buffer.direction[axis]
        cosine += towards * buffer.normal[axis]
        squared += towards * towards
    facing = np.maximum(cosine, 0) / np.sqrt(squared)
    ambient = np.float32(rng.uniform(0.3, 0.6))
    return ambient + (np.float32(1.1) - ambient) * facing
