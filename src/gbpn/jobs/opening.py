"""A completer from weights and `How`, for one process or for each of many."""

from __future__ import annotations

from pathlib import Path

from gbpn.errors import InputError
from gbpn.how import How
from gbpn.model.loading import load
from gbpn.model.models import Model
from gbpn.predict.completer import DepthCompleter

__all__ = ["open_completer", "open_model"]


def open_completer(weights: str, how: How) -> DepthCompleter:
    """As the options of `gbpn complete` say it."""
    return DepthCompleter(open_model(weights, how), how=how)


def open_model(weights: str, how: How) -> Model:
    """Weights that `gbpn.load` finds, or for other engines a folder of `gbpn export`."""
    if how.engine == "torch":
        return load(weights)
    if how.device not in ("cpu", "auto") or how.solver != "gbp":
        raise InputError(
            f"--engine {how.engine} runs belief propagation on the CPU; got --device {how.device} --solver "
            f"{how.solver}: use --engine torch"
        )
    if not Path(weights).is_dir():
        raise InputError(
            f"--engine {how.engine} wants --weights FOLDER as written by gbpn export; got {weights!r}: run "
            f"gbpn export {weights} -o exported, then --weights exported"
        )
    from gbpn.predict.exported import ExportedModel  # needs an optional package

    return ExportedModel(weights, engine=how.engine, iterations=how.iterations, precision=how.precision)
