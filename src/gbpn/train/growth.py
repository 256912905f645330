"""Weights of a smaller model put into a larger one of the same family, each channel where it belongs."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gbpn.config import ModelConfig
from gbpn.gmcn import ChannelLayout

HEADS = ("weight", "difference", "damping", "offset", "contrast", "prior")


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
            out[name] = tensor
            continue
        labels = _labels(name, old), _labels(name, new)
        axis = _output_axis(name, tensor)
        if labels[0] is None or labels[1] is None or tensor.shape[axis] != len(labels[0]):
            out[name] = tensor  # loading it will say what does not fit
            continue
        place = torch.tensor([labels[1].index(label) for label in labels[0]])
        out[name] = wanted.clone().index_copy_(axis, place, tensor.to(wanted))
    return out


def _labels(name: str, config: ModelConfig) -> list[str] | None:
    """What the output channels of this tensor mean; None for tensors inside the network."""
    pieces = name.split(".")
    layout = ChannelLayout.of(config, 0 if pieces[0] == "first" else 1)
    if pieces[:2] == ["second", "last"] or pieces[1:4] == ["heads", "detail", "last"]:
        return list(layout.labels)
    if pieces[1] == "heads" and pieces[2] in HEADS:
        return [label for label in layout.labels if label.startswith(f"{pieces[2]}: ")]
    return None


def _output_axis(name: str, tensor: Tensor) -> int:
    """Transposed convolutions (`Upscale`) have their outputs second, biases and plain ones first."""
    return 1 if tensor.dim() == 4 and ".detail." not in f".{name}" else 0
