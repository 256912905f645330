"""`python -m tests.laws --minutes 30 --seed 7`: laws of answers over drawn cases; 1 if any is broken.

Every broken law is printed once, as the smallest case that was found, with the command that repeats it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from .case import Case
from .laws import LAWS

_MOST_STEPS = 40
"""Smaller cases that are tried."""


def broken(case: Case) -> str | None:
    """What is said where the law does not hold."""
    try:
        LAWS[case.law](case)
    except Exception as error:  # whatever it is, the law does not hold
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return None


def smallest(case: Case) -> Case:
    """The smallest case nearby that breaks the law too."""
    for _ in range(_MOST_STEPS):
        for other in case.smaller():
            if broken(other) is not None:
                case = other
                break
        else:
            return case
    return case


def campaign(seed: int, minutes: float, cases: int | None = None) -> tuple[Counter[str], dict[str, Case]]:
    """Cases by law, and of each broken one the smallest."""
    counts: Counter[str] = Counter()
    fell: dict[str, Case] = {}
    end = time.monotonic() + 60 * minutes
    names = list(LAWS)
    number = 0
    while time.monotonic() < end and (cases is None or number < cases):
        case = Case.drawn(names[number % len(names)], seed * 1_000_003 + number)
        number += 1
        if case.law in fell:
            continue
        counts[case.law] += 1
        if broken(case) is not None:
            fell[case.law] = smallest(case)
    return counts, fell


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.laws", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long")
    parser.add_argument("--cases", type=int, help="at most this many")
    parser.add_argument("--seed", type=int, default=0, help="which cases")
    parser.add_argument("--law", choices=LAWS, help="repeat one case: with --case")
    parser.add_argument("--case", type=int, nargs=4, metavar=("SEED", "HEIGHT", "WIDTH", "COUNT"))
    options = parser.parse_args()
    if options.law and options.case:
        seed, height, width, count = options.case
        said = broken(Case(law=options.law, seed=seed, height=height, width=width, count=count))
        print(said or "holds")
        return int(said is not None)
    counts, fell = campaign(options.seed, options.minutes, options.cases)
    for name in LAWS:
        print(f"{name:45} {counts[name]:6} {'BROKEN' if name in fell else 'holds' if counts[name] else '–'}")
    print(f"{'all':45} {counts.total():6} {len(fell)} broken")
    for name, case in fell.items():
        print(f"\n{name}: {broken(case)}")
        numbers = f"{case.seed} {case.height} {case.width} {case.count}"
        print(f"  python -m tests.laws --law {name} --case {numbers}")
    return int(bool(fell))


if __name__ == "__main__":
    sys.exit(main())
