"""Render the example scenes of `gbpn demo`, or a training set of random rooms.

Needs Blender as a module and Debian's public-domain furniture, in an environment of its own:

    apt-get install sweethome3d-furniture
    python3.11 -m venv blender && blender/bin/pip install "numpy<2" bpy==5.0.1 pillow
    blender/bin/python scripts/render_scenes.py                       # all of src/gbpn/scenes
    blender/bin/python scripts/render_scenes.py kitchen street        # some of them
    blender/bin/python scripts/render_scenes.py --training OUT --count 300 --seed 1
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bpy
import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenery.capture import View, aim, depth_and_names, empty_scene, largest_rectangle, picture
from scenery.catalogue import Catalogue
from scenery.random_rooms import random_room
from scenery.rooms import bedroom, kitchen, living_room, music_room
from scenery.street import street

SCENES: dict[str, tuple[Callable[[Catalogue], View], float, str]] = {
    "living_room": (living_room, 1000.0, "floor"),
    "bedroom": (bedroom, 1000.0, "floor"),
    "kitchen": (kitchen, 1000.0, "floor"),
    "music_room": (music_room, 1000.0, "floor"),
    "street": (street, 256.0, "road"),
}
"""Name → (how to build it, stored depth values per metre, the object whose top is z = 0)."""
OUT = Path(__file__).resolve().parents[1] / "src" / "gbpn" / "scenes"
FARTHEST = 250.0
"""Metres; what lies beyond is sky."""
SENSOR_NOISE = 0.006
"""Standard deviation of the noise added to a picture in [0, 1], so that it looks like a photograph."""
VIEWS_PER_ROOM = 8

README = """# Example scenes

Rendered by `scripts/render_scenes.py`; the pictures and depth maps are our own work, under this package's
licence. Each folder holds `image.jpg`, `depth.png` (16 bit; metres = value / `depth_scale`, 0 = sky) and
`scene.json`: `intrinsics` (pixel centres at integer coordinates), `pose` (camera to world; camera x right,
y down, z forward; world z up, floor at z = 0) and `floor_box` (left, top, right, bottom of a rectangle of
pixels that show only the floor or the road).

The build copies all files below `src/gbpn` into the wheel, these included.

Furniture: models from the archive `BlendSwap-CC-0.sh3f` of Debian's `sweethome3d-furniture`. Each model's own
licence file says Creative Commons Zero (public domain); the script checks that before it uses a model. No
credit is required; here it is anyway. Walls, floors, shelves, books, cars, houses and trees are made by the
script.

