"""Calls that are wrong in one thing. Run as a program, so that a crash ends only this process.

    python wrong_calls.py COUNT SEED     prints {operator: {kind of mistake: how many}} as JSON

Every call is first made as it should be, which must pass, and then with one mistake, which must raise an
error that begins with the name of a tensor or a number of the call, or Python's TypeError for its arguments.
"""

from __future__ import annotations

import copy
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from calls import OPERATORS, Call, Maker
from torch import Tensor

import gbpn._native as native
from gbpn.errors import InputError

Mistake = Callable[[Call, random.Random], bool]
"""Changes a call; False where this mistake cannot be made in it."""

IMAGES = ("query", "key", "value", "out")
OF_ANY_STRIDES = ("x", "corrections", "change")


def pick(call: Call, rng: random.Random) -> tuple[dict[str, Any], str, str, Tensor]:
    group, name = rng.choice(call.tensors())
    return call.groups[group], group, name, call.groups[group][name]


def axis_length(call: Call, rng: random.Random) -> bool:
    tensors, group, name, tensor = pick(call, rng)
    axis = rng.randrange(tensor.dim())
    if call.operator == "scan":
        return False
    by_iteration = group == "field" and axis == 1 and name.startswith(("local_", "nonlocal_"))
    if call.operator == "gbp_infer" and by_iteration:
        return False  # one set for all iterations, or more sets than are used, are right
    if call.operator == "attention_forward" and name == "bias" and axis == 0:
        return False  # another number of heads may be right
    length = rng.choice((0, 1, tensor.shape[axis] + 1, 2 * tensor.shape[axis], 17))
    if length == tensor.shape[axis]:
        return False
    tensors[name] = torch.ones(
        [length if n == axis else old for n, old in enumerate(tensor.shape)], dtype=tensor.dtype
    )
    return True


def axis_count(call: Call, rng: random.Random) -> bool:
    tensors, _, name, tensor = pick(call, rng)
    tensors[name] = rng.choice((tensor[None], tensor[..., None], tensor[0] if len(tensor) else tensor[None]))
    return call.operator != "scan"


def kind(call: Call, rng: random.Random) -> bool:
    tensors, _, name, tensor = pick(call, rng)
    kinds = [
        torch.float16,
        torch.bfloat16,
        torch.int32,
        torch.int64,
        torch.bool,
        torch.uint8,
        torch.complex64,
    ]
    if call.operator != "scan":
        kinds.append(torch.float32 if tensor.dtype == torch.float64 else torch.float64)
    tensors[name] = tensor.to(rng.choice(kinds))
    return True


def strides(call: Call, rng: random.Random) -> bool:
    tensors, group, name, tensor = pick(call, rng)
    if tensor.numel() == 0 or name in OF_ANY_STRIDES:
        return False
    if name in IMAGES:
        tensors[name] = tensor.contiguous()
        return tensor.shape[1] > 1
    if tensor.dim() > 1 and rng.random() < 0.5:
        tensors[name] = tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
        return min(tensor.shape[-2:]) > 1
    if call.written(group) and tensor.shape[0] > 1 and rng.random() < 0.5:
        tensors[name] = torch.cat([tensor, tensor], 1)[:, : tensor.shape[1]] if tensor.dim() > 1 else tensor
        return tensor.dim() > 1
    tensors[name] = tensor.repeat_interleave(2, -1)[..., ::2]
    return tensor.shape[-1] > 1


def missing_tensor(call: Call, rng: random.Random) -> bool:
    tensors, _, name, _ = pick(call, rng)
    if name == "tape" and call.operator == "gbp_infer":
        return False
    if rng.random() < 0.5 or call.operator == "scan":
        tensors[name] = None
    else:
        del tensors[name]
    return True


def unknown_tensor(call: Call, rng: random.Random) -> bool:
    tensors, _, _, tensor = pick(call, rng)
    tensors[rng.choice(("extra", "", "weights", "é"))] = tensor
    return call.operator != "scan"


def no_tensor(call: Call, rng: random.Random) -> bool:
    tensors, _, name, tensor = pick(call, rng)
    tensors[name] = rng.choice(
        (
            "text",
            3.5,
            [1.0, 2.0],
            object(),
            {},
            tensor.to("meta"),
            tensor.to_sparse(),
            Tensor,
        )
    )
    return True


def alignment(call: Call, rng: random.Random) -> bool:
    tensors, _, name, tensor = pick(call, rng)
    array = tensor.contiguous().numpy()
    tensors[name] = np.ndarray(array.shape, array.dtype, bytearray(array.nbytes + 16), offset=1)
    return bool(array.size) and name not in IMAGES


