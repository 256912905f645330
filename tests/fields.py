"""Random and hand-made fields for the tests of inference."""

from __future__ import annotations

import torch
from torch import Tensor

from gbpn import MRF, LocalEdges, NonLocalEdges, SymmetricEdges
from gbpn.mrf import SYMMETRIC_RING


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def symmetric_field(
    height: int,
    width: int,
    *,
    batch: int = 1,
    kinds: int = 4,
    measured: float = 0.3,
    damping: float = 0.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> MRF:
    """Random weights in (0.2, 2.2), differences of ±0.3 m, a share `measured` (never none) at 1–6 m."""
    g = generator(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=g, dtype=torch.float64)

    mask = uniform(batch, 1, height, width) < measured
    mask[:, :, height // 2, width // 3] = True
    return MRF(
        depth=((1 + 5 * uniform(batch, 1, height, width)) * mask).to(dtype),
        weight=((0.2 + uniform(batch, 1, height, width)) * mask).to(dtype),
        local=SymmetricEdges(
            weight=(0.2 + 2 * uniform(batch, 1, kinds, height, width)).to(dtype),
            difference=(0.6 * uniform(batch, 1, kinds, height, width) - 0.3).to(dtype),
            damping=torch.full((batch, 1, height, width), damping, dtype=dtype),
        ),
    )


def directed_field(
    height: int,
    width: int,
    *,
    batch: int = 1,
    iterations: int = 2,
    nonlocal_edges: int = 2,
    measured: float = 0.3,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> MRF:
    """Random directed, dynamic, damped field with learned edges, as a network draws it."""
    g = generator(seed)
    grid, time = (height, width), (batch, iterations)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return (low + (high - low) * torch.rand(*shape, generator=g, dtype=torch.float64)).to(dtype)

    mask = uniform(0, 1, batch, 1, *grid) < measured
    mask[:, :, height // 2, width // 3] = True
    far = NonLocalEdges(
        weight=uniform(0.1, 1, *time, nonlocal_edges, *grid),
        difference=uniform(-0.2, 0.2, *time, nonlocal_edges, *grid),
        offset=uniform(-3, 3, *time, nonlocal_edges, 2, *grid),
        damping=uniform(0, 0.5, *time, *grid),
    )
    return MRF(
        depth=uniform(1, 6, batch, 1, *grid) * mask,
        weight=uniform(0.2, 1.2, batch, 1, *grid) * mask,
        local=LocalEdges(
            weight=uniform(0.2, 2.2, *time, 4, 3, *grid),
            difference=uniform(-0.3, 0.3, *time, 4, 3, *grid),
            damping=uniform(0, 0.5, *time, *grid),
        ),
        nonlocal_=far if nonlocal_edges else None,
    )


def dense_system(mrf: MRF, image: int = 0) -> tuple[Tensor, Tensor]:
    """(A [N, N], b [N]) of a symmetric field, written down edge by edge: slow and plain."""
    assert isinstance(mrf.local, SymmetricEdges)
    _, height, width = mrf.shape
    s, w = mrf.depth[image, 0].double(), mrf.weight[image, 0].double()
    edge, r = mrf.local.weight[image, 0].double(), mrf.local.difference[image, 0].double()
    matrix, right = torch.diag(w.flatten()), (w * s).flatten()
    for y in range(height):
        for x in range(width):
            for u, (row, column) in enumerate(SYMMETRIC_RING[: edge.shape[0]]):
                if not (y + row < height and 0 <= x + column < width):
                    continue
                tail, head = y * width + x, (y + row) * width + x + column
                matrix[tail, tail] += edge[u, y, x]
                matrix[head, head] += edge[u, y, x]
                matrix[tail, head] -= edge[u, y, x]
                matrix[head, tail] -= edge[u, y, x]
                right[head] += edge[u, y, x] * r[u, y, x]
                right[tail] -= edge[u, y, x] * r[u, y, x]
    return matrix, right


def piecewise_field(
    height: int,
    width: int,
    *,
    measured: float = 0.01,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> tuple[MRF, Tensor]:
    """A made-up room of six tilted planes with hand-made weights, and its true depth [1, 1, H, W] in metres.

    Inside a plane edges are strong (50 /m²) and know the slope up to 5 mm; across its border they are weak
    (0.05 /m²) and expect no step. Measurements: 1 cm of noise, weight 20 /m².
    """
    g = generator(seed)
    y, x = torch.meshgrid(torch.arange(float(height)), torch.arange(float(width)), indexing="ij")
    centres = torch.rand(6, 2, generator=g) * torch.tensor([height, width])
    label = ((y - centres[:, 0, None, None]) ** 2 + (x - centres[:, 1, None, None]) ** 2).argmin(0)
    planes = torch.rand(6, 3, generator=g) * torch.tensor([4.0, 2.0, 2.0]) + torch.tensor([2.0, -1.0, -1.0])
    p = planes[label]  # [H, W, 3]
    truth = p[..., 0] + p[..., 1] * y / height + p[..., 2] * x / width

    weight, difference = torch.zeros(4, height, width), torch.zeros(4, height, width)
    for u, (row, column) in enumerate(SYMMETRIC_RING):
        here = (slice(0, height - row), slice(max(0, -column), width - max(0, column)))
        there = (slice(row, height), slice(max(0, column), width - max(0, -column)))
        same = label[here] == label[there]
        noise = 0.005 * torch.randn(same.shape, generator=g)
        weight[u][here] = torch.where(same, 50.0, 0.05)
        difference[u][here] = torch.where(same, truth[there] - truth[here] + noise, torch.zeros(()))
    mask = torch.rand(height, width, generator=g) < measured
    mask[height // 2, width // 2] = True
    depth = (truth + 0.01 * torch.randn(height, width, generator=g)) * mask
    mrf = MRF(
        depth=depth[None, None].to(dtype),
        weight=20.0 * mask[None, None].to(dtype),
        local=SymmetricEdges(
            weight=weight[None, None].to(dtype),
            difference=difference[None, None].to(dtype),
            damping=torch.zeros(1, 1, height, width, dtype=dtype),
        ),
    )
    return mrf, truth[None, None].to(dtype)
