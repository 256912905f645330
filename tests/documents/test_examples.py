"""The examples for robots, as far as they run without their hardware: conversions and loops."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gbpn

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NUMBERS = (60.0, 60.0, 28.0, 20.0)


def example(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def completer() -> gbpn.DepthCompleter:
    return gbpn.DepthCompleter(gbpn.build("small-2", width=0.5))


@pytest.fixture(scope="module")
def scene() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    depth = np.zeros((40, 56), np.float32)
    depth.reshape(-1)[rng.choice(depth.size, 30, replace=False)] = rng.uniform(1.9, 2.0, 30)
    return rng.integers(0, 256, (40, 56, 3), dtype=np.uint8), depth


def test_the_realsense_loop(completer, scene, capsys: pytest.CaptureFixture[str]) -> None:
    picture, depth = scene
    result = example("realsense").run(completer, [(picture, depth, NUMBERS, 0.1 * k) for k in range(3)])
    assert result is not None
    assert result.depth.shape == depth.shape
