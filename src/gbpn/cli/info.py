"""`gbpn info`: what is in a weight file or a dataset, or what there is to build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gbpn.model import Model

__all__ = ["SIZE", "info"]

SIZE = (256, 320)
"""Height and width at which multiply-adds are stated."""


def info(
    weights: Annotated[
        str | None,
        typer.Argument(
            help="Weights (file, folder, name or hub id) or dataset; without it, list what there is."
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="Look at a dataset: nyuv2, kitti, void, folder, pool or synthetic."),
    ] = None,
    split: Annotated[str, typer.Option(help="Dataset: which split.")] = "evaluation",
    sheet: Annotated[Path | None, typer.Option(help="Dataset: write a contact sheet (.png) here.")] = None,
    frames: Annotated[int, typer.Option(help="Dataset: rows of the contact sheet.")] = 8,
    recipe: Annotated[
        str | None, typer.Option(help="Dataset: time this training recipe (nyu, kitti, varied).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What a model is: configuration, cost, licence, training data, numbers. --dataset: what data holds."""
    import json

    from rich.console import Console
    from rich.markup import escape

    from gbpn.config import CONFIGS

    if dataset is not None:
        from gbpn.cli.dataset_facts import describe

        describe(weights, dataset, split, sheet, frames, recipe, as_json)
        return
    console = Console(highlight=False, soft_wrap=True)
    if weights is None:
        _list(console, as_json)
        return
    from gbpn.loading import load
    from gbpn.model import build

    untrained = weights in CONFIGS
    facts = _facts(build(weights) if untrained else load(weights), untrained)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    for key, value in facts.items():
        if isinstance(value, dict):
            console.print(f"[bold]{key}[/]" + ("" if value else " none"))
            for name, inner in value.items():
                console.print(f"  {name:20} {inner}", markup=False)
        else:
            console.print(f"[bold]{key}[/] {escape(str(value))}")


def _facts(model: Model, untrained: bool) -> dict[str, object]:
    from gbpn.cost import multiply_adds, parameters

    counts = multiply_adds(model, *SIZE)
    card = dict(model.card)
    unstated = "untrained" if untrained else "not stated in the file"
    return {
        "name": model.config.name,
        "parameters": parameters(model),
        f"multiply-adds at {SIZE[0]}×{SIZE[1]}": {**counts, "total": sum(counts.values())},
        "licence": card.pop("licence", unstated),
        "training data": card.pop("training_data", unstated),
        "numbers": card.pop("numbers", {}),
        **({"card": card} if card else {}),
        "calibrated": model.calibration is not None,
        "config": model.config.as_dict(),
    }


def _list(console: object, as_json: bool) -> None:
    """All named configurations, embedded weights, and the backends that work here."""
    import json

    from rich.console import Console

    from gbpn.backends import available
    from gbpn.config import CONFIGS
    from gbpn.weights.files import EMBEDDED

    assert isinstance(console, Console)
    embedded = sorted(file.stem for file in EMBEDDED.glob("*.safetensors"))
    backends = available()
    if as_json:
        listing = {"configurations": list(CONFIGS), "embedded weights": embedded, "backends": backends}
        typer.echo(json.dumps(listing, indent=2))
        return
    console.print(f"[bold]{'configuration':16}{'encoder':20}{'iterations':12}{'edges':14}learned edges[/]")
    for name, config in CONFIGS.items():
        iterations = " + ".join(str(count) for count in config.iterations)
        edges = f"{config.neighbours} {config.edges}"
        row = f"{name:16}{config.encoder:20}"
        if config.solver == "affine":
            console.print(row + "affine fit", markup=False)
        else:
            console.print(f"{row}{iterations:12}{edges:14}{config.nonlocal_edges}", markup=False)
    console.print(f"\n[bold]embedded weights[/] {', '.join(embedded) or 'none'}")
    console.print("[bold]backends[/]")
    for name, state in backends.items():
        console.print(f"  {name:10} {state}", markup=False)
