"""GBPN as a torch module: the networks of its stages, and the pipeline that runs them."""

from __future__ import annotations

import copy
import os
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from gbpn.config import ModelConfig, named
from gbpn.distribution import DepthDistribution, SigmaCalibration
from gbpn.errors import InputError
from gbpn.how import How
from gbpn.kernels.backends import require_backend
from gbpn.measurements.areas import AreaGrid
from gbpn.measurements.validity import measured
from gbpn.model import settling
from gbpn.model.pipeline import Pipeline, SparseDepth
from gbpn.network import GMCN, MULTIPLE, Refiner, build_stage
from gbpn.network.affine import AffineNetwork, affine_fit
from gbpn.network.convolution import PRECISIONS, ConvNorm, Convolution
from gbpn.network.efficientnet import EfficientNetEncoder
from gbpn.network.heads import Heads
from gbpn.network.padding import PaddedImage
from gbpn.network.upscale import Upscale
from gbpn.weights import hub

__all__ = ["GBPN", "AffineModel", "Answering", "AnyModel", "Model", "build", "from_config"]

AnyModel = TypeVar("AnyModel", bound="Model")


class Model(nn.Module, ABC):
    """What all models share: a configuration, a calibration, a card, a backend."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.calibration: SigmaCalibration | None = None
        self.card: dict[str, Any] = {}
        self.backend = "auto"

    def forward(self, image: Tensor, sparse: Tensor, intrinsics: Tensor | None = None) -> DepthDistribution:
        """image [B, 3, H, W] RGB in [0, 1]; sparse [B, 1, H, W] metres, 0 where not measured; H, W ≥ 32.

        With σ, outside of training; `complete` with `sigmas=False` is faster. Without `intrinsics`
        [B, 3, 3], `gbpn.camera.pinhole.default_intrinsics` is assumed.
        """
        return self.complete(image, sparse, intrinsics)

    @abstractmethod
    def complete(
        self,
        image: Tensor,
        sparse: Tensor,
        intrinsics: Tensor | None = None,
        *,
        sigmas: bool = True,
        **switches: Any,
    ) -> DepthDistribution:
        """As `forward`, with the switches of `Pipeline`; see `Pipeline.complete` for `sigmas`."""

    @abstractmethod
    def settled(self, how: How) -> How:
        """`how` with everything decided that it leaves open; raises for what model or machine cannot do."""

    @abstractmethod
    def answering(self, how: How) -> Pipeline | Answering:
        """What answers as a settled `how` says, on weights of its own: later changes of this model do not
        reach it."""

    def use_backend(self: AnyModel, backend: str) -> AnyModel:
        """ "reference", "cpu", "triton" or "auto", for attention and belief propagation alike."""
        require_backend(backend)
        for part in self.modules():
            if hasattr(part, "backend"):
                setattr(part, "backend", backend)  # noqa: B010
        return self

    def merged(self: AnyModel) -> AnyModel:
        """A copy for inference: batch norms merged into their convolutions, no gradients."""
        twin = copy.deepcopy(self).eval()
        twin._merge()
        return twin

    def prepared(self: AnyModel, precision: str, device: str | torch.device) -> AnyModel:
        """A copy as fast as it gets, whose weights must stay as they are: what an `Engine` computes with.

        precision  of the convolutions, "float32" or "bfloat16"; input, what the heads say, and the field are
                   float32 in any case
        """
        twin = self.merged().to(device)
        for part in twin.modules():
            if isinstance(part, ConvNorm | Convolution | Upscale | Heads | Refiner):
                part.prepare(PRECISIONS[precision])
        return twin

    def fuse(self: AnyModel) -> AnyModel:
        """Deprecated: `gbpn.DepthCompleter(model)` keeps a fast copy of its own."""
        _warn("fuse()")
        self.eval()._merge()
        return self

    def use_precision(self: AnyModel, precision: str) -> AnyModel:
        """Deprecated: `gbpn.DepthCompleter(model, precision=precision)`; a model itself is float32."""
        if precision not in ("auto", "float32"):
            raise InputError(
                f"a model computes in the dtype of its weights, not in {precision!r}: use "
                f"gbpn.DepthCompleter(model, precision={precision!r})"
            )
        _warn("use_precision()")
        return self

    def _merge(self) -> None:
        for part in self.modules():
            if isinstance(part, ConvNorm):
                part.fold()
        self.requires_grad_(False)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

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


class Answering(Protocol):
    """The part of a `Pipeline` that an engine needs, for other kinds of models; images [1, 3, H, W]."""

    def look(self, image: Tensor, intrinsics: Tensor | None = None) -> Any:
        """What `seen` takes of an image."""

    def seen(
        self, looks: Any, sparse: SparseDepth, *, sigmas: bool = True, areas: AreaGrid | None = None
    ) -> DepthDistribution:
        """The answer with these measurements."""


@dataclass(frozen=True, kw_only=True)
class _Whole:
    """A model that keeps nothing of an image, as an engine sees it."""

    model: Model

    def look(self, image: Tensor, intrinsics: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """What `seen` takes."""
        return image, intrinsics

    def seen(
        self,
        looks: tuple[Tensor, Tensor | None],
        sparse: SparseDepth,
        *,
        sigmas: bool = True,
        areas: AreaGrid | None = None,
    ) -> DepthDistribution:
        """The answer; `areas` are nothing to it."""
        if sparse.std is not None or sparse.weight is not None:
            raise InputError(
                f"sigma and confidence of measurements need a field; {self.model.config.name!r} run like "
                "this has none: leave them out, or use weights with one in torch"
            )
        image, intrinsics = looks
        return self.model.complete(image, sparse.depth, intrinsics, sigmas=sigmas)


class GBPN(Model):
    """One or two stages of network and inference."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.first: GMCN = build_stage(config)
        self.second: GMCN | Refiner | None = None
        if config.stages == 2:
            seen = self.first.encoder if config.attended == "encoder" else self.first.decoder
            context_widths = seen.widths
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
        sigmas: bool = True,
        **switches: Any,
    ) -> DepthDistribution:
        return self.pipeline(**switches).complete(image, sparse, intrinsics, sigmas=sigmas)

    def settled(self, how: How) -> How:
        known = settling.settled(how, self.config, self.card)
        pipeline = self.pipeline(solver=how.solver, iterations=how.iterations)
        return replace(known, iterations=pipeline.iterations)

    def answering(self, how: How) -> Pipeline:
        return self.prepared(how.precision, how.device).pipeline(
            solver=how.solver,
            iterations=how.iterations,
            outliers=how.outliers,
            mirror=how.mirror == "on",
            check_sigmas=how.check_sigma,
            prior_kind=how.prior_kind,
        )

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
        `outliers`, `prior_kind`."""
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

    def settled(self, how: How) -> How:
        settling.refuse(
            self.config.name,
            "fits one depth map and draws no field at all",
            solver=how.solver != "gbp",
            iterations=bool(how.iterations),
            outliers=how.outliers == "drop",
            mirror=how.mirror == "on",
            stream=how.stream > 0,
        )
        return settling.settled(replace(how, outliers="keep", mirror="off"), self.config, self.card)

    def answering(self, how: How) -> _Whole:
        return _Whole(model=self.prepared(how.precision, how.device))

    def complete(
        self,
        image: Tensor,
        sparse: Tensor,
        intrinsics: Tensor | None = None,
        *,
        sigmas: bool = True,
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
            sigma_left_out=not sigmas,
        )


def _warn(name: str) -> None:
    warnings.warn(
        f"Model.{name} is not needed: gbpn.DepthCompleter(model) and gbpn.engine.Engine.of(model) keep fast "
        "copies of their own",
        DeprecationWarning,
        stacklevel=3,
    )


def from_config(config: ModelConfig) -> GBPN | AffineModel:
    """An untrained model of this configuration."""
    return AffineModel(config) if config.solver == "affine" else GBPN(config)


def build(name: str = "small", **overrides: Any) -> GBPN | AffineModel:
    """An untrained model by name ("gbpn-1", "gbpn-2", "small", "v1" … "v9", …); overrides change any field.

    `width` scales all widths at once: `build("gbpn-1", width=0.25)`.
    """
    return from_config(named(name).overridden(overrides))
