"""Neighbourhood attention: the released numbers, the border rule by a literal loop, and its laws."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gbpn.errors import BackendError, InputError
from gbpn.network.attention import neighbourhood_attention, reference
from gbpn.network.attention.window import fitting_dilation, neighbours
from goldens import assert_known_close

needs_native = pytest.mark.skipif(
    importlib.util.find_spec("gbpn._native") is None, reason="needs the compiled module gbpn._native"
)
BACKENDS = ("reference", pytest.param("cpu", marks=needs_native))
NOISE = 1.1e-6
"""Float32 noise of the released arithmetic (GOLDENS.md); we allow ten times that."""


def as_image(heads: Tensor) -> Tensor:
    """[B, heads, H, W, size] → [B, heads · size, H, W]."""
    return heads.permute(0, 1, 4, 2, 3).flatten(1, 2)


def random_inputs(
    shape: tuple[int, int, int], heads: int = 2, size: int = 4, kernel: int = 7, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Random query, key, value, bias in float64 for a (batch, height, width)."""
    generator = torch.Generator().manual_seed(seed)
    batch, height, width = shape
    query, key, value = (
        torch.randn(batch, heads * size, height, width, generator=generator, dtype=torch.float64)
        for _ in range(3)
    )
    side = 2 * kernel - 1
    return query, key, value, torch.randn(heads, side, side, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", ["d1", "d3", "d4"])
def test_released_numbers(golden, backend: str, case: str) -> None:
    g = golden("op_attention")
    query, key, value = (as_image(g[f"{case}_{name}"]) for name in "qkv")
    dilation = int(g[f"{case}_dilation"])
    scores = reference.scores(query, key, g[f"{case}_rpb"], dilation=dilation)
    assert_known_close(scores, g[f"{case}_scores"], atol=10 * NOISE)
    got = neighbourhood_attention(query, key, value, g[f"{case}_rpb"], dilation=dilation, backend=backend)
    assert_known_close(got, as_image(g[f"{case}_out"]), atol=10 * NOISE)
    gated = got.unflatten(1, (2, 32)) * as_image(g[f"{case}_gate_logit"]).sigmoid().unsqueeze(2)
    assert_known_close(gated.flatten(1, 2), as_image(g[f"{case}_gated"]), atol=10 * NOISE)


def literal_neighbours(length: int, kernel: int, dilation: int, p: int) -> tuple[list[int], list[int]]:
    """The rule as a person would do it by hand: list the class, centre the window, push it inside."""
    while dilation > 1 and kernel * dilation > length:
        dilation -= 1
    members = [q for q in range(length) if q % dilation == p % dilation]
    centre = members.index(p)
    window = [centre + offset for offset in range(-(kernel // 2), kernel // 2 + 1)]
    while window[-1] >= len(members):
        window = [m - 1 for m in window]
    while window[0] < 0:
        window = [m + 1 for m in window]
    window = [m for m in window if m < len(members)]
    return [members[m] for m in window], [m - centre + kernel - 1 for m in window]


@settings(max_examples=60, deadline=None)
@given(
    length=st.integers(1, 60),
    kernel=st.sampled_from([3, 5, 7]),
    dilation=st.integers(1, 16),
)
def test_window_is_the_rule_done_by_hand(length: int, kernel: int, dilation: int) -> None:
    position, relative = neighbours(length, kernel, dilation)
    for p in range(length):
        wanted_position, wanted_relative = literal_neighbours(length, kernel, dilation, p)
        assert position[p].tolist() == wanted_position
        assert relative[p].tolist() == wanted_relative


@settings(max_examples=60, deadline=None)
@given(length=st.integers(1, 200), kernel=st.sampled_from([3, 5, 7]), dilation=st.integers(1, 16))
def test_dilation_shrinks_to_the_largest_that_fits(length: int, kernel: int, dilation: int) -> None:
    fitted = fitting_dilation(length, kernel, dilation)
    assert 1 <= fitted <= dilation
    assert fitted == 1 or fitted * kernel <= length
    assert fitted == dilation or (fitted + 1) * kernel > length


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=25, deadline=None)
@given(
    height=st.integers(1, 40), width=st.integers(1, 40), dilation=st.integers(1, 16), seed=st.integers(0, 99)
)
def test_a_constant_value_field_comes_back(
    backend: str, height: int, width: int, dilation: int, seed: int
) -> None:
    query, key, value, bias = random_inputs((1, height, width), seed=seed)
    constant = value[..., :1, :1].expand_as(value)
    got = neighbourhood_attention(query, key, constant, bias, dilation=dilation, backend=backend)
    torch.testing.assert_close(got, constant)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("height", "width"), [(5, 6), (7, 7), (1, 4), (1, 1)])
def test_a_window_as_large_as_the_image_is_full_attention(backend: str, height: int, width: int) -> None:
    query, key, value, bias = random_inputs((2, height, width))
    rows = torch.arange(height).repeat_interleave(width)
    columns = torch.arange(width).repeat(height)
    relative = bias[:, rows - rows[:, None] + 6, columns - columns[:, None] + 6]  # [heads, query, key]
    q, k, v = (x.unflatten(1, (2, 4)).flatten(-2).transpose(-1, -2) for x in (query, key, value))
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, relative, scale=0.5)
    got = neighbourhood_attention(query, key, value, bias, dilation=3, scale=0.5, backend=backend)
    torch.testing.assert_close(got, wanted.transpose(-1, -2).reshape(query.shape))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kernel", [3, 5, 7])
@pytest.mark.parametrize(("height", "width", "dilation"), [(9, 17, 1), (16, 11, 2), (22, 8, 3)])
def test_a_literal_loop(backend: str, kernel: int, height: int, width: int, dilation: int) -> None:
    query, key, value, bias = random_inputs((1, height, width), heads=1, size=3, kernel=kernel)
    wanted = torch.empty_like(query)
    for y in range(height):
        rows, down = literal_neighbours(height, kernel, dilation, y)
        for x in range(width):
            columns, right = literal_neighbours(width, kernel, dilation, x)
            keys, values = (source[0][:, rows][:, :, columns].flatten(1) for source in (key, value))
            score = query[0, :, y, x] @ keys + bias[0][down][:, right].flatten()
            wanted[0, :, y, x] = values @ score.softmax(0)
    got = neighbourhood_attention(query, key, value, bias, dilation=dilation, backend=backend)
    torch.testing.assert_close(got, wanted)


def test_what_cannot_be_used_says_so() -> None:
    query, key, value, bias = random_inputs((1, 8, 9))
    with pytest.raises(InputError, match=r"bias must be \[heads"):
        neighbourhood_attention(query, key, value, bias[:, 1:])
    with pytest.raises(InputError, match="odd kernel"):
        neighbourhood_attention(query, key, value, bias[:, :7, :7])
    with pytest.raises(InputError, match="multiple of heads = 2"):
        neighbourhood_attention(query[:, :3], key[:, :3], value[:, :3], bias)
    with pytest.raises(InputError, match="key must have shape"):
        neighbourhood_attention(query, key[..., 1:], value, bias)
    with pytest.raises(InputError, match="dilation"):
        neighbourhood_attention(query, key, value, bias, dilation=0)
    with pytest.raises(BackendError, match="got 'fast'"):
        neighbourhood_attention(query, key, value, bias, backend="fast")
