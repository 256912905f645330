"""Videos with a memory: the session goes on from frame to frame, so that depth flickers less."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gbpn.errors import InputError
from gbpn.predict.completed import CompletedDepth
from gbpn.predict.completer import DepthCompleter
from gbpn.predict.inputs import FrameInputs
from gbpn.predict.keeping import kept
from gbpn.predict.plausible_range import kept_promises
from gbpn.predict.session import Session

__all__ = ["StreamCompleter"]

_CUT = 0.12
"""Mean change of the picture, in [0, 1], from which on it shows something else: the messages start anew."""


class StreamCompleter(DepthCompleter):
    """A completer for the frames of one video in their order; not for several threads.

    The first stage of a frame goes on from the messages of the frame before, for `warm` iterations, so that
    its answer keeps some of the evidence of earlier frames. A cut, or frames of another size, start anew.
    Meant for cameras that stand or move slowly: what has moved drags a shadow for some frames.
    """

    def __init__(self, completer: DepthCompleter, *, warm: int = 1) -> None:
        """`warm`: iterations of the first stage per frame; the fewer, the steadier."""
        super().__init__(
            completer.model,
            device=completer.device,
            solver=completer.solver,
            iterations=completer.iterations,
            outliers=completer.outliers,
            working_size="own",  # messages of one frame serve the next only at one size
        )
        if warm < 1:
            raise InputError(f"warm must be at least 1 iteration; got {warm}")
        self.warm = warm
        self._session: Session | None = None
        self._before: Tensor | None = None

    @torch.inference_mode()
    def complete(
        self, inputs: FrameInputs, *, sigmas: bool = False, keep_measured: bool = False
    ) -> CompletedDepth:
        """The next frame."""
        if inputs.std is not None or inputs.weight is not None or inputs.areas is not None:
            raise InputError("a stream takes depth of the picture's size, without a confidence or sigma")
        session = self._session
        if session is None or self._is_cut(inputs.image):
            session = self._session = self.session(inputs.image, inputs.intrinsics, warm=self.warm)
            session.oldest = float("inf")
        else:
            session.next_image(inputs.image, inputs.intrinsics, still=True)
        session.measure(inputs.sparse)
        self._before = inputs.image
        answer = session.result
        if sigmas and answer.calibrated:
            _ = answer.std  # checked with this frame's measurements, not when the next one is there
        found = answer.distribution
        return CompletedDepth(
            distribution=kept_promises(kept(found, inputs.sparse) if keep_measured else found, inputs.sparse),
            image=inputs.image,
            sparse=inputs.sparse,
            intrinsics=inputs.intrinsics,
            notices=inputs.notices,
        )

    def settings(self) -> dict[str, Any]:
        """What distinguishes its answers from those of single frames."""
        return {"stream": self.warm}

    def _is_cut(self, image: Tensor) -> bool:
        before = self._before
        return before is None or before.shape != image.shape or float((image - before).abs().mean()) > _CUT
