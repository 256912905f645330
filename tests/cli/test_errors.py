"""An expected error is one message and exit code 2, whatever brackets it holds."""

from __future__ import annotations

import pytest

from gbpn import cli
from gbpn.errors import BackendError


@pytest.mark.parametrize(
    "text", ["pip install gbpn[data]", "expected ROOT[/raw]/<date>", "got [1, 2] and [b]"]
)
def test_brackets_of_a_message_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    def fail() -> None:
        raise BackendError(text)

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert text in capsys.readouterr().err
