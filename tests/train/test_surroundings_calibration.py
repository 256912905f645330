"""`calibrate` from end to end: what depends on the distance to measurements is found, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gbpn
from gbpn.distribution import SigmaCalibration
from gbpn.model.models import GBPN
from gbpn.model.pipeline import SparseDepth
from gbpn.sample import Sample
from gbpn.sensors.sampling import sparsify
from gbpn.train import surroundings_calibration
from gbpn.train.sigma_calibration import calibrate

HEIGHT, WIDTH = 32, 48


class Frames:
    """Grey pictures of made-up depth: one slope per frame, or noise of each pixel's own."""

    def __init__(self, count: int, kind: str) -> None:
        self.names = [str(number) for number in range(count)]
        self.kind = kind

    def __len__(self) -> int:
        return len(self.names)

    def load(self, index: int) -> Sample:
        rng = np.random.default_rng([7, index])
        log = rng.normal(0, 0.1, (HEIGHT, WIDTH))
        if self.kind == "slope":
            angle, (rows, columns) = rng.uniform(0, 2 * np.pi), np.mgrid[:HEIGHT, :WIDTH]
            log = 0.04 * (np.cos(angle) * (columns - WIDTH / 2) + np.sin(angle) * (rows - HEIGHT / 2))
        depth = torch.from_numpy((3 * np.exp(log)).astype(np.float32))[None]
        return Sample(
            image=torch.full((3, HEIGHT, WIDTH), 0.5),
            sparse=torch.zeros_like(depth),
            intrinsics=torch.tensor([[40.0, 0, WIDTH / 2], [0, 40.0, HEIGHT / 2], [0, 0, 1]]),
            target=depth,
            name=self.names[index],
        )

    frame = load


@pytest.fixture(scope="module")
def model() -> GBPN:
    torch.manual_seed(0)
    model = gbpn.build("small", width=0.25).eval()
    assert isinstance(model, GBPN)
    return model


def calibrated(model: GBPN, frames: Frames, monkeypatch: pytest.MonkeyPatch) -> SigmaCalibration:
    monkeypatch.setattr(surroundings_calibration, "_WAYS", 6)
    monkeypatch.setattr(surroundings_calibration, "_STEPS", 400)
    return calibrate(model, frames, len(frames))


def growth(model: GBPN, calibration: SigmaCalibration, frame: Sample) -> float:
    """How many times wider σ is made far from 30 points in a corner than next to them."""
    model.calibration = calibration
    measured = sparsify(frame, "points:120+corner:0.5", np.random.default_rng(1))
    pipeline = model.pipeline(mirror=False)
    encoding = pipeline.encode(measured.image[None], measured.intrinsics[None])
    answer = pipeline.answer(encoding, SparseDepth(depth=measured.sparse[None]))
    model.calibration = None
    assert answer.doubt is not None
    there = measured.sparse[0] > 0
    rows, columns = torch.nonzero(there, as_tuple=True)
    grid = torch.stack(torch.meshgrid(torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij"), -1).float()
    distance = torch.cdist(grid.reshape(-1, 2), torch.stack([rows, columns], 1).float()).amin(1)
    log = answer.doubt.log().flatten()
    return float((log[distance >= 14].mean() - log[(distance > 0) & (distance <= 3)].mean()).exp())


def test_a_planted_dependence_on_distance_is_found(model: GBPN, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slope that the picture does not show, errors grow with the distance."""
    found = calibrated(model, Frames(20, "slope"), monkeypatch)
    assert found.surroundings
    assert growth(model, found, Frames(24, "slope").load(23)) > 1.5


def test_a_set_without_one_is_left_alone(model: GBPN, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of each pixel's own is as large everywhere."""
    found = calibrated(model, Frames(20, "noise"), monkeypatch)
    assert found.surroundings
    assert 0.8 < growth(model, found, Frames(24, "noise").load(23)) < 1.25


def test_few_frames_fit_none_of_it(model: GBPN, monkeypatch: pytest.MonkeyPatch) -> None:
    assert calibrated(model, Frames(19, "slope"), monkeypatch).surroundings == ()
