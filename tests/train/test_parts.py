"""Schedule, weight average, data order, checkpoints and recipes: each against its definition."""

from __future__ import annotations

import os

import pytest
import torch
from torch import nn

from gbpn import build
from gbpn.augmentation.augmentations import KittiAugmentation
from gbpn.errors import InputError, TrainingError
from gbpn.files.atomic import PARTIAL
from gbpn.train.averaging import WeightAverage
from gbpn.train.checkpoints import Checkpoints
from gbpn.train.learner import Learner
from gbpn.train.recipe import RECIPES, Recipe, named
from gbpn.train.schedule import OneCycle
from gbpn.train.step_sampler import Key, StepSampler


def test_schedule_is_torchs_one_cycle() -> None:
    parameter = nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.AdamW([parameter], lr=1.0)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimiser,
        max_lr=2e-3,
        total_steps=200,
        pct_start=0.1,
        div_factor=40,
        final_div_factor=0.1,
        base_momentum=0.85,
        max_momentum=0.90,
    )
    ours = OneCycle(steps=200, peak=2e-3, noise=0.0)
    for step in range(200):
        group = optimiser.param_groups[0]
        assert ours.rate(step) == pytest.approx(group["lr"], rel=1e-9)
        assert ours.momentum(step) == pytest.approx(group["betas"][0], rel=1e-9)
        optimiser.step()
        if step < 199:
            theirs.step()
    assert ours.rate(199) == pytest.approx(2e-3 / 4)


def test_a_recipe_says_where_the_rate_ends() -> None:
    recipe = Recipe(steps=50, peak_rate=1e-3, end_rate=0.01, rate_noise=0.0)
    assert recipe.schedule.rate(49) == pytest.approx(1e-5)


def test_rate_noise_is_bounded_and_depends_on_the_step_only() -> None:
    noisy, clean = OneCycle(steps=100, peak=1.0), OneCycle(steps=100, peak=1.0, noise=0.0)
    ratios = torch.tensor([noisy.rate(s) / clean.rate(s) for s in range(100)])
    assert ratios.min() >= 0.9
    assert ratios.max() <= 1.1
    assert ratios.std() > 0.03
    assert noisy.rate(17) == OneCycle(steps=100, peak=1.0).rate(17)


def test_average_is_bias_corrected() -> None:
    model = nn.BatchNorm2d(3)
    average = WeightAverage(model, decay=0.9)
    seen = []
    for value in (1.0, 2.0, 5.0):
        nn.init.constant_(model.weight, value)
        average.update(model)
        seen.append(value)
    shares = torch.tensor([0.1 * 0.9 ** (2 - i) for i in range(3)])
    wanted = (shares * torch.tensor(seen)).sum() / shares.sum()
    torch.testing.assert_close(average.weights(model)["weight"], wanted.expand(3))
    other = WeightAverage(nn.BatchNorm2d(3), decay=0.9)
    other.load_state_dict(average.state_dict())
    torch.testing.assert_close(other.weights(model)["weight"], wanted.expand(3))


