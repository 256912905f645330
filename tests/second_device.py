"""A device that is not the CPU, for machines without one: what mixes the two devices fails here as on a GPU.

Its tensors say `device="elsewhere"` and hold a CPU tensor inside. An operation on them is computed with what
they hold; one whose tensors live on two devices is refused, except where CUDA takes both: copies, numbers
without dimensions, and positions on the CPU. `numpy()` of them is refused by torch itself. In all threads.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as tree

from gbpn import Gaussian

__all__ = ["ELSEWHERE", "Elsewhere", "as_one_operation", "elsewhere"]

ELSEWHERE = "elsewhere"

_COPIES = {"aten::copy_", "aten::_to_copy", "aten::_copy_from", "aten::set_"}
_INDEXED = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
_OURS = "gbpn::"


class Elsewhere(torch.Tensor):
    """A tensor on that device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Elsewhere:
        assert not isinstance(held, Elsewhere)
        out = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=f"{ELSEWHERE}:0",
        )
        out.held = held
        return out

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"Elsewhere({self.held!r})"

    def tolist(self) -> Any:
        return self.held.tolist()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        twin = Elsewhere(self.held.detach().clone())
        if isinstance(self, torch.nn.Parameter):
            return torch.nn.Parameter(twin, self.requires_grad)
        return twin.requires_grad_(self.requires_grad)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types_: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made_of_others = function.decompose(*args, **(kwargs or {}))
        if made_of_others is not NotImplemented:
            return made_of_others
        return computed(function, args, kwargs or {})


def computed(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The operation with what the tensors hold; its result is where a GPU's would be."""
    name = function._schema.name
    wanted = kwargs.get("device")
    given = [x for x in tree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    here = any(isinstance(x, Elsewhere) for x in given)
    _refuse_mixtures(name, args, given)
    if name.startswith(_OURS) and not _runs_anywhere(name):
        raise RuntimeError(f"{name} has no kernel for tensors on {ELSEWHERE}")
    if wanted is not None and (here := torch.device(wanted).type == ELSEWHERE):
        kwargs = {**kwargs, "device": torch.device("cpu")}
    kwargs = {**kwargs, "pin_memory": False} if kwargs.get("pin_memory") else kwargs
    held_args, held_kwargs = tree.tree_map_only(Elsewhere, lambda x: x.held, (args, kwargs))
    out = function(*held_args, **held_kwargs)
    if function._schema.is_mutable and name != "aten::set_":
        return _written(function, args, kwargs, out)
    if not here:
        return out
    view = any(one.alias_info is not None for one in function._schema.returns)
    with torch.inference_mode(given[0].is_inference() if view else torch.is_inference_mode_enabled()):
        return tree.tree_map_only(Tensor, Elsewhere, out)


def _written(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """Operations that write into an argument give that argument back."""
    names = [one.name for one in function._schema.arguments]
    given = dict(zip(names, args, strict=False)) | kwargs
    written = [
        given[one.name]
        for one in function._schema.arguments
        if one.alias_info is not None and one.alias_info.is_write and isinstance(given.get(one.name), Tensor)
    ]
    returned = function._schema.returns
    if not returned:
        return None
    if all(one.alias_info is not None for one in returned):
        return written[0] if len(returned) == 1 else tuple(written)
    return tree.tree_map_only(Tensor, Elsewhere, out)


def _refuse_mixtures(name: str, args: tuple[Any, ...], given: list[Tensor]) -> None:
    if name in _COPIES:
        return
    if name in _INDEXED and isinstance(args[0], Elsewhere):
        given = [args[0], *(x for x in args[2:] if isinstance(x, Tensor))]
    away = [x for x in given if isinstance(x, Elsewhere)]
    left = [x for x in given if not isinstance(x, Elsewhere) and x.dim() > 0]
    if away and left:
        raise RuntimeError(
            f"{name}: expected all tensors to be on the same device, but found at least two devices, "
            f"{ELSEWHERE} and cpu"
        )


def _copied(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    held = [x.held if isinstance(x, Elsewhere) else x for x in (target, source)]
    held[0].copy_(held[1])
    return target


def _runs_anywhere(name: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeExplicitAutograd")


def _backend() -> types.SimpleNamespace:
    return types.SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        current_device=lambda: 0,
        is_initialized=lambda: True,
        _is_in_bad_fork=lambda: False,
        manual_seed_all=lambda seed: None,
        get_rng_state=lambda device=None: torch.empty(0, dtype=torch.uint8),
        set_rng_state=lambda state, device=None: None,
        get_amp_supported_dtype=lambda: [torch.float32, torch.bfloat16],
        synchronize=lambda device=None: None,
    )


@cache
def elsewhere() -> str:
    """The device's name; from now on torch knows it, for as long as the process lives."""
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _setup_privateuseone_for_python_backend(rename=ELSEWHERE, backend_module=_backend())
    library = torch.library.Library("_", "IMPL", "PrivateUse1")
    library.fallback(lambda function, *args, **kwargs: computed(function, args, kwargs))
    ours = torch.library.Library("aten", "IMPL")
    ours.impl("copy_", _copied, "PrivateUse1")  # torch.tensor(…, device=…) calls it below Python
    _KEPT.extend((library, ours))
    return ELSEWHERE


_KEPT: list[Any] = []


def as_one_operation(function: Any, definition: Any) -> Any:
    """A function of tensors as one operation of that device: quicker than each step of its definition by
    itself, which is taken where gradients are asked for."""

    def run(*args: Any, **kwargs: Any) -> Any:
        given = [x for part in args for x in _tensors(part)]
        wanted = torch.is_grad_enabled() and any(x.requires_grad for x in given)
        if wanted or not any(isinstance(x, Elsewhere) for x in given):
            return definition(*args, **kwargs)
        _refuse_mixtures(function.__name__, args, given)
        return _changed(function(*(_changed(part, _held) for part in args), **kwargs), Elsewhere)

    return run


def _held(x: Tensor) -> Tensor:
    return x.held if isinstance(x, Elsewhere) else x


def _tensors(part: Any) -> list[Tensor]:
    return [part.information, part.precision] if isinstance(part, Gaussian) else [part]


def _changed(part: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(part, Gaussian):
        return Gaussian(change(part.information), change(part.precision))
    return change(part)
