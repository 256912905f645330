"""Exported folders for the runtime."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "export"))


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thin two-stage model for all sizes."""
    pytest.importorskip("onnxscript", reason="needs pip install gbpn[onnx]")
    from models import thin

    from gbpn.export import export

    folder = tmp_path_factory.mktemp("exported")
    export(thin("shallow"), folder)
    return folder
