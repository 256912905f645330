"""The Markov random field that the network draws and inference reads.

Energy of a depth map x, in metres:

    ½ Σ_i w_i (x_i − s_i)²  +  ½ Σ_(i←j) w_ij (x_i − x_j − r_ij)²

Parameters of an edge are stored at the pixel that *receives* the message. A leading axis T holds one set
per iteration (*dynamic*), or has length 1 (*shared* by all iterations).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from gbpn.errors import InputError
from gbpn.gaussian import Gaussian
from gbpn.kernels.checks import extent, require_finite, require_shape

__all__ = [
    "DIRECTIONS",
    "MRF",
    "RING",
    "SENDERS",
    "SYMMETRIC_RING",
    "LocalEdges",
    "NonLocalEdges",
    "SymmetricEdges",
    "clear_outside",
    "senders",
    "shift",
]

RING = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
"""Message slots of a pixel: (row, column) of the sender seen from the receiver; 7 − m is opposite to m."""

DIRECTIONS = ("left_right", "top_bottom", "right_left", "bottom_top")
"""The four sweeps, in the order in which an iteration runs them."""

SENDERS = ((0, 3, 5), (0, 1, 2), (2, 4, 7), (5, 6, 7))
"""Slots that each sweep writes, in the order of the edge axis E = 3; E = 1 keeps the middle one."""

SYMMETRIC_RING = ((0, 1), (1, 0), (1, 1), (1, -1))
"""The undirected edges stored at a pixel: to its right, below, below right, below left."""


def senders(direction: int, edges: int) -> tuple[int, ...]:
    """Slots written by sweep `direction` with `edges` ∈ {1, 3} neighbours."""
    slots = SENDERS[direction]
    return slots if edges == 3 else slots[1:2]


@dataclass(frozen=True, kw_only=True)
class LocalEdges:
    """Directed edges from the 3 (8-connected) or 1 (4-connected) neighbours of each sweep."""

    weight: Tensor
    """[B, T, 4, E, H, W] precision w_ij ≥ 0, by sweep direction and sender."""
    difference: Tensor
    """[B, T, 4, E, H, W] expected receiver − sender r_ij, metres."""
    damping: Tensor
    """[B, T, H, W] share of the old message kept, in [0, 1]."""

    def directed(self) -> LocalEdges:
        return self


@dataclass(frozen=True, kw_only=True)
class SymmetricEdges:
    """One weight and one difference per undirected edge: a true Markov random field."""

    weight: Tensor
    """[B, T, U, H, W], U = 4 (8-connected) or 2: edge to the pixel at `SYMMETRIC_RING[u]`."""
    difference: Tensor
    """[B, T, U, H, W] expected (that pixel) − (this pixel), metres."""
    damping: Tensor
    """[B, T, H, W] share of the old message kept, in [0, 1]."""

    def directed(self) -> LocalEdges:
        """Both directions of every edge written out; edges that leave the image get weight 0."""
        edges = 3 if self.weight.shape[2] == 4 else 1
        weights, differences = [], []
        for direction in range(4):
            for slot in senders(direction, edges):
                weight, difference = self._towards(slot)
                weights.append(weight)
                differences.append(difference)
        return LocalEdges(
            weight=torch.unflatten(torch.stack(weights, 2), 2, (4, edges)),
            difference=torch.unflatten(torch.stack(differences, 2), 2, (4, edges)),
            damping=self.damping,
        )

    def _towards(self, slot: int) -> tuple[Tensor, Tensor]:
        """Weight and (receiver − sender) difference [B, T, H, W] of the message that arrives in `slot`."""
        row, column = RING[slot]
        if (row, column) in SYMMETRIC_RING:  # the edge is stored here, at the receiver
            u = SYMMETRIC_RING.index((row, column))
            return clear_outside(self.weight[:, :, u], row, column), -self.difference[:, :, u]
        u = SYMMETRIC_RING.index((-row, -column))  # stored at the sender
        weight = shift(self.weight[:, :, u], row, column)
        return weight, shift(self.difference[:, :, u], row, column)


@dataclass(frozen=True, kw_only=True)
class NonLocalEdges:
    """K learned edges per pixel from senders at float offsets, read by bilinear interpolation."""

    weight: Tensor
    """[B, T, K, H, W] precision."""
    difference: Tensor
    """[B, T, K, H, W] expected receiver − sender, metres."""
    offset: Tensor
    """[B, T, K, 2, H, W] (rows, columns) from the receiver to the sender, pixels."""
    damping: Tensor
    """[B, T, H, W] share of the old message sum kept, in [0, 1]."""


_Edges = TypeVar("_Edges", LocalEdges, SymmetricEdges, "LocalEdges | SymmetricEdges", NonLocalEdges)


@dataclass(frozen=True, kw_only=True)
class MRF:
    """Measurements and edges. `check` is called by `gbpn.infer`; build it as you like before."""

    depth: Tensor
    """[B, 1, H, W] measured depth s; ignored where `weight` is 0."""
    weight: Tensor
    """[B, 1, H, W] precision of the measurement; 0 where nothing was measured."""
    local: LocalEdges | SymmetricEdges
    nonlocal_: NonLocalEdges | None = None

    @property
    def unary(self) -> Gaussian:
        """What the measurements alone say, [B, 1, H, W]."""
        return Gaussian.observing(self.depth, self.weight)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(B, H, W)."""
        batch, _, height, width = self.weight.shape
        return batch, height, width

    @property
    def iterations(self) -> int | None:
        """Number of iterations the dynamic parameters are made for; None if all are shared."""
        lengths = {t.shape[1] for t in self._parameters().values()} - {1}
        return lengths.pop() if lengths else None

    def measured(self, depth: Tensor, weight: Tensor) -> MRF:
        """The same edges with other measurements."""
        return replace(self, depth=depth, weight=weight)

    def directed(self) -> MRF:
        """The same field with directed local edges."""
        return replace(self, local=self.local.directed())

    def at_last_iteration(self) -> MRF:
        """Parameters that differ by iteration, held at their last ones: a warm run goes on from there."""
        far = self.nonlocal_
        return replace(
            self,
            local=_last_iteration(self.local),
            nonlocal_=None if far is None else _last_iteration(far),
        )

    def check(self) -> None:
        """Raise an error that names what is wrong with shapes, dtypes, devices or values."""
        require_shape("weight", self.weight, (None, 1, None, None), "add the channel axis, weight[:, None]")
        batch, height, width = self.shape
        if height == 0 or width == 0 or batch == 0:
            raise InputError(f"an MRF needs at least one image and one pixel; got {list(self.weight.shape)}")
        require_shape("depth", self.depth, (batch, 1, height, width))
        kinds = 4 if isinstance(self.local, LocalEdges) else None
        inner = (kinds, self.local.weight.shape[3]) if kinds else (self.local.weight.shape[2],)
        edges = inner[-1]
        if edges not in ((1, 3) if kinds else (2, 4)):
            wanted = "1 or 3 senders per sweep" if kinds else "2 or 4 undirected edges per pixel"
            raise InputError(f"local.weight must have {wanted}; got {edges}")
        require_shape("local.weight", self.local.weight, (batch, None, *inner, height, width))
        require_shape("local.difference", self.local.difference, (batch, None, *inner, height, width))
        require_shape("local.damping", self.local.damping, (batch, None, height, width))
        if (far := self.nonlocal_) is not None:
            k = far.weight.shape[2]
            require_shape("nonlocal_.weight", far.weight, (batch, None, k, height, width))
            require_shape("nonlocal_.difference", far.difference, (batch, None, k, height, width))
            require_shape("nonlocal_.offset", far.offset, (batch, None, k, 2, height, width))
            require_shape("nonlocal_.damping", far.damping, (batch, None, height, width))
        parameters = {"depth": self.depth, "weight": self.weight, **self._parameters()}
        self._check_kinds(parameters)
        self._check_values(parameters)

    def _parameters(self) -> dict[str, Tensor]:
        out = {f"local.{n}": getattr(self.local, n) for n in ("weight", "difference", "damping")}
        if self.nonlocal_ is not None:
            names = ("weight", "difference", "offset", "damping")
            out |= {f"nonlocal_.{n}": getattr(self.nonlocal_, n) for n in names}
        return out

    def _check_kinds(self, parameters: dict[str, Tensor]) -> None:
        like = self.weight
        if like.dtype not in (torch.float32, torch.float64):
            raise InputError(f"an MRF must be float32 or float64; got {like.dtype}: convert with .float()")
        for name, tensor in parameters.items():
            if tensor.dtype != like.dtype or tensor.device != like.device:
                raise InputError(
                    f"{name} must be {like.dtype} on {like.device} like weight; "
                    f"got {tensor.dtype} on {tensor.device}"
                )
        lengths = {name: t.shape[1] for name, t in self._parameters().items() if t.shape[1] != 1}
        if len(set(lengths.values())) > 1:
            raise InputError(f"dynamic parameters must share one number of iterations; got {lengths}")

    def _check_values(self, parameters: dict[str, Tensor]) -> None:
        require_finite(**parameters)
        for name, tensor in parameters.items():
            if not name.endswith(("weight", "damping")):
                continue
            low, high, _ = extent(tensor)
            if low < 0 and name.endswith("weight"):
                raise InputError(f"{name} must not be negative; got a minimum of {low:g}")
            if name.endswith("damping") and (low < 0 or high > 1):
                raise InputError(f"{name} must lie in [0, 1]; got {low:g} to {high:g}")


def _last_iteration(edges: _Edges) -> _Edges:
    """Each parameter [B, T, …] as [B, 1, …]."""
    return replace(edges, **{name: tensor[:, -1:] for name, tensor in vars(edges).items()})


def shift(maps: Tensor, row: int, column: int) -> Tensor:
    """maps[..., y + row, x + column], zero where that is outside; row, column ∈ {−1, 0, 1}."""
    height, width = maps.shape[-2:]
    padded = torch.nn.functional.pad(maps, (1, 1, 1, 1))
    return padded[..., 1 + row : 1 + row + height, 1 + column : 1 + column + width]


def clear_outside(maps: Tensor, row: int, column: int) -> Tensor:
    """`maps` with zeros at pixels whose neighbour at (row, column) is outside the image."""
    inside = shift(torch.ones_like(maps[(0,) * (maps.dim() - 2)]), row, column)
    return maps * inside
