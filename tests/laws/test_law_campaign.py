"""A round of all laws with a fixed seed; `python -m tests.laws --minutes N --seed S` runs longer ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif("GBPN_ALL_TESTS" not in os.environ, reason="half a minute; GBPN_ALL_TESTS=1 runs it")
def test_every_law_holds_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from tests.laws.__main__ import campaign
    from tests.laws.laws import LAWS

    counts, fell = campaign(1, 10.0, len(LAWS))
    assert not fell
    assert set(counts) == set(LAWS)
