"""`gbpn convert`: the authors' released file, or any other of ours, to one safetensors file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gbpn.errors import InputError

__all__ = ["convert"]


def convert(
    source: Annotated[Path, typer.Argument(help="The authors' result_ema.pth, or a weight file of gbpn.")],
    target: Annotated[Path, typer.Argument(help="The .safetensors file to write.")],
    config: Annotated[
        str | None,
        typer.Option(help="Configuration of a file without one: gbpn-2 (NYUv2), gbpn-2-kitti, …"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Another value for a field of the configuration that needs no training, as iterations, "
            "contrast or mirror; repeat for several.",
        ),
    ] = None,
    half: Annotated[bool, typer.Option("--half", help="Store weights in 16 bits.")] = False,
    licence: Annotated[str | None, typer.Option(help="Licence to note in the file.")] = None,
    training_data: Annotated[str | None, typer.Option(help="Training data to note in the file.")] = None,
    notes: Annotated[
        Path | None, typer.Option("--card", help="JSON file: licence, training_data, numbers, trained_for, …")
    ] = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(help="Data to fit sigma in metres on: the held-out part of its training scenes."),
    ] = None,
    dataset: Annotated[
        str, typer.Option(help="Kind of that data: pool, folder, nyuv2, kitti or void.")
    ] = "pool",
    holdout: Annotated[
        float, typer.Option(help="Held-out share of the scenes of a pool or of NYUv2.")
    ] = 0.05,
) -> None:
    """Convert weights to safetensors with the configuration inside."""
    from gbpn.model.loading import load
    from gbpn.weights.files import read, save
    from gbpn.weights.released import is_released

    if target.suffix != ".safetensors":
        raise InputError(f"the target must end in .safetensors; got {target.name}")
    model = load(source, config=config)
    card = dict(model.card)
    if settings:
        model = _changed(model, settings)
    if is_released(read(source)[0]):
        card.setdefault("licence", "MIT")
        card.setdefault("source", "converted from the authors' released file")
    if notes is not None:
        card |= _read_card(notes)
    for key, value in (("licence", licence), ("training_data", training_data)):
        if value is not None:
            card[key] = value
    if calibrate is not None:
        _calibrate(model, calibrate, dataset, holdout)
    save(model, target, half=half, card=card)
    megabytes = target.stat().st_size / 1e6
    typer.echo(f"{target}: {model.config.name}, {len(model.state_dict())} tensors, {megabytes:.1f} MB")


def _changed(model: Any, settings: list[str]) -> Any:
    """The same weights under another configuration."""
    from gbpn.model.models import from_config
    from gbpn.train.recipe import Recipe

    options = Recipe().changed([f"model.{setting}" for setting in settings]).model_options
    other = from_config(model.config.overridden(options))
    try:
        other.load_state_dict(model.state_dict())
    except RuntimeError as error:
        raise InputError(f"--set {' '.join(settings)} asks for another network: train it instead") from error
    other.calibration = model.calibration
    return other


def _calibrate(model: Any, root: Path, kind: str, holdout: float) -> None:
    from gbpn.datasets import open_dataset
    from gbpn.train.sigma_calibration import calibrate

    options = {"holdout": holdout} if kind in ("pool", "nyuv2") else {}
    split = "evaluation" if kind == "folder" else "validation"
    frames = open_dataset(kind, root, split, **options)
    typer.echo(f"sigma is fitted on {len(frames)} frames of {root}")
    model.calibration = calibrate(model, frames, len(frames))


def _read_card(path: Path) -> dict[str, Any]:
    import json

    try:
        card = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable JSON file ({error})") from error
    if not isinstance(card, dict):
        raise InputError(f"{path}: a card is one JSON object; got {type(card).__name__}")
    return card
