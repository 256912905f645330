"""A step of training, its validation and the calibration of sigma, on another device than the frames."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from test_runs import pool

from gbpn import build
from gbpn.datasets import open_dataset
from gbpn.datasets.training_view import collate
from gbpn.sample import Sample
from gbpn.sensors.sampling import sparsify
from gbpn.train.learner import Learner
from gbpn.train.recipe import named
from gbpn.train.sigma_calibration import calibrate
from gbpn.train.validation import validate

__all__ = ["pool"]

pytest.importorskip("lightning_fabric", reason="training needs gbpn[train]")


def test_a_step_of_learning(second_device: str, pool: Path) -> None:
    frames = open_dataset("pool", str(pool), "all")
    samples = [sparsify(_corner(frames.load(i)), "points", np.random.default_rng(i)) for i in range(2)]
    batch = collate(samples)
    losses, gradients = [], []
    for device in (second_device, "cpu"):
        torch.manual_seed(0)
        model = build("small", width=0.25, iterations=(1,)).to(device)
        learner = Learner(model, named("small").changed(["imagenet=no"])).train()
        here = batch.to(device)
        loss = learner(here.image, here.sparse, here.intrinsics, here.target, ("0", "1"))["loss"]
        loss.backward()
        losses.append(loss.item())
        gradients.append({name: x.grad.cpu() for name, x in model.named_parameters() if x.grad is not None})
        torch.optim.AdamW(model.parameters()).step()
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert gradients[0].keys() == gradients[1].keys()
    for name, wanted in gradients[1].items():
        torch.testing.assert_close(
            gradients[0][name], wanted, rtol=2e-2, atol=1e-4, msg=f"{name}: {{}}".format
        )


def _corner(sample: Sample) -> Sample:
    maps = {name: getattr(sample, name)[..., 24:56, :32].clone() for name in ("image", "sparse", "target")}
    return replace(sample, **maps)


def test_judging_and_calibrating(second_device: str, pool: Path, tmp_path: Path) -> None:
    frames = open_dataset("pool", str(pool), "all")
    recipe = named("small").changed(["validation_limit=2"])
    found = []
    for device in (second_device, "cpu"):
        torch.manual_seed(0)
        model = build("small", width=0.25).to(device).eval()
        found.append(
            (validate(model, frames, recipe, tmp_path / f"{device}.png"), calibrate(model, frames, 1))
        )
    (there, there_sigma), (here, here_sigma) = found
    assert there == pytest.approx(here, rel=1e-3)
    np.testing.assert_allclose(there_sigma.knots, here_sigma.knots, rtol=1e-2, atol=1e-2)
    assert (tmp_path / "cpu.png").is_file()
