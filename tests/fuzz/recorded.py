"""Valid recordings, videos, poses, rated measurements and finished frames, and their readers."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from gbpn.formats.confidence_files import read_weights
from gbpn.formats.depth_files import read_depth
from gbpn.formats.exr_files import exr
from gbpn.formats.point_clouds import read_points
from gbpn.formats.poses import poses_of
from gbpn.jobs.completed_folder import frames_of, read_frame
from gbpn.jobs.merging import Merging, merged
from gbpn.jobs.recorded import frame_of
from gbpn.jobs.sources import Sensor
from gbpn.recordings.bags import Recording
from gbpn.recordings.video import Video

from ..making_recordings import write_clip, write_drive
from .making import CAMERA, HEIGHT, WIDTH, Seed, depth, npy, pixels, saved

NUMBERS = tuple(map(float, CAMERA.split()))


def _frames(path: Path) -> object:
    """All frames of a recording, as `gbpn complete` reads them."""
    place = path.parent if path.name == "metadata.yaml" or path.suffix == ".db3" else path
    with Recording(place, image="/cam/image", points="/lidar/points") as recording:
        found = [
            frame_of(recording.frame(*pair), Sensor(), recording.path) for pair in recording.pairs()[0][:2]
        ]
    return [(frame.image, frame.sparse, frame.intrinsics) for frame in found]


def bags() -> list[Seed]:
    """A drive of two frames as a bag of ROS 1, of ROS 2, and as MCAP."""
    out: list[Seed] = []
    for kind, lens, model in (
        ("bag", (), "plumb_bob"),
        ("sqlite3", (0.1, 0.0, 0.0, 0.0), "equidistant"),
        ("mcap", (), "plumb_bob"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / ("drive.bag" if kind == "bag" else "drive")
            write_drive(place, kind, pixels(), depth(), NUMBERS, frames=2, lens=lens, model=model)
            files = {
                file.relative_to(folder).as_posix(): file.read_bytes()
                for file in (place.rglob("*") if place.is_dir() else [place])
            }
        for name, content in files.items():
            beside = tuple((other, data) for other, data in files.items() if other != name)
            out.append(Seed(name=name, content=content, read=_frames, beside=beside))
    return out


def _shown(path: Path) -> object:
    video = Video(path)
    return [video.frame(number) for number in range(min(len(video), 3))]


def videos() -> list[Seed]:
    """A clip in two containers."""
    out = []
    for name in ("clip.mp4", "clip.mkv"):
        with tempfile.TemporaryDirectory() as folder:
            place = write_clip(Path(folder) / "clip.mp4", np.tile(pixels(), (3, 3, 1)))
            if name != "clip.mp4":
                place = _in_matroska(place, Path(folder) / name)
            out.append(Seed(name=name, content=place.read_bytes(), read=_shown))
    return out


def _in_matroska(source: Path, target: Path) -> Path:
    """The same packets in another container."""
    import av

    with av.open(str(source)) as old, av.open(str(target), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(video=0):
            if packet.size:
                packet.stream = stream
                new.mux(packet)
    return target


def poses() -> list[Seed]:
    """Of TUM, KITTI, nerfstudio, and one matrix per frame."""
    names = ["000000", "000001"]
    eye = " ".join(str(number) for number in np.eye(4).ravel())
    frames = [{"file_path": f"images/{name}.png", "transform_matrix": np.eye(4).tolist()} for name in names]

    def read(path: Path) -> object:
        return list(poses_of(path, names).values())

    def read_folder(path: Path) -> object:
        return list(poses_of(path.parent, names).values())

    return [
        Seed(name="tum.txt", content=b"# t x y z q\n0 1 2 3 0 0 0 1\n1 1 2 3 0 0 0 1\n", read=read),
        Seed(name="kitti.txt", content=f"{eye[:47]}\n{eye[:47]}\n".encode(), read=read),
        Seed(name="poses/000000.txt", content=eye.encode(), read=read_folder),
        Seed(name="transforms.json", content=json.dumps({"frames": frames}).encode(), read=read),
    ]


def _cloud(path: Path) -> object:
    """Completed frames as `gbpn merge` joins them."""
    images, folder = path.parents[1] / "color", path.parents[1] / "out"
    found = [read_frame(folder, name, image, np.eye(4)) for name, image in frames_of(images, folder).items()]
    world, _ = merged(found, Merging(votes=0))
    return world.points, world.normals, world.std


def finished() -> list[Seed]:
    """What `gbpn complete` leaves, each of its files in turn."""
    matrix = [[20, 0, 7.5], [0, 20, 5.5], [0, 0, 1]]
    whole = np.where(depth() > 0, depth(), 2.0).astype(np.float32)
    files = {
        "color/a.png": saved(Image.fromarray(pixels()), "PNG"),
        "out/a.json": json.dumps({"intrinsics": matrix}).encode(),
        "out/a_depth.npy": npy(whole),
        "out/a_std.npy": npy(0.01 * whole),
    }
    return [
        Seed(
            name=name,
            content=content,
            read=_cloud,
            beside=tuple((other, data) for other, data in files.items() if other != name),
        )
        for name, content in files.items()
    ]


def _rated(path: Path) -> object:
    found, camera, *_ = Sensor(intrinsics=path.parent / "K.txt").readings(
        Path("picture.png"), path, HEIGHT, WIDTH
    )
    return found.sparse, found.std, found.weight, camera


def rated() -> list[Seed]:
    """Confidences, measurements with σ and weight, depth of a small sensor."""
    levels = np.random.default_rng(5).integers(0, 3, (HEIGHT, WIDTH)).astype(np.uint8)
    table = np.concatenate(
        [np.random.default_rng(6).uniform(-1, 1, (20, 2)), np.full((20, 1), 3.0), np.full((20, 2), 0.5)], 1
    )
    head = "ply\nformat ascii 1.0\nelement vertex 20\n"
    head += "".join(f"property float {name}\n" for name in ("x", "y", "z", "std", "weight")) + "end_header\n"
    lines = "\n".join(" ".join(map(str, row)) for row in table.tolist()) + "\n"
    small = depth()[::2, ::2].copy()
    camera = (("K.txt", CAMERA.encode()),)
    stored = io.BytesIO()
    np.savez(stored, depth=depth(), std=np.full((HEIGHT, WIDTH), 0.01, np.float32))
    return [
        Seed(name="c.png", content=saved(Image.fromarray(levels), "PNG"), read=read_weights),
        Seed(name="c.npy", content=npy(levels), read=read_weights),
        Seed(name="rated.ply", content=(head + lines).encode(), read=_rated, beside=camera),
        Seed(
            name="rated.csv", content=b"x,y,depth,std\n1,2,3.5,0.1\n4,5,2.5,0\n", read=_rated, beside=camera
        ),
        Seed(name="rated.npz", content=stored.getvalue(), read=_rated, beside=camera),
        Seed(name="small.npy", content=npy(small), read=_rated, beside=camera),
    ]


def stores() -> list[Seed]:
    """What runs leave behind and read again: scores of an evaluation, the card of weights."""
    from gbpn.cli.convert import _read_card
    from gbpn.evaluate.run import _key, _read, _text

    identity = {"gbpn": "1", "methods": {"linear": "1"}}
    line = {
        "setting": "a",
        "seed": 0,
        "frame": "f",
        "method": "linear",
        "seconds": 0.5,
        "scores": {"rmse": 0.25},
    }

    def scores(path: Path) -> object:
        for key, found in _read(path, dict(identity)).items():
            assert (key, found) == (_key(line), line), found
        return None

    content = json.dumps({"run": identity}) + "\n" + _text(line) + "\n"
    return [
        Seed(name="frames.jsonl", content=content.encode(), read=scores),
        Seed(name="card.json", content=b'{"licence": "MIT", "trained on": ["a"]}', read=_read_card),
    ]


def _exr(path: Path) -> object:
    return read_depth(path, judge=False)


def optional() -> list[Seed]:
    """Formats whose package may be missing."""
    out = []
    try:
        import OpenEXR  # type: ignore[import-not-found, unused-ignore] # noqa: F401

        out.append(Seed(name="d.exr", content=exr(depth()), read=_exr))
    except ImportError:
        pass
    try:
        import laspy  # type: ignore[import-not-found, unused-ignore]

        for kind in ("las", "laz"):
            table = laspy.create(point_format=6, file_version="1.4")
            table.header.scales = [0.001, 0.001, 0.001]
            table.x, table.y, table.z = np.random.default_rng(7).uniform(1, 5, (3, 20))
            stored = io.BytesIO()
            table.write(stored, do_compress=kind == "laz")
            out.append(Seed(name=f"p.{kind}", content=stored.getvalue(), read=read_points))
    except ImportError:
        pass
    return out
