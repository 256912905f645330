"""Absolute sentences of the documentation that no other test holds."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
import torch

from fields import directed_field
from gbpn import infer
from gbpn.config import CONFIGS, ModelConfig, named
from gbpn.kernels import backends
from gbpn.network import ChannelLayout


@pytest.mark.skipif(not backends.COMPILED, reason="needs the compiled module gbpn._native")
def test_the_compiled_module_does_not_link_against_torch() -> None:
    """docs/architecture.md: it serves every torch version."""
    content = Path(backends.native().__file__).read_bytes()
    for library in (b"libtorch", b"libc10", b"_ZN3c10", b"_ZN2at"):
        assert library not in content, library


@pytest.mark.parametrize("name", CONFIGS)
def test_one_dial_scales_every_width(name: str) -> None:
    """docs/model.md: `width=2` doubles whatever is a number of channels of the network."""
    config = named(name)
    doubled = config.overridden({"width": 2.0})
    widths = [field.name for field in fields(ModelConfig) if "width" in field.name] + ["detail", "prior_head"]
    assert len(widths) == 7
    for field in fields(ModelConfig):
        before, after = getattr(config, field.name), getattr(doubled, field.name)
        if field.name in widths:
            wanted = tuple(2 * one for one in before) if isinstance(before, tuple) else 2 * before
            assert after == wanted, field.name
        else:
            assert after == before, field.name


@pytest.mark.parametrize("name", CONFIGS)
def test_there_are_three_to_six_heads(name: str) -> None:
    heads = list(ChannelLayout.of(named(name), 0).channels)
    assert heads[:3] == ["weight", "difference", "damping"]
    assert len(heads) <= 6


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_information_without_precision_never_occurs(backend: str) -> None:
    """docs/conventions.md; in beliefs and messages, after any number of iterations, where edges are cut."""
    if backend == "cpu" and not backends.COMPILED:
        pytest.skip("needs the compiled module gbpn._native")
    field = directed_field(7, 9, measured=0.0, iterations=3)
    field.local.weight[..., 4:] = 0  # nothing reaches the right half but by learned edges
    assert field.nonlocal_ is not None
    field.nonlocal_.weight[..., 6:] = 0
    for iterations in (1, 3):
        answer = infer(field, iterations=iterations, backend=backend)
        for gaussian in (answer.belief, answer.messages.local, answer.messages.nonlocal_):
            unknown = gaussian.precision == 0
            assert not gaussian.information[unknown].any()
            assert torch.equal(gaussian.mean.isnan(), unknown)
        assert bool((answer.belief.precision == 0).any())
