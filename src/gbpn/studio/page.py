"""One page's conversation: requests in order, the newest measurements first, answers never out of turn."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np

from gbpn.errors import GbpnError, InputError
from gbpn.predict import DepthCompleter
from gbpn.predict.session import Session
from gbpn.studio import answers, exports, material, protocol
from gbpn.studio.limits import Limits
from gbpn.studio.workers import AT_ONCE, REFINED, Workers

__all__ = ["Answer", "Kept", "Page", "Send", "log"]

log = logging.getLogger("gbpn.studio")
Send = Callable[[Any], Awaitable[None]]
Answer = TypeVar("Answer")
_REPLACED_BY_NEWER = (protocol.SetPoints, protocol.TakePattern, protocol.Listen)
"""Of these, one that waits is dropped when the next one of its kind comes right behind it."""


class Kept:
    """Which pages have their fields in memory: the most recently used ones."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._pages: OrderedDict[Page, None] = OrderedDict()

    def use(self, page: Page) -> None:
        self._pages[page] = None
        self._pages.move_to_end(page)
        while len(self._pages) > self.most:
            oldest, _ = self._pages.popitem(last=False)
            oldest.forget()

    def drop(self, page: Page) -> None:
        self._pages.pop(page, None)


class Page:
    """State behind one socket. `receive` takes messages, `work` answers them until it is cancelled."""

    def __init__(
        self,
        completer: DepthCompleter,
        weights: str,
        workers: Workers,
        kept: Kept,
        limits: Limits,
        send: Send,
    ) -> None:
        self.completer, self.weights, self.limits = completer, weights, limits
        self._workers, self._kept, self._send = workers, kept, send
        self._material: material.Material | None = None
        self._points = answers.Points(number=0, rows=())
        self._session: Session | None = None
        """Follows the measurements at once, first stage only."""
        self._refined: Session | None = None
        """A copy with the whole answer for `_points`; None while that is outstanding."""
        self._start: Session | None = None
        """A copy that nobody changes, from which the whole answer sets out."""
        self._refining: asyncio.Task[None] | None = None
        self._waiting: deque[Any] = deque()
        self._news = asyncio.Event()

    def forget(self) -> None:
        """Give the memory back; the fields are drawn again when they are needed."""
        self._session = self._refined = self._start = None

    async def receive(self, message: Any) -> None:
        """Put a message in line."""
        waiting = self._waiting
        if waiting and isinstance(message, _REPLACED_BY_NEWER) and type(waiting[-1]) is type(message):
            waiting.pop()
        if len(waiting) >= self.limits.waiting:
            text = f"{len(waiting)} requests are waiting already: wait for their answers"
            await self._send(protocol.Failed(reply=message.id, message=text))
            return
        waiting.append(message)
        self._news.set()

    async def work(self) -> None:
        """Answer messages one after the other."""
        try:
            while True:
                while not self._waiting:
                    self._news.clear()
                    await self._news.wait()
                message = self._waiting.popleft()
                await self._guarded(message.id, self._answer(message))
        finally:
            if self._refining is not None:
                self._refining.cancel()
            self._kept.drop(self)
            self.forget()

    async def _guarded(self, number: int, work: Awaitable[None]) -> None:
        """What goes wrong is told; it does not end the conversation."""
        try:
            await work
        except GbpnError as error:
            await self._send(protocol.Failed(reply=number, message=str(error)))
        except MemoryError:
            await self._send(
                protocol.Failed(reply=number, message="not enough memory: use a smaller picture")
            )
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            log.exception("an answer failed")
            text = "this went wrong inside the server; its log says where. What you did before is kept."
            await self._send(protocol.Failed(reply=number, message=text))

    async def _answer(self, message: Any) -> None:
        if isinstance(message, protocol.OpenScene):
            await self._open(message.id, lambda: material.from_scene(message.name))
        elif isinstance(message, protocol.OpenUpload):
            await self._open(message.id, lambda: self._decoded(message))
        elif isinstance(message, protocol.SetPoints):
            await self._set(answers.read_points(message, self._opened(), self.limits))
        elif isinstance(message, protocol.TakePattern):
            await self._take(message)
        elif isinstance(message, protocol.Film):
            for still in await self._asked(message.id, lambda session: answers.filmed(session, message)):
                await self._send(still)
        else:
            await self._send(await self._asked(message.id, lambda session: self._about(session, message)))

    def _about(self, session: Session, message: Any) -> Any:
        """Answers that need nothing but the session."""
        if isinstance(message, protocol.Suggest):
            return answers.suggested(session, message)
        if isinstance(message, protocol.Listen):
            return answers.listened(session, message)
        if isinstance(message, protocol.Compare):
            return answers.compared(session, message)
        if isinstance(message, protocol.FindOutliers):
            return answers.outliers(session, message)
        name, media_type, content = exports.make(message.what, session, self._opened(), self.weights)
        return protocol.File(
            reply=message.id, name=name, media_type=media_type, content=np.frombuffer(content, np.uint8)
        )

    def _decoded(self, message: protocol.OpenUpload) -> material.Material:
        return material.from_upload(
            message.name,
            message.picture.tobytes(),
            None if message.depth is None else message.depth.tobytes(),
            message.depth_type,
            message.scale or None,
            message.camera,
            self.limits,
            camera_file=None if message.camera_file is None else message.camera_file.tobytes(),
            camera_type=message.camera_type,
        )

    def _opened(self) -> material.Material:
        if self._material is None:
            raise InputError("no picture is open: open a scene or a picture first")
        return self._material

    async def _run(self, number: int, work: Callable[[], Answer], urgency: int = REFINED) -> Answer:
        async def told(ahead: int) -> None:
            await self._send(protocol.Waiting(reply=number, ahead=ahead))

        return await self._workers.run(work, urgency, told)

    async def _open(self, number: int, read: Callable[[], material.Material]) -> None:
        opened = await self._run(number, read)
        self.forget()
        self._material, self._points = opened, answers.Points(number=number, rows=())
        await self._send(
            protocol.Opened(
                reply=number,
                name=opened.name,
                intrinsics=list(opened.intrinsics),
                notices=list(opened.notices),
                picture=opened.image,
                truth=opened.truth,
                x=opened.points[:, 0],
                y=opened.points[:, 1],
                depth=opened.points[:, 2],
            )
        )
        await self._drawn(number)  # while the person is still looking

    async def _drawn(self, number: int) -> Session:
        """The session that follows the measurements, drawn if it is not there."""
        opened = self._opened()
        session = self._session
        if session is None:
            session = await self._run(number, lambda: answers.draw(self.completer, opened), AT_ONCE)
            self._session, self._start = session, session.copy()
        self._kept.use(self)
        return session

    async def _take(self, message: protocol.TakePattern) -> None:
        opened = self._opened()
        found = await self._run(
            message.id,
            lambda: answers.take(opened, message.pattern, message.count, message.seed, self.limits),
            AT_ONCE,
        )
        x, y = found[:, 0].astype(np.int32), found[:, 1].astype(np.int32)
        await self._send(protocol.Taken(reply=message.id, x=x, y=y, depth=found[:, 2]))
        zero = np.zeros(len(found), np.float32)
        points = protocol.SetPoints(id=message.id, x=x, y=y, depth=found[:, 2], std=zero)
        await self._set(answers.read_points(points, opened, self.limits))

    async def _set(self, points: answers.Points) -> None:
        """The first stage's answer now, the whole one when nothing newer waits."""
        self._points, self._refined = points, None
        session = await self._drawn(points.number)
        if not points.rows:
            return
        maps = await self._run(points.number, lambda: answers.quick(session, points), AT_ONCE)
        if self._session is session:
            self._start = session.copy()
        await self._send(maps)
        if not any(isinstance(message, _REPLACED_BY_NEWER[:2]) for message in self._waiting):
            self._refine()

    def _refine(self) -> None:
        """Start the whole answer for the present measurements, once no older one is under way."""
        if self._refining is None or self._refining.done():
            self._refining = asyncio.create_task(self._refine_until_fresh())

    async def _refine_until_fresh(self) -> None:
        while self._refined is None and self._points.rows:
            points = self._points
            await self._guarded(points.number, self._refine_once(points))
            if self._points is points:
                return

    async def _refine_once(self, points: answers.Points) -> None:
        if self._start is None:
            await self._drawn(points.number)
        assert self._start is not None
        session = self._start.copy()
        maps = await self._run(points.number, lambda: answers.refined(session, points))
        if self._points is points:
            self._refined = session
            await self._send(maps)

    async def _asked(self, number: int, work: Callable[[Session], Answer]) -> Answer:
        """`work` on a session with the whole answer for the present measurements."""
        self._opened()
        if not self._points.rows:
            await self._drawn(number)
            assert self._start is not None
            session = self._start.copy()
            answers.follow(session, self._points)
        else:
            if self._refined is None:
                self._refine()
                assert self._refining is not None
                await self._refining
            if self._refined is None:
                raise InputError("there is no answer for these points yet: try again")
            session = self._refined
            self._kept.use(self)
        return await self._run(number, lambda: work(session))
