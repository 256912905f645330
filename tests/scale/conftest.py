"""A few small frames as files, a manifest and tar shards; an untrained model; a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hostile_bucket import s3_server
from small_frames import contents, write_frames
from typer.testing import CliRunner

import gbpn
from gbpn.cli import app
from gbpn.distribution import SigmaCalibration
from gbpn.how import How
from gbpn.jobs.sources import Sensor
from gbpn.scale.instructions import Instructions
from gbpn.weights.files import save

pytest.importorskip("pyarrow", reason="needs pip install gbpn[scale]")


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    model = gbpn.build("small-2", width=0.5)
    model.calibration = SigmaCalibration(knots=(-5.0, 5.0), log_std=(0.0, -3.0))
    return save(model, tmp_path_factory.mktemp("weights") / "thin.safetensors")


@pytest.fixture(scope="session")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_frames(tmp_path_factory.mktemp("frames"))


@pytest.fixture(scope="session")
def bucket() -> Iterator[int]:
    """The port of an S3 on this machine with a bucket `frames`."""
    pytest.importorskip("moto", reason="needs pip install gbpn[dev]")
    with s3_server() as port:
        yield port


@pytest.fixture
def instructions(weights: Path) -> Instructions:
    return Instructions(weights=str(weights), how=How(device="cpu"), sensor=Sensor(scale=1000.0))


@pytest.fixture(scope="session")
def plain(frames: Path, weights: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What `gbpn complete` writes."""
    out = tmp_path_factory.mktemp("plain") / "out"
    words = ["complete", str(frames / "color"), str(frames / "depth"), "--scale", "1000", "-o", str(out)]
    answer = CliRunner().invoke(app, [*words, "--weights", str(weights), "--device", "cpu"])
    assert answer.exit_code == 0, answer.output
    return contents(out)
