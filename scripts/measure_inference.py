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

from fields import piecewise_field, symmetric_field  # noqa: E402
from gbpn import MRF, SymmetricEdges, infer  # noqa: E402
from gbpn.gbp.exact import solve  # noqa: E402

SIZE = (96, 128)
SMALL = (48, 64)
SEEDS = (0, 1, 2, 3)
STIFF, SOFT = 1.0, 0.02
"""Factor on the edge weights: 50 /m² or 1 /m² inside a plane, against 20 /m² of a measurement."""


def rooms(
    size: tuple[int, int], *, stiffness: float = STIFF, damping: float = 0.0, kinds: int = 4
) -> tuple[MRF, Tensor]:
    """The fields of all seeds as one batch, and their true depths."""
    fields, truths = zip(*(piecewise_field(*size, seed=seed) for seed in SEEDS), strict=True)
    truth = torch.cat(truths)
    mrf = MRF(
        depth=torch.cat([f.depth for f in fields]),
        weight=torch.cat([f.weight for f in fields]),
        local=SymmetricEdges(
            weight=stiffness * torch.cat([f.local.weight[:, :, :kinds] for f in fields]),
            difference=torch.cat([f.local.difference[:, :, :kinds] for f in fields]),
            damping=torch.full((len(fields), 1, *size), damping, dtype=truth.dtype),
        ),
    )
    return mrf, truth


def distance(one: Tensor, other: Tensor) -> Tensor:
    """Mean absolute difference of each image, [B] metres."""
    return (one - other).abs().flatten(1).mean(1)


def with_points(mrf: MRF, depth: Tensor, places: Tensor) -> MRF:
    """Image b with a measurement at its pixel places[b], weighted like the others; depth 0 removes it."""
    s, w = mrf.depth.clone(), mrf.weight.clone()
    value = depth.flatten(1).gather(1, places[:, None])
    s.view(len(places), -1).scatter_(1, places[:, None], value)
    w.view(len(places), -1).scatter_(1, places[:, None], 20.0 * (value != 0).to(w))
    return mrf.measured(s, w)


def warm() -> None:
    """One warm iteration after adding a point where the belief is most wrong, against a cold run."""
    count = 5
    print(f"one point added after T = {count}, where the belief is most wrong; {SIZE[0]}×{SIZE[1]}")
    print("                       error at the point, cm     over the image, % of the depth spread")
    print("                     none     warm     cold  warm–cold  none–cold  worst warm–cold", flush=True)
    for name, stiffness, rho in (
        ("stiff, ρ = 1", STIFF, 1.0),
        ("soft, ρ = 1", SOFT, 1.0),
        ("stiff, ρ = 0.3", STIFF, 0.3),
        ("soft, ρ = 0.3", SOFT, 0.3),
    ):
        mrf, truth = rooms(SIZE, stiffness=stiffness)
        flat = truth.flatten(1)
        spread = flat.amax(1) - flat.amin(1)
        before = infer(mrf, iterations=count, reweighting=rho)
        places = (before.belief.mean - truth).abs().flatten(1).argmax(1)
        added = with_points(mrf, truth, places)
        warm = infer(added, before.messages, iterations=1, reweighting=rho).belief.mean
        cold = infer(added, iterations=count + 1, reweighting=rho).belief.mean
        without = infer(mrf, before.messages, iterations=1, reweighting=rho).belief.mean
        there = [
            100 * float((mean - truth).abs().flatten(1).gather(1, places[:, None]).mean())
            for mean in (without, warm, cold)
        ]
        apart, effect = (100 * distance(one, cold) / spread for one in (warm, without))
        row = [float(x) for x in (*there, apart.mean(), effect.mean(), apart.max())]
        print(f"  {name:<16}" + "".join(f"{value:>9.2f}" for value in row), flush=True)


def forget() -> None:
    """How many warm iterations until a measurement that was 1 m wrong no longer shows."""
    count, steps = 13, (1, 2, 5, 10, 20, 50, 100)
    print(f"\nwarm iterations after T = {count}: % of the old point's effect on the mean that is left,")
    print(f"against cold runs of the same length; {SMALL[0]}×{SMALL[1]}, mean over {len(SEEDS)} fields")
    print("  after                    " + "".join(f"{k:>8}" for k in steps), flush=True)
    for name, removed, stiffness, damping, rho in (
        ("corrected, stiff", False, STIFF, 0.0, 1.0),
        ("removed, stiff", True, STIFF, 0.0, 1.0),
        ("removed, stiff, β = 0.3", True, STIFF, 0.3, 1.0),
        ("removed, stiff, ρ = 0.3", True, STIFF, 0.0, 0.3),
        ("removed, soft", True, SOFT, 0.0, 1.0),
        ("removed, soft, ρ = 0.3", True, SOFT, 0.0, 0.3),
    ):
        mrf, truth = rooms(SMALL, stiffness=stiffness, damping=damping)
        places = torch.full((len(SEEDS),), 20 * SMALL[1] + 30)
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
        print(f"  {name:<25}" + "".join(f"{100 * value:>8.1f}" for value in left), flush=True)


