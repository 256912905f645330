"""Measurements that come and go over one image: the network runs once, inference goes on."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gbpn.distribution import DepthDistribution
from gbpn.errors import InputError
from gbpn.gbp import Messages
from gbpn.measurements import outliers
from gbpn.measurements.unit import DepthUnit
from gbpn.model.pipeline import Pipeline, SparseDepth, StageResult
from gbpn.mrf import MRF
from gbpn.predict import resizing
from gbpn.predict.completed import CompletedDepth
from gbpn.predict.inputs import as_image, as_intrinsics, as_sparse
from gbpn.predict.measured_pixels import Measurement, Numbers, read_pixels, whole
from gbpn.predict.suggestion import Suggestion, suggest
from gbpn.sigma.even_confidence import evenly_sure

__all__ = ["Outlier", "Session"]

_STAGES = ("first", "last")
_SUSPECT = 4.0
"""Sigmas of disagreement from which on a measurement is suspect, whatever is asked for beyond them: what the
others say must not depend on that."""
_FEWEST_FOR_SPREAD = 8
"""Measurements from which on their own disagreement says what is usual."""
_OLDEST = 2
"""`Session.oldest`, unless told otherwise."""


@dataclass(frozen=True, kw_only=True)
class Outlier:
    """A measurement that the rest of the scene contradicts."""

    x: int
    y: int
    depth: float
    """What was measured, metres."""
    expected: float
    """What the others say, metres."""
    sigmas: float
    """How far off that is, in standard deviations that are usual among these measurements."""


class Session:
    """Depth of one image under changing measurements; made by `DepthCompleter.session`.

    Changes are collected; the next look at `depth`, `confidence` or `result` runs inference. Additions
    continue from the kept messages for `warm` iterations. Removals and corrections start from empty messages,
    since the old evidence would live on in them for long. So does a change of the depth unit, for models that
    count in medians, and an addition once messages have seen twice the iterations they were trained for: a
    field is drawn for that many, not for its fixed point.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        device: torch.device,
        image: Any,
        intrinsics: Any = None,
        *,
        stage: str = "last",
        warm: int = 1,
    ) -> None:
        if stage not in _STAGES or warm < 1:
            raise InputError(f"stage must be 'first' or 'last' and warm at least 1; got {stage!r}, {warm}")
        self.pipeline, self.device, self.warm = pipeline, device, warm
        self.two_stages = stage == "last" and pipeline.second is not None
        self.oldest: float = _OLDEST
        """Messages start anew before they have seen more than this many times the trained iterations."""
        self.iterations = 0
        """Of the first stage since its messages were empty: after a cold start, as trained."""
        self._points: dict[tuple[int, int], Measurement] = {}
        self._unit: DepthUnit | None = None
        self._messages: Messages | None = None
        self._answer: DepthDistribution | None = None
        self._result: CompletedDepth | None = None
        self._first: StageResult | None = None
        self._last: StageResult | None = None
        self._see(image, intrinsics)

    def add(self, x: Numbers, y: Numbers, depth: Numbers, std: Numbers | None = None) -> None:
        """Measure at pixel x, y (or many): `depth` metres, with noise of standard deviation `std` metres.

        A pixel that was measured already is corrected.
        """
        new = read_pixels(x, y, depth, std, self.size)
        if any((one.x, one.y) in self._points for one in new):
            self._messages = None
        self._points.update({(one.x, one.y): one for one in new})
        self._forget_answer()

    def update(self, x: Numbers, y: Numbers, depth: Numbers, std: Numbers | None = None) -> None:
        """Correct measurements that are there."""
        new = read_pixels(x, y, depth, std, self.size)
        self._require_measured([(one.x, one.y) for one in new])
        self.add(x, y, depth, std)

    def remove(self, x: Numbers, y: Numbers) -> None:
        """Take measurements back."""
        places = list(zip(whole(x), whole(y), strict=True))
        self._require_measured(places)
        for place in places:
            self._points.pop(place, None)
        self._messages = None
        self._forget_answer()

    def measure(self, sparse: Any) -> None:
        """All measurements anew: a map [H, W] in metres, 0 where not measured; those of a video's next frame.

        Unlike after `remove`, the messages stay, and with them some of the old evidence, which fades.
        """
        depth = as_sparse(sparse, *self._image.shape[1:])[0].numpy()
        rows, columns = np.nonzero(depth)
        new = read_pixels(columns, rows, depth[rows, columns], None, self.size)
        self._points = {(one.x, one.y): one for one in new}
        self._forget_answer()

    def restart(self) -> None:
        """Forget all messages, so that the next look is that of a new session; the measurements stay."""
        self._messages = self._unit = None
        self._forget_answer()

    def copy(self) -> Session:
        """An independent session with the same measurements; what the network has drawn is shared."""
        other = copy(self)
        other._points = dict(self._points)
        return other

    def next_image(self, image: Any, intrinsics: Any = None, *, still: bool = True) -> None:
        """The next frame of a video, with the measurements there are; if the camera stood `still`, warm."""
        self._see(image, self._camera if intrinsics is None and still else intrinsics)
        self._forget_answer()
        if not still:
            self._messages = None

    @property
    def size(self) -> tuple[int, int]:
        """(H, W)."""
        return self._encoding.padded.size

    @property
    def corner(self) -> tuple[int, int]:
        """(row, column) of the image inside the maps of `stages`, which are padded."""
        return self._encoding.padded.corner

    @property
    def measurements(self) -> list[Measurement]:
        """What is measured, in order of addition."""
        return list(self._points.values())

    @property
    def result(self) -> CompletedDepth:
        """The completed depth, refreshed if measurements have changed."""
        if self._result is None:
            with torch.inference_mode():
                self._result = self._completed(self._refreshed())
        return self._result

    @property
    def depth(self) -> np.ndarray:
        """[H, W] metres; without what the confidence of `result` would cost."""
        return self._refreshed().mean[0, 0].cpu().float().numpy()

    @property
    def confidence(self) -> np.ndarray:
        """[H, W] in [0, 1)."""
        return self.result.confidence

    @property
    def std(self) -> np.ndarray:
        """[H, W] metres; needs calibrated weights and the last stage."""
        return self.result.std

    def quick(self) -> CompletedDepth:
        """The first stage's answer alone, in a fraction of the time; without sigmas, they belong to the last.

        Continues from the kept messages like `result`, which is not touched and still to be refreshed.
        """
        first = self._quick()
        with torch.inference_mode():
            only = self.pipeline.second is None
            return self._completed(first.distribution if only else _uncalibrated(first))

    def quick_depth(self) -> np.ndarray:
        """[H, W] metres: the depth of `quick`, without what its confidence would cost."""
        return self._quick().distribution.mean[0, 0].cpu().float().numpy()

    @torch.inference_mode()
    def _quick(self) -> StageResult:
        return self._refresh_first(self._sparse(self._points_needed()))

    @torch.inference_mode()
    def stages(self) -> tuple[StageResult, ...]:
        """What each stage does from empty messages; fields, beliefs and messages are padded."""
        alone = self.copy()
        alone.restart()
        _ = alone.result
        assert alone._first is not None
        assert alone._last is not None
        return (alone._first, alone._last) if self.two_stages else (alone._first,)

    def metres(self, values: Tensor) -> np.ndarray:
        """Padded values in the unit of `stages` → [H, W] metres."""
        unit = self._unit_of(self._points_needed())
        return self.cropped(unit.out(values))

    def cropped(self, maps: Tensor) -> np.ndarray:
        """Padded [1, 1, H', W'] → [H, W]."""
        return self._encoding.padded.cropped(maps)[0, 0].detach().cpu().float().numpy()

    @torch.inference_mode()
    def suggest(self, count: int = 1) -> list[Suggestion]:
        """The pixels whose measurement would reduce the total uncertainty most, best first.

        Not those of the largest sigma: what a measurement says of all other pixels counts, and each one is
        chosen as if those before it were measured. See `gbpn.predict.suggestion`.
        """
        crop = self._encoding.padded.cropped
        parameters = self._encoding.parameters
        measured = torch.zeros_like(parameters.unary)
        std = torch.ones_like(crop(measured))
        if self._points:
            answer = self.result.distribution
            assert self._last is not None
            parameters, measured = self._last.parameters, self._last.field.weight
            std = answer.std if answer.calibrated else answer.mean * answer.belief_precision.rsqrt()
            std = torch.where(answer.observed, std, 0.0)
        parameters = parameters.responding(measured > 0)  # as inference reads them
        links = parameters.local.directed().weight[:, -1]  # [1, 4, E, H', W']
        return suggest(crop(links), crop(measured), crop(parameters.unary), std, count)

    @torch.inference_mode()
    def outliers(self, limit: float = 4.0) -> list[Outlier]:
        """Measurements more than `limit` sigmas from what the others say of their pixel, worst first.

        Suspects disagree with the belief without their own measurement, in which that one still echoes
        around loops, or have no neighbours of a like depth (`gbpn.measurements.outliers`); they are
        confirmed by a cold run without all of them. From eight measurements on, sigmas are scaled by their
        usual (median) disagreement, since belief precision is too sure of itself.
        """
        suspects = self._suspects(self.measurements, min(limit, _SUSPECT))
        if not suspects:
            return []
        places = {(one.x, one.y) for one in suspects}
        rest = [one for one in self.measurements if (one.x, one.y) not in places]
        if not rest:
            return [one for one in suspects if one.sigmas > limit]
        unit = self._unit_of(rest)
        answer = self._first_stage(self._sparse(rest), unit, None)
        usual = self._usual(self._scores(rest, answer, unit, own=True)[1])
        expected, sigmas = self._scores(
            [self._points[one.x, one.y] for one in suspects], answer, unit, own=False
        )
        confirmed = [
            replace(one, expected=float(metres), sigmas=float(score / usual))
            for one, metres, score in zip(suspects, expected, sigmas, strict=True)
            if score / usual > limit
        ]
        return sorted(confirmed, key=lambda one: -one.sigmas)

    def _suspects(self, points: list[Measurement], limit: float) -> list[Outlier]:
        if len(points) < 2:
            return []
        _ = self.result
        assert self._first is not None
        assert self._unit is not None
        expected, sigmas = self._scores(points, self._first, self._unit, own=True)
        sigmas = sigmas / self._usual(sigmas)
        lonely = outliers.suspects(self._map(points, "depth"))
        found = [
            Outlier(x=one.x, y=one.y, depth=one.depth, expected=float(metres), sigmas=float(score))
            for one, metres, score in zip(points, expected, sigmas, strict=True)
            if score > limit or (lonely is not None and lonely[0, 0, one.y, one.x])
        ]
        return sorted(found, key=lambda one: -one.sigmas)

    def _usual(self, sigmas: Tensor) -> float:
        """Median disagreement, as a multiple of a Gaussian's; 1 where there are too few to tell."""
        if len(sigmas) < _FEWEST_FOR_SPREAD:
            return 1.0
        return max(float(sigmas.median()) / 0.6745, 1e-6)

    def _scores(
        self, points: list[Measurement], answer: StageResult, unit: DepthUnit, *, own: bool
    ) -> tuple[Tensor, Tensor]:
        """What the others say at each point, metres, and how many of their sigmas the point is from it.

        `own`: whether `answer` has seen the points themselves, so that they must be taken out.
        """
        top, left = self._encoding.padded.corner
        row = torch.tensor([one.y + top for one in points])
        column = torch.tensor([one.x + left for one in points])
        depth = torch.tensor([one.depth for one in points]).view(1, -1, 1, 1)
        value = unit.into(depth.to(self.device)).flatten().double()
        belief = answer.inference.belief
        # what a measurement weighs depends on how many others there are
        field = answer.field if own else self._field_of_all(unit)
        information, precision, weight = (
            maps[0, 0, row, column].double() for maps in (belief.information, belief.precision, field.weight)
        )
        if own:
            information, precision = information - weight * value, precision - weight
        precision = precision.clamp_min(1e-12)
        mean = information / precision
        sigmas = (value - mean).abs() / (1 / precision + 1 / weight).sqrt()
        metres = unit.out(mean.view(1, -1, 1, 1).to(unit.metres)).flatten()
        return metres.cpu(), sigmas.cpu()

    def _see(self, image: Any, intrinsics: Any) -> None:
        """Encode an image."""
        picture = as_image(image)
        _, height, width = picture.shape
        if resizing.reduction(height, width) < 1:
            raise InputError(
                f"a session works at full size, up to {resizing.MOST_PIXELS / 1e6:.1f} megapixels; "
                f"got {height}×{width}: reduce the image"
            )
        camera, notice = as_intrinsics(intrinsics, image, height, width)
        with torch.inference_mode():
            encoding = self.pipeline.encode(picture[None].to(self.device), camera[None].to(self.device))
        same = getattr(self, "_image", picture).shape == picture.shape
        if not same:
            self._points, self._messages = {}, None
        self._image, self._camera, self._encoding = picture, camera, encoding
        self._notices = (notice,) if notice else ()

    def _forget_answer(self) -> None:
        self._answer = self._result = None

    def _refreshed(self) -> DepthDistribution:
        """The answer, anew if measurements have changed."""
        if self._answer is None:
            self._answer = self._refresh()
        return self._answer

    @torch.inference_mode()
    def _refresh(self) -> DepthDistribution:
        sparse = self._sparse(self._points_needed())
        self._last = first = self._refresh_first(sparse)
        if self.two_stages:
            self._last = self.pipeline.second_stage(self._encoding, sparse, first)
        elif self.pipeline.second is not None:
            return _uncalibrated(first)
        return self.pipeline.checked(self._last.distribution, self._encoding, sparse)

    def _refresh_first(self, sparse: SparseDepth) -> StageResult:
        """The first stage, warm where it may be."""
        fresh = self._unit_of(self.measurements)
        if self._unit is None or fresh.kind == "median":
            moved = self._unit is None or not torch.equal(self._unit.metres, fresh.metres)
            self._messages = None if moved else self._messages
            self._unit = fresh
        trained = self.pipeline.iterations[0]
        if self._messages is None or self.iterations + self.warm > self.oldest * trained:
            self._messages, self.iterations = None, trained
        else:
            self.iterations += self.warm
        first = self._first_stage(sparse, self._unit, self._messages)
        self._first, self._messages = first, first.inference.messages
        return first

    def _first_stage(self, sparse: SparseDepth, unit: DepthUnit, messages: Messages | None) -> StageResult:
        return self.pipeline.first_stage(
            self._encoding,
            sparse,
            unit=unit,
            messages=messages,
            iterations=None if messages is None else self.warm,
        )

    def _points_needed(self) -> list[Measurement]:
        if not self._points:
            raise InputError("there is no measurement yet: add(x, y, depth) first")
        return self.measurements

    def _completed(self, answer: DepthDistribution) -> CompletedDepth:
        return CompletedDepth(
            distribution=evenly_sure(answer),
            image=self._image,
            sparse=self._map(self.measurements, "depth")[0].cpu(),
            intrinsics=self._camera,
            notices=self._notices,
        )

    def _field_of_all(self, unit: DepthUnit) -> MRF:
        """The first stage's field with every measurement there is."""
        encoding = self._encoding
        return self.pipeline.field(encoding, encoding.directed, self._sparse(self.measurements), unit)

    def _sparse(self, points: list[Measurement]) -> SparseDepth:
        noisy = any(one.std > 0 for one in points)
        return SparseDepth(depth=self._map(points, "depth"), std=self._map(points, "std") if noisy else None)

    def _map(self, points: list[Measurement], name: str) -> Tensor:
        """[1, 1, H, W] with one number of each measurement at its pixel."""
        out = torch.zeros(1, 1, *self._image.shape[1:])
        rows, columns = [one.y for one in points], [one.x for one in points]
        out[0, 0, rows, columns] = torch.tensor([getattr(one, name) for one in points])
        return out.to(self.device)

    def _unit_of(self, points: list[Measurement]) -> DepthUnit:
        depths = torch.tensor([one.depth for one in points]).view(1, 1, 1, -1).to(self.device)
        return DepthUnit.of(self.pipeline.config.depth_scale, depths)

    def _require_measured(self, places: list[tuple[int, int]]) -> None:
        missing = [place for place in places if place not in self._points]
        if missing:
            raise InputError(f"nothing is measured at x, y = {missing[0]}: add it first")


def _uncalibrated(first: StageResult) -> DepthDistribution:
    """A first stage's answer without the calibration, which was fitted to the second stage."""
    return replace(first.distribution, calibration=None)
