"""A folder that a runtime needs nothing else to work from: ONNX files and a manifest."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gbpn import __version__
from gbpn.camera.pinhole import default_intrinsics
from gbpn.config import ModelConfig
from gbpn.errors import InputError
from gbpn.export.networks import SEEN, FieldNetwork, FirstNetwork, SecondNetwork, WholeModel
from gbpn.export.onnx_files import exported_program, require_packages, write_onnx
from gbpn.files.atomic import write_text
from gbpn.model.models import GBPN, Model
from gbpn.network import MULTIPLE
from gbpn.network.padding import SMALLEST_SIDE
from gbpn.runtime.manifest import FORMAT, MANIFEST, VERSION

__all__ = ["FORMS", "PRECISIONS", "export", "smallest_multiple"]

FORMS = ("pure", "runtime")
PRECISIONS = ("float32", "float24", "bfloat16", "float16")
"""How weights are stored. Engines compute in float32; OpenVINO in bfloat16 where weights are stored so."""


def export(
    model: Model,
    folder: str | os.PathLike[str],
    *,
    form: str = "runtime",
    size: tuple[int, int] | None = None,
    precision: str = "float32",
) -> list[Path]:
    """Write the files of a model; the manifest comes last, so a folder that has one is whole.

    form       "pure": one graph of standard operators; "runtime": the networks, for `gbpn.runtime`
    size       (H, W) of the images it will see; None: any multiples of 32
    precision  of the stored weights
    """
    require_packages()
    if form not in FORMS or precision not in PRECISIONS:
        raise InputError(
            f"form must be one of {', '.join(FORMS)} and precision one of {', '.join(PRECISIONS)}; "
            f"got {form!r} and {precision!r}"
        )
    if not isinstance(model, GBPN) or model.config.mirror:
        raise InputError(
            f"{model.config.name!r} cannot be exported: a model with a field is needed, and mirror=False"
        )
    if changed := _as_in_the_text(model.config):
        raise InputError(
            f"{model.config.name!r} cannot be exported: what runs exported folders passes messages as the "
            f"release does, and this model has {changed}; use it in torch"
        )
    if size is not None and min(size) < SMALLEST_SIDE:
        raise InputError(f"size must be at least {SMALLEST_SIDE}×{SMALLEST_SIDE}; got {size[0]}×{size[1]}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    model = model.merged().cpu().use_backend("scan")
    write = _write_pure if form == "pure" else _write_networks
    networks = write(model, folder, size, precision)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"gbpn {__version__}",
        "form": form,
        "precision": precision,
        "size": None if size is None else list(size),
        "multiple": MULTIPLE,
        "smallest": smallest_multiple(model.config) * MULTIPLE if size is None else SMALLEST_SIDE,
        "networks": networks,
        "config": model.config.as_dict(),
        "calibration": None if model.calibration is None else asdict(model.calibration),
        "card": model.card,
    }
    place = write_text(folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return [*(folder / network["file"] for network in networks), place]


def smallest_multiple(config: ModelConfig) -> int:
    """Multiples of 32 from which on one graph serves all sizes: attention windows must fit undiminished."""
    needed = [1]
    if config.encoder == "global-local" and config.block != "convolution":
        needed += [config.window * max(steps) << level for level, steps in enumerate(config.dilations, 1)]
    if config.stages == 2 and config.second_stage == "refine":
        needed += [config.window << level for level, units in enumerate(config.refine_units, 1) if units]
    return -(-max(needed) // MULTIPLE)


def _as_in_the_text(config: ModelConfig) -> str:
    """The choices of the paper's text that an exported folder would not follow."""
    usual = ModelConfig()
    names = ("damped", "edge_sets", "far_messages", "second_start")
    return ", ".join(f"{n}={getattr(config, n)!r}" for n in names if getattr(config, n) != getattr(usual, n))


def _write_pure(
    model: GBPN, folder: Path, size: tuple[int, int] | None, precision: str
) -> list[dict[str, Any]]:
    whole = WholeModel(model)
    height, width = size or _traced_size(model.config)
    example = (*_image(height, width), torch.ones(1, 1, height, width))
    inputs = example[0], example[2], example[1]
    return [_write(whole, "model", folder, inputs, ("image", "sparse", "intrinsics"), model, size, precision)]


def _write_networks(
    model: GBPN, folder: Path, size: tuple[int, int] | None, precision: str
) -> list[dict[str, Any]]:
    height, width = size or _traced_size(model.config)
    height, width = (side + -side % MULTIPLE for side in (height, width))
    image, intrinsics = _image(height, width)
    first = FirstNetwork(model)
    written = [
        _write(first, "first", folder, (image, intrinsics), ("image", "intrinsics"), model, size, precision)
    ]
    with torch.no_grad():
        drawn = dict(zip(first.outputs, first(image, intrinsics), strict=True))
    if model.first.response is not None:
        field = FieldNetwork(model)
        given = (torch.ones(1, 1, height, width), tuple(drawn[name] for name in field.drawn))
        written.append(
            _write(field, "field", folder, given, ("measured", *field.drawn), model, size, precision)
        )
    if model.second is None:
        return written
    second = SecondNetwork(model)
    maps = (torch.ones(1, 1, height, width) for _ in range(3))
    inputs = (image, intrinsics, *maps, tuple(drawn[name] for name in second.carried))
    names = (*SEEN, *second.carried)
    return [*written, _write(second, "second", folder, inputs, names, model, size, precision)]


def _write(
    network: FirstNetwork | FieldNetwork | SecondNetwork | WholeModel,
    name: str,
    folder: Path,
    inputs: tuple[Any, ...],
    names: tuple[str, ...],
    model: GBPN,
    size: tuple[int, int] | None,
    precision: str,
) -> dict[str, Any]:
    """One ONNX file, and what the manifest says of it."""
    program = exported_program(
        network,
        inputs,
        multiple=MULTIPLE if size is None else None,
        smallest=smallest_multiple(model.config),
    )
    path = folder / f"{name}.onnx"
    write_onnx(program, path, inputs=names, outputs=network.outputs, precision=precision)
    return {
        "name": name,
        "file": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "inputs": list(names),
        "outputs": list(network.outputs),
    }


def _traced_size(config: ModelConfig) -> tuple[int, int]:
    """An example size for a graph of all sizes; sides differ, so that none is taken for the other."""
    least = smallest_multiple(config)
    return (least + 1) * MULTIPLE, (least + 2) * MULTIPLE


def _image(height: int, width: int) -> tuple[Tensor, Tensor]:
    return torch.zeros(1, 3, height, width), default_intrinsics(height, width)[None]
