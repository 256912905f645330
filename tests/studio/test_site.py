"""What page and site agree on without a browser: options that files cannot obey, and the size of photos."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.engine.resizing import working_scale
from gbpn.errors import InputError
from gbpn.studio.limits import Limits
from gbpn.studio.material import from_upload


@pytest.mark.parametrize(
    "option",
    [["--port", "9000"], ["--host", "::1"], ["--no-browser"], ["--solver", "exact"], ["--keep-measured"]],
)
def test_options_of_a_server_are_refused(option: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["studio", "--static", str(tmp_path / "site"), *option])
    assert isinstance(done.exception, InputError)
    assert option[0] in str(done.exception)
    assert not (tmp_path / "site").exists()


def test_photos_are_completed_at_the_size_of_the_command_line() -> None:
    """Whatever their pixels; points and camera go along."""
    photo = io.BytesIO()
    Image.fromarray(np.zeros((480, 640, 3), np.uint8)).save(photo, "PNG")
    points, camera = b"0,0,2\n639,479,3\n", [520.0, 520.0, 319.5, 239.5]
    found = from_upload("a.png", photo.getvalue(), points, ".csv", None, camera, Limits(), 260.0)
    assert found.image.shape == (240, 320, 3)
    assert working_scale(480, 640, 520.0, 2, 260.0) == 0.5
    np.testing.assert_allclose(found.points, [[0, 0, 2], [319, 239, 3]])
    np.testing.assert_allclose(found.intrinsics, (260, 260, 159.5, 119.5))
