"""A photograph of a radiance: exposure, white balance, vignetting, blur, noise that grows in the dark,
JPEG."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from gbpn.worlds.scene import Floats

__all__ = ["Photography", "jpeg", "photographed"]

_GREY = np.array([0.2126, 0.7152, 0.0722], np.float32)


@dataclass(frozen=True, kw_only=True)
class Photography:
    """How a camera turns light into a file."""

    key: float = 0.2
    """Brightness that the picture's middle is exposed to, linear."""
    balance: float = 0.7
    """How much of the light's tint the automatic white balance takes away: 0 none, 1 all."""
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Gains that white balance errs by."""
    contrast: float = 1.0
    """Exponent of the tone curve about its middle."""
    vignetting: float = 0.15
    """Share of light that is lost in the corners."""
    blur: float = 0.4
    """Standard deviation of the lens' blur in pixels."""
    noise: float = 0.01
    """Standard deviation of the noise at middle brightness after a bright exposure; more where light was
    scarce."""
    smear: float = 0.0
    """Share by which noise reduction mixes neighbours, as in small cameras."""
    quality: int = 92
    """Of the JPEG."""

    @staticmethod
    def drawn(rng: np.random.Generator) -> Photography:
        """A camera and its mood."""
        good = rng.random() < 0.5
        return Photography(
            key=float(np.clip(0.19 * np.exp(0.28 * rng.normal()), 0.09, 0.36)),
            balance=float(rng.uniform(0.45, 0.95)),
            tint=(float(1 + 0.04 * rng.normal()), 1.0, float(1 + 0.04 * rng.normal())),
            contrast=float(rng.uniform(0.92, 1.18)),
            vignetting=float(rng.uniform(0.0, 0.3)),
            blur=float(rng.uniform(0.25, 0.5) if good else rng.uniform(0.4, 0.8)),
            noise=float(rng.uniform(0.002, 0.008) if good else rng.uniform(0.006, 0.02)),
            smear=float(0.0 if good else rng.uniform(0.0, 0.5)),
            quality=int(rng.integers(86, 96)),
        )


def photographed(radiance: Floats, lens: Photography, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """[H, W, 3] sRGB of a linear radiance."""
    grey = radiance @ _GREY
    light = float(np.exp(np.log(np.maximum(grey, 1e-4)).mean()))
    bright = float(np.quantile(grey, 0.98))
    # Windows and lamps may be cut off, but not the most of a picture.
    gain = min(lens.key / max(light, 1e-5), max(2.2 / max(bright, 1e-5), 0.45 * lens.key / max(light, 1e-5)))
    picture = radiance * np.float32(gain)
    picture = picture * _gains(picture, lens)
    picture = _vignetted(picture, lens.vignetting)
    picture = _blurred(picture, lens.blur)
    picture = _noisy(picture, lens, light, rng)
    picture = _toned(picture, lens.contrast)
    return np.asarray(np.rint(np.clip(picture, 0, 1) * 255), np.uint8)


def jpeg(pixels: npt.NDArray[np.uint8], quality: int) -> bytes:
    """The file's contents."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="JPEG", quality=quality)
    return file.getvalue()


def _gains(picture: Floats, lens: Photography) -> Floats:
    """[3] towards a grey mean of what is neither black nor cut off, as cameras do."""
    grey = picture @ _GREY
    usual = (grey > 0.02) & (grey < 0.9)
    mean = picture[usual].mean(axis=0) if usual.any() else np.ones(3)
    level = float(mean @ _GREY)
    return np.asarray((level / np.maximum(mean, 1e-4)) ** lens.balance * np.array(lens.tint), np.float32)


def _vignetted(picture: Floats, loss: float) -> Floats:
    height, width = picture.shape[:2]
    y, x = np.mgrid[0:height, 0:width]
    square = ((x / width - 0.5) ** 2 + (y / height - 0.5) ** 2) * 2
    return np.asarray(picture * (1 - loss * square)[..., None], np.float32)


def _blurred(picture: Floats, sigma: float) -> Floats:
    """A Gaussian of few taps."""
    if sigma < 0.2:
        return picture
    reach = max(1, int(np.ceil(2.5 * sigma)))
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    taps = (taps / taps.sum()).astype(np.float32)
    for axis in (0, 1):
        padded = np.pad(picture, [(reach, reach) if a == axis else (0, 0) for a in range(3)], mode="edge")
        length = picture.shape[axis]
        pieces = (
            padded[k : k + length] if axis == 0 else padded[:, k : k + length] for k in range(len(taps))
        )
        picture = np.asarray(sum(t * p for t, p in zip(taps, pieces, strict=True)), np.float32)
    return picture


def _noisy(picture: Floats, lens: Photography, light: float, rng: np.random.Generator) -> Floats:
    """Photons and read-out; a darker room is amplified more."""
    amplified = float(np.clip((0.25 / max(light, 1e-3)) ** 0.5, 0.7, 2.5))
    spread = lens.noise * amplified * np.sqrt(np.maximum(picture, 0) * 0.8 + 0.03)
    noise = rng.standard_normal(picture.shape, dtype=np.float32) * spread
    noise += (rng.standard_normal(picture.shape[:2], dtype=np.float32) * spread.mean(axis=2))[..., None]
    noisy = np.asarray(picture + noise, np.float32)
    if lens.smear > 0:
        noisy = (1 - lens.smear) * noisy + lens.smear * _blurred(noisy, 0.7)
    return noisy


def _toned(picture: Floats, contrast: float) -> Floats:
    """sRGB with a shoulder: bright places run out softly."""
    x = np.maximum(picture, 0)
    knee = np.float32(0.6)
    over = np.maximum(x - knee, 0)
    x = np.where(x > knee, knee + (1 - knee) * (over / (over + (1 - knee))), x)
    x = np.where(x <= 0.0031308, 12.92 * x, 1.055 * np.maximum(x, 1e-8) ** (1 / 2.4) - 0.055)
    return np.asarray(np.clip(0.45 + (x - 0.45) * contrast, 0, 1), np.float32)
