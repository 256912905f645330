"""`infer`: the schedule of the paper's Algorithm 1 over a chosen backend."""

from __future__ import annotations

from torch import Tensor

from gbpn.errors import BackendError, InputError
from gbpn.gaussian import Gaussian
from gbpn.gbp import reference
from gbpn.gbp.state import Inference, Messages, Snapshot
from gbpn.mrf import DIRECTIONS, MRF, LocalEdges, NonLocalEdges


def infer(
    mrf: MRF,
    messages: Messages | None = None,
    *,
    iterations: int | None = None,
    nonlocal_steps: int = 4,
    backend: str = "auto",
    reweighting: float = 1.0,
    record: bool = False,
    check: bool = True,
) -> Inference:
    """Belief of every pixel after `iterations` of four serial sweeps and `nonlocal_steps` parallel steps.

    messages     continue from these (warm start); None starts empty
    iterations   how many; default: what the dynamic parameters are made for, or 5
    backend      "reference", "cpu", "triton", or "auto" by device and what is installed
    reweighting  ρ: edges count w/ρ and beliefs sum ρ·messages; 1 is the paper
    record       keep the belief after every sweep (slow; for pictures)
    check        validate shapes and values; switch off only where they are known to be good
    """
    if check:
        mrf.check()
        if messages is not None:
            messages.check(mrf)
    if not reweighting > 0:
        raise InputError(f"reweighting must be above 0; got {reweighting}")
    made_for = mrf.iterations
    iterations = iterations if iterations is not None else made_for or 5
    if made_for is not None and iterations > made_for:
        raise InputError(f"this field has parameters for {made_for} iterations; got iterations={iterations}")
    mrf = mrf.directed()
    messages = messages if messages is not None else Messages.empty(mrf)
    if backend not in ("auto", "reference"):
        raise BackendError(f"backend must be one of auto, reference; got {backend!r}")
    return _infer_stepwise(mrf, messages, iterations, nonlocal_steps, reweighting, record)


def _infer_stepwise(
    mrf: MRF, messages: Messages, iterations: int, nonlocal_steps: int, reweighting: float, record: bool
) -> Inference:
    unary, local, far = mrf.unary, messages.local, messages.nonlocal_
    snapshots: list[Snapshot] = []

    def snapshot(t: int, part: str) -> None:
        if record:
            belief = Messages(local, far).belief(unary, reweighting)
            snapshots.append(Snapshot(iteration=t, part=part, belief=belief))

    edges = mrf.local
    assert isinstance(edges, LocalEdges)
    for t in range(iterations):
        base = Messages(Gaussian.identity_like(local.precision), far).belief(unary, reweighting)
        for direction in range(4):
            weight, difference = at(edges.weight, t)[:, direction], at(edges.difference, t)[:, direction]
            damping = at(edges.damping, t)[:, None]
            local = reference.sweep(
                base, local, weight, difference, damping, direction=direction, reweighting=reweighting
            )
            snapshot(t, DIRECTIONS[direction])
        if (learned := mrf.nonlocal_) is not None and nonlocal_steps:
            base = Messages(local, Gaussian.identity_like(far.precision)).belief(unary, reweighting)
            for _ in range(nonlocal_steps):
                far = _nonlocal_step(base, far, learned, t, reweighting)
            snapshot(t, "nonlocal")
    state = Messages(local, far)
    return Inference(
        belief=state.belief(unary, reweighting),
        messages=state,
        iterations=iterations,
        backend="reference",
        snapshots=snapshots,
    )


def _nonlocal_step(
    base: Gaussian, total: Gaussian, edges: NonLocalEdges, t: int, reweighting: float
) -> Gaussian:
    return reference.nonlocal_step(
        base,
        total,
        at(edges.weight, t),
        at(edges.difference, t),
        at(edges.offset, t),
        at(edges.damping, t)[:, None],
        reweighting=reweighting,
    )


def at(parameters: Tensor, t: int) -> Tensor:
    """Parameters [B, T or 1, ...] of iteration t."""
    return parameters[:, t if parameters.shape[1] > 1 else 0]
