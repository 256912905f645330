"""What bags, videos and COLMAP projects hold."""

from __future__ import annotations

from pathlib import Path

from gbpn.errors import GbpnError
from gbpn.jobs.looking import Inventory, command

__all__ = ["bag", "project", "video"]

_NANOSECONDS = 1e9
_TOLERANCE = 0.05
"""Seconds, the default of --tolerance."""
_MEASURES = ("sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")


def bag(path: Path) -> Inventory:
    """A recording: its topics, and the pair of them that has most frames."""
    from gbpn.jobs.recorded import jobs_of_recording
    from gbpn.jobs.sources import Sensor
    from gbpn.recordings.bag_files import BagFile
    from gbpn.recordings.bags import Recording

    opened = BagFile(path)
    try:
        topics, counts, seconds = opened.topics, opened.counts, opened.seconds
    finally:
        opened.close()
    facts = [("length", f"{seconds:.1f} s")]
    for name, kind in topics.items():
        rate = f", {(counts[name] - 1) / seconds:.1f} a second" if seconds > 0 and counts[name] > 1 else ""
        facts.append((name, f"{counts[name]} {kind.rsplit('/', 1)[-1]}{rate}"))
    images, points = _likely(topics, counts)
    if not images or not points:
        missing = "no topic of images" if not images else "no topic of clouds or depth images"
        return Inventory(what="a recording", facts=tuple(facts), command=(), doubts=(f"{missing} is in it",))
    typed = command(path, image=images[0], points=points[0])
    doubts = []
    for option, names in (("--image", images), ("--points", points)):
        if len(names) > 1:
            doubts.append(f"{option} may also be {', '.join(names[1:])}")
    recording = None
    try:
        recording = Recording(path, image=images[0], points=points[0])
        jobs = tuple(jobs_of_recording(recording, Sensor(), _TOLERANCE))
    except GbpnError as error:
        if recording is not None:
            recording.close()
        return Inventory(what="a recording", facts=tuple(facts), command=typed, doubts=(*doubts, str(error)))
    paired = sum(not job.left_out for job in jobs)
    facts.append(("pairs", f"{paired} of {len(jobs)} images have measurements within {_TOLERANCE:g} s"))
    return Inventory(
        what="a recording",
        facts=tuple(facts),
        command=typed,
        doubts=tuple(doubts),
        jobs=jobs,
        opened=recording,
    )


def _likely(topics: dict[str, str], counts: dict[str, int]) -> tuple[list[str], list[str]]:
    """Topics of images and of measurements, the likeliest first."""
    possible = [name for name, kind in topics.items() if kind in _MEASURES and counts[name]]
    depth = [name for name in possible if "depth" in name.lower()]
    clouds = [name for name in possible if topics[name] == _MEASURES[0]]
    images = [name for name in possible if name not in depth and name not in clouds]
    order = {name: ("rect" not in name and "color" not in name and "rgb" not in name) for name in images}
    images.sort(key=lambda name: (order[name], -counts[name]))
    aligned = sorted((name for name in depth if name not in clouds), key=lambda name: "aligned" not in name)
    return images, [*clouds, *aligned]


def video(path: Path, sparse: Path | None) -> Inventory:
    """A video, and the folder of its depth files."""
    from gbpn.jobs.film import jobs_of_video
    from gbpn.recordings.video import Video

    film = Video(path)
    height, width = film.frame(0).shape[:2]
    length = film.times[-1] / _NANOSECONDS
    facts = [
        ("video", f"{len(film)} frames of {width}×{height}, {length:.1f} s, {float(film.rate):g} a second")
    ]
    beside = path.with_name(f"{path.stem}_depth")
    sparse = sparse or (beside if beside.is_dir() else None)
    if sparse is None:
        told = f"a video wants a folder of depth files, --depth FOLDER; there is none called {beside.name}"
        return Inventory(
            what="a video", facts=tuple(facts), command=command(path, depth="FOLDER"), doubts=(told,)
        )
    from gbpn.jobs.look_at_files import scale_of

    scale, doubts = scale_of(sparse)
    jobs = tuple(jobs_of_video(film, str(sparse)))
    paired = sum(not job.left_out for job in jobs)
    facts.append(("pairs", f"{paired} of {len(jobs)} frames have a depth file"))
    typed = command(path, depth=sparse, scale=None if scale is None else f"{scale:g}")
    return Inventory(
        what="a video", facts=tuple(facts), command=typed, doubts=doubts, jobs=jobs, reading={"scale": scale}
    )


def project(images: Path, model: Path) -> Inventory:
    """A COLMAP project: pictures, and how many of them were registered."""
    from statistics import median

    from gbpn.formats.colmap_layout import largest_model
    from gbpn.jobs.pairing import jobs_of_project

    pictures = images / "images" if (images / "images").is_dir() else images
    found, told = largest_model(model)
    jobs = tuple(jobs_of_project(str(pictures)))
    known = {Path(picture.name).name for picture in found.pictures}
    registered = tuple(job for job in jobs if job.image.name in known)
    cameras = {f"{camera.model} {camera.width}×{camera.height}" for camera in found.cameras.values()}
    facts = [
        ("pictures", f"{len(jobs)}, of which {len(registered)} are registered"),
        ("points", f"{len(found.points)}"),
        ("cameras", ", ".join(sorted(cameras))),
    ]
    seen = [len(picture.points) for picture in found.pictures]
    if seen:
        facts.append(("points", f"{median(seen):.0f} in the median picture"))
    doubts = [
        "a reconstruction has no unit: --units METRES (metres per unit) makes its depths metres",
        *([told] if told else []),
    ]
    root = images if pictures != images and model == images else pictures
    typed = command(root, None if root == images and pictures != images else model)
    return Inventory(
        what="a COLMAP project",
        facts=tuple(facts),
        command=typed,
        doubts=tuple(doubts),
        jobs=registered,
        reading={"reconstruction": found},
    )
