"""Listens to the node for some seconds and writes what came; run by test_ros1.py beside a real roscore."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

sys.path.append("/usr/lib/python3/dist-packages")

import numpy as np

rospy = import_module("rospy")
Image, PointCloud2 = (getattr(import_module("sensor_msgs.msg"), kind) for kind in ("Image", "PointCloud2"))

WANTED, SECONDS, PLACE = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
images: dict[int, float] = {}
answers: dict[str, list[tuple[int, float, Any]]] = {"depth": [], "sigma": [], "cloud": []}


def stamp(message: Any) -> int:
    return int(message.header.stamp.to_nsec())


def keep(name: str) -> Any:
    return lambda message: answers[name].append((stamp(message), time.monotonic(), message))


rospy.init_node("listener", anonymous=True, disable_signals=True)
rospy.Subscriber("/cam/image", Image, lambda message: images.update({stamp(message): time.monotonic()}))
for name, kind in (("depth", Image), ("sigma", Image), ("cloud", PointCloud2)):
    rospy.Subscriber(f"/{name}", kind, keep(name))
end = time.monotonic() + SECONDS
while time.monotonic() < end and min(map(len, answers.values())) < WANTED:
    time.sleep(0.05)
told: dict[str, Any] = {"images": len(images), "count": {name: len(found) for name, found in answers.items()}}
if answers["depth"]:
    times = [when for _, when, _ in answers["depth"]]
    told["rate"] = (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0
    told["latency"] = [when - images[at] for at, when, _ in answers["depth"] if at in images]
    maps = {}
    for name in ("depth", "sigma"):
        _, _, message = answers[name][-1]
        told[name] = {"encoding": message.encoding, "frame": message.header.frame_id}
        kind = {"32FC1": "<f4", "16UC1": "<u2"}[message.encoding]
        maps[name] = np.frombuffer(message.data, kind).reshape(message.height, message.width)
    if answers["cloud"]:
        _, _, cloud = answers["cloud"][-1]
        told["fields"] = [field.name for field in cloud.fields]
        maps["cloud"] = np.frombuffer(cloud.data, "<f4").reshape(cloud.width, -1)
    np.savez(PLACE, **maps)
print(json.dumps(told), flush=True)
