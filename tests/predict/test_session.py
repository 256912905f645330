"""Sessions: every look is that of a single call with the same measurements; noise and outliers count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import gbpn
from gbpn.engine.session import Session
from gbpn.errors import InputError
from gbpn.model.pipeline import SparseDepth
from gbpn.network.field_parameters import FieldParameters

CAMERA = (60, 60, 28, 20)


def model_of(scale: str, stages: int = 1, **overrides: object) -> gbpn.DepthCompleter:
    torch.manual_seed(0)
    name = "small-2" if stages == 2 else "small"
    return gbpn.DepthCompleter(gbpn.build(name, width=0.5, depth_scale=scale, **overrides), outliers="keep")


COMPLETERS = {
    "metric": lambda: model_of("metric"),
    "log": lambda: model_of("log"),
    "median": lambda: model_of("median"),
    "two stages": lambda: model_of("log", 2),
    "dynamic": lambda: model_of("metric", edges="directed", dynamic=True, nonlocal_edges=2),
    "density": lambda: with_density(),
}


def with_density() -> gbpn.DepthCompleter:
    """A map, learned edges and corrections by iteration, in a field that responds to density."""
    torch.manual_seed(0)
    model = gbpn.build("small-prior", width=0.5)
    for part in (model.first.response, model.second.response):
        torch.nn.init.normal_(part.function[-1].weight, std=0.01)
    torch.nn.init.normal_(model.first.prior.last.weight, std=0.01)
    for part in (model.first.corrections, model.second.corrections):
        torch.nn.init.normal_(part.last.weight, std=0.01)
    return gbpn.DepthCompleter(model)


@pytest.fixture(scope="module", params=COMPLETERS)
def any_completer(request: pytest.FixtureRequest) -> gbpn.DepthCompleter:
    return COMPLETERS[request.param]()


@pytest.fixture(scope="module")
def plain() -> gbpn.DepthCompleter:
    return COMPLETERS["log"]()


@pytest.fixture(scope="module")
def points(depth: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = np.nonzero(depth)
    return columns, rows, depth[rows, columns]


def smooth(picture: np.ndarray) -> np.ndarray:
    """A session's depth on a slanted wall, for outliers."""
    height, width = picture.shape[:2]
    return np.linspace(2, 3, width, dtype=np.float32)[None].repeat(height, 0)


def test_a_session_is_the_completer(
    any_completer: gbpn.DepthCompleter, picture: np.ndarray, depth: np.ndarray, points: tuple
) -> None:
    session = any_completer.session(picture, CAMERA)
    session.add(*points)
    wanted = any_completer(picture, depth, CAMERA)
    np.testing.assert_array_equal(session.depth, wanted.depth)
    np.testing.assert_array_equal(session.confidence, wanted.confidence)
    assert len(session.measurements) == 30


def test_what_was_taken_back_leaves_no_trace(
    any_completer: gbpn.DepthCompleter, picture: np.ndarray, depth: np.ndarray, points: tuple
) -> None:
    session = any_completer.session(picture, CAMERA)
    session.add(*points)
    session.add(20, 20, 9.0)
    assert abs(session.depth - any_completer(picture, depth, CAMERA).depth).max() > 0.01
    session.remove(20, 20)
    np.testing.assert_array_equal(session.depth, any_completer(picture, depth, CAMERA).depth)
    x, y, metres = (values[0] for values in points)
    session.update(x, y, metres + 1)
    moved = depth.copy()
    moved[y, x] += 1
    np.testing.assert_array_equal(session.depth, any_completer(picture, moved, CAMERA).depth)


