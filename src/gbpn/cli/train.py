"""`gbpn train`: any configuration, any of our datasets, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gbpn.train.loop import TrainingResult

__all__ = ["train"]


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            help="paper, released (both NYUv2), paper-kitti, released-kitti, paper-ablation, pool, small "
            "(for CPUs) or synthetic; folder: the default weights, on with frames of your own; default: all "
            "stages of the embedded weights; free: weights for any use, from rendered rooms; ablation: V1 "
            "to V9"
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for weights, curves and pictures")],
    data: Annotated[Path | None, typer.Option(help="Root of the dataset; synthetic needs none")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out; default, free and ablation always do")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value of the recipe, model.KEY or dataset.KEY; repeatable"),
    ] = None,
    scale: Annotated[float, typer.Option(help="Length of the run: steps × scale, batch × √scale")] = 1.0,
    accelerator: Annotated[str, typer.Option(help="cpu, cuda, mps or auto")] = "auto",
    processes: Annotated[int, typer.Option(help="Training processes (devices) per node")] = 1,
    nodes: Annotated[int, typer.Option(help="Machines")] = 1,
    precision: Annotated[str, typer.Option(help="32-true or bf16-mixed")] = "32-true",
    workers: Annotated[int, typer.Option(help="Data-loading processes per training process")] = 1,
    progress: Annotated[bool, typer.Option(help="Show a progress bar")] = True,
) -> None:
    """Train a model; Ctrl-C saves and leaves, --resume continues to the same weights."""
    from gbpn.cli.process_memory import keep_freed_memory
    from gbpn.train import ablation, chain
    from gbpn.train.loop import Machine
    from gbpn.train.loop import train as run
    from gbpn.train.recipe import named

    keep_freed_memory()
    machine = Machine(
        accelerator=accelerator,
        processes=processes,
        nodes=nodes,
        precision=precision,
        workers=workers,
        progress=progress,
    )
    if recipe in chain.CHAINS:
        stages = chain.CHAINS[recipe].scaled(scale).changed(settings or [])
        typer.echo(chain.describe(stages))
        outcome = chain.run(stages, data, out, machine=machine)
        typer.echo(_ended(outcome))
    elif recipe == "ablation":
        outcome = ablation.run(ablation.recipes(settings or [], scale), data, out, machine=machine)
        typer.echo(_ended(outcome))
    else:
        chosen = named(recipe).scaled(scale).changed(settings or [])
        outcome = run(chosen, data, out, resume=resume, machine=machine)
        typer.echo(
            f"{outcome.folder}: step {outcome.step} of {chosen.steps}; see {outcome.folder / 'summary.html'}"
        )
    if not outcome.finished:
        raise typer.Exit(130)


def _ended(outcome: TrainingResult) -> str:
    state = "finished" if outcome.finished else f"stopped at step {outcome.step}; the same command continues"
    return f"{outcome.folder}: {state}"
