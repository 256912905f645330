"""What a frame is measured with before any method sees it: the same for every method, order and process."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate

from gbpn.engine import resizing
from gbpn.errors import InputError
from gbpn.measurements.validity import measured
from gbpn.metrics.errors import valid
from gbpn.sample import Sample
from gbpn.sensors import patterns
from gbpn.sensors.corruption import relative_noise
from gbpn.sensors.sampling import sparsify

__all__ = ["PICTURES", "Setting"]

_DEFAULT_POINTS = 500
PICTURES = ("", "black", "other")
"""What the picture of a frame may be replaced by."""
_DENSE = 0.5
"""Share of pixels with a target from which on it counts as dense."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One row group of a table. Only what is given is changed against the dataset's own protocol."""

    points: int | None = None
    """Number of measurements. From a sensor's own points if the frame has them, else the released protocol:
    the same positions in every frame, drawn by the seed; a position without depth gives no measurement."""
    lines: int | None = None
    """LiDAR scan lines kept, by the released rule."""
    pattern: str | None = None
    """Any pattern of `gbpn.sensors.sampling`, such as `corners:300+outliers:0.05`, instead of points."""
    noise: float = 0.0
    """Relative error of the measurements, uniform in ± this."""
    iterations: int | None = None
    """Belief propagation iterations of methods that have them, over all stages."""
    scale: float = 1.0
    """Frames are reduced to this share of their sides once they are measured: the same points at any size."""
    data: tuple[tuple[str, Any], ...] = ()
    """Options with which the dataset is read for this setting alone, e.g. (("points", 150),)."""
    frames: int | None = None
    """At most this many frames, where a setting costs more than others."""
    name: str = ""
    """What tables call it instead of naming its values."""
    weights_only: bool = False
    """Whether methods without weights are left out."""
    picture: str = ""
    """"black", or "other": the picture of another frame in place of this one's."""
    one_by_one: bool = False
    """Whether weights get the measurements through a session, one after the other."""

    def __post_init__(self) -> None:
        given = [name for name in ("points", "lines", "pattern") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(f"give one of points, lines and pattern; got {' and '.join(given)}")
        if not 0 < self.scale <= 1:
            raise InputError(f"scale is a share in (0, 1], 0.5 for half the sides; got {self.scale}")
        if self.picture not in PICTURES:
            raise InputError(f"picture must be one of {', '.join(PICTURES)}; got {self.picture!r}")
        if not 0 <= self.noise < 1:
            raise InputError(f"noise is a share in [0, 1), 0.02 for 2 %; got {self.noise}")
        for name in ("points", "lines", "iterations", "frames"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1; got {value}")

    def describe(self) -> dict[str, Any]:
        """What is set, for a report: the options of the data among the values, or the name of it all."""
        if self.name:
            return {"name": self.name}
        silent = ("data", "frames", "name", "weights_only")
        usual = {"noise": 0, "scale": 1, "picture": "", "one_by_one": False}
        own = {k: v for k, v in asdict(self).items() if k not in silent and v != usual.get(k)}
        return dict(self.data) | own

    @property
    def key(self) -> str:
        """One line that names this setting, e.g. `points=500 noise=0.02`; `as given` for the protocol."""
        return (
            " ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in self._items())
            or "as given"
        )

    def _items(self) -> list[tuple[str, Any]]:
        return list(self.describe().items())

    def measure(self, sample: Sample, seed: int = 0) -> Sample:
        """The sample with its measurements; depends on the sample's name and the seed, not on any order."""
        rng = np.random.default_rng([seed, zlib.crc32(sample.name.encode())])
        placed = self._place(sample, rng, seed)
        if self.noise:
            placed = replace(placed, sparse=relative_noise(placed.sparse, rng, self.noise))
        return placed if self.scale == 1 else _reduced(placed, self.scale)

    def pictured(self, sample: Sample, other: Callable[[], Sample]) -> Sample:
        """The sample with the picture that it is judged with; `other` loads another frame."""
        if self.picture == "black":
            return replace(sample, image=torch.zeros_like(sample.image))
        if self.picture == "other":
            size = (sample.image.shape[1], sample.image.shape[2])
            image = interpolate(other().image[None], size=size, mode="bilinear", antialias=True)[0]
            return replace(sample, image=image)
        return sample

    def _place(self, sample: Sample, rng: np.random.Generator, seed: int) -> Sample:
        if self.pattern is not None:
            return sparsify(sample, self.pattern, rng)
        if self.lines is not None:
            return sparsify(sample, f"lines:{self.lines}", rng)
        if bool(measured(sample.sparse).any()):  # a sensor measured
            if self.points is None:
                return sample
            return replace(sample, sparse=patterns.random_points(sample.sparse, rng, self.points))
        if sample.target is None:
            raise InputError(f"{sample.name}: no measurement and no ground truth to take some from")
        count = min(self.points or _DEFAULT_POINTS, sample.target.numel())
        return replace(sample, sparse=patterns.fixed_positions(sample.target, count, seed))


def _reduced(sample: Sample, scale: float) -> Sample:
    """The frame at a smaller size with the same measurements, and a target that is not blurred.

    Dense targets are read at the centres of the new pixels; every value of a sparse one goes to its pixel.
    """
    image, sparse, camera = resizing.reduce(sample.image, sample.sparse, sample.intrinsics, scale)
    target, size = sample.target, (image.shape[1], image.shape[2])
    if target is not None:
        if float(valid(target).float().mean()) > _DENSE:
            target = interpolate(target[None], size=size, mode="nearest-exact")[0]
        else:
            target = resizing.reduce(sample.image, target, sample.intrinsics, scale)[1]
    return replace(sample, image=image, sparse=sparse, intrinsics=camera, target=target)
