"""`gbpn suggest`: where a further measurement would help most."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gbpn.cli import options
from gbpn.cli.how_options import USUAL, with_how
from gbpn.how import How

__all__ = ["suggest"]


@with_how("stream", "working_size", "engine", "keep_measured", "prior_kind")
def suggest(
    image: Annotated[Path, typer.Argument(help="Image.")],
    sparse: Annotated[
        Path | None, typer.Argument(help="Depth file, table x,y,depth or point cloud with what is measured.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many pixels.")] = 5,
    points: Annotated[
        list[str] | None, typer.Option(help="A measurement x,y,depth (pixels, metres); may be repeated.")
    ] = None,
    scale: options.Scale = None,
    intrinsics: Annotated[
        str | None, typer.Option(help="'fx,fy,cx,cy' or a file; otherwise EXIF, else 60° are assumed.")
    ] = None,
    weights: options.Weights = "default",
    how: How = USUAL,
) -> None:
    """Suggest the pixels whose measurement would reduce the total uncertainty most, best first."""
    import numpy as np
    from rich.console import Console

    from gbpn.camera.lens import undistorted_picture
    from gbpn.inputs.reading import as_image
    from gbpn.jobs.opening import open_completer
    from gbpn.jobs.sources import Sensor
    from gbpn.jobs.written import parse_intrinsics, parse_point

    sensor = Sensor(
        points=tuple(parse_point(point) for point in points or ()),
        scale=scale,
        intrinsics=parse_intrinsics(intrinsics),
    )
    picture = as_image(image)
    found, camera, lens, *_ = sensor.readings(image, sparse, *picture.shape[1:])
    if lens is not None:
        picture = undistorted_picture(picture, camera, lens)
    session = open_completer(weights, how).session(picture, camera)
    depth = found.sparse[0].numpy()
    rows, columns = np.nonzero(depth)
    if len(rows):
        session.add(columns, rows, depth[rows, columns])
    console = Console(highlight=False, soft_wrap=True)
    console.print("x,y,gain", markup=False)
    for one in session.suggest(count):
        console.print(f"{one.x},{one.y},{one.gain:.4f}", markup=False)
