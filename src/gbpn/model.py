"""GBPN: the network draws a field, belief propagation answers; perhaps once more, knowing that answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gbpn import selfcheck
from gbpn.camera import flipped
from gbpn.config import CONFIGS, ModelConfig, named
from gbpn.depth import Calibration, DepthDistribution
from gbpn.errors import BackendError, InputError
from gbpn.frame import DepthUnit, Frame
from gbpn.gaussian import Gaussian
from gbpn.gbp import Inference, Messages, infer
from gbpn.gmcn import GMCN, MULTIPLE, Drawing, Refiner, Seen
from gbpn.gmcn.affine import AffineNetwork, affine_fit
from gbpn.gmcn.blocks import ConvNorm
from gbpn.gmcn.lite import LiteEncoder
from gbpn.mrf import MRF

__all__ = ["CONFIGS", "GBPN", "AffineModel", "Model", "Sketch", "StageResult", "build"]


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """What the first stage knows of an image without any depth: keep it while the measurements change."""

    frame: Frame
    drawing: Drawing


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """What one stage did. All maps but the answer have the padded size."""

    drawing: Drawing
    field: MRF
    inference: Inference
    distribution: DepthDistribution
    """The answer after this stage, [B, 1, H, W] at the image's own size."""


class Model(nn.Module):
    """What all models share: a configuration, a calibration, a card, a backend."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.calibration: Calibration | None = None
        self.card: dict[str, Any] = {}
        self.backend = "auto"

    def use_backend(self, backend: str) -> Model:
        """ "reference", "cpu", "triton" or "auto", for attention and belief propagation alike."""
        if backend not in ("auto", "reference", "cpu", "triton"):
            raise BackendError(f"backend must be one of auto, reference, cpu, triton; got {backend!r}")
        for part in self.modules():
            if hasattr(part, "backend"):
                setattr(part, "backend", backend)  # noqa: B010
        return self

    def fuse(self) -> Model:
        """For inference: batch norms merged into their convolutions, channels-last memory, no gradients."""
        self.eval()
        for part in self.modules():
            if isinstance(part, ConvNorm):
                part.fold()
        self.requires_grad_(False)
        return self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def fused(self) -> bool:
        """Whether batch norms have been merged."""
        return not any(isinstance(part, nn.BatchNorm2d) for part in self.modules())

    def start_from_imagenet(self) -> Model:
        """Put the published ImageNet weights into the EfficientNet-lite0 encoder."""
        encoders = [part for part in self.modules() if isinstance(part, LiteEncoder)]
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
        from gbpn import hub

        return hub.save_pretrained(self, folder, half=half)

    def push_to_hub(self, repo_id: str, *, half: bool = False, private: bool = False) -> str:
        """Upload to the Hugging Face hub, from where `gbpn.load(repo_id)` reads."""
        from gbpn import hub

        return hub.push_to_hub(self, repo_id, half=half, private=private)

    def frame(self, image: Tensor, intrinsics: Tensor | None) -> Frame:
        """The image in this model's dtype, normalised and padded."""
        return Frame.of(image.to(next(self.parameters()).dtype), intrinsics, self.config, MULTIPLE)


