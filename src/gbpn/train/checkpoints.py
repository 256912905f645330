"""Run state on disk: complete files only, the last few and the best.

A checkpoint is a zip archive, as torch writes it, whose parts carry a CRC-32 each. Torch does not look at
them; here they are checked before anything is read.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gbpn.errors import TrainingError
from gbpn.files.atomic import PARTIAL, replacing

__all__ = ["DAMAGED", "Checkpoints", "step_of"]

_PREFIX, _SUFFIX = "step-", ".pt"
DAMAGED = "damaged-"
"""What the names of checkpoints that cannot be read are made to begin with."""


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

    def set_damaged_aside(self) -> list[str]:
        """Rename the newest checkpoints up to the first sound one; what is wrong with each, in words."""
        reasons: list[str] = []
        while (newest := self.latest()) is not None:
            try:
                self.read(newest)
            except TrainingError as error:
                newest.replace(newest.with_name(f"{DAMAGED}{newest.name}"))
                reasons.append(str(error))
                continue
            return reasons
        if reasons:
            raise TrainingError(
                f"no checkpoint in {self.folder} can be read; the last tried: {reasons[-1]}: "
                "start anew with another --out"
            )
        return reasons

    def write(self, step: int, state: dict[str, Any]) -> Path:
        """Write the state of `step`, then remove all but the newest `keep`."""
        path = self.folder / f"{_PREFIX}{step:08d}{_SUFFIX}"
        _write(path, state)
        for old in self._all()[: -self.keep]:
            old.unlink(missing_ok=True)
        return path

    def read(self, path: Path) -> dict[str, Any]:
        """Load on the CPU, tensors and plain values only."""
        try:
            with zipfile.ZipFile(path) as archive:
                broken = archive.testzip()
            state = None if broken else torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:  # a damaged archive fails in many ways
            raise TrainingError(f"checkpoint {path} cannot be read: truncated or damaged") from error
        if broken:
            raise TrainingError(
                f"checkpoint {path} is damaged: the checksum of its part {broken} does not fit"
            )
        if not isinstance(state, dict):
            raise TrainingError(f"checkpoint {path} holds no state of a run but {type(state).__name__}")
        return state

    def _all(self) -> list[Path]:
        return sorted(self.folder.glob(f"{_PREFIX}*{_SUFFIX}"))


def step_of(checkpoint: Path) -> int:
    """The step after which a checkpoint was written, by its name."""
    return int(checkpoint.name.removeprefix(_PREFIX).removesuffix(_SUFFIX))


def _write(path: Path, state: dict[str, Any]) -> None:
    try:
        with replacing(path, durable=True) as temporary:
            torch.save(state, temporary)
    except (OSError, RuntimeError) as error:
        raise TrainingError(
            f"could not write {path} ({error}); the checkpoint before it is intact: "
            "free some space and continue with --resume"
        ) from error
