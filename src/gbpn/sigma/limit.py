"""Which pixels of an answer are trusted: those whose σ is small enough, in metres or for their depth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbpn.errors import InputError
from gbpn.files.guard import shown

__all__ = ["USUAL_LIMIT", "SigmaLimit"]


@dataclass(frozen=True, kw_only=True)
class SigmaLimit:
    """The largest σ of a pixel that is trusted."""

    value: float
    """Metres, or with `relative` a share of the depth."""
    relative: bool = False

    @classmethod
    def of(cls, given: Any) -> SigmaLimit:
        """From 0.05 (metres), "0.05", "5%" (of the depth) or a limit."""
        if isinstance(given, SigmaLimit):
            return given
        text = str(given).strip()
        try:
            number = float(text.removesuffix("%"))
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number > 0):
            raise InputError(
                f"a largest sigma is metres such as 0.05, or a share such as 5%; got {shown(text)!r}"
            )
        relative = text.endswith("%")
        return cls(value=number / 100 if relative else number, relative=relative)

    def keeps(self, depth: np.ndarray, std: np.ndarray) -> np.ndarray:
        """[H, W] bool: where σ is within the limit; NaN never is."""
        with np.errstate(invalid="ignore"):
            return np.asarray(std <= (self.value * depth if self.relative else self.value))

    def __str__(self) -> str:
        return f"{100 * self.value:g}%" if self.relative else f"{self.value:g} m"


USUAL_LIMIT = SigmaLimit(value=0.05, relative=True)
"""Of clouds, unless told otherwise: no sky of the street scene passes; 10 % would let in a quarter of it."""
