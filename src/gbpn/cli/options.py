"""Options that commands share or have many of: type, name on the command line, and help of each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "WEIGHTS",
    "Address",
    "Again",
    "Also",
    "Batch",
    "ByOrder",
    "Calib",
    "Camera",
    "CameraInfo",
    "Cloud",
    "Confidence",
    "CpusPerWorker",
    "Depth",
    "DepthCamera",
    "DepthExtrinsics",
    "Deskew",
    "Distributed",
    "Extrinsics",
    "Fisheye",
    "FocalMm",
    "GpusPerWorker",
    "ImageTopic",
    "Images",
    "Intrinsics",
    "MaxFailures",
    "MaxSigma",
    "Merge",
    "Output",
    "Pack",
    "Pair",
    "Points",
    "Prior",
    "Rectified",
    "RefineExtrinsics",
    "Rerun",
    "RetryFailed",
    "Scale",
    "Sigma",
    "Sparse",
    "Tf",
    "Tolerance",
    "Units",
    "Weights",
    "Workers",
]

# Headings in --help, in the order in which commands name the first option of each.
_CAMERA = "Camera"
_MEASUREMENTS = "What was measured"
_RECORDINGS = "Bags and MCAP files"
_FRAMES = "Several frames"
_RESULTS = "Further results"
_MODEL = "Model"
_MACHINES = "Many machines, buckets and manifests"

Images = Annotated[
    str,
    typer.Argument(
        help="Image, folder of images, quoted glob, COLMAP project, list of TUM's associations, "
        "video, ROS bag or MCAP file, project of the studio (.gbpn); "
        "with \\[scale]: s3:// or gs:// address, manifest (.csv, .parquet), "
        "tar shards."
    ),
]
Sparse = Annotated[
    str | None,
    typer.Argument(
        help="Depth file (.png, .tiff, .npy, .npz, .exr), table x,y,depth (.csv), point cloud (.ply, "
        ".pcd, .bin, .las), COLMAP model, or folder with one file per image."
    ),
]
Output = Annotated[str, typer.Option("--output", "-o", help="Folder (or address) for the results.")]
Points = Annotated[
    list[str] | None,
    typer.Option(
        help="A measurement, x,y,depth or x y depth (pixels, metres); may be repeated. Of a recording: the "
        "topic of clouds or depth images."
    ),
]
Depth = Annotated[
    str | None, typer.Option(help="The same as SPARSE: of a video, the folder of its depth files.")
]
ImageTopic = Annotated[
    str | None, typer.Option("--image", rich_help_panel=_RECORDINGS, help="Recording: topic of the images.")
]
CameraInfo = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_RECORDINGS,
        help="Recording: topic of the camera, by default the one beside the images.",
    ),
]
Tf = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=_RECORDINGS, help="Recording: topics of transforms, by default /tf_static and /tf."
    ),
]
Deskew = Annotated[
    bool,
    typer.Option(
        "--deskew",
        rich_help_panel=_RECORDINGS,
        help="Recording: put each point where it was at its own time, by the transforms (the cloud has a "
        "field t, time, timestamp or offset_time).",
    ),
]
Scale = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_MEASUREMENTS,
        help="Depth files hold metres × scale: 1000 for millimetres, 256 for KITTI.",
    ),
]
Intrinsics = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_CAMERA,
        help="'fx,fy,cx,cy', 26mm, or a file: numbers, ROS camera_info, Kalibr camchain, OpenCV FileStorage, "
        "transforms.json; otherwise EXIF, else 60° are assumed. panorama or panorama,TOP,BOTTOM (degrees): "
        "an equirectangular picture, measured and answered as range along the rays.",
    ),
]
Fisheye = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_CAMERA,
        help="Degrees that the fisheye lens of --intrinsics FILE sees, above 120 say: all of them are "
        "completed, as range in the picture's own pixels, instead of an undistorted part.",
    ),
]
FocalMm = Annotated[
    float | None,
    typer.Option(
        "--focal-mm",
        rich_help_panel=_CAMERA,
        help="Focal length in millimetres as cameras and phones state it, for a picture 36 mm wide (phones: "
        "about 26), instead of --intrinsics.",
    ),
]
Rectified = Annotated[
    bool,
    typer.Option(
        "--rectified",
        rich_help_panel=_CAMERA,
        help="The images are undistorted already, whatever the camera file says.",
    ),
]
Extrinsics = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=_CAMERA, help="Point cloud: file with the 3×4 or 4×4 matrix cloud to camera."
    ),
]
Calib = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=_CAMERA, help="Point cloud: KITTI calibration, instead of the two matrices."
    ),
]
RefineExtrinsics = Annotated[
    bool,
    typer.Option(
        "--refine-extrinsics",
        rich_help_panel=_CAMERA,
        help="Turn the measurements by up to 3° so that their edges fit those of the pictures, over up to 30 "
        "frames; what was done is told and recorded.",
    ),
]
Camera = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=_CAMERA,
        help="KITTI camera: 2 (default) left colour, 3 right colour; or cam number of a Kalibr chain.",
    ),
]
Units = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_MEASUREMENTS,
        help="COLMAP: metres per unit of the model; without it, depths have no unit.",
    ),
]
WEIGHTS = "default (also nyuv2: research only), free (for any use), a file, folder or hub id."
Weights = Annotated[str, typer.Option(rich_help_panel=_MODEL, help=WEIGHTS)]
Cloud = Annotated[
    bool, typer.Option("--cloud", rich_help_panel=_RESULTS, help="Also write a coloured point cloud (.ply).")
]
Also = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=_RESULTS, help="Also write mask, glb, mesh, tiff, exr, kitti or ply; may be repeated."
    ),
]
Merge = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=_RESULTS,
        help="COLMAP project: also merge all frames into one cloud, .ply or .glb, see gbpn merge.",
    ),
]
MaxSigma = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_RESULTS,
        help="Largest sigma of trusted pixels, 0.05 (metres) or 5%: writes a mask, and clouds obey.",
    ),
]
Sigma = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_MEASUREMENTS,
        help="Noise of the measurements: metres, 1% of depth, or maps (file, folder).",
    ),
]
Confidence = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=_MEASUREMENTS,
        help="Confidence maps (file or folder): ARKit 0 to 2, bytes, or weights to 1.",
    ),
]
DepthCamera = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_CAMERA,
        help="'fx,fy,cx,cy' or a file: a depth camera that is not the colour camera; panorama,TOP,BOTTOM: a "
        "scanner's range image.",
    ),
]
DepthExtrinsics = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=_CAMERA, help="File with the 3×4 or 4×4 matrix depth camera to colour camera."
    ),
]
Prior = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=_MEASUREMENTS,
        help="Another network's depth map of the image (.npy, .npz, .png, .tiff, .exr; any size, no metres "
        "needed), or a folder of them.",
    ),
]
Rerun = Annotated[
    Path | None,
    typer.Option(rich_help_panel=_RESULTS, help="Also write a recording for the rerun viewer (.rrd)."),
]
Workers = Annotated[int, typer.Option(min=1, rich_help_panel=_FRAMES, help="Frames at a time.")]
ByOrder = Annotated[
    bool,
    typer.Option("--by-order", rich_help_panel=_FRAMES, help="Pair folders by order instead of by name."),
]
Pair = Annotated[
    str,
    typer.Option(
        rich_help_panel=_FRAMES,
        help="Pair folders by name, by order, or nearest: names are times, see --tolerance.",
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        rich_help_panel=_FRAMES,
        help="Seconds between an image and its measurements, with --pair nearest or a recording.",
    ),
]
Again = Annotated[
    bool, typer.Option("--again", rich_help_panel=_FRAMES, help="Redo frames that are done already.")
]
Distributed = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_MACHINES,
        help="ray: --workers processes on a Ray cluster; here: one process, any storage.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_MACHINES,
        help="Ray cluster: auto or ray://host:10001; by default one on this machine.",
    ),
]
CpusPerWorker = Annotated[
    float, typer.Option(rich_help_panel=_MACHINES, help="Ray: processors of each worker.")
]
GpusPerWorker = Annotated[float, typer.Option(rich_help_panel=_MACHINES, help="Ray: GPUs of each worker.")]
Batch = Annotated[
    int,
    typer.Option(min=1, rich_help_panel=_MACHINES, help="Distributed: frames that are committed together."),
]
Pack = Annotated[
    str,
    typer.Option(
        rich_help_panel=_MACHINES,
        help="Distributed: write files, one tar per batch, or into the parquet tables.",
    ),
]
MaxFailures = Annotated[
    int | None, typer.Option(rich_help_panel=_MACHINES, help="Distributed: end after so many failed frames.")
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed", rich_help_panel=_MACHINES, help="Distributed: do batches with failed frames anew."
    ),
]
