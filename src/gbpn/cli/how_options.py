"""The options of commands that complete frames, made from the fields of `How`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from functools import wraps
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from gbpn.cli.arguments import option_of, require_choice
from gbpn.how import How

__all__ = ["USUAL", "how_options", "with_how"]

USUAL = How()
"""Where nothing is asked for."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def with_how(*left_out: str) -> Callable[[_Command], _Command]:
    """A command whose parameter `how` is given on the command line, one option for each field of `How`.

    left_out  fields that the command cannot obey, so that it does not offer them
    """

    def changed(command: _Command) -> _Command:
        signature, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
        own = how_options(left_out)
        parameters = []
        for one in signature.parameters.values():
            parameters += own if one.name == "how" else [one.replace(annotation=hints[one.name])]

        @wraps(command)
        def called(**given: Any) -> Any:
            options = {one.name: given.pop(one.name) for one in own}
            return command(how=_asked(options), **given)

        called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in parameters}
        return called  # type: ignore[return-value]

    return changed


def how_options(left_out: tuple[str, ...] = ()) -> list[inspect.Parameter]:
    """One parameter for each field."""
    return [_option(one) for one in fields(How) if one.name not in left_out]


def _option(one: Field[Any]) -> inspect.Parameter:
    """What typer makes an option of."""
    name, told = option_of(one), one.metadata
    kind, default = type(one.default), one.default
    if told["flag"] is not None:
        kind, default = bool, False
    elif kind is tuple:
        kind, default = str, ""
    words = f"{name}/--no-{name[2:]}" if default is True else name
    given = typer.Option(words, rich_help_panel=told["panel"], help=told["help"], show_default=default != "")
    return inspect.Parameter(
        one.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotated[kind, given]
    )


def _asked(options: dict[str, Any]) -> How:
    """The record; a bare flag stands for its value."""
    words = {option_of(one): options.get(one.name) for one in fields(How) if one.metadata["choices"]}
    require_choice(words)
    flags = {one.name: one.metadata["flag"] for one in fields(How) if one.metadata["flag"] is not None}
    return How.of(
        **{
            name: (flags[name] if value else None) if name in flags else value
            for name, value in options.items()
        }
    )
