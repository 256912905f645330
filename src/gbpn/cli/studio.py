"""`gbpn studio` and `gbpn serve`: the page to measure with, and the HTTP interface."""

from __future__ import annotations

from typing import Annotated

import typer

from gbpn.cli.how_options import USUAL, with_how
from gbpn.how import How

__all__ = ["Host", "Port", "Weights", "serve", "studio"]

Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")]
Host = Annotated[
    str, typer.Option(help="Address to listen on; beyond this machine, a token is printed with it.")
]
Weights = Annotated[str, typer.Option(help="Weights: name, file, folder or hub id.")]


@with_how("stream")
def studio(
    port: Port = 8765,
    host: Host = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the browser.")] = False,
    weights: Weights = "default",
    how: How = USUAL,
) -> None:
    """Open a page in the browser: click a photo, say how far that is, watch depth and doubt spread."""
    _serve(port, host, weights, how, page=True, browser=not no_browser)


@with_how("stream")
def serve(
    port: Port = 8765,
    host: Host = "127.0.0.1",
    weights: Weights = "default",
    how: How = USUAL,
) -> None:
    """Offer depth completion to other programs over HTTP; /openapi.json describes it."""
    _serve(port, host, weights, how, page=False, browser=False)


def _serve(port: int, host: str, weights: str, how: How, *, page: bool, browser: bool) -> None:
    from rich.console import Console

    from gbpn.cli.process_memory import keep_freed_memory
    from gbpn.jobs.opening import open_completer
    from gbpn.studio import run

    keep_freed_memory()
    server = run.Server(open_completer(weights, how), run.address(host, port), weights=weights, page=page)
    what = "studio" if page else "HTTP interface, described in openapi.json,"
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{what} at {server.address.url}  (stop with Ctrl+C)", markup=False)
    server.run(browser=browser)