def read_only(call: Call, rng: random.Random) -> bool:
    tensors, group, name, tensor = pick(call, rng)
    array = tensor.numpy().copy(order="K")
    array.flags.writeable = False
    tensors[name] = array
    return call.written(group)


def shared_memory(call: Call, rng: random.Random) -> bool:
    tensors, group, name, tensor = pick(call, rng)
    if not call.written(group) or tensor.numel() == 0:
        return False
    others = [
        call.groups[g][n]
        for g, n in call.tensors()
        if (g, n) != (group, name)
        and call.groups[g][n].shape == tensor.shape
        and call.groups[g][n].stride() == tensor.stride()
    ]
    if not others:
        return False
    tensors[name] = rng.choice(others)
    return True


def group(call: Call, rng: random.Random) -> bool:
    name = rng.choice(list(call.groups))
    if call.operator == "scan":
        return False
    if rng.random() < 0.3:
        del call.groups[name]
    else:
        call.groups[name] = rng.choice((None, [], list(call.groups[name].values()), 3, {}))
    return True


WRONG_NUMBERS: dict[str, tuple[Any, ...]] = {
    "direction": (-1, 4, 9, 2**31, 1.5, "x", None),
    "reweighting": (0.0, -1.0, math.nan, math.inf, -math.inf, 1e-320, "x", None),
    "iterations": (-1, -(2**31), 2**40, "x", None),
    "steps": (-1, 2**40, 0.5, None),
    "threads": (0, -1, -(2**31), 2**40, "x"),
    "dilation": (0, -3, 2**40, 1.5),
    "scale": (math.nan, math.inf, -math.inf, "x", None),
    "local_edges": (0, -1, 5, 2**40, "x"),
    **dict.fromkeys(("difference_unit", "contrast"), (math.nan, math.inf, -math.inf, "x", None)),
    **dict.fromkeys(
        ("least", "faintest", "unlike", "largest_step", "step"), (0.0, -1.0, math.nan, math.inf, "x", None)
    ),
    **dict.fromkeys(("checkpoints", "pairs", "always"), ("x", 2, None)),
}
OPTIONAL = ("always",)
"""Options that may be left out."""


def number(call: Call, rng: random.Random) -> bool:
    if not call.options:
        return False
    name = rng.choice(list(call.options))
    taped = call.groups.get("outcome", {}).get("tape") is not None
    choice = rng.random()
    if choice < 0.1 and name not in OPTIONAL:
        del call.options[name]
    elif choice < 0.2:
        call.options["extra"] = 1
    elif taped and choice < 0.4:
        name = rng.choice(("iterations", "checkpoints"))
        call.options[name] = call.options[name] + 1 if name == "iterations" else not call.options[name]
    else:
        call.options[name] = rng.choice(WRONG_NUMBERS[name])
    return True


MISTAKES: tuple[Mistake, ...] = (
    axis_length,
    axis_count,
    kind,
    strides,
    missing_tensor,
    unknown_tensor,
    no_tensor,
    alignment,
    read_only,
    shared_memory,
    group,
    number,
)


def attempt(operator: str, rng: random.Random) -> str:
    """Makes one right and one wrong call; the mistake that was made."""
    call = OPERATORS[operator](Maker(rng, smallest=2, largest=5))
    call.run(native)
    while True:
        wrong = Call(operator, {g: dict(t) for g, t in call.groups.items()}, copy.copy(call.options))
        mistake = rng.choice(MISTAKES)
        if mistake(wrong, rng):
            break
    names = [call.label(g, n) for g, n in call.tensors()] + list(call.options)
    names += [wrong.label(g, n) for g, t in wrong.groups.items() if isinstance(t, dict) for n in t]
    try:
        wrong.run(native)
    except TypeError:
        if mistake not in (group, number):
            raise
    except InputError as error:
        if mistake is not group and not str(error).startswith(tuple(names)):
            raise AssertionError(f"{operator}, {mistake.__name__}: no name in {error}") from error
    else:
        raise AssertionError(f"{operator} took a call with a wrong {mistake.__name__}: {described(wrong)}")
    return mistake.__name__


def described(call: Call) -> str:
    shapes = {
        f"{g}.{n}": (tuple(t.shape), t.dtype) if hasattr(t, "shape") else t
        for g, tensors in call.groups.items()
        for n, t in (tensors.items() if isinstance(tensors, dict) else ())
    }
    return f"{shapes} {call.options}"


def main(count: int, seed: int) -> None:
    torch.set_num_threads(1)
    counts = {}
    for operator in OPERATORS:
        rng = random.Random(f"{seed} {operator}")
        print(f"{operator} …", file=sys.stderr, flush=True)
        counts[operator] = Counter(attempt(operator, rng) for _ in range(count))
    print(json.dumps(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