def test_nothing_changes_nothing_runs(plain: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    session = plain.session(picture, CAMERA)
    with pytest.raises(InputError, match="no measurement yet"):
        _ = session.depth
    session.add(3, 4, 2.0)
    first = session.result
    assert session.result is first
    np.testing.assert_allclose(session.depth[4, 3], 2.0, rtol=0.2)


def test_noise_enters_as_less_weight(plain: gbpn.DepthCompleter, picture: np.ndarray, points: tuple) -> None:
    def depth_at(std: float | None) -> float:
        session = plain.session(picture, CAMERA)
        session.add(*points)
        session.add(20, 20, 9.0, std)
        return float(session.depth[20, 20])

    trusted, exact, noisy, useless = (depth_at(std) for std in (None, 0.0, 3.0, 1e6))
    session = plain.session(picture, CAMERA)
    session.add(*points)
    assert trusted == exact
    assert trusted > noisy > useless
    assert useless == pytest.approx(float(session.depth[20, 20]), rel=1e-3)


@pytest.mark.parametrize("kind", ["metric", "median", "log"])
def test_the_weight_of_a_noisy_measurement(kind: str) -> None:
    """Precision 1 / (1/w + σ²), σ in the field's unit."""
    from gbpn.measurements.unit import DepthUnit

    unit = DepthUnit(kind=kind, metres=torch.full((1, 1, 1, 1), 4.0 if kind != "metric" else 1.0))
    depth, std = torch.full((1, 1, 1, 1), 8.0), torch.full((1, 1, 1, 1), 0.2)
    sigma = {"metric": 0.2, "median": 0.05, "log": 0.025}[kind]
    noise = unit.variance(depth, std)
    assert float(noise) == pytest.approx(sigma**2)
    drawing = FieldParameters(
        unary=torch.full((1, 1, 1, 1), 30.0), residual=depth, local=None, nonlocal_=None
    )
    field = drawing.field(depth, depth > 0, noise)
    assert float(field.weight) == pytest.approx(1 / (1 / 30 + sigma**2), rel=1e-5)


@pytest.mark.parametrize("kind", ["log", "density"])
def test_a_planted_outlier_is_found(kind: str, picture: np.ndarray) -> None:
    wall = smooth(picture)
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, wall.shape[1], 150), rng.integers(0, wall.shape[0], 150)
    session = COMPLETERS[kind]().session(picture, CAMERA)
    session.add(x, y, wall[y, x])
    assert len(session.outliers(limit=8)) <= 3
    session.add(25, 25, 8.0)
    worst = session.outliers(limit=8)[0]
    assert (worst.x, worst.y, worst.depth) == (25, 25, 8.0)
    assert worst.expected == pytest.approx(wall[25, 25], rel=0.15)
    assert worst.sigmas > 8


