"""A completer from the words of the command line, for one process or for each of many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gbpn.errors import InputError
from gbpn.predict.completer import DepthCompleter

if TYPE_CHECKING:
    from gbpn.predict.engine import EngineModel

__all__ = ["open_completer"]


def open_completer(
    weights: str,
    device: str,
    solver: str,
    iterations: str | None,
    outliers: str,
    engine: str,
    precision: str = "auto",
    working_size: str = "auto",
) -> DepthCompleter:
    """As the options of `gbpn complete` say it; `iterations` such as "5" or "3,5", None: as trained."""
    counts = None
    if iterations is not None:
        try:
            counts = tuple(int(word) for word in iterations.split(","))
        except ValueError:
            raise InputError(f"--iterations wants counts such as 5 or 3,5; got {iterations!r}") from None
    if engine != "torch":
        model = _engine_model(weights, device, solver, counts or (), engine, precision)
        return DepthCompleter(
            model, iterations=model.completer.iterations, outliers="keep", working_size=working_size
        )
    return DepthCompleter.from_pretrained(
        weights,
        device=device,
        solver=solver,
        iterations=counts,
        outliers=outliers,
        precision=precision,
        working_size=working_size,
    )


def _engine_model(
    folder: str, device: str, solver: str, iterations: tuple[int, ...], engine: str, precision: str
) -> EngineModel:
    """Exported networks: on the processor, as trained, and with every measurement."""
    from gbpn.predict.engine import EngineModel  # needs an optional package

    if device not in ("cpu", "auto") or solver != "gbp":
        raise InputError(
            f"--engine {engine} runs belief propagation on the CPU; got --device {device} --solver {solver}: "
            "use --engine torch"
        )
    if not Path(folder).is_dir():
        raise InputError(
            f"--engine {engine} wants --weights FOLDER as written by gbpn export; got {folder!r}: run "
            f"gbpn export {folder} -o exported, then --weights exported"
        )
    return EngineModel(folder, engine=engine, iterations=iterations, precision=precision)
