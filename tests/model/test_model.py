"""Whole models: the released numbers, the stated sizes, any image, every configuration."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import gbpn
import goldens
from gbpn.config import CONFIGS
from gbpn.errors import BackendError, InputError
from gbpn.model.cost import multiply_adds, parameters
from gbpn.model.pipeline import SparseDepth, StageResult
from gbpn.train.losses import l2_loss, probability_loss
from gbpn.weights.released import to_released

TINY = {"width": 0.125, "dilations": ((1,),) * 5, "drop_path": 0.0}
LEARNED = 0.15
"""Metres; root mean square error below which a configuration has learned the scene of `scene`."""


def scene(height: int, width: int, share: float = 0.02) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(image, sparse, target): a slanted plane with a step of one metre, which the colours show."""
    generator = torch.Generator().manual_seed(1)
    y, x = torch.meshgrid(torch.linspace(0, 1, height), torch.linspace(0, 1, width), indexing="ij")
    near = (x > 0.5).float()
    target = (2 + y + near)[None, None]
    measured = torch.rand(1, 1, height, width, generator=generator) < share
    return torch.stack((x, y, near))[None], target * measured, target


# --- the released network ---------------------------------------------------------------------------------


NOISE = {
    "golden_s": {"depth1": 8.2e-6, "conf1": 4.1e-5, "depth2": 3.4e-6, "conf2": 3.7e-5},
    "golden_a": {"depth1": 3.9e-6, "conf1": 9.1e-5, "depth2": 3.2e-6, "conf2": 4.2e-5},
    "golden_b": {"depth1": 1.2e-5, "conf1": 5.9e-5, "depth2": 1.9e-5, "conf2": 7.3e-5},
}
"""Float32 noise of the released network (GOLDENS.md); we allow ten times that."""


def stages(
    model: Any, image: torch.Tensor, sparse: torch.Tensor, intrinsics: torch.Tensor | None = None
) -> list[StageResult]:
    pipeline = model.pipeline()
    return list(pipeline.stages(pipeline.encode(image, intrinsics), SparseDepth(depth=sparse)))


@pytest.fixture(scope="module")
def released_answers(released_file: Path) -> Callable[[str, str], dict[str, torch.Tensor]]:
    """(golden, how) → both stages' mean and confidence logit; one run serves every set of goldens."""

    @functools.cache
    def model(fast: bool) -> gbpn.GBPN:
        plain = gbpn.load(released_file, image_mean=(0, 0, 0), image_std=(1, 1, 1))
        return plain.prepared("float32", "cpu") if fast else plain

    @functools.cache
    def answers(name: str, how: str) -> dict[str, torch.Tensor]:
        network = model(how == "folded")
        assert network.fused == (how == "folded")
        network.use_backend("reference" if how == "reference" else "cpu")
        g = goldens.tensors(goldens.COMPACT / f"{name}.npz")  # inputs are whole and the same in every set
        out = {}
        with torch.inference_mode():
            for stage, result in enumerate(stages(network, g["image"], g["sparse"], g["K"]), 1):
                out[f"depth{stage}"] = result.distribution.mean
                out[f"conf{stage}"] = result.distribution.confidence_logit
        return out

    return answers


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("golden_s", "cpu"),
        ("golden_a", "cpu"),
        ("golden_b", "cpu"),
        ("golden_s", "reference"),
        ("golden_s", "folded"),  # norms folded into convolutions
    ],
)
def test_released_numbers(golden, released_answers, name: str, how: str) -> None:
    if how != "reference":
        pytest.importorskip("gbpn._native", reason="needs the compiled extension")
    g, answers = golden(name), released_answers(name, how)
    for key, noise in NOISE[name].items():
        goldens.assert_known_close(answers[key], g[key], atol=10 * noise)


def on_meta(name: str) -> gbpn.model.models.Model:
    with torch.device("meta"):
        return gbpn.build(name)


def test_released_layout() -> None:
    state = to_released(on_meta("gbpn-2").state_dict())
    got = {name: (tuple(t.shape), str(t.dtype).removeprefix("torch.")) for name, t in state.items()}
    assert got == {name: (shape, dtype) for name, shape, dtype in goldens.released_layout()}
    assert len(got) == 1182


def test_sizes() -> None:
    """Parameters and multiply-adds at 256×320, of the released layout."""
    model = on_meta("gbpn-2")
    assert parameters(model) == 40_112_462
    assert sum(multiply_adds(model, 256, 320).values()) == pytest.approx(81.67e9, rel=0.01)


