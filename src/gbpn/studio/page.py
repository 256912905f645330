"""One page's conversation: requests in order, the newest measurements first, answers never out of turn."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np

from gbpn.engine.session import Session
from gbpn.errors import GbpnError, InputError
from gbpn.model.settling import trained_focal
from gbpn.predict import DepthCompleter
from gbpn.studio import answers, exports, material, protocol
from gbpn.studio.fields import Fields, Kept
from gbpn.studio.limits import Limits
from gbpn.studio.workers import AT_ONCE, REFINED, Workers

__all__ = ["Answer", "Page", "Send", "log"]

log = logging.getLogger("gbpn.studio")
Send = Callable[[Any], Awaitable[None]]
Answer = TypeVar("Answer")
_REPLACED_BY_NEWER = (protocol.SetPoints, protocol.TakePattern, protocol.Listen)
"""Of these, one that waits is dropped when the next one of its kind comes right behind it."""
_OPENING = (protocol.OpenScene, protocol.OpenUpload)


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
        self._told: answers.Points | None = None
        """The points whose whole answer was sent."""
        self.fields: Fields | None = None
        """Drawn and at hand, or given back to be drawn again; see `Kept`."""
        self._refining: asyncio.Task[None] | None = None
        self._waiting: deque[Any] = deque()
        self._news = asyncio.Event()

    async def receive(self, message: Any) -> None:
        """Put a message in line."""
        waiting = self._waiting
        if isinstance(message, _OPENING):
            waiting.clear()  # they were about what was open before; uploads are large, too
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
            trained_focal(self.completer.model.card),
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
        self._kept.drop(self)
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
        await self._use(number, lambda fields: None, AT_ONCE)  # drawn while the person is still looking

    async def _use(self, number: int, work: Callable[[Fields], Answer], urgency: int = REFINED) -> Answer:
        """`work` in a worker, on this page's fields; those that are not at hand are drawn there."""
        opened = self._opened()

        def job() -> tuple[Fields, Answer]:
            fields = self.fields
            if fields is None or fields.material is not opened:
                fields = Fields(self.completer, opened)
            return fields, work(fields)

        fields, answer = await self._run(number, job, urgency)
        if self._material is opened:
            self._kept.keep(self, fields)
        return answer

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
        self._points = points
        if not points.rows:
            return
        await self._send(await self._use(points.number, lambda fields: fields.quick(points), AT_ONCE))
        if not any(isinstance(message, _REPLACED_BY_NEWER[:2]) for message in self._waiting):
            self._refine()

    def _refine(self) -> None:
        """Start the whole answer for the present measurements, once no older one is under way."""
        if self._refining is None or self._refining.done():
            self._refining = asyncio.create_task(self._refine_until_told())

    async def _refine_until_told(self) -> None:
        while self._points.rows and self._told is not self._points:
            points = self._points
            await self._guarded(points.number, self._refine_once(points))
            if self._points is points:
                return

    async def _refine_once(self, points: answers.Points) -> None:
        maps = await self._use(points.number, lambda fields: fields.refined(points))
        if self._points is points:
            self._told = points
            await self._send(maps)

    async def _asked(self, number: int, work: Callable[[Session], Answer]) -> Answer:
        """`work` on a session with the whole answer for the present measurements, which the page has then."""
        points = self._points
        if points.rows and self._told is not points:
            self._refine()
            assert self._refining is not None
            await self._refining
        return await self._use(number, lambda fields: work(fields.session(points)))
