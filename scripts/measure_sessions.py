"""The numbers of docs/sessions.md: what a change costs, how warm differs from cold, which outliers are found.

python scripts/measure_sessions.py [WEIGHTS]      without weights: untrained models, whose cost is the same
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from torch.nn import functional

import gbpn
from gbpn import scenes
from gbpn.engine.session import Session
from gbpn.sample import Sample
from gbpn.sensors import patterns

SIZE = (256, 320)
POINTS, ADDITIONS, PLANTED = 200, 12, 10


def scene(name: str) -> Sample:
    sample = scenes.load(name)
    assert sample.target is not None
    image = functional.interpolate(sample.image[None], size=SIZE, mode="bilinear")[0]
    target = functional.interpolate(sample.target[None], size=SIZE, mode="nearest")[0]
    return Sample(image=image, sparse=torch.zeros_like(target), intrinsics=sample.intrinsics, target=target)


def milliseconds(session: Session) -> float:
    start = time.perf_counter()
    _ = session.depth
    return (time.perf_counter() - start) * 1000


def changes(completer: gbpn.DepthCompleter, stage: str) -> None:
    """Additions one by one."""
    sample, rng = scene("kitchen"), np.random.default_rng(0)
    assert sample.target is not None
    truth = sample.target[0].numpy()
    rows, columns = np.nonzero(patterns.random_points(sample.target, rng, POINTS)[0].numpy())
    session = completer.session(sample.image, sample.intrinsics, stage=stage)
    session.add(columns, rows, truth[rows, columns])
    times = []
    for place in rng.choice(np.flatnonzero(truth), ADDITIONS, replace=False):
        row, column = divmod(int(place), truth.shape[1])
        session.add(column, row, truth[row, column])
        times.append(milliseconds(session))
    print(
        f"{completer.model.config.name:8} stage {stage:6}: addition {min(times):.0f} ms at best, "
        f"{np.median(times):.0f} median"
    )


def outliers(completer: gbpn.DepthCompleter, name: str, limit: float) -> None:
    """Ten of 500 measurements made 2.5 times too far or too near."""
    sample, rng = scene(name), np.random.default_rng(0)
    assert sample.target is not None
    sparse = patterns.random_points(sample.target, rng, 500)[0].numpy()
    rows, columns = np.nonzero(sparse)
    depth = sparse[rows, columns]
    wrong = rng.choice(len(depth), PLANTED, replace=False)
    depth[wrong] *= np.where(rng.random(PLANTED) < 0.5, 0.4, 2.5)
    session = completer.session(sample.image, sample.intrinsics, stage="first")
    session.add(columns, rows, depth)
    planted = {(int(columns[i]), int(rows[i])) for i in wrong}
    found = [(one.x, one.y) for one in session.outliers(limit)]
    right = len(planted & set(found))
    print(f"{name:12} limit {limit:g}: {len(found)} reported, {right} of {PLANTED} planted ones among them")


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        completers = [gbpn.DepthCompleter.from_pretrained(sys.argv[1], device="cpu")]
    else:
        completers = [gbpn.DepthCompleter(gbpn.build(name)) for name in ("small", "small-2")]
    for completer in completers:
        two = completer.model.config.stages == 2
        for stage in ("first", "last") if two else ("last",):
            changes(completer, stage)
    for name in ("kitchen", "living_room", "bedroom"):
        for limit in (4.0, 8.0):
            outliers(completers[-1], name, limit)


if __name__ == "__main__":
    main()
