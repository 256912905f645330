"""Weights of a smaller model in a larger one."""

from __future__ import annotations

import pytest
import torch

from gbpn import build
from gbpn.config import CONFIGS
from gbpn.model.models import GBPN, from_config
from gbpn.network import ChannelLayout
from gbpn.network.density import Response
from gbpn.train.growth import grown

PARTS = [
    {"density": 4},
    {"prior": True, "density": 4},
    {"iteration_corrections": True},
    {"refine_units": (1, 0, 1, 1)},
]


def larger(model: GBPN, **options) -> GBPN:
    out = from_config(model.config.overridden(options))
    out.load_state_dict(
        {**out.state_dict(), **grown(model.state_dict(), out.state_dict(), model.config, out.config)}
    )
    return out.eval()


@pytest.fixture(scope="module")
def trained() -> GBPN:
    """Two stages whose weights are not those of a start."""
    torch.manual_seed(2)
    model = build("small-2", width=0.25).eval()
    for name, parameter in model.named_parameters():
        if name.startswith(("first.heads", "second.last")):
            torch.nn.init.normal_(parameter, std=0.05)
    return model


@pytest.mark.parametrize("options", PARTS)
def test_a_model_with_new_parts_answers_as_before(trained, options) -> None:
    image, sparse = torch.rand(1, 3, 64, 96), torch.zeros(1, 1, 64, 96)
    sparse[..., ::7, ::9] = 1 + torch.rand(1, 1, 10, 11)
    more = larger(trained, **options)
    with torch.inference_mode():
        one, other = trained(image, sparse), more(image, sparse)
    torch.testing.assert_close(other.mean, one.mean, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(other.confidence_logit, one.confidence_logit, rtol=1e-6, atol=1e-6)


def test_learned_edges_come_in_weakly(trained) -> None:
    before = larger(trained, density=4)
    more = larger(before, nonlocal_edges=3, start={"learned": 0.005, "offset": 8.0})
    with torch.inference_mode():
        drawing = more.pipeline().encode(torch.rand(1, 3, 64, 96)).parameters
        old = trained.pipeline().encode(torch.rand(1, 3, 64, 96)).parameters
    assert drawing.nonlocal_.offset.shape == (1, 1, 3, 2, 64, 96)
    distance = drawing.nonlocal_.offset.square().sum(3).sqrt()
    torch.testing.assert_close(distance, torch.full_like(distance, 8.0))
    assert old.nonlocal_ is None
    constant = more.first.response.constant
    assert constant[Response._fields.index("far")] < 0
    # the maps that were there before are where they belong
    names = ChannelLayout.of(more.config, 0).labels
    kept = [names.index(label) for label in ChannelLayout.of(trained.config, 0).labels]
    assert torch.equal(more.second.last.bias[kept], trained.second.last.bias)
    assert torch.equal(more.first.heads.detail.last.weight[kept], trained.first.heads.detail.last.weight)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_channel_has_a_name_of_its_own(name: str) -> None:
    config = CONFIGS[name]
    if config.solver != "gbp":
        pytest.skip("no field")
    for stage in range(config.stages):
        layout = ChannelLayout.of(config, stage)
        assert len(layout.labels) == sum(layout.channels.values())
        assert len(set(layout.labels)) == len(layout.labels)


def test_what_does_not_fit_is_left_for_the_error() -> None:
    one, other = build("small", width=0.25), build("small", width=0.5, prior=True)
    state = grown(one.state_dict(), other.state_dict(), one.config, other.config)
    with pytest.raises(RuntimeError, match="size mismatch"):
        other.load_state_dict(state, strict=False)
