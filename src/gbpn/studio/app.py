"""The application: the HTTP interface, and for the studio the page and its socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

import gbpn
from gbpn import scenes
from gbpn.errors import GbpnError
from gbpn.model.pipeline import has_exact_answer
from gbpn.predict import DepthCompleter
from gbpn.studio import api, exports, protocol
from gbpn.studio.fields import Kept
from gbpn.studio.guard import Guard
from gbpn.studio.limits import Limits
from gbpn.studio.page import Page
from gbpn.studio.site import static_folder
from gbpn.studio.workers import Workers

__all__ = ["make_app"]

_IDLE, _TOO_MANY, _BAD_FRAME = 4000, 4001, 4002
"""Why the server closes a socket, in the range that is left to applications."""
_MOST_BAD_FRAMES = 20
"""Frames of one connection that may be none before it is closed."""


def make_app(
    completer: DepthCompleter,
    *,
    weights: str = "default",
    page: bool = True,
    limits: Limits | None = None,
    hosts: tuple[str, ...] = (),
    token: str | None = None,
) -> FastAPI:
    """The application over one completer; `page` adds the studio to the HTTP interface."""
    completer.engine.require_single_frames()
    limits = limits or Limits()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        app.state.workers.close()

    app = FastAPI(
        title="gbpn",
        version=gbpn.__version__,
        description="Depth completion with uncertainty: a picture and a few measurements in, metres out.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.completer, app.state.limits, app.state.pages = completer, limits, 0
    app.state.weights, app.state.workers = weights, Workers(limits.workers)
    app.state.kept = Kept(limits.kept_pixels)
    app.include_router(api.router)
    app.add_exception_handler(GbpnError, _tell)
    app.add_middleware(Guard, hosts=hosts, token=token, upload_bytes=limits.upload_bytes)
    if page:
        app.add_api_websocket_route("/socket", _converse)
        app.mount("/", StaticFiles(directory=static_folder(), html=True))
    return app


async def _tell(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status_code=422)


async def _converse(socket: WebSocket) -> None:
    """One page from its first message to its last."""
    state = socket.app.state
    limits: Limits = state.limits
    await socket.accept()
    if state.pages >= limits.pages:
        await socket.close(_TOO_MANY, f"{state.pages} pages are open already: close one, or try again later")
        return
    state.pages += 1
    sending = asyncio.Lock()

    async def send(message: Any) -> None:
        async with sending:
            try:
                await socket.send_bytes(protocol.encode(message))
            except (RuntimeError, WebSocketDisconnect) as error:  # what starlette says once the page has gone
                raise ConnectionError(str(error)) from error

    page = Page(state.completer, state.weights, state.workers, state.kept, limits, send)
    worker = asyncio.create_task(page.work())
    try:
        await send(_welcome(state))
        await _listen(socket, page, send, limits)
    except (WebSocketDisconnect, ConnectionError):
        pass
    finally:
        state.pages -= 1
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await worker


async def _listen(socket: WebSocket, page: Page, send: Any, limits: Limits) -> None:
    bad = 0
    while True:
        try:
            event = await asyncio.wait_for(socket.receive(), limits.idle_seconds)
        except asyncio.TimeoutError:
            await socket.close(_IDLE, "nothing happened for a while: reload to go on")
            return
        if event["type"] == "websocket.disconnect":
            return
        try:
            message = protocol.decode(event.get("bytes") or b"")
        except protocol.ProtocolError as error:
            bad += 1
            await send(protocol.Failed(reply=0, message=str(error)))
            if bad >= _MOST_BAD_FRAMES:
                await socket.close(_BAD_FRAME, "too many frames that are none")
                return
            continue
        await page.receive(message)


def _welcome(state: Any) -> protocol.Welcome:
    model = state.completer.model
    return protocol.Welcome(
        protocol=protocol.VERSION,
        version=gbpn.__version__,
        model=model.config.name,
        stages=model.config.stages,
        has_std=model.calibration is not None,
        has_exact=has_exact_answer(model.config),
        learned_edges=model.config.nonlocal_edges > 0,
        scenes=scenes.names(),
        exports=list(exports.EXPORTS),
        most_points=state.limits.points,
        upload_bytes=state.limits.upload_bytes,
        offers=list(protocol.OFFERS),
    )
