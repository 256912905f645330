"""Depth files: units, formats, broken files, atomic writing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gbpn.errors import BackendError, DatasetError, InputError
from gbpn.files.atomic import replacing
from gbpn.formats.depth_files import DepthRangeWarning, read_depth, write_depth
from gbpn.formats.images import read_image, write_image
from gbpn.sensors.speckles import drop_speckles

DEPTH = torch.tensor([[[0.0, 1.5, 2.25], [3.0, 4.125, 79.5]]])


@pytest.mark.parametrize(
    ("name", "scale", "tolerance"),
    [
        ("d.png", 1000.0, 1e-3),
        ("d.png", 256.0, 1 / 256),
        ("d.tiff", None, 0),
        ("d.npy", None, 0),
        ("d.npz", None, 0),
    ],
)
@pytest.mark.filterwarnings("ignore::gbpn.formats.depth_files.DepthRangeWarning")
def test_written_depth_reads_back(tmp_path: Path, name: str, scale: float | None, tolerance: float) -> None:
    depth = DEPTH.clamp(max=60)
    write_depth(tmp_path / name, depth, scale or 1000.0)
    read = read_depth(tmp_path / name, scale)
    assert read.dtype == torch.float32
    assert float((read - depth).abs().max()) <= tolerance
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_png_truncates_as_the_benchmark_does_and_never_wraps(tmp_path: Path) -> None:
    write_depth(tmp_path / "d.png", torch.full((1, 2, 2), 1.9999), 256)
    assert np.array(Image.open(tmp_path / "d.png")).tolist() == [[511, 511], [511, 511]]
    with pytest.raises(InputError, match="does not fit 16 bits"):
        write_depth(tmp_path / "e.png", DEPTH, 1000)
    assert not (tmp_path / "e.png").exists()


def test_not_measured_is_zero_in_any_float_format(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.array([[np.nan, np.inf], [-1.0, 2.0]]))
    assert read_depth(tmp_path / "d.npy").tolist() == [[[0, 0], [0, 2]]]


@pytest.mark.parametrize(("value", "scale"), [(2500, 1.0), (3, 1000.0)])
def test_an_implausible_scale_warns_with_the_range_found(tmp_path: Path, value: int, scale: float) -> None:
    Image.fromarray(np.full((4, 4), value, np.uint16)).save(tmp_path / "d.png")
    with pytest.warns(DepthRangeWarning, match=f"depths from {value / scale:.4g} to {value / scale:.4g} m"):
        read_depth(tmp_path / "d.png", scale)


def test_an_empty_map_is_fine(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((4, 5), np.uint16)).save(tmp_path / "d.png")
    assert not bool(read_depth(tmp_path / "d.png", 1000).any())


def test_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"missing\.png: no such depth file"):
        read_depth(tmp_path / "missing.png", 1000)
    for name in ("a.png", "a.npy", "a.npz", "a.tiff"):
        (tmp_path / name).write_bytes(b"\x89PNG\r\n nothing")
        with pytest.raises(DatasetError, match=f"{name}: not a readable depth file"):
            read_depth(tmp_path / name, 1000)
    (tmp_path / "a.txt").write_text("1 2")
    with pytest.raises(DatasetError, match=r"depth files are \.exr"):
        read_depth(tmp_path / "a.txt")
    Image.new("RGB", (4, 4)).save(tmp_path / "colour.png")
    with pytest.raises(DatasetError, match="this one is RGB"):
        read_depth(tmp_path / "colour.png", 1000)
    np.save(tmp_path / "cube.npy", np.zeros((2, 3, 4)))
    with pytest.raises(DatasetError, match=r"a depth map is \[H, W\]"):
        read_depth(tmp_path / "cube.npy")
    np.savez(tmp_path / "two.npz", a=np.zeros((2, 2)), b=np.zeros((2, 2)))
    with pytest.raises(DatasetError, match="one called 'depth'"):
        read_depth(tmp_path / "two.npz")
    Image.fromarray(np.ones((4, 4), np.uint16)).save(tmp_path / "ok.png")
    with pytest.raises(InputError, match="integers without a unit"):
        read_depth(tmp_path / "ok.png")
    with pytest.raises(InputError, match="scale must be positive"):
        read_depth(tmp_path / "ok.png", 0)
    with pytest.raises(InputError, match="depth is written as"):
        write_depth(tmp_path / "d.jpg", DEPTH)


def test_exr_says_what_to_install(tmp_path: Path) -> None:
    try:
        import OpenEXR
    except ImportError:
        (tmp_path / "d.exr").write_bytes(b"")
        with pytest.raises(BackendError, match="pip install OpenEXR"):
            read_depth(tmp_path / "d.exr")
    else:
        pixels = np.full((4, 5), 2.5, np.float32)
        OpenEXR.File({}, {"Z": pixels}).write(str(tmp_path / "d.exr"))
        assert bool((read_depth(tmp_path / "d.exr") == 2.5).all())


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("old")

    def fail() -> None:
        with replacing(tmp_path / "out.txt") as temporary:
            temporary.write_text("half")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        fail()
    assert (tmp_path / "out.txt").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_images_round_trip_and_grey_becomes_colour(tmp_path: Path) -> None:
    image = torch.rand(3, 7, 9, generator=torch.Generator().manual_seed(0))
    write_image(tmp_path / "i.png", image)
    assert float((read_image(tmp_path / "i.png") - image).abs().max()) <= 0.5 / 255 + 1e-6
    Image.fromarray(np.full((4, 4), 128, np.uint8)).save(tmp_path / "grey.png")
    assert tuple(read_image(tmp_path / "grey.png").shape) == (3, 4, 4)
    (tmp_path / "bad.jpg").write_bytes(b"no")
    with pytest.raises(DatasetError, match=r"bad\.jpg: not a readable image"):
        read_image(tmp_path / "bad.jpg")


def test_speckles_go_and_surfaces_stay() -> None:
    depth = torch.full((1, 10, 12), 3.0)
    depth[:, :, 6:] = 5.0
    depth[0, 4, 3], depth[0, 7, 8], depth[0, 2, 2] = 0.01, 4.1, 0.0
    cleaned = drop_speckles(depth)
    assert float(cleaned[0, 4, 3]) == 0
    assert float(cleaned[0, 7, 8]) == 0
    touched = cleaned != depth
    # Besides the two speckles: the frame's corners, and where the edge meets its border.
    assert int(touched.sum()) - 2 == 4 + 4
    assert bool((cleaned[0, 1:-1, 5:7] > 0).all()), "a clean edge is not a speckle"
