"""The training loop: resumable at any step, on one process or many."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from gbpn.augmentation.augmentations import AUGMENTATIONS
from gbpn.datasets import Batch, TrainingView, open_dataset
from gbpn.errors import BackendError, TrainingError
from gbpn.model.loading import load
from gbpn.model.models import from_config
from gbpn.train import optimiser as optimisation
from gbpn.train.averaging import WeightAverage
from gbpn.train.distributed import average, synchronise_batch_norm
from gbpn.train.fault_tolerant import FaultTolerantSamples, collate_fetched
from gbpn.train.learner import Learner
from gbpn.train.progress import TrainingProgress
from gbpn.train.recipe import Recipe
from gbpn.train.run_folder import RunFolder
from gbpn.train.run_lock import locked
from gbpn.train.sigma_calibration import calibrate
from gbpn.train.starting_model import starting_model
from gbpn.train.step_sampler import StepSampler
from gbpn.train.summary import write_summary
from gbpn.train.teacher import Teacher
from gbpn.train.validation import validate
from gbpn.weights.files import save

__all__ = ["Machine", "TrainingResult", "train"]

_RECORD_EVERY = 20
"""Steps between rows of steps.csv."""
_FEWEST_RECORDS = 20
"""Of a short run, whose steps are kept more often."""

_BROKEN_STEPS = 3
"""More steps than this in a row without a finite gradient end the run."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where a run happens; changes nothing of what it learns beyond float rounding."""

    accelerator: str = "auto"
    """cpu, cuda, mps or auto."""
    processes: int = 1
    """Processes (devices) per node; torchrun's are used when it started us."""
    nodes: int = 1
    precision: str = "32-true"
    """32-true or bf16-mixed."""
    workers: int = 1
    """Data-loading processes per training process; 0 loads in the training process."""
    progress: bool = True


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """How a run ended."""

    step: int
    finished: bool
    best_rmse: float | None
    folder: Path


def train(
    recipe: Recipe, data: Path | None, out: Path, *, resume: bool = False, machine: Machine | None = None
) -> TrainingResult:
    """Run `recipe` on the dataset under `data`, writing everything below `out`."""
    machine = machine or Machine()
    fabric = _fabric(machine)
    fabric.launch()
    folder = RunFolder(out)
    try:
        with ExitStack() as stack:
            damaged: list[str] = []
            if fabric.is_global_zero:
                if not resume or out.is_dir():
                    stack.enter_context(locked(out))
                folder.open(recipe, resume=resume)
                damaged = folder.checkpoints.set_damaged_aside() if resume else []
            fabric.barrier()
            return _perform(recipe, data, folder, fabric, machine, resume, damaged)
    except OSError as error:
        raise TrainingError(
            f"the run in {out} cannot go on: {error}; its last checkpoint is intact: continue with --resume"
        ) from error


def _perform(
    recipe: Recipe,
    data: Path | None,
    folder: RunFolder,
    fabric: Any,
    machine: Machine,
    resume: bool,
    damaged: list[str],
) -> TrainingResult:
    if recipe.batch % fabric.world_size:
        raise TrainingError(
            f"batch must divide by the number of processes; got {recipe.batch} and {fabric.world_size}"
        )
    return _Run(recipe, data, folder, fabric, machine, resume).go(damaged)


