"""Videos with a memory: the first frame is that of a single one, later ones keep evidence, cuts do not."""

from __future__ import annotations

import numpy as np
import pytest

import gbpn
from gbpn.answer import CompletedDepth
from gbpn.engine.stream import Stream
from gbpn.errors import InputError
from gbpn.inputs.reading import frame_inputs

NUMBERS = (60.0, 60.0, 28.0, 20.0)


def shown(stream: Stream, picture: np.ndarray, depth: np.ndarray) -> CompletedDepth:
    """The next frame."""
    return stream.frame(frame_inputs(picture, depth, NUMBERS))


def test_the_first_frame_and_cuts_are_those_of_a_session(completer, picture, depth) -> None:
    session = completer.session(picture, NUMBERS)
    session.measure(depth)
    stream = completer.stream()
    np.testing.assert_array_equal(shown(stream, picture, depth).depth, session.depth)
    other = 255 - picture
    fresh = completer.session(other, NUMBERS)
    fresh.measure(depth)
    np.testing.assert_array_equal(shown(stream, other, depth).depth, fresh.depth)


def test_evidence_of_earlier_frames_stays_for_a_while(completer, picture, depth) -> None:
    """Half of the measurements per frame: with the other half in mind the answer is another one."""
    rows, columns = np.nonzero(depth)
    halves = [depth.copy(), depth.copy()]
    for place, half in enumerate(halves):
        half[rows[place::2], columns[place::2]] = 0
    stream = completer.stream()
    shown(stream, picture, halves[0])
    kept = shown(stream, picture, halves[1])
    alone = shown(completer.stream(), picture, halves[1])
    assert not np.allclose(kept.depth, alone.depth, rtol=1e-3)
    assert kept.depth.shape == depth.shape
    assert int((kept.sparse > 0).sum()) == np.count_nonzero(halves[1])
    for _ in range(30):
        later = shown(stream, picture, halves[1])
    settled = np.abs(later.depth - shown(stream, picture, halves[1]).depth).mean()
    assert settled < np.abs(kept.depth - later.depth).mean(), "it comes to rest"


def test_a_session_measures_anew(completer, picture, depth) -> None:
    session = completer.session(picture, NUMBERS)
    session.add(3, 4, 2.0)
    session.measure(depth)
    assert len(session.measurements) == 30
    with pytest.raises(InputError, match="must have the size of the image"):
        session.measure(depth[:10])
    with pytest.raises(InputError, match="stream counts iterations"):
        gbpn.DepthCompleter(completer.model, stream=-1)
