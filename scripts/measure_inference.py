"""The numbers of docs/inference.md: python scripts/measure_inference.py [PART ...]

Fields are the made-up piecewise rooms of tests/fields.py, so that the exact answer is known.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from fields import piecewise_field  # noqa: E402
from gbpn import MRF, SymmetricEdges, infer  # noqa: E402
from gbpn.gbp.exact import solve  # noqa: E402

SIZE = (96, 128)
SMALL = (48, 64)
SEEDS = (0, 1, 2, 3)


def rooms(size: tuple[int, int], repeat: int = 1, damping: float = 0.0) -> tuple[MRF, Tensor, Tensor]:
    """The fields of all seeds as one batch, each `repeat` times; their true depths; the spread of those [B]."""
    fields, truths = zip(*(piecewise_field(*size, seed=s) for s in SEEDS for _ in range(repeat)), strict=True)
    truth = torch.cat(truths)
    mrf = MRF(
        depth=torch.cat([f.depth for f in fields]),
        weight=torch.cat([f.weight for f in fields]),
        local=SymmetricEdges(
            weight=torch.cat([f.local.weight for f in fields]),
            difference=torch.cat([f.local.difference for f in fields]),
            damping=torch.full((len(fields), 1, *size), damping, dtype=truth.dtype),
        ),
    )
    flat = truth.flatten(1)
    return mrf, truth, flat.amax(1) - flat.amin(1)


def distance(one: Tensor, other: Tensor) -> Tensor:
    """Mean absolute difference of each image, [B] metres."""
    return (one - other).abs().flatten(1).mean(1)


def with_points(mrf: MRF, depth: Tensor, places: list[tuple[int, int]]) -> MRF:
    """Image b with one more measurement at places[b], of the weight of the others; depth 0 removes it."""
    s, w = mrf.depth.clone(), mrf.weight.clone()
    for b, (row, column) in enumerate(places):
        value = float(depth[b, 0, row, column])
        s[b, 0, row, column], w[b, 0, row, column] = value, (20.0 if value else 0.0)
    return mrf.measured(s, w)


def warm() -> None:
    """One warm iteration after adding a point, against a cold run of the same length."""
    corners = [(20, 30), (70, 30), (20, 90), (70, 90)]
    mrf, truth, spread = rooms(SIZE, repeat=len(corners))
    added = with_points(mrf, truth, corners * len(SEEDS))
    exact = solve(added).mean
    print(
        f"add one point after T iterations, {SIZE[0]}×{SIZE[1]}, {len(SEEDS)} fields × {len(corners)} points"
    )
    print(
        "   T   |warm − cold| / spread: mean, worst   error to exact / spread: before, warm, cold", flush=True
    )
    for iterations in (5, 8, 13):
        before = infer(mrf, iterations=iterations)
        warm = infer(added, before.messages, iterations=1).belief.mean
        cold = infer(added, iterations=iterations + 1).belief.mean
        apart = distance(warm, cold) / spread
        errors = [distance(mean, exact) / spread for mean in (before.belief.mean, warm, cold)]
        row = [float(apart.mean()), float(apart.max()), *(float(error.mean()) for error in errors)]
        print(f"  {iterations:>2}   " + "   ".join(f"{value:.4f}" for value in row), flush=True)


def forget() -> None:
    """How many warm iterations until a measurement that was 1 m wrong no longer shows."""
    count, steps = 13, (1, 2, 5, 10, 20, 50, 100)
    places = [(20, 30)] * len(SEEDS)
    print(f"\nwarm iterations after T = {count}: % of the old point's effect on the mean that is left,")
    print(f"against cold runs of the same length; {SMALL[0]}×{SMALL[1]}, mean over {len(SEEDS)} fields")
    print("  after             " + "".join(f"{k:>8}" for k in steps), flush=True)
    for name, removed, damping, rho in (
        ("corrected", False, 0.0, 1.0),
        ("removed", True, 0.0, 1.0),
        ("removed, β = 0.3", True, 0.3, 1.0),
        ("removed, ρ = 0.3", True, 0.0, 0.3),
    ):
        mrf, truth, _ = rooms(SMALL, damping=damping)
        after = with_points(mrf, torch.zeros_like(truth) if removed else truth, places)
        warm = infer(with_points(mrf, truth + 1, places), iterations=count, reweighting=rho)
        cold = infer(after, iterations=count, reweighting=rho)
        effect = distance(warm.belief.mean, cold.belief.mean)
        left = []
        for k in range(1, max(steps) + 1):
            warm = infer(after, warm.messages, iterations=1, reweighting=rho)
            cold = infer(after, cold.messages, iterations=1, reweighting=rho)
            if k in steps:
                left.append(float((distance(warm.belief.mean, cold.belief.mean) / effect).mean()))
        print(f"  {name:<18}" + "".join(f"{100 * value:>8.1f}" for value in left), flush=True)


def reweighting() -> None:
    """Mean and precision against exact at T = 5, and whether long runs converge."""
    print(f"\nreweighting ρ, 8 neighbours, {SIZE[0]}×{SIZE[1]}, mean over {len(SEEDS)} fields")
    print("     ρ   T = 5: |mean − exact| (m)   median precision / exact   T = 60: |mean − exact| (m)")
    mrf, _, _ = rooms(SIZE)
    exact = solve(mrf, variances=True).belief
    for rho in (0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0):
        short = infer(mrf, iterations=5, reweighting=rho)
        long = infer(mrf, short.messages, iterations=55, reweighting=rho).belief
        ratio = float((short.belief.precision / exact.precision).flatten(1).median(1).values.mean())
        error, late = (float(distance(b.mean, exact.mean).mean()) for b in (short.belief, long))
        print(f"  {rho:.2f}   {error:>25.4f}   {ratio:>24.2f}   {late:>26.2e}", flush=True)


def solvers() -> None:
    """Seconds of the exact solvers, one thread, the smallest of three runs."""
    torch.set_num_threads(1)
    print("\nseconds (smallest of 3, one thread) and conjugate-gradient steps; float64, about 1 % measured")
    for size in ((256, 320), (352, 1216)):
        mrf, _ = piecewise_field(*size)
        for label, options in (
            ("exact", {}),
            ("cg", {"solver": "cg"}),
            ("amg", {"solver": "amg"}),
            ("exact + variances", {"variances": True}),
        ):
            seconds, steps = [], 0
            for _ in range(1 if "variances" in options else 3):
                start = time.perf_counter()
                steps = solve(mrf, **options).iterations
                seconds.append(time.perf_counter() - start)
            print(f"  {size[0]}×{size[1]:<6}{label:<20}{min(seconds):>8.2f} s {steps:>6} steps")


PARTS = {"warm": warm, "forget": forget, "reweighting": reweighting, "solvers": solvers}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", choices=[*PARTS, []], help="default: all")
    for part in parser.parse_args().part or PARTS:
        PARTS[part]()
