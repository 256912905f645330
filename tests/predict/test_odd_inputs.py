"""What callers passed once, and what answers promise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import gbpn
from gbpn.distribution import SigmaCalibration
from gbpn.errors import GbpnError, InputError
from gbpn.inputs.reading import frame_inputs
from gbpn.measurements.plausible import kept_promises, without_implausible

IMAGE = np.full((40, 56, 3), 100, np.uint8)
SPARSE = np.full((40, 56), 2.0, np.float32)
ODD: dict[str, Any] = {
    "object": np.array([[object()]]),
    "words": np.array([["a"]]),
    "ragged": [[1, 2], [3]],
    "sparse": torch.zeros(40, 56).to_sparse(),
    "meta": torch.zeros(40, 56, device="meta"),
    "complex": torch.zeros(40, 56, dtype=torch.complex64),
    "truth": np.ones((40, 56), bool),
    "empty": np.zeros((0, 56)),
    "nothing": None,
    "number": 5,
    "huge": [10**400],
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_arrays_are_refused(kind: str) -> None:
    with pytest.raises(GbpnError):
        frame_inputs(ODD[kind], SPARSE)
    with pytest.raises(GbpnError):
        frame_inputs(IMAGE, ODD[kind])
    if kind != "nothing":
        with pytest.raises(GbpnError):
            frame_inputs(IMAGE, SPARSE, ODD[kind])


@pytest.mark.parametrize("scale", ["x", 0, np.nan, np.inf, -1, [], True])
def test_scales_that_divide_nothing(scale: Any) -> None:
    with pytest.raises(InputError, match="scale must be positive and finite"):
        frame_inputs(IMAGE, SPARSE, scale=scale)


@pytest.mark.parametrize("value", [65.535, 65535 / 256, 65504.0, 65535.0, 1e10, 6553.5, np.inf, 1e-30])
def test_saturated_sensors_are_dropped_with_a_notice(value: float) -> None:
    sparse = SPARSE.copy()
    sparse[3, 4] = value
    inputs = frame_inputs(IMAGE, sparse)
    assert inputs.sparse[0, 3, 4] == 0
    assert int((inputs.sparse > 0).sum()) == SPARSE.size - 1
    assert any("1 of 2240 measurements are dropped" in notice for notice in inputs.notices)


def test_the_largest_number_of_a_file_is_dropped(tmp_path: Path) -> None:
    stored = np.full((40, 56), 5000, np.uint16)
    stored[0, 0] = 65535
    Image.fromarray(stored).save(tmp_path / "d.png")
    assert frame_inputs(IMAGE, tmp_path / "d.png", scale=5000).sparse[0, 0, :2].tolist() == [0.0, 1.0]


def test_what_is_measured_stays() -> None:
    depth = torch.tensor([[[0.2, 80.0, 0.0, 249.0]]])
    assert without_implausible(depth) == (depth, None)


def test_nothing_but_saturation_is_no_measurement() -> None:
    with pytest.raises(InputError, match="nothing was measured"):
        frame_inputs(IMAGE, np.full((40, 56), np.inf))


@pytest.mark.parametrize("middle", [1e-6, 1e8])
def test_depths_that_no_arithmetic_carries(middle: float) -> None:
    with pytest.raises(InputError, match="depths must be metres"):
        frame_inputs(IMAGE, SPARSE * np.float32(middle))


@pytest.mark.parametrize("size", [(32, 70000), (70000, 32)])
def test_strips_are_refused(size: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="a strip"):
        frame_inputs(np.zeros((*size, 3), np.uint8), [(0, 0, 1.0)])


@pytest.mark.parametrize("kind", ["array", "tensor", "measurements"])
def test_arrays_have_the_limit_in_megapixels_too(kind: str) -> None:
    """Nothing of this size is ever in memory here: the array repeats one pixel."""
    picture = np.broadcast_to(np.zeros(3, np.uint8), (9000, 9000, 3))
    wide: Any = torch.zeros(3, 1, 1).expand(3, 9000, 9000) if kind == "tensor" else picture
    if kind == "measurements":
        with pytest.raises(InputError, match=r"megapixels|9000"):
            frame_inputs(IMAGE, np.broadcast_to(np.float32(2), (9000, 9000)))
        return
    with pytest.raises(InputError, match=r"9000×9000 pixels is larger than 64 megapixels.*GBPN_MAX"):
        frame_inputs(wide, [(0, 0, 1.0)])


def test_a_turned_picture_and_its_measurements(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(IMAGE).save(tmp_path / "x.jpg", exif=exif)
    inputs = frame_inputs(tmp_path / "x.jpg", [(0, 55, 2.0)])
    assert inputs.size == (56, 40)
    assert any("turned upright" in notice for notice in inputs.notices)
    with Image.open(tmp_path / "x.jpg") as picture:
        assert torch.equal(frame_inputs(picture, [(0, 55, 2.0)]).image, inputs.image)


def test_normalised_intrinsics_are_noticed() -> None:
    inputs = frame_inputs(IMAGE, SPARSE, (0.8, 0.8, 0.5, 0.5))
    assert inputs.intrinsics[0, 0] == pytest.approx(0.8 * 56)
    assert any("normalised" in notice for notice in inputs.notices)


@pytest.fixture(scope="module")
def sure(weights: Path) -> gbpn.DepthCompleter:
    """States σ, from hardly any to far too much."""
    model = gbpn.load(weights)
    model.calibration = SigmaCalibration(knots=(-4.0, 4.0), log_std=(8.0, -8.0))
    return gbpn.DepthCompleter(model)


numbers = st.one_of(
    st.floats(0.125, 100, width=32),
    st.sampled_from([65.535, 655.0, 6553.0, 65504.0, 1e10, 1e-10, float("inf"), 3e38]),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(numbers, min_size=1, max_size=30), seed=st.integers(0, 1000))
def test_answers_are_finite_positive_and_within_reach(
    sure: gbpn.DepthCompleter, values: list[float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    sparse = np.zeros((32, 40), np.float32)
    sparse.reshape(-1)[rng.choice(sparse.size, len(values), replace=False)] = values
    try:
        inputs = frame_inputs(rng.integers(0, 256, (32, 40, 3), dtype=np.uint8), sparse)
    except InputError:
        return
    result = sure.complete(inputs, sigmas=True)
    known = inputs.sparse[inputs.sparse > 0]
    low, high = float(known.min()) / 10, float(known.max()) * 10
    depth, std = result.depth[result.observed], result.std[result.observed]
    assert np.isfinite(depth).all()
    assert np.isfinite(std).all()
    assert (depth >= low).all()
    assert (depth <= high).all()
    assert (std > 0).all()
    assert (std <= high).all()
    assert np.isnan(result.depth[~result.observed]).all()
    assert not np.isfinite(result.std[~result.observed]).any()


def test_answers_beyond_reach_are_marked(completer: gbpn.DepthCompleter) -> None:
    inputs = frame_inputs(IMAGE, SPARSE)
    answer = completer.complete(inputs).distribution
    mean = torch.full(answer.mean.shape, 2.0)
    mean[0, 0, 0, :4] = torch.tensor([torch.inf, -1.0, 21.0, 19.0])
    answer = replace(answer, mean=mean)
    assert kept_promises(answer, inputs.sparse, 10.0).observed[0, 0, 0, :4].tolist() == [
        False,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("value", [0, 100, 255])
def test_a_picture_that_shows_nothing_is_told(completer: gbpn.DepthCompleter, value: int) -> None:
    camera = (60, 60, 27.5, 19.5)
    points = [(5, 5, 2.0), (40, 30, 3.0)]
    told = "this picture shows nothing"
    flat = np.full_like(IMAGE, value)
    assert any(told in notice for notice in completer(flat, points, camera).notices)
    session = completer.session(flat, camera)
    session.add(5, 5, 2.0)
    assert any(told in notice for notice in session.result.notices)
    flat[20, 20, 1] ^= 40
    assert not any(told in notice for notice in completer(flat, points, camera).notices)
