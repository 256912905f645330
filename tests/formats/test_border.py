"""What came in damaged once: every case ends in one error that names the file, and nothing else."""

from __future__ import annotations

import contextlib
import json
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gbpn.camera.pinhole import fitted_intrinsics
from gbpn.errors import DatasetError, GbpnError, InputError, WriteError
from gbpn.files.contained import contained
from gbpn.files.guard import LONGEST_MESSAGE, most_pixels, reading, require_size, shown
from gbpn.formats.calibration import intrinsics_of, kitti_calibration, read_extrinsics, read_intrinsics
from gbpn.formats.colmap import SparseView, read_model, sparse_view
from gbpn.formats.depth_files import read_depth, write_depth
from gbpn.formats.images import orientation_notice, read_image, read_pixels
from gbpn.sensors.projection import project

MODEL = {
    "cameras.txt": "1 PINHOLE 16 12 20 20 8 6\n",
    "images.txt": "1 1 0 0 0 0 0 0 1 a.png\n1 1 1\n",
    "points3D.txt": "1 0 0 3 0 0 0 0.5\n",
}


def model(folder: Path, **changed: str) -> Path:
    """A COLMAP model, with some of its files changed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in MODEL.items():
        (folder / name).write_text(changed.get(name.partition(".")[0], text))
    return folder


@pytest.mark.parametrize(
    "problem", [ValueError("x" * 9000), KeyError(3), MemoryError(), StopIteration(), OSError(5)]
)
def test_any_exception_becomes_one_short_error(tmp_path: Path, problem: Exception) -> None:
    (tmp_path / "f").write_bytes(b"")
    with (
        pytest.raises(DatasetError, match="not a readable thing") as caught,
        reading(tmp_path / "f", "thing", "x"),
    ):
        raise problem
    assert len(str(caught.value)) <= LONGEST_MESSAGE
    assert str(tmp_path / "f")[-20:] in str(caught.value)


def test_an_interrupt_passes_the_border(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(KeyboardInterrupt), reading(tmp_path / "f", "thing", "x"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("path", ["\0", "x" * 5000, "/dev/zero", "/", "a\nb"])
def test_what_is_no_file_is_said(path: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read_image(path)
    assert len(str(caught.value)) <= LONGEST_MESSAGE
    assert "\n" not in str(caught.value)


def test_long_lines_are_shown_by_both_ends() -> None:
    assert shown("short") == "short"
    assert len(shown("a" * 500 + "z")) <= 160
    assert shown("a" * 500 + "z").endswith("z")


# Arrays


def damage_compressed(path: Path) -> None:
    """zlib.error"""
    np.savez_compressed(path, depth=np.random.default_rng(0).random((40, 50)))
    content = bytearray(path.read_bytes())
    content[200:260] = b"\xff" * 60
    path.write_bytes(bytes(content))


def damage_header(path: Path) -> None:
    """tokenize.TokenError"""
    np.save(path, np.ones((4, 5)))
    path.write_bytes(path.read_bytes().replace(b"(4, 5)", b"(4, (("))


def damage_type(path: Path) -> None:
    """TypeError"""
    np.save(path, np.ones((4, 5)))
    path.write_bytes(path.read_bytes().replace(b"'<f8'", b"'<f\xff'"))


def declare_much(path: Path) -> None:
    """Gigabytes from few bytes"""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("depth.npy", "w") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (40000, 50000)}
        )
        file.write(bytes(1000))


def hold_objects(path: Path) -> None:
    """A pickle"""
    np.save(path, np.array([object()]), allow_pickle=True)


def hold_words(path: Path) -> None:
    np.save(path, np.array([["a", "b"]]))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("d.npz", damage_compressed),
        ("d.npy", damage_header),
        ("d.npy", damage_type),
        ("d.npz", declare_much),
        ("d.npy", hold_objects),
        ("d.npy", hold_words),
    ],
)
def test_damaged_arrays(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    damage(tmp_path / name)
    with pytest.raises(DatasetError, match=rf"{name}: not a readable depth file"):
        read_depth(tmp_path / name)


def test_a_declared_shape_needs_its_bytes(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.ones((4, 5)))
    content = (tmp_path / "d.npy").read_bytes()
    (tmp_path / "d.npy").write_bytes(content.replace(b"(4, 5), }   ", b"(4000, 5), }"))
    with pytest.raises(DatasetError, match="more bytes than"):
        read_depth(tmp_path / "d.npy")


@pytest.mark.parametrize("scale", [0, -1, np.nan, np.inf, "x", True, 1j])
def test_scales_that_divide_nothing(tmp_path: Path, scale: float) -> None:
    write_depth(tmp_path / "d.npy", torch.ones(1, 4, 5))
    with pytest.raises(InputError, match="scale must be positive and finite"):
        read_depth(tmp_path / "d.npy", scale)


def test_negative_integers_are_not_measured(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.array([[-5, 1000]], np.int16))
    assert read_depth(tmp_path / "d.npy", 1000).tolist() == [[[0.0, 1.0]]]


# Sizes


def test_the_limit_in_megapixels_is_checked_first_and_can_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_size("a picture", 8000, 8000)
    with pytest.raises(InputError, match=r"larger than 64 megapixels.*GBPN_MAX_MEGAPIXELS"):
        require_size("a picture", 8001, 8000)
    Image.new("L", (200, 100)).save(tmp_path / "x.png")
    monkeypatch.setenv("GBPN_MAX_MEGAPIXELS", "0.01")
    with pytest.raises(InputError, match=r"200×100 pixels is larger than 0.01 megapixels"):
        read_image(tmp_path / "x.png")
    monkeypatch.setenv("GBPN_MAX_MEGAPIXELS", "0.02")
    assert read_image(tmp_path / "x.png").shape == (3, 100, 200)
    monkeypatch.setenv("GBPN_MAX_MEGAPIXELS", "many")
    with pytest.raises(InputError, match="must be a number of megapixels"):
        most_pixels()


def test_a_huge_picture_of_few_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.ppm").write_bytes(b"P6\n9000 9000\n255\n" + bytes(100))
    with pytest.raises(InputError, match="9000×9000"):
        read_image(tmp_path / "x.ppm")


def test_a_declared_chunk_of_a_picture_takes_no_memory(tmp_path: Path) -> None:
    """Four gigabytes are declared in a PNG of a hundred bytes."""
    Image.fromarray(np.full((12, 16), 900, np.uint16)).save(tmp_path / "x.png")
    content = bytearray((tmp_path / "x.png").read_bytes())
    content[33:35] = b"\xf3\x00"  # of the length before IDAT
    (tmp_path / "x.png").write_bytes(content)
    tracemalloc.start()
    try:
        with contextlib.suppress(DatasetError):
            read_depth(tmp_path / "x.png", 1000)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_huge_map_is_not_projected_into() -> None:
    with pytest.raises(InputError, match="megapixels"):
        project(np.ones((1, 3)), torch.eye(3), 999999, 999999)


# Pictures


@pytest.mark.parametrize("name", ["x.png", "x.tif", "x.pgm"])
def test_sixteen_bits_of_grey_are_scaled_not_saturated(tmp_path: Path, name: str) -> None:
    grey = np.array([[0, 20000], [40000, 65535]], np.uint16)
    if name == "x.pgm":
        (tmp_path / name).write_bytes(b"P5\n2 2\n65535\n" + grey.astype(">u2").tobytes())
    else:
        Image.fromarray(grey).save(tmp_path / name)
    image = read_image(tmp_path / name)
    np.testing.assert_allclose(image.numpy(), np.stack([grey / 65535] * 3), atol=1e-6)
    np.testing.assert_array_equal(read_pixels(tmp_path / name)[..., 0], [[0, 78], [156, 255]])


def test_sixteen_bits_of_colour_are_scaled_not_saturated(tmp_path: Path) -> None:
    colour = np.full((2, 3, 3), (20000, 40000, 65535), ">u2")
    (tmp_path / "x.ppm").write_bytes(b"P6\n3 2\n65535\n" + colour.tobytes())
    found = read_image(tmp_path / "x.ppm")[:, 0, 0].numpy()
    np.testing.assert_allclose(found, np.array([20000, 40000, 65535]) / 65535, atol=1 / 255)


def test_exif_rotation_is_applied_and_said(tmp_path: Path) -> None:
    pixels = np.zeros((2, 3, 3), np.uint8)
    pixels[0, 0] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # seen upright after a quarter turn clockwise
    Image.fromarray(pixels).save(tmp_path / "turned.png", exif=exif)
    Image.fromarray(pixels).save(tmp_path / "plain.png")
    image = read_image(tmp_path / "turned.png")
    assert image.shape == (3, 3, 2)
    assert image[0].nonzero().tolist() == [[0, 1]]
    assert "turned upright" in (orientation_notice(tmp_path / "turned.png") or "")
    assert orientation_notice(tmp_path / "plain.png") is None


# Cameras


def test_normalised_intrinsics_become_pixels() -> None:
    matrix, notice = fitted_intrinsics(intrinsics_of(np.array([0.8, 0.8, 0.5, 0.5])), 240, 320)
    assert matrix.tolist() == [[256.0, 0.0, 159.5], [0.0, 192.0, 119.5], [0.0, 0.0, 1.0]]
    assert notice is not None
    assert "normalised" in notice


@pytest.mark.parametrize(
    "numbers", [(10, 10, 160, 120), (1, 1, 160, 120), (1e9, 1e9, 160, 120), (300, 300, 1e6, 0)]
)
def test_cameras_that_no_picture_has_are_refused(numbers: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="in pixels"):
        fitted_intrinsics(intrinsics_of(np.array(numbers)), 240, 320)


@pytest.mark.parametrize(("focal", "odd"), [(40, True), (300, False), (10000, True)])
def test_unusual_cameras_are_noticed(focal: float, odd: bool) -> None:
    notice = fitted_intrinsics(intrinsics_of(np.array([focal, focal, 160, 120])), 240, 320)[1]
    assert (notice is not None) == odd


@pytest.mark.parametrize("bad", ["nan", "inf", "1e300"])
def test_cameras_and_poses_are_finite(tmp_path: Path, bad: str) -> None:
    (tmp_path / "K.txt").write_text(f"300 300 {bad} 120")
    with pytest.raises(DatasetError, match="must be finite"):
        read_intrinsics(tmp_path / "K.txt")
    (tmp_path / "T.txt").write_text(f"1 0 0 0 0 1 0 {bad} 0 0 1 0")
    with pytest.raises(DatasetError, match="must be finite"):
        read_extrinsics(tmp_path / "T.txt")
    with pytest.raises(InputError, match="finite"):
        project(np.ones((1, 3)), torch.eye(3), 4, 4, torch.full((4, 4), torch.nan))


@pytest.mark.parametrize(
    "lines",
    [
        "P2: 0 0 0 0 0 0 0 0 0 0 0 0\nTr: 1 0 0 0 0 1 0 0 0 0 1 0\n",  # LinAlgError
        "P2: 9 0 4 0 0 9 4 0 0 0 1 0\nR0_rect: 1 0 0\nTr: 1 0 0 0 0 1 0 0 0 0 1 0\n",  # ValueError
        "P2: 9 0 4 0 0 9 4 0 0 0 1 0\nTr: nan 0 0 0 0 1 0 0 0 0 1 0\n",
    ],
)
def test_damaged_kitti_calibration(tmp_path: Path, lines: str) -> None:
    (tmp_path / "calib.txt").write_text(lines)
    with pytest.raises(GbpnError):
        kitti_calibration(tmp_path / "calib.txt")


# COLMAP


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("cameras", "2 PINHOLE 16 12 20 20 8 6\n"),  # KeyError
        ("cameras", "1 PINHOLE 16 12 20\n"),  # IndexError
        ("cameras", "1 PINHOLE 16 12 nan 20 8 6\n"),
        ("cameras", "1 PINHOLE 16 12 0.1 0.1 8 6\n"),
        ("cameras", "1 PINHOLE 160000000 120000000 200000000 200000000 8 6\n"),
        ("cameras", "1 PINHOLE 0 12 20 20 8 6\n"),
        ("images", "1 0 0 0 0 0 0 0 1 a.png\n1 1 1\n"),
        ("images", "1 1 0 0 0 nan 0 0 1 a.png\n1 1 1\n"),
        ("images", "1 1 0\n\n"),
        ("points3D", "1 0 0\n"),
    ],
)
def test_damaged_colmap_models(tmp_path: Path, file: str, text: str) -> None:
    folder = model(tmp_path / "m", **{file: text})
    with pytest.raises(GbpnError):
        _first_view(folder)


def _first_view(folder: Path) -> SparseView:
    found = read_model(folder)
    return sparse_view(found, found.pictures[0])


def test_a_binary_model_that_declares_too_much(tmp_path: Path) -> None:
    for name in ("cameras", "images", "points3D"):
        (tmp_path / f"{name}.bin").write_bytes(struct.pack("<Q", 0))
    (tmp_path / "points3D.bin").write_bytes(struct.pack("<QQ3d3BdQ", 1, 1, 0, 0, 3, 0, 0, 0, 0.5, 1 << 40))
    with pytest.raises(DatasetError, match="bytes early"):
        read_model(tmp_path)


# Paths


@pytest.mark.parametrize(
    "name",
    [
        "/abs/x",
        "../x",
        "a/../../x",
        "..",
        "",
        "/dev/null",
        "C:\\x",
        "a\\..\\x",
        "x" * 300,
        "a/" * 3000 + "x",
        "a/" * 70 + "x",
        "a\0b",
    ],
)
def test_names_never_leave_their_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        contained(tmp_path, name, ".npy")
    assert len(str(caught.value)) <= LONGEST_MESSAGE


def test_links_and_devices_in_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path)
    (tmp_path / "out" / "file.npy").symlink_to("/dev/null")
    (tmp_path / "out" / "folder.npy").mkdir()
    for name in ("link/x", "file", "folder"):
        with pytest.raises(InputError):
            contained(tmp_path / "out", name, ".npy")
    assert contained(tmp_path / "out", "a/b", ".npy") == tmp_path / "out" / "a" / "b.npy"


@pytest.mark.parametrize("name", ["{}/abs.png", "../../up.png"])
def test_the_command_writes_nothing_outside(tmp_path: Path, name: str) -> None:
    from gbpn.cli.project import project as command

    name = name.format(tmp_path)
    folder = model(tmp_path / "m", images=f"1 1 0 0 0 0 0 0 1 {name}\n1 1 1\n")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="must stay in"):
        command(folder, tmp_path / "box" / "out")
    assert sorted(tmp_path.rglob("*")) == before


def test_two_images_do_not_share_a_file(tmp_path: Path) -> None:
    from gbpn.cli.project import project as command

    poses = "1 1 0 0 0 0 0 0 1 a.png\n1 1 1\n2 1 0 0 0 0 0 0 1 a.jpg\n1 1 1\n"
    with pytest.raises(InputError, match="would be written to one file"):
        command(model(tmp_path / "m", images=poses), tmp_path / "out")


def test_a_write_that_fails_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="cannot be written"):
        write_depth(tmp_path / "file" / "d.npy", torch.ones(1, 2, 2))
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(WriteError, match="cannot be written"):
        write_depth(tmp_path / "folder.npy", torch.ones(1, 2, 2))


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_a_damaged_recipe_is_named(tmp_path: Path, text: str) -> None:
    from gbpn.train.recipe import Recipe
    from gbpn.train.run_folder import RunFolder

    (tmp_path / "recipe.json").write_text(text)
    with pytest.raises(GbpnError, match=r"recipe\.json (is damaged|must hold a recipe)"):
        RunFolder(tmp_path).open(Recipe(), resume=True)


@pytest.mark.parametrize("scale", [0, "x", None, [1], float("nan")])
def test_damaged_meta_files(tmp_path: Path, scale: object) -> None:
    from gbpn.datasets.mixed import MixedDataset

    (tmp_path / "meta.json").write_text(json.dumps({"depth_scale": scale}))
    with pytest.raises(GbpnError):
        MixedDataset(tmp_path)
