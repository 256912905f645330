"""A server on this machine, and a page's side of the conversation in Python."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import gbpn
from gbpn.studio import protocol
from gbpn.studio.limits import Limits
from gbpn.studio.run import Address, Server

ANSWER = 60.0
"""Seconds after which an answer is taken as lost."""


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
