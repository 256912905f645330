"""Calls of the C interface (`native/gbpn.h`), through ctypes, with tensors that are not as it wants them.

All memory lies in one block with a known pattern around each tensor, so that a write outside of a tensor
shows. What is described stays inside the block: memory that is not there is the caller's own fault.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from gbpn.errors import InputError
from gbpn.kernels.backends import native

AXES = 6
PATTERN = 0xA5
GAP = 4096
"""Bytes of the pattern between tensors."""
TOLD = 500
"""Characters of an error at most."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * AXES),
        ("stride", ctypes.c_int64 * AXES),
    )


class _Schedule(ctypes.Structure):
    _fields_ = (
        ("iterations", ctypes.c_int32),
        ("steps", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("reweighting", ctypes.c_double),
    )


@cache
def _library() -> ctypes.CDLL:
    """The module that Python loads offers the C functions too."""
    library = ctypes.CDLL(native().__file__)
    library.gbpn_error.restype = ctypes.c_char_p
    pointer, tensor = ctypes.c_void_p, ctypes.POINTER(_Tensor)
    library.gbpn_inference_new.argtypes = [ctypes.POINTER(pointer)]
    library.gbpn_inference_free.argtypes = [pointer]
    for name in ("read", "write"):
        getattr(library, f"gbpn_inference_{name}").argtypes = [pointer, ctypes.c_char_p, tensor]
    library.gbpn_inference_run.argtypes = [pointer, ctypes.POINTER(_Schedule)]
    return library


def _shapes(rng: np.random.Generator) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]], int]:
    """Of what is read and what is written, and the iterations."""
    height, width, batch = (int(n) for n in rng.integers(1, (9, 12, 3)))
    times, iterations = int(rng.integers(1, 3)), 2
    times = iterations if times > 1 else 1
    edges, learned, size = int(rng.choice((1, 3))), int(rng.integers(1, 4)), (height, width)
    pair = ("information", "precision")
    messages: dict[str, tuple[int, ...]] = {f"messages_local_{kind}": (batch, 8, *size) for kind in pair}
    messages |= {f"messages_nonlocal_{kind}": (batch, 1, *size) for kind in pair}
    read: dict[str, tuple[int, ...]] = {f"unary_{kind}": (batch, 1, *size) for kind in pair} | messages
    read |= {f"local_{name}": (batch, times, 4, edges, *size) for name in ("weight", "difference")}
    read["local_damping"] = (batch, times, *size)
    if rng.random() < 0.7:
        read |= {f"nonlocal_{name}": (batch, times, learned, *size) for name in ("weight", "difference")}
        read |= {"nonlocal_offset": (batch, times, learned, 2, *size)}
        read |= {"nonlocal_damping": (batch, times, *size)}
    return read, {f"belief_{kind}": (batch, 1, *size) for kind in pair} | messages, iterations


