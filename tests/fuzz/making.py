"""What the corpus is made of: a valid file with its reader, and small pictures and arrays as bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 12, 16
CAMERA = "20 20 7.5 5.5"
MATRIX = "1 0 0 0 0 1 0 0 0 0 1 0"


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A valid file and who reads it."""

    name: str
    """Path below a scratch folder."""
    content: bytes
    read: Callable[[Path], object]
    """Takes the file; answers with arrays or tensors that are looked at."""
    beside: tuple[tuple[str, bytes], ...] = ()
    """Other files that the reader wants, valid ones."""
    head: int | None = None
    """Only so many bytes of the beginning are damaged; None: any."""


def depth() -> np.ndarray:
    rng = np.random.default_rng(0)
    depth = np.zeros((HEIGHT, WIDTH), np.float32)
    depth.reshape(-1)[rng.choice(depth.size, 40, replace=False)] = rng.uniform(1, 5, 40)
    return depth


def pixels() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)


def saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    picture.save(out, format=kind, **options)
    return out.getvalue()


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(member: bytes) -> bytes:
    """A .npz around the bytes of a .npy, whatever they are."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("depth.npy", member)
    return out.getvalue()
