"""Inputs at and beyond the edge: finite and marked where possible, a clear error where not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from backends import BACKENDS
from torch import Tensor

from fields import directed_field, symmetric_field
from gbpn import MRF, Gaussian, Messages, SymmetricEdges, infer
from gbpn.errors import BackendError, InputError, NonFiniteError
from gbpn.gbp import Status

each_backend = pytest.mark.parametrize("backend", BACKENDS)
each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
TENSORS = (
    "depth",
    "weight",
    "local.weight",
    "local.difference",
    "local.damping",
    "nonlocal_.weight",
    "nonlocal_.difference",
    "nonlocal_.offset",
    "nonlocal_.damping",
)


def changed(mrf: MRF, name: str, change: Any) -> MRF:
    """The field with one of `TENSORS` replaced by change(tensor)."""
    part, _, inner = name.rpartition(".")
    if not part:
        return replace(mrf, **{inner: change(getattr(mrf, inner))})
    old = getattr(mrf, part)
    return replace(mrf, **{part: replace(old, **{inner: change(getattr(old, inner))})})


def all_finite(messages: Messages) -> bool:
    parts = (messages.local, messages.nonlocal_)
    return all(bool(t.isfinite().all()) for g in parts for t in (g.information, g.precision))


@each_backend
@each_dtype
def test_no_measurement_is_known_as_nothing(backend: str, dtype: torch.dtype) -> None:
    mrf = directed_field(5, 6, batch=2, dtype=dtype)
    weight = torch.zeros_like(mrf.weight).requires_grad_()
    answer = infer(mrf.measured(mrf.depth, weight), backend=backend)
    assert answer.status is Status.EMPTY
    assert str(answer.status) == "there was no measurement: nothing is known at any pixel"
    assert answer.observed_fraction == 0
    assert bool((answer.belief.information == 0).all())
    assert bool((answer.belief.precision == 0).all())
    assert bool(answer.belief.mean.isnan().all())
    (grad,) = torch.autograd.grad(answer.belief.precision.sum(), weight)
    assert bool(grad.isfinite().all())


@each_backend
def test_one_empty_image_of_a_batch_is_reported(backend: str) -> None:
    mrf = directed_field(4, 5, batch=2)
    weight = mrf.weight.clone()
    weight[0] = 0
    answer = infer(mrf.measured(mrf.depth, weight), backend=backend)
    assert answer.status is Status.EMPTY
    assert answer.belief.informed.flatten(1).all(1).tolist() == [False, True]


@each_backend
@each_dtype
def test_one_measurement_is_the_depth_of_a_flat_field(backend: str, dtype: torch.dtype) -> None:
    mrf = symmetric_field(5, 6, measured=0.0, dtype=dtype)
    mrf = changed(mrf, "local.difference", torch.zeros_like)
    answer = infer(mrf, iterations=3, backend=backend)
    assert answer.status is Status.INFORMED
    wanted = mrf.depth.max().expand_as(mrf.depth)
    tight = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(answer.belief.mean, wanted, rtol=tight, atol=0)


@each_backend
def test_pixels_cut_off_from_all_measurements_are_marked(backend: str) -> None:
    mrf = symmetric_field(4, 6, measured=0.0)
    assert isinstance(mrf.local, SymmetricEdges)
    weight = mrf.local.weight.clone()
    weight[..., 0, :, 3], weight[..., 2, :, 3], weight[..., 3, :, 4] = 0, 0, 0  # all that crosses 3 | 4
    answer = infer(changed(mrf, "local.weight", lambda _: weight), iterations=3, backend=backend)
    assert answer.status is Status.PARTIAL
    assert answer.observed_fraction == pytest.approx(4 / 6)
    assert bool(answer.belief.informed[..., :4].all())
    assert bool(answer.belief.mean[..., 4:].isnan().all())
    assert bool((answer.belief.information[..., 4:] == 0).all())


@each_backend
@each_dtype
def test_sixteen_orders_of_magnitude_stay_finite_and_between_the_measurements(
    backend: str, dtype: torch.dtype
) -> None:
    """Without differences a belief is a weighted mean of the measurements, whatever the weights."""
    mrf = directed_field(7, 8, batch=2, iterations=5, dtype=dtype)
    g = torch.Generator().manual_seed(2)

    def spread(weight: Tensor) -> Tensor:
        exponent = -10 + 16 * torch.rand(weight.shape, generator=g, dtype=torch.float64)
        return (10**exponent).to(dtype) * (weight > 0)

    for name in ("weight", "local.weight", "nonlocal_.weight"):
        mrf = changed(mrf, name, spread)
    for name in ("local.difference", "nonlocal_.difference"):
        mrf = changed(mrf, name, torch.zeros_like)
    answer = infer(mrf, backend=backend)
    assert answer.status is Status.INFORMED
    assert all_finite(answer.messages)
    measured = mrf.depth[mrf.weight > 0]
    slack = 1e-4 if dtype == torch.float32 else 1e-10
    mean = answer.belief.mean
    assert float(mean.min()) >= float(measured.min()) * (1 - slack)
    assert float(mean.max()) <= float(measured.max()) * (1 + slack)


@each_backend
@pytest.mark.parametrize("edge", [1e-10, 1e6])
@pytest.mark.parametrize("unary", [1e-10, 1e6])
def test_all_weights_extreme_in_float32(backend: str, unary: float, edge: float) -> None:
    mrf = directed_field(5, 6, dtype=torch.float32)
    mrf = changed(mrf, "weight", lambda w: unary * w.sign())
    mrf = changed(mrf, "local.weight", lambda w: torch.full_like(w, edge))
    wide = replace(mrf, nonlocal_=None)
    answer = infer(wide, backend=backend)
    assert all_finite(answer.messages)
    assert bool(answer.belief.mean.isfinite().all())
    assert bool((answer.belief.precision > 0).all())


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("name", TENSORS)
def test_a_value_that_is_not_finite_is_counted_and_named(name: str, value: float) -> None:
    def spoil(tensor: Tensor) -> Tensor:
        bad = tensor.clone()
        bad.view(-1)[[0, -1]] = value
        return bad

    mrf = changed(directed_field(4, 5), name, spoil)
    with pytest.raises(NonFiniteError, match=rf"^{name} must be finite; got 2 NaN or infinite of \d+ values"):
        infer(mrf)


@pytest.mark.parametrize("part", ["information", "precision"])
@pytest.mark.parametrize("name", ["local", "nonlocal_"])
def test_messages_that_are_not_finite_are_named(name: str, part: str) -> None:
    mrf = directed_field(4, 5)
    messages = infer(mrf, backend="reference").messages
    good: Gaussian = getattr(messages, name)
    bad = getattr(good, part).clone()
    bad[0, 0, 0, 0] = torch.nan
    messages = replace(messages, **{name: replace(good, **{part: bad})})
    with pytest.raises(NonFiniteError, match=rf"messages\.{name}\.{part} must be finite; got 1 NaN"):
        infer(mrf, messages)


@each_backend
@each_dtype
@pytest.mark.parametrize("distance", [1e9, -1e9, 3e30])
def test_learned_edges_from_far_outside_say_nothing(
    backend: str, dtype: torch.dtype, distance: float
) -> None:
    mrf = changed(
        directed_field(4, 5, dtype=dtype), "nonlocal_.offset", lambda t: torch.full_like(t, distance)
    )
    with_far, without = infer(mrf, backend=backend), infer(replace(mrf, nonlocal_=None), backend=backend)
    assert bool((with_far.messages.nonlocal_.precision == 0).all())
    torch.testing.assert_close(with_far.belief.mean, without.belief.mean, rtol=0, atol=0)


@each_backend
def test_a_learned_edge_just_inside_is_heard_and_just_outside_is_not(backend: str) -> None:
    mrf = directed_field(3, 3, iterations=1, nonlocal_edges=1)
    for row, heard in ((-0.99, True), (-1.0, False), (2.99, True), (3.0, False)):
        rows = torch.arange(3.0).double().view(3, 1).expand(3, 3)
        offset = torch.stack([row - rows, torch.zeros(3, 3).double()])  # every pixel reads this row
        field = changed(mrf, "nonlocal_.offset", lambda _, o=offset: o[None, None, None])
        total = infer(field, nonlocal_steps=1, backend=backend).messages.nonlocal_
        assert bool(total.informed.all()) is heard


@each_backend
def test_strides_do_not_matter(backend: str) -> None:
    mrf = directed_field(4, 6, batch=2)
    wanted = infer(mrf, backend=backend).belief

    def transposed(tensor: Tensor) -> Tensor:
        return tensor.mT.contiguous().mT

    def every_second(tensor: Tensor) -> Tensor:
        wide = tensor.new_full((*tensor.shape[:-1], 2 * tensor.shape[-1]), torch.nan)
        wide[..., ::2] = tensor
        return wide[..., ::2]

    for stride in (transposed, every_second):
        field = mrf
        for name in TENSORS:
            field = changed(field, name, stride)
            part, _, inner = name.rpartition(".")
            assert not getattr(getattr(field, part) if part else field, inner).is_contiguous()
        got = infer(field, backend=backend)
        torch.testing.assert_close(got.belief.mean, wanted.mean, rtol=1e-13, atol=0)
        local = Gaussian(stride(got.messages.local.information), stride(got.messages.local.precision))
        warm = infer(field, replace(got.messages, local=local), iterations=1, backend=backend)
        plain = infer(mrf, got.messages, iterations=1, backend=backend)
        torch.testing.assert_close(warm.belief.mean, plain.belief.mean, rtol=1e-13, atol=0)


@each_backend
def test_broadcast_parameters_are_read_as_if_written_out(backend: str) -> None:
    mrf = directed_field(4, 5, batch=2)
    damping = torch.tensor(0.25, dtype=torch.float64).expand(2, 1, 4, 5)  # stride 0 everywhere
    field = changed(mrf, "local.damping", lambda _: damping)
    written = changed(mrf, "local.damping", lambda _: damping.contiguous())
    got, wanted = infer(field, backend=backend).belief.mean, infer(written, backend=backend).belief.mean
    assert torch.equal(got, wanted)


@each_backend
def test_inputs_are_left_as_they_were(backend: str) -> None:
    mrf = directed_field(4, 5)
    first = infer(mrf, backend=backend)
    kept = first.messages.local.precision.clone(), first.messages.nonlocal_.information.clone()
    edges = mrf.local.weight.clone()
    infer(mrf, first.messages, backend=backend)
    assert torch.equal(first.messages.local.precision, kept[0])
    assert torch.equal(first.messages.nonlocal_.information, kept[1])
    assert torch.equal(mrf.local.weight, edges)


def test_wrong_shapes_kinds_and_places_are_explained() -> None:
    mrf = directed_field(4, 5)
    other = infer(directed_field(4, 6), backend="reference").messages
    with pytest.raises(InputError, match=r"messages\.local\.information must have shape \[1, 8, 4, 5\]"):
        infer(mrf, other)
    single = infer(directed_field(4, 5, dtype=torch.float32), backend="reference").messages
    with pytest.raises(InputError, match=r"messages\.local\.information must be torch\.float64 on cpu"):
        infer(mrf, single)
    for name in TENSORS[2:]:
        with pytest.raises(InputError, match=rf"^{name} must have shape"):
            infer(changed(mrf, name, lambda t: t[..., :-1]))
        with pytest.raises(InputError, match=rf"^{name} must be torch\.float64 on cpu like weight"):
            infer(changed(mrf, name, lambda t: t.float()))
        with pytest.raises(InputError, match=rf"^{name} must be torch\.float64 on cpu like weight.* on meta"):
            infer(changed(mrf, name, lambda t: t.to("meta")))


def test_wrong_choices_are_explained() -> None:
    mrf = directed_field(4, 5)
    with pytest.raises(InputError, match="parameters for 2 iterations; got iterations=3"):
        infer(mrf, iterations=3)
    with pytest.raises(InputError, match="reweighting must be above 0; got 0"):
        infer(mrf, reweighting=0.0)
    with pytest.raises(InputError, match="must not be negative; got -1 and 4"):
        infer(mrf, iterations=-1)
    with pytest.raises(InputError, match="must not be negative; got 2 and -2"):
        infer(mrf, nonlocal_steps=-2)
    with pytest.raises(InputError, match="reweighting must be above 0; got nan"):
        infer(mrf, reweighting=float("nan"))
    with pytest.raises(BackendError, match=r"backend must be one of .*; got 'abacus'"):
        infer(mrf, backend="abacus")


def test_a_field_of_one_pixel_is_its_measurement() -> None:
    mrf = directed_field(1, 1, nonlocal_edges=0)
    for backend in BACKENDS:
        belief = infer(mrf, backend=backend).belief
        torch.testing.assert_close(belief.mean, mrf.depth, rtol=1e-15, atol=0)
        assert torch.equal(belief.precision, mrf.weight)
