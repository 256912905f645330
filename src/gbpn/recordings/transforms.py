"""The tree of coordinate frames that a recording tells of, and the way from one to another.

Between two moments at which a transform was told, it is interpolated. What was measured at one moment and is
seen at another goes through the frame on top of the tree, `odom` or `map`, if both hang below one: a scan is
then where the world is, though the robot has moved on until the picture.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

import numpy as np

from gbpn.errors import DatasetError
from gbpn.files.guard import shown

__all__ = ["TransformTree"]


class TransformTree:
    """Transforms between frames, each as often as it was told."""

    def __init__(self, remembered: int | None = None) -> None:
        """`remembered`: nanoseconds for which what was told is kept; None: for good."""
        self._remembered = remembered
        self._edges: dict[tuple[str, str], list[tuple[int, np.ndarray]]] = {}
        """(parent, child) → (time, child's coordinates → parent's), in order of time."""

    def add(self, parent: str, child: str, matrix: np.ndarray, time: int) -> None:
        """`matrix` [4, 4] takes coordinates of `child` to those of `parent`; time in nanoseconds."""
        told = self._edges.setdefault((_plain(parent), _plain(child)), [])
        place = (
            bisect_left([moment for moment, _ in told], time) if told and told[-1][0] > time else len(told)
        )
        told.insert(place, (time, matrix))
        while self._remembered is not None and len(told) > 1 and told[0][0] < told[-1][0] - self._remembered:
            del told[0]

    def forget_motion(self) -> None:
        """Keep what never changed, as of mountings: time starts again."""
        self._edges = {
            edge: told[:1]
            for edge, told in self._edges.items()
            if all(np.array_equal(told[0][1], matrix) for _, matrix in told)
        }

    @property
    def frames(self) -> list[str]:
        """Names of all frames."""
        return sorted({name for edge in self._edges for name in edge})

    @property
    def moving(self) -> bool:
        """Whether any transform changes."""
        return any(not np.array_equal(told[0][1], told[-1][1]) for told in self._edges.values())

    def between(self, source: str, target: str, time: int, source_time: int | None = None) -> np.ndarray:
        """[4, 4]: coordinates in frame `source` → coordinates in frame `target`, as of `time`.

        source_time  when what lies in `source` was measured, if not at `time`
        """
        start, end = _plain(source), _plain(target)
        if source_time is not None and source_time != time and (top := self._top(start)) == self._top(end):
            seen = self.between(end, top, time)
            return np.asarray(np.linalg.inv(seen) @ self.between(start, top, source_time))
        came: dict[str, tuple[str, np.ndarray]] = {start: (start, np.eye(4))}
        waiting = deque([start])
        while waiting and end not in came:
            here = waiting.popleft()
            for other, matrix in self._neighbours(here, time):
                if other not in came:
                    came[other] = (here, matrix)
                    waiting.append(other)
        if end not in came:
            known = ", ".join(self.frames) or "none"
            raise DatasetError(
                f"no transform leads from {shown(start)!r} to {shown(end)!r}; frames there are: "
                f"{shown(known)}: "
                "name the topics of the transforms with --tf, or give --extrinsics"
            )
        out, here = np.eye(4), end
        while here != start:
            here, matrix = came[here]
            out = out @ matrix
        return out

    def _top(self, frame: str) -> str:
        """The frame that stands above all others over this one."""
        above = {child: parent for parent, child in self._edges}
        seen = {frame}
        while frame in above and above[frame] not in seen:
            frame = above[frame]
            seen.add(frame)
        return frame

    def _neighbours(self, frame: str, time: int) -> list[tuple[str, np.ndarray]]:
        """Frames next to this one, each with the matrix from this one to it."""
        found = []
        for (parent, child), told in self._edges.items():
            if frame in (parent, child):
                matrix = _at(told, time)
                found.append((parent, matrix) if frame == child else (child, np.linalg.inv(matrix)))
        return found


def _at(told: list[tuple[int, np.ndarray]], time: int) -> np.ndarray:
    """A transform as of `time`: between two moments the way from one to the other, beyond all the nearest."""
    place = bisect_left(told, time, key=lambda moment: moment[0])
    if place == 0 or place == len(told):
        return told[min(place, len(told) - 1)][1]
    (before, first), (after, second) = told[place - 1], told[place]
    share = (time - before) / max(after - before, 1)
    out = np.eye(4)
    out[:3, 3] = (1 - share) * first[:3, 3] + share * second[:3, 3]
    out[:3, :3] = first[:3, :3] @ _turned(first[:3, :3].T @ second[:3, :3], share)
    return out


def _turned(rotation: np.ndarray, share: float) -> np.ndarray:
    """[3, 3]: a share of a rotation, about the same axis."""
    skew = (rotation - rotation.T) / 2
    axis = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
    sine, cosine = float(np.linalg.norm(axis)), float((np.trace(rotation) - 1) / 2)
    if sine < 1e-9:  # none, or half a turn, about which nothing is known
        return np.eye(3) if share < 0.5 else rotation
    angle = share * float(np.arctan2(sine, cosine))
    unit = skew / sine
    return np.asarray(np.eye(3) + np.sin(angle) * unit + (1 - np.cos(angle)) * (unit @ unit))


def _plain(name: str) -> str:
    """ROS 1 allowed a slash in front of a frame's name, ROS 2 does not."""
    return name.strip().lstrip("/")