def reweighting() -> None:
    """Mean and precision against exact at T = 5, and after a long run."""
    for kinds, name in ((4, "8"), (2, "4")):
        print(f"\nreweighting ρ, {name} neighbours, {SIZE[0]}×{SIZE[1]}, mean over {len(SEEDS)} fields")
        print("     ρ   T = 5: |mean − exact| (m)   median precision / exact   T = 100: |mean − exact| (m)")
        mrf, _ = rooms(SIZE, kinds=kinds)
        exact = solve(mrf, variances=True).belief
        for rho in (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 1.0):
            short = infer(mrf, iterations=5, reweighting=rho)
            long = infer(mrf, short.messages, iterations=95, reweighting=rho).belief
            ratio = float((short.belief.precision / exact.precision).flatten(1).median(1).values.mean())
            error, late = (float(distance(b.mean, exact.mean).mean()) for b in (short.belief, long))
            print(f"  {rho:.2f}   {error:>25.4f}   {ratio:>24.2f}   {late:>27.4f}", flush=True)


def limit() -> None:
    """Where long runs end: only a large enough ρ has the exact mean as its fixed point."""
    print(
        "\nafter 3000 iterations on random 10×12 fields: largest |mean − exact| (m); median precision / exact"
    )
    print("     ρ   8 neighbours: error   precision   4 neighbours: error   precision", flush=True)
    for rho in (0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0):
        row = []
        for kinds in (4, 2):
            mrf = symmetric_field(10, 12, measured=0.1, kinds=kinds)
            exact = solve(mrf, variances=True).belief
            belief = infer(mrf, iterations=3000, reweighting=rho).belief
            row += [float((belief.mean - exact.mean).abs().max())]
            row += [float((belief.precision / exact.precision).median())]
        print(f"  {rho:.2f}   {row[0]:>19.1e}{row[1]:>12.2f}{row[2]:>22.1e}{row[3]:>12.2f}", flush=True)


def convergence() -> None:
    """How mean and precision approach their limits with the number of iterations, ρ = 1."""
    print(f"\n{SIZE[0]}×{SIZE[1]}, 8 neighbours, ρ = 1, mean over {len(SEEDS)} fields")
    print("                 |mean − exact| (m)    largest update (m)    median precision / exact")
    for name, stiffness in (("stiff", STIFF), ("soft", SOFT)):
        mrf, _ = rooms(SIZE, stiffness=stiffness)
        exact = solve(mrf, variances=True).belief
        messages, done = None, 0
        for count in (1, 5, 13, 50, 200, 1000):
            last = infer(mrf, messages, iterations=count - done - 1)
            answer = infer(mrf, last.messages, iterations=1)
            messages, done = answer.messages, count
            error = float(distance(answer.belief.mean, exact.mean).mean())
            update = float((answer.belief.mean - last.belief.mean).nan_to_num().abs().max())
            ratio = float((answer.belief.precision / exact.precision).flatten(1).median(1).values.mean())
            print(f"  {name:<5} T = {count:<5} {error:>18.4f}{update:>22.4f}{ratio:>28.2f}", flush=True)


def solvers() -> None:
    """CPU seconds, one thread, the smallest of three runs."""
    torch.set_num_threads(1)
    print("\nCPU seconds (smallest of 3, one thread), float64, 1 % measured")
    for size in ((256, 320), (352, 1216)):
        mrf, _ = piecewise_field(*size)
        for label, options in (
            ("gbp, 5 iterations", {"iterations": 5}),
            ("exact", {"solver": "exact"}),
            ("cg", {"solver": "cg"}),
            ("amg", {"solver": "amg"}),
            ("exact, variances", {"solver": "exact", "variances": True}),
        ):
            seconds, steps = [], 0
            for _ in range(1 if "variances" in options else 3):
                start = time.process_time()
                steps = infer(mrf, **options).iterations
                seconds.append(time.process_time() - start)
            print(f"  {size[0]}×{size[1]:<6}{label:<20}{min(seconds):>8.3f} s {steps:>6} steps", flush=True)


PARTS = {
    "convergence": convergence,
    "warm": warm,
    "forget": forget,
    "reweighting": reweighting,
    "limit": limit,
    "solvers": solvers,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", choices=[*PARTS, []], help="default: all")
    for part in parser.parse_args().part or PARTS:
        PARTS[part]()
