"""The cost model: what it counts is what happens, what it assumes bends the answer the right way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

pytest.importorskip("triton", reason="needs triton (pip install gbpn[gpu])")

from fields import directed_field
from gbpn import Gaussian, infer
from gbpn.bench import gpu_model
from gbpn.bench.gpu_model import (
    BETWEEN,
    RTX_4090,
    STEP_LAUNCHES,
    Resources,
    adjoint_launches,
    occupancy,
    sweep_launches,
)
from gbpn.gbp.inference import KEPT_PLANES, fitting_backward

_NO_KERNEL = ("empty", "view", "transpose", "slice", "select", "as_strided", "expand", "detach", "reshape")


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """How many kernels a function starts: ours, which are not run, and torch's."""
    from gbpn.gbp.triton import nonlocal_operator, sweep_operator

    launched: list[object] = []
    for module in (nonlocal_operator, sweep_operator):
        monkeypatch.setattr(module, "launch", lambda kernel, *rest, **options: launched.append(kernel))

    def count(run: Callable[[], object]) -> int:
        run()  # constants are made once
        launched.clear()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            run()
        events = [event for event in profile.events() if event.name.startswith("aten::")]
        names = [event.name for event in events if not event.cpu_children]
        return len(launched) + sum(not any(word in name for word in _NO_KERNEL) for name in names)

    return count


@pytest.mark.parametrize("direction", range(4))
def test_a_sweep_starts_as_many_kernels_as_is_counted(direction: int, kernels) -> None:
    from gbpn.gbp.triton import sweep

    one, three, eight = (torch.ones(1, count, 5, 70) for count in (1, 3, 8))
    arguments = Gaussian(one, one), Gaussian(eight, eight), three, three, one
    assert kernels(lambda: sweep(*arguments, direction=direction)) == sweep_launches(direction % 2 == 0)


@pytest.mark.parametrize("direction", range(4))
def test_an_adjoint_starts_as_many_kernels_as_is_counted(direction: int, kernels) -> None:
    import gbpn.gbp.triton  # noqa: F401

    one, three, eight = (torch.ones(1, count, 5, 70) for count in (1, 3, 8))
    arguments = (*(eight,) * 2, *(one,) * 2, *(eight,) * 4, three, three, one, direction, 1.0)
    run = torch.ops.gbpn.triton_sweep_adjoint
    assert kernels(lambda: run(*arguments)) == adjoint_launches(direction % 2 == 0)


def test_a_tape_keeps_as_much_as_is_counted(kernels) -> None:
    """Beside the field itself; the counted kernels are not run."""
    field = directed_field(5, 70, iterations=3)
    leaves = [field.weight, field.local.weight, field.local.difference, field.local.damping]
    leaves += [getattr(field.nonlocal_, name) for name in ("weight", "difference", "offset", "damping")]
    own = {leaf.requires_grad_().untyped_storage().data_ptr() for leaf in leaves}

    def kept(iterations: int) -> int:
        found: dict[int, int] = {}

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                found[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            answer = infer(field, iterations=iterations, backend="triton", check=False)
        assert answer.belief.precision.requires_grad
        return sum(found.values()) // (5 * 70 * field.weight.element_size())

    assert kept(3) - kept(2) == KEPT_PLANES["tape"]


def test_a_tape_that_fills_a_quarter_of_the_memory_is_not_kept() -> None:
    frame = 288 * 1216
    assert fitting_backward(2 * frame, 13, 4, memory=24 * 2**30) == "tape"
    assert fitting_backward(8 * frame, 13, 4, memory=24 * 2**30) == "recompute"
    assert fitting_backward(2 * frame, 13, 4, memory=8 * 2**30) == "recompute"


def test_an_iteration_starts_as_many_kernels_as_is_counted(kernels) -> None:
    field = directed_field(5, 70, iterations=3)

    def started(iterations: int, steps: int) -> int:
        options = {"iterations": iterations, "nonlocal_steps": steps, "backend": "triton", "check": False}
        return kernels(lambda: infer(field, **options))

    sweeps = 2 * sweep_launches(True) + 2 * sweep_launches(False)
    assert started(2, 2) - started(1, 2) == sweeps + 2 * STEP_LAUNCHES + BETWEEN


def test_occupancy_is_what_is_scarcest() -> None:
    small = Resources(registers=32, shared=0, barriers=0, instructions=1, warps=2)
    assert occupancy(RTX_4090, small) == 24  # programs
    assert occupancy(RTX_4090, replace(small, warps=8)) == 6  # threads
    assert occupancy(RTX_4090, replace(small, registers=255, warps=4)) == 2  # registers
    assert occupancy(RTX_4090, replace(small, shared=50_000)) == 2  # shared memory


def test_strips_follow_one_another() -> None:
    kernel = Resources(registers=48, shared=256, barriers=14, instructions=480, warps=2)
    seconds = gpu_model._sweep_seconds
    one = seconds(RTX_4090, kernel, 100, 60, True)
    alone = seconds(RTX_4090, kernel, 4, 60, True) / 4
    assert one > 100 * alone  # no line is skipped …
    assert one < 160 * alone  # … and the second strip follows close behind
    assert seconds(RTX_4090, kernel, 100, 60, False) > one
    assert seconds(RTX_4090, kernel, 200, 60, True) > 1.8 * one
    assert seconds(RTX_4090, kernel, 100, 600, True) < 3 * one  # wider images have more strips at work


@pytest.mark.skipif(not os.environ.get("GBPN_ALL_TESTS"), reason="compiles kernels: set GBPN_ALL_TESTS=1")
def test_the_command_says_that_it_is_computed() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "0"}
    command = [sys.executable, "-m", "gbpn.cli", "bench", "gpu-model", "--size", "64x96"]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert "computed, not measured" in text
    told = subprocess.run([*command, "--json"], env=environment, capture_output=True, text=True, check=True)
    found = json.loads(told.stdout)["64x96"]
    assert found["computed"] is True
    for name in ("sweep", "step", "sweep adjoint", "step adjoint"):
        assert found["kernels"][name]["registers"] > 16
    assert found["as_one_graph_seconds"] < found["total"]["seconds"]
    assert found["gradient"]["recompute"]["kept"] < found["gradient"]["tape"]["kept"] / 4
    assert found["gradient"]["recompute"]["seconds"] > found["gradient"]["tape"]["seconds"]
    assert found["attention"]["launches"] == 30
    assert found["total"]["launches"] > 13 * 4
