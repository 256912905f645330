"""Exported networks behind the face of a model, on a network written down by hand: exporters take long."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gbpn
from gbpn.errors import InputError
from gbpn.how import How
from gbpn.jobs.opening import open_completer
from gbpn.predict.exported import ExportedModel, _of_one_size
from gbpn.runtime import DepthCompleter
from handmade_export import CALIBRATION, write_folder

pytest.importorskip("onnx", reason="needs pip install gbpn[onnx]")
pytest.importorskip("onnxruntime", reason="needs pip install onnxruntime")

HEIGHT, WIDTH = 40, 56


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("engine") / "one")


def frame(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Image, sparse depth with enough points to check σ by, camera."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    depth = 2 + np.linspace(0, 2, WIDTH)[None] + 0.05 * rng.standard_normal((HEIGHT, WIDTH))
    sparse = np.where(rng.random((HEIGHT, WIDTH)) < 0.1, depth, 0).astype(np.float32)
    return image, sparse, np.array([[50, 0, 28], [0, 50, 20], [0, 0, 1]], np.float32)


def tensors(*seeds: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The frames as one batch."""
    frames = [frame(seed) for seed in seeds]
    images = torch.stack([torch.from_numpy(image).permute(2, 0, 1) / 255 for image, _, _ in frames])
    sparse = torch.stack([torch.from_numpy(depth)[None] for _, depth, _ in frames])
    return images, sparse, torch.stack([torch.from_numpy(camera) for _, _, camera in frames])


def test_answers_and_checked_sigmas_are_the_runtimes(folder: Path) -> None:
    model = ExportedModel(folder, engine="onnxruntime")
    answer, direct = model.complete(*tensors(0)), DepthCompleter(folder, threads=1)(*frame())
    assert direct.widening is not None
    np.testing.assert_allclose(answer.mean[0, 0].numpy(), direct.depth, rtol=1e-5)
    np.testing.assert_allclose(answer.std[0, 0].numpy(), direct.std, rtol=1e-4)
    np.testing.assert_allclose(answer.confidence_logit[0, 0].numpy(), direct.confidence_logit, atol=1e-4)
    np.testing.assert_allclose(answer.belief_precision[0, 0].numpy(), direct.belief_precision, rtol=1e-5)
    assert answer.widening is not None
    spread, noise = answer.widening
    assert (float(spread), float(noise)) == pytest.approx(direct.widening, rel=1e-5)
    completed = gbpn.DepthCompleter(model, outliers="keep")(*frame())
    np.testing.assert_allclose(completed.depth, direct.depth, rtol=1e-5)
    np.testing.assert_allclose(completed.std, direct.std, rtol=1e-4)


def test_images_of_a_batch_are_answered_in_their_order(folder: Path) -> None:
    model = ExportedModel(folder, engine="onnxruntime")
    both = model.complete(*tensors(0, 1))
    for number in (0, 1):
        alone = model.complete(*tensors(number))
        assert torch.equal(both.mean[number], alone.mean[0])
        assert torch.equal(both.confidence_logit[number], alone.confidence_logit[0])


def test_what_the_folder_knows_is_handed_on(folder: Path, tmp_path: Path) -> None:
    model = ExportedModel(folder, engine="onnxruntime")
    assert model.card == {"drawn by": "hand"}
    assert model.config == DepthCompleter(folder).config
    assert model.calibration == CALIBRATION
    plain = ExportedModel(write_folder(tmp_path / "plain", calibration=None), engine="onnxruntime")
    assert plain.calibration is None
    answer = plain.complete(*tensors(0))
    assert not answer.calibrated
    assert answer.widening is None


def test_records_of_a_batch_tell_engines_and_files_apart(folder: Path, tmp_path: Path) -> None:
    """By the state, in which other models have their weights."""

    def state(place: Path, **settings: Any) -> list[int]:
        model = ExportedModel(place, engine="onnxruntime", **settings)
        (values,) = model.state_dict().values()
        return list(values.tolist())

    other = write_folder(tmp_path / "other", seed=1)
    assert state(folder) == state(folder)
    assert state(folder) != state(other)
    if importlib.util.find_spec("openvino") is not None:
        assert ExportedModel(folder, engine="openvino").checksum.tolist() != state(folder)


def test_switches_that_it_has_not_are_refused_and_those_it_has_are_taken(folder: Path) -> None:
    model = ExportedModel(folder, engine="onnxruntime", iterations=(5,))
    image, sparse, camera = tensors(0)
    trained = ExportedModel(folder, engine="onnxruntime").complete(image, sparse, camera)
    assert not torch.equal(model.complete(image, sparse, camera).mean, trained.mean)
    with pytest.raises(InputError, match="no solver: use"):
        model.complete(image, sparse, camera, solver="exact")
    for switch in ({"solver": "exact"}, {"iterations": (4,)}, {"mirror": "on"}, {"stream": 1}):
        with pytest.raises(InputError, match=f"it has no {next(iter(switch))}"):
            gbpn.DepthCompleter(model, **switch)
    with pytest.raises(InputError, match="needs intrinsics"):
        model.complete(image, sparse)


def opened(weights: Path, engine: str = "onnxruntime", **options: Any) -> gbpn.DepthCompleter:
    """By the words of the command line."""
    return open_completer(str(weights), How.of(engine=engine, **options))


def test_the_command_line_opens_a_folder_or_says_how_to_get_one(folder: Path, tmp_path: Path) -> None:
    completer = opened(folder)
    assert isinstance(completer.model, ExportedModel)
    assert completer.how.outliers == "drop"
    assert completer.how.iterations == (2,)
    assert opened(folder, iterations="3").how.iterations == (3,)
    direct = DepthCompleter(folder, threads=1)(*frame())
    np.testing.assert_allclose(completer(*frame()).depth, direct.depth, rtol=1e-5)
    for wrong, message in (
        ({"weights": tmp_path / "none"}, "gbpn export"),
        ({"device": "cuda"}, "on the CPU"),
        ({"solver": "exact"}, "on the CPU"),
        ({"iterations": "few"}, "above 0 such as 5"),
        ({"iterations": "1,2"}, "as many counts"),
        ({"engine": "other"}, "engine must be torch"),
    ):
        with pytest.raises(InputError, match=message):
            opened(**{"weights": folder, **wrong})


def test_a_card_for_one_size_only_loses_its_focal_length() -> None:
    card = {"name": "a", "trained_for": {"focal": 260.0, "points": [1, 500]}}
    assert _of_one_size(card) == {"name": "a", "trained_for": {"points": [1, 500]}}
    assert card["trained_for"] == {"focal": 260.0, "points": [1, 500]}  # the model's own stays
    assert _of_one_size({"name": "b"}) == {"name": "b", "trained_for": {}}
