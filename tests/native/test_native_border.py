"""The native border: a wrong call is an error that names what is wrong, never a crash."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import gbpn
from gbpn import MRF, Gaussian, LocalEdges, Messages, infer, mrf
from gbpn.errors import InputError

native = pytest.importorskip("gbpn._native", reason="gbpn was installed without its C++ kernels")

from calls import OPERATORS, Call, Maker  # noqa: E402

from gbpn.gbp import cpu, operators  # noqa: E402

HERE = Path(__file__).parent


def call_of(operator: str, wanted: Callable[[Call], bool] = lambda call: True) -> Call:
    """The first right call, in a fixed order, that is `wanted`."""
    for seed in range(1000):
        call = OPERATORS[operator](Maker(random.Random(seed), smallest=3, largest=6))
        if wanted(call):
            return call
    raise AssertionError("no such call")


def field(edges: int, slots: int = 8) -> tuple[MRF, Messages]:
    """A 4×5 field with `edges` senders per sweep, and messages of `slots` slots."""
    plane = torch.rand(1, 1, 4, 5)
    local = LocalEdges(
        weight=torch.rand(1, 1, 4, edges, 4, 5),
        difference=torch.rand(1, 1, 4, edges, 4, 5),
        damping=torch.rand(1, 1, 4, 5),
    )
    held = torch.zeros(1, slots, 4, 5)
    state = Messages(Gaussian(held, held), Gaussian(torch.zeros_like(plane), torch.zeros_like(plane)))
    return MRF(depth=plane, weight=plane, local=local), state


@pytest.mark.parametrize("edges", [0, 2, 4, 5, 64])
def test_wrong_number_of_senders(edges: int) -> None:
    """2 was taken for 4 neighbours, 5 overran an array."""
    wrong, _ = field(edges)
    with pytest.raises(
        InputError, match=rf"^local_weight must have shape .*E: 1 or 3.*got .*4, {edges}, 4, 5"
    ):
        infer(wrong, backend="cpu", iterations=2, check=False)
    call = call_of("gbp_sweep")
    b, _, height, width = call.groups["inputs"]["weight"].shape
    call.groups["inputs"]["weight"] = torch.rand(
        b, edges, height, width, dtype=call.groups["inputs"]["weight"].dtype
    )
    with pytest.raises(InputError, match=r"^weight must have shape .*E: 1 or 3"):
        call.run(native)


@pytest.mark.parametrize("edges", [2, 5])
def test_wrong_number_of_senders_with_gradients(edges: int) -> None:
    wrong, _ = field(edges)
    wrong.local.weight.requires_grad_()
    for backward in ("tape", "recompute"):
        with pytest.raises(InputError, match=r"^local_weight must have shape"):
            infer(wrong, backend="cpu", iterations=2, check=False, backward=backward)


@pytest.mark.parametrize("direction", [-1, 4, 9, 2**31 - 1])
def test_direction_outside_the_table(direction: int) -> None:
    for operator in ("gbp_sweep", "gbp_sweep_adjoint"):
        call = call_of(operator)
        call.options["direction"] = direction
        with pytest.raises(InputError, match=rf"^direction must be in 0 to 3; got {direction}"):
            call.run(native)
    plane, slots, edges = torch.rand(1, 1, 4, 5), torch.rand(1, 8, 4, 5), torch.rand(1, 3, 4, 5)
    with pytest.raises(InputError, match=r"^direction must be in 0 to 3"):
        cpu.sweep(Gaussian(plane, plane), Gaussian(slots, slots), edges, edges, plane, direction=direction)


@pytest.mark.parametrize("slots", [0, 1, 4, 7, 9])
def test_wrong_number_of_message_slots(slots: int) -> None:
    """4 was a segmentation fault."""
    good, messages = field(3, slots)
    with pytest.raises(InputError, match=rf"^messages_local_information must .*got \[1, {slots}, 4, 5\]"):
        infer(good, messages, backend="cpu", iterations=1, check=False)
    plane, short, edges = torch.rand(1, 1, 4, 5), torch.rand(1, slots, 4, 5), torch.rand(1, 3, 4, 5)
    with pytest.raises(InputError, match=r"^messages\.information must have shape \[B=1, 8, H=4, W=5\]"):
        cpu.sweep(Gaussian(plane, plane), Gaussian(short, short), edges, edges, plane, direction=0)


@pytest.mark.parametrize("axes", [2, 4, 5, 7])
def test_wrong_number_of_axes_through_infer(axes: int) -> None:
    good, _ = field(3)
    edges = LocalEdges(
        weight=torch.rand([1, 1, 1, 4, 3, 4, 5][-axes:]),
        difference=good.local.difference,
        damping=good.local.damping,
    )
    with pytest.raises(InputError, match=r"^local_weight must have shape"):
        infer(
            MRF(depth=good.depth, weight=good.weight, local=edges), backend="cpu", iterations=1, check=False
        )


def test_too_few_sets_of_parameters() -> None:
    call = call_of("gbp_infer", lambda c: c.groups["outcome"]["tape"] is None)
    weight = call.groups["field"]["local_weight"]
    call.groups["field"]["local_weight"] = weight.repeat(1, 3 // weight.shape[1], 1, 1, 1, 1)[:, :2]
    call.options["iterations"] = 3
    with pytest.raises(InputError, match=r"^local_\w+ must have shape .*T: 1 or at least 3"):
        call.run(native)


def test_too_many_learned_edges_and_too_long_sides() -> None:
    call = call_of("gbp_nonlocal_step")
    offset = call.groups["inputs"]["offset"]
    for name in ("weight", "difference"):
        old = call.groups["inputs"][name]
        call.groups["inputs"][name] = old.new_zeros(old.shape[0], 17, *old.shape[2:])
    call.groups["inputs"]["offset"] = offset.new_zeros(offset.shape[0], 17, *offset.shape[2:])
    with pytest.raises(InputError, match=r"^weight must have shape .*K: 0 to 16"):
        call.run(native)
    call.groups["inputs"]["base_information"] = torch.empty(1, 1, 1, 2**24 + 1, dtype=offset.dtype)
    with pytest.raises(InputError, match=r"^base_information must have shape .*W: 0 to 16777216"):
        call.run(native)


def test_reweighting_too_small_for_float32() -> None:
    single = call_of("gbp_sweep", lambda c: c.groups["inputs"]["weight"].dtype == torch.float32)
    twice = call_of("gbp_sweep", lambda c: c.groups["inputs"]["weight"].dtype == torch.float64)
    single.options["reweighting"] = twice.options["reweighting"] = 1e-60
    with pytest.raises(InputError, match=r"^reweighting must be finite and above 0"):
        single.run(native)
    twice.run(native)


def test_partly_given_learned_edges() -> None:
    call = call_of("gbp_infer", lambda c: c.groups["field"]["nonlocal_offset"] is not None)
    call.groups["field"]["nonlocal_offset"] = None
    with pytest.raises(InputError, match=r"^nonlocal_offset is missing"):
        call.run(native)


def test_thousand_wrong_calls_of_every_operator() -> None:
    count = int(os.environ.get("GBPN_WRONG_CALLS", "1000"))
    source = str(Path(gbpn.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(HERE / "wrong_calls.py"), str(count), "0"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-4000:]}"
    counts = json.loads(done.stdout)
    assert set(counts) == set(OPERATORS)
    assert all(sum(kinds.values()) == count for kinds in counts.values())
    assert all(len(kinds) >= (5 if name == "scan" else 11) for name, kinds in counts.items()), counts


def test_every_operator_is_among_them() -> None:
    """Whatever takes tensors is called with wrong ones."""
    functions = {name for name in dir(native) if callable(getattr(native, name)) and name[0] != "_"}
    others = {"simd_level", "force_simd_level", "has_pairs", "tape_planes", "kept_floats"}
    assert functions - others == set(OPERATORS)


def test_an_error_in_a_thread_reaches_python() -> None:
    """Working memory of 2⁴⁸ bytes is asked for in three threads; none of them may end the process."""
    plane, slots = torch.zeros(3, 1, 128, 128), torch.zeros(3, 8, 128, 128)
    edges, far = torch.zeros(3, 1, 4, 3, 128, 128), torch.zeros(3, 1, 1, 128, 128)
    messages = {
        **dict.fromkeys(("messages_local_information", "messages_local_precision"), slots),
        **dict.fromkeys(("messages_nonlocal_information", "messages_nonlocal_precision"), plane),
    }
    given = {
        **dict.fromkeys(("unary_information", "unary_precision"), plane),
        **messages,
        **dict.fromkeys(("local_weight", "local_difference"), edges),
        "local_damping": plane,
        **dict.fromkeys(("nonlocal_weight", "nonlocal_difference"), far),
        "nonlocal_offset": torch.zeros(3, 1, 1, 2, 128, 128),
        "nonlocal_damping": plane,
    }
    with pytest.raises(MemoryError):
        native.gbp_infer_adjoint(
            field=given,
            outcome={**messages, "tape": torch.zeros(3, 1, 18, 128, 128)},
            cotangents={**messages, **dict.fromkeys(("belief_information", "belief_precision"), plane)},
            gradients={name: torch.zeros_like(tensor) for name, tensor in given.items()},
            iterations=1,
            steps=2**31 - 1,
            reweighting=1.0,
            checkpoints=True,
            threads=3,
        )


def test_tables_of_both_languages_are_one() -> None:
    assert native.SENDERS == mrf.SENDERS
    assert len(mrf.RING) == native.MESSAGE_SLOTS
    for edges in (1, 3):
        for learned in (False, True):
            for steps in (0, 1, 4):
                for tape in ("tape", "recompute"):
                    assert operators.tape_planes(edges, learned, steps, tape) == native.tape_planes(
                        edges=edges, learned=learned, steps=steps, checkpoints=tape == "recompute"
                    )


@pytest.mark.parametrize("name", ["avx1024", "", "AVX2", "auto "])
def test_unknown_instruction_set(name: str) -> None:
    before = native.simd_level()
    if name:
        with pytest.raises(ValueError, match="SIMD level must be"):
            native.force_simd_level(name)
    with pytest.raises(TypeError):
        native.force_simd_level(3)
    assert native.simd_level() == before
