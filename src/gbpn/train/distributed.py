"""What makes n processes equal to one with n times the batch."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce

__all__ = ["average", "synchronise_batch_norm"]


class _CrossProcessBatchNorm2d(nn.BatchNorm2d):
    """Batch norm over the batches of all processes, on any device (torch's own needs a GPU)."""

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return super().forward(input)
        count = input.new_tensor([input.numel() / input.shape[1]])
        packed = _summed(torch.cat([input.sum((0, 2, 3)), count]))
        total, mean = packed[-1].detach(), packed[:-1] / packed[-1].detach()
        centred = input - mean[:, None, None]
        variance = _summed(centred.square().sum((0, 2, 3))) / total
        self._track(mean.detach(), variance.detach() * total / (total - 1))
        scale = (variance + self.eps).rsqrt() * self.weight
        return centred * scale[:, None, None] + self.bias[:, None, None]

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        momentum = self.momentum if self.momentum is not None else 0.1
        self.running_mean.lerp_(mean, momentum)
        self.running_var.lerp_(variance, momentum)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked += 1


def _summed(values: Tensor) -> Tensor:
    """Sum over all processes, with its gradient."""
    total: Tensor = all_reduce(values)  # type: ignore[no-untyped-call]  # torch gives it no types
    return total


def synchronise_batch_norm(model: nn.Module) -> nn.Module:
    """Let every batch norm of `model` see the global batch; in place, parameters and names unchanged."""
    for module in model.modules():
        if type(module) is nn.BatchNorm2d:
            module.__class__ = _CrossProcessBatchNorm2d
    return model


def average(values: Tensor) -> Tensor:
    """Mean over processes of a detached tensor; itself when there is one process."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        values = values.clone()
        dist.all_reduce(values)
        values /= dist.get_world_size()
    return values
