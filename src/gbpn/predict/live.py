"""A loop for robots: images and measurements come when they come, the answer is always of the newest pair."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from PIL import Image

from gbpn.answer.completed import CompletedDepth
from gbpn.errors import GbpnError, InputError
from gbpn.files.guard import shown
from gbpn.inputs.clouds import as_transform, cloud_inputs
from gbpn.inputs.frame import FrameInputs
from gbpn.inputs.reading import frame_inputs
from gbpn.predict.completer import DepthCompleter

__all__ = ["Live", "LiveAnswer"]

_WAITING_IMAGES, _WAITING_MEASUREMENTS = 8, 16
"""How many are kept until their counterpart comes; older ones are dropped."""
_RATE_OVER = 20
"""Answers over which the rate is counted."""


@dataclass(frozen=True, kw_only=True)
class LiveAnswer:
    """The depth of one pair, and how it came."""

    result: CompletedDepth
    """All of it; `depth`, `sigma` and `confidence` are short for its maps."""
    stamp: float
    """Time of the image, seconds, as it was pushed."""
    apart: float
    """Seconds between the image and its measurements."""
    latency: float
    """Seconds from the push of the later of the two to the answer."""
    rate: float
    """Answers per second over the last ones; 0 for the first."""
    number: int
    """Which answer it is, from 1 on."""
    dropped: int
    """Images so far that got no answer: newer ones were there, or they came late."""
    pushed: float = field(repr=False)
    """When the image came, by the clock of `time.monotonic`."""

    @property
    def depth(self) -> np.ndarray:
        """[H, W] metres."""
        return self.result.depth

    @property
    def sigma(self) -> np.ndarray | None:
        """[H, W] standard deviation in metres; None if the weights have no calibration."""
        return self.result.std if self.result.calibrated else None

    @property
    def confidence(self) -> np.ndarray:
        """[H, W] in [0, 1)."""
        return self.result.confidence

    @property
    def age(self) -> float:
        """Seconds since the image was pushed, now."""
        return time.monotonic() - self.pushed


@dataclass(frozen=True, kw_only=True)
class _Item:
    """An image or its measurements, waiting."""

    content: Any
    stamp: float
    pushed: float
    cloud: bool = False
    prior: Any = None
    """Of an image: another network's depth map."""


