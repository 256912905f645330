"""A folder that nerfstudio and gsplat train from: pictures, depth, masks, poses and points to start with.

transforms.json   per frame fl_x, fl_y, cx, cy (first pixel centre at ½), pose in OpenGL's axes, and the files
images/           the pictures
depths/           16-bit PNG, millimetres (nerfstudio's depth_unit_scale_factor of 0.001); 0 where not trusted
masks/            255 where depth is trusted, 0 elsewhere; named per frame if asked for
points3D.ply      the merged cloud, in the same world
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gbpn.errors import InputError
from gbpn.files.atomic import write_text
from gbpn.formats.cloud_files import Cloud, write_cloud
from gbpn.formats.depth_files import MILLIMETRES, write_depth
from gbpn.formats.poses import OPENGL
from gbpn.jobs.completed_folder import CompletedFrame
from gbpn.show import pictures
from gbpn.sigma.limit import SigmaLimit

__all__ = ["write_nerfstudio"]

_FARTHEST = 65.0
"""Metres that 16 bits of millimetres hold; beyond, there is no depth in the files."""


def write_nerfstudio(
    folder: str | Path,
    frames: Sequence[CompletedFrame],
    cloud: Cloud,
    *,
    max_sigma: SigmaLimit | None = None,
    mask_pictures: bool = False,
) -> Path:
    """Write the folder; `transforms.json`, which names everything, comes last.

    mask_pictures  trainers leave out the masked pixels, their colour too; else masks lie beside the depth
    """
    folder = Path(folder)
    for part in ("images", "depths", "masks"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    entries = [_frame(folder, frame, max_sigma, mask_pictures) for frame in frames]
    write_cloud(folder / "points3D.ply", cloud)
    document = {
        "camera_model": "OPENCV",
        "depth_unit_scale_factor": 1 / MILLIMETRES,
        "ply_file_path": "points3D.ply",
        "frames": entries,
    }
    write_text(folder / "transforms.json", json.dumps(document, indent=1) + "\n")
    return folder / "transforms.json"


def _frame(
    folder: Path, frame: CompletedFrame, max_sigma: SigmaLimit | None, mask_pictures: bool
) -> dict[str, Any]:
    if frame.pose is None:
        raise InputError(f"{frame.name} has no pose: a nerfstudio folder needs one of every frame")
    trusted = frame.trusted(max_sigma) & (frame.depth < _FARTHEST)
    files = {
        "file_path": f"images/{frame.name}.png",
        "depth_file_path": f"depths/{frame.name}.png",
        "mask_path": f"masks/{frame.name}.png",
    }
    pictures.save(frame.image, folder / files["file_path"])
    known = np.where(trusted, frame.depth, np.float32(0))
    write_depth(folder / files["depth_file_path"], torch.from_numpy(known), MILLIMETRES)
    pictures.save(trusted.astype(np.uint8) * 255, folder / files["mask_path"])
    if not mask_pictures:
        files["depth_mask_path"] = files.pop("mask_path")
    height, width = frame.depth.shape
    camera = frame.intrinsics
    return {
        **files,
        "w": width,
        "h": height,
        "fl_x": float(camera[0, 0]),
        "fl_y": float(camera[1, 1]),
        "cx": float(camera[0, 2] + 0.5),
        "cy": float(camera[1, 2] + 0.5),
        "transform_matrix": (frame.pose @ OPENGL).tolist(),
    }
