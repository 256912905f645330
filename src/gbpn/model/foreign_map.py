"""A foreign map takes the place of the network's own depth-like map, as far as measurements bear it out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gbpn.errors import InputError
from gbpn.foreign import trust
from gbpn.foreign.fitting import MapFit, most_fitting, rank_correlation
from gbpn.foreign.resampling import resampled
from gbpn.foreign.trust import SETTINGS, Verdict
from gbpn.measurements.validity import measured
from gbpn.network import Refiner

if TYPE_CHECKING:
    from gbpn.model.pipeline import ImageEncoding, Pipeline, SparseDepth

__all__ = ["believing", "require_own_map"]

_Looks = tuple["ImageEncoding", ...]
_WORDS = {"depth": "depth", "disparity": "disparity (1/depth)", "log": "log depth"}


def require_own_map(pipeline: Pipeline) -> None:
    """Raise for weights in which there is no place for a foreign map."""
    if not pipeline.config.prior or not (pipeline.second is None or isinstance(pipeline.second, Refiner)):
        raise InputError(
            f"{pipeline.config.name!r} draws no depth-like map whose place a prior could take: use the "
            "default weights, or leave out the prior"
        )


@torch.no_grad()
def believing(
    pipeline: Pipeline, looks: _Looks, sparse: SparseDepth, values: Tensor, kind: str
) -> tuple[_Looks, Verdict]:
    """The picture as seen with a foreign map, and what became of it.

    looks   of the picture, and of its mirror image where that is asked for
    sparse  measurements of one picture, [1, 1, H, W]
    values  [1, h, w] of any size: as the foreign network gave them, NaN where it says nothing
    kind    of them, or "auto"
    """
    require_own_map(pipeline)
    encoding, metres = looks[0], sparse.depth[0, 0].cpu().numpy()
    there = measured(sparse.depth)[0, 0].cpu().numpy()
    given = resampled(values, encoding.padded.size)[0].cpu().numpy()
    own = _answer(pipeline, encoding, sparse)
    fit = most_fitting(given, np.where(there, metres, 0), own, kind)
    if fit is None:
        told = "it is flat, or runs against the measurements: the network's own map is used instead"
        return looks, Verdict(kind="none", share=0.0, checked=0, reason=told)
    change = _change(encoding, fit)
    verdict, shares = _judged(pipeline, encoding, sparse, fit, change, own)
    if verdict.share > 0:
        believed = change * torch.from_numpy(shares).to(change)
        looks = tuple(
            _with(look, believed.flip(-1) if number else believed) for number, look in enumerate(looks)
        )
    return looks, verdict


def _judged(
    pipeline: Pipeline,
    encoding: ImageEncoding,
    sparse: SparseDepth,
    fit: MapFit,
    change: Tensor,
    own: np.ndarray,
) -> tuple[Verdict, np.ndarray]:
    """How much of the map is used, on the whole and at each pixel [H, W]."""
    size, metres = encoding.padded.size, sparse.depth[0, 0].cpu().numpy()
    told = f"taken for {_WORDS[fit.kind]}"
    parts = trust.folds(measured(sparse.depth)[0, 0].cpu().numpy())
    if not parts:
        agrees = rank_correlation(fit.logarithm, np.log(own)) >= SETTINGS.agreement
        share = SETTINGS.unchecked if agrees else 0.0
        told = (
            f"{told}, believed by {share:.0%}: fewer than {SETTINGS.fewest} measurements cannot check it, "
            f"and it {'agrees' if agrees else 'disagrees'} with the network's own answer"
        )
        verdict = Verdict(kind=fit.kind, share=share, checked=0, reason=told)
        return verdict, np.full(size, share, dtype=np.float32)
    with_map, errors = _with(encoding, change), []
    for held in parts:
        rest = sparse.without(torch.from_numpy(held)[None, None].to(sparse.depth.device))
        found = [_answer(pipeline, one, rest)[held] for one in (encoding, with_map)]
        errors.append(np.abs(np.log(found) - np.log(metres[held])))
    without, with_it = np.nan_to_num(np.concatenate(errors, axis=1))
    rows, columns = (np.concatenate(x) for x in zip(*map(np.nonzero, parts), strict=True))
    shares = trust.share_by_place(without - with_it, rows, columns, size)
    share = float(shares.mean())
    verdict = Verdict(
        kind=fit.kind,
        share=share,
        checked=len(without),
        reason=f"{told}, believed by {share:.0%} after {len(without)} measurements that were held out",
        narrowing=trust.narrowing(without, with_it, share),
    )
    return verdict, shares


def _answer(pipeline: Pipeline, encoding: ImageEncoding, sparse: SparseDepth) -> np.ndarray:
    """[H, W] metres of the first stage alone; NaN where nothing was reached."""
    mean = pipeline.first_stage(encoding, sparse).distribution.mean[0, 0]
    return mean.clamp_min(1e-6).float().cpu().numpy()


def _change(encoding: ImageEncoding, fit: MapFit) -> Tensor:
    """[1, 1, H, W]: what has to be added to the network's own map to have the foreign one, up to a constant;
    0 where the foreign one says nothing."""
    drawn = encoding.parameters.prior
    assert drawn is not None
    own = encoding.padded.cropped(drawn)
    foreign = torch.from_numpy(fit.logarithm)[None, None].to(own)
    known = torch.isfinite(foreign)
    change = foreign - own
    return torch.where(known, change - change[known].median(), 0.0)


def _with(encoding: ImageEncoding, change: Tensor) -> ImageEncoding:
    """The picture with a change [1, 1, H, W] of its depth-like map, which the second stage sees too."""
    parameters = encoding.parameters
    assert parameters.prior is not None
    assert parameters.maps is not None
    (top, left), (height, width) = encoding.padded.corner, encoding.padded.size
    rows, columns = parameters.prior.shape[-2:]
    margins = (left, columns - width - left, top, rows - height - top)
    drawn = parameters.prior + functional.pad(change, margins, mode="replicate")
    changed = replace(parameters, prior=drawn, maps=parameters.maps._replace(prior=drawn))
    return replace(encoding, parameters=changed)