class Live:
    """Push images and clouds from any thread; one worker completes the newest pair, again and again.

    >>> with gbpn.Live(completer, intrinsics=(600, 600, 320, 240), transform=T) as live:
    ...     live.push_image(image, stamp)   # from the camera's thread
    ...     live.push_cloud(points, stamp)  # from the scanner's thread
    ...     answer = live.wait(1.0)         # from anywhere; `live.latest` does not wait

    An image is paired with the measurements nearest in time, at most `tolerance` seconds apart. While one
    pair is being completed, others arrive: the newest one is next, and those that were passed over are
    counted in `dropped`. Images older than the last answer are dropped too. Memory does not grow.
    """

    def __init__(
        self,
        completer: DepthCompleter,
        intrinsics: Any = None,
        transform: Any = None,
        *,
        tolerance: float = 0.05,
        scale: float | None = None,
        sigmas: bool = True,
    ) -> None:
        """
        intrinsics  of the camera, as `DepthCompleter` takes them; a file's lens is undistorted
        transform   [4, 4], clouds → camera (x right, y down, z ahead)
        tolerance   seconds between an image and its measurements
        scale       what integer depth maps are divided by
        sigmas      whether σ is computed with each answer
        """
        if not tolerance >= 0:
            raise InputError(f"tolerance must be seconds, at least 0; got {tolerance}")
        completer.engine.require_single_frames()
        self.completer, self.intrinsics, self.transform = completer, intrinsics, as_transform(transform)
        self.tolerance, self.scale, self.sigmas = tolerance, scale, sigmas
        self._changed = threading.Condition()
        self._images: deque[_Item] = deque()
        self._measurements: deque[_Item] = deque(maxlen=_WAITING_MEASUREMENTS)
        self._answer: LiveAnswer | None = None
        self._last_stamp = float("-inf")
        self._ends: deque[float] = deque(maxlen=_RATE_OVER)
        self._dropped = self._failed = self._count = 0
        self._problem: str | None = None
        self._fault: Exception | None = None
        self._closed = False
        self._worker = threading.Thread(target=self._work, name="gbpn-live", daemon=True)
        self._worker.start()

    def push_image(self, image: Any, stamp: float | None = None, *, prior: Any = None) -> None:
        """An image, as `DepthCompleter` takes it; `stamp` in seconds, now if it is None; `prior`: another
        network's depth map of it."""
        item = self._item(image, stamp, prior=prior)
        with self._changed:
            self._require_open()
            if item.stamp <= self._last_stamp:
                self._dropped += 1  # an answer for a later time is out already
                return
            self._images.append(item)
            if len(self._images) > _WAITING_IMAGES:
                self._images.popleft()
                self._dropped += 1
            self._changed.notify_all()

    def push_cloud(self, points: Any, stamp: float | None = None) -> None:
        """Points [N, 3] of a scanner, metres in its own coordinates; see `transform`."""
        self._push_measurements(self._item(points, stamp, cloud=True))

    def push_depth(self, sparse: Any, stamp: float | None = None) -> None:
        """A sparse depth map of the image's size or points x, y, depth, as `DepthCompleter` takes them."""
        self._push_measurements(self._item(sparse, stamp))

    @property
    def latest(self) -> LiveAnswer | None:
        """The newest answer there is, without waiting; None before the first."""
        with self._changed:
            self._raise_fault()
            return self._answer

    def wait(self, timeout: float | None = None, *, after: int | None = None) -> LiveAnswer | None:
        """The next answer after number `after` (by default: after the newest there is), or None in time."""
        with self._changed:
            known = self._count if after is None else after
            self._changed.wait_for(lambda: self._count > known or self._fault or self._closed, timeout)
            self._raise_fault()
            return self._answer if self._count > known else None

    @property
    def dropped(self) -> int:
        """Images that got no answer so far."""
        with self._changed:
            return self._dropped

    @property
    def failed(self) -> int:
        """Pairs that could not be completed so far; `problem` says what was wrong with the last of them."""
        with self._changed:
            return self._failed

    @property
    def problem(self) -> str | None:
        """What was wrong with the last pair that could not be completed; None if nothing ever was."""
        with self._changed:
            return self._problem

    def close(self) -> None:
        """End the worker after the pair it is at."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._worker.join()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _item(self, content: Any, stamp: float | None, *, cloud: bool = False, prior: Any = None) -> _Item:
        now = time.monotonic()
        seconds = now if stamp is None else _seconds(stamp)
        return _Item(content=_own(content), stamp=seconds, pushed=now, cloud=cloud, prior=_own(prior))

    def _push_measurements(self, item: _Item) -> None:
        with self._changed:
            self._require_open()
            self._measurements.append(item)
            self._changed.notify_all()

    def _require_open(self) -> None:
        self._raise_fault()
        if self._closed:
            raise InputError("this loop is closed: make a new gbpn.Live")

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise self._fault

    def _work(self) -> None:
        while True:
            with self._changed:
                pair = self._next()
                while pair is None and not self._closed:
                    self._changed.wait()
                    pair = self._next()
                if self._closed:
                    return
            assert pair is not None
            self._complete(*pair)

    def _next(self) -> tuple[_Item, _Item] | None:
        """Take the newest image that has measurements; older images are dropped, newer ones go on waiting."""
        for place in range(len(self._images) - 1, -1, -1):
            image = self._images[place]
            near = min(self._measurements, key=lambda item: abs(item.stamp - image.stamp), default=None)
            if near is None or abs(near.stamp - image.stamp) > self.tolerance:
                continue
            for _ in range(place):
                self._images.popleft()
                self._dropped += 1
            self._images.popleft()
            self._last_stamp = max(self._last_stamp, image.stamp)
            return image, near
        return None

    def _complete(self, image: _Item, measurements: _Item) -> None:
        try:
            result = self.completer.complete(self._inputs(image, measurements), sigmas=self.sigmas)
        except GbpnError as error:  # one bad pair does not end the loop
            with self._changed:
                self._failed, self._problem = self._failed + 1, str(error)
            return
        except Exception as error:  # told to whoever calls next, instead of a worker that is silently gone
            with self._changed:
                self._fault = error
                self._changed.notify_all()
            return
        now = time.monotonic()
        with self._changed:
            self._ends.append(now)
            span = self._ends[-1] - self._ends[0]
            self._count += 1
            self._answer = LiveAnswer(
                result=result,
                stamp=image.stamp,
                apart=abs(image.stamp - measurements.stamp),
                latency=now - max(image.pushed, measurements.pushed),
                rate=(len(self._ends) - 1) / span if span > 0 else 0.0,
                number=self._count,
                dropped=self._dropped,
                pushed=image.pushed,
            )
            self._changed.notify_all()

    def _inputs(self, image: _Item, measurements: _Item) -> FrameInputs:
        if measurements.cloud:
            return cloud_inputs(
                image.content, measurements.content, self.intrinsics, self.transform, image.prior
            )
        return frame_inputs(
            image.content, measurements.content, self.intrinsics, self.scale, prior=image.prior
        )


def _own(content: Any) -> Any:
    """A copy of what a driver may write over while it waits; a path stays a path."""
    if isinstance(content, torch.Tensor):
        return content.clone()
    return content.copy() if isinstance(content, np.ndarray | Image.Image) else deepcopy(content)


def _seconds(stamp: Any) -> float:
    """A time that can be compared: NaN is near everything, and nothing comes after infinity."""
    try:
        seconds = float(stamp)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not math.isfinite(seconds):
        raise InputError(f"a stamp must be finite seconds, or None for now; got {shown(stamp)}")
    return seconds
