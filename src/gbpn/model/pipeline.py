"""From an image and its measurements to depth, once and for everybody who needs it:

    encode ──► drop outliers ──► field ──► infer ──► refine ──► infer ──► check the sigmas
    image      if asked          measurements        second stage         when σ is asked for

Training, one-shot calls, sessions, benchmarks and figures all walk through here; the switches of `Pipeline`
say how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gbpn.camera.pinhole import flipped
from gbpn.config import ModelConfig
from gbpn.distribution import DepthDistribution, SigmaCalibration
from gbpn.errors import InputError
from gbpn.foreign.trust import Verdict
from gbpn.gbp import Inference, Messages, Scheme, infer
from gbpn.kernels.checks import values_are_known
from gbpn.measurements import agreement, outliers
from gbpn.measurements.areas import AreaGrid, centre_depths
from gbpn.measurements.unit import DepthUnit
from gbpn.measurements.validity import measured
from gbpn.model import foreign_map, read_out
from gbpn.mrf import MRF
from gbpn.network import GMCN, MULTIPLE, FieldParameters, Refiner, SecondStageInput
from gbpn.network.padding import PaddedImage
from gbpn.sigma import check as sigma_check
from gbpn.sigma.doubt import greys, with_doubt
from gbpn.sigma.held_out import BESIDE_DOUBT, SETTINGS

__all__ = ["ImageEncoding", "Pipeline", "SparseDepth", "StageResult", "has_exact_answer"]

_SOLVERS = ("gbp", "exact")


@dataclass(frozen=True, kw_only=True)
class SparseDepth:
    """Measurements of a batch of images."""

    depth: Tensor
    """[B, 1, H, W] metres; 0 or NaN where not measured."""
    std: Tensor | None = None
    """[B, 1, H, W] metres of noise beyond what the network expects of a measurement."""
    weight: Tensor | None = None
    """[B, 1, H, W] in [0, 1]: what is left of a measurement's precision, for sensors that state no metres."""

    @property
    def certainty(self) -> Tensor:
        """[B, 1, 1, 1] in [0, 1]: how far these measurements bear each other out; counted once."""
        # a tracer cannot enter the lock of a cached property
        return self._kept_certainty if values_are_known() else agreement.certainty(self.depth)

    @cached_property
    def _kept_certainty(self) -> Tensor:
        return agreement.certainty(self.depth)

    def without(self, held: Tensor) -> SparseDepth:
        """The measurements that are not `held` out."""
        return replace(self, depth=torch.where(held, torch.zeros_like(self.depth), self.depth))

    def flipped(self) -> SparseDepth:
        """Left becomes right."""
        return self._each(lambda maps: maps.flip(-1))

    def _each(self, change: Callable[[Tensor], Tensor]) -> SparseDepth:
        std, weight = (None if maps is None else change(maps) for maps in (self.std, self.weight))
        return SparseDepth(depth=change(self.depth), std=std, weight=weight)


