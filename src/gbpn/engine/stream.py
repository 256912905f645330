"""Videos with a memory: inference goes on from frame to frame, so that depth flickers less."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gbpn.answer import CompletedDepth
from gbpn.engine import resizing
from gbpn.errors import InputError
from gbpn.gbp import Messages
from gbpn.inputs.frame import FrameInputs
from gbpn.measurements.unit import DepthUnit
from gbpn.model.pipeline import ImageEncoding, Pipeline, SparseDepth, StageResult
from gbpn.sigma.even_confidence import evenly_sure

if TYPE_CHECKING:
    from gbpn.engine.engine import Engine

__all__ = ["Stream"]

_CUT = 0.12
"""Mean change of the picture, in [0, 1], from which on it shows something else: the messages start anew."""


class Stream:
    """The frames of one video in their order; not for several threads.

    The first stage of a frame goes on from the messages of the frame before, for `how.stream` iterations, so
    that its answer keeps some of the evidence of earlier frames. A cut, or frames of another size, start
    anew. Meant for cameras that stand or move slowly: what has moved drags a shadow for some frames.

    σ is checked by a second stream beside it, which does not see the measurements that are held out.
    """

    def __init__(self, engine: Engine) -> None:
        assert isinstance(engine.answering, Pipeline)
        self.engine, self.pipeline = engine, engine.answering
        self._before: Tensor | None = None
        self._unit: DepthUnit | None = None
        self._messages: dict[str, Messages] = {}
        """Of what was seen, and of what the check saw."""

    @torch.inference_mode()
    def frame(self, inputs: FrameInputs, *, sigmas: bool = True) -> CompletedDepth:
        """The next frame."""
        inputs.require_pinhole("a stream")
        if inputs.areas is not None:
            raise InputError("a stream takes depth of the picture's size: give no smaller depth map")
        if resizing.reduction(*inputs.size) < 1:
            raise InputError(
                f"a stream works at full size, up to {resizing.MOST_PIXELS / 1e6:.1f} megapixels; "
                f"got {inputs.size[0]}×{inputs.size[1]}: reduce the images"
            )
        self.engine.require_prior(inputs.prior is not None)
        device = self.engine.how.device
        looks = self.pipeline.look(*(x[None].to(device) for x in (inputs.image, inputs.intrinsics)))
        used, dropped = self.pipeline.trusted(looks[0], self.engine.sparse(inputs))
        (encoding,), verdict = self.pipeline.believing(looks, used, inputs.prior)
        fresh = DepthUnit.of(self.pipeline.config.depth_scale, used.depth.to(encoding.padded.image))
        if self._is_cut(inputs.image) or self._unit is None or self._moved(fresh):
            self._messages, self._unit = {}, fresh
        self._before = inputs.image.clone()
        last = self._stages(encoding, used, "seen")
        answer = self.pipeline.with_sigma(
            encoding,
            last.distribution,
            used,
            lambda given: self._stages(encoding, given, "checked"),
            sigmas,
            verdict,
        )
        return self.engine.completed(inputs, evenly_sure(replace(answer, dropped=dropped, prior=verdict)))

    def _stages(self, encoding: ImageEncoding, sparse: SparseDepth, kind: str) -> StageResult:
        """All stages, from the messages of this kind."""
        messages = self._messages.get(kind)
        first = self.pipeline.first_stage(
            encoding,
            sparse,
            unit=self._unit,
            messages=messages,
            iterations=None if messages is None else self.engine.how.stream,
        )
        self._messages[kind] = first.inference.messages
        if self.pipeline.second is None:
            return first
        return self.pipeline.second_stage(encoding, sparse, first)

    def _moved(self, fresh: DepthUnit) -> bool:
        """Whether messages count in another unit: medians move with the measurements."""
        assert self._unit is not None
        return fresh.kind == "median" and not torch.equal(self._unit.metres, fresh.metres)

    def _is_cut(self, image: Tensor) -> bool:
        before = self._before
        return before is None or before.shape != image.shape or float((image - before).abs().mean()) > _CUT
