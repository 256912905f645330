"""Where the time of a drawn frame goes, in seconds of one core, and how many rays a second that is."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gbpn.errors import InputError
from gbpn.worlds.frame import Wanted, frame_taken, stock_for
from gbpn.worlds.kinds import kind_named
from gbpn.worlds.lens import Photography
from gbpn.worlds.pool_scene import PoolScene
from gbpn.worlds.scene import Floats
from gbpn.worlds.shading import Shader
from gbpn.worlds.tracing import Hits, Tracer, require_packages

__all__ = ["bench_worlds"]


class _Counted(Tracer):
    """A tracer that counts its rays and the time that Embree takes for them."""

    rays = 0
    seconds = 0.0

    def cast_through(self, origins: Floats, directions: Floats) -> Hits:
        with self._counted(len(origins)):
            return super().cast_through(origins, directions)

    def cast_panes(self, origins: Floats, directions: Floats) -> Hits:
        with self._counted(len(origins)):
            return super().cast_panes(origins, directions)

    def blocked(self, origins: Floats, directions: Floats, limit: Floats | float) -> np.ndarray:
        with self._counted(len(origins)):
            return super().blocked(origins, directions, limit)

    @contextmanager
    def _counted(self, rays: int) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds += time.process_time() - start
        self.rays += rays


def bench_worlds(wanted: Wanted, worlds: int) -> dict[str, Any]:
    """Of the first worlds of a set; one more before them compiles and warms up.

    Times are seconds of one core a frame, so other programs on the machine hardly change them.
    """
    if worlds < 1:
        raise InputError(f"worlds must be 1 or more; got {worlds}")
    require_packages()
    wanted = wanted.checked()
    views = wanted.frames_of_a_world
    parts: dict[str, float] = defaultdict(float)
    rays, in_embree = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        scene = PoolScene(Path(folder) / wanted.kind, wanted, "train", stock_for(wanted))
        scene.begin()
        for world in range(worlds + 1):
            if world == 1:
                parts.clear()
                rays, in_embree = 0, 0.0
            tracer = _one_world(scene, wanted, world, parts)
            rays += tracer.rays
            in_embree += tracer.seconds
    frames = worlds * views
    total = sum(parts.values()) / frames
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1 << 20 if sys.platform != "darwin" else 1 << 30
    )
    return {
        "kind": wanted.kind,
        "size": f"{wanted.size[0]}x{wanted.size[1]}",
        "views": views,
        "frames": frames,
        "seconds": {name: seconds / frames for name, seconds in parts.items()},
        "total_s": total,
        "frames_per_core_hour": 3600 / total,
        "rays_per_frame": rays / frames,
        "rays_per_second": rays / frames / total,
        "rays_per_second_in_embree": rays / max(in_embree, 1e-9),
        "embree_share": in_embree / frames / total,
        "peak_gb": memory,
    }


def _one_world(scene: PoolScene, wanted: Wanted, world: int, parts: dict[str, float]) -> _Counted:
    """All views of a world, each step timed."""

    @contextmanager
    def timed(part: str) -> Iterator[None]:
        start = time.process_time()
        yield
        parts[part] += time.process_time() - start

    with timed("build"):
        place = kind_named(wanted.kind).build(wanted.seed, world, stock_for(wanted))
    with timed("prepare"):
        tracer = _Counted(place.scene)
        shader = Shader(tracer)
    views = wanted.frames_of_a_world
    for number in range(world * views, (world + 1) * views):
        rng = np.random.default_rng([wanted.seed, number])
        with timed("look"):
            view = place.look(tracer, rng, *wanted.size)
        with timed("draw"):
            drawing = shader.draw(view, int(rng.integers(2**31)))
        with timed("photograph and sensors"):
            frame = frame_taken(wanted, place, shader, view, drawing, Photography.drawn(rng), number, rng)
        with timed("save"):
            scene.add(frame)
    return tracer
