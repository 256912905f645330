"""The run folder: what was run, with what, and where things lie."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gbpn.errors import TrainingError
from gbpn.files.atomic import write_text
from gbpn.files.guard import shown
from gbpn.train.checkpoints import Checkpoints
from gbpn.train.recipe import Recipe

__all__ = ["RunFolder", "environment"]


@dataclass(frozen=True)
class RunFolder:
    """Paths of one run."""

    path: Path

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.path / "checkpoints")

    @property
    def pictures(self) -> Path:
        return self.path / "pictures"

    @property
    def best(self) -> Path:
        return self.path / "best.safetensors"

    @property
    def last(self) -> Path:
        return self.path / "last.safetensors"

    def open(self, recipe: Recipe, *, resume: bool) -> None:
        """Create the folder, or check that it holds the same recipe when resuming."""
        file = self.path / "recipe.json"
        wanted = json.loads(json.dumps(recipe.as_dict()))
        if resume:
            if not file.is_file():
                raise TrainingError(f"nothing to resume in {self.path}: it has no recipe.json; drop --resume")
            found = _recipe_of(file)
            differing = sorted(k for k in wanted.keys() | found.keys() if wanted.get(k) != found.get(k))
            if differing:
                raise TrainingError(
                    f"{self.path} was started with another recipe: {shown(', '.join(differing))} differ; "
                    "resume with the same settings or choose a new --out"
                )
            return
        if file.exists():
            raise TrainingError(
                f"{self.path} already holds a run: continue it with --resume or choose a new --out"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        self.write_json("environment.json", environment())
        self.write_json("recipe.json", wanted)

    def write_json(self, name: str, value: Any) -> None:
        self.write_text(name, json.dumps(value, indent=1) + "\n")

    def write_text(self, name: str, text: str) -> None:
        write_text(self.path / name, text, durable=True)


def _recipe_of(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise TrainingError(
            f"{file} is damaged ({error}): write the recipe of this run into it again, or choose a new --out"
        ) from error
    if not isinstance(found, dict):
        raise TrainingError(f"{file} must hold a recipe; got {type(found).__name__}: choose a new --out")
    return found


def environment() -> dict[str, Any]:
    """Versions, machine and git state, for the record."""
    return {
        "command": ["gbpn", *sys.argv[1:]],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda if torch.cuda.is_available() else None,
        "git": _git_state(),
    }


def _processor() -> str:
    """What the processor calls itself; on Linux the kernel knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named and named[0] else platform.processor() or "unknown processor"


def _git_state() -> str | None:
    """Commit of the source tree, marked if it has changes; None outside a checkout."""
    here = Path(__file__).parent
    try:
        out = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return out.stdout.strip() if out.returncode == 0 else None
