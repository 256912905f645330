"""The linear system A·x = b whose solution is the most probable depth map of one image.

    A_ii = w_i + Σ_e∋i w_e      A_ij = −w_ij      b_i = w_i s_i + Σ_e∋i ±w_e r_e

An undirected edge e runs from its *tail*, the pixel it is stored at, to its *head*, `SYMMETRIC_RING` away;
r_e is the expected head − tail. All arrays here are NumPy, float64, with pixels numbered row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from gbpn.mrf import SYMMETRIC_RING

__all__ = ["System", "endpoints"]


@dataclass(frozen=True, kw_only=True)
class System:
    """The precision matrix of one image, and which pixels any measurement can reach."""

    shape: tuple[int, int]
    """(H, W)."""
    unary: np.ndarray
    """[N] precision of the measurements."""
    edge: np.ndarray
    """[U·H·W] weight of the undirected edges, 0 for those that leave the image."""
    matrix: sparse.csr_matrix
    """[N, N] A; an unreachable pixel has the row of the identity, so that A is never singular."""
    component: np.ndarray
    """[N] number of the connected component, over edges of weight above 0."""
    observed: np.ndarray
    """[N] whether the component holds a measurement."""

    @classmethod
    def of(cls, unary: np.ndarray, weight: np.ndarray) -> System:
        """From measurement precisions [H, W] and undirected edge weights [U, H, W]."""
        count = unary.size
        tail, head, inside = endpoints(weight.shape[0], *unary.shape)
        edge = np.where(inside, weight.ravel(), 0.0)
        live = edge > 0
        graph = sparse.coo_matrix((edge[live], (tail[live], head[live])), shape=(count, count))
        components, component = connected_components(graph, directed=False)
        evidence = np.bincount(component, weights=unary.ravel(), minlength=components)
        observed = evidence[component] > 0

        edge = np.where(observed[tail], edge, 0.0)
        live = edge > 0
        t, h, w = tail[live], head[live], edge[live]
        diagonal = np.where(observed, unary.ravel(), 1.0)
        diagonal += np.bincount(t, weights=w, minlength=count) + np.bincount(h, weights=w, minlength=count)
        pixels = np.arange(count)
        rows, columns = np.concatenate([t, h, pixels]), np.concatenate([h, t, pixels])
        values = np.concatenate([-w, -w, diagonal])
        return cls(
            shape=(unary.shape[0], unary.shape[1]),
            unary=unary.ravel(),
            edge=edge,
            matrix=sparse.csr_matrix((values, (rows, columns)), shape=(count, count)),
            component=component,
            observed=observed,
        )

    def endpoints(self) -> tuple[np.ndarray, np.ndarray]:
        """Tail and head pixel of every entry of `edge`; those that leave the image point to pixel 0."""
        tail, head, _ = endpoints(self.edge.size // self.unary.size, *self.shape)
        return tail, head

    def right_side(self, depth: np.ndarray, difference: np.ndarray) -> np.ndarray:
        """b [N], from measured depths [N] and expected differences [U·H·W]."""
        tail, head = self.endpoints()
        push = self.edge * difference
        count = self.unary.size
        right: np.ndarray = (
            self.unary * depth
            + np.bincount(head, weights=push, minlength=count)
            - np.bincount(tail, weights=push, minlength=count)
        )
        return right

    def level(self, values: np.ndarray) -> np.ndarray:
        """[N] mean of `values` in each component, weighted by the measurements; 0 where there are none."""
        weight = np.bincount(self.component, weights=self.unary)
        total = np.bincount(self.component, weights=self.unary * values)
        mean: np.ndarray = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
        by_pixel: np.ndarray = mean[self.component]
        return by_pixel


@lru_cache(maxsize=8)
def endpoints(kinds: int, height: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tail, head and whether the edge stays inside the image, each [U·H·W] for U = `kinds` edges a pixel."""
    y, x = np.mgrid[:height, :width]
    tails, heads, insides = [], [], []
    for row, column in SYMMETRIC_RING[:kinds]:
        inside = (y + row < height) & (x + column >= 0) & (x + column < width)
        tails.append(np.where(inside, y * width + x, 0).ravel())
        heads.append(np.where(inside, (y + row) * width + x + column, 0).ravel())
        insides.append(inside.ravel())
    return np.concatenate(tails), np.concatenate(heads), np.concatenate(insides)
