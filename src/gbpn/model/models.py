"""GBPN as a torch module: the networks of its stages, and the pipeline that runs them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from gbpn.config import ModelConfig, named
from gbpn.distribution import DepthDistribution, SigmaCalibration
from gbpn.errors import InputError
from gbpn.kernels.backends import require_backend
from gbpn.measurements.validity import measured
from gbpn.model.pipeline import Pipeline
from gbpn.network import GMCN, MULTIPLE, Refiner, build_stage
from gbpn.network.affine import AffineNetwork, affine_fit
from gbpn.network.blocks import ConvNorm, Convolution
from gbpn.network.efficientnet import EfficientNetEncoder
from gbpn.network.fused_convolution import PRECISIONS, has_bfloat16
from gbpn.network.heads import Heads
from gbpn.network.padding import PaddedImage
from gbpn.network.upscale import Upscale
from gbpn.weights import hub

__all__ = ["GBPN", "AffineModel", "AnyModel", "Model", "build", "from_config"]

AnyModel = TypeVar("AnyModel", bound="Model")


class Model(nn.Module, ABC):
    """What all models share: a configuration, a calibration, a card, a backend."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.calibration: SigmaCalibration | None = None
        self.card: dict[str, Any] = {}
        self.backend = "auto"
        self.precision = "float32"
        """Of the convolutions, see `use_precision`."""

    def forward(self, image: Tensor, sparse: Tensor, intrinsics: Tensor | None = None) -> DepthDistribution:
        """image [B, 3, H, W] RGB in [0, 1]; sparse [B, 1, H, W] metres, 0 where not measured; H, W ≥ 32.

        Without `intrinsics` [B, 3, 3], `gbpn.camera.pinhole.default_intrinsics` is assumed.
        """
        return self.complete(image, sparse, intrinsics)

    @abstractmethod
    def complete(
        self,
        image: Tensor,
        sparse: Tensor,
        intrinsics: Tensor | None = None,
        *,
        sigmas: bool = False,
        **switches: Any,
    ) -> DepthDistribution:
        """As `forward`, with the switches of `Pipeline`; see `Pipeline.complete` for `sigmas`."""

    def use_backend(self: AnyModel, backend: str) -> AnyModel:
        """ "reference", "cpu", "triton" or "auto", for attention and belief propagation alike."""
        require_backend(backend)
        for part in self.modules():
            if hasattr(part, "backend"):
                setattr(part, "backend", backend)  # noqa: B010
        return self

    def fuse(self: AnyModel) -> AnyModel:
        """For inference: batch norms merged into their convolutions, channels-last memory, no gradients."""
        self.eval()
        for part in self.modules():
            if isinstance(part, ConvNorm):
                part.fold()
        self.requires_grad_(False)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return self.use_precision(self.precision)

    def use_precision(self: AnyModel, precision: str) -> AnyModel:
        """Convolutions in "float32", "bfloat16", or "auto": bfloat16 where it is fast and was checked.

        For fused models on CPUs. Input, what the heads say, the field and inference stay float32; weights are
        kept as they are, so one can go back. "auto" needs a processor that computes bfloat16 itself, and a
        card that says what it changes (`bfloat16`, see `gbpn info`).
        """
        if precision not in ("auto", *PRECISIONS):
            raise InputError(f"precision must be auto, {', '.join(PRECISIONS)}; got {precision!r}")
        if precision == "auto":
            precision = "bfloat16" if "bfloat16" in self.card and has_bfloat16() else "float32"
        if precision != "float32" and not self.fused:
            raise InputError(f"precision {precision} is for fused models: call fuse() first")
        self.precision = precision
        if self.fused:
            for part in self.modules():
                if isinstance(part, ConvNorm | Convolution | Upscale | Heads | Refiner):
                    part.prepare(PRECISIONS[precision])
        return self

    @property
    def fused(self) -> bool:
        """Whether batch norms have been merged."""
        return not any(isinstance(part, nn.BatchNorm2d) for part in self.modules())

    def start_from_imagenet(self: AnyModel) -> AnyModel:
        """Put the published ImageNet weights into the EfficientNet-lite0 encoder."""
        encoders = [part for part in self.modules() if isinstance(part, EfficientNetEncoder)]
        if not encoders:
            raise InputError(
                f"{self.config.name} has encoder {self.config.encoder!r}; ImageNet weights exist for "
                "encoder='efficientnet-lite0' only"
            )
        for encoder in encoders:
            encoder.start_from_imagenet()
        return self

    def save_pretrained(self, folder: str | os.PathLike[str], *, half: bool = False) -> Path:
        """Write `config.json` and `model.safetensors`, which `gbpn.load(folder)` reads."""
        return hub.save_pretrained(self, folder, half=half)

    def push_to_hub(self, repo_id: str, *, half: bool = False, private: bool = False) -> str:
        """Upload to the Hugging Face hub, from where `gbpn.load(repo_id)` reads."""
        return hub.push_to_hub(self, repo_id, half=half, private=private)


