"""Weight files: safetensors with the configuration inside, and the authors' released files.

A file of ours carries in its metadata: `format` "gbpn", `version`, `config`, `card` (licence, training data,
numbers) and `calibration`, the last three as JSON; and `crc32` of all of it and of the tensors, so that a
flipped bit is noticed. Files of earlier releases have no checksum and are read without.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from gbpn.config import ModelConfig
from gbpn.distribution import SigmaCalibration
from gbpn.errors import CheckpointError
from gbpn.files.atomic import write_bytes
from gbpn.files.guard import reading, shown

__all__ = [
    "CHECKSUM",
    "EMBEDDED",
    "FORMAT",
    "VERSION",
    "Saveable",
    "embedded",
    "named",
    "read",
    "save",
]

FORMAT, VERSION = "gbpn", 1
CHECKSUM = "crc32"
"""Key of the checksum in the metadata."""
EMBEDDED = Path(__file__).parent
"""Where the weight files lie that come with the package."""
_DEFAULT = "nyuv2"
"""Which of them `default` is."""


def embedded(name: str) -> Path:
    """Where embedded weights of this name lie, if there are any."""
    return EMBEDDED / f"{_DEFAULT if name == 'default' else name}.safetensors"


def named() -> list[str]:
    """Names of the embedded weights, `default` first."""
    names = sorted(file.stem for file in EMBEDDED.glob("*.safetensors"))
    return ["default", *names] if _DEFAULT in names else names


class Saveable(Protocol):
    """What a file stores of a model."""

    config: ModelConfig
    calibration: SigmaCalibration | None
    card: dict[str, Any]

    @property
    def fused(self) -> bool: ...

    def state_dict(self) -> Mapping[str, Any]: ...


def save(
    model: Saveable,
    path: str | os.PathLike[str],
    *,
    half: bool = False,
    card: Mapping[str, Any] | None = None,
    tensors: Mapping[str, Tensor] | None = None,
) -> Path:
    """Write one safetensors file, at once or not at all.

    half     store weights in 16 bits (statistics and biases stay in 32); half the size
    card     licence, training data, numbers; None keeps what the model carries
    tensors  another state of the same model, such as an average over training
    """
    if model.fused:
        raise CheckpointError("a fused model has no batch norms left to save: save before fuse()")
    state = dict(model.state_dict() if tensors is None else tensors)
    stored = {name: _stored(tensor, half) for name, tensor in state.items()}
    calibration = asdict(model.calibration) if model.calibration is not None else None
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "config": json.dumps(model.config.as_dict()),
        "card": json.dumps(dict(model.card if card is None else card)),
        "calibration": json.dumps(calibration),
    }
    metadata[CHECKSUM] = _checksum(stored, metadata)
    return write_bytes(path, to_bytes(stored, metadata), durable=True)


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """CRC-32 of names, shapes, values and all other metadata, in an order that no file changes."""
    total = 0
    for key in sorted(metadata.keys() - {CHECKSUM}):
        total = zlib.crc32(f"{key}={metadata[key]}\n".encode(), total)
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        total = zlib.crc32(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode(), total)
        total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return f"{total:08x}"


def _stored(tensor: Tensor, half: bool) -> Tensor:
    tensor = tensor.detach().cpu().contiguous()
    largest = torch.finfo(torch.float16).max
    if half and tensor.is_floating_point() and tensor.dim() > 1 and tensor.numel() > 1:
        return tensor.half() if float(tensor.abs().max()) < largest else tensor
    return tensor


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a weight file; an error names what is wrong with it."""
    if not path.is_file():
        raise CheckpointError(f"no weight file at {shown(path)}")
    with reading(path, "weight file", "tensors by name", error=CheckpointError):
        tensors, metadata = _read_ours(path) if path.suffix == ".safetensors" else (_read_released(path), {})
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
                raise CheckpointError(
                    f"{shown(path)} holds NaN or infinity in {shown(name)}: such weights answer nothing; "
                    "take an earlier file"
                )
        return tensors, metadata


def _read_ours(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except Exception as error:  # a damaged header fails in many ways
        raise CheckpointError(f"{path} is truncated or not a safetensors file: {error}") from error
    ours = metadata.get("version") == str(VERSION)
    if ours and CHECKSUM in metadata and metadata[CHECKSUM] != _checksum(tensors, metadata):
        raise CheckpointError(f"{path} is damaged: its checksum does not fit; copy or download it again")
    return tensors, metadata


def _read_released(path: Path) -> dict[str, Tensor]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise CheckpointError(
            f"{path} is truncated or not a file of plain tensors; nothing else is read from such a file"
        ) from error
    tensors = content.get("net", content) if isinstance(content, dict) else None
    if not isinstance(tensors, dict) or not all(isinstance(t, Tensor) for t in tensors.values()):
        raise CheckpointError(
            f"{path} must hold tensors by name, or such a table under 'net'; got {type(content).__name__}"
        )
    return tensors
