"""`gbpn demo`: the embedded scenes completed with the embedded weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gbpn.errors import GbpnError

__all__ = ["demo"]


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the page and its pictures.")
    ] = Path("gbpn-demo"),
    weights: Annotated[str, typer.Option(help="Weights: name, file, folder or hub id.")] = "default",
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
) -> None:
    """Complete the example scenes that come with gbpn at several sparsities, and write a page with them."""
    from rich.console import Console
    from rich.progress import track

    from gbpn.predict import DepthCompleter
    from gbpn.predict.demo import cases, run

    console = Console(highlight=False, soft_wrap=True)
    completer = DepthCompleter.from_pretrained(weights, device=device)
    lines = []
    try:
        for shown in track(
            run(completer, output),
            "completing",
            total=len(cases()),
            console=Console(stderr=True),
            transient=True,
        ):
            case = shown.case
            lines.append(
                f"{case.scene:12} {case.caption:38} {shown.points:6} points  RMSE {shown.rmse:7.3f} m  "
                f"(interpolation {shown.interpolated:7.3f} m)  {shown.seconds:5.2f} s"
            )
    except OSError as error:
        raise GbpnError(f"cannot write to {output}: {error.strerror or error}") from error
    for line in lines:
        console.print(line, markup=False)
    console.print(f"{len(lines)} pictures and a page: {output / 'index.html'}", markup=False)
    example = output / "example"
    console.print(
        f"next: gbpn complete {example / 'photo.jpg'} {example / 'depth.png'} --scale 1000 "
        f"--intrinsics {example / 'camera.txt'} -o out",
        markup=False,
    )
