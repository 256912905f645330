"""A short soak; `python tests/soak.py` runs a long one."""

from __future__ import annotations

from pathlib import Path

import pytest

import soak


def test_a_batch_that_is_killed_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    verdict = soak.soak_batch(tmp_path, frames=40, kills=3, seed=0)
    assert verdict.kills > 0
    assert verdict.sound, verdict


def test_a_training_that_is_killed_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    pytest.importorskip("lightning_fabric", reason="training needs gbpn[train]")
    verdict = soak.soak_training(tmp_path, kills=2, seed=0, steps=12)
    assert verdict.kills > 0
    assert verdict.sound, verdict
