"""`DepthCompleter`: one call from an image and a few measurements to depth and its uncertainty."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gbpn import checkpoint
from gbpn.data.depth_files import implausible
from gbpn.depth import DepthDistribution
from gbpn.errors import BackendError, InputError
from gbpn.frame import DepthUnit
from gbpn.gbp import infer
from gbpn.model import GBPN, Model
from gbpn.predict import large
from gbpn.predict.completed import CompletedDepth
from gbpn.predict.inputs import as_image, as_intrinsics, as_sparse
from gbpn.predict.session import Session

SOLVERS = ("gbp", "exact")


class DepthCompleter:
    """Completes depth for images of any size with one model; safe to call from several threads.

    >>> completer = DepthCompleter.from_pretrained()
    >>> result = completer("photo.jpg", "depth.png", scale=1000)
    >>> result.depth, result.confidence  # [H, W] metres, and in (0, 1)
    """

    def __init__(self, model: Model, *, device: str | torch.device = "cpu", solver: str = "gbp") -> None:
        """`solver`: "gbp" as trained, or "exact": the last field's exact mean, confidence as with "gbp"."""
        self.model = model.eval().to(device)
        self.device = torch.device(device)
        self.solver = solver
        if solver not in SOLVERS:
            raise InputError(f"solver must be one of {', '.join(SOLVERS)}; got {solver!r}")
        if solver == "exact" and not has_exact_answer(model):
            raise InputError(
                f"solver='exact' needs a model with symmetric edges, shared by all iterations and without "
                f"learned ones; {model.config.name!r} draws {_field_kind(model)}: use solver='gbp'"
            )

    @classmethod
    def from_pretrained(
        cls,
        source: str | os.PathLike[str] = "default",
        *,
        device: str = "auto",
        solver: str = "gbp",
        iterations: int | tuple[int, ...] | None = None,
        **overrides: Any,
    ) -> DepthCompleter:
        """With weights by name, path or hub id, see `gbpn.load`.

        device      "auto" takes a GPU if there is one
        iterations  of each stage, if not as trained
        overrides   other fields of the configuration
        """
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        model = checkpoint.load(source, device=_usable(device), fuse=True, **overrides)
        if iterations is not None:
            counts = (iterations,) if isinstance(iterations, int) else tuple(iterations)
            if len(counts) != model.config.stages or min(counts) < 1:
                raise InputError(
                    f"{model.config.name!r} has {model.config.stages} stages with {model.config.iterations} "
                    f"iterations: give as many counts above 0; got {counts}"
                )
            model.config = replace(model.config, iterations=counts)
        return cls(model, device=device, solver=solver)

    def __call__(
        self, image: Any, sparse: Any, intrinsics: Any = None, *, scale: float | None = None
    ) -> CompletedDepth:
        """Complete one image.

        image       path, PIL picture, NumPy [H, W, 3] or torch [3, H, W]; see `inputs.as_image`
        sparse      path, array [H, W] in metres (0 or NaN: not measured) or points [N, 3] of x, y, depth
        intrinsics  fx, fy, cx, cy; a 3×3 matrix; a file; None: EXIF, else a stated default
        scale       what integer depth files or arrays are divided by: 1000 for millimetres, 256 for KITTI
        """
        picture = as_image(image)
        _, height, width = picture.shape
        measured = as_sparse(sparse, height, width, scale)
        if not bool((measured > 0).any()):
            raise InputError("there is no measurement: every value of the sparse depth is 0 or NaN")
        camera, notice = as_intrinsics(intrinsics, image, height, width)
        answer = self._complete(picture, measured, camera)
        notices = [notice] if notice else []
        return CompletedDepth(
            distribution=answer,
            image=picture,
            sparse=measured,
            intrinsics=camera,
            notices=tuple(notices + list(self._out_of_range(picture, measured, camera))),
        )

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
        return Session(self.model, self.device, image, intrinsics, stage=stage, warm=warm)

    @torch.inference_mode()
    def _complete(self, image: Tensor, sparse: Tensor, intrinsics: Tensor) -> DepthDistribution:
        height, width = image.shape[1:]
        factor = large.reduction(height, width)
        if factor < 1:
            image, sparse, intrinsics = large.reduce(image, sparse, intrinsics, factor)
        image, sparse, intrinsics = (tensor[None].to(self.device) for tensor in (image, sparse, intrinsics))
        if self.solver == "exact":
            answer = self._exact(image, sparse, intrinsics)
        else:
            answer = self.model(image, sparse, intrinsics)
        return large.enlarge(answer, height, width) if factor < 1 else answer

    def _exact(self, image: Tensor, sparse: Tensor, intrinsics: Tensor) -> DepthDistribution:
        """The exact mean of the last field; how sure it is stays as trained, from belief propagation."""
        assert isinstance(self.model, GBPN)
        sketch = self.model.draw(image, intrinsics)
        *_, last = self.model.stages(sketch, sparse)
        unit = DepthUnit.of(self.model.config.depth_scale, sketch.frame.padded(sparse))
        belief = infer(last.field, solver="exact").belief
        return replace(last.distribution, mean=sketch.frame.cropped(unit.out(belief.mean)))

    def _out_of_range(self, image: Tensor, sparse: Tensor, intrinsics: Tensor) -> Iterator[str]:
        """Where the input leaves what the weights were trained for, as their card states it."""
        height, width = image.shape[1:]
        if (factor := large.reduction(height, width)) < 1:
            yield (
                f"{height}×{width} is completed at {factor:.2f} of its size and enlarged again: "
                f"images above {large.MOST_PIXELS / 1e6:.1f} megapixels are reduced"
            )
        x, y = float(intrinsics[0, 2]), float(intrinsics[1, 2])
        if not (0 <= x < width and 0 <= y < height):
            yield (
                f"the camera's principal point ({x:.0f}, {y:.0f}) lies outside the {width}×{height} picture: "
                "are the intrinsics those of another size?"
            )
        if (doubt := implausible(sparse.numpy())) is not None:
            yield doubt
        trained = self.model.card.get("trained_for", {})
        values = sparse[sparse > 0]
        for name, low, high, unit in (
            ("points", len(values), len(values), ""),
            ("pixels", height * width, height * width, ""),
            ("depth", float(values.min()), float(values.max()), " m"),
        ):
            if name in trained and (low < trained[name][0] or high > trained[name][1]):
                lowest, highest = trained[name]
                found = f"{low:g} {name}" if low == high else f"{name} from {low:g} to {high:g}{unit}"
                yield (
                    f"{found}: these weights were trained for {lowest:g} to {highest:g}{unit}, "
                    "expect more error than sigma says"
                )


def has_exact_answer(model: Model) -> bool:
    """Whether the fields of this model are quadratic energies, which linear algebra can minimise."""
    config = model.config
    return (
        isinstance(model, GBPN)
        and config.edges == "symmetric"
        and not config.dynamic
        and config.nonlocal_edges == 0
    )


def _usable(device: str) -> str:
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise InputError(f"device must be cpu, cuda, cuda:1, … or auto; got {device!r}") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise BackendError(f"device {device!r} needs a GPU that torch can use; here is none: use cpu or auto")
    return device


def _field_kind(model: Model) -> str:
    config = model.config
    if not isinstance(model, GBPN):
        return "no field at all"
    sharing = "of its own for each iteration" if config.dynamic else "shared"
    return f"{config.edges} edges, {sharing}, and {config.nonlocal_edges} learned ones per pixel"


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
