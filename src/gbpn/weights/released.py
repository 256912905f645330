"""The authors' checkpoint layout: 1,182 tensors under their names, and ours.

A released file holds `{"net": tensors, "epoch": …, "best_metric": …}`. Every name is a chain of parts;
each part is translated by one rule below, in both directions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

from gbpn.errors import CheckpointError

__all__ = ["BLOCK", "from_released", "is_released", "to_released", "unit_name"]

_HEADS = {
    "weight": "mrf_omega",
    "difference": "mrf_r",
    "damping": "damping_beta",
    "offset": "nonlocal_offs",
}
_STAGES = {"first": "unets.0", "second": "unets.1"}
BLOCK = {"first.conv": "conv1", "first.norm": "bn1", "second.conv": "conv2", "second.norm": "bn2"}
_UNIT = {
    "cross_attention.query_gate": "qg.conv",
    "cross_attention.key_value": "kv.conv",
    "cross_attention.bias": "rpb",
    "cross_attention.project": "proj",
    "cross_block": "resblock",
    "self_attention.query_gate": "qgs.conv",
    "self_attention.key_value": "kvs.conv",
    "self_attention.bias": "rpbs",
    "self_attention.project": "projs",
    "self_block": "resblocks",
}


def _released_name(ours: str) -> str:
    """Our tensor name in a two-stage global-local model → the authors'."""
    stage, _, rest = ours.partition(".")
    return f"{_STAGES[stage]}.{_inside_stage(rest)}"


def _inside_stage(name: str) -> str:
    if name == "distance":
        return "dist"
    part, _, rest = name.partition(".")
    if part == "encoder":
        if match := re.fullmatch(r"stem\.(\d)\.(.+)", rest):
            index, inner = match.groups()
            return f"conv_img.0.conv.{_norm(inner)}" if index == "0" else f"conv_img.1.{_block(inner)}"
        if match := re.fullmatch(r"levels\.(\d)\.down\.(.+)", rest):
            return f"layer{match[1]}_img.conv.{_norm(match[2])}"
        if match := re.fullmatch(r"levels\.(\d)\.units\.(\d)\.(.+)", rest):
            return f"fuse{int(match[1]) + 1}.{match[2]}.{unit_name(match[3])}"
    if part == "decoder" and (match := re.fullmatch(r"levels\.(\d)\.(up|fuse)\.(.+)", rest)):
        inner = "upf" if match[2] == "up" else "conv.conv"
        return f"layer{int(match[1]) + 1}d_img.{inner}.{_norm(match[3])}"
    if part == "heads" and (match := re.fullmatch(r"(\w+)\.(\d)\.(.+)", rest)):
        head = _HEADS[match[1]]
        return f"{head}.2.conv.{match[3]}" if match[2] == "2" else f"{head}.{match[2]}.{_block(match[3])}"
    raise CheckpointError(f"{name} has no counterpart in the released layout")


def _norm(name: str) -> str:
    """conv.weight, norm.bias … of a `ConvNorm`."""
    return re.sub(r"^norm\.", "bn.", name)


def _block(name: str) -> str:
    """Inside a `ResidualBlock`."""
    place, conv_or_norm, kind = name.split(".")
    return f"{BLOCK[f'{place}.{conv_or_norm}']}.{kind}"


def unit_name(name: str) -> str:
    """Inside a `GlobalLocalUnit`."""
    for ours, theirs in _UNIT.items():
        if name == ours:
            return theirs
        if name.startswith(f"{ours}."):
            inner = name[len(ours) + 1 :]
            if ours.endswith("_block"):
                return f"{theirs}.{_block(inner)}"
            return f"{theirs}.{_norm(inner)}"
    raise CheckpointError(f"{name} has no counterpart in the released layout")


def is_released(tensors: Mapping[str, Tensor]) -> bool:
    """Whether these names are the authors'."""
    return any(name.startswith("unets.") for name in tensors)


def from_released(tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The authors' tensors under our names. `wanted`: the state of a model of the released configuration."""
    names = {_released_name(ours): ours for ours in wanted}
    missing = [theirs for theirs in names if theirs not in tensors]
    extra = [theirs for theirs in tensors if theirs not in names]
    if missing or extra:
        first = f"{missing[0]} is missing" if missing else f"{extra[0]} is unknown"
        raise CheckpointError(
            f"this is not the released layout of {len(names)} tensors: {len(missing)} missing, "
            f"{len(extra)} unknown; {first}: give the authors' result_ema.pth or result.pth unchanged"
        )
    return {ours: tensors[theirs] for theirs, ours in names.items()}


def to_released(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our state under the authors' names."""
    return {_released_name(name): tensor for name, tensor in state.items()}
