"""Algorithm 1 written out, message by message, with Eqs. 6 to 8 as they stand: the judge of `Scheme`.

Python loops over pixels and edges in float64, 0-dimensional tensors throughout so that autograd follows.
Nothing is shared with `gbpn.gbp` but the field's own layout.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gbpn import MRF
from gbpn.gbp import Scheme

SETS = {
    "left_right": ((-1, -1), (0, -1), (1, -1)),
    "top_bottom": ((-1, -1), (-1, 0), (-1, 1)),
    "right_left": ((-1, 1), (0, 1), (1, 1)),
    "bottom_top": ((1, -1), (1, 0), (1, 1)),
}
"""Senders seen from the receiver, in the order of the field's edge axis."""

Pixel = tuple[int, int]


class LiteralLoop:
    """Messages by edge: (receiver, sender) along the grid, (receiver, number) along learned edges."""

    def __init__(self, mrf: MRF, scheme: Scheme) -> None:
        mrf = mrf.directed()
        self.mrf, self.scheme = mrf, scheme
        _, self.height, self.width = mrf.shape
        self.pixels = [(y, x) for y in range(self.height) for x in range(self.width)]
        self.learned = 0 if mrf.nonlocal_ is None else mrf.nonlocal_.weight.shape[2]
        zero = torch.zeros((), dtype=torch.float64)
        self.near: dict[tuple[Pixel, Pixel], tuple[Tensor, Tensor]] = {}
        for i in self.pixels:
            for y in (-1, 0, 1):
                for x in (-1, 0, 1):
                    j = (i[0] + y, i[1] + x)
                    if j != i and j in self.pixels:
                        self.near[i, j] = (zero, zero)
        self.far = {(i, k): (zero, zero) for i in self.pixels for k in range(self.learned)}

    def unary(self, i: Pixel) -> tuple[Tensor, Tensor]:
        weight = self.mrf.weight[0, 0][i]
        return weight * self.mrf.depth[0, 0][i], weight

    def belief(self, i: Pixel, without: Pixel | None = None) -> tuple[Tensor, Tensor]:
        """Eq. 6, without the message that `without` sent along the grid."""
        eta, precision = self.unary(i)
        for (receiver, sender), message in self.near.items():
            if receiver == i and sender != without:
                eta, precision = eta + message[0], precision + message[1]
        for k in range(self.learned):
            eta, precision = eta + self.far[i, k][0], precision + self.far[i, k][1]
        return eta, precision

    def run(self, iterations: int, steps: int) -> None:
        for t in range(iterations):
            for number, name in enumerate(SETS):
                self.sweep(t, number, name)
            for _ in range(steps):
                self.parallel(t)

    def sweep(self, t: int, number: int, name: str) -> None:
        edges, sets = self.mrf.local, SETS[name]
        t = t if edges.weight.shape[1] > 1 else 0
        order = sorted(self.pixels, key=lambda i: i[1] if number % 2 == 0 else i[0], reverse=number > 1)
        for i in order:
            for e, (y, x) in enumerate(sets):
                j = (i[0] + y, i[1] + x)
                if j not in self.pixels:
                    continue
                if self.scheme.edge_sets == "disjoint" and number % 2 and e != 1:
                    continue
                e = e if edges.weight.shape[3] == 3 else 0
                if edges.weight.shape[3] == 1 and (y and x):
                    continue
                weight, expected = edges.weight[0, t, number, e][i], edges.difference[0, t, number, e][i]
                beta, old = edges.damping[0, t][i], self.near[i, j]
                eta, precision = self.belief(j, without=i)
                if float(precision.detach()) <= 1e-13:  # what is left after taking out the only message
                    if self.scheme.damped == "always":
                        self.near[i, j] = (beta * old[0], beta * old[1])
                    continue
                new = 1 / (1 / precision + 1 / weight)  # Eq. 7
                message = (new * (eta / precision + expected), new)
                if self.scheme.damped == "always" or float(old[1].detach()) > 0:  # Eq. 8
                    message = tuple(beta * o + (1 - beta) * m for o, m in zip(old, message, strict=True))
                self.near[i, j] = message

    def parallel(self, t: int) -> None:
        if (edges := self.mrf.nonlocal_) is None:
            return
        t = t if edges.weight.shape[1] > 1 else 0
        beliefs = {i: self.belief(i) for i in self.pixels}
        after = {}
        for i in self.pixels:
            for k in range(self.learned):
                offset = edges.offset[0, t, k][(slice(None), *i)]
                eta, precision = self.sampled(i, offset, t, beliefs)
                beta, old = edges.damping[0, t][i], self.far[i, k]
                message = (torch.zeros_like(eta), torch.zeros_like(eta))
                if float(precision.detach()) > 1e-13:
                    new = 1 / (1 / precision + 1 / edges.weight[0, t, k][i])
                    message = (new * (eta / precision + edges.difference[0, t, k][i]), new)
                after[i, k] = tuple(beta * o + (1 - beta) * m for o, m in zip(old, message, strict=True))
        self.far = after

    def sampled(
        self, i: Pixel, offset: Tensor, t: int, beliefs: dict[Pixel, tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        eta = precision = torch.zeros((), dtype=torch.float64)
        for c, share in self.corners(i, offset).items():
            its_eta, its_precision = beliefs[c]
            if self.scheme.far_messages == "by-edge":  # Eq. 5: all messages but what came from i
                for k in range(self.learned):
                    other = self.mrf.nonlocal_.offset[0, t, k][(slice(None), *c)]
                    own = self.corners(c, other).get(i, torch.zeros((), dtype=torch.float64))
                    its_eta = its_eta - own * self.far[c, k][0]
                    its_precision = its_precision - own * self.far[c, k][1]
            eta, precision = eta + share * its_eta, precision + share * its_precision
        return eta, precision

    def corners(self, i: Pixel, offset: Tensor) -> dict[Pixel, Tensor]:
        """The pixels around a place, inside the image, and their bilinear shares."""
        y, x = i[0] + offset[0], i[1] + offset[1]
        top, left = math.floor(float(y.detach())), math.floor(float(x.detach()))
        around = [(top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)]
        return {c: (1 - (y - c[0]).abs()) * (1 - (x - c[1]).abs()) for c in around if c in self.pixels}

    def answer(self) -> Tensor:
        """(information, precision) of every pixel, [2, H, W]."""
        beliefs = [torch.stack(self.belief(i)) for i in self.pixels]
        return torch.stack(beliefs, 1).view(2, self.height, self.width)
