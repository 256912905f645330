"""`DepthCompleter`: one call from an image and a few measurements to depth and its uncertainty."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from gbpn.distribution import DepthDistribution
from gbpn.errors import InputError
from gbpn.kernels.backends import usable_device
from gbpn.measurements.areas import AreaGrid, agreeing
from gbpn.measurements.validity import measured
from gbpn.model.loading import load
from gbpn.model.models import GBPN, Model
from gbpn.model.pipeline import SparseDepth
from gbpn.predict import resizing
from gbpn.predict.clouds import cloud_inputs
from gbpn.predict.completed import CompletedDepth
from gbpn.predict.inputs import FrameInputs, frame_inputs
from gbpn.predict.keeping import kept
from gbpn.predict.measurements import DepthSensor
from gbpn.predict.plausible_range import kept_promises
from gbpn.predict.session import Session
from gbpn.sigma.even_confidence import evenly_sure

__all__ = ["DepthCompleter"]


class DepthCompleter:
    """Completes depth for images of any size with one model; safe to call from several threads.

    >>> completer = DepthCompleter.from_pretrained()
    >>> result = completer("photo.jpg", "depth.png", scale=1000)
    >>> result.depth, result.confidence  # [H, W] metres, and in (0, 1)
    """

    def __init__(
        self,
        model: Model,
        *,
        device: str | torch.device = "cpu",
        solver: str = "gbp",
        iterations: int | tuple[int, ...] = (),
        outliers: str = "drop",
        working_size: str = "auto",
    ) -> None:
        """
        solver        "gbp" as trained, or "exact": the last field's exact mean, confidence as with "gbp"
        iterations    of each stage, if not as trained
        outliers      "drop": single measurements that the rest contradicts are not used; or "keep"
        working_size  "auto": by focal length and number of measurements, for weights whose card states the
                      focal length of their training, see `resizing.working_scale`; "own": the picture's
        """
        if working_size not in ("auto", "own"):
            raise InputError(f"working_size must be auto or own; got {working_size!r}")
        self.working_size = working_size
        self.model = model.eval().to(device)
        self.device = torch.device(device)
        self.solver = solver
        self.iterations = (iterations,) if isinstance(iterations, int) else tuple(iterations)
        self.outliers = outliers
        if isinstance(model, GBPN):
            pipeline = model.pipeline(solver=solver, iterations=self.iterations, outliers=outliers)
            self.iterations = pipeline.iterations
            return
        self.outliers = "keep"  # inference finds them, and such a model has none
        if solver != "gbp":
            raise InputError(
                f"solver={solver!r} needs a field; {model.config.name!r} draws no field at all: "
                "use solver='gbp'"
            )

    @classmethod
    def from_pretrained(
        cls,
        source: str | os.PathLike[str] = "default",
        *,
        device: str = "auto",
        solver: str = "gbp",
        iterations: int | tuple[int, ...] | None = None,
        outliers: str = "drop",
        precision: str = "auto",
        working_size: str = "auto",
        **overrides: Any,
    ) -> DepthCompleter:
        """With weights by name, path or hub id, see `gbpn.load`.

        device        "auto" takes a GPU if there is one
        iterations    of each stage, if not as trained
        outliers      "drop": single measurements that the rest contradicts are not used; or "keep"
        precision     of the convolutions: "float32", "bfloat16", or "auto": bfloat16 where the processor
                      computes it itself and the weights were checked with it
        working_size  "auto": the size at which pictures are best completed; or "own"
        overrides     other fields of the configuration
        """
        device = usable_device(device)
        model = load(source, device=device, fuse=True, precision=precision, **overrides)
        return cls(
            model,
            device=device,
            solver=solver,
            iterations=iterations or (),
            outliers=outliers,
            working_size=working_size,
        )

    def __call__(
        self,
        image: Any,
        sparse: Any = None,
        intrinsics: Any = None,
        *,
        cloud: Any = None,
        transform: Any = None,
        scale: float | None = None,
        sigmas: bool = False,
        sigma: Any = None,
        confidence: Any = None,
        depth_intrinsics: Any = None,
        depth_to_image: Any = None,
        keep_measured: bool = False,
    ) -> CompletedDepth:
        """Complete one image.

        image       path, PIL picture, NumPy [H, W, 3] or torch [3, H, W]; see `inputs.as_image`
        sparse      path, array [H, W] in metres (0 or NaN: not measured) or points [N, 3] of x, y, depth
        intrinsics  fx, fy, cx, cy; a 3×3 matrix; a file; None: EXIF, else a stated default
        cloud       instead of `sparse`: points [N, 3] of a scanner in metres, or a file of them
        transform   of the cloud: [4, 4] matrix to the camera (x right, y down, z ahead), or a file
        scale       what integer depth files or arrays are divided by: 1000 for millimetres, 256 for KITTI
        sigmas      σ will be read too: it is checked together with the answer, not when it is first read

        Of the sensor, where it is known; maps have the size of `sparse`, which may be smaller than the image:

        sigma             noise: metres for all, a share such as "1%", a map in metres, or a file of it
        confidence        ARKit's 0 to 2, bytes, or weights from 0 to 1, see `formats.confidence_files`
        depth_intrinsics  of a depth camera that is not the colour camera, as `intrinsics`
        depth_to_image    4×4: its coordinates → those of the colour camera, metres
        keep_measured     measured pixels come back as they were, see `gbpn.predict.keeping`
        """
        if (cloud is None) == (sparse is None):
            raise InputError("measurements are needed: sparse depth, or a cloud, and not both")
        sensor = DepthSensor(
            sigma=sigma, confidence=confidence, intrinsics=depth_intrinsics, to_image=depth_to_image
        )
        if cloud is None:
            inputs = frame_inputs(image, sparse, intrinsics, scale, sensor)
        elif sensor != DepthSensor():
            raise InputError("sigma, confidence and a depth camera belong to sparse depth, not to a cloud")
        else:
            inputs = cloud_inputs(image, cloud, intrinsics, transform)
        return self.complete(inputs, sigmas=sigmas, keep_measured=keep_measured)

    @torch.inference_mode()
    def complete(
        self, inputs: FrameInputs, *, sigmas: bool = False, keep_measured: bool = False
    ) -> CompletedDepth:
        """The same for a frame that was read before."""
        answer = self._answer(inputs, sigmas)
        if inputs.reservation is not None:
            answer = inputs.reservation.of(answer)
        if keep_measured:
            answer = kept(answer, inputs.sparse, inputs.areas)
        result = CompletedDepth(
            distribution=kept_promises(answer, inputs.sparse),
            image=inputs.image,
            sparse=inputs.sparse,
            intrinsics=inputs.intrinsics,
            areas=inputs.areas,
            notices=(*inputs.notices, *self._out_of_range(inputs)),
        )
        told = result.outlier_notice
        return replace(result, notices=(*result.notices, told)) if told else result

    def batch(
        self, images: Any, sparses: Any, intrinsics: Any = None, **options: Any
    ) -> list[CompletedDepth]:
        """Several images, of one size or not: lists, or arrays with a leading batch axis.

        `intrinsics`: None, one camera for all (file, matrix, four numbers), or one per image.
        """
        if len(images) != len(sparses):
            raise InputError(f"as many images as sparse depths are wanted; got {len(images)}, {len(sparses)}")
        cameras = _cameras(intrinsics, len(images))
        triples = zip(images, sparses, cameras, strict=True)
        return [self(image, sparse, camera, **options) for image, sparse, camera in triples]

    def session(self, image: Any, intrinsics: Any = None, *, stage: str = "last", warm: int = 1) -> Session:
        """Measurements that come and go over one image, see `Session`; the network looks at it once.

        stage  "last", or for two-stage models "first": its depth alone, without a network in each refresh
        warm   iterations after an addition
        """
        if not isinstance(self.model, GBPN):
            raise InputError(f"{self.model.config.name!r} keeps no messages: a session needs a GBPN model")
        pipeline = self.model.pipeline(solver=self.solver, iterations=self.iterations)
        return Session(pipeline, self.device, image, intrinsics, stage=stage, warm=warm)

    def _answer(self, inputs: FrameInputs, sigmas: bool) -> DepthDistribution:
        height, width = inputs.size
        factor = self._scale(inputs)
        seen = inputs if factor == 1 else resizing.reduced(inputs, factor)
        answer = self._of_model(seen, sigmas)
        if factor != 1:
            answer = resizing.enlarge(answer, height, width)
        if inputs.areas is None:
            return answer
        used = inputs.sparse[None].to(answer.mean)
        if answer.dropped is not None:
            used = torch.where(answer.dropped, 0.0, used)
        return agreeing(AreaGrid.of(inputs.areas, inputs.size), used, answer)

    def _scale(self, inputs: FrameInputs) -> float:
        """Factor on the sides of the picture that the model sees."""
        trained = self.model.card.get("trained_for", {}).get("focal")
        if self.working_size == "own" or not isinstance(trained, int | float) or not trained > 0:
            return resizing.reduction(*inputs.size)
        focal = float(inputs.intrinsics[0, 0] + inputs.intrinsics[1, 1]) / 2
        return resizing.working_scale(*inputs.size, focal, int(measured(inputs.sparse).sum()), float(trained))

    def _of_model(self, seen: FrameInputs, sigmas: bool) -> DepthDistribution:
        """What the model says of a frame that it can look at as it is."""
        image, camera = (tensor[None].to(self.device) for tensor in (seen.image, seen.intrinsics))
        depth, std, weight = (
            None if maps is None else maps[None].to(self.device)
            for maps in (seen.sparse, seen.std, seen.weight)
        )
        assert depth is not None
        switches = {"solver": self.solver, "iterations": self.iterations, "outliers": self.outliers}
        if isinstance(self.model, GBPN):
            areas = None if seen.areas is None else AreaGrid.of(seen.areas, seen.size)
            sparse = SparseDepth(depth=depth, std=std, weight=weight)
            pipeline = self.model.pipeline(**switches)
            return evenly_sure(pipeline.complete(image, sparse, camera, sigmas=sigmas, areas=areas))
        if std is not None or weight is not None:
            raise InputError(
                f"sigma and confidence of measurements need a field; {self.model.config.name!r} run like "
                "this has none: leave them out, or use weights with one in torch"
            )
        return self.model.complete(image, depth, camera, sigmas=sigmas, **switches)

    def _out_of_range(self, inputs: FrameInputs) -> Iterator[str]:
        """Where the input leaves what the weights were trained for, as their card states it."""
        height, width = inputs.size
        trained = self.model.card.get("trained_for", {})
        if (factor := self._scale(inputs)) != 1:
            told = f"{width}×{height} is completed at {factor:.2f} of its size and answered at its own: "
            if factor == resizing.reduction(height, width):
                yield told + f"images above {resizing.MOST_PIXELS / 1e6:.1f} megapixels are reduced"
            else:
                yield told + (
                    f"the weights know focal lengths of about {trained['focal']:g} pixels "
                    "(--working-size own switches this off)"
                )
        x, y = float(inputs.intrinsics[0, 2]), float(inputs.intrinsics[1, 2])
        if not (0 <= x < width and 0 <= y < height):
            yield (
                f"the camera's principal point ({x:.0f}, {y:.0f}) lies outside the {width}×{height} picture: "
                "are the intrinsics those of another size?"
            )
        if inputs.doubt is not None:
            yield inputs.doubt
        values = inputs.sparse[measured(inputs.sparse)]
        for name, low, high, unit in (
            ("points", len(values), len(values), ""),
            ("pixels", height * width, height * width, ""),
            ("depth", float(values.min()), float(values.max()), " m"),
        ):
            if name == "depth" and not inputs.metric:
                continue
            if name in trained and (low < trained[name][0] or high > trained[name][1]):
                lowest, highest = trained[name]
                found = f"{low:g} {name}" if low == high else f"{name} from {low:.3g} to {high:.3g}{unit}"
                yield (
                    f"{found}: these weights were trained for {lowest:g} to {highest:g}{unit}, "
                    "expect more error than sigma says"
                )


def _cameras(intrinsics: Any, count: int) -> list[Any]:
    """One camera, or None, per image."""
    if intrinsics is None or isinstance(intrinsics, str | os.PathLike):
        return [intrinsics] * count
    if np.shape(intrinsics) in ((4,), (3, 3)):
        return [intrinsics] * count
    several = list(intrinsics)
    if len(several) != count:
        raise InputError(f"one camera for all or one per image is wanted; got {len(several)} for {count}")
    return several
