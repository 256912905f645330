"""`gbpn complete`: images and sparse depth in, dense depth and its uncertainty out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gbpn.cli import arguments, options
from gbpn.cli.how_options import USUAL, with_how
from gbpn.cli.look import suggestion
from gbpn.cli.merge import merge_completed, require_merging
from gbpn.cli.outcomes import plain, tell, tell_change
from gbpn.errors import GbpnError, InputError
from gbpn.how import How

if TYPE_CHECKING:
    from contextlib import ExitStack

    from rich.console import Console

    from gbpn.jobs.run import Job, Outcome, Run
    from gbpn.jobs.sources import Sensor
    from gbpn.recordings.bags import Recording
    from gbpn.recordings.video import Video
    from gbpn.sigma.limit import SigmaLimit

__all__ = ["complete"]

_SOME_FAILED = 3
"""Exit code if frames of a sequence failed."""


@with_how()
def complete(
    image: options.Images,
    sparse: options.Sparse = None,
    output: options.Output = "completed",
    points: options.Points = None,
    depth: options.Depth = None,
    image_topic: options.ImageTopic = None,
    camera_info: options.CameraInfo = None,
    tf: options.Tf = None,
    deskew: options.Deskew = False,
    scale: options.Scale = None,
    intrinsics: options.Intrinsics = None,
    focal_mm: options.FocalMm = None,
    fisheye: options.Fisheye = None,
    rectified: options.Rectified = False,
    extrinsics: options.Extrinsics = None,
    calib: options.Calib = None,
    camera: options.Camera = None,
    units: options.Units = None,
    weights: options.Weights = "default",
    how: How = USUAL,
    cloud: options.Cloud = False,
    also: options.Also = None,
    max_sigma: options.MaxSigma = None,
    sigma: options.Sigma = None,
    confidence: options.Confidence = None,
    depth_camera: options.DepthCamera = None,
    depth_extrinsics: options.DepthExtrinsics = None,
    prior: options.Prior = None,
    rerun: options.Rerun = None,
    merge: options.Merge = None,
    workers: options.Workers = 1,
    by_order: options.ByOrder = False,
    pair: options.Pair = "name",
    tolerance: options.Tolerance = 0.05,
    again: options.Again = False,
    distributed: options.Distributed = None,
    address: options.Address = None,
    cpus_per_worker: options.CpusPerWorker = 1.0,
    gpus_per_worker: options.GpusPerWorker = 0.0,
    batch: options.Batch = 32,
    pack: options.Pack = "files",
    max_failures: options.MaxFailures = None,
    retry_failed: options.RetryFailed = False,
) -> None:
    """Complete sparse depth: depth (PNG, NPY), confidence, sigma and a preview for each image."""
    intrinsics = arguments.camera_of(intrinsics, focal_mm)
    image, sparse, intrinsics, how = _saved(image, sparse or depth, intrinsics, how)
    image, sparse = _project(image, sparse)
    arguments.require_choice(
        {
            "--pair": pair,
            "--distributed": distributed,
            "--pack": pack,
        }
    )
    arguments.require_paths(
        output,
        image=image,
        sparse_depth=sparse,
        extrinsics=extrinsics,
        calibration=calib,
        confidence=confidence,
        depth_extrinsics=depth_extrinsics,
        prior=prior,
    )
    arguments.require_prior(image, prior, how)
    pairing = _pairing(pair, by_order, tolerance)
    if merge is not None:
        require_merging(merge, image, sparse, elsewhere=distributed is not None)
    try:
        arguments.require_first_frame(image, sparse, scale, output=output, points=points, pairing=pairing)
    except InputError as error:
        raise InputError(suggestion(image, sparse, error)) from error
    import warnings
    from contextlib import ExitStack

    from PIL import Image
    from rich.console import Console

    from gbpn.cli.complete_many import complete_many, refuse_on_many
    from gbpn.cli.process_memory import keep_freed_memory
    from gbpn.formats.depth_files import DepthRangeWarning
    from gbpn.jobs.film import film
    from gbpn.jobs.opening import open_completer
    from gbpn.jobs.run import Run
    from gbpn.recordings.bags import is_recording
    from gbpn.recordings.video import VIDEOS

    keep_freed_memory()
    console = Console(highlight=False, soft_wrap=True)
    with warnings.catch_warnings(), ExitStack() as opened:
        warnings.simplefilter("ignore", DepthRangeWarning)  # the range is checked and told once more
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        recorded = is_recording(image)
        sensor, told = _sensor(
            sparse,
            None if recorded else points,
            scale,
            intrinsics,
            extrinsics,
            calib,
            camera,
            units,
            rectified,
            fisheye,
        )
        sensor = _rated(sensor, sigma, confidence, depth_camera, depth_extrinsics, prior)
        limit, files = _trust(max_sigma, also)
        if sensor.wide:
            arguments.require_own_cloud(how, files, rerun=rerun)
        for notice in told:
            console.print(f"[yellow]note:[/] {plain(notice)}")
        if distributed is not None or arguments.is_listed(image, output):
            refuse_on_many(rerun=rerun, again=again, recorded=recorded or Path(image).suffix in VIDEOS)
            from gbpn.scale.instructions import Instructions

            complete_many(
                console,
                image,
                sparse,
                output,
                instructions=Instructions(
                    weights=weights,
                    how=how,
                    sensor=sensor,
                    cloud=cloud,
                    also=files,
                    max_sigma=limit,
                    pack=pack,
                ),
                distributed=distributed or "here",
                address_of_cluster=address,
                workers=workers,
                cpus_per_worker=cpus_per_worker,
                gpus_per_worker=gpus_per_worker,
                batch=batch,
                max_failures=max_failures,
                retry_failed=retry_failed,
                pairing=pairing,
            )
            return
        folder = Path(output)
        topics = (image_topic, points, camera_info, tf, deskew) if recorded else None
        try:
            video, frames = _frames(opened, image, sparse, sensor, topics, pairing, tolerance, points)
        except InputError as error:
            raise InputError(suggestion(image, sparse, error)) from error
        if how.stream and workers > 1:
            raise InputError("--stream takes frames one after the other: with --workers 1")
        run = Run(
            completer=open_completer(weights, how),
            sensor=sensor,
            output=folder,
            cloud=cloud,
            again=again,
            also=files,
            max_sigma=limit,
        )
        run.check(frames)
        outcomes = _perform(run, frames, workers)
        if video is not None and any(outcome.state != "failed" for outcome in outcomes):
            written = film(video, frames, folder, folder / f"{Path(image).stem}_side_by_side.mp4")
            console.print(str(written), markup=False)
    _tell_all(console, outcomes, folder, rerun)
    if merge is not None:
        merge_completed(console, Path(image), folder, merge, max_sigma=limit)


def _tell_all(console: Console, outcomes: list[Outcome], folder: Path, rerun: Path | None) -> None:
    """How it went, in words and by the exit code."""
    if len(outcomes) == 1 and outcomes[0].state == "failed":
        raise GbpnError(outcomes[0].message)
    tell(console, outcomes, folder)
    tell_change(console, outcomes)
    if rerun is not None:
        _record(console, outcomes, folder, rerun)
    if any(outcome.state == "failed" for outcome in outcomes):
        raise typer.Exit(_SOME_FAILED)


def _saved(
    image: str, sparse: str | None, intrinsics: str | None, how: How
) -> tuple[str, str | None, str | None, How]:
    """Photo, points and camera of a project that the studio saved; anything else as it is."""
    from gbpn.jobs.project_files import SUFFIX

    if Path(image).suffix.lower() != SUFFIX:
        return image, sparse, intrinsics, how
    if sparse is not None or intrinsics is not None:
        raise InputError(f"{plain(image)} brings its points and its camera: leave the others out")
    import atexit
    import shutil
    import tempfile

    from gbpn.jobs.project_files import read_project, unpacked

    project = read_project(Path(image))
    folder = tempfile.mkdtemp(prefix="gbpn-project-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # frames are read until the command ends
    photo, points, camera = unpacked(project, Path(folder))
    return str(photo), str(points), camera, How.of(how, **project.how)


def _project(image: str, sparse: str | None) -> tuple[str, str | None]:
    """The folder of a COLMAP project alone: its pictures and its models."""
    from gbpn.formats.colmap_layout import model_folders

    if sparse is None and (Path(image) / "images").is_dir() and model_folders(image):
        return str(Path(image) / "images"), image
    return image, sparse


def _frames(
    opened: ExitStack,
    image: str,
    sparse: str | None,
    sensor: Sensor,
    topics: tuple[str | None, list[str] | None, str | None, list[str] | None, bool] | None,
    how: dict[str, Any],
    tolerance: float,
    points: list[str] | None,
) -> tuple[Video | None, list[Job]]:
    """What is to be completed, and the video it comes from; a recording stays open as long as `opened`.

    topics     of a recording: image, points, camera_info, transforms, and whether clouds are deskewed
    how        folders are paired, see `_pairing`
    tolerance  seconds between the messages of a recording
    """
    from gbpn.jobs.pairing import plan
    from gbpn.jobs.recorded import jobs_of_recording
    from gbpn.recordings.video import VIDEOS

    if topics is not None:
        recording = opened.enter_context(_topics(image, *topics))
        return None, jobs_of_recording(recording, sensor, tolerance)
    if Path(image).suffix.lower() in VIDEOS:
        return _film_frames(image, sensor, sparse, how["tolerance"])
    return None, plan(image, sparse, others=bool(points), **how)


def _film_frames(
    image: str, sensor: Sensor, sparse: str | None, tolerance: float | None
) -> tuple[Video, list[Job]]:
    from gbpn.jobs.film import jobs_of_video
    from gbpn.recordings.video import Video

    if sparse is None:
        raise InputError("a video wants its depth files: --depth FOLDER")
    video = Video(image)
    return video, jobs_of_video(video, sensor, sparse, tolerance)


def _topics(
    path: str,
    image: str | None,
    points: list[str] | None,
    camera_info: str | None,
    tf: list[str] | None,
    deskew: bool,
) -> Recording:
    """An open recording with its topics."""
    from gbpn.recordings.bags import Recording

    if points is not None and (len(points) > 1 or not points[0].startswith("/")):
        raise InputError(
            f"--points of a recording is one topic, such as /lidar/points; got {' '.join(points)}"
        )
    return Recording(
        path,
        image=image,
        points=points[0] if points else None,
        camera_info=camera_info,
        transforms=tuple(tf or ()),
        deskew=deskew,
    )


def _pairing(pair: str, by_order: bool, tolerance: float) -> dict[str, Any]:
    """How folders are paired, as `plan` takes it."""
    return {"by_order": by_order or pair == "order", "tolerance": tolerance if pair == "nearest" else None}


def _sensor(
    sparse: str | None,
    points: list[str] | None,
    scale: float | None,
    intrinsics: str | None,
    extrinsics: Path | None,
    calib: Path | None,
    camera: int | None,
    units: float | None,
    rectified: bool,
    fisheye: float | None,
) -> tuple[Sensor, list[str]]:
    from gbpn.formats.colmap_layout import largest_model, model_folders
    from gbpn.jobs.sources import Sensor
    from gbpn.jobs.written import parse_intrinsics, parse_point

    model, told = largest_model(sparse) if sparse is not None and model_folders(sparse) else (None, None)
    sensor = Sensor(
        points=tuple(parse_point(point) for point in points or ()),
        scale=scale,
        intrinsics=parse_intrinsics(intrinsics),
        extrinsics=extrinsics,
        calib=calib,
        camera=camera,
        units=units,
        reconstruction=model,
        rectified=rectified,
        fisheye=fisheye,
    )
    return sensor, [told] if told else []


def _rated(
    sensor: Sensor,
    sigma: str | None,
    confidence: Path | None,
    depth_camera: str | None,
    depth_extrinsics: Path | None,
    prior: Path | None,
) -> Sensor:
    """The sensor with what is known of its measurements, and of the scene."""
    from dataclasses import replace

    from gbpn.inputs.measurements import parse_sigma
    from gbpn.jobs.written import parse_intrinsics

    if depth_extrinsics is not None and depth_camera is None:
        raise InputError("--depth-extrinsics needs --depth-camera: the intrinsics of the depth camera")
    return replace(
        sensor,
        sigma=None if sigma is None else Path(sigma) if Path(sigma).exists() else parse_sigma(sigma),
        confidence=confidence,
        depth_camera=parse_intrinsics(depth_camera),
        depth_extrinsics=depth_extrinsics,
        prior=prior,
    )


def _trust(max_sigma: str | None, also: list[str] | None) -> tuple[SigmaLimit | None, tuple[str, ...]]:
    """The limit that was given, and the further files; a limit asks for a mask."""
    from gbpn.answer.output_files import require_formats
    from gbpn.sigma.limit import SigmaLimit

    files = require_formats([*(also or []), *(["mask"] if max_sigma is not None else [])])
    return None if max_sigma is None else SigmaLimit.of(max_sigma), files


def _record(console: Console, outcomes: list[Outcome], output: Path, path: Path) -> None:
    from gbpn.jobs.completed_folder import read_frame
    from gbpn.jobs.rerun_recording import write_recording

    done = [outcome.job for outcome in outcomes if outcome.state in ("written", "kept")]
    write_recording(path, (read_frame(output, job.name, job.image) for job in done))
    console.print(str(path), markup=False)


def _perform(run: Run, frames: list[Job], workers: int) -> list[Outcome]:
    """All frames, with a bar if there are several."""
    import os

    import torch
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    if workers > 1:  # frames side by side instead of threads inside one
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // workers))
    columns = TextColumn("completing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    outcomes = []
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=len(frames) == 1) as bar:
        task = bar.add_task("completing", total=len(frames))
        for outcome in run.all(frames, workers):
            outcomes.append(outcome)
            bar.advance(task)
    return outcomes