@pytest.mark.parametrize("count", [3, 7, 8, 12])
def test_what_is_usual_is_asked_of_eight_measurements_or_more(
    plain: gbpn.DepthCompleter, picture: np.ndarray, count: int
) -> None:
    """Fewer cannot tell what is usual: then a sigma is the field's own, whatever the others' disagreement."""
    sigmas = torch.linspace(0.5, 3, count)
    usual = plain.session(picture, CAMERA)._usual(sigmas)
    assert usual == pytest.approx(
        1.0 if count < 8 else float(sigmas.sort().values[(count - 1) // 2]) / 0.6745
    )


def test_what_the_others_say_of_an_outlier_is_a_run_without_it(
    plain: gbpn.DepthCompleter, picture: np.ndarray
) -> None:
    rng = np.random.default_rng(0)
    place = rng.choice(40 * 56, 25, replace=False)
    y, x = place // 56, place % 56
    metres = smooth(picture)[y, x]
    honest, session = plain.session(picture, CAMERA), plain.session(picture, CAMERA)
    honest.add(x, y, metres)
    session.add(x, y, metres)
    free = next((r, c) for r in range(20, 40) for c in range(30, 56) if (r * 56 + c) not in set(place))
    session.add(free[1], free[0], 40.0)
    (found,) = session.outliers()
    assert (found.x, found.y, found.depth) == (free[1], free[0], 40.0)
    assert found.expected == pytest.approx(float(honest.depth[free]), rel=0.1)  # without other suspects too
    assert found.sigmas > 4
    assert session.outliers(limit=found.sigmas * 1.01) == []


def test_a_lonely_outlier_is_found_although_it_drowns_out_its_neighbour() -> None:
    """The wild point was believed, and the true one beside it blamed."""
    from gbpn import scenes

    sample = scenes.load("bedroom")
    assert sample.target is not None
    rng = np.random.default_rng(0)
    place = np.sort(rng.choice(240 * 320, 50, replace=False))
    y, x = place // 320, place % 320
    metres = sample.target[0].numpy()[y, x]
    completer = gbpn.DepthCompleter.from_pretrained(device="cpu")
    for wild in (0, 7, 23, 42):
        session = completer.session(sample.image, sample.intrinsics)
        session.add(x, y, np.where(np.arange(50) == wild, 30.0, metres))
        found = session.outliers()
        assert (found[0].x, found[0].y) == (x[wild], y[wild])
        assert found[0].expected == pytest.approx(metres[wild], rel=0.5)


def test_one_measurement_contradicts_nothing(plain: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    session = plain.session(picture, CAMERA)
    session.add(5, 5, 2.0)
    assert session.outliers(limit=0.0) == []
    session.add([50, 30], [35, 20], [2.5, 9.0])
    found = session.outliers(limit=0.0)  # all are suspects, and none is left to judge them
    assert sorted(one.depth for one in found) == [2.0, 2.5, 9.0]
    assert [one.sigmas for one in found] == sorted((one.sigmas for one in found), reverse=True)


def test_two_measurements_can_contradict_each_other(plain: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    session = plain.session(picture, CAMERA)
    session.add([20, 21], [20, 20], [2.0, 30.0])
    assert sorted(one.depth for one in session.outliers(limit=0.5)) == [2.0, 30.0]


def test_a_camera_that_stands_keeps_its_numbers(
    plain: gbpn.DepthCompleter, picture: np.ndarray, points: tuple
) -> None:
    session = plain.session(picture, CAMERA)
    session.add(*points)
    before = session.depth
    session.next_image(picture)
    np.testing.assert_array_equal(session.depth, before)
    session.next_image(picture, still=False)
    assert "60°" in " ".join(session.result.notices)  # a moved camera is a new one
    session.next_image(picture[:32, :32])
    assert session.measurements == []  # other pixels


def test_the_first_stage_alone(picture: np.ndarray, points: tuple) -> None:
    completer = COMPLETERS["two stages"]()
    first, last = (completer.session(picture, CAMERA, stage=stage) for stage in ("first", "last"))
    for session in (first, last):
        session.add(*points)
    assert not np.array_equal(first.depth, last.depth)
    with torch.inference_mode():
        image = first.result.image[None]
        model = completer.model
        assert isinstance(model, gbpn.GBPN)
        pipeline = model.pipeline()
        encoding = pipeline.encode(image, first.result.intrinsics[None])
        wanted, _ = pipeline.stages(encoding, SparseDepth(depth=first.result.sparse[None]))
    np.testing.assert_allclose(first.depth, wanted.distribution.mean[0, 0], rtol=1e-5)


def test_mistakes_are_named(plain: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    session = plain.session(picture, CAMERA)
    for arguments, message in (
        ((56, 0, 1.0), "inside 56×40"),
        ((0, 0, -1.0), "depth above 0"),
        ((0, 0, 1.0, -0.1), "std at least 0"),
        (([0, 1], 0, 1.0), "of one length"),
        ((np.nan, 0, 1.0), "must be finite"),
    ):
        with pytest.raises(InputError, match=message):
            session.add(*arguments)
    for change in (lambda: session.remove(3, 3), lambda: session.update(3, 3, 1.0)):
        with pytest.raises(InputError, match="nothing is measured"):
            change()
    with pytest.raises(InputError, match="stage must be"):
        plain.session(picture, stage="second")
    affine = gbpn.DepthCompleter(gbpn.build("v1", width=0.125))
    with pytest.raises(InputError, match="keeps no messages"):
        affine.session(picture)
    assert isinstance(session, Session)
    assert session.measurements == []


def test_measurements_are_what_was_added(plain: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    session = plain.session(picture, CAMERA)
    session.add([1, 2], [3, 4], [1.5, 2.5], 0.1)
    session.add(1, 3, 1.75)
    corrected, other = session.measurements
    assert (corrected.depth, corrected.std) == (1.75, 0.0)
    assert other == replace(other, x=2, y=4, depth=2.5, std=0.1)
