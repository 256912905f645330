"""`infer`: the schedule of the paper's Algorithm 1 over a chosen backend."""

from __future__ import annotations

import warnings
from functools import partial
from types import ModuleType

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gbpn.errors import BackendError, InputError
from gbpn.gaussian import Gaussian
from gbpn.gbp import edge_messages
from gbpn.gbp.scheme import RELEASED, Scheme
from gbpn.gbp.state import Inference, Messages, Snapshot
from gbpn.kernels.backends import COMPILED, TRITON, require_backend
from gbpn.mrf import DIRECTIONS, MRF, LocalEdges, NonLocalEdges

__all__ = [
    "BACKWARDS",
    "KEPT_PLANES",
    "at",
    "choose_backend",
    "fitting_backward",
    "infer",
    "load_backend",
]

BACKWARDS = ("tape", "recompute", "auto")
KEPT_PLANES = {"tape": 82, "recompute": 18}
"""Planes that backends without a tape of their own keep for the gradient of an iteration with four steps: of
every sweep and step the messages after it (16; 2 beside the field that it read), or the messages before the
iteration."""
_SHARE = 1 / 4
"""Of a GPU's memory, that a tape may take."""


def infer(
    mrf: MRF,
    messages: Messages | None = None,
    *,
    iterations: int | None = None,
    nonlocal_steps: int = 4,
    backend: str = "auto",
    solver: str = "gbp",
    variances: bool = False,
    reweighting: float = 1.0,
    scheme: Scheme = RELEASED,
    backward: str = "tape",
    record: bool = False,
    check: bool = True,
) -> Inference:
    """Belief of every pixel after `iterations` of four serial sweeps and `nonlocal_steps` parallel steps.

    messages     continue from these (warm start); None starts empty
    iterations   how many; default: what the dynamic parameters are made for, or 5
    backend      "reference", "cpu", "triton", or "auto" by device and what is installed
    solver       "gbp", or the exact answer of a symmetric field by linear algebra: "exact", "cg" or "amg"
                 (no messages, no iterations; learned edges only with nonlocal_steps=0)
    variances    exact solvers only: marginal instead of conditional precision, see `gbpn.gbp.exact`
    reweighting  ρ: edges count w/ρ and beliefs sum ρ·messages; 1 is the paper
    scheme       where the paper's text and the release pass messages differently, see `Scheme`
    backward     what is kept for gradients, per pixel and iteration in float32 with 3 edges, 4 steps:
                 "tape" 128 bytes (96 without learned edges; other backends than cpu every message of every
                 sweep, about 330), "recompute" 72 bytes, the messages before it, and one more forward pass;
                 "auto" recomputes where a tape would take more than a quarter of a GPU's memory
    record       keep the belief after every sweep (slow; for pictures)
    check        validate shapes and values (about the cost of one iteration); switch off only where they
                 are known to be good
    """
    if check:
        mrf.check()
        if messages is not None:
            messages.check(mrf, scheme)
    if not reweighting > 0:
        raise InputError(f"reweighting must be above 0; got {reweighting}")
    if solver != "gbp":
        return _infer_exactly(mrf, messages, solver, variances, ignore_nonlocal=nonlocal_steps == 0)
    if variances:
        raise InputError('variances=True needs an exact solver, e.g. solver="exact"; got solver="gbp"')
    made_for = mrf.iterations
    iterations = iterations if iterations is not None else made_for or 5
    if made_for is not None and iterations > made_for:
        raise InputError(f"this field has parameters for {made_for} iterations; got iterations={iterations}")
    if iterations < 0 or nonlocal_steps < 0:
        raise InputError(
            f"iterations and nonlocal_steps must not be negative; got {iterations} and {nonlocal_steps}"
        )
    if backward not in BACKWARDS:
        raise InputError(f"backward must be one of {', '.join(BACKWARDS)}; got {backward!r}")
    if backward == "auto":
        backward = _suitable_backward(mrf, iterations)
    name = scheme.backend(backend, choose_backend(backend, mrf.weight.device))
    operators = load_backend(name)
    mrf = operators.directed(mrf) if hasattr(operators, "directed") else mrf.directed()
    messages = messages if messages is not None else Messages.empty(mrf, scheme)
    if record or scheme != RELEASED or not hasattr(operators, "infer"):
        return _infer_stepwise(
            operators, name, mrf, messages, iterations, nonlocal_steps, reweighting, scheme, record, backward
        )
    belief, state = operators.infer(
        mrf,
        messages,
        iterations=iterations,
        nonlocal_steps=nonlocal_steps,
        reweighting=reweighting,
        backward=backward,
    )
    return Inference(belief=belief, messages=state, iterations=iterations, backend=name)


def fitting_backward(pixels: int, iterations: int, itemsize: int, *, memory: int) -> str:
    """ "tape", or "recompute" where a tape of so many pixels would fill a GPU of `memory` bytes."""
    kept = KEPT_PLANES["tape"] * itemsize * pixels * iterations
    return "recompute" if kept > _SHARE * memory else "tape"


def _suitable_backward(mrf: MRF, iterations: int) -> str:
    where = mrf.weight.device
    if where.type != "cuda":
        return "tape"
    memory = torch.cuda.get_device_properties(where).total_memory
    return fitting_backward(mrf.weight.numel(), iterations, mrf.weight.element_size(), memory=memory)


def _infer_exactly(
    mrf: MRF, messages: Messages | None, solver: str, variances: bool, ignore_nonlocal: bool
) -> Inference:
    from gbpn.gbp import exact  # scipy's sparse solvers load slowly

    if messages is not None:
        raise InputError(f"solver={solver!r} has no messages to continue from: leave messages=None")
    answer = exact.solve(
        mrf, solver=solver, variances=variances, ignore_nonlocal=ignore_nonlocal, check=False
    )
    return Inference(
        belief=answer.belief,
        messages=Messages.empty(mrf),
        iterations=answer.iterations,
        backend=solver,
    )


