"""How much depth flickers in a video from a camera that stands still: frame by frame, and with messages kept.

    python scripts/measure_flicker.py [FRAMES]

An embedded room, 240×320, with new noise in the picture (2 of 255) and 500 new random points in every frame.
The truth does not move, so whatever changes between two answers is flicker: the mean over pixels of |change|,
metres.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

import gbpn
from gbpn import scenes
from gbpn.inputs.reading import frame_inputs
from gbpn.sensors import patterns

POINTS, NOISE = 500, 2 / 255


def main() -> None:
    frames = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    sample = scenes.load("living_room")
    assert sample.target is not None
    height, width = 240, 320
    image = torch.nn.functional.interpolate(sample.image[None], (height, width), mode="area")[0]
    target = torch.nn.functional.interpolate(sample.target[None], (height, width), mode="nearest")[0]
    factor = torch.tensor([[width / sample.image.shape[2]], [height / sample.image.shape[1]], [1.0]])
    camera = sample.intrinsics * factor
    methods = {"frame by frame": gbpn.DepthCompleter.from_pretrained(working_size="own").complete}
    for warm in (1, 3):
        stream = gbpn.DepthCompleter.from_pretrained(stream=warm).stream()
        methods[f"stream of {warm}"] = stream.frame
    print("method            flicker m   rmse m")
    for name, method in methods.items():
        rng = np.random.default_rng(0)
        answers = []
        for _ in range(frames):
            noise = torch.from_numpy(rng.normal(0, NOISE, image.shape)).float()
            sparse = patterns.random_points(target, rng, POINTS)
            answers.append(method(frame_inputs((image + noise).clamp(0, 1), sparse, camera)).depth)
        stack = np.stack(answers)
        flicker = float(np.abs(np.diff(stack[1:], axis=0)).mean())
        known = target[0].numpy() > 0
        errors = [np.sqrt(np.mean((depth - target[0].numpy())[known] ** 2)) for depth in stack[1:]]
        print(f"{name:17} {flicker:9.4f} {np.mean(errors):8.4f}", flush=True)


if __name__ == "__main__":
    main()
