"""`Engine`: one model under one `How`. Every way in ends here, so that what was asked is what is done."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch

from gbpn.answer import CompletedDepth
from gbpn.distribution import DepthDistribution
from gbpn.engine import resizing
from gbpn.engine.session import Session
from gbpn.engine.stream import Stream
from gbpn.engine.views import completed_by_views
from gbpn.errors import InputError
from gbpn.how import How
from gbpn.inputs.frame import FrameInputs
from gbpn.kernels.forks import one_thread_after_fork
from gbpn.measurements.areas import AreaGrid, agreeing
from gbpn.measurements.keeping import kept
from gbpn.measurements.plausible import kept_promises
from gbpn.measurements.validity import measured
from gbpn.model.foreign_map import require_own_map
from gbpn.model.models import Answering, Model
from gbpn.model.pipeline import Pipeline, SparseDepth
from gbpn.model.settling import trained_focal
from gbpn.sigma.even_confidence import evenly_sure

__all__ = ["Engine"]

_LEAST_CONTRAST = 2 / 255
"""Range of each colour below which a picture shows nothing."""


class Engine:
    """Immutable, for any number of threads.

    Its weights are a copy of the model's, made when the engine is: what happens to the model later does not
    reach it, and nothing of the engine is in the model.
    """

    def __init__(self, model: Model, how: How) -> None:
        """`of` is the way to make one."""
        one_thread_after_fork()
        self.model = model
        """As it was given."""
        self.how = model.settled(how)
        """Without an "auto" that the machine or the model decides."""
        self.answering: Pipeline | Answering = model.answering(self.how)
        """The network with its inference alone: neither sizes nor gates; on the device."""

    @classmethod
    def of(cls, model: Model, how: How | None = None, **options: Any) -> Engine:
        """A model as `how` says, by default as usual, with `options` of its fields changed."""
        return cls(model, How.of(how, **options))

    def frame(self, inputs: FrameInputs, *, sigmas: bool = True) -> CompletedDepth:
        """One frame; without `sigmas` in about half of the time."""
        self.require_single_frames()
        self.require_prior(inputs.prior is not None)
        if inputs.wide is not None:
            answer, told = completed_by_views(inputs, lambda view: self._answer(view, sigmas))
            return self.completed(replace(inputs, notices=(*inputs.notices, told)), answer)
        return self.completed(inputs, self._answer(inputs, sigmas))

    def batch(self, frames: Sequence[FrameInputs], *, sigmas: bool = True) -> list[CompletedDepth]:
        """Several frames, each as it would be alone."""
        return [self.frame(inputs, sigmas=sigmas) for inputs in frames]

    def require_single_frames(self) -> None:
        """Raise if this was made for the frames of a video, in their order."""
        if self.how.stream:
            raise InputError("these are frames of a video: use stream(), or make this with stream=0")

    def require_prior(self, given: bool) -> None:
        """Raise if a foreign depth map was given, and there is no place for one."""
        if not given:
            return
        if not isinstance(self.answering, Pipeline):
            raise InputError(
                f"a prior takes the place of a map inside the network, which {self.model.config.name!r} run "
                "like this does not show: use weights in torch, or leave out the prior"
            )
        require_own_map(self.answering)

    def session(
        self, image: Any, intrinsics: Any = None, *, stage: str = "last", prior: Any = None
    ) -> Session:
        """Measurements that come and go over one image at its own size, see `Session`."""
        self.require_single_frames()
        if not isinstance(self.answering, Pipeline):
            raise InputError(
                f"{self.model.config.name!r} keeps no messages: a session needs a GBPN model in torch"
            )
        return Session(self._with(working_size="own"), image, intrinsics, stage=stage, prior=prior)

    def stream(self) -> Stream:
        """The frames of one video in their order, see `Stream`; of `how.stream` iterations, 1 if it is 0."""
        if not isinstance(self.answering, Pipeline):
            raise InputError(
                f"{self.model.config.name!r} keeps no messages: a stream needs a GBPN model in torch"
            )
        if self.how.mirror == "on":
            raise InputError("a stream has no mirror image: use mirror off")
        return Stream(self._with(working_size="own", stream=self.how.stream or 1))

    def keeping(self, measured_pixels: bool) -> Engine:
        """The same with `keep_measured`, or without."""
        return self._with(keep_measured=measured_pixels)

    def record(self) -> dict[str, Any]:
        """What answers depend on besides their inputs, for files and for comparing."""
        return {"model": self.model.config.name, "weights": self.weights, "how": self.how.as_json()}

    @cached_property
    def weights(self) -> str:
        """A checksum: the same for the same weights."""
        total, held = 0, self.answering
        parts: list[Any] = [held.first, held.second] if isinstance(held, Pipeline) else [self.model]
        for part in parts:
            for tensor in {} if part is None else part.state_dict().values():
                total = zlib.crc32(tensor.detach().cpu().contiguous().numpy().tobytes(), total)
        return f"{total:08x}"

    @torch.inference_mode()
    def completed(self, inputs: FrameInputs, answer: DepthDistribution) -> CompletedDepth:
        """An answer of the picture's own size behind the gates that every answer goes through."""
        if inputs.reservation is not None:
            answer = inputs.reservation.of(answer)
        if self.how.keep_measured:
            answer = kept(answer, inputs.sparse, inputs.areas)
        answer = kept_promises(answer, inputs.sparse, self.how.answers_reach)
        result = CompletedDepth(
            distribution=answer.plain(),
            image=_own(inputs.image),
            sparse=_own(inputs.sparse),
            intrinsics=_own(inputs.intrinsics),
            wide=inputs.wide,
            areas=inputs.areas,
            notices=(*inputs.notices, *_told(answer), *self._out_of_range(inputs)),
            how=self.how,
        )
        told = result.outlier_notice
        return replace(result, notices=(*result.notices, told)) if told else result

    def sparse(self, inputs: FrameInputs) -> SparseDepth:
        """The measurements of a frame on the device."""
        depth, std, weight = (
            None if maps is None else maps[None].to(self.how.device)
            for maps in (inputs.sparse, inputs.std, inputs.weight)
        )
        assert depth is not None
        return SparseDepth(depth=depth, std=std, weight=weight)

    @torch.inference_mode()
    def _answer(self, inputs: FrameInputs, sigmas: bool) -> DepthDistribution:
        """Of the network, at the picture's own size."""
        height, width = inputs.size
        factor = self._scale(inputs)
        seen = inputs if factor == 1 else resizing.reduced(inputs, factor)
        looks: Any = self.answering.look(
            *(x[None].to(self.how.device) for x in (seen.image, seen.intrinsics))
        )
        areas = None if seen.areas is None else AreaGrid.of(seen.areas, seen.size)
        sparse = self.sparse(seen)
        if isinstance(self.answering, Pipeline):
            answer = self.answering.seen(looks, sparse, sigmas=sigmas, areas=areas, prior=inputs.prior)
            answer = evenly_sure(answer)
        else:
            answer = self.answering.seen(looks, sparse, sigmas=sigmas, areas=areas)
        if factor != 1:
            answer = resizing.enlarge(answer, height, width)
        if inputs.areas is None:
            return answer
        used = inputs.sparse[None].to(answer.mean)
        if answer.dropped is not None:
            used = torch.where(answer.dropped, 0.0, used)
        return agreeing(AreaGrid.of(inputs.areas, inputs.size), used, answer)

    def _scale(self, inputs: FrameInputs) -> float:
        """Factor on the sides of the picture that the model sees."""
        trained = trained_focal(self.model.card)
        if self.how.working_size == "own" or trained is None:
            return resizing.reduction(*inputs.size)
        focal = float(inputs.intrinsics[0, 0] + inputs.intrinsics[1, 1]) / 2
        return resizing.working_scale(*inputs.size, focal, int(measured(inputs.sparse).sum()), trained)

    def _out_of_range(self, inputs: FrameInputs) -> Iterator[str]:
        """Where the input leaves what the weights were trained for, as their card states it."""
        height, width = inputs.size
        trained = self.model.card.get("trained_for", {})
        if inputs.wide is None:
            yield from self._odd_picture(inputs)
        else:  # points and pixels are those of its views
            trained = {name: ends for name, ends in trained.items() if name == "depth"}
        if inputs.doubt is not None:
            yield inputs.doubt
        if float(inputs.image.amax((1, 2)).sub(inputs.image.amin((1, 2))).amax()) < _LEAST_CONTRAST:
            yield "this picture shows nothing (one colour all over): it supports no depth between points"
        values = inputs.sparse[measured(inputs.sparse)]
        for name, low, high, unit in (
            ("points", len(values), len(values), ""),
            ("pixels", height * width, height * width, ""),
            ("depth", float(values.min()), float(values.max()), " m"),
        ):
            if name == "depth" and not inputs.metric:
                continue
            if name in trained and (low < trained[name][0] or high > trained[name][1]):
                lowest, highest = trained[name]
                found = f"{low:g} {name}" if name != "depth" else _depths(low, high, unit)
                yield (
                    f"{found}: these weights were trained for {lowest:g} to {highest:g}{unit}, "
                    "expect more error than sigma says"
                )

    def _odd_picture(self, inputs: FrameInputs) -> Iterator[str]:
        """What is done to a picture of this size and camera."""
        height, width = inputs.size
        if (factor := self._scale(inputs)) != 1:
            told = f"{width}×{height} is completed at {factor:.2f} of its size and answered at its own: "
            if factor == resizing.reduction(height, width):
                yield told + f"images above {resizing.MOST_PIXELS / 1e6:.1f} megapixels are reduced"
            else:
                yield told + (
                    "these weights do best there with so many points (--working-size own: at its own)"
                )
        x, y = float(inputs.intrinsics[0, 2]), float(inputs.intrinsics[1, 2])
        if not (0 <= x < width and 0 <= y < height):
            yield (
                f"the camera's principal point ({x:.0f}, {y:.0f}) lies outside the {width}×{height} picture: "
                "are the intrinsics those of another size?"
            )

    def _with(self, **changes: Any) -> Engine:
        """The same weights under a `How` that they need not be prepared anew for."""
        other = Engine.__new__(Engine)
        other.model, other.answering, other.how = self.model, self.answering, replace(self.how, **changes)
        return other


def _depths(low: float, high: float, unit: str) -> str:
    return f"a depth of {low:.3g}{unit}" if low == high else f"depths from {low:.3g} to {high:.3g}{unit}"


def _told(answer: DepthDistribution) -> tuple[str, ...]:
    """What became of a foreign map, in words."""
    return () if answer.prior is None else (f"prior: {answer.prior.reason}",)


def _own(maps: torch.Tensor) -> torch.Tensor:
    """A copy that belongs to the answer."""
    with torch.inference_mode(False):
        return maps.detach().clone()
