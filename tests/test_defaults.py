"""Defaults are promises: none changes unnoticed (`scripts/approve_goldens.py defaults` approves a change)."""

from __future__ import annotations

import json

import pytest

import goldens
from approved_defaults import defaults

APPROVED = json.loads((goldens.COMPACT / "defaults.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return defaults()


@pytest.mark.parametrize("room", sorted({name.split(".")[1] for name in APPROVED}))
def test_defaults_are_the_approved_ones(room: str, found: dict[str, str]) -> None:
    assert _of(found, room) == _of(APPROVED, room)


def test_no_room_is_left_out(found: dict[str, str]) -> None:
    assert {name.split(".")[1] for name in found} == {name.split(".")[1] for name in APPROVED}


def _of(all_of_them: dict[str, str], room: str) -> dict[str, str]:
    return {name: value for name, value in all_of_them.items() if name.split(".")[1] == room}
