"""What an exported folder says of itself."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gbpn.config import ModelConfig
from gbpn.errors import CheckpointError, InputError
from gbpn.files.contained import contained
from gbpn.files.guard import reading, shown
from gbpn.sigma.surroundings import sound

__all__ = ["FORMAT", "MANIFEST", "VERSION", "Manifest", "Network", "SigmaCalibration"]

MANIFEST, FORMAT, VERSION = "gbpn.json", "gbpn-export", 2
_LARGEST_NETWORK = 1 << 31
"""Bytes of an ONNX file: more its format cannot hold."""
_LARGEST_MANIFEST = 1 << 24
"""Bytes of the manifest."""
_PIECE = 1 << 20
"""Bytes that are read at a time."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """One ONNX file."""

    name: str
    """"first" and "second" stage, or "field": what the density of the measurements makes of the first."""
    path: Path
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SigmaCalibration:
    """See `gbpn.distribution.SigmaCalibration`."""

    knots: tuple[float, ...]
    log_std: tuple[float, ...]
    relative: bool
    surroundings: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All but the networks themselves."""

    networks: tuple[Network, ...]
    config: ModelConfig
    calibration: SigmaCalibration | None
    card: dict[str, Any]
    precision: str
    """Of the stored weights; in bfloat16 engines that can then compute as well."""
    size: tuple[int, int] | None
    """(H, W) of images; None: any, padded to multiples of `multiple` …"""
    multiple: int
    smallest: int
    """… and to at least this many pixels a side."""
    checksum: str
    """Of all files."""

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a folder whose files are all there and unchanged."""
        place = folder / MANIFEST
        expected = "what gbpn export --form runtime wrote"
        with reading(place, "manifest", expected, error=CheckpointError):
            if (size := place.stat().st_size) > _LARGEST_MANIFEST:
                raise CheckpointError(f"{place} has {size} bytes, more than any manifest: export it again")
            stored = json.loads(place.read_text(encoding="utf-8"))
            if stored["format"] != FORMAT or stored["version"] != VERSION or stored["form"] != "runtime":
                raise CheckpointError(
                    f"{place} must be of format {FORMAT} {VERSION}, form runtime; got {stored['format']} "
                    f"{stored['version']}, form {stored['form']}: export it with gbpn export --form runtime"
                )
            calibration = stored["calibration"]
            return cls(
                networks=tuple(_network(folder, entry) for entry in stored["networks"]),
                config=ModelConfig.from_dict(stored["config"]),
                calibration=None if calibration is None else _calibration(calibration),
                card=stored["card"],
                precision=str(stored["precision"]),
                size=None
                if stored["size"] is None
                else (_pixels(stored["size"][0]), _pixels(stored["size"][1])),
                multiple=_pixels(stored["multiple"]),
                smallest=_pixels(stored["smallest"]),
                checksum="".join(entry["sha256"] for entry in stored["networks"]),
            )


def _network(folder: Path, entry: dict[str, Any]) -> Network:
    try:
        path = contained(folder, _text(entry["file"]))
    except InputError as error:
        raise CheckpointError(f"{shown(folder / MANIFEST)}: {error}") from error
    with reading(path, "network", "what the manifest names", error=CheckpointError):
        if (size := path.stat().st_size) > _LARGEST_NETWORK:
            raise CheckpointError(
                f"{shown(path)} has {size} bytes; an ONNX file has at most {_LARGEST_NETWORK}: export again"
            )
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    if digest.hexdigest() != entry["sha256"]:
        raise CheckpointError(
            f"{shown(path)} is not the file that was exported: its checksum differs; export again"
        )
    return Network(
        name=_text(entry["name"]),
        path=path,
        inputs=tuple(_text(name) for name in entry["inputs"]),
        outputs=tuple(_text(name) for name in entry["outputs"]),
    )


def _text(stored: object) -> str:
    if not isinstance(stored, str):
        raise CheckpointError(f"names in a manifest must be texts; got {shown(stored)}: export it again")
    return stored


def _pixels(stored: object) -> int:
    if type(stored) is not int or not 1 <= stored <= 1 << 16:
        raise CheckpointError(f"a size must be a whole number of pixels from 1 to 65536; got {stored!r}")
    return stored


def _numbers(stored: list[Any]) -> tuple[float, ...]:
    numbers = tuple(float(number) for number in stored)
    if len(numbers) < 2 or not all(map(math.isfinite, numbers)):
        raise CheckpointError(f"a calibration must be two or more finite numbers; got {shown(stored)}")
    return numbers


def _calibration(stored: dict[str, Any]) -> SigmaCalibration:
    around = tuple(tuple(float(one) for one in part) for part in stored.get("surroundings", ()))
    if around and not (stored["relative"] and sound(around)):
        raise CheckpointError("a calibration's surroundings have another size: export the model again")
    return SigmaCalibration(
        surroundings=around,
        knots=_numbers(stored["knots"]),
        log_std=_numbers(stored["log_std"]),
        relative=bool(stored["relative"]),
    )
