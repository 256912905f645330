"""Measurements that come and go over one image: the network looks at it once, the rest is as in a call."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gbpn.answer import CompletedDepth
from gbpn.distribution import DepthDistribution
from gbpn.engine import resizing
from gbpn.engine.measured_pixels import Measurement, Numbers, read_pixels, read_places
from gbpn.engine.suggestion import Suggestion, suggest
from gbpn.errors import InputError
from gbpn.foreign.trust import Verdict
from gbpn.inputs.frame import FrameInputs
from gbpn.inputs.prior import as_prior
from gbpn.inputs.reading import as_image, as_intrinsics, as_sparse
from gbpn.measurements import outliers
from gbpn.measurements.unit import DepthUnit
from gbpn.measurements.validity import measured
from gbpn.model.pipeline import ImageEncoding, Pipeline, SparseDepth, StageResult
from gbpn.mrf import MRF
from gbpn.sigma.even_confidence import evenly_sure

if TYPE_CHECKING:
    from gbpn.engine.engine import Engine

__all__ = ["Outlier", "Session"]

_STAGES = ("first", "last")
_SUSPECT = 4.0
"""Sigmas of disagreement from which on a measurement is suspect, whatever is asked for beyond them: what the
others say must not depend on that."""
_FEWEST_FOR_SPREAD = 8
"""Measurements from which on their own disagreement says what is usual."""


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


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What is known of one state of the measurements; nothing in it changes."""

    inputs: FrameInputs
    used: SparseDepth
    """Without those that the rest contradicts …"""
    dropped: Tensor | None
    """… which are these."""
    first: StageResult
    looks: tuple[ImageEncoding, ...]
    """The picture, with as much of a foreign map as these measurements bear out …"""
    prior: Verdict | None
    """… and how much that is."""


