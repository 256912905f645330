"""Frames: what is written is read, what is none is refused, and the page's side agrees."""

from __future__ import annotations

import importlib.util
import json
import re
import struct
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbpn.studio import protocol

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    """scripts/write_web_files.py."""
    spec = importlib.util.spec_from_file_location("write_web_files", ROOT / "scripts" / "write_web_files.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def examples(writer: ModuleType) -> list[object]:
    return [*writer._from_page(), *writer._from_server()]


def test_every_kind_is_read_as_it_was_written(writer: ModuleType) -> None:
    messages = examples(writer)
    assert {type(m) for m in messages} == {*protocol.FROM_PAGE, *protocol.FROM_SERVER}
    for message in messages:
        back = protocol.decode(protocol.encode(message), (type(message),))
        for name, value in vars(message).items():
            got = getattr(back, name)
            if isinstance(value, np.ndarray):
                assert got.dtype == value.dtype
                np.testing.assert_array_equal(got, value)
            else:
                assert got == value


def test_the_page_has_the_same_colours_and_frames(writer: ModuleType) -> None:
    """Vitest holds web/src against these files; here they are held against the package."""
    for name, write in writer.FILES.items():
        written = (ROOT / "web" / name).read_text(encoding="utf-8")
        assert written == write(), f"web/{name} is old: python scripts/write_web_files.py"


def test_the_page_knows_every_kind() -> None:
    source = (ROOT / "web" / "src" / "protocol.ts").read_text(encoding="utf-8")
    named = set(re.findall(r'kind: "(\w+)"', source))
    assert named == {kind.__name__ for kind in (*protocol.FROM_PAGE, *protocol.FROM_SERVER)}


def test_only_the_pages_messages_are_taken_from_the_page() -> None:
    frame = protocol.encode(protocol.Failed(reply=1, message="no"))
    with pytest.raises(protocol.ProtocolError, match="unknown message"):
        protocol.decode(frame)


def frame_of(header: object, tail: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<II", len(text), 0) + text + bytes(-len(text) % 8) + tail


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"", "at least 8 bytes"),
        (struct.pack("<II", 1 << 31, 0), "said to have"),
        (frame_of([]), "object"),
        (frame_of({"kind": "Film", "id": 1}), "list its arrays"),
        (frame_of({"kind": "OpenScene", "id": 1, "name": "\ud800", "arrays": []}), "not JSON"),
        (frame_of({"kind": "Film", "id": "1", "arrays": []}), "Film.id must be int"),
        (frame_of({"kind": "Film", "id": True, "arrays": []}), "Film.id must be int"),
        (frame_of({"kind": "Film", "arrays": []}), "lacks the field 'id'"),
        (frame_of({"kind": "Film", "id": 1, "path": "x", "arrays": []}), "no field 'path'"),
        (frame_of({"kind": "Film", "id": 1, "arrays": [["x", "f4", [2]]]}), "cut off"),
        (frame_of({"kind": "Film", "id": 1, "arrays": [["x", "f4", [-1]]]}), "1 to 3 axes"),
        (
            frame_of({"kind": "Film", "id": 1, "arrays": [["x", "f4", [1 << 30, 1 << 30, 1 << 30]]]}),
            "cut off",
        ),
        (frame_of({"kind": "Film", "id": 1, "arrays": [["x", "O", [1]]]}), "u1, i4 or f4"),
        (frame_of({"kind": "Film", "id": 1, "arrays": []}, bytes(8)), "announced"),
        (frame_of({"kind": "Film", "id": 1, "arrays": [["x", "f4", [2]]]}, bytes(8)), "no array 'x'"),
        (frame_of({"kind": "FindOutliers", "id": 1, "limit": 1e999, "arrays": []}), "not JSON"),
    ],
)
def test_what_is_no_message_is_refused_with_a_reason(frame: bytes, says: str) -> None:
    with pytest.raises(protocol.ProtocolError, match=re.escape(says)):
        protocol.decode(frame)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused_and_nothing_else(frame: bytes) -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.decode(frame)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_frames_are_read_or_refused(data: st.DataObject) -> None:
    points = np.arange(4, dtype=np.float32)
    frame = bytearray(protocol.encode(protocol.SetPoints(id=1, x=points, y=points, depth=points, std=points)))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    try:
        message = protocol.decode(bytes(frame[: data.draw(st.integers(0, len(frame)))]))
    except protocol.ProtocolError:
        return
    assert isinstance(message, protocol.FROM_PAGE)
