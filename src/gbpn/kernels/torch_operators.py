"""Functions of ours as torch operators, for graphs and gradients.

`torch.library.custom_op` would do the same and, with its first call, import the whole compiler of torch
(`torch._dynamo`, sympy): a second and 70 MB that an answer does not need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["TorchOperator", "operator"]

_NAMESPACE = "gbpn"
_LIBRARY: Any = torch.library.Library(_NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
_EVERYWHERE = "CompositeExplicitAutograd"
"""The dispatch key of a function that knows by itself on which device it works."""


class TorchOperator:
    """An operator of torch that new tensors come out of; its inputs are only read."""

    def __init__(self, name: str, function: Callable[..., Any], schema: str, device: str | None) -> None:
        self._name = f"{_NAMESPACE}::{name}"
        self.__doc__ = function.__doc__
        _LIBRARY.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
        _LIBRARY.impl(name, function, _EVERYWHERE if device is None else device.upper())
        self.overload = getattr(getattr(torch.ops, _NAMESPACE), name).default

    def __call__(self, *arguments: Any) -> Any:
        return self.overload(*arguments)

    def register_fake(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Say which shapes come out, without computing."""
        torch.library.register_fake(self._name, function, lib=_LIBRARY)
        return function

    def register_autograd(self, backward: Callable[..., Any], *, setup_context: Callable[..., Any]) -> None:
        """Say what the gradients are; see `torch.library.register_autograd`."""
        torch.library.register_autograd(self._name, backward, setup_context=setup_context, lib=_LIBRARY)


def operator(
    name: str, *, schema: str | None = None, device: str | None = None
) -> Callable[[Callable[..., Any]], TorchOperator]:
    """A function as `torch.ops.gbpn.<name>`; the schema is that of its annotations unless given.

    device  "cpu": tensors elsewhere are refused; None: whatever the function takes
    """

    def registered(function: Callable[..., Any]) -> TorchOperator:
        known = schema or torch.library.infer_schema(function, mutates_args=())
        return TorchOperator(name, function, known, device)

    return registered
