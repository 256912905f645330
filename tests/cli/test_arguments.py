"""What is typed is looked at before torch is loaded; what an answer needs is all that is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbpn.cli.arguments import CHOICES, with_whole_points
from gbpn.errors import InputError
from gbpn.inputs.reading import as_camera
from gbpn.jobs.written import parse_intrinsics

_COUNT = """
import sys
from gbpn import cli
sys.argv = ["gbpn", *sys.argv[1:]]
try:
    cli.main()
except SystemExit:
    pass
print("LOADED", *({"torch", "torch._dynamo", "torch._inductor", "sympy"} & set(sys.modules)))
"""


def loaded(folder: Path, *words: str) -> tuple[set[str], str]:
    """Which of the heavy modules a command loads, and what it says."""
    run = subprocess.run(
        [sys.executable, "-c", _COUNT, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    *_, last = run.stdout.splitlines()
    assert last.startswith("LOADED"), run.stderr
    return set(last.split()[1:]), run.stdout + run.stderr


@pytest.fixture
def frame(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 255, (40, 56, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    depth = np.zeros((40, 56), np.uint16)
    depth[::7, ::5] = 2000
    Image.fromarray(depth).save(tmp_path / "depth.png")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["phto.png", "depth.png"], "phto.png: no such image; there is photo.png"),
        (["photo.png", "dept.png"], "dept.png: no such sparse depth; there is depth.png"),
        (["photo.png", "depth.png"], "--scale 1000"),
        (["photo.png", "depth.png", "--scale", "-1"], "depth scale must be positive"),
        (["photo.png"], "measurements are needed"),
        (["photo.png", "--points", "1,2"], "--points wants x,y,depth"),
        (["photo.png", "depth.png", "--extrinsics", "no.txt"], "no.txt: no such extrinsics"),
        (["photo.png", "depth.png", "--scale", "1000", "-o", "depth.png"], "-o wants a folder"),
        (["photo.png", "depth.png", "--focal-mm", "26", "--intrinsics", "1,2,3,4"], "not both"),
        (["photo.png", "depth.png", "--solver", "exakt"], "--solver wants gbp or exact; got 'exakt'"),
    ],
)
def test_a_slip_is_answered_without_torch(frame: Path, words: list[str], told: str) -> None:
    heavy, text = loaded(frame, "complete", *words)
    assert told in text
    assert not heavy


def test_an_answer_does_not_load_the_compiler_of_torch(frame: Path) -> None:
    heavy, text = loaded(frame, "complete", "photo.png", "--points", "26", "20", "1.2", "--focal-mm", "26")
    assert "measured  1 point, 1.20 m" in text
    assert heavy == {"torch"}


def test_three_numbers_after_points_are_one_measurement() -> None:
    words = ["complete", "a.png", "--points", "265", "235", "1.2", "--points", "1,", "2,", "3", "-o", "out"]
    assert with_whole_points(words) == [
        *["complete", "a.png", "--points", "265,235,1.2", "--points", "1,2,3", "-o", "out"]
    ]
    for left in (["--points", "/lidar"], ["--points", "1,2,3", "4", "5"], ["--", "--points", "1", "2", "3"]):
        assert with_whole_points(left) == left


def test_the_module_is_the_command(frame: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "gbpn", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("gbpn ")


def test_choices_are_those_that_the_whole_takes() -> None:
    from gbpn.measurements import outliers
    from gbpn.network.convolution import PRECISIONS
    from gbpn.scale.complete import ENGINES
    from gbpn.scale.instructions import PACKS

    assert set(CHOICES["--outliers"]) == {"auto", *outliers.CHOICES}
    assert set(CHOICES["--precision"]) == {"auto", *PRECISIONS}
    assert set(CHOICES["--distributed"]) == set(ENGINES)
    assert set(CHOICES["--pack"]) == set(PACKS)


@pytest.mark.parametrize("words", ["26mm", "26 mm", "26.0mm"])
def test_a_focal_length_in_millimetres(words: str) -> None:
    focal = parse_intrinsics(words)
    for given in (words, focal):
        for height, width in ((480, 640), (640, 480)):
            matrix, lens, notice = as_camera(given, None, height, width)
            assert float(matrix[0, 0]) == pytest.approx(26 / 36 * 640)
            assert lens is None
            assert notice is None
    with pytest.raises(InputError, match="as if the picture were 36 mm wide"):
        parse_intrinsics("2600mm")