def call(rng: np.random.Generator) -> str:
    """What is wrong with what the interface did; empty if nothing."""
    read, written, iterations = _shapes(rng)
    tensors = {("read", name): shape for name, shape in read.items()}
    tensors |= {("write", name): shape for name, shape in written.items()}
    starts, end = {}, GAP
    for key, shape in tensors.items():
        starts[key] = end
        end += -(-int(np.prod(shape)) * 4 // 64) * 64 + GAP
    block = np.full(end, PATTERN, np.uint8)
    for key, shape in tensors.items():
        if key[0] == "read":
            place = block[starts[key] :][: 4 * int(np.prod(shape))].view(np.float32)
            place[:] = rng.uniform(0, 3, len(place))
    damaged = _damaged(rng, list(tensors))
    before = block.copy()
    status, told = _run(rng, block, tensors, starts, damaged, iterations)
    if status not in (0, 1, 2):
        return f"status {status} ({told}) for {damaged}"
    if status and not 0 < len(told) <= TOLD:
        return f"an error of {len(told)} characters for {damaged}"
    if not damaged and status:
        return f"a valid call was refused: {told}"
    allowed = np.zeros(len(block), bool)
    for key, shape in tensors.items():
        if key[0] == "write" and not status:
            allowed[starts[key] : starts[key] + 4 * int(np.prod(shape))] = True
    if damaged and not status:  # what was described otherwise and is sound all the same
        return "" if np.array_equal(block[:GAP], before[:GAP]) else f"memory before all tensors: {damaged}"
    if not np.array_equal(block[~allowed], before[~allowed]):
        return f"memory outside of what is written was changed, status {status}, {damaged}"
    if status:
        raise InputError(told)
    return ""


_Key = tuple[str, str]


def _damaged(rng: np.random.Generator, keys: list[_Key]) -> dict[_Key, str]:
    """Which tensors are wrong and how; none in a tenth of all cases."""
    ways = ("missing", "null", "type", "rank", "shape", "stride", "start", "shared", "negative", "name")
    if rng.random() < 0.1:
        return {}
    chosen = rng.permutation(len(keys))[: int(rng.choice((1, 1, 1, 2, 4)))]
    return {keys[int(index)]: str(rng.choice(ways)) for index in chosen}


def _run(
    rng: np.random.Generator,
    block: np.ndarray,
    tensors: dict[_Key, tuple[int, ...]],
    starts: dict[_Key, int],
    damaged: dict[_Key, str],
    iterations: int,
) -> tuple[int, str]:
    library, handle, status = _library(), ctypes.c_void_p(), 0
    assert library.gbpn_inference_new(ctypes.byref(handle)) == 0
    kept = []
    try:
        for key, shape in tensors.items():
            way = damaged.get(key, "")
            if way == "missing":
                continue
            tensor = _described(rng, block.ctypes.data + starts[key], shape, way)
            if way == "shared":
                tensor.data = block.ctypes.data + starts[list(starts)[int(rng.integers(len(starts)))]]
            name = b"\xff" * 3000 if way == "name" else key[1].encode()
            kept.append(tensor)
            give = library.gbpn_inference_read if key[0] == "read" else library.gbpn_inference_write
            status = give(handle, name, ctypes.byref(tensor)) or status
        wrong = damaged and rng.random() < 0.2
        schedule = _Schedule(
            iterations=int(rng.choice((-1, 0, 2**31 - 1))) if wrong else iterations,
            steps=int(rng.choice((-1, 0, 1, 2))) if wrong else 2,
            threads=int(rng.choice((-1, 0, 1, 2, 100))) if wrong else 1,
            reweighting=float(rng.choice((0.0, -1.0, np.nan, np.inf, 1.0))) if wrong else 1.0,
        )
        if not status:
            status = library.gbpn_inference_run(handle, ctypes.byref(schedule))
        return status, library.gbpn_error().decode(errors="replace") if status else ""
    finally:
        library.gbpn_inference_free(handle)


def _described(rng: np.random.Generator, data: int, shape: tuple[int, ...], way: str) -> _Tensor:
    """A tensor of float32 without gaps, or one that is wrong in one way but reaches nowhere else."""
    tensor = _Tensor(data=data, type=0, rank=len(shape))
    stride = 1
    for axis in range(len(shape) - 1, -1, -1):
        tensor.shape[axis], tensor.stride[axis] = shape[axis], stride
        stride *= shape[axis]
    axis = int(rng.integers(len(shape)))
    if way == "null":
        tensor.data = None
    elif way == "type":
        tensor.type = int(rng.choice((-1, 1, 2, 2**31 - 1)))
    elif way == "rank":
        tensor.rank = int(rng.choice((-1, 0, 1, 5, 6, 7, 2**31 - 1)))
    elif way == "shape":
        tensor.shape[axis] = int(rng.integers(0, shape[axis] + 1))
    elif way == "negative":
        tensor.shape[axis] = int(rng.choice((-1, -(2**63), 2**63 - 1, 2**32)))
    elif way == "stride":
        tensor.stride[axis] = int(rng.choice((0, -(2**63), 2**63 - 1, 3)))
    elif way == "start":
        tensor.data = data + int(rng.choice((1, 2, 3)))
    return tensor
