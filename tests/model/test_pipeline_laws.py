"""What the switches and inputs of the pipeline mean, on an untrained model of any depth unit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import gbpn
from gbpn.distribution import SigmaCalibration
from gbpn.measurements.unit import DepthUnit
from gbpn.model.pipeline import SparseDepth

SIZE = (40, 48)
UNITS = pytest.mark.parametrize("unit", ["metric", "median", "log"])


def made(**options: Any) -> Any:
    """A model whose every map says something."""
    torch.manual_seed(0)
    tiny = {"width": 0.125, "dilations": ((1,),) * 5, "drop_path": 0.0}
    model = gbpn.build("small", **{**tiny, **options}).eval()
    for parameter in model.parameters():
        if parameter.dim() == 4 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    model.calibration = SigmaCalibration(knots=(-5.0, 5.0), log_std=(0.0, -3.0), relative=True)
    return model.double()


def frame(batch: int = 1, share: float = 0.1) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    image = torch.rand(batch, 3, *SIZE, generator=draw, dtype=torch.float64)
    depth = 1 + 3 * torch.rand(batch, 1, *SIZE, generator=draw, dtype=torch.float64)
    return image, depth * (torch.rand(depth.shape, generator=draw) < share)


@UNITS
@torch.no_grad()
def test_stated_noise_adds_to_the_variance_of_a_measurement(unit: str) -> None:
    """1 / precision = what the network expects + what is stated, in the unit that the field counts in."""
    pipeline = made(depth_scale=unit).pipeline()
    image, sparse = frame()
    encoding = pipeline.encode(image)
    std = 0.1 * sparse.flip(-1).clamp_min(0.5)
    plain, noisy = (
        pipeline.first_stage(encoding, SparseDepth(depth=sparse, std=maps)) for maps in (None, std)
    )
    crop = encoding.padded.cropped
    added = 1 / crop(noisy.field.weight)[sparse > 0] - 1 / crop(plain.field.weight)[sparse > 0]
    wanted = plain.unit.variance(sparse, std)[sparse > 0]
    torch.testing.assert_close(added, wanted, rtol=1e-6, atol=1e-9)
    for result in (plain, noisy):
        assert torch.equal(crop(result.field.weight) > 0, sparse > 0)
        assert int((result.field.weight > 0).sum()) == int((sparse > 0).sum())  # none in the padding


@UNITS
@torch.no_grad()
def test_a_weight_is_the_share_of_precision_that_is_left(unit: str) -> None:
    pipeline = made(depth_scale=unit).pipeline()
    image, sparse = frame()
    encoding = pipeline.encode(image)
    weight = torch.rand(sparse.shape, dtype=torch.float64)
    plain, weighted = (
        pipeline.first_stage(encoding, SparseDepth(depth=sparse, weight=maps)).field
        for maps in (None, weight)
    )
    crop = encoding.padded.cropped
    torch.testing.assert_close(crop(weighted.weight), crop(plain.weight) * weight)
    assert torch.equal(weighted.depth, plain.depth)


@UNITS
@torch.no_grad()
def test_the_field_measures_what_was_measured_in_its_unit(unit: str) -> None:
    pipeline = made(depth_scale=unit).pipeline()
    image, sparse = frame()
    encoding = pipeline.encode(image)
    result = pipeline.first_stage(encoding, SparseDepth(depth=sparse))
    there = sparse > 0
    metres = result.unit.out(encoding.padded.cropped(result.field.depth))
    torch.testing.assert_close(metres[there], sparse[there])


@pytest.mark.parametrize("confidence", ["sum", "log"])
@torch.no_grad()
def test_the_confidence_is_the_precision_or_its_logarithm_plus_the_residual(confidence: str) -> None:
    pipeline = made(confidence=confidence).pipeline()
    image, sparse = frame()
    encoding = pipeline.encode(image)
    result = pipeline.first_stage(encoding, SparseDepth(depth=sparse))
    precision = result.distribution.belief_precision
    said = precision.log() if confidence == "log" else precision
    wanted = said + encoding.padded.cropped(result.parameters.residual)
    torch.testing.assert_close(result.distribution.confidence_logit, wanted)
    assert torch.equal(precision, encoding.padded.cropped(result.inference.belief.precision))


@pytest.mark.parametrize("solver", ["gbp", "exact"])
@pytest.mark.parametrize("share", [0.004, 0.1])
def test_sigmas_move_nothing_else(solver: str, share: float) -> None:
    """Of few measurements, and of many."""
    exact = {"nonlocal_edges": 0} if solver == "exact" else {}
    model = made(**exact)
    image, sparse = frame(batch=2, share=share)
    with torch.inference_mode():
        pipeline = model.pipeline(solver=solver)
        without, found = (pipeline.complete(image, sparse, sigmas=sigmas) for sigmas in (False, True))
        assert torch.equal(found.mean, without.mean)
        assert torch.equal(found.confidence_logit, without.confidence_logit)
        assert found.widening is not None
        assert found.spread is not None
        assert [one.shape for one in found.widening] == [(2, 1, 1, 1)] * 2
        assert bool((found.spread != 1).all())
        unchecked = model.pipeline(solver=solver, check_sigmas=False).complete(image, sparse)
        assert unchecked.widening is None
        torch.testing.assert_close(unchecked.std, found.unchecked_std)


def test_nothing_is_checked_in_training_or_without_a_calibration() -> None:
    image, sparse = frame()
    model = made()
    assert model.pipeline().complete(image, sparse).widening is not None
    assert model.train().pipeline().complete(image, sparse).widening is None
    model.eval().calibration = None
    assert model.pipeline().complete(image, sparse).widening is None


@torch.no_grad()
def test_iterations_of_the_pipeline_are_those_of_its_stages() -> None:
    model = made()
    image, sparse = frame()
    encoding = model.pipeline().encode(image)
    given = SparseDepth(depth=sparse)
    for count in (1, 3):
        asked = model.pipeline(iterations=(count,)).answer(encoding, given).mean
        wanted = model.pipeline().first_stage(encoding, given, iterations=count).distribution.mean
        assert torch.equal(asked, wanted)
    trained = model.pipeline(iterations=model.config.iterations).answer(encoding, given).mean
    assert torch.equal(model.pipeline().answer(encoding, given).mean, trained)


def test_measurements_go_together() -> None:
    _, sparse = frame(batch=2)
    both = SparseDepth(depth=sparse, std=sparse / 10, weight=(sparse > 2).double())
    turned = both.flipped()
    held = torch.rand(sparse.shape) < 0.5
    less = both.without(held)
    assert torch.equal(less.depth, sparse * ~held)
    assert (less.std is both.std, less.weight is both.weight) == (True, True)
    for name in ("depth", "std", "weight"):
        maps = getattr(both, name)
        assert torch.equal(getattr(turned, name), maps.flip(-1)), name
    assert replace(both, std=None).flipped().std is None


@torch.no_grad()
def test_where_nothing_is_known_the_logarithm_of_the_precision_is_that_of_a_billionth() -> None:
    pipeline = made(confidence="log").pipeline()
    image, sparse = frame()
    encoding = pipeline.encode(image)
    result = pipeline.first_stage(encoding, SparseDepth(depth=torch.zeros_like(sparse)))
    wanted = math.log(1e-9) + encoding.padded.cropped(result.parameters.residual)
    torch.testing.assert_close(result.distribution.confidence_logit, wanted)


class Looking:
    """In place of a second network: keeps what it is shown and draws the first one's field again."""

    def redraw(self, seen: Any, parameters: Any) -> Any:
        self.seen = seen
        return parameters


