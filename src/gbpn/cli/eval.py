"""`gbpn eval`: how good is it, on what, compared with what, and can its sigma be trusted."""

from __future__ import annotations

import ast
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from gbpn.errors import InputError

__all__ = ["KINDS", "DatasetName", "evaluate"]

KINDS = ("nyuv2", "kitti", "void", "folder", "pool", "synthetic")
DatasetName = Enum("DatasetName", {kind: kind for kind in KINDS}, type=str)  # type: ignore[misc]


def evaluate(
    dataset: Annotated[
        DatasetName | None, typer.Argument(help="Layout of the data; --suite paper finds it by itself.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where it lies; for pool a tree of scenes or one scene.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the report.")] = Path("report"),
    weights: Annotated[
        list[str] | None,
        typer.Option(
            help="Weights to evaluate: a file, a folder of files, or a name. Repeat. For folder the "
            "default ones, unless others are given, or 'none'."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="A baseline's name, 'all', 'none', module:function, or a folder of predictions, also as "
            "NAME=FOLDER (FOLDER@1000 if its PNGs are in millimetres). Repeat. Default: what the suite "
            "compares with."
        ),
    ] = None,
    suite: Annotated[
        str, typer.Option(help="Experiment of the paper; paper: all; --suite list names them.")
    ] = "main",
    points: Annotated[list[int] | None, typer.Option(help="Measurements per frame. Repeat.")] = None,
    lines: Annotated[list[int] | None, typer.Option(help="LiDAR scan lines kept. Repeat.")] = None,
    noise: Annotated[list[float] | None, typer.Option(help="Relative error, 0.02 for 2 %. Repeat.")] = None,
    iterations: Annotated[
        list[int] | None, typer.Option(help="Belief propagation iterations. Repeat.")
    ] = None,
    pattern: Annotated[
        list[str] | None, typer.Option(help="Other sensors, e.g. corners:300+outliers:0.05. Repeat.")
    ] = None,
    outliers: Annotated[
        str, typer.Option(help="Weights keep measurements that the rest contradicts, or drop them.")
    ] = "keep",
    as_used: Annotated[
        bool,
        typer.Option("--as-used", help="Weights as gbpn complete runs them, not the model alone."),
    ] = False,
    seeds: Annotated[int | None, typer.Option(help="Samplings of each frame, averaged.", min=1)] = None,
    limit: Annotated[int | None, typer.Option(help="Only N frames, spread over the dataset.", min=1)] = None,
    split: Annotated[str, typer.Option(help="Part of the dataset.")] = "evaluation",
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="How the dataset is read, e.g. folder: scale=1000; pool: accumulated=False. Repeat.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    batch: Annotated[int, typer.Option(help="Frames per call of a network.", min=1)] = 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget results already in the folder.")] = False,
    pictures: Annotated[bool, typer.Option(help="Draw maps of the best, median and worst frame.")] = True,
    pixel: Annotated[
        list[str] | None, typer.Option(help="ROW,COLUMN whose learned edges are drawn. Repeat.")
    ] = None,
    submission: Annotated[
        bool,
        typer.Option("--submission", help="KITTI: write the server's PNGs of the first weights; no report."),
    ] = False,
) -> None:
    """Evaluate several methods on the same frames with the same measurements.

    Writes report.json, report.csv, report.md, plots and one index.html that opens offline. The same command
    again continues where it was interrupted.
    """
    from rich.console import Console

    from gbpn.evaluate.evaluation import Request, list_suites, perform, submit
    from gbpn.evaluate.paper import perform_paper

    console = Console()
    if suite == "list":
        console.print(list_suites())
        return
    kind = dataset.value if dataset else ""
    if not kind and suite != "paper":
        raise InputError(f"which layout have the data? give one of {', '.join(KINDS)}")
    if data is None and kind != "synthetic":
        raise InputError(f"where are the frames? {kind or 'suite paper'} needs --data ROOT")
    request = Request(
        dataset=kind,
        root=str(data or ""),
        split=split,
        options=dict(_option(text) for text in option or ()),
        output=output,
        weights=_weights(kind, suite, weights),
        methods=tuple(method or ()),
        suite=suite,
        points=tuple(points or ()),
        lines=tuple(lines or ()),
        noise=tuple(noise or ()),
        iterations=tuple(iterations or ()),
        patterns=tuple(pattern or ()),
        outliers=outliers,
        as_used=as_used,
        seeds=seeds,
        limit=limit,
        workers=workers,
        batch=batch,
        fresh=fresh,
        pictures=pictures,
        pixels=tuple(_pixel(text) for text in pixel or ()),
    )
    if outliers not in ("keep", "drop"):
        raise InputError(f"--outliers must be keep or drop; got {outliers!r}")
    if submission:
        submit(request, console)
        return
    if suite == "paper":
        perform_paper(request, console)
        return
    perform(request, console)


def _weights(dataset: str, suite: str, given: list[str] | None) -> tuple[str, ...]:
    """Whoever has frames of their own wants to know about the default weights."""
    if given is None:
        return ("default",) if dataset == "folder" and suite == "main" else ()
    return tuple(name for name in given if name != "none")


def _option(text: str) -> tuple[str, Any]:
    """`scale=1000` to ("scale", 1000); what is not a Python literal is a word."""
    key, separator, value = text.partition("=")
    if not separator:
        raise InputError(f"--option must look like KEY=VALUE; got {text!r}")
    try:
        return key.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return key.strip(), value.strip()


def _pixel(text: str) -> tuple[int, int]:
    """`120,80` to (120, 80)."""
    row, _, column = text.partition(",")
    if not (row.strip().isdigit() and column.strip().isdigit()):
        raise InputError(f"--pixel must be ROW,COLUMN like 120,80; got {text!r}")
    return int(row), int(column)
