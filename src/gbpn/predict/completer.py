"""`DepthCompleter`: one call from an image and a few measurements to depth and its uncertainty."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import torch

from gbpn.answer import CompletedDepth
from gbpn.engine import Engine
from gbpn.engine.session import Session
from gbpn.engine.stream import Stream
from gbpn.errors import InputError
from gbpn.how import How
from gbpn.inputs.clouds import cloud_inputs
from gbpn.inputs.frame import FrameInputs
from gbpn.inputs.measurements import DepthSensor
from gbpn.inputs.reading import frame_inputs
from gbpn.model.loading import load
from gbpn.model.models import Model

__all__ = ["DepthCompleter"]


class DepthCompleter:
    """Completes depth for images of any size with one model; safe to call from several threads.

    >>> completer = DepthCompleter.from_pretrained()
    >>> result = completer("photo.jpg", "depth.png", scale=1000)
    >>> result.depth, result.confidence  # [H, W] metres, and in (0, 1)
    """

    def __init__(self, model: Model, *, how: How | None = None, **options: Any) -> None:
        """With a copy of the model's weights as they are now, so that the model stays free for anything else.

        how      how frames are completed, see `gbpn.how.How`
        options  or single fields of it, such as precision="float32" or outliers="keep"
        """
        self.engine = Engine.of(model, how, **options)

    @classmethod
    def from_pretrained(
        cls,
        source: str | os.PathLike[str] = "default",
        *,
        how: How | None = None,
        **options: Any,
    ) -> DepthCompleter:
        """With weights by name, path or hub id, see `gbpn.load`.

        how      how frames are completed, see `gbpn.how.How`
        options  or single fields of it, such as precision="float32"; others are fields of the configuration
        """
        own, overrides = How.split(options)
        return cls(load(source, **overrides), how=how, **own)

    @property
    def how(self) -> How:
        """How frames are completed, with everything decided."""
        return self.engine.how

    @property
    def model(self) -> Model:
        """As it was given; what happens to it later does not reach the completer."""
        return self.engine.model

    def __call__(
        self,
        image: Any,
        sparse: Any = None,
        intrinsics: Any = None,
        *,
        cloud: Any = None,
        transform: Any = None,
        scale: float | None = None,
        sigmas: bool = True,
        sigma: Any = None,
        confidence: Any = None,
        depth_intrinsics: Any = None,
        depth_to_image: Any = None,
        prior: Any = None,
        keep_measured: bool | None = None,
        fisheye: float | None = None,
    ) -> CompletedDepth:
        """Complete one image.

        image       path, PIL picture, NumPy [H, W, 3] or torch [3, H, W]; see `gbpn.inputs.reading.as_image`
        sparse      path, array [H, W] in metres (0 or NaN: not measured) or points [N, 3] of x, y, depth
        intrinsics  fx, fy, cx, cy; a 3×3 matrix; a file; None: EXIF, else a stated default. "panorama" or
                    "panorama,TOP,BOTTOM" (degrees): an equirectangular picture, see `gbpn.camera.wide`;
                    measurements and answer are then ranges along the rays of its pixels
        cloud       instead of `sparse`: points [N, 3] of a scanner in metres, or a file of them
        transform   of the cloud: [4, 4] matrix to the camera (x right, y down, z ahead), or a file
        scale       what integer depth files or arrays are divided by: 1000 for millimetres, 256 for KITTI
        sigmas      whether `std` is wanted; depth alone takes about half of the time
        prior       another network's depth map of the image, of any size, up to scale and shift: a path or an
                    array [h, w]; `How.prior_kind` says what it holds, see docs/priors.md

        Of the sensor, where it is known; maps have the size of `sparse`, which may be smaller than the image:

        sigma             noise: metres for all, a share such as "1%", a map in metres, or a file of it
        confidence        ARKit's 0 to 2, bytes, or weights from 0 to 1, see `formats.confidence_files`
        depth_intrinsics  of a depth camera that is not the colour camera, as `intrinsics`
        depth_to_image    4×4: its coordinates → those of the colour camera, metres
        keep_measured     measured pixels come back as they were; None: as `how` says
        fisheye           degrees that the fisheye lens of the camera file sees: all of them are completed, as
                          ranges in the picture's own pixels; None: the picture is undistorted
        """
        if (cloud is None) == (sparse is None):
            raise InputError("measurements are needed: sparse depth, or a cloud, and not both")
        sensor = DepthSensor(
            sigma=sigma, confidence=confidence, intrinsics=depth_intrinsics, to_image=depth_to_image
        )
        if cloud is None:
            inputs = frame_inputs(image, sparse, intrinsics, scale, sensor, prior, fisheye)
        elif sensor != DepthSensor():
            raise InputError("sigma, confidence and a depth camera belong to sparse depth, not to a cloud")
        else:
            inputs = cloud_inputs(image, cloud, intrinsics, transform, prior, fisheye)
        return self.complete(inputs, sigmas=sigmas, keep_measured=keep_measured)

    def complete(
        self, inputs: FrameInputs, *, sigmas: bool = True, keep_measured: bool | None = None
    ) -> CompletedDepth:
        """The same for a frame that was read before."""
        engine = self.engine if keep_measured is None else self.engine.keeping(keep_measured)
        return engine.frame(inputs, sigmas=sigmas)

    def batch(
        self, images: Any, sparses: Any, intrinsics: Any = None, *, priors: Any = None, **options: Any
    ) -> list[CompletedDepth]:
        """Several images, of one size or not: lists, or arrays with a leading batch axis.

        `intrinsics`: None, one camera for all (file, matrix, four numbers), or a list of one per image, each
        as for a single image. `priors`: one per image, None where there is none.
        """
        if len(images) != len(sparses):
            raise InputError(f"as many images as sparse depths are wanted; got {len(images)}, {len(sparses)}")
        cameras = _cameras(intrinsics, len(images))
        if priors is not None and len(priors) != len(images):
            raise InputError(f"one prior per image is wanted, or None; got {len(priors)} for {len(images)}")
        frames = zip(
            images, sparses, cameras, [None] * len(images) if priors is None else priors, strict=True
        )
        return [
            self(image, sparse, camera, prior=prior, **options) for image, sparse, camera, prior in frames
        ]

    def session(
        self,
        image: Any,
        intrinsics: Any = None,
        *,
        stage: str = "last",
        prior: Any = None,
        warm: int | None = None,
    ) -> Session:
        """Measurements that come and go over one image, see `Session`; the network looks at it once.

        stage  "last", or for two-stage models "first": its depth alone, without a network in each refresh
        prior  another network's depth map of the image, as in a call
        warm   deprecated: every look is that of a new session
        """
        if warm is not None:
            warnings.warn("a session has no warm any more: leave it out", DeprecationWarning, stacklevel=2)
        return self.engine.session(image, intrinsics, stage=stage, prior=prior)

    def stream(self) -> Stream:
        """The frames of one video in their order, see `Stream`; each as `gbpn.inputs.reading.frame_inputs`
        reads it."""
        return self.engine.stream()


def _cameras(intrinsics: Any, count: int) -> list[Any]:
    """One camera, or None, per image."""
    if intrinsics is None or isinstance(intrinsics, str | os.PathLike) or _is_one(intrinsics):
        return [intrinsics] * count
    several = list(intrinsics)
    if len(several) != count:
        raise InputError(f"one camera for all or one per image is wanted; got {len(several)} for {count}")
    return several


def _is_one(intrinsics: Any) -> bool:
    """Whether this is four numbers or a matrix, and not a list of cameras, files or None."""
    try:
        numbers = np.asarray(intrinsics.cpu() if isinstance(intrinsics, torch.Tensor) else intrinsics)
    except ValueError:  # of different kinds
        return False
    return numbers.dtype.kind in "fiu" and numbers.shape in ((4,), (3, 3))
