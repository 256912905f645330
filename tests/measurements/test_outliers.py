"""Measurements that the rest contradicts are found, told and left out; lonely true ones stay."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import gbpn
from gbpn.distribution import DepthDistribution
from gbpn.errors import InputError
from gbpn.measurements.outliers import contradicted, suspects

HEIGHT, WIDTH = 64, 96


def wall(count: int = 200, seed: int = 0) -> Tensor:
    """[1, 1, H, W] metres: measurements of a slanted wall, 2 to 3 m away."""
    rng = np.random.default_rng(seed)
    depth = torch.linspace(2, 3, WIDTH).repeat(HEIGHT, 1)
    chosen = torch.zeros(HEIGHT * WIDTH, dtype=torch.bool)
    chosen[rng.choice(HEIGHT * WIDTH, count, replace=False)] = True
    return torch.where(chosen.view(HEIGHT, WIDTH), depth, 0.0)[None, None]


def spoilt(sparse: Tensor, metres: float, which: int = 77) -> tuple[Tensor, tuple[int, int]]:
    row, column = torch.nonzero(sparse[0, 0])[which].tolist()
    out = sparse.clone()
    out[0, 0, row, column] = metres
    return out, (row, column)


def answer(precision: float, mean: float = 2.5) -> DepthDistribution:
    """The same depth everywhere; the left half as sure as the median, the right half so much."""
    maps = torch.ones(1, 1, HEIGHT, WIDTH)
    maps[..., WIDTH // 2 + 8 :] = precision
    return DepthDistribution(mean=torch.full_like(maps, mean), confidence_logit=maps, belief_precision=maps)


@pytest.mark.parametrize("metres", [0.7, 7.5, 65.535, 655.0, 6553.0, 1e10])
def test_a_gross_error_is_the_only_suspect(metres: float) -> None:
    sparse, place = spoilt(wall(), metres)
    found = suspects(sparse)
    assert found is not None
    assert torch.nonzero(found[0, 0]).tolist() == [list(place)]
    assert torch.equal(contradicted(sparse, found, answer(1.0)), found)


def test_nothing_is_suspect_where_neighbours_agree_or_are_few_or_never_agree() -> None:
    assert suspects(wall()) is None
    few, _ = spoilt(wall(12), 9.0, which=3)
    assert suspects(few) is None
    rough = wall()
    rough[rough > 0] = torch.logspace(-1, 2, 200)[torch.randperm(200, generator=torch.manual_seed(0))]
    assert suspects(rough) is None


def test_a_suspect_that_the_image_expects_stays() -> None:
    sparse, _ = spoilt(wall(), 7.5)
    found = suspects(sparse)
    assert found is not None
    assert not contradicted(sparse, found, answer(1.0, mean=7.0)).any()


def test_where_the_rest_is_not_sure_only_the_absurd_is_dropped() -> None:
    right = 150 + int(torch.nonzero(torch.nonzero(wall()[0, 0])[150:, 1] > 70)[0])
    for metres, dropped in ((7.5, False), (1e10, True)):
        sparse, place = spoilt(wall(), metres, which=right)
        found = suspects(sparse)
        assert found is not None
        assert bool(contradicted(sparse, found, answer(0.01))[0, 0][place]) == dropped


def test_images_of_a_batch_are_judged_apart() -> None:
    bad, place = spoilt(wall(), 9.0)
    found = suspects(torch.cat((wall(), bad)))
    assert found is not None
    assert torch.nonzero(found).tolist() == [[1, 0, *place]]


@pytest.fixture(scope="module")
def model() -> gbpn.GBPN:
    torch.manual_seed(0)
    return gbpn.build("small", width=0.25).eval()


@pytest.fixture(scope="module")
def image() -> Tensor:
    return torch.rand(3, HEIGHT, WIDTH, generator=torch.manual_seed(1))


def test_the_completer_drops_and_tells_and_the_model_keeps(model: gbpn.GBPN, image: Tensor) -> None:
    sparse, place = spoilt(wall(), 900.0)  # what no sensor says at all is dropped before
    result = gbpn.DepthCompleter(model)(image, sparse[0], (80, 80, 48, 32))
    assert np.argwhere(result.dropped).tolist() == [list(place)]
    assert any("1 of 200 measurements contradict" in notice for notice in result.notices)
    assert np.isfinite(result.depth[result.observed]).all()
    assert result.depth[result.observed].max() < 10
    clean = wall()
    clean[0, 0][place] = 0
    wanted = gbpn.DepthCompleter(model)(image, clean[0], (80, 80, 48, 32))
    np.testing.assert_array_equal(result.depth, wanted.depth)
    assert result.preview().size == wanted.preview().size
    assert np.asarray(result.preview()).tobytes() != np.asarray(wanted.preview()).tobytes()

    kept = gbpn.DepthCompleter(model, outliers="keep")(image, sparse[0], (80, 80, 48, 32))
    assert not kept.dropped.any()
    with torch.no_grad():
        plain = model(image[None], sparse)
    assert plain.dropped is None
    np.testing.assert_array_equal(kept.depth, plain.mean[0, 0].numpy())


def test_without_suspects_nothing_changes(model: gbpn.GBPN, image: Tensor) -> None:
    drop, keep = (
        gbpn.DepthCompleter(model, outliers=choice)(image, wall()[0]) for choice in ("drop", "keep")
    )
    np.testing.assert_array_equal(drop.depth, keep.depth)
    assert drop.notices == keep.notices


def test_a_choice_that_is_none(model: gbpn.GBPN) -> None:
    with pytest.raises(InputError, match="auto, drop or keep"):
        gbpn.DepthCompleter(model, outliers="maybe")


def test_a_model_without_inference_keeps_all(image: Tensor) -> None:
    torch.manual_seed(0)
    completer = gbpn.DepthCompleter(gbpn.build("v1", width=0.25))
    assert completer.how.outliers == "keep"
    assert not completer(image, spoilt(wall(), 9.0)[0][0]).dropped.any()
