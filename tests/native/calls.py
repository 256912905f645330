"""Right calls of every native operator, at random sizes, as the groups of named tensors that it takes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gbpn.gbp.operators import tape_planes

Group = dict[str, Any]
READ = ("field", "inputs", "cotangents", "values")
"""Groups whose tensors may have any strides before rows and columns (attention's cotangents too)."""


@dataclass
class Call:
    """One call: tensors by group and name, and numbers."""

    operator: str
    groups: dict[str, Group]
    options: dict[str, Any]

    def run(self, native: Any) -> Any:
        if self.operator == "scan":
            return native.scan(self.groups["values"]["values"])
        return getattr(native, self.operator)(**self.groups, **self.options)

    def tensors(self) -> list[tuple[str, str]]:
        """(group, name) of every tensor that is there."""
        return [(g, n) for g, group in self.groups.items() for n, t in group.items() if t is not None]

    def written(self, group: str) -> bool:
        if group == "outcome":
            return self.operator == "gbp_infer"
        if group == "cotangents":
            return self.operator in ("gbp_sweep_adjoint", "gbp_nonlocal_step_adjoint")
        return group in ("outputs", "gradients", "messages", "after", "result")

    def label(self, group: str, name: str) -> str:
        """What an error calls this tensor."""
        return name if group in ("field", "inputs", "values") else f"{group}.{name}"


@dataclass
class Maker:
    """Draws sizes and tensors."""

    rng: random.Random
    smallest: int = 1
    largest: int = 40
    threads: int = 2
    values: Callable[[Maker, tuple[int, ...]], Tensor] | None = None

    def __post_init__(self) -> None:
        self.dtype = self.rng.choice((torch.float32, torch.float64))
        self.batch = self.rng.randint(1, 3)
        self.height = self.rng.randint(self.smallest, self.largest)
        self.width = self.rng.randint(self.smallest, self.largest)
        self.generator = torch.Generator().manual_seed(self.rng.getrandbits(32))

    def tensor(self, *shape: int) -> Tensor:
        """Numbers in (0, 1) unless `values` makes others."""
        drawn = torch.rand(shape, generator=self.generator, dtype=self.dtype)
        return drawn if self.values is None else self.values(self, shape).to(self.dtype)

    def maps(self, *shape: int) -> Tensor:
        """[*shape, H, W]; rows contiguous, sometimes with gaps between planes or one plane for all."""
        full = (*shape, self.height, self.width)
        choice = self.rng.random()
        if choice < 0.2:
            wide = self.tensor(*full[:-3], 2 * full[-3], *full[-2:])
            return wide[..., ::2, :, :]
        if choice < 0.3:
            return self.tensor(*(1 for _ in full[:-2]), *full[-2:]).expand(full)
        return self.tensor(*full)

    def pair(self, name: str, *shape: int) -> Group:
        start = f"{name}_" if name else ""
        return {start + part: self.maps(*shape) for part in ("information", "precision")}

    def space(self, *shape: int) -> Tensor:
        """Contiguous memory to write into."""
        return self.tensor(*shape, self.height, self.width)

    def space_pair(self, name: str, *shape: int) -> Group:
        start = f"{name}_" if name else ""
        return {start + part: self.space(*shape) for part in ("information", "precision")}

    def reweighting(self) -> float:
        return self.rng.choice((1.0, 0.5, 0.8))


def field(m: Maker, iterations: int, edges: int, learned: int | None) -> Group:
    def time() -> int:
        return m.rng.choice((1, max(1, iterations), iterations + 2))

    b = m.batch
    group = {
        **m.pair("unary", b, 1),
        **m.pair("messages_local", b, 8),
        **m.pair("messages_nonlocal", b, 1),
        "local_weight": m.maps(b, time(), 4, edges),
        "local_difference": m.maps(b, time(), 4, edges),
        "local_damping": m.maps(b, time()),
    }
    names = ("weight", "difference", "offset", "damping")
    if learned is None:
        return {**group, **{f"nonlocal_{name}": None for name in names}}
    shapes = ((learned,), (learned,), (learned, 2), ())
    far = {f"nonlocal_{n}": m.maps(b, time(), *shape) for n, shape in zip(names, shapes, strict=True)}
    far["nonlocal_offset"] = far["nonlocal_offset"] * 8 - 4
    return {**group, **far}


def messages(m: Maker) -> Group:
    return {**m.space_pair("messages_local", m.batch, 8), **m.space_pair("messages_nonlocal", m.batch, 1)}


def infer(m: Maker, adjoint: bool = False) -> Call:
    iterations, steps, edges = m.rng.randint(0, 3), m.rng.randint(0, 3), m.rng.choice((1, 3))
    learned = m.rng.choice((None, 0, 1, 3, 16))
    tape = m.rng.choice(("tape", "recompute") if adjoint else ("none", "tape", "recompute"))
    given = field(m, iterations, edges, learned)
    planes = tape_planes(edges, learned is not None, steps, tape)
    outcome: Group = {**messages(m), "tape": None if tape == "none" else m.space(m.batch, iterations, planes)}
    options = {
        "iterations": iterations,
        "steps": steps,
        "reweighting": m.reweighting(),
        "checkpoints": tape == "recompute",
        "threads": m.threads,
    }
    if not adjoint:
        outcome |= m.space_pair("belief", m.batch, 1)
        return Call("gbp_infer", {"field": given, "outcome": outcome}, options)
    groups = {
        "field": given,
        "outcome": outcome,
        "cotangents": {
            **m.pair("belief", m.batch, 1),
            **m.pair("messages_local", m.batch, 8),
            **m.pair("messages_nonlocal", m.batch, 1),
        },
        "gradients": {n: None if t is None else m.tensor(*t.shape) for n, t in given.items()},
    }
    return Call("gbp_infer_adjoint", groups, options)


def sweep(m: Maker, adjoint: bool = False) -> Call:
    b, edges = m.batch, m.rng.choice((1, 3))
    inputs = {
        **m.pair("base", b, 1),
        "weight": m.maps(b, edges),
        "difference": m.maps(b, edges),
        "damping": m.maps(b, 1),
    }
    options = {
        "direction": m.rng.randrange(4),
        "reweighting": m.reweighting(),
        "always": m.rng.random() < 0.5,
    }
    if not adjoint:
        return Call("gbp_sweep", {"inputs": inputs, "messages": m.space_pair("", b, 8)}, options)
    gradients = {n: m.tensor(*t.shape) for n, t in inputs.items()}
    groups = {
        "inputs": {**inputs, **m.pair("", b, 8)},
        "after": m.space_pair("", b, 8),
        "cotangents": m.space_pair("", b, 8),
        "gradients": gradients,
    }
    return Call("gbp_sweep_adjoint", groups, options)


def nonlocal_step(m: Maker, adjoint: bool = False) -> Call:
    b, learned = m.batch, m.rng.choice((0, 1, 3, 16))
    inputs = {
        **m.pair("base", b, 1),
        "weight": m.maps(b, learned),
        "difference": m.maps(b, learned),
        "offset": m.maps(b, learned, 2) * 8 - 4,
        "damping": m.maps(b, 1),
    }
    gradients = {n: m.tensor(*t.shape) for n, t in inputs.items()}
    inputs |= m.pair("", b, 1)
    options = {"reweighting": m.reweighting()}
    if not adjoint:
        groups = {"inputs": inputs, "result": m.space_pair("", b, 1)}
        return Call("gbp_nonlocal_step", groups, {**options, "threads": m.threads})
    groups = {"inputs": inputs, "cotangents": m.space_pair("", b, 1), "gradients": gradients}
    return Call("gbp_nonlocal_step_adjoint", groups, options)


def attention(m: Maker, adjoint: bool = False) -> Call:
    heads, size, kernel = m.rng.choice((1, 2)), m.rng.choice((1, 3, 8, 16, 32)), m.rng.choice((1, 3, 5))
    shape = (m.batch, heads * size, m.height, m.width)

    def image() -> Tensor:
        """Channels-last; sometimes some channels of a wider image."""
        wide = m.tensor(shape[0], shape[2], shape[3], 2 * shape[1])
        part = wide if m.rng.random() < 0.5 else wide[..., : shape[1]].contiguous()
        return part[..., : shape[1]].permute(0, 3, 1, 2)

    def space() -> Tensor:
        return m.tensor(shape[0], shape[2], shape[3], shape[1]).permute(0, 3, 1, 2)

    table = (heads, 2 * kernel - 1, 2 * kernel - 1)
    inputs = {"query": image(), "key": image(), "value": image(), "bias": m.tensor(*table)}
    options = {"dilation": m.rng.randint(1, 4), "scale": 0.5, "threads": m.threads}
    if not adjoint:
        return Call("attention_forward", {"inputs": inputs, "outputs": {"out": space()}}, options)
    gradients = {"query": space(), "key": space(), "value": space(), "bias": m.tensor(*table)}
    groups = {"inputs": inputs, "cotangents": {"out": image()}, "gradients": gradients}
    return Call("attention_backward", groups, options)


def head_planes(m: Maker) -> Call:
    m.dtype = torch.float32  # the only one
    terms, out, fine = m.rng.randint(1, 20), m.rng.randint(2, 9), m.rng.randint(0, 17)
    full = (2 * m.height, 2 * m.width)
    inputs = {
        "x": m.tensor(m.batch, m.height, m.width, terms),
        "weight": m.tensor(out, terms, 2, 2),
        "bias": m.tensor(out),
    }
    if fine:
        inputs |= {"fine": m.tensor(m.batch, *full, fine), "fine_weight": m.tensor(out, fine, 3, 3)}
    if m.rng.random() < 0.5:
        first = m.rng.randint(1, out - 1)
        inputs |= {"add_0": m.tensor(m.batch, first, *full), "add_1": m.tensor(m.batch, out - first, *full)}
    groups = {"inputs": inputs, "outputs": {"planes": m.tensor(m.batch, out, *full)}}
    return Call("head_planes", groups, {"pairs": False, "threads": m.threads})


def upscale(m: Maker) -> Call:
    channels, out = m.rng.randint(1, 20), m.rng.randint(1, 9)
    x = m.tensor(m.batch, channels, m.height, m.width)
    if m.rng.random() < 0.5:
        x = x.to(memory_format=torch.channels_last)
    inputs = {"x": x, "weight": m.tensor(out, channels, 2, 2), "bias": m.tensor(out)}
    planes = m.tensor(m.batch, out, 2 * m.height, 2 * m.width)
    return Call("upscale", {"inputs": inputs, "outputs": {"planes": planes}}, {"threads": m.threads})


def doubled_adjoint(m: Maker) -> Call:
    fine = m.tensor(m.batch, 2 * m.height, 2 * m.width)
    groups = {"inputs": {"fine": fine}, "outputs": {"result": m.tensor(m.batch, m.height, m.width)}}
    return Call("doubled_adjoint", groups, {"threads": m.threads})


def field_read(m: Maker) -> Call:
    m.dtype = torch.float32
    edges, learned, contrast = m.rng.randint(1, 4), m.rng.randint(0, 3), m.rng.random() < 0.7
    counts = {"weight": 2 + edges + learned, "difference": edges + learned, "damping": m.rng.randint(1, 2)}
    inputs = {name: m.maps(m.batch, count) for name, count in counts.items()}
    inputs["unit"] = m.tensor(counts["weight"])
    inputs |= {"contrast": m.maps(m.batch, edges), "image": m.maps(m.batch, 3)} if contrast else {}
    written = {"weight": "precision"}
    outputs = {written.get(name, name): m.space(m.batch, count) for name, count in counts.items()}
    numbers = {"difference_unit": 0.02, "least": 1e-10, "contrast": 1.4, "faintest": 0.01, "unlike": 0.13}
    groups = {"inputs": inputs, "outputs": outputs}
    return Call("field_read", groups, {**numbers, "local_edges": edges, "threads": m.threads})


def coarse(m: Maker, channels: int, factor: int) -> Tensor:
    """A small map of any strides; the maker's size becomes a multiple of its."""
    m.dtype = torch.float32
    height, width = -(-m.height // factor), -(-m.width // factor)
    m.height, m.width = factor * height, factor * width
    small = m.tensor(m.batch, channels, height, width)
    return small.to(memory_format=torch.channels_last) if m.rng.random() < 0.5 else small


def field_corrected(m: Maker) -> Call:
    sets, learned = m.rng.randint(1, 4), m.rng.choice((None, 1, 3))
    inputs = {"corrections": coarse(m, sets * (1 if learned is None else 2 + learned), 4)}
    inputs["damping"], outputs = m.maps(m.batch, 1), {"damping": m.space(m.batch, sets)}
    if learned is not None:
        inputs |= {"far_weight": m.maps(m.batch, 1, learned), "far_damping": m.maps(m.batch, 1)}
        outputs |= {"far_weight": m.space(m.batch, sets, learned), "far_damping": m.space(m.batch, sets)}
    return Call("field_corrected", {"inputs": inputs, "outputs": outputs}, {"threads": m.threads})


def field_responding(m: Maker) -> Call:
    change, edges, learned = coarse(m, 5, 8), m.rng.choice((2, 4)), m.rng.choice((None, 1, 3))
    sets = [m.rng.randint(1, 3) for _ in range(5)]
    shapes = {
        "unary": (1,),
        "weight": (sets[0], edges),
        "difference": (sets[1], edges),
        "damping": (sets[2],),
    }
    if learned is not None:
        shapes |= {"far_weight": (sets[3], learned), "far_difference": (sets[4], learned)}
    inputs = {"change": change, "prior": m.maps(m.batch, 1)}
    inputs |= {name: m.maps(m.batch, *shape) for name, shape in shapes.items()}
    outputs = {name: m.space(m.batch, *shape) for name, shape in shapes.items()}
    if learned is not None:
        inputs["far_offset"] = m.maps(m.batch, sets[4], learned, 2) * 80 - 40
        half = m.height // 2, m.width // 2
        outputs["half"] = m.tensor(m.batch, 1, *half)
        outputs["far_steps"] = m.tensor(m.batch, sets[4] * learned, *half)
    options = {"largest_step": 0.15, "threads": m.threads}
    return Call("field_responding", {"inputs": inputs, "outputs": outputs}, options)


def field_directed(m: Maker) -> Call:
    edges, sets = m.rng.choice((2, 4)), [m.rng.randint(1, 3) for _ in range(2)]
    senders = 3 if edges == 4 else 1
    names = ("weight", "difference")
    inputs = {name: m.maps(m.batch, count, edges) for name, count in zip(names, sets, strict=True)}
    outputs = {name: m.space(m.batch, count, 4, senders) for name, count in zip(names, sets, strict=True)}
    return Call("field_directed", {"inputs": inputs, "outputs": outputs}, {"threads": m.threads})


def belief_out(m: Maker) -> Call:
    m.dtype = torch.float32
    inputs = {name: m.maps(m.batch, 1) for name in ("information", "precision", "residual")}
    inputs["metres"] = m.tensor(m.batch)
    outputs = {name: m.space(m.batch, 1) for name in ("mean", "logit")}
    return Call("belief_out", {"inputs": inputs, "outputs": outputs}, {"threads": m.threads})


def belief_seen(m: Maker) -> Call:
    m.dtype = torch.float32
    names = ("information", "precision", "residual", "measurement", "weight")
    inputs = {name: m.maps(m.batch, 1) for name in names}
    inputs["shift"] = m.tensor(m.batch)
    outputs = {name: m.space(m.batch, 1) for name in ("depth", "confidence", "measured")}
    return Call("belief_seen", {"inputs": inputs, "outputs": outputs}, {"threads": m.threads})


def stage_cues(m: Maker) -> Call:
    m.dtype = torch.float32
    inputs = {name: m.maps(m.batch, 1) for name in ("depth", "confidence", "measured")}
    inputs |= {"image": m.maps(m.batch, 3), "intrinsics": m.tensor(m.batch, 3, 3)}
    cues = m.tensor(m.batch, m.height, m.width, 13).permute(0, 3, 1, 2)
    options = {"step": 0.05, "threads": m.threads}
    return Call("stage_cues", {"inputs": inputs, "outputs": {"cues": cues}}, options)


def scan(m: Maker) -> Call:
    return Call("scan", {"values": {"values": m.tensor(m.batch, m.height, m.width)}}, {})


OPERATORS: dict[str, Callable[[Maker], Call]] = {
    "gbp_infer": infer,
    "gbp_infer_adjoint": lambda m: infer(m, adjoint=True),
    "gbp_sweep": sweep,
    "gbp_sweep_adjoint": lambda m: sweep(m, adjoint=True),
    "gbp_nonlocal_step": nonlocal_step,
    "gbp_nonlocal_step_adjoint": lambda m: nonlocal_step(m, adjoint=True),
    "attention_forward": attention,
    "attention_backward": lambda m: attention(m, adjoint=True),
    "head_planes": head_planes,
    "upscale": upscale,
    "doubled_adjoint": doubled_adjoint,
    "field_read": field_read,
    "field_corrected": field_corrected,
    "field_responding": field_responding,
    "field_directed": field_directed,
    "belief_out": belief_out,
    "belief_seen": belief_seen,
    "stage_cues": stage_cues,
    "scan": scan,
}