class _Run:
    """State of a run in progress; `go` is the loop."""

    def __init__(
        self,
        recipe: Recipe,
        data: Path | None,
        folder: RunFolder,
        fabric: Any,
        machine: Machine,
        resume: bool,
    ) -> None:
        self.recipe, self.folder, self.fabric, self.machine = recipe, folder, fabric, machine
        root = data or Path()  # synthetic scenes need none
        training = open_dataset(recipe.dataset, root, "train", **recipe.dataset_options)
        self.held_out = open_dataset(recipe.dataset, root, "validation", **recipe.dataset_options)
        augmentation = AUGMENTATIONS[recipe.augmentation](**recipe.augmentation_options)
        self.stream = FaultTolerantSamples(TrainingView(training, augmentation, recipe.seed))

        torch.manual_seed(recipe.seed)
        self.network = starting_model(recipe)
        if fabric.device.type == "cpu":  # as oneDNN likes it
            self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if fabric.world_size > 1:
            synchronise_batch_norm(self.network)
        learner = Learner(self.network, recipe, Teacher.of(recipe, training.names))
        self.learner, self.optimiser = fabric.setup(learner, optimisation.build(self.network, recipe))
        self.average = WeightAverage(self.network, recipe.average_decay)
        self.step, self.failures, self.broken = 0, 0, 0
        self.best: float | None = None
        if resume:
            self._restore()

    def go(self, damaged: list[str]) -> TrainingResult:
        """The whole loop; `damaged` says which checkpoints had to be set aside before it."""
        recipe, fabric = self.recipe, self.fabric
        watch = TrainingProgress(
            self.folder.path,
            steps=recipe.steps,
            first=self.step,
            active=fabric.is_global_zero,
            progress=self.machine.progress,
        )
        with watch, _stop_requests() as stop, _tiny_numbers_as_zero():
            for reason in damaged:
                watch.say(f"[yellow]warning:[/] going on from step {self.step}, since", about=reason)
            clock = time.perf_counter()
            for batch, failures in self._batches():
                self._count(failures, watch)
                every = max(min(_RECORD_EVERY, recipe.steps // _FEWEST_RECORDS), 1)
                recorded = self.step == 0 or (self.step + 1) % every == 0
                numbers = self._learn(batch, detailed=recorded)
                if self.broken:
                    about = ", ".join(batch.names)
                    watch.say(f"[yellow]skipped:[/] step {self.step}, no finite gradient;", about=about)
                self.step += 1
                now = time.perf_counter()
                numbers["samples_per_s"], clock = recipe.batch / (now - clock), now
                watch.step(self.step, numbers, record=recorded)
                last = self.step == recipe.steps
                stopping = bool(average(torch.tensor([float(stop.requested)])).item() > 0)
                if self.step % recipe.validate_every == 0 or last:
                    self._validate(watch)
                    clock = time.perf_counter()
                if self.step % recipe.checkpoint_every == 0 or last or stopping:
                    self._save()
                if stopping and not last:
                    watch.say(f"stopped at step {self.step}; continue with --resume")
                    break
        finished = self.step >= recipe.steps
        if fabric.is_global_zero:
            if finished:
                self._calibrate()
            write_summary(self.folder, recipe)
        fabric.barrier()
        return TrainingResult(step=self.step, finished=finished, best_rmse=self.best, folder=self.folder.path)

    def _batches(self) -> Iterator[tuple[Batch, list[str]]]:
        recipe, fabric = self.recipe, self.fabric
        order = StepSampler(
            length=len(self.stream),
            batch=recipe.batch,
            seed=recipe.seed,
            first=self.step,
            last=recipe.steps,
            rank=fabric.global_rank,
            processes=fabric.world_size,
            sizes=recipe.sizes,
        )
        loader: DataLoader[tuple[Batch, list[str]]] = DataLoader(
            self.stream,  # type: ignore[arg-type]
            batch_sampler=order,
            num_workers=self.machine.workers,
            collate_fn=collate_fetched,
            worker_init_fn=_serve,
            prefetch_factor=4 if self.machine.workers else None,
        )
        yield from loader

    def _learn(self, batch: Batch, *, detailed: bool) -> dict[str, float]:
        """One optimizer step; every random draw depends on (seed, step) only."""
        recipe, fabric = self.recipe, self.fabric
        torch.manual_seed(recipe.seed * 1_000_003 + self.step)
        rate = optimisation.follow(self.optimiser.optimizer, recipe.schedule, self.step)
        self.learner.train()
        self.optimiser.zero_grad(set_to_none=True)
        here = batch.to(fabric.device)
        losses = self.learner(here.image, here.sparse, here.intrinsics, here.target, here.names)
        fabric.backward(losses["loss"])
        norms = optimisation.gradient_norms(self.network.named_parameters()) if detailed else {}
        norm = fabric.clip_gradients(
            self.learner, self.optimiser, max_norm=recipe.clip_norm, error_if_nonfinite=False
        )
        values = average(torch.stack([*losses.values(), norm]).detach().cpu()).tolist()
        numbers = dict(zip([*losses, "gradient_norm"], values, strict=True))
        self._require_finite(numbers, batch.names)
        broken = not math.isfinite(numbers["gradient_norm"])
        skipped = broken or (self.step >= recipe.skip_after and numbers["gradient_norm"] > recipe.skip_norm)
        if not skipped:
            self.optimiser.step()
        if self.step >= recipe.average_from:
            self.average.update(self.network)
        numbers |= {"rate": rate, "skipped": float(skipped)}
        return numbers | {f"gradient/{part}": value for part, value in norms.items()}

    def _require_finite(self, numbers: dict[str, float], names: tuple[str, ...]) -> None:
        """A gradient alone that is not finite costs its step; a loss, or too many gradients, end the run."""
        sound = {name: math.isfinite(value) for name, value in numbers.items()}
        self.broken = 0 if sound["gradient_norm"] else self.broken + 1
        if not all(sound[name] for name in sound if name != "gradient_norm") or self.broken > _BROKEN_STEPS:
            said = ", ".join(f"{name} {value:g}" for name, value in numbers.items())
            raise TrainingError(
                f"not finite at step {self.step}: {said}; frames {', '.join(names)}: lower peak_rate or "
                "inspect these frames, then go on from the last checkpoint with --resume"
            )

    def _count(self, failures: list[str], watch: TrainingProgress) -> None:
        for failure in failures:
            watch.say("[yellow]skipped:[/]", about=failure)
        self.failures += len(failures)
        if self.failures > self.recipe.bad_samples:
            raise TrainingError(
                f"{self.failures} samples could not be read, more than the {self.recipe.bad_samples} allowed "
                f"by bad_samples; the last: {failures[-1]}"
            )

    def _validate(self, watch: TrainingProgress) -> None:
        weights = self.average.weights(self.network)
        if self.fabric.is_global_zero:
            judged = from_config(self.network.config).to(self.fabric.device)
            judged.load_state_dict(weights)
            picture = self.folder.pictures / f"step-{self.step:08d}.png"
            numbers = validate(judged, self.held_out, self.recipe, picture)
            better = self.best is None or numbers["rmse"] < self.best
            if better:
                self.best = numbers["rmse"]
                save(judged, self.folder.best)
            save(judged, self.folder.last)
            watch.validated(self.step, numbers, best=better)
        self.best = self.fabric.broadcast(self.best)

    def _calibrate(self) -> None:
        """Give the finished weights their map from confidence to metres, fitted on the held-out frames."""
        for path in (self.folder.best, self.folder.last):
            judged = load(path, device=self.fabric.device)
            judged.calibration = calibrate(judged, self.held_out, self.recipe.validation_limit)
            save(judged, path)

    def _save(self) -> None:
        if self.fabric.is_global_zero:
            self.folder.checkpoints.write(
                self.step,
                {
                    "step": self.step,
                    "best": self.best,
                    "failures": self.failures,
                    "model": self.network.state_dict(),
                    "average": self.average.state_dict(),
                    "optimiser": self.optimiser.optimizer.state_dict(),
                },
            )
        self.fabric.barrier()

    def _restore(self) -> None:
        path = self.folder.checkpoints.latest()
        if path is None:
            return  # stopped before its first checkpoint: start again
        state = self.folder.checkpoints.read(path)
        self.step, self.best, self.failures = state["step"], state["best"], state["failures"]
        self.network.load_state_dict(state["model"])
        self.average.load_state_dict(state["average"])
        self.optimiser.optimizer.load_state_dict(state["optimiser"])


def _fabric(machine: Machine) -> Any:
    try:
        from lightning_fabric import Fabric
    except ImportError as error:
        raise BackendError("training needs lightning-fabric: pip install 'gbpn[train]'") from error
    many = machine.processes * machine.nodes > 1
    return Fabric(
        accelerator=machine.accelerator,
        devices=machine.processes,
        num_nodes=machine.nodes,
        strategy="ddp" if many else "auto",
        precision=machine.precision,  # type: ignore[arg-type]
    )


def _serve(worker: int) -> None:
    """A process that loads data: who is asked to stop is the run, which ends its helpers when it is done."""
    torch.set_num_threads(1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


class _Stop:
    requested = False


@contextmanager
def _tiny_numbers_as_zero() -> Iterator[None]:
    """Numbers below 1e-38 count as zero: processors take a hundred times longer with them.

    Gradients far from the loss are full of such numbers; without this a step takes nearly twice as long.
    """
    before = float(torch.tensor(1e-39) * 1.0) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


@contextmanager
def _stop_requests() -> Iterator[_Stop]:
    """Turn SIGTERM and Ctrl-C into a request that the loop honours after the present step."""
    stop = _Stop()

    def request(*_: object) -> None:
        stop.requested = True

    first = threading.current_thread() is threading.main_thread()  # another, as Ray Train's, may not listen
    numbers = (signal.SIGTERM, signal.SIGINT) if first else ()
    before = {number: signal.signal(number, request) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
