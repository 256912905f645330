"""One call: the same answer as the model's own, files that read back, images too large for the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import gbpn
from gbpn.answer.completed import output_names, png_scale
from gbpn.camera.pinhole import default_intrinsics, rays
from gbpn.distribution import DepthDistribution, SigmaCalibration
from gbpn.engine import resizing
from gbpn.errors import InputError
from gbpn.formats.depth_files import read_depth
from gbpn.formats.point_clouds import read_points
from gbpn.model.pipeline import has_exact_answer
from gbpn.sigma.even_confidence import evenly_sure

CAMERA = (60, 60, 28, 20)


@pytest.fixture(scope="module")
def result(completer: gbpn.DepthCompleter, picture: np.ndarray, depth: np.ndarray) -> gbpn.CompletedDepth:
    return completer(picture, depth, CAMERA)


@pytest.fixture
def partial(result: gbpn.CompletedDepth) -> gbpn.CompletedDepth:
    """The left half unobserved, with a calibration."""
    mean, precision = result.distribution.mean.clone(), result.distribution.belief_precision.clone()
    mean[..., :28], precision[..., :28] = torch.nan, 0
    calibration = SigmaCalibration(knots=(-5.0, 5.0), log_std=(0.0, -3.0))
    distribution = replace(
        result.distribution, mean=mean, belief_precision=precision, calibration=calibration
    )
    return replace(result, distribution=distribution)


def test_the_answer_is_the_model_s(
    completer: gbpn.DepthCompleter, result: gbpn.CompletedDepth, picture: np.ndarray, depth: np.ndarray
) -> None:
    image = torch.from_numpy(picture).permute(2, 0, 1)[None] / 255
    with torch.no_grad():
        wanted = completer.model(image, torch.from_numpy(depth)[None, None], result.intrinsics[None])
    np.testing.assert_allclose(result.depth, wanted.mean[0, 0].numpy(), rtol=1e-5)
    even = evenly_sure(wanted).confidence[0, 0].numpy()
    np.testing.assert_allclose(result.confidence, even, rtol=1e-5)
    assert result.depth.shape == result.confidence.shape == result.observed.shape == depth.shape
    assert result.notices == ()


def test_a_batch_is_its_images(
    completer: gbpn.DepthCompleter, result: gbpn.CompletedDepth, picture: np.ndarray, depth: np.ndarray
) -> None:
    several = []
    for cameras in (CAMERA, [CAMERA, CAMERA], np.stack([result.intrinsics.numpy()] * 2)):
        several = completer.batch(np.stack([picture, picture]), [depth, 2 * depth], cameras)
        np.testing.assert_array_equal(several[0].depth, result.depth)
    assert not np.array_equal(several[1].depth, result.depth)
    with pytest.raises(InputError, match="as many images"):
        completer.batch([picture], [depth, depth])
    with pytest.raises(InputError, match="got 3 for 1"):
        completer.batch([picture], [depth], [CAMERA] * 3)


def test_no_measurement_is_an_error(completer: gbpn.DepthCompleter, picture: np.ndarray) -> None:
    for nothing in (0.0, np.nan):
        with pytest.raises(InputError, match="no measurement"):
            completer(picture, np.full(picture.shape[:2], nothing))


def test_notices_say_what_is_out_of_range(
    completer: gbpn.DepthCompleter, picture: np.ndarray, depth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completer.model, "card", {"trained_for": {"points": [100, 5000], "depth": [0.3, 80]}})
    camera, points, *rest = completer(picture, depth).notices
    assert "60°" in camera
    assert points.startswith("30 points: these weights were trained for 100 to 5000")
    assert rest == []
    assert "another size" in completer(picture, depth, (600, 600, 320, 240)).notices[0]
    texts = " ".join(completer(picture, depth * 1000).notices)
    assert "millimetres read as metres" in texts
    assert "trained for 0.3 to 80 m" in texts


def test_files_read_back(tmp_path: Path, partial: gbpn.CompletedDepth, depth: np.ndarray) -> None:
    written = partial.save(tmp_path / "out", "frame", cloud=True)
    assert sorted(p.name for p in written) == sorted(p.name for p in (tmp_path / "out").iterdir())
    assert [p.name for p in written] == output_names("frame", calibrated=True, cloud=True)
    observed = partial.observed
    assert not observed[:, :28].any()
    assert observed[:, 28:].all()

    metres = read_depth(tmp_path / "out" / "frame_depth.png", 1000)[0].numpy()
    np.testing.assert_allclose(metres[observed], partial.depth[observed], atol=1e-3)
    assert (metres[~observed] == 0).all()
    for name in ("depth", "confidence", "std"):
        array = np.load(tmp_path / "out" / f"frame_{name}.npy")
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, getattr(partial, name))
    assert np.isnan(partial.std[~observed]).all()
    assert (partial.confidence[~observed] == 0).all()

    cloud = read_points(tmp_path / "out" / "frame.ply")
    sure = partial.trusted()
    assert len(cloud) == sure.sum()
    ray = rays(partial.intrinsics[None], *depth.shape)[0].numpy()  # [3, H, W]
    np.testing.assert_allclose(cloud, (ray * partial.depth)[:, sure].T, rtol=1e-5, atol=1e-6)
    with Image.open(tmp_path / "out" / "frame_preview.png") as preview:
        assert preview.width > 4 * depth.shape[1]


def test_a_failed_write_leaves_nothing(
    tmp_path: Path, result: gbpn.CompletedDepth, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gbpn.show.pictures.save", full)  # after depth and confidence were made
    with pytest.raises(OSError, match="No space"):
        result.save(tmp_path, "frame")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("metres", "scale"), [(2.0, 1000), (80.0, 256), (800.0, 16), (1e5, 0.65)])
def test_far_scenes_fit_into_sixteen_bits(
    tmp_path: Path, result: gbpn.CompletedDepth, metres: float, scale: float
) -> None:
    far = replace(result.distribution, mean=torch.full_like(result.distribution.mean, metres))
    answer = replace(result, distribution=far)
    assert png_scale(answer.depth) == pytest.approx(scale)
    answer.to_png(tmp_path / "far.png")
    with Image.open(tmp_path / "far.png") as stored:
        assert np.array(stored).max() == pytest.approx(metres * scale, abs=1)


def test_std_needs_a_calibration(result: gbpn.CompletedDepth) -> None:
    assert not result.calibrated
    with pytest.raises(InputError, match="calibration"):
        _ = result.std


def test_large_images_are_reduced_by_the_stated_rule(
    completer: gbpn.DepthCompleter, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resizing.reduction(1024, 2048) == 1
    assert resizing.reduction(3648, 5472) == pytest.approx((1024 * 2048 / (3648 * 5472)) ** 0.5)
    monkeypatch.setattr(resizing, "MOST_PIXELS", 64 * 64)
    rng = np.random.default_rng(3)
    picture = rng.random((96, 160, 3), dtype=np.float32)
    sparse = np.zeros((96, 160), np.float32)
    sparse[rng.integers(0, 96, 60), rng.integers(0, 160, 60)] = 3.0
    result = completer(picture, sparse)
    assert result.depth.shape == (96, 160)
    assert any("completed at 0.52 of its size" in notice for notice in result.notices)
    assert np.isfinite(result.depth[result.observed]).all()


def test_reduction_keeps_rays_and_the_nearest_measurement() -> None:
    camera = default_intrinsics(96, 160)
    ramp = torch.linspace(0, 1, 160).expand(3, 96, 160)
    sparse = torch.zeros(1, 96, 160)
    sparse[0, 0, 0], sparse[0, 1, 1], sparse[0, 95, 159] = 4.0, 3.0, 5.0
    image, small, reduced = resizing.reduce(ramp, sparse, camera, 0.5)
    assert image.shape == (3, 48, 80)
    assert small[0, 0, 0] == 3.0  # two fell onto this pixel
    assert small[0, 47, 79] == 5.0
    full = rays(camera[None], 96, 160)
    halves = torch.nn.functional.avg_pool2d(full, 2)  # a coarse pixel looks between its four
    torch.testing.assert_close(rays(reduced[None], 48, 80), halves, atol=1e-5, rtol=0)


def test_reduction_moves_image_and_measurements_alike() -> None:
    """A ramp of known values: wherever a measurement lands, the image there shows what it showed before."""
    ramp = (torch.arange(160.0) / 160).expand(3, 96, 160)
    sparse = torch.zeros(1, 96, 160)
    sparse[0, 50, 4:156] = torch.arange(4.0, 156)  # its own column
    image, small, _ = resizing.reduce(ramp, sparse, default_intrinsics(96, 160), 0.37)
    row, column = torch.nonzero(small[0], as_tuple=True)
    shown = image[0, row, column] * 160
    assert float((shown - small[0, row, column]).abs().max()) < 1.5 / 0.37  # pixels: the nearest stays


def test_enlarging_keeps_planes_and_what_is_unobserved() -> None:
    mean = torch.arange(8.0).expand(1, 1, 6, 8).clone() + 1
    mean[..., :3, :2] = torch.nan
    precision = (~mean.isnan()).float()
    answer = DepthDistribution(mean=mean, confidence_logit=mean.nan_to_num(0), belief_precision=precision)
    out = resizing.enlarge(answer, 12, 16)
    assert torch.equal(out.observed, out.mean.isfinite())
    assert not bool(out.observed[..., :6, :4].any())
    inner = out.mean[0, 0, 8:, 1:-1]
    torch.testing.assert_close(inner, (torch.arange(1.0, 15) / 2 + 0.75).expand_as(inner))


def test_exact_solver_only_for_models_with_an_energy(
    weights: Path, picture: np.ndarray, depth: np.ndarray, result: gbpn.CompletedDepth
) -> None:
    exact = gbpn.DepthCompleter.from_pretrained(weights, device="cpu", solver="exact")
    answer = exact(picture, depth, CAMERA)
    np.testing.assert_allclose(answer.confidence, result.confidence, rtol=5e-6)  # stays as trained
    longer = gbpn.DepthCompleter.from_pretrained(weights, device="cpu", iterations=(3, 2000))
    settled = longer(picture, depth, CAMERA).depth
    assert np.abs(answer.depth - settled).mean() < 0.25 * np.abs(answer.depth - result.depth).mean()

    directed = gbpn.build("small-directed", width=0.25)
    assert not has_exact_answer(directed.config)
    with pytest.raises(InputError, match="small-directed' draws directed edges"):
        gbpn.DepthCompleter(directed, solver="exact")
    with pytest.raises(InputError, match="solver must be gbp or exact"):
        gbpn.DepthCompleter(directed, solver="guess")
