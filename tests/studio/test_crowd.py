"""Many pages at once: who waits is told, who sleeps is let go, and memory is bounded."""

from __future__ import annotations

import asyncio
import time
import weakref
from typing import Any

import numpy as np
import pytest
from talking import PIXELS, TABLE, Client, opened, png, running, session_of, small

import gbpn
from gbpn import scenes
from gbpn.engine.session import Session
from gbpn.model.pipeline import ImageEncoding
from gbpn.studio import answers, protocol
from gbpn.studio.fields import Kept
from gbpn.studio.limits import Limits
from gbpn.studio.page import Page
from gbpn.studio.workers import Workers


def test_pages_that_are_not_kept_are_drawn_again(thin: gbpn.DepthCompleter) -> None:
    limits = Limits(kept_pixels=PIXELS, workers=1)
    with running(thin, limits=limits) as own, opened(own) as one, opened(own, 1) as two:
        for _ in range(2):
            np.testing.assert_array_equal(one.points(TABLE).depth, session_of(thin, TABLE).depth)
            np.testing.assert_array_equal(two.points(TABLE).depth, session_of(thin, TABLE, 1).depth)
        assert len(own.app.state.kept._holders) == 1


def test_fields_are_held_by_kept_pages_and_running_computations_only(
    thin: gbpn.DepthCompleter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many pages ask at once: what waits holds no field."""
    alive: weakref.WeakSet[ImageEncoding] = weakref.WeakSet()
    most: list[int] = []
    draw = answers.draw

    def counted(*arguments: Any) -> Session:
        session = draw(*arguments)
        alive.add(session._looks[0])
        most.append(len(alive))
        return session

    monkeypatch.setattr(answers, "draw", counted)
    pages, kept, workers = 12, 2, 2
    with running(thin, limits=Limits(kept_pixels=kept * PIXELS, workers=workers)) as own:
        clients = [opened(own, seed) for seed in range(pages)]
        x, y, depth, std = np.array(TABLE, np.float32).T
        asked = [client.send(protocol.SetPoints, x=x, y=y, depth=depth, std=std) for client in clients]
        for seed, (client, number) in enumerate(zip(clients, asked, strict=True)):
            refined = client.answer(number, lambda one: one.stage == "last")
            np.testing.assert_array_equal(refined.depth, session_of(thin, TABLE, seed).depth)
        asked = [client.send(protocol.Film) for client in clients]
        for client, number in zip(clients, asked, strict=True):
            client.answer(number, lambda one: one.number == one.count - 1)
            client.__exit__()
    assert len(most) > 2 * pages  # drawn again for nearly every question
    assert max(most) <= kept + workers


def test_what_waits_is_forgotten_when_another_picture_is_opened(thin: gbpn.DepthCompleter) -> None:
    """Uploads are large: of one page, a single one waits."""

    async def waiting() -> list[Any]:
        async def send(message: Any) -> None:
            raise AssertionError(message)

        workers = Workers(1)
        page = Page(thin, "default", workers, Kept(PIXELS), Limits(), send)
        upload = {"name": "x", "depth_type": "", "scale": 0.0, "camera": [], "camera_type": ""}
        for number in range(40):
            await page.receive(protocol.OpenUpload(id=number, picture=png(small()), **upload))
            await page.receive(protocol.Suggest(id=number, count=1))
        workers.close()
        return list(page._waiting)

    assert [(type(one), one.id) for one in asyncio.run(waiting())] == [
        (protocol.OpenUpload, 39),
        (protocol.Suggest, 39),
    ]


def test_those_who_wait_are_told(thin: gbpn.DepthCompleter) -> None:
    with running(thin, limits=Limits(workers=1)) as own:
        clients = [opened(own) for _ in range(4)]
        for client in clients:
            client.points(TABLE)
        numbers = [client.send(protocol.Film) for client in clients]
        told = []
        for client, number in zip(clients, numbers, strict=True):
            message = client.receive()
            if isinstance(message, protocol.Waiting):
                told.append(message.ahead)
            client.answer(number, lambda one: one.number == one.count - 1)  # unread ones would delay its end
            client.__exit__()
    assert told
    assert min(told) >= 1


def test_idle_pages_end_and_too_many_are_refused(thin: gbpn.DepthCompleter) -> None:
    with running(thin, limits=Limits(pages=1, idle_seconds=0.5)) as own:
        with Client(own.address) as one:
            with pytest.raises(Exception, match="4001"):
                Client(own.address)
            start = time.monotonic()
            with pytest.raises(Exception, match="4000"):
                one.receive()
            assert time.monotonic() - start < 10
        with Client(own.address) as again:
            assert again.welcome.scenes == scenes.names()
