"""Where no frame can be evaluated, the command says why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.errors import GbpnError


def test_a_folder_without_its_scale(tmp_path: Path) -> None:
    for folder in ("rgb", "sparse", "gt"):
        (tmp_path / folder).mkdir()
        pixels = np.full((40, 48, 3), 9, np.uint8) if folder == "rgb" else np.full((40, 48), 2000, np.uint16)
        Image.fromarray(pixels).save(tmp_path / folder / "a.png")
    (tmp_path / "intrinsics.txt").write_text("40 40 24 20")
    command = [
        "eval",
        "folder",
        "--data",
        str(tmp_path),
        "-o",
        str(tmp_path / "report"),
        "--method",
        "nearest",
    ]
    with pytest.raises(GbpnError, match=r"no frame could be evaluated.*integers without a unit"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert (tmp_path / "report" / "frames.jsonl").is_file()
