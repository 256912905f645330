"""Damage: bytes of valid files, numbers in texts, odd arrays, hostile names."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import torch

WORDS = (
    b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e-320", b"-1", b"0", b"99999999999999999999", b"", b"x",
    b"4294967295", b"2147483648", b"[]", b"{}", b"null", b"\xff\xfe", b"\0", b"0x10", b"1_0", b"'", b'"',
)  # fmt: skip
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF)
VALUES = (
    0.0, -0.0, 1e-45, 1e-30, 1e-6, 1e-3, 0.5, 1.0, 2.0, 65.535, 255.99609375, 65504.0, 65535.0, 1e6, 1e10,
    1e30, 3.4e38, np.inf, -np.inf, np.nan, -1.0,
)  # fmt: skip
NAMES = (
    "/abs/x.png", "../../x.png", "a/../../x.png", "..", ".", "", "/", "//x", "a\\..\\..\\x.png", "C:\\x.png",
    "/dev/null", "/dev/stdout", "~/x.png", "a" * 300 + ".png", "/".join(["d"] * 3000), "a\nb.png", "a\0b.png",
    "link/x.png", "line.png", "pipe.png", "seq[/a]/x.png", "[bold]x.png", "ü/€.png", "\udcff.png", "a/b.png",
    "a b.png", " .png", ".png", "x", "con.png", "-rf", "$(id).png", "a/./b.png", "a//b.png", "\x1b[31m.png",
)  # fmt: skip


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """A few random changes."""
    data = bytearray(content)
    for _ in range(int(rng.choice((1, 1, 1, 2, 3, 8)))):
        if not data:
            return bytes(data)
        at = int(rng.integers(len(data)))
        kind = int(rng.integers(10))
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[at] = int(rng.integers(256))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + int(rng.integers(1, 16))]
        elif kind == 4:
            data[at:at] = rng.integers(0, 256, int(rng.integers(1, 16)), dtype=np.uint8).tobytes()
        elif kind == 5:
            data[at:at] = data[at : at + int(rng.integers(1, 64))]
        elif kind == 6:
            order, size = str(rng.choice(("<", ">"))), str(rng.choice(("B", "H", "I", "Q")))
            most = 256 ** struct.calcsize(size) - 1
            number = struct.pack(order + size, NUMBERS[int(rng.integers(len(NUMBERS)))] & most)
            data[at : at + len(number)] = number
        elif kind == 7:
            data[at : at + int(rng.integers(1, 9))] = WORDS[int(rng.integers(len(WORDS)))]
        else:
            _change_number(data, rng)
    return repaired(bytes(data)) if rng.random() < 0.5 else bytes(data)


def _change_number(data: bytearray, rng: np.random.Generator) -> None:
    """One number of a text becomes another word."""
    starts = [
        i for i, c in enumerate(data) if chr(c).isdigit() and (i == 0 or not chr(data[i - 1]).isdigit())
    ]
    if not starts:
        return
    at = end = starts[int(rng.integers(len(starts)))]
    while end < len(data) and (chr(data[end]).isdigit() or data[end] in b".e+-"):
        end += 1
    data[at:end] = WORDS[int(rng.integers(len(WORDS)))]


def repaired(data: bytes) -> bytes:
    """A PNG with right checksums, so that what stands behind them is reached; other bytes as they are."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return data
    out, at = bytearray(data[:8]), 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if at + 12 + length > len(data):
            break
        body = data[at + 4 : at + 8 + length]
        out += data[at : at + 4] + body + zlib.crc32(body).to_bytes(4, "big")
        at += 12 + length
    return bytes(out) + data[at:]


def odd_array(rng: np.random.Generator) -> Any:
    """Something that is not quite an array of numbers."""
    shape = tuple(int(n) for n in rng.choice((0, 1, 2, 3, 4, 12, 16), int(rng.integers(0, 5))))
    kind = str(rng.choice(("f2", "f4", "f8", ">f4", "i1", "i8", "u2", "u8", "?", "c8", "O", "U3", "M8")))
    choice = int(rng.integers(12))
    if choice < 5:
        with np.errstate(all="ignore"):
            try:
                return np.full(shape, VALUES[int(rng.integers(len(VALUES)))]).astype(np.dtype(kind))
            except (TypeError, ValueError, OverflowError):
                return np.zeros(shape, np.dtype(kind))
    if choice < 8:
        kinds = (torch.float16, torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16)
        tensor = torch.zeros(shape, dtype=kinds[int(rng.integers(len(kinds)))])
        if choice == 6 and tensor.dim() == 2:
            return tensor.to_sparse()
        return tensor.to("meta") if choice == 7 else tensor
    others = (
        [[1, 2], [3]], [[1, 2, 3], ["a", 2, 3]], "no/such/file.png", "", "\0", None, 5, {}, [], [[]],
        object(), lambda: 0, b"bytes", float("nan"), "/dev/zero", "/", range(3), [None] * 3, 1j,
        10**400, [10**400],
    )  # fmt: skip
    return others[int(rng.integers(len(others)))]
