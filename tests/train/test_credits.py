"""Weights trained on drawn worlds name whose models these are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from gbpn.train.credits import write_credits


@pytest.mark.parametrize("root", ["", "worlds", "worlds/rooms"])
def test_credits_of_all_scenes_go_along(tmp_path: Path, root: str) -> None:
    """Whether the pool, one dataset or one scene was given."""
    for scene in ("rooms", "streets"):
        (tmp_path / "worlds" / scene).mkdir(parents=True)
        (tmp_path / "worlds" / scene / "CREDITS.md").write_text(f"# Credits of {scene}\n\nSofa, A. Maker\n")
    out = tmp_path / "run"
    written = write_credits(tmp_path / root, out)
    assert written == out / "CREDITS.md"
    text = written.read_text()
    assert "Credits of rooms" in text
    assert ("Credits of streets" in text) == (root != "worlds/rooms")


def test_measured_data_leave_none(tmp_path: Path) -> None:
    assert write_credits(tmp_path, tmp_path / "run") is None
    assert not (tmp_path / "run").exists()
