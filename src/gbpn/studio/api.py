"""The HTTP interface for other programs: one picture and its measurements in, maps out."""

from __future__ import annotations

import io
import json
from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, File, Form, HTTPException, Request, Response, UploadFile
from PIL import Image
from pydantic import BaseModel
from torch import Tensor

import gbpn
from gbpn import scenes
from gbpn.answer.completed import CompletedDepth
from gbpn.errors import InputError
from gbpn.predict import DepthCompleter
from gbpn.studio import exports
from gbpn.studio.limits import Limits
from gbpn.studio.material import decode_depth, decode_picture, decode_prior, scene_depth, scene_photo
from gbpn.studio.workers import Workers

__all__ = ["complete", "router"]

router = APIRouter()
_MOST_WAITING = 64
"""Requests in line beyond which further ones are turned away with 503."""
_Format = Literal["npz", "png", "ply"]
_MEDIA_TYPES: dict[str, str] = {
    "npz": "application/octet-stream",
    "png": "image/png",
    "ply": "application/octet-stream",
}


class _Health(BaseModel):
    """Whether the server is well."""

    status: Literal["ok"]
    version: str
    model: str
    pages: int
    """Open pages."""
    computing: int
    """Computations under way."""
    waiting: int
    """Computations in line."""


class _Problem(BaseModel):
    """What is wrong with a request, and what to do."""

    detail: str


@router.get("/health")
async def _health(request: Request) -> _Health:
    """Answers at once, also while everything computes."""
    state = request.app.state
    return _Health(
        status="ok",
        version=gbpn.__version__,
        model=state.completer.model.config.name,
        pages=state.pages,
        computing=state.workers.busy,
        waiting=state.workers.waiting,
    )


@router.get("/api/v1/scenes")
async def _list_scenes() -> list[str]:
    """Names of the embedded example scenes."""
    return scenes.names()


@router.get(
    "/api/v1/scenes/{name}.jpg",
    response_class=Response,
    responses={
        200: {"content": {"image/jpeg": {}}},
        404: {"model": _Problem, "description": "There is no such scene."},
    },
)
async def _scene_picture(name: str) -> Response:
    """The picture of an embedded scene."""
    if name not in scenes.names():
        raise HTTPException(404, f"there is no scene of that name: {', '.join(scenes.names())}")
    return Response(scene_photo(name), media_type="image/jpeg", headers={"cache-control": "max-age=3600"})


@router.get(
    "/api/v1/scenes/{name}/depth.jpg",
    response_class=Response,
    responses={
        200: {"content": {"image/jpeg": {}}},
        404: {"model": _Problem, "description": "There is no such scene."},
    },
)
def _scene_depth(name: str) -> Response:
    """The true depth of an embedded scene, in the colours of the previews."""
    if name not in scenes.names():
        raise HTTPException(404, f"there is no scene of that name: {', '.join(scenes.names())}")
    return Response(scene_depth(name), media_type="image/jpeg", headers={"cache-control": "max-age=3600"})


