"""`python -m tests.fuzz --minutes 30 --seed 7`: hostile input for as long as wanted; 1 if anything fell."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .campaign import BAD, Child, Here, campaign, serve


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, help="how long; 1 if neither this nor --tries is given")
    parser.add_argument("--tries", type=int, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="which cases")
    parser.add_argument("--only", type=int, help="run this one case here, without a child")
    parser.add_argument("--here", action="store_true", help="no child and no limits: under a sanitizer")
    parser.add_argument("--reports", type=Path, default=Path("fuzz-reports"), help="where failures are kept")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        serve(options.seed, options.child)
        return 0
    if options.only is not None:
        from .cases import run

        with tempfile.TemporaryDirectory() as folder:
            kind, outcome, detail = run(options.seed, options.only, Path(folder) / "case")
        print(f"{kind}: {outcome}\n{detail}")
        return int(outcome in BAD)
    minutes = 1.0 if options.minutes is None and options.tries is None else options.minutes
    seconds = None if minutes is None else 60 * minutes
    child = Here if options.here else Child
    tally = campaign(options.seed, tries=options.tries, seconds=seconds, reports=options.reports, child=child)
    print(tally.table())
    for place in tally.reports:
        print(f"kept: {place}")
    return int(bool(tally.reports))


if __name__ == "__main__":
    sys.exit(main())
