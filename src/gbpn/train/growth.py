"""Weights of a smaller model put into a larger one of the same family, each channel where it belongs."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gbpn.config import ModelConfig
from gbpn.network import ChannelLayout
from gbpn.network.density import Response

__all__ = ["grown"]

_HEADS = ("weight", "difference", "damping", "offset", "contrast", "prior")


@torch.no_grad()
def grown(
    state: Mapping[str, Tensor], start: Mapping[str, Tensor], old: ModelConfig, new: ModelConfig
) -> dict[str, Tensor]:
    """`state` of a model `old` in the shapes of `new`; channels that it has not are those of `start`.

    Only output channels of the heads can be more: learned edges or a depth-like map that came later.
    """
    out: dict[str, Tensor] = {}
    for name, tensor in state.items():
        wanted = start.get(name)
        if wanted is None or wanted.shape == tensor.shape:
            out[name] = _with_new_parts(name, tensor, wanted, old, new)
            continue
        had, has, axis = _labels(name, old), _labels(name, new), _output_axis(name, tensor, new)
        alike = [
            a == b for n, (a, b) in enumerate(zip(tensor.shape, wanted.shape, strict=False)) if n != axis
        ]
        if not all(alike) or not set(had) < set(has) or tensor.shape[axis] != len(had):
            out[name] = tensor  # loading it will say what does not fit
            continue
        place = torch.tensor([has.index(label) for label in had])
        out[name] = wanted.clone().index_copy_(axis, place, tensor.to(wanted))
    return out


def _with_new_parts(
    name: str, tensor: Tensor, start: Tensor | None, old: ModelConfig, new: ModelConfig
) -> Tensor:
    """A response's constants, where those of learned edges or of a map that `old` had not are the start's."""
    if start is None or not name.endswith("response.constant"):
        return tensor
    came = {"far": bool(new.nonlocal_edges) and not old.nonlocal_edges, "share": new.prior and not old.prior}
    new_parts = torch.tensor([came.get(part, False) for part in Response._fields], device=tensor.device)
    return torch.where(new_parts, start.to(tensor), tensor)


def _labels(name: str, config: ModelConfig) -> list[str]:
    """What the output channels of this tensor mean; empty for tensors inside the network."""
    pieces = name.split(".")
    if pieces[0] not in ("first", "second"):
        return []
    layout = ChannelLayout.of(config, 0 if pieces[0] == "first" else 1)
    if (
        pieces[:2] == ["second", "last"]
        or pieces[1:3] == ["detail", "last"]
        or pieces[1:4] == ["heads", "detail", "last"]
    ):
        return list(layout.labels)
    if pieces[1] == "heads" and pieces[2] in _HEADS:
        return [label for label in layout.labels if label.startswith(f"{pieces[2]}: ")]
    return []


def _output_axis(name: str, tensor: Tensor, config: ModelConfig) -> int:
    """Transposed convolutions (`Upscale`) have their outputs second, biases and plain ones first."""
    taps = config.upsampling == "taps" and ".detail." not in f".{name}"
    return 1 if tensor.dim() == 4 and taps else 0
