"""Padding, cropping, and the unit of depth."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gbpn.camera.pinhole import default_intrinsics, rays
from gbpn.config import named
from gbpn.errors import InputError, NonFiniteError
from gbpn.measurements.unit import DepthUnit
from gbpn.network.padding import PaddedImage

PLAIN = named("gbpn-1").overridden({"image_mean": (0, 0, 0), "image_std": (1, 1, 1)})


@given(height=st.integers(32, 70), width=st.integers(32, 70))
def test_a_frame_fits_the_network_and_crops_back(height: int, width: int) -> None:
    image = torch.rand(1, 3, height, width)
    frame = PaddedImage.of(image, None, PLAIN, 32)
    assert frame.image.shape[-2] % 32 == frame.image.shape[-1] % 32 == 0
    assert frame.image.shape[-2] - height < 32
    assert torch.equal(frame.cropped(frame.image), image)
    sparse = torch.rand(1, 1, height, width)
    padded = frame.padded(sparse)
    assert torch.equal(frame.cropped(padded), sparse)
    assert float(padded.sum()) == pytest.approx(float(sparse.sum()), rel=1e-5)  # nothing in the padding


@given(height=st.integers(32, 70), width=st.integers(32, 70), multiple=st.sampled_from([8, 32]))
def test_padding_repeats_the_edges_and_an_odd_row_goes_below(height: int, width: int, multiple: int) -> None:
    image = torch.rand(1, 3, height, width)
    frame = PaddedImage.of(image, None, PLAIN, multiple)
    rows, columns = frame.image.shape[-2:]
    assert frame.corner == ((rows - height) // 2, (columns - width) // 2)
    row = (torch.arange(rows) - frame.corner[0]).clamp(0, height - 1)
    column = (torch.arange(columns) - frame.corner[1]).clamp(0, width - 1)
    assert torch.equal(frame.image, image[..., row[:, None], column])


def test_the_image_is_normalised_by_the_configuration() -> None:
    image = torch.rand(2, 3, 40, 40)
    config = named("gbpn-1").overridden({"image_mean": (0.1, 0.2, 0.3), "image_std": (0.5, 2.0, 4.0)})
    frame = PaddedImage.of(image, None, config, 8)
    wanted = torch.stack([(image[:, k] - (0.1, 0.2, 0.3)[k]) / (0.5, 2.0, 4.0)[k] for k in range(3)], dim=1)
    torch.testing.assert_close(frame.image, wanted)


def test_every_pixel_keeps_its_ray() -> None:
    intrinsics = default_intrinsics(45, 50)[None]
    frame = PaddedImage.of(torch.rand(1, 3, 45, 50), intrinsics, PLAIN, 32)
    padded = rays(frame.intrinsics, *frame.image.shape[-2:])
    torch.testing.assert_close(frame.cropped(padded), rays(intrinsics, 45, 50))


def test_nyu_is_padded_as_released() -> None:
    frame = PaddedImage.of(torch.rand(1, 3, 228, 304), None, named("gbpn-2"), 32)
    assert frame.image.shape[-2:] == (256, 320)
    assert frame.corner == (14, 8)
    assert torch.equal(frame.image[..., 0, :], frame.image[..., 14, :])  # edge values, after normalisation


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": torch.rand(3, 40, 40)}, "image must have shape"),
        ({"image": torch.rand(1, 3, 31, 40)}, "32 or more"),
        ({"image": torch.full((1, 3, 40, 40), torch.nan)}, "image must be finite"),
        ({"intrinsics": torch.eye(3)}, "intrinsics must have shape"),
        ({"sparse": torch.zeros(1, 40, 40)}, "sparse must have shape"),
        ({"sparse": -torch.ones(1, 1, 40, 40)}, "must not be negative"),
        ({"sparse": torch.full((1, 1, 40, 40), torch.inf)}, "sparse must be finite"),
    ],
)
def test_what_is_wrong_with_an_input_is_named(change: dict, message: str) -> None:
    good = {"image": torch.rand(1, 3, 40, 40), "intrinsics": None, "sparse": torch.zeros(1, 1, 40, 40)}
    case = {**good, **change}
    with pytest.raises((InputError, NonFiniteError), match=message):
        PaddedImage.of(case["image"], case["intrinsics"], PLAIN, 32).padded(case["sparse"])


def test_nan_is_not_measured() -> None:
    sparse = torch.zeros(1, 1, 40, 40)
    sparse[..., 5, 6] = 2.0
    holes = torch.where(sparse > 0, sparse, torch.nan)
    frame = PaddedImage.of(torch.rand(1, 3, 40, 40), None, PLAIN, 32)
    assert torch.equal(frame.padded(holes), frame.padded(sparse))


@pytest.mark.parametrize("kind", ["metric", "median", "log"])
def test_units_go_there_and_back(kind: str) -> None:
    sparse = torch.rand(3, 1, 5, 6) * 4 + 0.1
    sparse[:, :, ::2] = 0
    sparse[2] = 0  # a frame without measurements
    unit = DepthUnit.of(kind, sparse)
    inside = sparse > 0
    torch.testing.assert_close(unit.out(unit.into(sparse))[inside], sparse[inside])
    if kind != "metric":
        scaled = DepthUnit.of(kind, sparse * 7)
        torch.testing.assert_close(scaled.into(sparse * 7), unit.into(sparse), rtol=1e-5, atol=1e-6)
    assert unit.metres[2].item() == 1
