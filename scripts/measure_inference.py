"""The numbers of docs/inference.md: python scripts/measure_inference.py [PART ...]

Fields are the made-up piecewise rooms of tests/fields.py, so that the exact answer is known.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from fields import piecewise_field  # noqa: E402
from gbpn import MRF, infer  # noqa: E402
from gbpn.gbp.exact import solve  # noqa: E402

SIZE = (96, 128)
SMALL = (48, 64)
SEEDS = (0, 1, 2, 3)


def mean_distance(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().mean())


def with_point(mrf: MRF, depth: float, row: int, column: int) -> MRF:
    """The field with one more measurement, of the weight of the others; depth 0 removes it."""
    s, w = mrf.depth.clone(), mrf.weight.clone()
    s[..., row, column], w[..., row, column] = depth, (20.0 if depth else 0.0)
    return mrf.measured(s, w)


def warm() -> None:
    """One warm iteration after adding a point, against a cold run of the same length."""
    print(f"add one point after T iterations, {SIZE[0]}×{SIZE[1]}, mean over {len(SEEDS)} fields × 4 points")
    print("  T   |warm − cold| / spread   cold error / spread   warm error / spread   (error: to exact)")
    for iterations in (5, 8, 13):
        rows = []
        for seed in SEEDS:
            mrf, truth = piecewise_field(*SIZE, seed=seed)
            spread = float(truth.max() - truth.min())
            before = infer(mrf, iterations=iterations)
            for row, column in ((20, 30), (70, 30), (20, 90), (70, 90)):
                added = with_point(mrf, float(truth[0, 0, row, column]), row, column)
                warm = infer(added, before.messages, iterations=1).belief.mean
                cold = infer(added, iterations=iterations + 1).belief.mean
                exact = solve(added).mean
                distances = mean_distance(warm, cold), mean_distance(cold, exact), mean_distance(warm, exact)
                rows.append([d / spread for d in distances])
        average = torch.tensor(rows).mean(0).tolist()
        print(f" {iterations:>2}   " + "".join(f"{value:>19.4f}   " for value in average))


def forget() -> None:
    """How many warm iterations until a measurement that was 1 m wrong no longer shows."""
    count, steps = 13, (1, 2, 5, 10, 20, 50, 100)
    print(
        f"\nwarm iterations after T = {count}: what is left of the old point, in % of its effect on the mean;"
    )
    print(f"compared with cold runs of the same length; {SMALL[0]}×{SMALL[1]}, worst of {len(SEEDS)} fields")
    print("  after             " + "".join(f"{k:>8}" for k in steps))
    for name, removed, damping, rho in (
        ("corrected", False, 0.0, 1.0),
        ("removed", True, 0.0, 1.0),
        ("removed, β = 0.3", True, 0.3, 1.0),
        ("removed, ρ = 0.3", True, 0.0, 0.3),
    ):
        worst = torch.zeros(len(steps))
        for seed in SEEDS:
            mrf, truth = piecewise_field(*SMALL, seed=seed)
            mrf = replace(mrf, local=replace(mrf.local, damping=torch.full_like(mrf.local.damping, damping)))
            depth = float(truth[0, 0, 20, 30])
            after = with_point(mrf, 0.0 if removed else depth, 20, 30)
            warm = infer(with_point(mrf, depth + 1, 20, 30), iterations=count, reweighting=rho)
            cold = infer(after, iterations=count, reweighting=rho)
            effect = mean_distance(warm.belief.mean, cold.belief.mean)
            for k in range(1, max(steps) + 1):
                warm = infer(after, warm.messages, iterations=1, reweighting=rho)
                cold = infer(after, cold.messages, iterations=1, reweighting=rho)
                if k in steps:
                    left = 100 * mean_distance(warm.belief.mean, cold.belief.mean) / effect
                    worst[steps.index(k)] = max(float(worst[steps.index(k)]), left)
        print(f"  {name:<18}" + "".join(f"{value:>8.1f}" for value in worst.tolist()))


def reweighting() -> None:
    """Mean and precision against exact at T = 5, and whether long runs converge."""
    print(f"\nreweighting ρ, 8 neighbours, {SIZE[0]}×{SIZE[1]}, mean over {len(SEEDS)} fields")
    print("     ρ   T = 5: |mean − exact| (m)   median precision / exact   T = 100: |mean − exact| (m)")
    fields = [piecewise_field(*SIZE, seed=seed)[0] for seed in SEEDS]
    exacts = [solve(mrf, variances=True).belief for mrf in fields]
    for rho in (0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0):
        rows = []
        for mrf, exact in zip(fields, exacts, strict=True):
            short = infer(mrf, iterations=5, reweighting=rho)
            long = infer(mrf, short.messages, iterations=95, reweighting=rho).belief
            ratio = float((short.belief.precision / exact.precision).median())
            rows.append(
                [mean_distance(short.belief.mean, exact.mean), ratio, mean_distance(long.mean, exact.mean)]
            )
        error, ratio, late = torch.tensor(rows).mean(0).tolist()
        print(f"  {rho:.2f}   {error:>25.4f}   {ratio:>24.2f}   {late:>27.2e}")


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
