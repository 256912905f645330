"""`load`: a model by name, file, folder or hub id; only the last goes over the network."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gbpn.config import ModelConfig, named
from gbpn.distribution import SigmaCalibration
from gbpn.errors import CheckpointError, InputError
from gbpn.files.guard import reading
from gbpn.model.models import GBPN, AffineModel, Model, from_config
from gbpn.sigma.surroundings import sound as sound_surroundings
from gbpn.weights import files, hub, licence, released
from gbpn.weights.files import FORMAT, VERSION, read

__all__ = ["load"]

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(/[\w./-]+)?")
"""owner/name, perhaps with a folder inside."""


def load(
    source: str | os.PathLike[str] = "default",
    *,
    config: str | None = None,
    device: str | torch.device = "cpu",
    backend: str = "auto",
    fuse: bool = False,
    precision: str = "float32",
    **overrides: Any,
) -> GBPN | AffineModel:
    """A model in evaluation mode from a name, a file, a folder or a hub id.

    source     "default" or another name of embedded weights; a `.safetensors` file; the authors' `.pth`; a
               folder with `model.safetensors`; "owner/name[/folder]" on the Hugging Face hub
    config     name of the configuration for a file that has none inside (released files: "gbpn-2")
    fuse, precision  deprecated: `gbpn.DepthCompleter` is fast by itself and takes a precision
    overrides  any field of the configuration, e.g. image_mean=(0, 0, 0) for images already normalised
    """
    path, hint = _find(source)
    with reading(path, "weight file", "tensors by name and their configuration", error=CheckpointError):
        tensors, metadata = read(path)
        base = _config_of(path, tensors, metadata, config or hint)
        try:
            with _NoStart():
                model = from_config(base.overridden(overrides))
        except InputError as error:
            raise CheckpointError(f"{path}: {error}") from error
        if released.is_released(tensors):
            tensors = released.from_released(tensors, model.state_dict())
        _fill(model, tensors, path)
        model.card = _json(path, metadata, "card", {})
        model.calibration = _calibration(path, metadata)
    if path.parent == files.EMBEDDED:
        licence.tell_once(model.card)
    model.eval().to(device)
    model.use_backend(backend)
    if fuse:
        model.fuse()
    return model if precision == "float32" else model.use_precision(precision)


class _NoStart(TorchFunctionMode):
    """Parameters stay as they were allocated, untouched: no memory and no random numbers for what is about to
    be replaced. (The meta device would load torch's compiler to fill tensors that have no values.)"""

    _DRAWING = (Tensor.normal_, Tensor.uniform_)

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return args[0] if function in self._DRAWING else function(*args, **(kwargs or {}))


def _find(source: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """The file behind a name, a path or a hub id, and the configuration its place suggests."""
    text, path = os.fspath(source), Path(source)
    if path.is_file():
        return path, None
    if path.is_dir():
        return path / "model.safetensors", None
    if (own := files.embedded(text)).is_file():
        return own, None
    if text == "default":
        raise CheckpointError(
            "this installation has no embedded default weights: give a weight file, "
            "or build an untrained model with gbpn.build"
        )
    looks_local = path.suffix in (".safetensors", ".pth", ".pt") or Path(path.parts[0]).exists()
    if looks_local or not _HUB_ID.fullmatch(text):
        names = ", ".join(files.named()) or "none"
        raise CheckpointError(
            f"no weights {text!r}: not a file or folder, not embedded (there are: {names}), "
            "not a hub id owner/name"
        )
    return hub.download(text)


def _config_of(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str], name: str | None
) -> ModelConfig:
    if "config" in metadata:
        if metadata.get("format") != FORMAT or metadata.get("version") != str(VERSION):
            raise CheckpointError(
                f"{path} must be of format {FORMAT} version {VERSION}; got {metadata.get('format')!r} "
                f"version {metadata.get('version')!r}: use the gbpn release that wrote it"
            )
        try:
            return ModelConfig.from_dict(_json(path, metadata, "config", {}))
        except (InputError, TypeError, ValueError, AttributeError, KeyError) as error:
            raise CheckpointError(f"{path} has a configuration this release cannot read: {error}") from error
    if name is not None:
        return named(name)
    if released.is_released(tensors):
        return named("gbpn-2")
    raise CheckpointError(
        f"{path} has no configuration inside and is not the authors' layout: say which with config='gbpn-2'"
    )


def _json(path: Path, metadata: Mapping[str, str], key: str, default: Any) -> Any:
    """One table of the metadata."""
    try:
        found = json.loads(metadata[key]) if key in metadata else default
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} has damaged metadata {key!r}: {error}") from error
    if found is not None and not isinstance(found, dict):
        raise CheckpointError(f"{path}: metadata {key!r} must be a table; got {type(found).__name__}")
    return default if found is None else found


def _calibration(path: Path, metadata: Mapping[str, str]) -> SigmaCalibration | None:
    if not (stored := _json(path, metadata, "calibration", None)):
        return None
    try:
        knots, log_std = (tuple(float(value) for value in stored[name]) for name in ("knots", "log_std"))
        relative = stored["relative"]
        around = tuple(tuple(float(one) for one in part) for part in stored.get("surroundings", ()))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} has a calibration that cannot be read: {error!r}") from error
    sound = len(knots) == len(log_std) >= 2 and all(map(math.isfinite, (*knots, *log_std)))
    if not sound or not isinstance(relative, bool) or list(knots) != sorted(knots):
        raise CheckpointError(
            f"{path}: a calibration has as many increasing knots as log_std, two or more, all finite, and "
            f"says whether it is relative; got {len(knots)}, {len(log_std)}, relative {relative!r}"
        )
    if around and not (relative and sound_surroundings(around)):
        raise CheckpointError(
            f"{path}: the part of the calibration that looks at surroundings has another size, or numbers "
            "that are not finite: fit it anew with gbpn convert --calibrate"
        )
    return SigmaCalibration(knots=knots, log_std=log_std, relative=relative, surroundings=around)


def _fill(model: Model, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Copy tensors in, or say which are missing, unknown or of another shape."""
    wanted = model.state_dict()
    missing = sorted(set(wanted) - set(tensors))
    extra = sorted(set(tensors) - set(wanted))
    shapes = [n for n in wanted if n in tensors and tensors[n].shape != wanted[n].shape]
    if missing or extra or shapes:
        kinds = (("missing", missing), ("unknown", extra), ("of another shape", shapes))
        parts = [f"{len(names)} {kind} (first: {names[0]})" for kind, names in kinds if names]
        raise CheckpointError(
            f"{path} does not fit configuration {model.config.name!r} of {len(wanted)} tensors: "
            + ", ".join(parts)
        )
    converted = {name: tensor.to(wanted[name].dtype) for name, tensor in tensors.items()}
    model.load_state_dict(converted, assign=True)