@dataclass(frozen=True, kw_only=True)
class ImageEncoding:
    """What the first stage knows of an image without any depth: keep it while the measurements change."""

    padded: PaddedImage
    parameters: FieldParameters
    """Of the field, as drawn."""
    config: ModelConfig

    @cached_property
    def greys(self) -> list[np.ndarray]:
        """[H, W]: the brightness of each picture, in 0 to 1."""
        whole = self.padded.cropped(self.padded.image)
        return greys(whole, self.config.image_mean, self.config.image_std)

    @property
    def directed(self) -> FieldParameters:
        """The same with both directions of every local edge, as belief propagation reads them; made once."""
        # a tracer cannot enter the lock of a cached property
        return self._kept_directed if values_are_known() else self._made_directed()

    @cached_property
    def _kept_directed(self) -> FieldParameters:
        return self._made_directed()

    def _made_directed(self) -> FieldParameters:
        return self.parameters.prepared()


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """What one stage did. All maps but the answer have the padded size."""

    parameters: FieldParameters
    unit: DepthUnit
    """In which the field counts."""
    field: MRF
    inference: Inference
    distribution: DepthDistribution
    """The answer after this stage, [B, 1, H, W] at the image's own size."""


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """The stages of one model with switches; made by `GBPN.pipeline`."""

    first: GMCN
    second: GMCN | Refiner | None
    config: ModelConfig
    calibration: SigmaCalibration | None = None
    backend: str = "auto"
    """Of belief propagation, see `gbpn.infer`."""
    solver: str = "gbp"
    """"gbp" as trained, or "exact": the last field's exact mean, confidence as with "gbp"."""
    iterations: tuple[int, ...] = ()
    """Of each stage; empty: as trained."""
    mirror: bool = False
    """Complete the mirrored image too, and average both answers."""
    check_sigmas: bool = True
    """Hold σ against measurements that are held out."""
    outliers: str = "keep"
    """"keep", or "drop": single measurements that the rest contradicts are left out."""
    prior_kind: str = "auto"
    """Of foreign depth maps, see `gbpn.foreign.fitting`."""

    def __post_init__(self) -> None:
        if not self.iterations:
            object.__setattr__(self, "iterations", self.config.iterations)
        if self.solver not in _SOLVERS:
            raise InputError(f"solver must be one of {', '.join(_SOLVERS)}; got {self.solver!r}")
        if self.solver == "exact" and not has_exact_answer(self.config):
            raise InputError(
                f"solver='exact' needs a model with symmetric edges, shared by all iterations and without "
                f"learned ones; {self.config.name!r} draws {_field_kind(self.config)}: use solver='gbp'"
            )
        if self.outliers not in outliers.CHOICES:
            raise InputError(f"outliers must be one of {', '.join(outliers.CHOICES)}; got {self.outliers!r}")
        if len(self.iterations) != self.config.stages or min(self.iterations) < 1:
            raise InputError(
                f"{self.config.name!r} has {self.config.stages} stages with {self.config.iterations} "
                f"iterations: give as many counts above 0; got {self.iterations}"
            )

    def complete(
        self,
        image: Tensor,
        sparse: Tensor | SparseDepth,
        intrinsics: Tensor | None = None,
        *,
        sigmas: bool = True,
        areas: AreaGrid | None = None,
    ) -> DepthDistribution:
        """image [B, 3, H, W] RGB in [0, 1]; sparse [B, 1, H, W] metres; intrinsics [B, 3, 3] or None.

        sigmas  whether σ is wanted: it costs about as much as the answer
        areas   the measurements are means of these areas, at their centres, and not of single pixels
        """
        given = sparse if isinstance(sparse, SparseDepth) else SparseDepth(depth=sparse)
        return self.seen(self.look(image, intrinsics), given, sigmas=sigmas, areas=areas)

    def look(self, image: Tensor, intrinsics: Tensor | None = None) -> tuple[ImageEncoding, ...]:
        """The image as the first network sees it, and if asked for its mirror image."""
        encoding = self.encode(image, intrinsics)
        if not self.mirror:
            return (encoding,)
        camera = None if intrinsics is None else flipped(intrinsics, image.shape[-1])
        return encoding, self.encode(image.flip(-1), camera)

    def seen(
        self,
        looks: tuple[ImageEncoding, ...],
        sparse: SparseDepth,
        *,
        sigmas: bool = True,
        areas: AreaGrid | None = None,
        prior: Tensor | None = None,
    ) -> DepthDistribution:
        """As `complete`, of an image that was looked at before; `prior` [1, h, w] is a foreign map of it."""
        used, dropped = self.trusted(looks[0], sparse)
        looks, verdict = self.believing(looks, used, prior)
        encoding = looks[0]
        if areas is not None:
            *_, rough = self.stages(encoding, used)
            used = replace(used, depth=centre_depths(areas, used.depth, rough.distribution))
        answer = replace(self.answer(encoding, used, sigmas=sigmas, verdict=verdict), dropped=dropped)
        for mirrored in looks[1:]:
            *_, other = self.stages(mirrored, used.flipped())
            answer = answer.averaged(other.distribution.flipped())
        return replace(answer, prior=verdict)

    def believing(
        self, looks: tuple[ImageEncoding, ...], sparse: SparseDepth, prior: Tensor | None
    ) -> tuple[tuple[ImageEncoding, ...], Verdict | None]:
        """The picture with a foreign map in the place of the network's own, as far as these measurements bear
        it out; as it was where there is none."""
        if prior is None:
            return looks, None
        return foreign_map.believing(self, looks, sparse, prior, self.prior_kind)

    def encode(self, image: Tensor, intrinsics: Tensor | None = None) -> ImageEncoding:
        """Run the first network, which sees the image only."""
        padded = self.pad(image, intrinsics)
        drawn = self.first.draw(padded.image, padded.intrinsics)
        return ImageEncoding(padded=padded, parameters=drawn, config=self.config)

    def pad(self, image: Tensor, intrinsics: Tensor | None = None) -> PaddedImage:
        """The image in the network's dtype, normalised and padded."""
        dtype = next(self.first.parameters()).dtype
        return PaddedImage.of(image.to(dtype), intrinsics, self.config, MULTIPLE)

    def trusted(self, encoding: ImageEncoding, sparse: SparseDepth) -> tuple[SparseDepth, Tensor | None]:
        """The measurements that are used, and which are not, [B, 1, H, W] bool; None where all are.

        Costs a first inference, on the encoding that is there, where any measurement is suspect.
        """
        if self.outliers == "keep" or (suspect := outliers.suspects(sparse.depth)) is None:
            return sparse, None
        with torch.no_grad():
            without = self.first_stage(encoding, sparse.without(suspect)).distribution
        dropped = outliers.contradicted(sparse.depth, suspect, without)
        return (sparse.without(dropped), dropped) if bool(dropped.any()) else (sparse, None)

    def answer(
        self,
        encoding: ImageEncoding,
        sparse: SparseDepth,
        *,
        sigmas: bool = True,
        verdict: Verdict | None = None,
    ) -> DepthDistribution:
        """The answer of the last stage, from empty messages; σ does not touch its depth."""
        *_, last = self.stages(encoding, sparse)
        return self.with_sigma(
            encoding,
            last.distribution,
            sparse,
            lambda given: [*self.stages(encoding, given)][-1],
            sigmas,
            verdict,
        )

    def with_sigma(
        self,
        encoding: ImageEncoding,
        answer: DepthDistribution,
        sparse: SparseDepth,
        again: Callable[[SparseDepth], StageResult],
        sigmas: bool = True,
        verdict: Verdict | None = None,
    ) -> DepthDistribution:
        """The answer with σ as held-out measurements ask for it, or without one; `again` completes anew."""
        if not sigmas:
            return replace(answer, sigma_left_out=True)
        if self.calibration is None or self.first.training or not values_are_known():
            return answer
        with torch.no_grad():
            answer = with_doubt(answer, sparse.depth, encoding.greys)
            if not self.check_sigmas:
                return answer
            settings = SETTINGS if answer.doubt is None else BESIDE_DOUBT
            if (held := sigma_check.held_out(sparse.depth, settings)) is None:
                few = sigma_check.of_few(sparse.depth, settings)
                less = 1.0 if verdict is None else verdict.narrowing
                return replace(answer, widening=few._replace(spread=few.spread * less))
            rest = sparse.without(held)
            blind = with_doubt(again(rest).distribution, rest.depth, encoding.greys)
            return replace(answer, widening=sigma_check.compare(blind, sparse.depth, held, settings))

    def stages(self, encoding: ImageEncoding, sparse: SparseDepth) -> Iterator[StageResult]:
        """Every stage in turn, from empty messages."""
        first = self.first_stage(encoding, sparse)
        yield first
        if self.second is not None:
            yield self.second_stage(encoding, sparse, first)

    def first_stage(
        self,
        encoding: ImageEncoding,
        sparse: SparseDepth,
        *,
        unit: DepthUnit | None = None,
        messages: Messages | None = None,
        iterations: int | None = None,
    ) -> StageResult:
        """The first field, with these measurements.

        unit        to count in; by default the measurements' own
        messages    what an earlier inference on the same encoding ended with: go on from there
        iterations  if not as trained
        """
        unit = unit or DepthUnit.of(self.config.depth_scale, sparse.depth.to(encoding.padded.image))
        exact = self.solver == "exact" and self.second is None
        parameters = encoding.parameters if exact else encoding.directed
        field = self.field(encoding, parameters, sparse, unit)
        if messages is not None:
            field = field.at_last_iteration()
        return self._infer(
            encoding, parameters, unit, field, messages, iterations or self.iterations[0], exact=exact
        )

    def second_stage(self, encoding: ImageEncoding, sparse: SparseDepth, first: StageResult) -> StageResult:
        """The second network looks at the first answer and draws a field of its own; messages go on, unless
        the configuration's `second_start` is "empty"."""
        parameters = self.redraw(encoding, sparse, first)
        field = self.field(encoding, parameters, sparse, first.unit)
        carried = self.config.second_start == "carried"
        messages, iterations = first.inference.messages if carried else None, self.iterations[1]
        exact = self.solver == "exact"
        return self._infer(encoding, parameters, first.unit, field, messages, iterations, exact=exact)

    def redraw(self, encoding: ImageEncoding, sparse: SparseDepth, first: StageResult) -> FieldParameters:
        """The second stage's parameters.

        Its network sees depth over the median of these measurements, whatever unit the field counts in.
        """
        assert self.second is not None
        padded, unit = encoding.padded, first.unit
        seen_unit = DepthUnit.of(unit.kind, sparse.depth.to(padded.image))
        belief, field = first.inference.belief, first.field
        maps = read_out.seen(
            belief,
            first.parameters.residual,
            field.depth,
            field.weight,
            unit,
            seen_unit,
            self.config.confidence,
        )
        seen = SecondStageInput(image=padded.image, intrinsics=padded.intrinsics, **maps._asdict())
        return self.second.redraw(seen, encoding.parameters)

    def field(
        self, encoding: ImageEncoding, parameters: FieldParameters, sparse: SparseDepth, unit: DepthUnit
    ) -> MRF:
        """The field of these parameters with these measurements, at the padded size."""
        depth, noise = encoding.padded.padded(sparse.depth), None
        if sparse.std is not None:
            noise = unit.variance(depth, encoding.padded.padded(sparse.std))
        trust = None
        if self.config.agreement_trust != 1:
            trust = agreement.trust(sparse.certainty, self.config.agreement_trust).to(depth)
        field = parameters.field(unit.into(depth), measured(depth), noise, trust)
        if sparse.weight is None:
            return field
        return replace(field, weight=field.weight * encoding.padded.padded(sparse.weight).to(field.weight))

    def _infer(
        self,
        encoding: ImageEncoding,
        parameters: FieldParameters,
        unit: DepthUnit,
        field: MRF,
        messages: Messages | None,
        iterations: int,
        *,
        exact: bool,
    ) -> StageResult:
        """Inference on a field, read out at the image's own size and in metres."""
        inference = infer(
            field,
            messages,
            iterations=iterations,
            nonlocal_steps=self.config.nonlocal_steps,
            backend=self.backend,
            reweighting=self.config.reweighting,
            scheme=Scheme.of(self.config),
            backward="auto",
            check=False,  # the network's own maps: shapes are right by construction
        )
        belief = inference.belief
        mean = infer(field, solver="exact").belief.mean if exact else None
        depth, logit = read_out.answer(belief, mean, parameters.residual, unit, self.config.confidence)
        crop = encoding.padded.cropped
        distribution = DepthDistribution(
            mean=crop(depth),
            confidence_logit=crop(logit),
            belief_precision=crop(belief.precision),
            calibration=self.calibration,
        )
        return StageResult(
            parameters=parameters, unit=unit, field=field, inference=inference, distribution=distribution
        )


def has_exact_answer(config: ModelConfig) -> bool:
    """Whether the fields of such a model are quadratic energies, which linear algebra can minimise."""
    changing = config.dynamic or config.iteration_corrections
    return config.edges == "symmetric" and not changing and config.nonlocal_edges == 0


def _field_kind(config: ModelConfig) -> str:
    changing = config.dynamic or config.iteration_corrections
    sharing = "of its own for each iteration" if changing else "shared"
    return f"{config.edges} edges, {sharing}, and {config.nonlocal_edges} learned ones per pixel"
