"""Run state on disk: complete files only, the last few and the best."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gbpn.atomic_files import PARTIAL, replacing
from gbpn.errors import TrainingError

PREFIX, SUFFIX = "step-", ".pt"


@dataclass(frozen=True)
class Checkpoints:
    """`folder/step-00001234.pt` files. A file appears under its name only when it is whole."""

    folder: Path
    keep: int = 2
    """How many of the latest stay."""

    def latest(self) -> Path | None:
        """The newest complete checkpoint; leftovers of interrupted writes are removed."""
        for partial in self.folder.glob(f"{PARTIAL}*"):
            partial.unlink(missing_ok=True)
        found = self._all()
        return found[-1] if found else None

    def write(self, step: int, state: dict[str, Any]) -> Path:
        """Write the state of `step`, then remove all but the newest `keep`."""
        path = self.folder / f"{PREFIX}{step:08d}{SUFFIX}"
        _write(path, state)
        for old in self._all()[: -self.keep]:
            old.unlink(missing_ok=True)
        return path

    def read(self, path: Path) -> dict[str, Any]:
        """Load on the CPU, tensors and plain values only."""
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            return state
        except Exception as error:
            raise TrainingError(
                f"checkpoint {path} cannot be read ({error}): delete it to resume from the one before"
            ) from error

    def _all(self) -> list[Path]:
        return sorted(self.folder.glob(f"{PREFIX}*{SUFFIX}"))


def _write(path: Path, state: dict[str, Any]) -> None:
    try:
        with replacing(path, durable=True) as temporary:
            torch.save(state, temporary)
    except (OSError, RuntimeError) as error:
        raise TrainingError(
            f"could not write {path} ({error}); the checkpoint before it is intact: "
            "free some space and continue with --resume"
        ) from error