@router.post(
    "/api/v1/complete",
    response_class=Response,
    responses={
        200: {
            "description": "npz: depth, confidence, observed and, with calibrated weights, std; png: depth "
            "in 16 bit, metres times the header X-Depth-Scale; ply: a coloured point cloud. The headers "
            "X-Notices and X-How say in JSON what was assumed, and how it was completed.",
            "content": {"application/octet-stream": {}, "image/png": {}},
        },
        400: {"model": _Problem, "description": "The request cannot be read."},
        413: {"model": _Problem, "description": "The upload is too large."},
        422: {"description": "The picture, the depth or a number cannot be used; `detail` says why."},
        503: {"model": _Problem, "description": "Too many requests are waiting: try again later."},
    },
)
async def complete(
    request: Request,
    image: Annotated[UploadFile, File(description="JPEG, PNG or another picture.")],
    depth: Annotated[
        UploadFile | None, File(description="Measurements: .png, .npy, .csv, .txt or .ply, by its file name.")
    ] = None,
    points: Annotated[
        str, Form(description="Measurements as JSON: [[x, y, metres], …], pixels from the upper left.")
    ] = "",
    scale: Annotated[
        float | None, Form(gt=0, lt=1e9, description="What integer depth is divided by: 1000, 256.")
    ] = None,
    intrinsics: Annotated[
        str, Form(description="fx,fy,cx,cy in pixels; empty: from EXIF, else a field of view of 60°.")
    ] = "",
    prior: Annotated[
        UploadFile | None,
        File(description="Another network's depth map, .png or .npy; what it holds says --prior-kind."),
    ] = None,
    format: Annotated[_Format, Form(description="npz, png or ply.")] = "npz",
) -> Response:
    """Complete one picture's depth."""
    state = request.app.state
    workers: Workers = state.workers
    if workers.waiting >= _MOST_WAITING:
        raise HTTPException(503, f"{workers.waiting} computations are waiting: try again later")
    picture = await image.read()
    measured = None if depth is None else (await depth.read(), _suffix(depth))
    foreign = None if prior is None else (await prior.read(), _suffix(prior))
    result, content, scale_used = await workers.run(
        lambda: _completed(
            state.completer, state.limits, picture, measured, points, scale, intrinsics, foreign, format
        )
    )
    headers = {"x-notices": json.dumps(result.notices), "x-how": json.dumps(result.how.as_json())}
    if scale_used:
        headers["x-depth-scale"] = f"{scale_used:g}"
    return Response(content, media_type=_MEDIA_TYPES[format], headers=headers)


def _completed(
    completer: DepthCompleter,
    limits: Limits,
    picture: bytes,
    measured: tuple[bytes, str] | None,
    points: str,
    scale: float | None,
    intrinsics: str,
    foreign: tuple[bytes, str] | None,
    format: str,
) -> tuple[CompletedDepth, bytes, float | None]:
    photo = decode_picture(picture, limits)
    size = photo.height, photo.width
    camera = _numbers(intrinsics)
    sparse: object
    if measured is not None and points:
        raise InputError("give depth or points, not both")
    if measured is not None:
        sparse = decode_depth(*measured, scale, _matrix(camera, photo), size, limits)
    else:
        sparse = _points(points, limits)
    prior = None if foreign is None else decode_prior(*foreign, limits)
    result = completer(photo, sparse, camera, prior=prior)
    return result, *_written(result, format)


def _suffix(file: UploadFile) -> str:
    """Of its name, with the dot; empty without one."""
    name = file.filename or ""
    return "." + name.rsplit(".", 1)[-1].lower() if "." in name else ""


def _written(result: CompletedDepth, format: str) -> tuple[bytes, float | None]:
    if format == "png":
        from gbpn.answer.completed import png_scale

        return exports.depth_png(result), png_scale(result.depth)
    if format == "ply":
        return exports.written("cloud.ply", result.to_point_cloud), None
    arrays = {"depth": result.depth, "confidence": result.confidence, "observed": result.observed}
    if result.calibrated:
        arrays["std"] = result.std
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue(), None


def _numbers(text: str) -> list[float] | None:
    if not text.strip():
        return None
    try:
        camera = [float(word) for word in text.split(",")]
    except ValueError:
        camera = []
    if len(camera) != 4 or not np.isfinite(camera).all() or min(camera[:2]) <= 0:
        raise InputError(f"intrinsics are fx,fy,cx,cy with positive focal lengths; got {text[:80]!r}")
    return camera


def _matrix(camera: list[float] | None, photo: Image.Image) -> Tensor:
    from gbpn.inputs.reading import as_intrinsics

    return as_intrinsics(camera, photo, photo.height, photo.width)[0]


def _points(text: str, limits: Limits) -> np.ndarray:
    if not text.strip():
        raise InputError("measurements are needed: depth (a file) or points ([[x, y, metres], …])")
    try:
        values = np.array(json.loads(text), dtype=np.float64)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise InputError(f"points are JSON of the form [[x, y, metres], …]; got {text[:80]!r}") from error
    if values.ndim != 2 or values.shape[1] != 3 or not 1 <= len(values) <= limits.points:
        raise InputError(
            f"points are 1 to {limits.points} rows of x, y, metres; got an array of {list(values.shape)}"
        )
    if not np.isfinite(values).all() or np.abs(values).max() > 1e6:
        raise InputError("points must be finite numbers below a million")
    return values
