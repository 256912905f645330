"""Whatever form an input has, the model sees the same numbers; what cannot be meant is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gbpn.camera.pinhole import default_intrinsics
from gbpn.errors import DatasetError, InputError
from gbpn.inputs.reading import as_image, as_intrinsics, as_sparse
from gbpn.sensors.projection import points_to_sparse

HEIGHT, WIDTH = 40, 56

IMAGES: dict[str, Callable[[np.ndarray], Any]] = {
    "NumPy uint8": lambda p: p,
    "NumPy with alpha": lambda p: np.concatenate([p, p[..., :1]], axis=2),
    "NumPy float": lambda p: p / 255,
    "NumPy uint16": lambda p: p.astype(np.uint16) * 257,
    "PIL": Image.fromarray,
    "PIL with alpha": lambda p: Image.fromarray(p).convert("RGBA"),
    "torch uint8": lambda p: torch.from_numpy(p).permute(2, 0, 1),
    "torch float with batch axis": lambda p: torch.from_numpy(p).permute(2, 0, 1)[None] / 255,
}


@pytest.mark.parametrize("form", IMAGES)
def test_every_form_of_an_image_is_the_same_image(form: str, picture: np.ndarray) -> None:
    wanted = torch.from_numpy(picture).permute(2, 0, 1) / 255
    got = as_image(IMAGES[form](picture))
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, wanted, atol=1e-6, rtol=0)


def test_grey_images_and_files(scene: Path, picture: np.ndarray) -> None:
    assert torch.equal(as_image(scene / "image.png"), as_image(picture))
    assert torch.equal(as_image(str(scene / "image.png")), as_image(picture))
    grey = as_image(picture[..., 0])
    assert grey.shape == (3, HEIGHT, WIDTH)
    assert torch.equal(grey[0], grey[2])


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((40, 56, 2), np.uint8), "NumPy image must be"),
        (torch.zeros(40, 56, 3), "torch image must be"),
        (np.full((40, 56, 3), 200.0), "divide by 255"),
        (np.full((40, 56, 3), np.nan), "must lie in"),
        (np.zeros((40, 56, 3), np.int64), "uint8, uint16 or float"),
    ],
)
def test_what_is_no_image(image: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_image(image)


SPARSE: dict[str, Callable[[np.ndarray], Any]] = {
    "NumPy": lambda d: d,
    "NumPy float64 with NaN": lambda d: np.where(d > 0, d, np.nan),
    "channel first": lambda d: d[None],
    "channel last": lambda d: d[..., None],
    "torch": torch.from_numpy,
    "torch with batch axis": lambda d: torch.from_numpy(d)[None, None],
    "points": lambda d: [(x, y, d[y, x]) for y, x in zip(*np.nonzero(d), strict=True)],
    "torch points": lambda d: torch.tensor([(x, y, d[y, x]) for y, x in zip(*np.nonzero(d), strict=True)]),
}


@pytest.mark.parametrize("form", SPARSE)
def test_every_form_of_measurements_is_the_same(form: str, depth: np.ndarray) -> None:
    got = as_sparse(SPARSE[form](depth), HEIGHT, WIDTH)
    torch.testing.assert_close(got, torch.from_numpy(depth)[None], atol=1e-6, rtol=0)


@pytest.mark.parametrize(("name", "scale"), [("depth.npy", None), ("depth.png", 1000), ("points.csv", None)])
def test_every_file_of_measurements_is_the_same(
    scene: Path, depth: np.ndarray, name: str, scale: float | None
) -> None:
    got = as_sparse(scene / name, HEIGHT, WIDTH, scale)
    torch.testing.assert_close(got, torch.from_numpy(depth)[None], atol=5e-4, rtol=0)


def test_integers_are_divided_by_their_scale(depth: np.ndarray) -> None:
    millimetres = (depth * 1000).round().astype(np.uint16)
    got = as_sparse(millimetres, HEIGHT, WIDTH, 1000)
    torch.testing.assert_close(got, torch.from_numpy(depth)[None], atol=5e-4, rtol=0)
    with pytest.raises(InputError, match="1000 for millimetres"):
        as_sparse(millimetres, HEIGHT, WIDTH)


@pytest.mark.parametrize(
    ("sparse", "message"),
    [
        (np.ones((40, 50), np.float32), "size of the image, 40×56; got 40×50"),
        (np.full((40, 56), -1.0), "not be negative"),
        ([(56, 0, 1.0)], "inside 56×40"),
        ([(0, 0, 0.0)], "depth above 0"),
        ([(0, 0, np.nan)], "depth above 0"),
        ([(np.nan, 0, 1.0)], "NaN in x, y"),
    ],
)
def test_what_is_no_measurement(sparse: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_sparse(sparse, HEIGHT, WIDTH)


@pytest.mark.parametrize("text", ["", "x,y\n1,2\n", "1,2,3\n4,5\n", "1,2,3\nfour,5,6\n"])
def test_what_is_no_table_of_points(tmp_path: Path, text: str) -> None:
    (tmp_path / "points.csv").write_text(text)
    with pytest.raises(DatasetError, match=r"points.csv.*x, y, depth"):
        as_sparse(tmp_path / "points.csv", HEIGHT, WIDTH)


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 6), st.floats(0.125, 90, width=32)),
        min_size=1,
        max_size=40,
    )
)
def test_the_nearest_point_of_a_pixel_stays(points: list[tuple[int, int, float]]) -> None:
    sparse = points_to_sparse(torch.tensor(points, dtype=torch.float64), 7, 9)[0]
    nearest: dict[tuple[int, int], float] = {}
    for x, y, depth in points:
        nearest[y, x] = min(depth, nearest.get((y, x), np.inf))
    assert {place: float(sparse[place]) for place in nearest} == pytest.approx(nearest)
    assert int((sparse > 0).sum()) == len(nearest)


MATRIX = np.array([[50.0, 0, 28], [0, 51, 20], [0, 0, 1]])


@pytest.mark.parametrize(
    "form", [MATRIX, torch.from_numpy(MATRIX)[None], (50, 51, 28, 20), MATRIX.astype(np.float32)]
)
def test_every_form_of_intrinsics_is_the_same(form: Any) -> None:
    camera, notice = as_intrinsics(form, None, HEIGHT, WIDTH)
    assert notice is None
    np.testing.assert_array_equal(camera.numpy(), MATRIX)


def test_intrinsics_from_a_file_from_exif_and_assumed(tmp_path: Path, picture: np.ndarray) -> None:
    (tmp_path / "camera.txt").write_text("50 51 28 20")
    assert as_intrinsics(tmp_path / "camera.txt", None, HEIGHT, WIDTH)[0][1, 1] == 51

    exif = Image.Exif()
    exif.get_ifd(0x8769)[0xA405] = 36  # as wide as a full frame: 53°
    Image.fromarray(picture).save(tmp_path / "phone.jpg", exif=exif)
    camera, notice = as_intrinsics(None, tmp_path / "phone.jpg", HEIGHT, WIDTH)
    assert camera[0, 0] == camera[1, 1] == WIDTH
    assert notice is not None
    assert "EXIF" in notice

    camera, notice = as_intrinsics(None, picture, HEIGHT, WIDTH)
    assert torch.equal(camera, default_intrinsics(HEIGHT, WIDTH))
    assert notice is not None
    assert "60°" in notice


def test_intrinsics_that_cannot_be(picture: np.ndarray) -> None:
    with pytest.raises(InputError, match="positive focal"):
        as_intrinsics((0, 50, 28, 20), picture, HEIGHT, WIDTH)
    with pytest.raises(InputError, match="got 3 numbers"):
        as_intrinsics((50, 28, 20), picture, HEIGHT, WIDTH)
