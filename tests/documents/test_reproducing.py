"""docs/reproducing.md: every file, name, test, suite and recipe that its rows give is there."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from gbpn.cli import app
from gbpn.cli.eval import KINDS
from gbpn.config import CONFIGS
from gbpn.evaluate.suites import SUITES
from gbpn.train.recipe import RECIPES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reproducing.md"
ROW = re.compile(r"^\| (\d+) \|(.*)\|$", flags=re.MULTILINE)
TICKED = re.compile(r"`([^`]+)`")
ROWS = {
    int(number): [cell.strip() for cell in rest.split(" | ")]
    for number, rest in ROW.findall(PAGE.read_text())
}


def names_of(path: Path) -> set[str]:
    """Top-level functions, classes and constants, and methods as names of their own."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def check_place(place: str, separator: str, root: Path) -> None:
    file, _, name = place.partition(separator)
    path = root / file
    assert path.is_file(), place
    assert not name or name in names_of(path), place


def check_command(text: str) -> None:
    words = text.split()
    assert words[0] == "gbpn"
    assert words[1] in ("eval", "train"), text
    if words[1] == "eval":
        assert words[2] in KINDS or "--suite paper" in text, text
    else:
        assert words[2] in (*RECIPES, "ablation"), text
    group: Any = get_command(app)
    known = {name for one in group.commands[words[1]].params for name in one.opts}
    for word in words:
        assert not word.startswith("-") or word in known, f"{text}: no option {word}"
    options = dict(itertools.pairwise(words))
    if "--suite" in options:
        assert options["--suite"] in (*SUITES, "paper"), text
    if options.get("--set", "").startswith("model="):
        assert options["--set"].removeprefix("model=") in CONFIGS, text


def test_every_row_has_a_number_of_its_own() -> None:
    assert sorted(ROWS) == list(range(1, len(ROWS) + 1))
    assert len(ROWS) == len(ROW.findall(PAGE.read_text()))
    assert len(ROWS) >= 89


@pytest.mark.parametrize("number", ROWS)
def test_what_a_row_names_is_there(number: int) -> None:
    what, code, held, difference = ROWS[number]
    assert what
    assert difference
    (place,) = TICKED.findall(code)
    check_place(place, ":", ROOT / "src")
    (place,) = TICKED.findall(held)
    if place.startswith("tests/"):
        check_place(place, "::", ROOT)
    else:
        check_command(place)


def test_the_text_around_the_rows_names_what_is_there() -> None:
    for place in TICKED.findall(ROW.sub("", PAGE.read_text())):
        if place.startswith("tests/"):
            check_place(place, "::", ROOT)
        elif place.startswith("gbpn/"):
            check_place(place, ":", ROOT / "src")
        elif place.startswith("gbpn eval"):
            check_command(place)
