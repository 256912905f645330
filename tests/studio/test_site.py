"""`gbpn studio --static` refuses what files cannot obey, before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gbpn.cli import app
from gbpn.errors import InputError


@pytest.mark.parametrize(
    "option",
    [["--port", "9000"], ["--host", "::1"], ["--no-browser"], ["--solver", "exact"], ["--keep-measured"]],
)
def test_options_of_a_server_are_refused(option: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["studio", "--static", str(tmp_path / "site"), *option])
    assert isinstance(done.exception, InputError)
    assert option[0] in str(done.exception)
    assert not (tmp_path / "site").exists()
