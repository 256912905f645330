"""Rate, latency and memory of `gbpn.Live`, fed from a recording at the pace of its sensors.

    python scripts/measure_live.py                     # 320×240 and 640×192, 100 frames each at 10 Hz
    python scripts/measure_live.py --frames 2000 --sizes 320x240
    python scripts/measure_live.py --bag drive.mcap    # a recording of your own

Without a bag one is made from an embedded scene: a camera and a scanner of 32 lines at 10 Hz (MCAP, real
messages). The table says how many images came, were answered and were dropped; answers per second; latency
(from the push of the later of image and cloud to the answer) and age of the newest answer when an image
came, median and 95 %; and the memory of the process after a tenth of the frames and at the end.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gbpn
from gbpn import scenes
from gbpn.jobs.recorded import frame_of
from gbpn.jobs.sources import Sensor
from gbpn.recordings.bags import Recording
from gbpn.recordings.messages import image_fields
from gbpn.recordings.timestamps import NANOSECONDS

RATE = 10
DISTINCT = 20
"""Frames of a made recording; longer runs repeat them."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=["320x240", "640x192"])
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--rate", type=float, default=float(RATE))
    parser.add_argument("--bag", type=Path)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    completer = gbpn.DepthCompleter.from_pretrained()
    print(
        "size      images answered dropped  rate/s  latency ms (95 %)  age ms (95 %)  memory MB", flush=True
    )
    for size in arguments.sizes:
        width, height = (int(word) for word in size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            bag = arguments.bag or make_bag(Path(folder) / "bag", height, width)
            with Recording(bag) as recording:
                told = measure(completer, recording, arguments.frames, arguments.rate)
        print(f"{size:9} {told}", flush=True)


def measure(completer: gbpn.DepthCompleter, recording: Recording, count: int, rate: float) -> str:
    """Read and push frames at `rate` per second."""
    pairs, _ = recording.pairs()
    start = recording.frame(*pairs[0])
    first, transform = frame_of(start, Sensor(), recording.path), start.to_camera
    latencies: list[float] = []
    ages, memory = [], []

    def collect() -> None:
        number = 0
        while (answer := live.wait(60, after=number)) is not None:
            number = answer.number
            latencies.append(answer.latency)

    with gbpn.Live(completer, first.intrinsics, transform) as live:
        collector = threading.Thread(target=collect)
        collector.start()
        begin = time.monotonic()
        for number in range(count):
            time.sleep(max(0.0, begin + number / rate - time.monotonic()))
            frame = recording.frame(*pairs[number % len(pairs)])
            live.push_image(frame.picture, number / rate)
            live.push_cloud(frame.points, number / rate)
            if (answer := live.latest) is not None:
                ages.append(answer.age)
            if number in (count // 10, count - 1):
                gc.collect()
                memory.append(resident())
        newest, dropped, spent = live.latest, live.dropped, time.monotonic() - begin
        total = 0 if newest is None else newest.number
    collector.join()
    if live.failed:
        raise SystemExit(f"{live.failed} pairs failed: {live.problem}")
    late, old = (_spread(values) for values in (latencies, ages))
    megabytes = f"{memory[0]:.0f} → {memory[-1]:.0f}"
    return f"{count:6} {total:8} {dropped:7} {total / spent:7.2f} {late:>18} {old:>14}  {megabytes}"


def _spread(seconds: list[float]) -> str:
    """Median and 95 % in milliseconds."""
    if not seconds:
        return "none"
    middle, high = np.quantile(np.array(seconds) * 1000, (0.5, 0.95))
    return f"{middle:.0f} ({high:.0f})"


def resident() -> float:
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def make_bag(path: Path, height: int, width: int) -> Path:
    """A camera that looks around in an embedded scene, and a scanner of 32 lines in its frame."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)

    def make(kind: str, **fields: Any) -> Any:
        return store.types[kind](**fields)

    sample = scenes.load("street" if width > 2 * height else "living_room")
    shown, target, camera = resized(sample, height, width)
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        topics = {
            name: bag.add_connection(topic, f"sensor_msgs/msg/{name}", typestore=store)
            for name, topic in (
                ("Image", "/cam/image"),
                ("CameraInfo", "/cam/camera_info"),
                ("PointCloud2", "/lidar/points"),
            )
        }
        for number in range(DISTINCT):
            at = (1_700_000_000 * RATE + number) * NANOSECONDS // RATE
            stamp = make("builtin_interfaces/msg/Time", sec=at // NANOSECONDS, nanosec=at % NANOSECONDS)
            header = make("std_msgs/msg/Header", stamp=stamp, frame_id="camera")
            image, depth = np.roll(shown, 2 * number, axis=1), np.roll(target, 2 * number, axis=1)
            messages = {
                "Image": make("sensor_msgs/msg/Image", header=header, **image_fields(image)),
                "CameraInfo": info(make, header, height, width, camera),
                "PointCloud2": cloud(make, header, depth, camera),
            }
            for name, message in messages.items():
                bag.write(topics[name], at, store.serialize_cdr(message, f"sensor_msgs/msg/{name}"))
    return path


def resized(sample: Any, height: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The scene's picture [H, W, 3] uint8, depth [H, W] and camera at another size."""
    from torch.nn.functional import interpolate

    picture = interpolate(sample.image[None], (height, width), mode="area")[0]
    depth = interpolate(sample.target[None], (height, width), mode="nearest")[0, 0]
    factor = torch.tensor([[width / sample.image.shape[2]], [height / sample.image.shape[1]], [1.0]])
    pixels = (picture.permute(1, 2, 0) * 255).round().to(torch.uint8).numpy()
    return pixels, depth.numpy(), (sample.intrinsics * factor).numpy()


def info(make: Any, header: Any, height: int, width: int, camera: np.ndarray) -> Any:
    region = make(
        "sensor_msgs/msg/RegionOfInterest", x_offset=0, y_offset=0, height=0, width=0, do_rectify=False
    )
    return make(
        "sensor_msgs/msg/CameraInfo", header=header, height=height, width=width, distortion_model="plumb_bob",
        d=np.zeros(5), k=camera.astype(float).ravel(), r=np.eye(3).ravel(),
        p=np.hstack([camera, np.zeros((3, 1))]).astype(float).ravel(), binning_x=0, binning_y=0, roi=region,
    )  # fmt: skip


def cloud(make: Any, header: Any, depth: np.ndarray, camera: np.ndarray) -> Any:
    """Points of 32 lines of the picture, in the camera's own frame."""
    rows = np.linspace(0, depth.shape[0] - 1, 32).round().astype(int)
    row, column = (part.ravel() for part in np.meshgrid(rows, np.arange(0, depth.shape[1], 2), indexing="ij"))
    metres = depth[row, column]
    keep = metres > 0
    pixels = np.stack([column, row, np.ones_like(row)], axis=1)[keep]
    table = ((pixels @ np.linalg.inv(camera).T) * metres[keep, None]).astype("<f4")
    fields = [
        make("sensor_msgs/msg/PointField", name=axis, offset=4 * place, datatype=7, count=1)
        for place, axis in enumerate("xyz")
    ]
    return make(
        "sensor_msgs/msg/PointCloud2", header=header, height=1, width=len(table), fields=fields,
        is_bigendian=False, point_step=12, row_step=12 * len(table),
        data=np.frombuffer(table.tobytes(), np.uint8), is_dense=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
