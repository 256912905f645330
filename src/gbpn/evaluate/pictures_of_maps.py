"""What pictures of reports have in common: files of them, and maps of precisions as values."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from gbpn.show.pictures import Array

__all__ = ["logarithm", "png"]


def png(picture: Array) -> bytes:
    """The picture as a file's bytes."""
    out = io.BytesIO()
    Image.fromarray(picture).save(out, format="PNG")
    return out.getvalue()


def logarithm(precision: Array) -> Array:
    """log10 where there is any precision, NaN elsewhere."""
    positive = precision > 0
    return np.where(positive, np.log10(np.where(positive, precision, 1.0)), np.nan)