def choose_backend(backend: str, device: torch.device) -> str:
    """The backend to use; "auto" is the fastest that is installed for the device."""
    require_backend(backend)
    if backend != "auto":
        if backend == "cpu" and device.type != "cpu":
            raise BackendError(
                f'backend="cpu" works on CPU tensors; got {device}: use "auto" or move the field'
            )
        return backend
    if device.type == "cuda":
        return "triton" if TRITON else "reference"
    if device.type == "cpu":
        if COMPILED:
            return "cpu"
        _tell_what_is_lost()
    return "reference"


def _tell_what_is_lost() -> None:
    """Once per process, whatever the filters say."""
    global _told
    if not _told:
        _told = True
        warnings.warn(
            "gbpn was installed without its C++ kernels: inference runs in plain torch, about a hundred "
            "times slower. Install a C++ compiler and reinstall gbpn to get them.",
            stacklevel=4,
        )


_told = False


def load_backend(name: str) -> ModuleType:
    """The module with this backend's `sweep` and `nonlocal_step`, loaded on first use."""
    # Plain import statements, which torch.compile can follow.
    if name == "cpu":
        from gbpn.gbp import cpu

        return cpu
    if name == "triton":
        if not TRITON:
            raise BackendError('backend="triton" needs triton: pip install "gbpn[gpu]"')
        from gbpn.gbp import triton

        return triton
    if name == "scan":
        from gbpn.gbp import scan

        return scan
    from gbpn.gbp import reference

    return reference


def _infer_stepwise(
    operators: ModuleType,
    name: str,
    mrf: MRF,
    messages: Messages,
    iterations: int,
    nonlocal_steps: int,
    reweighting: float,
    scheme: Scheme,
    record: bool,
    backward: str,
) -> Inference:
    unary, state = mrf.unary, messages
    snapshots: list[Snapshot] = []
    again = backward == "recompute" and not record and torch.is_grad_enabled()

    def belief_of(sent: Messages) -> Gaussian:
        return sent.belief(unary, reweighting, in_order=name != "triton")

    def snapshot(t: int, part: str, local: Gaussian, far: Gaussian) -> None:
        if record:
            belief = belief_of(Messages(local, far))
            snapshots.append(Snapshot(iteration=t, part=part, belief=belief))

    edges = mrf.local
    assert isinstance(edges, LocalEdges)

    def iteration(t: int, *parts: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        local, far = Gaussian(*parts[:2]), Gaussian(*parts[2:])
        base = belief_of(Messages(Gaussian.identity_like(local.precision), far))
        for direction in range(4):
            local = _sweep(operators, base, local, edges, t, direction, reweighting, scheme)
            snapshot(t, DIRECTIONS[direction], local, far)
        if (learned := mrf.nonlocal_) is not None and nonlocal_steps:
            base = belief_of(Messages(local, Gaussian.identity_like(far.precision)))
            far = _parallel(operators, base, far, learned, t, nonlocal_steps, reweighting, scheme)
            snapshot(t, "nonlocal", local, far)
        return local.information, local.precision, far.information, far.precision

    parts = _parts(state)
    for t in range(iterations):
        if again:
            parts = checkpoint(iteration, t, *parts, use_reentrant=False, preserve_rng_state=False)
        else:
            parts = iteration(t, *parts)
    state = Messages(Gaussian(*parts[:2]), Gaussian(*parts[2:]))
    return Inference(
        belief=belief_of(state),
        messages=state,
        iterations=iterations,
        backend=name,
        snapshots=snapshots,
    )


def _parts(state: Messages) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    local, far = state.local, state.nonlocal_
    return local.information, local.precision, far.information, far.precision


def _sweep(
    operators: ModuleType,
    base: Gaussian,
    messages: Gaussian,
    edges: LocalEdges,
    t: int,
    direction: int,
    reweighting: float,
    scheme: Scheme,
) -> Gaussian:
    weight, difference = at(edges.weight, t)[:, direction], at(edges.difference, t)[:, direction]
    if scheme.edge_sets == "disjoint" and direction % 2:  # diagonals belong to the horizontal sweeps
        middle = weight.shape[1] // 2
        weight, difference = (maps[:, middle : middle + 1] for maps in (weight, difference))
    options = {"always": True} if scheme.damped == "always" else {}
    swept: Gaussian = operators.sweep(
        base,
        messages,
        weight,
        difference,
        at(edges.damping, t)[:, None],
        direction=direction,
        reweighting=reweighting,
        **options,
    )
    return swept


def _parallel(
    operators: ModuleType,
    base: Gaussian,
    far: Gaussian,
    edges: NonLocalEdges,
    t: int,
    steps: int,
    reweighting: float,
    scheme: Scheme,
) -> Gaussian:
    """Messages along learned edges after `steps` steps of iteration t."""
    weight, difference, offset = (at(maps, t) for maps in (edges.weight, edges.difference, edges.offset))
    step = operators.nonlocal_step
    if scheme.far_messages == "by-edge":
        step = partial(edge_messages.nonlocal_step, returning=edge_messages.Returning.of(offset))
    damping = at(edges.damping, t)[:, None]
    for _ in range(steps):
        far = step(base, far, weight, difference, offset, damping, reweighting=reweighting)
    return far


def at(parameters: Tensor, t: int) -> Tensor:
    """Parameters [B, T or 1, ...] of iteration t."""
    return parameters[:, t if parameters.shape[1] > 1 else 0]