@UNITS
@pytest.mark.parametrize("empty", [False, True])
@torch.no_grad()
def test_the_second_stage_sees_depth_over_the_median_and_zero_where_there_is_none(
    unit: str, empty: bool
) -> None:
    """Multiples of the measurements' median, or metres; in a unit of the field's that is another one, too."""
    look: Any = Looking()
    pipeline = replace(made(depth_scale=unit).pipeline(), second=look)
    image, sparse = frame()
    given = SparseDepth(depth=torch.zeros_like(sparse) if empty else sparse)
    encoding = pipeline.encode(image)
    other = DepthUnit.of(unit, 3 * sparse)
    first = pipeline.first_stage(encoding, given, unit=other)
    pipeline.redraw(encoding, given, first)
    seen, crop = look.seen, encoding.padded.cropped
    there = given.depth > 0
    median = float(sparse[sparse > 0].median()) if unit != "metric" and not empty else 1.0
    torch.testing.assert_close(crop(seen.measured)[there], sparse[there] / median)
    assert not crop(seen.measured)[~there].any()
    assert int((seen.measured > 0).sum()) == int(there.sum())  # none in the padding
    assert torch.equal(seen.image, encoding.padded.image)
    torch.testing.assert_close(crop(seen.confidence), first.distribution.confidence)
    if not empty:
        torch.testing.assert_close(crop(seen.depth) * median, first.distribution.mean)
    elif unit != "log":
        assert not seen.depth.any()
    else:  # 0 in logarithms is one unit of the field
        torch.testing.assert_close(seen.depth, other.metres.expand_as(seen.depth))
