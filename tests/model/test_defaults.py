"""Defaults are promises: none changes unnoticed (`scripts/approve_goldens.py defaults` approves a change)."""

from __future__ import annotations

import json

import pytest

from approved_defaults import PLACE, defaults

APPROVED = json.loads(PLACE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return defaults()


@pytest.mark.parametrize("room", sorted({name.split(".")[1] for name in APPROVED}))
def test_defaults_are_the_approved_ones(room: str, found: dict[str, str]) -> None:
    approved, there = _of(APPROVED, room), _of(found, room)
    assert {name: there[name] for name in approved if name in there} == {
        name: value for name, value in approved.items() if name in there
    }


def test_the_public_ones_are_all_approved(found: dict[str, str]) -> None:
    """Private constants come and go; only their values are held."""
    public = [{name for name in names if not _private(name)} for names in (found, APPROVED)]
    assert public[0] == public[1]


def test_no_room_is_left_out(found: dict[str, str]) -> None:
    assert {name.split(".")[1] for name in found} == {name.split(".")[1] for name in APPROVED}


def _private(name: str) -> bool:
    return name.rpartition(".")[2].startswith("_")


def _of(all_of_them: dict[str, str], room: str) -> dict[str, str]:
    return {name: value for name, value in all_of_them.items() if name.split(".")[1] == room}
