"""Models of the paper's text: what the switches of the configuration change in a whole model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_model import TINY, on_meta, scene

import gbpn
from gbpn.config import CONFIGS, PAPER_TEXT, ModelConfig, named
from gbpn.errors import InputError
from gbpn.export import export
from gbpn.gbp import Scheme
from gbpn.model.cost import messages, multiply_adds, parameters
from gbpn.model.pipeline import SparseDepth, StageResult
from gbpn.train.recipe import RECIPES

SWITCHES = ("damped", "edge_sets", "far_messages", "second_start")


def tiny(**changes: Any) -> gbpn.GBPN:
    """A small model of random weights, whose heads say something different everywhere."""
    torch.manual_seed(0)
    model = gbpn.build("gbpn-2-paper", **TINY, **changes).eval()
    assert isinstance(model, gbpn.GBPN)
    for name, parameter in model.named_parameters():
        if "heads" in name and name.endswith(("weight", "bias")):
            torch.nn.init.normal_(parameter, std=0.05)
    return model


def stages(model: gbpn.GBPN, **switches: Any) -> list[StageResult]:
    image, sparse, _ = scene(64, 64)
    pipeline = model.pipeline(**switches)
    with torch.no_grad():
        return list(pipeline.stages(pipeline.encode(image), SparseDepth(depth=sparse)))


def test_sizes_of_the_paper() -> None:
    two, one = on_meta("gbpn-2-paper"), on_meta("gbpn-1-paper")
    assert parameters(two) == 39_181_710  # 39.03 M in its table
    assert sum(multiply_adds(two, 256, 320).values()) == pytest.approx(62.58e9, rel=0.01)
    assert parameters(one) == 14_784_084
    assert messages(named("gbpn-2-paper"), 1, 1) == 13 * (8 + 12)
    assert messages(named("gbpn-2"), 1, 1) == 13 * (12 + 12)


def test_every_switch_of_the_text_has_a_default_of_the_release() -> None:
    released = ModelConfig()
    assert set(PAPER_TEXT) - {"heads", "head_width", "attended"} == set(SWITCHES)
    for name, value in PAPER_TEXT.items():
        assert getattr(named("gbpn-2-paper"), name) == getattr(named("gbpn-1-paper"), name) == value
        assert getattr(released, name) != value
    older = {k: v for k, v in released.as_dict().items() if k not in PAPER_TEXT}
    assert ModelConfig.from_dict(older) == released


@pytest.mark.parametrize("name", SWITCHES)
def test_each_switch_reaches_the_answer(name: str) -> None:
    model, other = tiny(), tiny(**{name: getattr(ModelConfig(), name)})
    last, its = stages(model)[-1].distribution, stages(other)[-1].distribution
    assert not torch.equal(last.mean, its.mean)


def test_the_second_stage_starts_from_nothing() -> None:
    model = tiny()
    second = stages(model)[1]
    anew = gbpn.infer(
        second.field,
        iterations=model.config.iterations[1],
        nonlocal_steps=model.config.nonlocal_steps,
        scheme=Scheme.of(model.config),
    )
    torch.testing.assert_close(second.inference.belief.mean, anew.belief.mean)


def test_the_second_stage_attends_to_the_encoder() -> None:
    model, image = tiny(), scene(64, 64)[0]
    encoding = model.pipeline().encode(image)
    seen: list[torch.Tensor] = []
    model.first.encoder.register_forward_hook(lambda _, __, out: seen.extend(out))
    encoding = model.pipeline().encode(image)
    assert all(a is b for a, b in zip(encoding.parameters.features, seen, strict=True))
    with pytest.raises(InputError, match="attended"):
        ModelConfig(attended="encoder", second_stage="refine")


def test_what_the_text_asks_for_is_not_exported(tmp_path) -> None:
    pytest.importorskip("onnx")
    with pytest.raises(InputError, match="damped='always'"):
        export(tiny(), tmp_path)


def test_recipes_of_the_paper_build_the_text() -> None:
    for name in ("paper", "paper-kitti", "paper-ablation"):
        recipe = RECIPES[name]
        config = CONFIGS[recipe.model].overridden(recipe.model_options)
        assert all(getattr(config, field) == value for field, value in PAPER_TEXT.items())
    assert RECIPES["released"].model == "gbpn-2"
