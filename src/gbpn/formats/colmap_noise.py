"""How sure a reconstruction is of its points: what their rays leave open, and how well the pictures agree.

A point is where the rays of its track meet. Rays from nearly one place leave its depth open, however small
its reprojection error is. Each observation adds the information of its two pixels, ⊥ to its ray; their sum is
the point's precision. Pixels are as noisy as the point's own track says, drawn towards what all tracks of
the model say, since the error of a short one is small by fitting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gbpn.formats.colmap import Reconstruction, RegisteredImage

__all__ = ["common_noise", "depth_noise", "point_covariances"]

_USUAL_TRACK = 6.0
"""Observations that what all tracks say counts for, beside a point's own."""
_SMALLEST_NOISE = 0.3
"""Pixels; no feature is found better."""
_POSES = 2.5
"""Factor on what rays leave open: the cameras they start from are estimated with them …"""
_DRIFT = 6.0
"""… and bend the whole: pixels of noise by which all points of a picture may be off together. Both factors
are those of 60 frames of TUM fr1_desk and 50 of fr1_xyz, where points were compared with measured depth."""
_USUAL = 0.68
"""Share of a picture's points whose noise is at most what is told of them all."""
_LARGEST_SHARE = 1.0
"""Of the depth; a point that is less sure says nothing, and inference needs no more than that."""


def point_covariances(model: Reconstruction) -> dict[int, np.ndarray]:
    """id → [3, 3] in the model's unit squared, of the points that two pictures or more observe."""
    numbers = np.array(sorted(model.points), np.int64)
    if not len(numbers):
        return {}
    table = np.array([model.points[number] for number in numbers.tolist()])
    information, seen = np.zeros((len(numbers), 3, 3)), np.zeros(len(numbers))
    for picture in model.pictures:
        if picture.camera not in model.cameras:
            continue
        place = _places(numbers, picture.points)
        ray = table[place, :3] + picture.rotation.T @ picture.translation  # from the camera's centre
        length = np.maximum(np.linalg.norm(ray, axis=1), 1e-9)
        ray = ray / length[:, None]
        focal = float(model.cameras[picture.camera].parameters[0])
        across = np.eye(3) - ray[:, :, None] * ray[:, None, :]
        information[place] += (focal / length)[:, None, None] ** 2 * across
        seen[place] += 1
    sure = seen >= 2
    noise = _pixel_noise(table[:, 3], seen)
    information[sure] /= noise[sure, None, None] ** 2
    information[sure] += np.eye(3) * 1e-12 * np.trace(information[sure], axis1=1, axis2=2)[:, None, None]
    found = np.linalg.inv(information[sure])
    return dict(zip(numbers[sure].tolist(), found, strict=True))


def depth_noise(
    model: Reconstruction, picture: RegisteredImage, numbers: np.ndarray, depth: np.ndarray
) -> np.ndarray:
    """[N] σ of the depth of points `numbers` in a picture, in the model's unit; `depth` [N] bounds it.

    0, which states nothing, for points that no other picture observes.
    """
    axis = picture.rotation[2]  # the camera's z in the world
    known = model.covariances
    variance = np.array([axis @ known[n] @ axis if n in known else 0.0 for n in numbers.tolist()])
    own = _POSES * np.sqrt(np.maximum(variance, 0))
    drift = np.where(variance > 0, _drift(model, picture), 0.0) * depth
    return np.asarray(np.minimum(np.hypot(own, drift), _LARGEST_SHARE * depth))


def common_noise(std: np.ndarray, depth: np.ndarray) -> float:
    """Share of the depth by which a picture's points [N] may be off, whatever their neighbours say."""
    known = std > 0
    return float(np.quantile(std[known] / depth[known], _USUAL)) if known.any() else 0.0


def _drift(model: Reconstruction, picture: RegisteredImage) -> float:
    """Share of the depth by which all points of a picture may be off."""
    errors = np.array([record[3] for record in model.points.values()])
    usual = max(float(np.sqrt(np.mean(np.nan_to_num(errors) ** 2))), _SMALLEST_NOISE)
    return _DRIFT * usual / float(model.cameras[picture.camera].parameters[0])


def _places(numbers: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Where observed ids stand in the sorted `numbers`; those not there, such as −1, are left out."""
    wanted = np.unique(observed)
    place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    return np.asarray(place[numbers[place] == wanted])


def _pixel_noise(error: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """[N] pixels of each point's observations, from the mean error of its track of `seen` pictures."""
    freedom = np.maximum(2 * seen - 3, 1)  # a point of n observations fits 3 of their 2 n numbers
    own = np.nan_to_num(error, nan=0.0, posinf=0.0) ** 2 * seen / freedom
    usual = float(np.sum(own * freedom) / np.sum(freedom))
    blended = (own * freedom + usual * _USUAL_TRACK) / (freedom + _USUAL_TRACK)
    return np.asarray(np.sqrt(np.maximum(blended, _SMALLEST_NOISE**2)))
