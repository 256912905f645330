"""`gbpn studio` and `gbpn serve`: the page to measure with, and the HTTP interface."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from gbpn.cli.arguments import option_of
from gbpn.cli.how_options import USUAL, with_how
from gbpn.errors import InputError
from gbpn.how import How

__all__ = ["Host", "Port", "Weights", "serve", "studio"]

Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")]
Host = Annotated[
    str, typer.Option(help="Address to listen on; beyond this machine, a token is printed with it.")
]
Weights = Annotated[str, typer.Option(help="Weights: name, file, folder or hub id.")]

_PORT, _HOST = 8765, "127.0.0.1"


@with_how("stream")
def studio(
    port: Port = _PORT,
    host: Host = _HOST,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the browser.")] = False,
    weights: Weights = "default",
    static: Annotated[
        Path | None,
        typer.Option(
            help="Write the studio as files for any static host into this folder instead: the page then "
            "computes in the visitor's browser."
        ),
    ] = None,
    how: How = USUAL,
) -> None:
    """Open a page in the browser: click a photo, say how far that is, watch depth and doubt spread."""
    if static is not None:
        served = {"--port": port != _PORT, "--host": host != _HOST, "--no-browser": no_browser}
        _write(static, weights, how, [option for option, given in served.items() if given])
        return
    _serve(port, host, weights, how, page=True, browser=not no_browser)


@with_how("stream")
def serve(
    port: Port = _PORT,
    host: Host = _HOST,
    weights: Weights = "default",
    how: How = USUAL,
) -> None:
    """Offer depth completion to other programs over HTTP; /openapi.json describes it."""
    _serve(port, host, weights, how, page=False, browser=False)


def _write(folder: Path, weights: str, how: How, refused: list[str]) -> None:
    """The site; `refused` are options that files cannot obey, besides those of `how`."""
    unusual = [one for one in fields(How) if getattr(how, one.name) != getattr(USUAL, one.name)]
    refused = refused + [option_of(one) for one in unusual]
    if refused:
        raise InputError(
            f"--static writes files that compute in the browser, as usual: it cannot obey {refused[0]}; "
            "leave it out"
        )
    from rich.console import Console

    from gbpn.studio.site import write_site

    console = Console(highlight=False, soft_wrap=True)
    written = write_site(folder, weights, lambda text: console.print(f"{text} …", markup=False))
    size = sum(path.stat().st_size for path in written)
    console.print(
        f"{len(written)} files, {size / 1e6:.1f} MB, in {folder}: put the folder on any web server; "
        f"here: python -m http.server -d {folder}",
        markup=False,
    )


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
