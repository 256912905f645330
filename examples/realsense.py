"""Fill the holes of a RealSense camera, live.

    pip install pyrealsense2
    python examples/realsense.py

Shows rate, age and the share of pixels that the sensor left open and that are filled now, and writes the last
frame to realsense.png. `frames` needs the camera; everything else is run by tests/documents/test_examples.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import numpy as np

import gbpn

Frame = tuple[np.ndarray, np.ndarray, tuple[float, float, float, float], float]
"""Colour [H, W, 3] RGB uint8, depth [H, W] metres aligned to it, fx, fy, cx, cy, time in seconds."""


def frames(width: int = 640, height: int = 480, rate: int = 30) -> Iterator[Frame]:
    """What the camera sees, depth aligned to colour."""
    import pyrealsense2 as rs

    pipeline, config = rs.pipeline(), rs.config()
    config.enable_stream(rs.stream.depth, width, height, rs.format.z16, rate)
    config.enable_stream(rs.stream.color, width, height, rs.format.rgb8, rate)
    profile = pipeline.start(config)
    unit = profile.get_device().first_depth_sensor().get_depth_scale()
    align = rs.align(rs.stream.color)
    try:
        while True:
            both = align.process(pipeline.wait_for_frames())
            colour, depth = both.get_color_frame(), both.get_depth_frame()
            if not colour or not depth:
                continue
            lens = colour.profile.as_video_stream_profile().intrinsics
            metres = np.asanyarray(depth.get_data()).astype(np.float32) * unit
            camera = (lens.fx, lens.fy, lens.ppx, lens.ppy)
            yield np.asanyarray(colour.get_data()).copy(), metres, camera, colour.get_timestamp() / 1000
    finally:
        pipeline.stop()


def run(
    completer: gbpn.DepthCompleter, source: Iterable[Frame], seconds: float = 30.0
) -> gbpn.CompletedDepth | None:
    """Complete what comes for some time; the last answer."""
    live: gbpn.Live | None = None
    told, answer = 0, None
    end = time.monotonic() + seconds
    for image, depth, camera, stamp in source:
        if live is None:
            live = gbpn.Live(completer, camera)
        live.push_image(image, stamp)
        live.push_depth(depth, stamp)
        answer = live.latest
        if answer is not None and answer.number > told:
            told = answer.number
            holes = 1 - float((answer.result.sparse > 0).float().mean())
            print(f"{answer.rate:.1f}/s, {answer.age:.2f} s old, {holes:.0%} of the pixels filled")
        if time.monotonic() > end:
            break
    if live is not None:
        answer = live.wait(10, after=0) or answer
        live.close()
    return None if answer is None else answer.result


if __name__ == "__main__":
    result = run(gbpn.DepthCompleter.from_pretrained(), frames())
    if result is not None:
        result.preview("realsense.png")
