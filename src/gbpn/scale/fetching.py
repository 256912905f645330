"""The files of frames, fetched ahead of their turn; what nobody wants any more is removed."""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gbpn.errors import GbpnError
from gbpn.files.guard import LONGEST_MESSAGE, shown
from gbpn.scale.storage import Storage, address, base_name, is_remote, local_path
from gbpn.scale.tar_shards import TarSample
from gbpn.scale.worklist import ListedFrame

__all__ = ["AHEAD", "FetchedFrame", "ahead", "discard", "fetch", "following", "of_sample"]

AHEAD = 4
"""Frames whose inputs are asked for before their turn, and whose outputs are still on their way."""
_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True)
class FetchedFrame:
    """The files of a frame, on this machine."""

    image: Path
    sparse: Path | None = None
    camera: str = ""
    """Numbers or a path; empty: that of the run."""
    folder: Path | None = None
    """What is to be removed afterwards."""
    problem: str = ""


def fetch(storage: Storage, within: Callable[[], Path], frame: ListedFrame) -> FetchedFrame:
    """The files of a frame, copied into a new folder `within` that one where they are elsewhere."""
    remote = [uri for uri in (frame.image, frame.sparse, frame.camera) if is_remote(uri)]
    if not remote or frame.problem or frame.left_out:
        sparse = local_path(frame.sparse) if frame.sparse else None
        return FetchedFrame(
            image=local_path(frame.image) or Path(frame.image), sparse=sparse, camera=frame.camera
        )
    folder = Path(tempfile.mkdtemp(dir=within()))
    paths = {uri: folder / str(place) / base_name(uri) for place, uri in enumerate(remote)}
    try:
        for uri, path in paths.items():
            storage.fetch(uri, path)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, GbpnError | ValueError) or getattr(error, "passing", False):
            raise
        return FetchedFrame(image=Path(base_name(frame.image)), problem=shown(error, LONGEST_MESSAGE))
    image = paths.get(frame.image) or local_path(frame.image) or Path(frame.image)
    sparse = (paths.get(frame.sparse) or local_path(frame.sparse)) if frame.sparse else None
    camera = str(paths.get(frame.camera, frame.camera))
    return FetchedFrame(image=image, sparse=sparse, camera=camera, folder=folder)


def of_sample(tar: ListedFrame, sample: TarSample) -> tuple[ListedFrame, FetchedFrame]:
    name = f"{tar.name}/{sample.key}"
    folder = next((path.parent for path in sample.members.values()), None)
    problem = sample.problem
    if not problem and sample.image is None:
        problem = f"no picture among {', '.join(sample.members)}"
    listed = ListedFrame(
        name=name,
        image=f"{address(tar.image)}#{sample.key}",
        camera=base_name(str(sample.camera)) if sample.camera else "",
    )
    return listed, FetchedFrame(
        image=sample.image or Path(sample.key),
        sparse=sample.sparse,
        camera=str(sample.camera or ""),
        folder=folder,
        problem=problem,
    )


def following(items: Iterator[_Item], _: object) -> _Item | None:
    return next(items, None)


def discard(fetched: Future[FetchedFrame]) -> None:
    """Remove files that came for a frame whose turn will not come."""
    if not fetched.cancelled() and fetched.exception() is None and (folder := fetched.result().folder):
        shutil.rmtree(folder, ignore_errors=True)


def ahead(
    pool: ThreadPoolExecutor,
    function: Callable[[_Item], _Answer],
    items: Iterable[_Item],
    unused: Callable[[Future[_Answer]], None] = lambda _: None,
) -> Iterator[tuple[_Item, Future[_Answer]]]:
    """Answers in order, a few asked for before their turn; `unused` hears of those whose turn never comes."""
    waiting: deque[tuple[_Item, Future[_Answer]]] = deque()
    try:
        for item in items:
            waiting.append((item, pool.submit(function, item)))
            if len(waiting) > AHEAD:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:
        for _, future in waiting:
            future.cancel()
            future.add_done_callback(unused)