@pytest.mark.parametrize("missing", ["_foreach_mul_", "_foreach_add_"])
def test_average_without_torchs_private_functions(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may leave with any release of torch; then one tensor after the other gives the same average."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    quick, plain = WeightAverage(model, decay=0.9), WeightAverage(model, decay=0.9)
    for _ in range(5):
        for parameter in model.parameters():
            nn.init.normal_(parameter)
        quick.update(model)
        with monkeypatch.context() as gone:
            gone.delattr(torch, missing)
            plain.update(model)
    for name, tensor in quick.weights(model).items():
        torch.testing.assert_close(plain.weights(model)[name], tensor, rtol=1e-6, atol=1e-7)


def test_average_of_constant_weights_is_those_weights() -> None:
    model = nn.Linear(4, 2)
    average = WeightAverage(model, decay=0.9999)
    for _ in range(3):
        average.update(model)
    torch.testing.assert_close(average.weights(model)["weight"], model.weight.detach())


def steps(first: int, last: int, **options: int) -> list[list[Key]]:
    return list(StepSampler(length=10, batch=4, seed=3, first=first, last=last, **options))


def test_order_continues_from_any_step() -> None:
    assert steps(0, 20)[7:] == steps(7, 20)


def test_every_epoch_shows_every_sample_once() -> None:
    flat = [(epoch, index) for batch in steps(0, 10) for epoch, index, _ in batch]
    for epoch in range(4):
        assert sorted(i for e, i in flat if e == epoch) == list(range(10))
    assert [i for e, i in flat if e == 0] != [i for e, i in flat if e == 1]


def test_crops_grow_at_their_share_of_the_run() -> None:
    sampler = StepSampler(length=10, batch=2, seed=3, first=0, last=8, sizes=((0.5, 96, 128), (0.0, 64, 80)))
    sizes = [{size for _, _, size in batch} for batch in sampler]
    assert sizes == [{(64, 80)}] * 4 + [{(96, 128)}] * 4
    assert {size for batch in steps(0, 3) for _, _, size in batch} == {None}


def test_two_processes_together_see_what_one_sees() -> None:
    shares = [steps(0, 9, rank=rank, processes=2) for rank in range(2)]
    assert [a + b for a, b in zip(*shares, strict=True)] == steps(0, 9)


def test_checkpoints_keep_the_last_and_ignore_halves(tmp_path) -> None:
    folder = Checkpoints(tmp_path, keep=2)
    for step in (1, 2, 3):
        folder.write(step, {"step": step, "weights": torch.full((2,), float(step))})
    (tmp_path / f"{PARTIAL}4.pt").write_bytes(b"half a file")
    latest = folder.latest()
    assert latest is not None
    assert folder.read(latest)["step"] == 3
    assert sorted(os.listdir(tmp_path)) == ["step-00000002.pt", "step-00000003.pt"]


def test_a_full_disk_is_reported_and_leaves_the_old_checkpoint(tmp_path, monkeypatch) -> None:
    folder = Checkpoints(tmp_path)
    folder.write(1, {"step": 1})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(TrainingError, match=r"No space left.*intact.*--resume"):
        folder.write(2, {"step": 2})
    assert os.listdir(tmp_path) == ["step-00000001.pt"]


def test_an_unreadable_checkpoint_says_which(tmp_path) -> None:
    path = tmp_path / "step-00000001.pt"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(TrainingError, match=r"step-00000001\.pt cannot be read"):
        Checkpoints(tmp_path).read(path)


def test_recipe_settings_reach_inside_and_complain() -> None:
    recipe = named("small").changed(["steps=10", "model.width=0.5", "imagenet=no", "dataset.holdout=0.1"])
    assert recipe.steps == 10
    assert recipe.model_options["width"] == 0.5
    assert recipe.imagenet is False
    assert recipe.dataset_options["holdout"] == 0.1
    assert named("small").changed(["sizes=((0.0, 64, 80), (0.5, 96, 128))"]).sizes == (
        (0.0, 64, 80),
        (0.5, 96, 128),
    )
    for bad in ("sizes=7", "sizes=((", "sizes=((1, 2),)"):
        with pytest.raises(InputError, match="sizes must be"):
            named("small").changed([bad])
    for bad in ("steps", "steps=ten", "stepz=1", "steps=0"):
        with pytest.raises(InputError, match="step"):
            named("small").changed([bad])
    with pytest.raises(InputError, match="released"):
        named("nyu")


def test_the_numbers_of_the_release() -> None:
    nyu, kitti = RECIPES["released"], RECIPES["released-kitti"]
    assert (nyu.batch, kitti.batch) == (16, 8)
    assert (nyu.peak_rate, kitti.peak_rate) == (2e-3, 1e-3)
    assert nyu.steps == 100 * 2974
    assert kitti.steps == 30 * 10737
    assert (nyu.clip_norm, kitti.clip_norm) == (1e-3, 1e-3)
    assert nyu.schedule.rate(nyu.steps - 1) == pytest.approx(nyu.peak_rate / 4, rel=0.1)
    assert KittiAugmentation(**kitti.augmentation_options).height == 288
    mean = build(kitti.model, **{**kitti.model_options, "width": 0.125}).config.image_mean
    assert mean[0] == pytest.approx(90.995 / 255)  # KITTI's own statistics
    assert named("nyuv2") is nyu
    assert named("kitti") is kitti


def test_the_numbers_of_the_paper() -> None:
    nyu, kitti, ablation = (RECIPES[name] for name in ("paper", "paper-kitti", "paper-ablation"))
    assert {nyu.clip_norm, kitti.clip_norm, ablation.clip_norm} == {0.1}
    assert (nyu.batch, nyu.peak_rate, nyu.steps) == (16, 2e-3, 300_000)
    assert (kitti.batch, kitti.peak_rate, kitti.steps) == (8, 1e-3, 300_000)
    assert nyu.schedule.rate(nyu.steps - 1) == pytest.approx(nyu.peak_rate / 4, rel=1e-3)
    augmentation = KittiAugmentation(**kitti.augmentation_options)
    assert (augmentation.height, augmentation.width) == (256, 1216)
    assert ablation.steps == nyu.steps / 2
    assert all(recipe.skip_after >= recipe.steps for recipe in (nyu, kitti, ablation))


def test_the_dial_keeps_the_shape_of_a_run() -> None:
    short = Recipe().scaled(0.01)
    assert short.steps == 2974
    assert short.batch == 2
    assert short.average_from / short.steps == pytest.approx(0.1, rel=0.01)
    assert (1 - short.average_decay) * short.steps == pytest.approx((1 - 0.99996) * 297_400, rel=0.01)
    assert Recipe().scaled(1.0) == Recipe()


@pytest.mark.parametrize(
    ("setting", "kept"), [("freeze_statistics", ""), ("freeze_encoder_statistics", ".encoder.")]
)
def test_kept_statistics_do_not_move_and_all_else_learns(setting: str, kept: str) -> None:
    torch.manual_seed(0)
    other = [] if setting == "freeze_encoder_statistics" else ["freeze_encoder_statistics=no"]
    model = build("small", width=0.25)
    learner = Learner(model, named("small").changed([f"{setting}=yes", *other])).train()
    before = {name: tensor.clone() for name, tensor in model.named_buffers() if "running" in name}
    depth = 2 + torch.rand(2, 1, 64, 64)
    sparse = depth * (torch.rand(2, 1, 64, 64) < 0.1)
    camera = torch.tensor([[60.0, 0, 32], [0, 60.0, 32], [0, 0, 1]]).expand(2, 3, 3)
    learner(torch.rand(2, 3, 64, 64), sparse, camera, depth)["loss"].backward()
    for name, tensor in model.named_buffers():
        if name in before:
            assert torch.equal(tensor, before[name]) == (kept in name), name
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_tiny_numbers_are_zero_while_training_and_only_then() -> None:
    from gbpn.train.loop import _tiny_numbers_as_zero

    tiny = torch.full((4,), 1e-30)
    assert (tiny * 1e-10 > 0).all()
    with _tiny_numbers_as_zero():
        assert not (tiny * 1e-10 > 0).any()
        assert (tiny * 1e-7 > 0).all()
    assert (tiny * 1e-10 > 0).all()
