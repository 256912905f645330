"""The tree of coordinate frames that a recording tells of, and the way from one to another."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

import numpy as np

from gbpn.errors import DatasetError
from gbpn.files.guard import shown

__all__ = ["TransformTree"]


class TransformTree:
    """Transforms between frames; those that were told several times are taken from the nearest moment."""

    def __init__(self) -> None:
        self._edges: dict[tuple[str, str], list[tuple[int, np.ndarray]]] = {}
        """(parent, child) → (time, child's coordinates → parent's), in order of time."""

    def add(self, parent: str, child: str, matrix: np.ndarray, time: int) -> None:
        """`matrix` [4, 4] takes coordinates of `child` to those of `parent`; time in nanoseconds."""
        told = self._edges.setdefault((_plain(parent), _plain(child)), [])
        place = (
            bisect_left([moment for moment, _ in told], time) if told and told[-1][0] > time else len(told)
        )
        told.insert(place, (time, matrix))

    @property
    def frames(self) -> list[str]:
        """Names of all frames."""
        return sorted({name for edge in self._edges for name in edge})

    def between(self, source: str, target: str, time: int) -> np.ndarray:
        """[4, 4]: coordinates in frame `source` → coordinates in frame `target`, as of `time`."""
        start, end = _plain(source), _plain(target)
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

    def _neighbours(self, frame: str, time: int) -> list[tuple[str, np.ndarray]]:
        """Frames next to this one, each with the matrix from this one to it."""
        found = []
        for (parent, child), told in self._edges.items():
            if frame in (parent, child):
                matrix = min(told, key=lambda moment: abs(moment[0] - time))[1]
                found.append((parent, matrix) if frame == child else (child, np.linalg.inv(matrix)))
        return found


def _plain(name: str) -> str:
    """ROS 1 allowed a slash in front of a frame's name, ROS 2 does not."""
    return name.strip().lstrip("/")
