"""`gbpn export`: a model as ONNX files for other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gbpn.cli.options import WEIGHTS
from gbpn.errors import InputError

__all__ = ["export"]


def export(
    weights: Annotated[str, typer.Argument(help=WEIGHTS)] = "default",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("exported"),
    form: Annotated[
        str,
        typer.Option(help="runtime: networks for gbpn.runtime; pure: one file of standard ONNX operators."),
    ] = "runtime",
    size: Annotated[
        str, typer.Option(help="HxW of the images it will see, such as 256x320, or dynamic.")
    ] = "dynamic",
    precision: Annotated[
        str,
        typer.Option(
            help="Stored weights: float32; float24 for three quarters of the size, with answers alike; "
            "bfloat16 or float16 for half. OpenVINO then computes bfloat16 as such."
        ),
    ] = "float32",
) -> None:
    """Write a model for other runtimes: ONNX files and a manifest with configuration and checksums."""
    from gbpn.export import export as write
    from gbpn.model.loading import load

    model = load(weights)
    for path in write(model, output, form=form, size=_size(size), precision=precision):
        typer.echo(f"{path}  {path.stat().st_size / 1e6:.1f} MB")


def _size(text: str) -> tuple[int, int] | None:
    """ "HxW", or None for "dynamic"."""
    if text == "dynamic":
        return None
    try:
        height, width = (int(word) for word in text.lower().replace("×", "x").split("x"))
    except ValueError:
        raise InputError(f"--size wants HxW such as 256x320, or dynamic; got {text!r}") from None
    return height, width
