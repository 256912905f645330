"""What a stage of the network has drawn: a field that waits for measurements."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from gbpn.config import ModelConfig, Start
from gbpn.kernels.checks import values_are_known
from gbpn.mrf import MRF, RING, SYMMETRIC_RING, LocalEdges, NonLocalEdges, SymmetricEdges, senders, shift
from gbpn.network import fused_maps
from gbpn.network.density import DensityResponse, coarse_response, enlarged, redamped
from gbpn.network.depth_prior import far_steps, with_far_steps, with_local_steps
from gbpn.network.iteration_corrections import IterationCorrections, corrected_far, corrected_local

__all__ = ["ChannelLayout", "FieldParameters", "HeadMaps"]

_SMALLEST_WEIGHT = 1e-10
"""Added to every precision after the softplus, as released: no edge is ever quite cut."""
_UNLIKE = 0.13
"""Distance of normalised colours at which an edge of contrast 1 has lost a factor e (RGB in [0, 1]: 0.03)."""
_FAINTEST = 0.01
"""What an edge of contrast 1 keeps across any colour difference."""


class HeadMaps(NamedTuple):
    """Raw outputs of the heads, [B, channels, H, W] each, in the order of `ChannelLayout`."""

    weight: Tensor
    difference: Tensor
    damping: Tensor
    offset: Tensor | None = None
    contrast: Tensor | None = None
    prior: Tensor | None = None

    def at_least_single(self) -> HeadMaps:
        """Inference needs float32 or float64, also where the network runs in half precision."""
        if self.weight.dtype not in (torch.float16, torch.bfloat16):
            return self
        return HeadMaps(*(None if maps is None else maps.float() for maps in self))  # type: ignore[arg-type]

    def by_name(self) -> dict[str, Tensor]:
        """The maps there are, in the order of `ChannelLayout.channels`."""
        return {name: maps for name, maps in self._asdict().items() if maps is not None}


@dataclass(frozen=True, kw_only=True)
class FieldParameters:
    """Edges of the field, how far a measurement is trusted, and what the second stage attends to."""

    unary: Tensor
    """[B, 1, H, W] precision that a measurement would have."""
    residual: Tensor
    """[B, 1, H, W] correction of the confidence logit."""
    local: LocalEdges | SymmetricEdges
    nonlocal_: NonLocalEdges | None
    features: tuple[Tensor, ...] = ()
    """What a second stage attends to: decoder features D1 … D5, or the encoder's."""
    maps: HeadMaps | None = None
    """Raw head outputs."""
    prior: Tensor | None = None
    """[B, 1, H, W] depth-like map in log units, of which only the steps count; None: differences are free."""
    responses: tuple[DensityResponse, ...] = ()
    """What the density of the measurements changes; empty: nothing."""

    def field(
        self, depth: Tensor, measured: Tensor, noise: Tensor | None = None, trust: Tensor | None = None
    ) -> MRF:
        """The field with measurements [B, 1, H, W], which count where `measured` holds.

        noise  their variance beyond what the network expects, in the field's unit squared
        trust  factor of the precision that the network gives them
        """
        if self.responses:
            return self.responding(measured).field(depth, measured, noise, trust)
        unary = self.unary if trust is None else self.unary * trust
        unary = unary if noise is None else unary / (1 + unary * noise)
        return MRF(
            depth=depth,
            weight=torch.where(measured, unary, torch.zeros_like(unary)),
            local=self.local,
            nonlocal_=self.nonlocal_,
        )

    def responding(self, measured: Tensor) -> FieldParameters:
        """The parameters as the density of these measurements wants them; nothing is left to respond."""
        if not self.responses:
            return self
        coarse = coarse_response(self.responses, measured)
        local, far = self.local, self.nonlocal_
        if (fused := fused_maps.responding(self.unary, local, far, self.prior, coarse)) is not None:
            unary, local, far = fused
            return replace(self, unary=unary, local=local, nonlocal_=far, responses=(), prior=None)
        change = enlarged(coarse, (measured.shape[-2], measured.shape[-1]))
        by_edge = torch.unflatten(change.local, 1, (1,) * (local.weight.dim() - 3))  # [B, 1, (1,) 1, H, W]
        damping = redamped(local.damping, change.damping)
        local = replace(local, weight=local.weight * by_edge, damping=damping)
        if far is not None:
            far = replace(far, weight=far.weight * change.far[:, None])
        if self.prior is not None:
            local = with_local_steps(local, self.prior, change.share)
            far = None if far is None else with_far_steps(far, self._far_steps(), change.share)
        unary = self.unary * change.unary
        return replace(self, unary=unary, local=local, nonlocal_=far, responses=(), prior=None)

    def _far_steps(self) -> Tensor:
        """Of the depth-like map along the learned edges; made once where nothing is learned from them."""
        # a tracer cannot enter the lock of a cached property
        once = values_are_known() and not torch.is_grad_enabled()
        return self._kept_far_steps if once else self._made_far_steps()

    @cached_property
    def _kept_far_steps(self) -> Tensor:
        return self._made_far_steps()

    def _made_far_steps(self) -> Tensor:
        assert self.prior is not None
        assert self.nonlocal_ is not None
        return far_steps(self.prior, self.nonlocal_.offset)

    def prepared(self) -> FieldParameters:
        """With both directions of every edge written out once, where no measurement changes them later."""
        return self if self.responses else replace(self, local=self.local.directed())

    def corrected(self, part: IterationCorrections, features: Tensor) -> FieldParameters:
        """With what `part` says, from `features` [B, C, H/4, W/4], that each iteration changes."""
        coarse = part.coarse(features)
        fused = fused_maps.corrected(self.local, self.nonlocal_, coarse, part.iterations)
        if fused is not None:
            return replace(self, local=fused[0], nonlocal_=fused[1])
        corrections = part.enlarged(coarse)
        far = None if self.nonlocal_ is None else corrected_far(self.nonlocal_, corrections)
        return replace(self, local=corrected_local(self.local, corrections), nonlocal_=far)

    def with_features(self, features: tuple[Tensor, ...]) -> FieldParameters:
        return replace(self, features=features)