class Session:
    """Depth of one image under changing measurements; made by `DepthCompleter.session`.

    Every look (`depth`, `std`, `result`, `quick`, …) is that of a new session with the measurements there
    are, and of a single call with them: what was there before leaves no trace, and looking changes nothing.
    What was computed for one look serves the next, until a measurement changes.
    """

    def __init__(
        self, engine: Engine, image: Any, intrinsics: Any = None, *, stage: str = "last", prior: Any = None
    ) -> None:
        if stage not in _STAGES:
            raise InputError(f"stage must be 'first' or 'last'; got {stage!r}")
        assert isinstance(engine.answering, Pipeline)
        self.engine, self.pipeline = engine, engine.answering
        self.two_stages = stage == "last" and self.pipeline.second is not None
        self._points: dict[tuple[int, int], Measurement] = {}
        self._found: _Found | None = None
        self._second: StageResult | None = None
        self._depth: np.ndarray | None = None
        self._result: CompletedDepth | None = None
        self._see(image, intrinsics, prior)

    def add(self, x: Numbers, y: Numbers, depth: Numbers, std: Numbers | None = None) -> None:
        """Measure at pixel x, y (or many): `depth` metres, with noise of standard deviation `std` metres.

        A pixel that was measured already is corrected.
        """
        new = read_pixels(x, y, depth, std, self.size)
        self._points.update({(one.x, one.y): one for one in new})
        self._forget()

    def update(self, x: Numbers, y: Numbers, depth: Numbers, std: Numbers | None = None) -> None:
        """Correct measurements that are there."""
        new = read_pixels(x, y, depth, std, self.size)
        self._require_measured([(one.x, one.y) for one in new])
        self.add(x, y, depth, std)

    def remove(self, x: Numbers, y: Numbers) -> None:
        """Take measurements back."""
        places = read_places(x, y)
        self._require_measured(places)
        for place in places:
            self._points.pop(place, None)
        self._forget()

    def measure(self, sparse: Any) -> None:
        """All measurements anew: a map [H, W] in metres, 0 where not measured."""
        depth = as_sparse(sparse, *self.size)[0].numpy()
        rows, columns = np.nonzero(depth)
        new = read_pixels(columns, rows, depth[rows, columns], None, self.size)
        self._points = {(one.x, one.y): one for one in new}
        self._forget()

    def restart(self) -> None:
        """Deprecated: every look is that of a new session."""
        warnings.warn(
            "Session.restart() does nothing any more: leave it out", DeprecationWarning, stacklevel=2
        )

    def copy(self) -> Session:
        """An independent session with the same measurements; what the network has drawn is shared."""
        other = copy(self)
        other._points = dict(self._points)
        return other

    def next_image(
        self, image: Any, intrinsics: Any = None, *, still: bool = True, prior: Any = None
    ) -> None:
        """The next frame of a video; measurements stay at their pixels, a foreign map (`prior`) does not.

        The camera stays if it stood `still` and the picture has the same size; of a picture of another size
        nothing is measured yet.
        """
        before = self.size
        same = as_image(image).shape[1:] == before
        self._see(image, self._camera if intrinsics is None and still and same else intrinsics, prior)
        if not same:
            self._points = {}
        self._forget()

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return torch.device(self.engine.how.device)

    @property
    def size(self) -> tuple[int, int]:
        """(H, W)."""
        return self._looks[0].padded.size

    @property
    def corner(self) -> tuple[int, int]:
        """(row, column) of the image inside the maps of `stages`, which are padded."""
        return self._looks[0].padded.corner

    @property
    def measurements(self) -> list[Measurement]:
        """What is measured, in order of addition."""
        return list(self._points.values())

    @property
    def result(self) -> CompletedDepth:
        """The completed depth with its σ."""
        if self._result is None:
            with torch.inference_mode():
                answer = evenly_sure(self._answered(sigmas=True))
                self._result = self.engine.completed(self._now().inputs, answer)
        return self._result

    @property
    def depth(self) -> np.ndarray:
        """[H, W] metres; without what σ and confidence of `result` cost."""
        if self._depth is None:
            with torch.inference_mode():
                self._depth = self.engine.completed(self._now().inputs, self._answered()).depth
        return self._depth.copy()

    @property
    def confidence(self) -> np.ndarray:
        """[H, W] in [0, 1)."""
        return self.result.confidence

    @property
    def std(self) -> np.ndarray:
        """[H, W] metres; needs calibrated weights and the last stage."""
        return self.result.std

    def quick(self) -> CompletedDepth:
        """The first stage's answer alone, in a fraction of the time; without sigmas."""
        with torch.inference_mode():
            found = self._now()
            return self.engine.completed(found.inputs, evenly_sure(self._of_first(found)))

    def quick_depth(self) -> np.ndarray:
        """[H, W] metres: the depth of `quick`, without what its confidence would cost."""
        with torch.inference_mode():
            found = self._now()
            return self.engine.completed(found.inputs, self._of_first(found)).depth

    @torch.inference_mode()
    def stages(self) -> tuple[StageResult, ...]:
        """What each stage does; fields, beliefs and messages are padded."""
        found = self._now()
        if not self.two_stages:
            return (found.first,)
        if self._second is None:
            self._second = self.pipeline.second_stage(found.looks[0], found.used, found.first)
        return found.first, self._second

    def metres(self, values: Tensor) -> np.ndarray:
        """Padded values in the unit of `stages` → [H, W] metres."""
        return self.cropped(self._now().first.unit.out(values))

    def cropped(self, maps: Tensor) -> np.ndarray:
        """Padded [1, 1, H', W'] → [H, W]."""
        return self._looks[0].padded.cropped(maps)[0, 0].detach().cpu().float().numpy().copy()

    @torch.inference_mode()
    def suggest(self, count: int = 1) -> list[Suggestion]:
        """The pixels whose measurement would reduce the total uncertainty most, best first.

        Not those of the largest sigma: what a measurement says of all other pixels counts, and each one is
        chosen as if those before it were measured. See `gbpn.engine.suggestion`.
        """
        crop = self._looks[0].padded.cropped
        parameters = self._looks[0].parameters
        weight = torch.zeros_like(parameters.unary)
        std = torch.ones_like(crop(weight))
        if self._points:
            answer, last = self.result.distribution, self.stages()[-1]
            parameters, weight = last.parameters, last.field.weight
            std = answer.std if answer.calibrated else answer.mean * answer.belief_precision.rsqrt()
            std = torch.where(answer.observed, std, 0.0).to(weight)
        parameters = parameters.responding(weight > 0)  # as inference reads them
        links = parameters.local.directed().weight[:, -1]  # [1, 4, E, H', W']
        return suggest(crop(links), crop(weight), crop(parameters.unary), std, count)

    @torch.inference_mode()
    def outliers(self, limit: float = 4.0) -> list[Outlier]:
        """Measurements more than `limit` sigmas from what the others say of their pixel, worst first.

        Suspects disagree with the belief without their own measurement, in which that one still echoes
        around loops, or have no neighbours of a like depth (`gbpn.measurements.outliers`); they are
        confirmed by a cold run without all of them. From eight measurements on, sigmas are scaled by their
        usual (median) disagreement, since belief precision is too sure of itself.
        """
        if len(points := self._plausible()) < 2:
            return []
        everything = self.pipeline.first_stage(self._looks[0], self._sparse(points))
        suspects = self._suspects(points, everything, min(limit, _SUSPECT))
        if not suspects:
            return []
        places = {(one.x, one.y) for one in suspects}
        rest = [one for one in points if (one.x, one.y) not in places]
        if not rest:
            return [one for one in suspects if one.sigmas > limit]
        answer = self.pipeline.first_stage(self._looks[0], self._sparse(rest))
        usual = self._usual(self._scores(rest, answer)[1])
        # what a measurement weighs depends on how many others there are
        field = self.pipeline.field(
            self._looks[0], self._looks[0].directed, self._sparse(points), answer.unit
        )
        expected, sigmas = self._scores([self._points[one.x, one.y] for one in suspects], answer, field)
        confirmed = [
            replace(one, expected=float(metres), sigmas=float(score / usual))
            for one, metres, score in zip(suspects, expected, sigmas, strict=True)
            if score / usual > limit
        ]
        return sorted(confirmed, key=lambda one: -one.sigmas)

    def _plausible(self) -> list[Measurement]:
        """The measurements that pass the gates of every frame."""
        kept = measured(self._inputs().sparse[0]).numpy() if self._points else np.zeros(self.size, bool)
        return [one for one in self.measurements if kept[one.y, one.x]]

    def _suspects(self, points: list[Measurement], answer: StageResult, limit: float) -> list[Outlier]:
        expected, sigmas = self._scores(points, answer)
        sigmas = sigmas / self._usual(sigmas)
        lonely = outliers.suspects(self._map(points, "depth")[None])
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
        self, points: list[Measurement], answer: StageResult, field: MRF | None = None
    ) -> tuple[Tensor, Tensor]:
        """What the others say at each point, metres, and how many of their sigmas the point is from it.

        `field`: with the points' own weights, if `answer` has not seen them; else they are taken out of it.
        """
        top, left = self.corner
        row = torch.tensor([one.y + top for one in points])
        column = torch.tensor([one.x + left for one in points])
        depth = torch.tensor([one.depth for one in points]).view(1, -1, 1, 1)
        unit: DepthUnit = answer.unit
        value = unit.into(depth.to(self.device)).flatten().double()
        belief = answer.inference.belief
        weights = (answer.field if field is None else field).weight
        information, precision, weight = (
            maps[0, 0, row, column].double() for maps in (belief.information, belief.precision, weights)
        )
        if field is None:
            information, precision = information - weight * value, precision - weight
        precision = precision.clamp_min(1e-12)
        mean = information / precision
        sigmas = (value - mean).abs() / (1 / precision + 1 / weight).sqrt()
        metres = unit.out(mean.view(1, -1, 1, 1).to(unit.metres)).flatten()
        return metres.cpu(), sigmas.cpu()

    def _see(self, image: Any, intrinsics: Any, prior: Any) -> None:
        """Encode an image."""
        self.engine.require_prior(prior is not None)
        picture = as_image(image)
        _, height, width = picture.shape
        if resizing.reduction(height, width) < 1:
            raise InputError(
                f"a session works at full size, up to {resizing.MOST_PIXELS / 1e6:.1f} megapixels; "
                f"got {height}×{width}: reduce the image"
            )
        camera, notice = as_intrinsics(intrinsics, image, height, width)
        with torch.inference_mode():
            looks = self.pipeline.look(*(x[None].to(self.device) for x in (picture, camera)))
        self._image, self._camera, self._looks = picture.clone(), camera, looks
        self._prior: Tensor | None = None
        told = None
        if prior is not None:
            self._prior, told = as_prior(prior, height, width)
        self._notices = tuple(text for text in (notice, told) if text)
        self._forget()

    def _forget(self) -> None:
        self._found = self._second = self._depth = self._result = None

    @torch.inference_mode()
    def _now(self) -> _Found:
        """The first stage with the measurements there are."""
        if self._found is None:
            inputs = self._inputs()
            used, dropped = self.pipeline.trusted(self._looks[0], self.engine.sparse(inputs))
            looks, verdict = self.pipeline.believing(self._looks, used, inputs.prior)
            first = self.pipeline.first_stage(looks[0], used)
            self._found = _Found(
                inputs=inputs, used=used, dropped=dropped, first=first, looks=looks, prior=verdict
            )
        return self._found

    def _answered(self, *, sigmas: bool = False) -> DepthDistribution:
        """The answer before its gates, as `Pipeline.seen` makes it."""
        found = self._now()
        answer = replace(self.stages()[-1].distribution, sigma_left_out=not sigmas)
        if not self.two_stages and self.pipeline.second is not None:
            answer = replace(answer, calibration=None)  # it was fitted to the second stage
        elif sigmas:
            encoding = found.looks[0]
            answer = self.pipeline.with_sigma(
                encoding,
                answer,
                found.used,
                lambda given: [*self.pipeline.stages(encoding, given)][-1],
                verdict=found.prior,
            )
        for mirrored in found.looks[1:]:
            pipeline = self.pipeline if self.two_stages else replace(self.pipeline, second=None)
            *_, other = pipeline.stages(mirrored, found.used.flipped())
            answer = answer.averaged(other.distribution.flipped())
        return replace(answer, dropped=found.dropped, prior=found.prior)

    def _of_first(self, found: _Found) -> DepthDistribution:
        first = found.first.distribution
        return replace(first, calibration=None, dropped=found.dropped, prior=found.prior, sigma_left_out=True)

    def _inputs(self) -> FrameInputs:
        """The measurements behind the gates of every frame."""
        points = self.measurements
        if not points:
            raise InputError("there is no measurement yet: add(x, y, depth) first")
        noisy = any(one.std > 0 for one in points)
        return FrameInputs(
            image=self._image,
            sparse=self._map(points, "depth"),
            intrinsics=self._camera,
            notices=self._notices,
            prior=self._prior,
            std=self._map(points, "std") if noisy else None,
        )

    def _map(self, points: list[Measurement], name: str) -> Tensor:
        """[1, H, W] with one number of each measurement at its pixel."""
        out = torch.zeros(1, *self.size)
        rows, columns = [one.y for one in points], [one.x for one in points]
        out[0, rows, columns] = torch.tensor([getattr(one, name) for one in points])
        return out

    def _sparse(self, points: list[Measurement]) -> SparseDepth:
        noisy = any(one.std > 0 for one in points)
        depth, std = (self._map(points, name)[None].to(self.device) for name in ("depth", "std"))
        return SparseDepth(depth=depth, std=std if noisy else None)

    def _require_measured(self, places: list[tuple[int, int]]) -> None:
        missing = [place for place in places if place not in self._points]
        if missing:
            raise InputError(f"nothing is measured at x, y = {missing[0]}: add it first")
