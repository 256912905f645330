"""Light outdoors: sun, broken clouds, overcast and dusk, each with a sky that is seen and that lights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gbpn.worlds.scene import Light

__all__ = ["WEATHERS", "Daylight", "daylight", "hazed"]

WEATHERS = ("sun", "clouds", "overcast", "dusk")
_SHARES = (0.35, 0.3, 0.25, 0.1)
_HEIGHT, _WIDTH = 256, 1024


@dataclass(frozen=True, kw_only=True)
class Daylight:
    """One time of day and its weather."""

    weather: str
    sun: Light | None
    sky: tuple[float, float, float]
    """Radiance of the sky's brightest place; the panorama is a share of it."""
    panorama: npt.NDArray[np.uint8]
    """[256, 1024, 3] sRGB, round from +x, overhead to underfoot."""
    haze: float
    """Metres after which a third of a thing's own light is left."""
    haze_colour: tuple[float, float, float]

    @property
    def lamps(self) -> bool:
        """Whether lamps are lit."""
        return self.weather == "dusk"


def daylight(rng: np.random.Generator, weather: str | None = None) -> Daylight:
    """A day drawn at random, or one of the weathers."""
    weather = weather or str(rng.choice(WEATHERS, p=_SHARES))
    elevation = math.radians(
        {"sun": rng.uniform(18, 62), "clouds": rng.uniform(18, 60), "dusk": rng.uniform(-3, 5)}.get(
            weather, 40.0
        )
    )
    azimuth = rng.uniform(0, 2 * math.pi)
    towards = np.array(
        [
            math.cos(azimuth) * math.cos(elevation),
            math.sin(azimuth) * math.cos(elevation),
            math.sin(elevation),
        ]
    )
    level = _sky(weather, towards, rng)
    peak = float(np.quantile(level, 0.998))
    linear = np.clip(level / peak, 0, 1)
    srgb = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    picture = (srgb * 255 + rng.uniform(0, 1, srgb.shape[:2])[..., None]).clip(0, 255).astype(np.uint8)
    strength = {
        "sun": rng.uniform(5.5, 8),
        "clouds": rng.uniform(3, 7),
        "dusk": 0.5 * max(elevation, 0) / 0.09,
    }.get(weather, 0.0)
    warm = np.array([1.0, 0.94, 0.84]) if elevation > 0.35 else np.array([1.0, 0.82, 0.6])
    horizon = level[_HEIGHT // 2 - 6 : _HEIGHT // 2 - 1].mean(axis=(0, 1))
    return Daylight(
        weather=weather,
        sun=Light.sun(towards, strength * warm, spread=0.006) if strength > 0.01 else None,
        sky=(peak, peak, peak),
        panorama=np.ascontiguousarray(picture),
        haze=float(np.exp(rng.uniform(math.log(700 if weather == "overcast" else 1500), math.log(6000)))),
        haze_colour=(float(horizon[0]), float(horizon[1]), float(horizon[2])),
    )


def _sky(weather: str, towards: np.ndarray, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """[H, W, 3] linear radiance of the whole sphere; below the horizon the dull ground."""
    up = math.pi / 2 - (np.arange(_HEIGHT) + 0.5) / _HEIGHT * math.pi
    around = (np.arange(_WIDTH) + 0.5) / _WIDTH * 2 * math.pi
    z = np.sin(up)[:, None]
    x, y = np.cos(up)[:, None] * np.cos(around), np.cos(up)[:, None] * np.sin(around)
    rise = np.clip(z, 0, 1)[..., None] ** 0.5
    near_sun = np.clip(x * towards[0] + y * towards[1] + z * towards[2], -1, 1)[..., None]
    if weather == "dusk":
        low = np.array([0.5, 0.3, 0.2]) * (0.5 + 0.5 * np.clip(near_sun, 0, 1) ** 2) + [0.05, 0.07, 0.11]
        sky = low * (1 - rise) + np.array([0.05, 0.08, 0.17]) * rise
    elif weather == "overcast":
        sky = np.array([0.8, 0.83, 0.88]) * (0.75 + 0.35 * rise) * np.ones_like(near_sun)
    else:
        zenith = np.array([0.15, 0.26, 0.47]) * rng.uniform(0.8, 1.2)
        sky = np.array([0.7, 0.75, 0.82]) * (1 - rise) + zenith * rise
        sky = sky + np.array([0.5, 0.45, 0.35]) * np.clip(near_sun, 0, 1) ** 12
        sky = sky + np.array([3.0, 2.8, 2.4]) * np.clip(near_sun, 0, 1) ** 220
    cover = {"sun": rng.uniform(-1.2, -0.2), "clouds": rng.uniform(-0.2, 0.9), "overcast": 1.4}.get(
        weather, rng.uniform(-0.8, 0.6)
    )
    height = np.maximum(z, 0.03) + 0.06
    field = _cloud_noise(rng, x / height, y / height)
    thick = np.clip((field + cover) * 1.1, 0, 1)[..., None]
    thick = thick * np.clip(z * 9, 0, 1)[..., None]
    white = np.array([1.0, 0.99, 0.97]) * {"dusk": 0.16, "overcast": 0.9}.get(weather, 1.15)
    shade = 1 - 0.45 * np.clip(field - 0.2 + 0.5 * cover, 0, 1)[..., None]
    sky = sky * (1 - 0.9 * thick) + white * shade * 0.9 * thick
    ground = sky[: _HEIGHT // 2].mean(axis=(0, 1)) * [0.3, 0.3, 0.27]
    return np.asarray(np.where(z[..., None] < -0.01, ground, sky))


def _cloud_noise(rng: np.random.Generator, x: np.ndarray, y: np.ndarray) -> npt.NDArray[np.float64]:
    """Heaps of several sizes, of deviation about 1, on the plane of the clouds."""
    size = 256
    fy, fx = np.fft.fftfreq(size)[:, None] * size, np.fft.rfftfreq(size)[None] * size
    radius = np.hypot(fy, fx)
    spectrum = np.where(radius >= 2, np.maximum(radius, 1) ** -1.75, 0)
    noise = np.fft.irfft2(spectrum * np.exp(2j * math.pi * rng.random(radius.shape)), (size, size))
    noise /= noise.std()
    scale = rng.uniform(14, 34)
    column, row = x * scale, y * scale
    c0, r0 = np.floor(column), np.floor(row)
    fc, fr = column - c0, row - r0
    c0, r0 = c0.astype(np.int64) % size, r0.astype(np.int64) % size
    c1, r1 = (c0 + 1) % size, (r0 + 1) % size
    top = noise[r0, c0] * (1 - fc) + noise[r0, c1] * fc
    low = noise[r1, c0] * (1 - fc) + noise[r1, c1] * fc
    return np.asarray(top * (1 - fr) + low * fr)


def hazed(
    radiance: npt.NDArray[np.float32], depth: npt.NDArray[np.float32], day: Daylight
) -> npt.NDArray[np.float32]:
    """[H, W, 3] with air between: far things take the colour of the horizon; the sky stays."""
    through = np.where(depth > 0, np.exp(-depth / day.haze), 1)[..., None].astype(np.float32)
    air = np.asarray(day.haze_colour, np.float32)
    return np.asarray(radiance * through + air * (1 - through), np.float32)