@dataclass(frozen=True, kw_only=True)
class ChannelLayout:
    """Which channel of which head means what. For directed 8-neighbour fields this is the released order."""

    sets: int
    """Sets of parameters: one per iteration if dynamic, else one for all."""
    edges: str
    neighbours: int
    nonlocal_edges: int
    unit: Start | None = None
    """What a precision or a difference of 1, as the heads say it, stands for; None: for 1."""
    contrast: float = 0.0
    """How strongly local edges weaken with the colour difference of their ends; 0: there is no such head."""
    prior: bool = False
    """Whether there is a head for the depth-like map."""

    @classmethod
    def of(cls, config: ModelConfig, stage: int) -> ChannelLayout:
        return cls(
            sets=config.iterations[stage] if config.dynamic else 1,
            edges=config.edges,
            neighbours=config.neighbours,
            nonlocal_edges=config.nonlocal_edges,
            unit=config.start if config.relative_heads else None,
            contrast=config.contrast,
            prior=config.prior,
        )

    @property
    def senders(self) -> int:
        """Senders per sweep of a directed field."""
        return 3 if self.neighbours == 8 else 1

    @property
    def local_edges(self) -> int:
        """Local channels of one set."""
        return 4 * self.senders if self.edges == "directed" else self.neighbours // 2

    @property
    def channels(self) -> dict[str, int]:
        """Channels of each head; heads without channels are left out."""
        pairwise = self.sets * (self.local_edges + self.nonlocal_edges)
        channels = {
            "weight": 2 + pairwise,
            "difference": pairwise,
            "damping": self.sets * (2 if self.nonlocal_edges else 1),
        }
        if self.nonlocal_edges:
            channels["offset"] = self.sets * self.nonlocal_edges * 2
        if self.contrast:
            channels["contrast"] = self.local_edges
        if self.prior:
            channels["prior"] = 1
        return channels

    @property
    def labels(self) -> tuple[str, ...]:
        """What each channel means, all heads one after the other."""
        edges = [f"local {n}" for n in range(self.local_edges)]
        edges += [f"learned {n}" for n in range(self.nonlocal_edges)]
        pairwise = [f"{edge}, set {t}" for t in range(self.sets) for edge in edges]
        dampings = ("local", "learned") if self.nonlocal_edges else ("local",)
        meanings = {
            "weight": ["unary", "residual", *pairwise],
            "difference": pairwise,
            "damping": [f"{kind}, set {t}" for t in range(self.sets) for kind in dampings],
            "offset": [
                f"{axis} {n}, set {t}"
                for t in range(self.sets)
                for n in range(self.nonlocal_edges)
                for axis in ("row", "column")
            ],
            "contrast": edges[: self.local_edges],
            "prior": ["prior"],
        }
        return tuple(f"{name}: {meaning}" for name in self.channels for meaning in meanings[name])

    @property
    def neighbour_of(self) -> tuple[tuple[int, int], ...]:
        """(row, column) of the pixel at the other end, for each local channel of one set."""
        if self.edges == "symmetric":
            return SYMMETRIC_RING[: self.local_edges]
        return tuple(RING[slot] for direction in range(4) for slot in senders(direction, self.senders))

    def read(self, maps: HeadMaps, image: Tensor | None = None) -> FieldParameters:
        """Raw maps as a field: softplus for precisions, sigmoid for damping; half becomes single.

        `image`: the normalised image [B, 3, H, W], which a layout with `contrast` needs.
        """
        maps = maps.at_least_single()
        drawn = self._read_at_once(maps, image) or self._read(maps, image)
        weight = torch.unflatten(drawn.precision[:, 2:], 1, (self.sets, -1))  # [B, T, local + nonlocal, H, W]
        difference = torch.unflatten(drawn.difference, 1, (self.sets, -1))
        damping = torch.unflatten(drawn.damping, 1, (self.sets, -1))
        far = None
        if maps.offset is not None:
            far = NonLocalEdges(
                weight=weight[:, :, self.local_edges :],
                difference=difference[:, :, self.local_edges :],
                offset=torch.unflatten(self._places(maps.offset), 1, (self.sets, self.nonlocal_edges, 2)),
                damping=damping[:, :, 1],
            )
        near = weight[:, :, : self.local_edges], difference[:, :, : self.local_edges]
        local: LocalEdges | SymmetricEdges
        if self.edges == "directed":
            by_sweep = [torch.unflatten(maps_, 2, (4, self.senders)) for maps_ in near]
            local = LocalEdges(weight=by_sweep[0], difference=by_sweep[1], damping=damping[:, :, 0])
        else:
            local = SymmetricEdges(weight=near[0], difference=near[1], damping=damping[:, :, 0])
        return FieldParameters(
            unary=drawn.precision[:, :1],
            residual=maps.weight[:, 1:2],
            local=local,
            nonlocal_=far,
            maps=maps,
            prior=maps.prior,
        )

    def _places(self, offset: Tensor) -> Tensor:
        """In pixels."""
        return offset if self.unit is None or self.unit.reach == 1 else offset * self.unit.reach

    def _read(self, maps: HeadMaps, image: Tensor | None) -> fused_maps.Read:
        precision = functional.softplus(maps.weight).add_(_SMALLEST_WEIGHT)  # in place: the largest maps
        difference = maps.difference
        if self.unit is not None:
            precision.mul_(self._units(precision).view(-1, 1, 1))
            difference = difference * self.unit.difference
        if maps.contrast is not None:
            assert image is not None
            kept = self._kept(maps.contrast, image)[:, None]  # [B, 1, local edges, H, W]
            weight = torch.unflatten(precision[:, 2:], 1, (self.sets, -1))
            near = weight[:, :, : self.local_edges] * kept
            pairwise = torch.cat((near, weight[:, :, self.local_edges :]), dim=2).flatten(1, 2)
            precision = torch.cat((precision[:, :2], pairwise), dim=1)
        return fused_maps.Read(precision, difference, maps.damping.sigmoid())

    def _read_at_once(self, maps: HeadMaps, image: Tensor | None) -> fused_maps.Read | None:
        """The same by the compiled form, where there is one."""
        if self.edges == "directed" or self.sets > 1:
            return None
        return fused_maps.read(
            maps.weight,
            maps.difference,
            maps.damping,
            local_edges=self.local_edges,
            units=self._units(maps.weight),
            difference_unit=1.0 if self.unit is None else self.unit.difference,
            least=_SMALLEST_WEIGHT,
            contrast=maps.contrast,
            image=None if maps.contrast is None or image is None else image.to(maps.weight.dtype),
            strength=self.contrast,
            faintest=_FAINTEST,
            unlike=_UNLIKE,
        )

    def _units(self, like: Tensor) -> Tensor:
        """What a precision of 1, as the heads say it, stands for, by channel of the weights."""
        if self.unit is None:
            return like.new_ones(like.shape[1])
        return like.new_tensor([self.unit.unary, 1.0, *self._pairwise(self.unit)])

    def _kept(self, maps: Tensor, image: Tensor) -> Tensor:
        """[B, local edges, H, W]: what the colour difference leaves of each edge's precision."""
        with torch.no_grad():
            image = image.to(maps.dtype)
            lost = torch.stack([_contrast(image, *neighbour) for neighbour in self.neighbour_of], dim=1)
        return torch.exp(-self.contrast * functional.softplus(maps) * lost)

    def biases(self, start: Start) -> dict[str, Tensor]:
        """Last-layer biases with which `read` gives what `start` says."""
        precisions = [start.unary, *self._pairwise(start)]
        if self.unit is not None:
            units = [self.unit.unary, *self._pairwise(self.unit)]
            precisions = [wanted / unit for wanted, unit in zip(precisions, units, strict=True)]
        unary, *pairwise = (_inverse_softplus(w) for w in precisions)
        channels = self.channels
        damping = math.log(start.damping / (1 - start.damping))
        biases = {
            "weight": torch.tensor([unary, start.residual, *pairwise]),
            "difference": torch.zeros(channels["difference"]),
            "damping": torch.full((channels["damping"],), damping),
        }
        if "offset" in channels:
            angles = torch.arange(self.nonlocal_edges) * (2 * math.pi / self.nonlocal_edges)
            ring = torch.stack((angles.sin(), angles.cos()), dim=1) * start.offset  # (row, column) each
            ring = ring if self.unit is None else ring / self.unit.reach
            biases["offset"] = ring.flatten().repeat(self.sets)
        if "contrast" in channels:
            biases["contrast"] = torch.full((channels["contrast"],), _inverse_softplus(1.0))
        if "prior" in channels:
            biases["prior"] = torch.zeros(1)
        return biases

    def _pairwise(self, start: Start) -> list[float]:
        """Precisions of the pairwise channels, in their order."""
        axial, diagonal = start.weight, start.diagonal
        if self.edges == "directed":
            local = [diagonal, axial, diagonal] * 4 if self.senders == 3 else [axial] * 4
        else:
            local = [axial, axial, diagonal, diagonal][: self.neighbours // 2]
        return (local + [start.nonlocal_] * self.nonlocal_edges) * self.sets


def _contrast(image: Tensor, row: int, column: int) -> Tensor:
    """[B, H, W]: how far apart the colours of a pixel and its neighbour are, from 0 to −log `_FAINTEST`."""
    distance = (image - shift(image, row, column)).square().sum(dim=1).sqrt()
    return -torch.log(_FAINTEST + (1 - _FAINTEST) * torch.exp(-distance / _UNLIKE))


def _inverse_softplus(value: float) -> float:
    """The x with softplus(x) = value; 0 for softplus(0), exactly."""
    inverse = value + math.log(-math.expm1(-value))  # no overflow for large values
    return round(inverse, 6) + 0.0  # and no minus zero
