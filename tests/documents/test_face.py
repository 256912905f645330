"""The first screen: short, light, about the weights that are shipped; and the notebooks run."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from face import badges, film, hero, notebooks, state, tables  # noqa: E402

RENEW = "run python scripts/draw_face.py --measure FRAMES (CONTRIBUTING.md, new weights)"
IMAGES = ROOT / "docs" / "images"


def test_the_readme_is_short_and_begins_with_a_picture() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert any("hero.webp" in line for line in lines[:10])


@pytest.mark.parametrize(("name", "most"), [("hero", hero.LARGEST), ("film", film.LARGEST)])
def test_pictures_are_light(name: str, most: int) -> None:
    path = IMAGES / f"{name}.webp"
    assert path.stat().st_size <= most
    with Image.open(path) as picture:
        assert picture.width >= 1200
        assert getattr(picture, "n_frames", 1) == (
            1 if name == "hero" else len(film.COUNTS) * (film.BETWEEN + 1) - film.BETWEEN
        )


@pytest.mark.parametrize("name", ["face.json", "points.json"])
def test_numbers_are_those_of_the_shipped_weights(name: str) -> None:
    facts = json.loads((ROOT / "docs" / name).read_text(encoding="utf-8"))
    assert facts["weights"] == state.fingerprint(), RENEW


def test_tables_say_what_was_measured() -> None:
    facts, points = (
        json.loads((ROOT / "docs" / name).read_text(encoding="utf-8"))
        for name in ("face.json", "points.json")
    )
    parts = tables.blocks(facts, points)
    seen = set()
    for name in tables.PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        seen |= set(re.findall(r"<!-- end of (\w+) -->", text))
        assert tables.filled(text, parts) == text, f"{name}: {RENEW}"
    assert seen == set(parts)


def test_badges_say_what_the_files_say() -> None:
    for name, parts in badges.badges().items():
        assert (badges.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == badges.svg(*parts), RENEW


@pytest.mark.parametrize("path", sorted(notebooks.FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    done = notebooks.run(path, tmp_path)
    code = [cell for cell in done.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.execution_count for cell in code)
    assert not any(output.get("name") == "stderr" for cell in code for output in cell.outputs)
