"""What a person sees of a run: progress bar, CSV files, TensorBoard."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gbpn.errors import TrainingError
from gbpn.files.atomic import write_text
from gbpn.files.guard import reading

__all__ = ["Table", "TrainingProgress", "read_rows"]


class Table:
    """A CSV file that grows row by row; reopening it for a resumed run drops rows after the given step."""

    def __init__(self, path: Path, resume_step: int) -> None:
        self.path = path
        rows = [row for row in read_rows(path) if int(row["step"]) <= resume_step] if resume_step else []
        self.columns: list[str] = list(rows[0]) if rows else []
        self._write(rows)

    def add(self, row: Mapping[str, Any]) -> None:
        if any(column not in self.columns for column in row):
            rows = read_rows(self.path)
            self.columns += [column for column in row if column not in self.columns]
            self._write(rows)
        with open(self.path, "a", newline="") as file:
            csv.DictWriter(file, self.columns).writerow(row)

    def _write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        file = io.StringIO(newline="")
        if self.columns:
            writer = csv.DictWriter(file, self.columns)
            writer.writeheader()
            writer.writerows(rows)
        write_text(self.path, file.getvalue())


def read_rows(path: Path) -> list[dict[str, str]]:
    """Sound rows of a CSV file of numbers; none if it is not there. What an interruption tore is left out."""
    if not path.is_file():
        return []
    with reading(path, "table", "rows of numbers", error=TrainingError):
        text = path.read_text(encoding="utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        lines = text.splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            lines.pop()  # torn, even where its beginning looks like a row
        rows = csv.DictReader(lines, restkey="", restval="?")
        return [
            row
            for row in rows
            if "step" in row and row["step"].isdecimal() and all(map(_is_number, row.values()))
        ]


def _is_number(cell: str | list[str]) -> bool:
    """Whether a cell is a number or empty; cells without a column come as a list."""
    try:
        return not cell or bool(float(cell) or True)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


class TrainingProgress:
    """Collects numbers on the first process; does nothing on the others."""

    def __init__(self, folder: Path, *, steps: int, first: int, active: bool, progress: bool) -> None:
        self.active = active
        self.console = Console(quiet=not active)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=self.console,
            disable=not (active and progress),
        )
        self._task = self._progress.add_task("training", total=steps, completed=first, numbers="")
        if active:
            self.steps = Table(folder / "steps.csv", first)
            self.validations = Table(folder / "validation.csv", first)
            self._board = _tensorboard(folder / "tensorboard", first)

    def __enter__(self) -> TrainingProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
        if self.active and self._board is not None:
            self._board.close()

    def step(self, step: int, numbers: Mapping[str, float], *, record: bool) -> None:
        """After 1-based `step`; `record` also writes it to the files."""
        shown = (
            f"loss {numbers['loss']:.4f}  lr {numbers['rate']:.1e}  {numbers['samples_per_s']:.1f} samples/s"
        )
        self._progress.update(self._task, completed=step, numbers=shown)
        if self.active and record:
            self.steps.add({"step": step, **numbers})
            self._scalars("train", step, numbers)

    def validated(self, step: int, numbers: Mapping[str, float], *, best: bool) -> None:
        if self.active:
            self.validations.add({"step": step, **numbers})
            self._scalars("validation", step, numbers)
        line = "  ".join(f"{name} {value:.4f}" for name, value in numbers.items())
        self.say(f"step {step}: {line}{'  [bold green]best so far[/]' if best else ''}")

    def say(self, text: str, *, about: str = "") -> None:
        """A line; `about` is printed after it as it is, even where a file name looks like markup."""
        self._progress.console.print(f"{text} {escape(about)}".rstrip(), highlight=False)

    def _scalars(self, group: str, step: int, numbers: Mapping[str, float]) -> None:
        if self._board is not None:
            for name, value in numbers.items():
                self._board.add_scalar(f"{group}/{name}", value, step)


def _tensorboard(folder: Path, first: int) -> Any:
    """A TensorBoard writer, or None where the package is not installed (CSV files are always written)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=first or None)
