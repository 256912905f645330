"""A server on this machine, and a page's side of the conversation in Python."""

from __future__ import annotations

import io
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from PIL import Image

import gbpn
from gbpn.engine.session import Session
from gbpn.studio import protocol
from gbpn.studio.limits import Limits
from gbpn.studio.run import Address, Server

ANSWER = 60.0
"""Seconds after which an answer is taken as lost."""
TABLE = [[60, 30, 2.5, 0.0], [20, 50, 1.5, 0.25], [80, 10, 4.0, 0.0]]
MORE = [*TABLE, [10, 10, 3.0, 0.0]]
CAMERA = [80.0, 80.0, 47.5, 31.5]
PIXELS = 64 * 96


@contextmanager
def running(
    completer: gbpn.DepthCompleter,
    *,
    page: bool = True,
    token: str | None = None,
    limits: Limits | None = None,
    weights: str = "default",
) -> Iterator[Server]:
    """A server in a thread of its own, which must not log an error."""
    where = Address(host="127.0.0.1", port=0, token=token)
    server = Server(completer, where, page=page, limits=limits, weights=weights)
    thread = threading.Thread(target=server.run)
    errors = _Errors(logging.ERROR)
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "gbpn.studio", "asyncio")]
    for logger in loggers:
        logger.addHandler(errors)
    thread.start()
    try:
        while not server._server.started:
            time.sleep(0.01)
        yield server
    finally:
        server.stop()
        thread.join()
        for logger in loggers:
            logger.removeHandler(errors)
    assert not errors.texts, errors.texts[0]


class _Errors(logging.Handler):
    """What was logged as an error."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(logging.Formatter().format(record))


class Client:
    """What the page does, over a real socket."""

    def __init__(self, address: Address, **options: Any) -> None:
        from websockets.sync.client import connect

        query = f"?token={address.token}" if address.token else ""
        url = f"ws://{address.host}:{address.port}/socket{query}"
        self._connection = connect(url, max_size=None, compression=None, **options)
        self.socket = self._connection.__enter__()
        self.numbers = itertools.count(1)
        self.welcome = self.receive()

    def receive(self) -> Any:
        return protocol.decode(self.socket.recv(timeout=ANSWER), protocol.FROM_SERVER)

    def send(self, kind: Callable[..., Any], **fields: Any) -> int:
        number = next(self.numbers)
        self.socket.send(protocol.encode(kind(id=number, **fields)))
        return number

    def ask(self, kind: Callable[..., Any], until: Callable[[Any], bool] | None = None, **fields: Any) -> Any:
        """The answer to one message; those that come in between are left out."""
        number = self.send(kind, **fields)
        return self.answer(number, until)

    def answer(self, number: int, until: Callable[[Any], bool] | None = None) -> Any:
        while True:
            message = self.receive()
            waiting = isinstance(message, protocol.Waiting)
            if not waiting and message.reply == number and (until is None or until(message)):
                return message

    def points(self, table: Any, stage: str = "last") -> protocol.Maps:
        """Set points [[x, y, depth, std], …] and wait for the answer of a stage."""
        x, y, depth, std = np.array(table, np.float32).T
        return self.ask(
            protocol.SetPoints,
            lambda message: isinstance(message, protocol.Failed) or message.stage == stage,
            x=x, y=y, depth=depth, std=std,
        )  # fmt: skip

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.__exit__(None, None, None)


def small(seed: int = 0) -> np.ndarray:
    """A picture [64, 96, 3] that takes no time."""
    return np.random.default_rng(seed).integers(0, 256, (64, 96, 3), dtype=np.uint8)


def png(image: np.ndarray) -> np.ndarray:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG")
    return np.frombuffer(buffer.getvalue(), np.uint8)


def session_of(thin: gbpn.DepthCompleter, table: list[list[float]], seed: int = 0) -> Session:
    session = thin.session(small(seed), CAMERA)
    x, y, depth, std = np.array(table, np.float32).T
    session.add(x, y, depth, std)
    return session


def opened(server: Server, seed: int = 0) -> Client:
    """A client that has dropped a small picture."""
    client = Client(server.address)
    message = client.ask(
        protocol.OpenUpload,
        name="small.png",
        depth_type="",
        scale=0.0,
        camera=CAMERA,
        camera_type="",
        picture=png(small(seed)),
    )
    assert isinstance(message, protocol.Opened), message
    return client
