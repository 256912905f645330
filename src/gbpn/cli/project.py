"""`gbpn project`: a point cloud or a COLMAP model into sparse depth maps."""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from gbpn.cli import options
from gbpn.errors import InputError
from gbpn.files.guard import shown
from gbpn.measurements.validity import measured

if TYPE_CHECKING:
    from torch import Tensor

    from gbpn.formats.camera_files import CameraFile

__all__ = ["project"]

_DISTORTION_WARNING = 1.0
"""Pixels of lens distortion above which a picture should be undistorted."""


def project(
    cloud: Annotated[
        Path,
        typer.Argument(help="Point cloud (.bin, .ply, .pcd, .npy, .las), or the folder of a COLMAP model."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Depth map (.png, .npy, .npz, .tiff); a folder for COLMAP.")
    ],
    image: Annotated[
        Path | None, typer.Option(help="Picture the points are projected into; gives the size.")
    ] = None,
    size: Annotated[str | None, typer.Option(help="Size WIDTHxHEIGHT, where there is no picture.")] = None,
    intrinsics: Annotated[
        str | None,
        typer.Option(help="'fx,fy,cx,cy', or a file with that or a 3×3 matrix (.txt, .json, .npy)."),
    ] = None,
    extrinsics: Annotated[
        Path | None,
        typer.Option(help="File with the 3×4 or 4×4 matrix: cloud to camera (x right, y down, z ahead)."),
    ] = None,
    calib: Annotated[
        Path | None, typer.Option(help="KITTI calibration file or folder, instead of the two matrices.")
    ] = None,
    camera: options.Camera = None,
    keep_see_through: Annotated[
        bool, typer.Option("--keep-see-through", help="Keep points that are seen through nearer surfaces.")
    ] = False,
    scale: Annotated[
        float, typer.Option(help="PNG stores metres × scale: 256 as KITTI, 1000 for millimetres.")
    ] = 256.0,
    units: options.Units = None,
    preview: Annotated[Path | None, typer.Option(help="Also write a picture of the points.")] = None,
) -> None:
    """Project points into a camera: nearest point per pixel, occluded points removed."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    if cloud.is_dir():
        _project_colmap(console, cloud, output, units)
        return
    from gbpn.camera.pinhole import fitted_intrinsics
    from gbpn.files.guard import require_size
    from gbpn.formats.camera_files import resized
    from gbpn.formats.depth_files import require_scale, write_depth
    from gbpn.formats.images import orientation_notice, read_image
    from gbpn.formats.point_clouds import read_points
    from gbpn.sensors.projection import project as project_points
    from gbpn.sensors.projection import remove_see_through

    found, to_camera = _calibration(intrinsics, extrinsics, calib, camera)
    picture = None if image is None else read_image(image)
    width, height = _parse_size(size) if picture is None else (picture.shape[-1], picture.shape[-2])
    require_scale(scale)
    require_size("a depth map", height, width)
    found, resize = resized(found, height, width)
    matrix, notice = fitted_intrinsics(found.intrinsics, height, width)
    bent = (
        None
        if found.lens is None
        else "the camera has a lens: the points are those of the undistorted picture"
    )
    for text in (resize, notice, bent, None if image is None else orientation_notice(image)):
        if text is not None:
            console.print(f"notice: {text}", markup=False)
    points = read_points(cloud)
    sparse = project_points(points, matrix, height, width, to_camera)
    projected = int(measured(sparse).sum())
    if not keep_see_through:
        sparse = remove_see_through(sparse)
    kept = int(measured(sparse).sum())
    if kept == 0:
        raise InputError(
            f"{cloud}: none of its {len(points)} points falls into the {width}×{height} picture: "
            "check the extrinsics (cloud to camera, x right, y down, z ahead) and the intrinsics"
        )
    write_depth(output, sparse, scale)
    low, high = float(sparse[measured(sparse)].min()), float(sparse.max())
    console.print(
        f"{len(points)} points, {projected} pixels hit, {projected - kept} seen through and removed; "
        f"{kept} kept ({kept / (height * width):.2%}), {low:.2f} to {high:.2f} m → {output}",
        markup=False,
    )
    if preview is not None:
        _write_preview(preview, sparse, picture)


def _calibration(
    intrinsics: str | None, extrinsics: Path | None, calib: Path | None, camera: int | None
) -> tuple[CameraFile, Tensor | None]:
    """The camera and cloud-to-camera matrix (None: the cloud is in camera coordinates)."""
    import numpy as np

    from gbpn.formats.calibration import intrinsics_of, kitti_calibration
    from gbpn.formats.camera_files import CAMERA_FILES, CameraFile, read_camera, read_transform

    if calib is not None:
        if intrinsics is not None or extrinsics is not None:
            raise InputError("give either --calib or --intrinsics with --extrinsics, not both")
        calibration = kitti_calibration(calib, 2 if camera is None else camera)
        return CameraFile(intrinsics=calibration.intrinsics), calibration.to_camera
    if intrinsics is None:
        raise InputError("the camera is needed: --intrinsics fx,fy,cx,cy or a file, or --calib for KITTI")
    if Path(intrinsics).suffix.lower() in CAMERA_FILES:
        found = read_camera(intrinsics, number=camera)
    else:
        try:
            numbers = [float(word) for word in intrinsics.replace(",", " ").split()]
        except ValueError:
            raise InputError(f"--intrinsics must be fx,fy,cx,cy or a file; got {intrinsics!r}") from None
        found = CameraFile(intrinsics=intrinsics_of(np.array(numbers)))
    return found, None if extrinsics is None else read_transform(extrinsics)


def _parse_size(size: str | None) -> tuple[int, int]:
    """(width, height) of "1242x375"."""
    if size is None:
        raise InputError("the size is needed: --image PICTURE or --size WIDTHxHEIGHT")
    words = size.lower().replace("×", "x").split("x")
    short = all(word.isdecimal() and len(word) < 10 and int(word) > 0 for word in words)
    if len(words) != 2 or not short:
        raise InputError(f"--size must be WIDTHxHEIGHT such as 1242x375; got {shown(size)!r}")
    return int(words[0]), int(words[1])


def _write_preview(path: Path, sparse: Tensor, picture: Tensor | None) -> None:
    from gbpn.datasets.contact_sheet import depth_picture
    from gbpn.files.atomic import replacing

    known = sparse[measured(sparse)]
    limits = (float(known.quantile(0.02)), float(known.quantile(0.98)))
    rendered = depth_picture(sparse, limits, None if picture is None else picture * 0.6)
    with replacing(path) as temporary:
        rendered.save(temporary)


def _project_colmap(console: object, folder: Path, output: Path, units: float | None) -> None:
    """One .npy of depth and of its σ per image, and its intrinsics, in the layout of a `folder` dataset."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import track

    from gbpn.files.atomic import replacing
    from gbpn.files.contained import contained
    from gbpn.formats.colmap import sparse_view
    from gbpn.formats.colmap_layout import largest_model
    from gbpn.formats.depth_files import write_depth

    assert isinstance(console, Console)
    if units is not None and not (math.isfinite(units) and units > 0):
        raise InputError(f"--units must be metres per unit, above 0; got {units}")
    model, several = largest_model(folder)
    if several is not None:
        console.print(f"notice: {several}", markup=False)
    stems = _stems(output, [picture.name for picture in model.pictures])
    worst = ("", 0.0)
    total = 0
    for picture in track(model.pictures, "projecting", console=Console(stderr=True), transient=True):
        view = sparse_view(model, picture, units or 1.0)
        stem = stems[picture.name]
        write_depth(contained(output / "sparse", stem, ".npy"), view.sparse)
        write_depth(contained(output / "std", stem, ".npy"), view.std)
        numbers = [float(view.intrinsics[place]) for place in ((0, 0), (1, 1), (0, 2), (1, 2))]
        with replacing(contained(output / "intrinsics", stem, ".txt")) as temporary:
            temporary.write_text(" ".join(f"{number:.6f}" for number in numbers) + "\n")
        total += int(measured(view.sparse).sum())
        worst = max(worst, (picture.name, view.distortion), key=lambda pair: pair[1])
    if not model.pictures:
        raise InputError(f"{folder}: the model has no registered image")
    mean = total / len(model.pictures)
    console.print(f"{len(model.pictures)} images, {mean:.0f} points each on average → {output}", markup=False)
    if worst[1] > _DISTORTION_WARNING:
        console.print(
            f"[yellow]warning:[/] lens distortion moves points by up to {worst[1]:.1f} pixels "
            f"({escape(shown(worst[0]))}); "
            "the intrinsics written have none: gbpn complete removes it; for other uses run 'colmap "
            "image_undistorter'"
        )


def _stems(output: Path, names: list[str]) -> dict[str, str]:
    """Name of an image → that of its files below `output`; all are looked at before the first is written."""
    from gbpn.files.contained import contained

    stems: dict[str, str] = {}
    places: dict[Path, str] = {}
    for name in names:
        contained(output / "sparse", name)
        stem = str(PurePosixPath(name).with_suffix(""))
        place = contained(output / "sparse", stem, ".npy")
        if place in places:
            raise InputError(
                f"{shown(places[place])} and {shown(name)} would be written to one file: rename one"
            )
        places[place], stems[name] = name, stem
    return stems
