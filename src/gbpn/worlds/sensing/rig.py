"""All sensors by name, measured from a seed and a frame's number, and how their maps are stored.

Beside a scene's `color/` and `depth/` lies one folder a sensor, of 16-bit pictures in the scene's own depth
scale, 0 where nothing was measured. The scanner of 64 lines is stored as street recordings are:
`lidar_raw/`, and `ring/` with its scan line + 1, of which 32, 16 and 8 lines are subsets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from gbpn.errors import InputError
from gbpn.worlds.sensing.laser import Reading
from gbpn.worlds.sensing.sight import Sight
from gbpn.worlds.sensing.solid_state import solid_state
from gbpn.worlds.sensing.spinning import BESIDE_A_CAR_CAMERA, spinning
from gbpn.worlds.sensing.stereo import stereo
from gbpn.worlds.sensing.structured_light import kinect, structured_light
from gbpn.worlds.sensing.time_of_flight import time_of_flight
from gbpn.worlds.sensing.zones import zones

__all__ = ["SENSORS", "measure", "require_sensors", "stored"]


def _on_a_car(sight: Sight, rng: np.random.Generator) -> Reading:
    place = np.asarray(BESIDE_A_CAR_CAMERA) + rng.normal(0, 0.02, 3)
    return spinning(sight, rng, lines=64, place=_triple(place), tilt=_tilt(rng, 0.3))


def _scanner(lines: int) -> Callable[[Sight, np.random.Generator], Reading]:
    def scan(sight: Sight, rng: np.random.Generator) -> Reading:
        place = rng.normal(0, 0.12), -rng.uniform(0.05, 0.45), rng.uniform(-0.35, 0.1)
        step = math.radians(rng.uniform(0.15, 0.4))
        return spinning(sight, rng, lines=lines, place=place, tilt=_tilt(rng, 2.0), azimuth_step=step)

    return scan


def _rosette(sight: Sight, rng: np.random.Generator) -> Reading:
    opening = math.radians(rng.uniform(40, 75))
    return solid_state(sight, rng, shots=int(rng.integers(4000, 20000)), opening=(opening, opening))


def _raster(sight: Sight, rng: np.random.Generator) -> Reading:
    opening = math.radians(rng.uniform(60, 100)), math.radians(rng.uniform(18, 30))
    return solid_state(sight, rng, shape="raster", shots=int(rng.integers(6000, 24000)), opening=opening)


def _phone(sight: Sight, rng: np.random.Generator) -> Reading:
    opening = math.radians(60), math.radians(48)
    return solid_state(
        sight, rng, shape="dots", shots=576, opening=opening, place=(0.012, rng.uniform(-0.01, 0.01), 0.0)
    )


SENSORS: dict[str, tuple[Callable[[Sight, np.random.Generator], Reading], str]] = {
    "lidar_64": (
        _on_a_car,
        "a spinning LiDAR of 64 lines above a car's camera, stored as lidar_raw/ and ring/",
    ),
    "lidar_128": (_scanner(128), "a spinning LiDAR of 128 lines, somewhere above the camera"),
    "lidar_32": (_scanner(32), "the same with 32 lines, denser about the horizon"),
    "lidar_16": (_scanner(16), "the same with 16 lines"),
    "lidar_8": (_scanner(8), "the same with 8 lines"),
    "rosette": (_rosette, "a solid-state LiDAR that draws rosettes"),
    "raster": (_raster, "a solid-state LiDAR that sweeps lines"),
    "phone": (_phone, "576 dots of a telephone's LiDAR, up to 5.5 m"),
    "zones": (lambda sight, rng: zones(sight, rng), "a time-of-flight chip of 8 × 8 zones, up to 4 m"),
    "stereo": (lambda sight, rng: stereo(sight, rng), "a second camera 12 cm to the right"),
    "structured_light": (
        lambda sight, rng: structured_light(sight, rng),
        "a projector of dots and an infrared camera, holes left open",
    ),
    "kinect": (
        lambda sight, rng: kinect(sight, rng),
        "the same with its holes filled, as NYUv2's labelled frames",
    ),
    "time_of_flight": (
        lambda sight, rng: time_of_flight(sight, rng),
        "a dense time-of-flight camera with flying pixels",
    ),
}
"""Name → (function of sight and generator, what it is)."""


def measure(sight: Sight, names: Sequence[str], seed: int, frame: int) -> dict[str, Reading]:
    """Readings by name. Each depends on the seed, the frame's number and its own name only."""
    require_sensors(names)
    return {
        name: SENSORS[name][0](sight, np.random.default_rng([seed, frame, *name.encode()])) for name in names
    }


def require_sensors(names: Sequence[str]) -> None:
    """Raise unless all names are sensors."""
    for name in names:
        if name not in SENSORS:
            raise InputError(f"unknown sensor {name!r}: choose from {', '.join(SENSORS)}")


def stored(
    readings: dict[str, Reading], scale: float
) -> dict[str, npt.NDArray[np.uint16] | npt.NDArray[np.uint8]]:
    """Folder → picture of integers: metres times `scale`; what is too far for 16 bits is not measured."""
    out: dict[str, npt.NDArray[np.uint16] | npt.NDArray[np.uint8]] = {}
    for name, reading in readings.items():
        steps = np.rint(reading.depth.astype(np.float64) * scale)
        out["lidar_raw" if name == "lidar_64" else name] = np.where(steps <= 65535, steps, 0).astype(
            np.uint16
        )
        if name == "lidar_64" and reading.ring is not None:
            out["ring"] = reading.ring
    return out


def _tilt(rng: np.random.Generator, degrees: float) -> tuple[float, float]:
    pitch, roll = np.radians(rng.normal(0, degrees, 2))
    return float(pitch), float(roll)


def _triple(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z