| model | made by | licence | original |
|---|---|---|---|
"""


def render_examples(names: list[str], out: Path, samples: int, threads: int) -> None:
    """Each named scene into its folder; after a full run also the list of models."""
    furniture = Catalogue(Path(tempfile.gettempdir()) / "gbpn-furniture")
    for name in names:
        started = time.monotonic()
        build, depth_scale, ground = SCENES[name]
        empty_scene(samples, threads)
        furniture.forget()
        view = build(furniture)
        aim(view)
        depth, hit = depth_and_names(view, FARTHEST)
        box = largest_rectangle(np.vectorize(lambda thing, ground=ground: thing.split(".")[0] == ground)(hit))
        meta = {
            "depth_scale": depth_scale,
            "intrinsics": view.intrinsics.tolist(),
            "pose": np.round(view.pose, 9).tolist(),
            "floor_box": list(box),
        }
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        _save(folder / "depth.png", _stored(depth, depth_scale), compress_level=9)
        _save(
            folder / "image.jpg",
            _photograph(np.random.default_rng(0)),
            quality=92,
            subsampling=0,
            optimize=True,
        )
        _write(folder / "scene.json", json.dumps(meta, indent=1) + "\n")
        print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
    if set(names) == set(SCENES):
        rows = [
            f"| {m.name} | {m.creator} | CC0 | {m.source} |"
            for m in (furniture.models[used] for used in sorted(furniture.used, key=str.lower))
        ]
        _write(out / "README.md", README + "\n".join(rows) + "\n")


def render_training(out: Path, count: int, seed: int, samples: int, threads: int) -> None:
    """`count` frames in random rooms: out/room_<seed>_<n>/{color,depth,meta.json}, depth in millimetres."""
    furniture = Catalogue(Path(tempfile.gettempdir()) / "gbpn-furniture")
    done, room, started = 0, 0, time.monotonic()
    while done < count:
        rng = np.random.default_rng([seed, room])
        empty_scene(samples, threads)
        bpy.context.scene.cycles.max_bounces = 3
        bpy.context.scene.cycles.denoising_prefilter = "FAST"
        bpy.context.scene.cycles.denoising_quality = "FAST"
        bpy.context.scene.render.use_persistent_data = True
        furniture.forget()
        folder = out / f"room_{seed}_{room:04d}"
        frames: dict[str, dict] = {}
        for view in random_room(furniture, rng, VIEWS_PER_ROOM):
            if len(frames) == min(VIEWS_PER_ROOM, count - done):
                break
            if not _worth_it(view):
                continue
            name = f"{len(frames):04d}"
            frames[name] = _training_frame(folder, name, view, rng)
            seconds = (time.monotonic() - started) / (done + len(frames))
            print(f"{folder.name} frame {len(frames)}: {seconds:.1f} s a frame so far", flush=True)
        if frames:
            meta = {
                "role": "train",
                "depth_scale": 1000.0,
                "K": frames["0000"]["K"],
                "per_frame": frames,
                "source": f"scripts/render_scenes.py --training, seed {seed}, room {room}",
                "terms": "own work; furniture CC0",
                "notes": "rendered, exact depth, 0 = sky; the focal length differs: see per_frame",
            }
            _write(folder / "meta.json", json.dumps(meta, indent=1) + "\n")
        done, room = done + len(frames), room + 1


def _worth_it(view: View) -> bool:
    """Looks past the nearest thing, into a room with several things, not at a wall or at the sky."""
    small = View(at=view.at, target=view.target, width=32, height=24, focal=view.focal / 10, roll=view.roll)
    depth, hit = depth_and_names(small, FARTHEST)
    near = depth[depth > 0]
    return bool(
        near.size > 0.8 * depth.size
        and near.min() > 0.45
        and np.median(near) > 1.3
        and len({thing.split(".")[0] for thing in hit.ravel()}) >= 5
    )


def _training_frame(folder: Path, name: str, view: View, rng: np.random.Generator) -> dict:
    """Render one frame into color/ and depth/; returns what meta.json says of it."""
    (folder / "color").mkdir(parents=True, exist_ok=True)
    (folder / "depth").mkdir(exist_ok=True)
    aim(view)
    depth, _ = depth_and_names(view, FARTHEST)
    _save(folder / "depth" / f"{name}.png", _stored(depth, 1000.0))
    _save(folder / "color" / f"{name}.jpg", _photograph(rng, rng.uniform(0.3, 0.5)), quality=93)
    return {"K": view.intrinsics.tolist(), "pose": np.round(view.pose, 6).tolist()}


def _stored(depth: np.ndarray, scale: float) -> Image.Image:
    """Depth [H, W] in metres as a 16-bit picture."""
    return Image.fromarray(np.clip(np.rint(depth * scale), 0, 65535).astype(np.uint16))


def _photograph(rng: np.random.Generator, brightness: float | None = None) -> Image.Image:
    """Render the scene's camera; expose to a mean `brightness` if one is given; add sensor noise."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.png"
        picture(path)
        image = np.asarray(Image.open(path).convert("RGB"), float) / 255
    if brightness is not None:
        gain = np.clip(brightness / max(image.mean(), 0.01), 0.5, 2.5)
        image = np.clip(image * gain, 0, 1)
    image = image + rng.normal(0, SENSOR_NOISE, image.shape)
    return Image.fromarray(np.clip(np.rint(image * 255), 0, 255).astype(np.uint8))


def _save(path: Path, image: Image.Image, **options: object) -> None:
    temporary = path.with_name(f".{path.name}")
    image.save(temporary, format="JPEG" if path.suffix == ".jpg" else "PNG", **options)
    os.replace(temporary, path)


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text, "utf-8")
    os.replace(temporary, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "names", nargs="*", help=f"scenes to render; all of {', '.join(SCENES)} if none is named"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the example scenes")
    parser.add_argument("--samples", type=int, help="Cycles samples a pixel (32 for scenes, 4 for training)")
    parser.add_argument("--threads", type=int, default=1, help="threads to render with")
    parser.add_argument(
        "--training", type=Path, metavar="OUT", help="render a training set into this folder instead"
    )
    parser.add_argument("--count", type=int, default=300, help="frames of the training set")
    parser.add_argument("--seed", type=int, default=0, help="which random rooms")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(SCENES)
    if unknown:
        parser.error(f"no scene {', '.join(sorted(unknown))}: choose from {', '.join(SCENES)}")
    if arguments.training:
        render_training(
            arguments.training, arguments.count, arguments.seed, arguments.samples or 4, arguments.threads
        )
    else:
        render_examples(
            arguments.names or list(SCENES), arguments.out, arguments.samples or 32, arguments.threads
        )


if __name__ == "__main__":
    main()
