"""What is exported, as modules with plain tensors in and out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gbpn.distribution import SigmaCalibration
from gbpn.model.models import GBPN
from gbpn.mrf import LocalEdges, NonLocalEdges, SymmetricEdges
from gbpn.network import GMCN, FieldParameters, HeadMaps, Refiner, SecondStageInput
from gbpn.network.field_parameters import ChannelLayout

__all__ = ["DRAWN", "SEEN", "FieldNetwork", "FirstNetwork", "SecondNetwork", "WholeModel", "stated_std"]

SEEN = SecondStageInput._fields
"""What the second network looks at besides what the first one hands on."""
DRAWN = "drawn_"
"""Before the name of what the density of the measurements has yet to change."""


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
    return _as_tensors(parameters, parameters.local.directed())


def _as_tensors(parameters: FieldParameters, local: LocalEdges | SymmetricEdges) -> tuple[Tensor, ...]:
    near = (parameters.unary, parameters.residual, local.weight, local.difference, local.damping)
    if (far := parameters.nonlocal_) is not None:
        return (*near, far.weight, far.difference, far.offset, far.damping)
    return near


class FirstNetwork(nn.Module):
    """The first stage: normalised image [1, 3, H, W] and intrinsics [1, 3, 3] → field and what is carried.

    Where the density of the measurements changes the field, `FieldNetwork` makes it of what is drawn here.
    """

    def __init__(self, model: GBPN) -> None:
        super().__init__()
        self.network = model.first
        names = _field_names(model.first.layout)
        if model.first.response is not None:
            names = FieldNetwork(model).drawn
        self.outputs = (*names, *_carried_names(model))

    def forward(self, image: Tensor, intrinsics: Tensor) -> tuple[Tensor, ...]:
        parameters = self.network.draw(image, intrinsics)
        assert parameters.maps is not None
        maps = {f"maps_{name}": tensor for name, tensor in parameters.maps.by_name().items()}
        features = {f"feature_{n}": tensor for n, tensor in enumerate(parameters.features)}
        if self.network.response is None:
            drawn = _drawn(parameters)
        else:
            drawn = _as_tensors(parameters, parameters.local)
            drawn += () if parameters.prior is None else (parameters.prior,)
        return (*drawn, *({**maps, **features}[name] for name in self.outputs[len(drawn) :]))


class FieldNetwork(nn.Module):
    """What the first stage has drawn, and where there are measurements [1, 1, H, W] (above 0) → its field."""

    def __init__(self, model: GBPN) -> None:
        super().__init__()
        assert model.first.response is not None
        self.response, self.layout = model.first.response, model.first.layout
        self.outputs = _field_names(self.layout)
        self.drawn = tuple(f"{DRAWN}{name}" for name in self.outputs)
        self.drawn += (f"{DRAWN}prior",) if self.layout.prior else ()

    def forward(self, measured: Tensor, drawn: Sequence[Tensor]) -> tuple[Tensor, ...]:
        maps = dict(zip((name.removeprefix(DRAWN) for name in self.drawn), drawn, strict=True))

        def edges(kind: str, *names: str) -> dict[str, Tensor]:
            return {name: maps[f"{kind}_{name}"] for name in names}

        near = edges("local", "weight", "difference", "damping")
        symmetric = self.layout.edges == "symmetric"
        far = None
        if self.layout.nonlocal_edges:
            far = NonLocalEdges(**edges("nonlocal", "weight", "difference", "offset", "damping"))
        parameters = FieldParameters(
            unary=maps["unary"],
            residual=maps["residual"],
            local=SymmetricEdges(**near) if symmetric else LocalEdges(**near),
            nonlocal_=far,
            prior=maps.get("prior"),
            responses=(self.response,),
        )
        return _drawn(parameters.responding(measured > 0))


class SecondNetwork(nn.Module):
    """The second stage: what `SecondStageInput` says and what was carried → field."""

    def __init__(self, model: GBPN) -> None:
        super().__init__()
        assert model.second is not None
        self.network: GMCN | Refiner = model.second
        self.response = model.first.response
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
            responses=() if self.response is None else (self.response,),
        )
        seen = SecondStageInput(image, intrinsics, depth, confidence, measured)
        return _drawn(self.network.redraw(seen, before).responding(measured > 0))


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
        log_std = log_std + (confidence_logit - low).clamp(0.0, high - low) * (
            (after - before) / (high - low)
        )
    std = log_std.exp()
    return std * mean.abs() if calibration.relative else std
