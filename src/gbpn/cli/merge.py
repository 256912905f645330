"""`gbpn merge`: completed frames of a moving camera as one cloud, or as a folder for splats and NeRFs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gbpn.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from gbpn.formats.cloud_files import Cloud
    from gbpn.jobs.completed_folder import CompletedFrame
    from gbpn.jobs.merging import Merging
    from gbpn.sigma.limit import SigmaLimit

__all__ = ["merge", "merge_completed", "require_merging"]

_CLOUDS = (".ply", ".glb")


def merge(
    images: Annotated[Path, typer.Argument(help="Folder of the images, or COLMAP project.")],
    completed: Annotated[Path, typer.Argument(help="Folder that gbpn complete wrote for them.")],
    poses: Annotated[
        Path | None,
        typer.Option(
            help="Where the camera was: folder of 4×4 matrices (camera to world), TUM or KITTI list, "
            "transforms.json, COLMAP project. Of a completed COLMAP project its records know."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Cloud in world coordinates, .ply or .glb.")
    ] = None,
    nerfstudio: Annotated[
        Path | None,
        typer.Option(help="Folder for nerfstudio or gsplat: transforms.json, depth, masks, points."),
    ] = None,
    rerun: Annotated[Path | None, typer.Option(help="Recording for the rerun viewer (.rrd).")] = None,
    voxel: Annotated[
        float | None,
        typer.Option(
            help="Metres of the grid on which points are averaged, by default 0.01 (without a unit: 1/200 of "
            "the depth); 0: all."
        ),
    ] = None,
    votes: Annotated[int, typer.Option(help="Other frames that must agree with a pixel; 0: none.")] = 1,
    max_sigma: Annotated[
        str | None, typer.Option(help="Largest sigma of trusted pixels, 0.05 (metres) or 5%; usually 5%.")
    ] = None,
    units: Annotated[
        float | None,
        typer.Option(help="COLMAP poses: metres per unit, if the frames' records do not say so."),
    ] = None,
    mask_pictures: Annotated[
        bool, typer.Option("--mask-pictures", help="nerfstudio: leave masked pixels out of the colour too.")
    ] = False,
) -> None:
    """Merge completed frames into one cloud: trusted pixels that other frames agree with."""
    from rich.console import Console

    from gbpn.jobs.merging import Merging
    from gbpn.jobs.nerfstudio import write_nerfstudio
    from gbpn.sigma.limit import SigmaLimit

    if output is None and nerfstudio is None and rerun is None:
        raise InputError("nothing is to be written: give -o cloud.ply, --nerfstudio FOLDER or --rerun FILE")
    console = Console(highlight=False, soft_wrap=True)
    limit = None if max_sigma is None else SigmaLimit.of(max_sigma)
    settings = Merging(voxel=voxel, votes=votes, neighbours=max(8, votes), max_sigma=limit)
    frames = _placed(console, images, completed, poses, units)
    cloud = _cloud(console, frames, settings, output)
    if nerfstudio is not None:
        place = write_nerfstudio(nerfstudio, frames, cloud, max_sigma=limit, mask_pictures=mask_pictures)
        console.print(str(place), markup=False)
    if rerun is not None:
        from gbpn.jobs.rerun_recording import write_recording

        write_recording(rerun, frames, cloud)
        console.print(str(rerun), markup=False)


def merge_completed(
    console: Console, images: Path, completed: Path, output: Path, *, max_sigma: SigmaLimit | None
) -> None:
    """One cloud of the frames of a project that were just completed, by the poses of their records."""
    from gbpn.jobs.merging import Merging

    frames = _placed(console, images, completed, None, None)
    _cloud(console, frames, Merging(max_sigma=max_sigma), output)


def require_merging(output: Path, images: str, sparse: str | None, *, elsewhere: bool) -> None:
    """Raise before the work if `gbpn complete --merge` could not know where the camera was."""
    from gbpn.formats.colmap_layout import model_folders

    if output.suffix.lower() not in _CLOUDS:
        raise InputError(f"--merge writes {' or '.join(_CLOUDS)}; got {output}")
    if elsewhere or sparse is None or not Path(images).is_dir() or not model_folders(sparse):
        raise InputError(
            "--merge needs to know where the camera was, as a COLMAP project on this machine does: leave it "
            "out, then gbpn merge IMAGES OUTPUT --poses POSES"
        )


def _placed(
    console: Console, images: Path, completed: Path, poses: Path | None, units: float | None
) -> list[CompletedFrame]:
    """The completed frames whose place is known."""
    from gbpn.jobs.completed_folder import frames_of, read_frame
    from gbpn.jobs.whereabouts import places_of, require_agreement

    found = frames_of(images, completed)
    places = places_of(found, completed, poses, units)
    if missing := len(found) - len(places):
        console.print(f"[yellow]note:[/] {missing} of {len(found)} frames have no pose and are left out")
    frames = [read_frame(completed, name, found[name], places[name]) for name in places]
    require_agreement(frames)
    if not all(frame.metric for frame in frames):
        console.print(
            "[yellow]note:[/] the cloud has no unit, as its frames: gbpn complete --units METRES makes it "
            "metres"
        )
    return frames


def _cloud(console: Console, frames: list[CompletedFrame], settings: Merging, output: Path | None) -> Cloud:
    """The frames as one cloud, told of and written."""
    from gbpn.formats.cloud_files import write_cloud
    from gbpn.jobs.merging import merged

    cloud, shares = merged(frames, settings)
    share = 100 * sum(shares) / len(shares)
    agreed = f", {share:.0f}% of trusted pixels confirmed" if settings.votes else ""
    noun = "frame" if len(frames) == 1 else "frames"
    console.print(f"{len(frames)} {noun}{agreed}: {len(cloud)} points", markup=False)
    if output is not None:
        console.print(str(write_cloud(output, cloud)), markup=False)
    return cloud