@pytest.mark.parametrize("name", ["default", "free"])
def test_embedded_weights_have_a_size(name: str) -> None:
    """docs/model.md: counted without computing anything, whatever the maps are made of."""
    stated = {"default": 6.14e9, "free": 5.92e9}[name]
    assert sum(multiply_adds(gbpn.load(name), 256, 320).values()) == pytest.approx(stated, rel=0.01)


# --- every configuration ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGS)
def test_every_configuration_learns(name: str) -> None:
    """Forward, backward, and one synthetic scene learned to below a stated error and well below the first."""
    torch.manual_seed(0)
    model = gbpn.build(name, **TINY)
    image, sparse, target = scene(64, 64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    loss_of = l2_loss if model.config.loss == "l2" else probability_loss
    errors = []
    for step in range(80):
        answer = model(image, sparse)
        errors.append((answer.mean.detach() - target).square().mean().sqrt().item())
        if errors[-1] < min(LEARNED, 0.7 * errors[0]):
            break
        optimizer.zero_grad()
        loss_of(answer, target).backward()
        if step == 1:
            silent = [n for n, p in model.named_parameters() if p.grad is None]
            assert not silent
        optimizer.step()
    assert errors[-1] < min(LEARNED, 0.7 * errors[0])


@pytest.mark.parametrize("name", ["gbpn-2", "small-2", "v7", "v2"])
def test_any_size_and_batch(name: str) -> None:
    """Odd sizes and small ones; each image of a batch is answered as it is alone."""
    torch.manual_seed(0)
    model = awake(gbpn.build(name, **TINY))
    for height, width in ((32, 32), (33, 65)):
        image, sparse, _ = scene(height, width, 0.05)
        images, sparses = torch.cat((image, image.flip(1))), torch.cat((sparse, sparse * 2))
        with torch.inference_mode():
            both = model(images, sparses)
            alone = model(images[1:], sparses[1:])
        assert both.mean.shape == both.confidence_logit.shape == both.belief_precision.shape == sparses.shape
        assert bool(both.observed.all())
        torch.testing.assert_close(both.mean[1:], alone.mean, rtol=1e-3, atol=1e-4)


def awake(model: Any) -> Any:
    """Evaluation mode, with last layers that say something, so that every part shows in the answer."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 4 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
        if name.endswith("norm.weight"):
            torch.nn.init.uniform_(parameter, 0.5, 1.0)
    return model.eval()


@pytest.mark.parametrize("depth_scale", ["median", "log"])
@pytest.mark.parametrize("name", ["small", "small-2"])
def test_scale_free_models_scale(name: str, depth_scale: str) -> None:
    torch.manual_seed(0)
    model = awake(gbpn.build(name, **TINY, depth_scale=depth_scale)).double()
    image, sparse, _ = scene(40, 48)
    with torch.inference_mode():
        one, nine = model(image, sparse.double()), model(image, sparse.double() * 9)
    torch.testing.assert_close(nine.mean, one.mean * 9)
    torch.testing.assert_close(nine.confidence_logit, one.confidence_logit)


def test_without_measurements_nothing_is_observed() -> None:
    for name in ("gbpn-2", "small-2", "v1"):
        model = gbpn.build(name, **TINY).eval()
        image, sparse, _ = scene(32, 32)
        with torch.inference_mode():
            answer = model(image, torch.zeros_like(sparse))
        assert not bool(answer.observed.any())
        assert bool(answer.mean.isnan().all())
        assert bool(answer.confidence_logit.isfinite().all())


def test_a_fresh_second_stage_of_small_repeats_the_first() -> None:
    torch.manual_seed(0)
    model = awake(gbpn.build("small-2", **TINY))
    torch.nn.init.zeros_(model.second.last.weight)
    image, sparse, _ = scene(40, 48)
    with torch.inference_mode():
        first, second = stages(model, image, sparse)
    for one, two in zip(first.parameters.maps[:3], second.parameters.maps[:3], strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(first.distribution.mean, second.distribution.mean)  # but messages went on


def test_a_fresh_detail_branch_changes_nothing_and_sees_single_pixels() -> None:
    torch.manual_seed(0)
    plain = awake(gbpn.build("small", **TINY, detail=0))
    model: Any = gbpn.build("small", **TINY).eval()
    missing, unknown = model.load_state_dict(plain.state_dict(), strict=False)
    assert not unknown
    assert all(name.startswith("first.heads.detail.") for name in missing)
    image, sparse, _ = scene(40, 48)
    with torch.inference_mode():
        assert torch.equal(model(image, sparse).mean, plain(image, sparse).mean)
        detail = model.first.heads.detail
        torch.nn.init.normal_(detail.last.weight)
        features = torch.rand(1, 4, 20, 24)
        dotted = image.clone()
        dotted[..., 20, 21] += 1
        change: Any = sum(
            (one - two).abs().sum(dim=(0, 1))
            for one, two in zip(detail(features, image), detail(features, dotted), strict=True)
        )
    assert bool((change[17:24, 18:25] > 0).all())  # three convolutions of 3×3 around the pixel
    assert int((change > 0).sum()) == 7 * 7


def test_with_a_mirror_left_and_right_are_the_same_to_a_model() -> None:
    torch.manual_seed(0)
    plain = awake(gbpn.build("small", **TINY))
    model = gbpn.build("small", **TINY, mirror=True).eval()
    model.load_state_dict(plain.state_dict())
    image, sparse, _ = scene(40, 48)
    camera = torch.tensor([[[50.0, 0, 20], [0, 50, 18], [0, 0, 1]]])
    turned = (image.flip(-1), sparse.flip(-1), gbpn.camera.pinhole.flipped(camera, 48))
    with torch.inference_mode():
        alone, other = plain(image, sparse, camera), plain(*turned)
        both, mirrored = model(image, sparse, camera), model(*turned)
    assert not torch.equal(alone.mean, other.mean.flip(-1))
    torch.testing.assert_close(both.mean, mirrored.mean.flip(-1))
    torch.testing.assert_close(both.mean, (alone.mean + other.mean.flip(-1)) / 2)


def test_default_intrinsics_are_the_stated_ones() -> None:
    torch.manual_seed(0)
    model = awake(gbpn.build("narrow", **TINY))
    image, sparse, _ = scene(40, 48)
    stated = gbpn.camera.pinhole.default_intrinsics(40, 48)[None]
    with torch.inference_mode():
        assert torch.equal(model(image, sparse).mean, model(image, sparse, stated).mean)
        stated[:, 0, 0] *= 2
        assert not torch.equal(model(image, sparse).mean, model(image, sparse, stated).mean)


# --- behaviour --------------------------------------------------------------------------------------------


def test_the_same_bits_from_two_threads_and_inputs_left_alone() -> None:
    torch.manual_seed(0)
    model = awake(gbpn.build("gbpn-2", **TINY))
    image, sparse, _ = scene(64, 96)
    intrinsics = gbpn.camera.pinhole.default_intrinsics(64, 96)[None]
    inputs = (image, sparse, intrinsics)
    before = [t.clone() for t in inputs]
    with torch.inference_mode():
        wanted = model(*inputs)
    results: dict[int, list[gbpn.DepthDistribution]] = {0: [], 1: []}

    def work(thread: int) -> None:
        with torch.inference_mode():
            results[thread] += [model(*inputs) for _ in range(2)]

    threads = [threading.Thread(target=work, args=(i,)) for i in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer in results[0] + results[1]:
        assert torch.equal(answer.mean, wanted.mean)
        assert torch.equal(answer.confidence_logit, wanted.confidence_logit)
    assert [len(r) for r in results.values()] == [2, 2]
    for tensor, copy in zip(inputs, before, strict=True):
        assert torch.equal(tensor, copy)


def test_an_encoding_is_kept_while_measurements_change() -> None:
    torch.manual_seed(0)
    model = awake(gbpn.build("small", **TINY))
    image, sparse, _ = scene(40, 48)
    with torch.inference_mode():
        pipeline = model.pipeline()
        encoding = pipeline.encode(image)
        for measured in (sparse, sparse * 1.5):
            answer, wanted = pipeline.answer(encoding, SparseDepth(depth=measured)), model(image, measured)
            assert torch.equal(answer.mean, wanted.mean)


def test_imagenet_start_and_backend_are_checked() -> None:
    with pytest.raises(InputError, match="efficientnet-lite0"):
        gbpn.build("narrow", **TINY).start_from_imagenet()
    with pytest.raises(BackendError, match="must be one of"):
        gbpn.build("narrow", **TINY).use_backend("fast")
    with pytest.raises(InputError, match="no configuration 'tiny'"):
        gbpn.build("tiny")
    with pytest.raises(InputError, match="config edges must be one of"):
        gbpn.build("small", edges="curved")