class GBPN(Model):
    """One or two stages of network and inference."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.first = GMCN(config)
        self.second: GMCN | Refiner | None = None
        if config.stages == 2 and config.second_stage == "refine":
            self.second = Refiner(config, context_widths=self.first.decoder.widths)
        elif config.stages == 2:
            self.second = GMCN(config, stage=1, context_widths=self.first.decoder.widths)

    def forward(self, image: Tensor, sparse: Tensor, intrinsics: Tensor | None = None) -> DepthDistribution:
        """image [B, 3, H, W] RGB in [0, 1]; sparse [B, 1, H, W] metres, 0 where not measured; H, W ≥ 32.

        Without `intrinsics` [B, 3, 3], `gbpn.camera.default_intrinsics` is assumed.
        """
        answer = self.complete(self.draw(image, intrinsics), sparse)
        if self.training or not self.config.mirror:
            return answer
        camera = None if intrinsics is None else flipped(intrinsics, image.shape[-1])
        *_, other = self.stages(self.draw(image.flip(-1), camera), sparse.flip(-1))
        return answer.averaged(other.distribution.flipped())

    def draw(self, image: Tensor, intrinsics: Tensor | None = None) -> Sketch:
        """The first stage's field, which waits for measurements."""
        frame = self.frame(image, intrinsics)
        return Sketch(frame=frame, drawing=self.first.draw(frame.image, frame.intrinsics))

    def complete(self, sketch: Sketch, sparse: Tensor, messages: Messages | None = None) -> DepthDistribution:
        """The answer of the last stage for these measurements; its sigmas are checked against them."""
        *_, last = self.stages(sketch, sparse, messages)
        spread, noise = self._checked(sketch, sparse)
        return replace(last.distribution, spread=spread, noise=noise)

    @torch.no_grad()
    def _checked(self, sketch: Sketch, sparse: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """What measurements that inference did not see say of its sigmas; nothing without a calibration."""
        if self.training or self.calibration is None or (held := selfcheck.choose(sparse)) is None:
            return None, None
        *_, last = self.stages(sketch, torch.where(held, torch.zeros_like(sparse), sparse))
        return selfcheck.compare(last.distribution, sparse, held)

    def stages(
        self, sketch: Sketch, sparse: Tensor, messages: Messages | None = None
    ) -> Iterator[StageResult]:
        """Every stage in turn. `messages`: what an earlier inference on the same sketch ended with."""
        frame, drawing = sketch.frame, sketch.drawing
        sparse = frame.padded(sparse)
        unit = DepthUnit.of(self.config.depth_scale, sparse)
        depth, measured = unit.into(sparse), sparse > 0

        field = drawing.field(depth, measured)
        result = self.answer(frame, unit, drawing, field, messages, self.config.iterations[0])
        yield result
        if self.second is None:
            return

        drawing = self.redraw(frame, result, drawing, unit)
        field = drawing.field(depth, measured)
        yield self.answer(frame, unit, drawing, field, result.inference.messages, self.config.iterations[1])

    def redraw(self, frame: Frame, result: StageResult, drawing: Drawing, unit: DepthUnit) -> Drawing:
        """The second stage's field, drawn with the first one's answer in sight."""
        assert self.second is not None
        belief, field = result.inference.belief, result.field
        seen = Seen(
            image=frame.image,
            intrinsics=frame.intrinsics,
            depth=unit.relative(belief.mean.nan_to_num(0.0)),  # 0 where nothing reached
            confidence=self._logit(belief, drawing).sigmoid(),
            measured=torch.where(field.weight > 0, unit.relative(field.depth), 0.0),
        )
        return self.second.redraw(seen, drawing)

    def answer(
        self,
        frame: Frame,
        unit: DepthUnit,
        drawing: Drawing,
        field: MRF,
        messages: Messages | None,
        iterations: int,
    ) -> StageResult:
        """Inference on a field, read out at the image's own size and in metres."""
        inference = infer(
            field,
            messages,
            iterations=iterations,
            nonlocal_steps=self.config.nonlocal_steps,
            backend=self.backend,
            reweighting=self.config.reweighting,
            check=False,  # the network's own maps: shapes are right by construction
        )
        belief = inference.belief
        distribution = DepthDistribution(
            mean=frame.cropped(unit.out(belief.mean)),
            confidence_logit=frame.cropped(self._logit(belief, drawing)),
            belief_precision=frame.cropped(belief.precision),
            calibration=self.calibration,
        )
        return StageResult(drawing=drawing, field=field, inference=inference, distribution=distribution)

    def _logit(self, belief: Gaussian, drawing: Drawing) -> Tensor:
        """The confidence logit at the padded size."""
        precision = belief.precision
        if self.config.confidence == "log":
            precision = precision.clamp(min=1e-9).log()
        return precision + drawing.residual


class AffineModel(Model):
    """The ablations' baseline without pairwise terms; see `gbpn.gmcn.affine`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.network = AffineNetwork(config)

    def forward(self, image: Tensor, sparse: Tensor, intrinsics: Tensor | None = None) -> DepthDistribution:
        """As `GBPN.forward`. An image without a measurement is observed nowhere."""
        frame = self.frame(image, intrinsics)
        maps = self.network(frame.image, frame.intrinsics)
        sparse = frame.padded(sparse)
        scale, shift = affine_fit(maps.depth, maps.weight, sparse)
        some = (sparse > 0).flatten(1).any(1).view(-1, 1, 1, 1)
        mean = torch.where(some, scale * maps.depth + shift, torch.full_like(maps.depth, torch.nan))
        return DepthDistribution(
            mean=frame.cropped(mean),
            confidence_logit=frame.cropped(maps.confidence_logit),
            belief_precision=frame.cropped(torch.where(some, maps.weight, torch.zeros_like(maps.weight))),
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
