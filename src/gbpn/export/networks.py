"""What is exported, as modules with plain tensors in and out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gbpn.distribution import SigmaCalibration
from gbpn.gmcn import GMCN, FieldParameters, HeadMaps, Refiner, SecondStageInput
from gbpn.gmcn.field_parameters import ChannelLayout
from gbpn.model import GBPN
from gbpn.mrf import LocalEdges

__all__ = ["SEEN", "FirstNetwork", "SecondNetwork", "WholeModel", "stated_std"]

SEEN = SecondStageInput._fields
"""What the second network looks at besides what the first one hands on."""


def _field_names(layout: ChannelLayout) -> tuple[str, ...]:
    """What a stage draws, by the names that the native inference gives its tensors."""
    names: tuple[str, ...] = ("unary", "residual", "local_weight", "local_difference", "local_damping")
    if layout.nonlocal_edges:
        names += ("nonlocal_weight", "nonlocal_difference", "nonlocal_offset", "nonlocal_damping")
    return names


def _carried_names(model: GBPN) -> tuple[str, ...]:
    """What the first network hands on to the second."""
    if model.second is None:
        return ()
    if isinstance(model.second, GMCN):
        return tuple(f"feature_{n}" for n in range(len(model.first.decoder.widths)))
    features = (f"feature_{n}" for n in range(len(model.second.adapters)))
    return (*features, *(f"maps_{name}" for name in model.second.layout.channels))


def _drawn(parameters: FieldParameters) -> tuple[Tensor, ...]:
    """In the order of `_field_names`, both directions of every edge written out."""
    local: LocalEdges = parameters.local.directed()
    near = (parameters.unary, parameters.residual, local.weight, local.difference, local.damping)
    if (far := parameters.nonlocal_) is not None:
        return (*near, far.weight, far.difference, far.offset, far.damping)
    return near


class FirstNetwork(nn.Module):
    """The first stage: normalised image [1, 3, H, W] and intrinsics [1, 3, 3] → field and what is carried."""

    def __init__(self, model: GBPN) -> None:
        super().__init__()
        self.network = model.first
        self.outputs = (*_field_names(model.first.layout), *_carried_names(model))

    def forward(self, image: Tensor, intrinsics: Tensor) -> tuple[Tensor, ...]:
        parameters = self.network.draw(image, intrinsics)
        assert parameters.maps is not None
        maps = {f"maps_{name}": tensor for name, tensor in parameters.maps.by_name().items()}
        features = {f"feature_{n}": tensor for n, tensor in enumerate(parameters.features)}
        drawn = _drawn(parameters)
        return (*drawn, *({**maps, **features}[name] for name in self.outputs[len(drawn) :]))


class SecondNetwork(nn.Module):
    """The second stage: what `SecondStageInput` says and what was carried → field."""

    def __init__(self, model: GBPN) -> None:
        super().__init__()
        assert model.second is not None
        self.network: GMCN | Refiner = model.second
        self.outputs = _field_names(model.second.layout)
        self.carried = _carried_names(model)

    def forward(
        self,
        image: Tensor,
        intrinsics: Tensor,
        depth: Tensor,
        confidence: Tensor,
        measured: Tensor,
        carried: Sequence[Tensor],
    ) -> tuple[Tensor, ...]:
        given = dict(zip(self.carried, carried, strict=True))
        features = tuple(tensor for name, tensor in given.items() if name.startswith("feature_"))
        maps = {n.removeprefix("maps_"): tensor for n, tensor in given.items() if n.startswith("maps_")}
        nothing = image[:, :1]
        before = FieldParameters(
            unary=nothing,
            residual=nothing,
            local=LocalEdges(weight=nothing, difference=nothing, damping=nothing),
            nonlocal_=None,
            features=features,
            maps=HeadMaps(**maps) if maps else None,
        )
        seen = SecondStageInput(image, intrinsics, depth, confidence, measured)
        return _drawn(self.network.redraw(seen, before))


class WholeModel(nn.Module):
    """Image [1, 3, H, W] RGB in [0, 1], sparse [1, 1, H, W] metres, intrinsics [1, 3, 3] → the answer.

    Depth in metres (NaN where unobserved), confidence, where observed, and, of calibrated weights, σ in
    metres as the calibration states it: the check against held-out measurements is not part of a graph.
    """

    def __init__(self, model: GBPN) -> None:
        super().__init__()
        self.model = model
        self.outputs = ("depth", "confidence", "observed") + (("std",) if model.calibration else ())

    def forward(self, image: Tensor, sparse: Tensor, intrinsics: Tensor) -> tuple[Tensor, ...]:
        answer = self.model.complete(image, sparse, intrinsics, check_sigmas=False)
        maps = answer.mean, answer.confidence, answer.observed
        if self.model.calibration is None:
            return maps
        return (*maps, stated_std(self.model.calibration, answer.mean, answer.confidence_logit))


def stated_std(calibration: SigmaCalibration, mean: Tensor, confidence_logit: Tensor) -> Tensor:
    """As `SigmaCalibration.std`, as a sum over the pieces between knots: not every runtime can search."""
    log_std = torch.full_like(mean, calibration.log_std[0])
    pieces = zip(
        calibration.knots, calibration.knots[1:], calibration.log_std, calibration.log_std[1:], strict=False
    )
    for low, high, before, after in pieces:
        log_std = log_std + (confidence_logit - low).clamp(0, high - low) * ((after - before) / (high - low))
    std = log_std.exp()
    return std * mean.abs() if calibration.relative else std
