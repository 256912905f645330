"""Defaults of the whole public surface: of every function, method and dataclass; and every plain constant."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gbpn

PLACE = Path(__file__).with_suffix(".json")
PRIVATE = re.compile(r"_[A-Z][A-Z0-9_]*")
PLAIN = (bool, int, float, str, type(None))
LEFT_OUT = ("triton", "__main__", "_native")
"""Modules that need a compiler for GPUs, start something, or are compiled."""


def modules() -> Iterator[ModuleType]:
    """Everything that can be imported here."""
    for found in pkgutil.walk_packages(gbpn.__path__, "gbpn."):
        if any(part in found.name for part in LEFT_OUT):
            continue
        try:
            yield importlib.import_module(found.name)
        except ImportError:  # an extra that is not installed
            continue


def defaults() -> dict[str, str]:
    """ "module.name(parameter)" or "module.CONSTANT" → what it is unless told otherwise."""
    out: dict[str, str] = {}
    for module in modules():
        out |= _private_constants(module)
        out |= _private_code(module)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            home = f"{module.__name__}.{name}"
            if _tabular(value):
                out[home] = _shown(value)
            elif getattr(value, "__module__", None) != module.__name__:
                continue
            elif inspect.isclass(value):
                out |= _of_class(home, value)
            elif inspect.isfunction(value):
                out |= _of_function(home, value)
    return {name: re.sub(r" at 0x[0-9a-f]+", "", text) for name, text in out.items()}  # no addresses


def _private_constants(module: ModuleType) -> dict[str, str]:
    """Numbers that a module keeps to itself decide as much as those it shows."""
    return {
        f"{module.__name__}.{name}": _shown(value)
        for name, value in vars(module).items()
        if PRIVATE.fullmatch(name)
        and (_plain(value) or isinstance(value, dict))
        and not isinstance(value, str)
    }


def _private_code(module: ModuleType) -> dict[str, str]:
    """Defaults of functions and forms of dataclasses that a module keeps to itself."""
    out: dict[str, str] = {}
    for name, value in vars(module).items():
        if not name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value):
            out |= _of_class(f"{module.__name__}.{name}", value)
        elif inspect.isfunction(value):
            out |= _of_function(f"{module.__name__}.{name}", value)
    return out


def _of_class(home: str, kind: type) -> dict[str, str]:
    out: dict[str, str] = {}
    if dataclasses.is_dataclass(kind):
        settings: Any = kind.__dataclass_params__  # type: ignore[attr-defined]
        fields = dataclasses.fields(kind)
        named = [field.name for field in fields if field.kw_only]
        out[home] = f"dataclass, frozen {settings.frozen}, {len(named)} fields by name only"
        for field in fields:
            if _plain(field.default):
                out[f"{home}({field.name})"] = repr(field.default)
    for name, method in vars(kind).items():
        function = getattr(method, "__func__", method)
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            out |= _of_function(home if name == "__init__" else f"{home}.{name}", function)
    return out


def _of_function(home: str, function: Any) -> dict[str, str]:
    found = inspect.signature(function).parameters.values()
    return {f"{home}({one.name})": repr(one.default) for one in found if _plain(one.default)}


def _tabular(value: object) -> bool:
    return _plain(value) or (isinstance(value, dict) and any(_numbers(value)))


def _shown(value: object) -> str:
    """As `repr`; of tables only the numbers, not words or functions."""
    return "{" + ", ".join(_numbers(value)) + "}" if isinstance(value, dict) else repr(value)


def _numbers(table: object) -> Iterator[str]:
    if isinstance(table, dict):
        for key, part in table.items():
            if found := list(_numbers(part)):
                yield f"{getattr(key, '__name__', key)}: {' '.join(found)}"
    elif isinstance(table, tuple | list):
        for part in table:
            yield from _numbers(part)
    elif isinstance(table, bool | int | float):
        yield repr(table)


def _plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_plain, value))
    return isinstance(value, PLAIN)
