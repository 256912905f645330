"""Sweeps, learned edges, and KITTI's submission folder."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gbpn import NonLocalEdges, Sample
from gbpn.baselines import METHODS
from gbpn.distribution import stacked
from gbpn.errors import InputError
from gbpn.evaluate import handmade, propagation
from gbpn.evaluate.submission import check_submission, to_full_height, write_submission
from gbpn.gbp import infer


def sample(height: int = 24, width: int = 32, points: int = 30) -> Sample:
    generator = torch.Generator().manual_seed(0)
    sparse = torch.zeros(height * width)
    sparse[torch.randperm(height * width, generator=generator)[:points]] = 2.0
    sparse = sparse * (1 + torch.rand(height * width, generator=generator))
    return Sample(
        image=torch.rand(3, height, width, generator=generator),
        sparse=sparse.reshape(1, height, width),
        intrinsics=torch.tensor([[30.0, 0, 16], [0, 30, 12], [0, 0, 1]]),
        target=torch.full((1, height, width), 2.5),
        name="toys/0",
    )


def test_one_measurement_reaches_every_pixel_in_one_iteration() -> None:
    one = propagation.keep_measurements(sample(), 1)
    assert int((one.sparse > 0).sum()) == 1
    steps = propagation.steps(one, iterations=1)
    reached = [np.isfinite(step.mean).mean() for step in steps]
    assert reached == sorted(reached)
    assert 0 < reached[0] < 1
    assert reached[-1] == 1
    assert np.allclose(steps[-1].mean, float(one.sparse.max()), rtol=1e-5)  # no differences: one depth


def test_an_animation_has_all_its_frames() -> None:
    one = propagation.keep_measurements(sample(), 1)
    shots = propagation.frames(one, propagation.steps(one, iterations=1))
    with Image.open(io.BytesIO(propagation.gif(shots))) as animation:
        assert getattr(animation, "n_frames", 1) == len(shots) == 4
    with pytest.raises(InputError, match="at least one picture"):
        propagation.gif([])


def test_edges_are_drawn_where_they_lead() -> None:
    shape = (1, 2, 1, 24, 32)
    edges = NonLocalEdges(
        weight=torch.ones(shape),
        difference=torch.zeros(shape),
        offset=torch.tensor([4.0, -6.0]).view(1, 1, 1, 2, 1, 1).expand(1, 2, 1, 2, 24, 32),
        damping=torch.zeros(1, 2, 24, 32),
    )
    black = torch.zeros(3, 24, 32)
    picture = propagation.edges_picture(black, edges, [(10, 20)])
    assert picture.shape == (48, 64, 3)
    assert tuple(picture[21, 41]) == (230, 40, 40)  # the pixel itself, twice as large
    assert picture[21 + 8, 41 - 12, 1] == 255  # four rows below, six columns to the left
    with pytest.raises(InputError, match="outside the image"):
        propagation.edges_picture(black, edges, [(10, 40)])


def test_the_handmade_field_is_sound() -> None:
    field = handmade.field(sample())
    field.check()
    exact = handmade.diebel_thrun(sample())
    many = infer(field, iterations=100, reweighting=handmade.REWEIGHTING).belief.mean[0]
    plain = infer(field, iterations=100).belief.mean[0]
    # Belief propagation converges to the exact mean; reweighting only gets close sooner.
    assert float((plain - exact.mean).abs().max()) < 0.05
    assert float((many - exact.mean).abs().mean()) < 0.1
    empty = replace(sample(), sparse=torch.zeros(1, 24, 32))
    assert bool(handmade.gbp_handmade(empty).mean.isnan().all())
    assert bool(handmade.diebel_thrun(empty).mean.isnan().all())


class Street:
    """Two frames that are higher than what is evaluated."""

    def __init__(self) -> None:
        self.names = ["test/0000000000", "test/0000000001"]

    def __len__(self) -> int:
        return 2

    def frame(self, index: int) -> Sample:
        return replace(sample(30, 36), name=self.names[index])

    def load(self, index: int) -> Sample:
        whole = self.frame(index)
        parts = {k: getattr(whole, k)[:, 6:, 2:34] for k in ("image", "sparse", "target")}
        return replace(whole, **parts)


def by_nearest(samples, setting):
    return stacked([METHODS["nearest"](s) for s in samples])


def test_submission(tmp_path: Path) -> None:
    assert write_submission(Street(), by_nearest, tmp_path) == 2
    stored = np.asarray(Image.open(tmp_path / "0000000000.png"))
    assert stored.dtype == np.uint16
    assert stored.shape == (30, 36)
    wanted = METHODS["nearest"](Street().load(0)).mean[0, 0].numpy()
    assert np.array_equal(stored[6:, 2:34], np.floor(wanted * 256))  # truncated, as the benchmark's own files
    assert np.array_equal(stored[0, 2:34], stored[6, 2:34])


def test_an_incomplete_submission_is_refused(tmp_path: Path) -> None:
    write_submission(Street(), by_nearest, tmp_path)
    first, second = tmp_path / "0000000000.png", tmp_path / "0000000001.png"
    good = first.read_bytes()
    second.unlink()
    with pytest.raises(InputError, match=r"1 of 2 frames are missing, first 0000000001\.png"):
        check_submission(Street(), tmp_path)
    second.write_bytes(good)
    (tmp_path / "other.png").write_bytes(good)
    with pytest.raises(InputError, match="belong to no frame"):
        check_submission(Street(), tmp_path)
    (tmp_path / "other.png").unlink()
    for wrong, message in (
        (np.ones((30, 36), np.uint8), "16-bit"),
        (np.ones((24, 32), np.uint16), "wanted 30×36"),
        (np.zeros((30, 36), np.uint16), "1080 pixels are 0"),
    ):
        Image.fromarray(wrong).save(second)
        with pytest.raises(InputError, match=message):
            check_submission(Street(), tmp_path)


def test_a_hole_cannot_be_submitted(tmp_path: Path) -> None:
    def holes(samples, setting):
        answer = METHODS["nearest"](samples[0])
        answer.mean[0, 0, 3, 3] = torch.nan
        return answer

    with pytest.raises(InputError, match="some pixels have no depth"):
        write_submission(Street(), holes, tmp_path)


def test_crops_only_grow() -> None:
    with pytest.raises(InputError, match="larger than its frame"):
        to_full_height(torch.ones(1, 10, 10), (8, 12))
