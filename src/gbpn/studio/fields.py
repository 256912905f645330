"""What the network has drawn of a page's picture: made inside a worker, kept while there is room.

All that is large lies in `Fields`. A computation that waits holds none; one that runs takes its page's, or
draws them. So there are never more than those of the pages in `Kept` and of the running computations.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from gbpn.engine.session import Session
from gbpn.predict import DepthCompleter
from gbpn.studio import answers, protocol
from gbpn.studio.material import Material

__all__ = ["Fields", "Holder", "Kept"]


class Fields:
    """One picture's field, with the sessions over it; any thread may use it."""

    def __init__(self, completer: DepthCompleter, material: Material) -> None:
        self.material = material
        self._drawn = answers.draw(completer, material)
        self._session: tuple[answers.Points, Session] | None = None

    @property
    def pixels(self) -> int:
        """Of the picture, by which memory goes."""
        height, width = self._drawn.size
        return height * width

    def quick(self, points: answers.Points) -> protocol.Maps:
        """The first stage's answer."""
        return answers.quick(self.session(points), points)

    def refined(self, points: answers.Points) -> protocol.Maps:
        """The whole answer."""
        return answers.refined(self.session(points), points)

    def session(self, points: answers.Points) -> Session:
        """With these points; what one look at it has computed serves the next."""
        found = self._session
        if found is None or found[0] is not points:
            found = self._session = points, answers.measured(self._drawn, points)
        return found[1]


class Holder(Protocol):
    """Who has fields in memory."""

    fields: Fields | None


class Kept:
    """Whose fields stay in memory: those used last, up to so many pixels, or a single larger one."""

    def __init__(self, most_pixels: int) -> None:
        self.most_pixels = most_pixels
        self._holders: OrderedDict[Holder, int] = OrderedDict()

    def keep(self, holder: Holder, fields: Fields) -> None:
        """`holder` has used these fields; others may have to give theirs back."""
        holder.fields = fields
        self._holders[holder] = fields.pixels
        self._holders.move_to_end(holder)
        while len(self._holders) > 1 and sum(self._holders.values()) > self.most_pixels:
            oldest, _ = self._holders.popitem(last=False)
            oldest.fields = None

    def drop(self, holder: Holder) -> None:
        """Give them back."""
        holder.fields = None
        self._holders.pop(holder, None)
