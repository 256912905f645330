"""One frame as an engine takes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from gbpn.camera.wide import WideCamera
from gbpn.errors import InputError
from gbpn.formats.depth_files import implausible
from gbpn.kernels.checks import require_finite
from gbpn.measurements.plausible import without_implausible
from gbpn.measurements.validity import measured
from gbpn.sigma.reservation import Reservation

__all__ = ["FrameInputs"]


@dataclass(frozen=True, kw_only=True)
class FrameInputs:
    """One frame as a model takes it, read once and for all who look at it."""

    image: Tensor
    """[3, H, W] RGB in [0, 1]."""
    sparse: Tensor
    """[1, H, W] metres, 0 where not measured; somewhere it is. What no sensor measures is dropped, see
    `gbpn.measurements.plausible`."""
    intrinsics: Tensor
    """[3, 3]."""
    notices: tuple[str, ...] = ()
    """What had to be assumed, in words."""
    scale: float | None = None
    """What the depths were divided by, if anything: a 16-bit sensor's largest number means too far."""
    std: Tensor | None = None
    """[1, H, W] metres of noise that the sensor states; None: it states none."""
    weight: Tensor | None = None
    """[1, H, W] in [0, 1], what is left of a measurement's precision; None: all of it."""
    areas: tuple[int, int] | None = None
    """(h, w) of a depth map whose pixels are areas of the picture, see
    `gbpn.measurements.areas`; None: single pixels."""
    metric: bool = True
    """Whether depths are metres; else they have no unit, as those of a reconstruction."""
    prior: Tensor | None = None
    """[1, h, w] of any size: a foreign network's map of the picture, up to scale and shift, NaN where it says
    nothing; None: there is none."""
    reservation: Reservation | None = None
    """What speaks against sigmas that rest on the measurements' agreement alone."""
    wide: WideCamera | None = None
    """A panorama or a fisheye lens: `sparse`, `std` and the answer are ranges along the rays of the pixels,
    and `intrinsics` is its `matrix`; None: a pinhole, and depth is z."""

    def __post_init__(self) -> None:
        require_finite(image=self.image, intrinsics=self.intrinsics)
        kept, notice = without_implausible(self.sparse, self.scale)
        if notice is not None:
            object.__setattr__(self, "sparse", kept)
            object.__setattr__(self, "notices", (*self.notices, notice))
        if not bool(measured(self.sparse).any()):
            raise InputError("there is no measurement: every value of the sparse depth is 0 or NaN")

    def require_pinhole(self, who: str) -> None:
        """Raise if this is the picture of a wide camera, which `who` does not know."""
        if self.wide is not None:
            raise InputError(
                f"{who} takes pinhole pictures; got a {self.wide}: use gbpn complete or DepthCompleter, or "
                "cut pinhole views out of it first (gbpn.camera.views)"
            )

    @cached_property
    def doubt(self) -> str | None:
        """What speaks against the depths being metres."""
        return implausible(self.sparse.numpy()) if self.metric else None

    @property
    def size(self) -> tuple[int, int]:
        """(H, W)."""
        return self.image.shape[1], self.image.shape[2]