class GBPN(Model):
    """One or two stages of network and inference."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.first: GMCN = build_stage(config)
        self.second: GMCN | Refiner | None = None
        if config.stages == 2:
            context_widths = self.first.decoder.widths
            refines = config.second_stage == "refine"
            self.second = (
                Refiner(config, context_widths=context_widths)
                if refines
                else build_stage(config, stage=1, context_widths=context_widths)
            )

    def complete(
        self,
        image: Tensor,
        sparse: Tensor,
        intrinsics: Tensor | None = None,
        *,
        sigmas: bool = False,
        **switches: Any,
    ) -> DepthDistribution:
        return self.pipeline(**switches).complete(image, sparse, intrinsics, sigmas=sigmas)

    def depth_map(self, image: Tensor, intrinsics: Tensor | None = None) -> Tensor:
        """[B, 1, H, W]: the depth-like map of the image alone, in log depth up to a constant."""
        encoding = self.pipeline().encode(image, intrinsics)
        if (drawn := encoding.parameters.prior) is None:
            raise InputError(
                f"{self.config.name!r} draws no depth-like map: it needs a configuration with prior=True"
            )
        return encoding.padded.cropped(drawn)

    def pipeline(self, **switches: Any) -> Pipeline:
        """How this model answers; `switches` are `solver`, `iterations`, `mirror`, `check_sigmas`,
        `outliers`."""
        given: dict[str, Any] = {"mirror": self.config.mirror and not self.training, **switches}
        return Pipeline(
            first=self.first,
            second=self.second,
            config=self.config,
            calibration=self.calibration,
            backend=self.backend,
            **given,
        )


class AffineModel(Model):
    """The ablations' baseline without pairwise terms; see `gbpn.network.affine`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.network = AffineNetwork(config)

    def complete(
        self,
        image: Tensor,
        sparse: Tensor,
        intrinsics: Tensor | None = None,
        *,
        sigmas: bool = False,
        **switches: Any,
    ) -> DepthDistribution:
        """As `GBPN.complete`, without switches. An image without a measurement is observed nowhere."""
        usual = ("gbp", "keep", (), None)
        if wanted := [name for name, value in switches.items() if value not in usual]:
            raise InputError(
                f"{self.config.name!r} fits one depth map and draws no field at all: "
                f"it has no {', '.join(wanted)}"
            )
        padded = PaddedImage.of(image.to(next(self.parameters()).dtype), intrinsics, self.config, MULTIPLE)
        maps = self.network(padded.image, padded.intrinsics)
        sparse = padded.padded(sparse)
        scale, shift = affine_fit(maps.depth, maps.weight, sparse)
        some = measured(sparse).flatten(1).any(1).view(-1, 1, 1, 1)
        mean = torch.where(some, scale * maps.depth + shift, torch.full_like(maps.depth, torch.nan))
        return DepthDistribution(
            mean=padded.cropped(mean),
            confidence_logit=padded.cropped(maps.confidence_logit),
            belief_precision=padded.cropped(torch.where(some, maps.weight, torch.zeros_like(maps.weight))),
            calibration=self.calibration,
        )


def from_config(config: ModelConfig) -> GBPN | AffineModel:
    """An untrained model of this configuration."""
    return AffineModel(config) if config.solver == "affine" else GBPN(config)


def build(name: str = "small", **overrides: Any) -> GBPN | AffineModel:
    """An untrained model by name ("gbpn-1", "gbpn-2", "small", "v1" … "v9", …); overrides change any field.

    `width` scales all widths at once: `build("gbpn-1", width=0.25)`.
    """
    return from_config(named(name).overridden(overrides))
