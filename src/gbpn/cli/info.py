"""`gbpn info`: what is in a weight file or a dataset, or what there is to build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gbpn.model.models import Model

__all__ = ["SIZE", "info"]

SIZE = (256, 320)
"""Height and width at which multiply-adds are stated."""
_WIDTH = 22
"""Characters of the left column."""


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

    from gbpn.cli.rows import print_rows
    from gbpn.config import CONFIGS

    if dataset is not None:
        from gbpn.cli.dataset_facts import describe

        describe(weights, dataset, split, sheet, frames, recipe, as_json)
        return
    console = Console(highlight=False)
    if weights is None:
        _list(console, as_json)
        return
    from gbpn.model.loading import load
    from gbpn.model.models import build

    untrained = weights in CONFIGS
    facts = _facts(build(weights) if untrained else load(weights), untrained)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    print_rows(console, _readable(facts), _WIDTH)


def _readable(facts: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """What is known, for people: a title before each group, large numbers with commas."""
    from rich.markup import escape

    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield f"[bold]{escape(key)}[/]", "" if value else "none"
            for name, inner in value.items():
                shown = name if key == "config" else name.replace("_", " ")  # settings as they are set
                yield f"  {escape(shown)}", escape(_words(inner))
        else:
            yield f"[bold]{escape(key)}[/]", escape(_words(value))


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(inner)}" for name, inner in value.items() if inner is not None)
    if isinstance(value, list | tuple):
        nested = any(isinstance(one, Mapping | list | tuple) for one in value)
        return ("; " if nested else ", ").join(map(_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and value >= 10_000:
        return f"{value:,}"
    return str(value)


def _facts(model: Model, untrained: bool) -> dict[str, object]:
    from gbpn.model.cost import multiply_adds, parameters

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

    from gbpn.config import CONFIGS
    from gbpn.kernels.backends import available
    from gbpn.weights.files import named

    assert isinstance(console, Console)
    embedded = named()
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
