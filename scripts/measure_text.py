"""What the paper's text changes against its authors' release, switch by switch: the numbers of
docs/paper-release-ours.md.

usage: python scripts/measure_text.py [FOLDER of frames, as `gbpn eval pool` takes]
Prints two tables: random fields (mean absolute difference of depth, processor time of inference) and, where a
folder is given, the error of the default weights with each switch thrown.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np
import torch

import gbpn
from gbpn import MRF, LocalEdges, NonLocalEdges, infer
from gbpn.datasets import open_dataset
from gbpn.datasets.selection import evenly_spaced
from gbpn.evaluate.settings import Setting
from gbpn.gbp import Scheme
from gbpn.gbp.scheme import TEXT

SWITCHES = {
    "release": Scheme(),
    "damped=always": Scheme(damped="always"),
    "edge_sets=disjoint": Scheme(edge_sets="disjoint"),
    "far_messages=by-edge": Scheme(far_messages="by-edge"),
    "text": TEXT,
}
FRAMES = 20


def random_field(height: int, width: int, iterations: int, seed: int) -> MRF:
    """Edges as an untrained network draws them, with some spread; 500 measurements in 256×320."""
    g = torch.Generator().manual_seed(seed)

    def drawn(low: float, high: float, *shape: int) -> torch.Tensor:
        return low + (high - low) * torch.rand(1, *shape, height, width, generator=g)

    measured = drawn(0, 1, 1) < 500 / (256 * 320)
    return MRF(
        depth=drawn(1, 5, 1) * measured,
        weight=drawn(0.1, 2, 1) * measured,
        local=LocalEdges(
            weight=drawn(0.05, 2, iterations, 4, 3),
            difference=drawn(-0.05, 0.05, iterations, 4, 3),
            damping=drawn(0, 0.9, iterations),
        ),
        nonlocal_=NonLocalEdges(
            weight=drawn(0.05, 2, iterations, 3),
            difference=drawn(-0.05, 0.05, iterations, 3),
            offset=drawn(-3, 3, iterations, 3, 2),
            damping=drawn(0, 0.9, iterations),
        ),
    )


def on_random_fields() -> None:
    fields = [random_field(128, 160, 5, seed) for seed in range(10)]
    released = [infer(field).belief.mean for field in fields]
    large = random_field(256, 320, 13, seed=0)
    print(f"{'switch':22s} {'mean |change|, m':>17s} {'ms of CPU, 256×320, T = 13':>27s}")
    for name, scheme in SWITCHES.items():
        answers = [infer(field, scheme=scheme).belief.mean for field in fields]
        pairs = zip(released, answers, strict=True)
        change = float(np.mean([float((a - b).abs().nanmean()) for a, b in pairs]))
        times = []
        for _ in range(3):
            start = time.process_time()
            infer(large, scheme=scheme, check=False)
            times.append(time.process_time() - start)
        print(f"{name:22s} {change:17.4f} {1000 * min(times):27.0f}")


def on_frames(folder: str) -> None:
    model = gbpn.load()
    frames = open_dataset("pool", folder)
    at = evenly_spaced(len(frames), FRAMES)
    chosen = [Setting().measure(frames.load(n)) for n in at]
    usual = model.config
    throws = {
        "release": {},
        "damped=always": {"damped": "always"},
        "edge_sets=disjoint": {"edge_sets": "disjoint"},
        "far_messages=by-edge": {"far_messages": "by-edge"},
        "second_start=empty": {"second_start": "empty"},
    }
    throws["all four"] = {k: v for changes in throws.values() for k, v in changes.items()}
    print(f"\n{'default weights':22s} {'RMSE, m':>9s} {'REL':>8s}   {len(chosen)} frames")
    for name, changes in throws.items():
        model.config = replace(usual, **changes)
        rmse, rel = [], []
        for sample in chosen:
            with torch.inference_mode():
                answer = model.complete(
                    sample.image[None], sample.sparse[None], sample.intrinsics[None], sigmas=False
                ).mean[0]
            valid = sample.target > 1e-4
            error = (answer - sample.target)[valid]
            rmse.append(float(error.square().mean().sqrt()))
            rel.append(float((error.abs() / sample.target[valid]).mean()))
        print(f"{name:22s} {np.mean(rmse):9.4f} {np.mean(rel):8.4f}")


if __name__ == "__main__":
    on_random_fields()
    if len(sys.argv) > 1:
        on_frames(sys.argv[1])
