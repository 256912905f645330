"""`gbpn merge`: completed frames of a moving camera as one cloud, or as a folder for splats and NeRFs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gbpn.errors import InputError

__all__ = ["merge"]


def merge(
    images: Annotated[Path, typer.Argument(help="Folder of the images.")],
    completed: Annotated[Path, typer.Argument(help="Folder that gbpn complete wrote for them.")],
    poses: Annotated[
        Path,
        typer.Option(
            help="Where the camera was: folder of 4×4 matrices (camera to world), TUM or KITTI list, "
            "transforms.json, COLMAP model."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Cloud in world coordinates, .ply or .glb.")
    ] = None,
    nerfstudio: Annotated[
        Path | None,
        typer.Option(help="Folder for nerfstudio or gsplat: transforms.json, depth, masks, points."),
    ] = None,
    rerun: Annotated[Path | None, typer.Option(help="Recording for the rerun viewer (.rrd).")] = None,
    voxel: Annotated[
        float, typer.Option(help="Metres of the grid on which points are averaged; 0: all.")
    ] = 0.01,
    votes: Annotated[int, typer.Option(help="Other frames that must agree with a pixel; 0: none.")] = 1,
    max_sigma: Annotated[
        str | None, typer.Option(help="Largest sigma of trusted pixels, 0.05 (metres) or 5%; usually 5%.")
    ] = None,
    units: Annotated[float, typer.Option(help="COLMAP: metres per unit of the model.")] = 1.0,
    mask_pictures: Annotated[
        bool, typer.Option("--mask-pictures", help="nerfstudio: leave masked pixels out of the colour too.")
    ] = False,
) -> None:
    """Merge completed frames into one cloud: trusted pixels that other frames agree with."""
    from rich.console import Console

    from gbpn.formats.cloud_files import write_cloud
    from gbpn.formats.poses import poses_of
    from gbpn.jobs.completed_folder import frames_of, read_frame
    from gbpn.jobs.merging import Merging, merged
    from gbpn.jobs.nerfstudio import write_nerfstudio
    from gbpn.sigma.limit import SigmaLimit

    if output is None and nerfstudio is None and rerun is None:
        raise InputError("nothing is to be written: give -o cloud.ply, --nerfstudio FOLDER or --rerun FILE")
    console = Console(highlight=False, soft_wrap=True)
    limit = None if max_sigma is None else SigmaLimit.of(max_sigma)
    settings = Merging(voxel=voxel, votes=votes, neighbours=max(8, votes), max_sigma=limit)
    found = frames_of(images, completed)
    places = poses_of(poses, list(found), units)
    if missing := len(found) - len(places):
        console.print(f"[yellow]note:[/] {missing} of {len(found)} frames have no pose and are left out")
    frames = [read_frame(completed, name, found[name], places[name]) for name in places]
    cloud, shares = merged(frames, settings)
    agreed = f", {100 * sum(shares) / len(shares):.0f}% of trusted pixels confirmed" if votes else ""
    console.print(f"{len(frames)} frames{agreed}: {len(cloud)} points", markup=False)
    if output is not None:
        console.print(str(write_cloud(output, cloud)), markup=False)
    if nerfstudio is not None:
        place = write_nerfstudio(nerfstudio, frames, cloud, max_sigma=limit, mask_pictures=mask_pictures)
        console.print(str(place), markup=False)
    if rerun is not None:
        from gbpn.jobs.rerun_recording import write_recording

        write_recording(rerun, frames, cloud)
        console.print(str(rerun), markup=False)
