"""What `gbpn info ROOT --dataset KIND` says: frames, densities, depths, a contact sheet, loading speed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gbpn.errors import InputError
from gbpn.measurements.validity import measured

if TYPE_CHECKING:
    from gbpn.datasets.training_view import Dataset

__all__ = ["describe", "samples_per_second"]

_SAMPLED = 24
"""Frames that are read for the densities and the depth range."""


def describe(
    root: str | None,
    kind: str,
    split: str,
    sheet: Path | None,
    frames: int,
    recipe: str | None,
    as_json: bool,
) -> None:
    """Print the facts of a dataset; optionally draw a sheet and time a training recipe."""
    import json

    from gbpn.datasets import open_dataset
    from gbpn.datasets.contact_sheet import contact_sheet
    from gbpn.datasets.selection import evenly_spaced

    if root is None and kind != "synthetic":
        raise InputError(f"where is the dataset? gbpn info ROOT --dataset {kind}")
    dataset = open_dataset(kind, root or "", split)
    facts = _dataset_facts(dataset)
    if recipe is not None:
        facts[f"samples/s through recipe {recipe} (one thread)"] = round(
            samples_per_second(dataset, recipe), 1
        )
    if sheet is not None:
        contact_sheet(dataset, evenly_spaced(len(dataset), frames), sheet)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    for key, value in facts.items():
        if isinstance(value, dict):
            typer.echo(key)
            for name, inner in value.items():
                typer.echo(f"  {name:40} {inner}")
        else:
            typer.echo(f"{key}: {value}")
    if sheet is not None:
        typer.echo(f"contact sheet → {sheet}")


def _dataset_facts(dataset: Dataset) -> dict[str, object]:
    """Frames per folder of names; sizes, densities and depths over a sample of the frames."""
    from collections import Counter

    import torch

    from gbpn.datasets.selection import evenly_spaced

    folders = Counter(name.rsplit("/", 1)[0] if "/" in name else "." for name in dataset.names)
    samples = [dataset.load(index) for index in evenly_spaced(len(dataset), _SAMPLED)]
    counts = [int(measured(sample.sparse).sum()) for sample in samples]
    targets = [sample.target for sample in samples if sample.target is not None]
    known = torch.cat([target[measured(target)] for target in targets]) if targets else torch.empty(0)
    sizes = Counter(f"{sample.image.shape[-1]}×{sample.image.shape[-2]}" for sample in samples)
    facts: dict[str, object] = {
        "frames": len(dataset),
        "folders": dict(folders) if len(folders) <= 40 else len(folders),
        f"sizes as evaluated (of {len(samples)} frames read)": ", ".join(sizes),
        "measured pixels": f"{min(counts)} to {max(counts)}" if any(counts) else "none: choose a pattern",
    }
    if known.numel():
        share = sum(float(measured(target).float().mean()) for target in targets) / len(targets)
        facts["target known"] = f"{share:.1%} of the pixels"
        facts["target depth"] = f"{float(known.min()):.2f} to {float(known.max()):.2f} m"
    return facts


def samples_per_second(dataset: Dataset, recipe: str, count: int = 60, repeats: int = 3) -> float:
    """Best of `repeats`, in CPU time: files read, decoded and augmented in this thread."""
    from gbpn.augmentation.augmentations import AUGMENTATIONS
    from gbpn.datasets.training_view import TrainingView

    if recipe not in AUGMENTATIONS:
        raise InputError(f"unknown recipe {recipe!r}: choose from {', '.join(AUGMENTATIONS)}")
    view = TrainingView(dataset, AUGMENTATIONS[recipe]())
    best = float("inf")
    for epoch in range(repeats):
        view.set_epoch(epoch)
        start = time.process_time()
        for index in range(count):
            view[index % len(view)]
        best = min(best, time.process_time() - start)
    return count / best
