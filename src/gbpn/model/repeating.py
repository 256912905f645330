"""Records of tensors with their batch repeated."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

__all__ = ["Record", "repeated"]

Record = TypeVar("Record")


def repeated(record: Record, times: int) -> Record:
    """The same record, each tensor [B, …] in it as [times · B, …]; a batch of one takes no further memory.

    Reaches into dataclasses, tuples and named tuples; anything else stays as it is.
    """
    result: Record = _repeated(record, times)
    return result


def _repeated(value: Any, times: int) -> Any:
    if isinstance(value, Tensor):
        if value.shape[0] == 1:
            return value.expand(times, *value.shape[1:])
        return torch.cat([value] * times)
    if is_dataclass(value) and not isinstance(value, type):
        inside = {field.name: _repeated(getattr(value, field.name), times) for field in fields(value)}
        return replace(value, **inside)
    if isinstance(value, tuple):
        items = [_repeated(item, times) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value
