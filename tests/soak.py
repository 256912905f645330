"""Kill batches and training runs at random moments, and compare with undisturbed ones byte for byte.

python tests/soak.py --frames 300 --kills 100 --training-kills 50 --seed 1
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import gbpn
from gbpn.files.atomic import PARTIAL
from gbpn.train.checkpoints import Checkpoints
from gbpn.train.progress import read_rows
from gbpn.weights.files import save

HEIGHT, WIDTH, POINTS = 40, 56, 60
LATEST_KILL = 0.2
"""Seconds after a frame, or a checkpoint, more than before at which a process is killed at the latest."""
TRAINING = (
    "model.width=0.25",
    "imagenet=no",  # its weights are in a package that [dev] does not bring
    "batch=2",
    "validate_every=20",
    "validation_limit=2",
    "checkpoint_every=2",
    "augmentation.height=64",
    "augmentation.width=64",
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How a soak ended."""

    kills: int
    differing: tuple[str, ...]
    """Files that are not as in the undisturbed run."""
    leftovers: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not self.differing and not self.leftovers


def soak_batch(folder: Path, *, frames: int, kills: int, seed: int) -> Verdict:
    """`gbpn complete` on made frames, killed `kills` times and started again."""
    write_frames(folder, frames)
    weights = folder / "weights.safetensors"
    torch.manual_seed(0)
    save(gbpn.build("small", width=0.25), weights)
    command = ["complete", str(folder / "color"), str(folder / "depth"), "--weights", str(weights)]
    command += ["--device", "cpu"]
    whole, killed = folder / "whole", folder / "killed"
    finish([*command, "-o", str(whole)])
    done = kill_often(
        lambda: [*command, "-o", str(killed)], lambda: len(list(killed.glob("*.json"))), kills, seed
    )
    finish([*command, "-o", str(killed)])
    return compared(whole, killed, done)


def soak_training(folder: Path, *, kills: int, seed: int, steps: int) -> Verdict:
    """`gbpn train` on made scenes with two loading processes, killed `kills` times and resumed."""
    settings = [word for text in (*TRAINING, f"steps={steps}") for word in ("--set", text)]
    command = ["train", "synthetic", *settings, "--accelerator", "cpu", "--workers", "2", "--no-progress"]
    whole, killed = folder / "whole_run", folder / "killed_run"
    finish([*command, "-o", str(whole)])

    def begin() -> list[str]:
        return [*command, "-o", str(killed), *(["--resume"] if (killed / "recipe.json").exists() else [])]

    def progress() -> int:
        found = sorted((killed / "checkpoints").glob("step-*.pt"))
        return int(found[-1].stem.removeprefix("step-")) if found else 0

    done = kill_often(begin, progress, kills, seed)
    finish(begin())
    states = [Checkpoints(run / "checkpoints") for run in (whole, killed)]
    one, other = (checkpoints.read(checkpoints.latest() or Path()) for checkpoints in states)
    differing = [
        name for name, tensor in one["model"].items() if not torch.equal(tensor, other["model"][name])
    ]
    if one["step"] != other["step"]:
        differing.append("step")
    for name in ("steps.csv", "validation.csv"):
        rows = [[row["step"] for row in read_rows(run / name)] for run in (whole, killed)]
        differing += [name] if rows[0] != rows[1] or len(set(rows[1])) != len(rows[1]) else []
    left = tuple(path.name for path in killed.rglob(f"{PARTIAL}*"))
    return Verdict(kills=done, differing=tuple(differing), leftovers=left)


def write_frames(folder: Path, count: int) -> None:
    """Pictures in color/, measurements in depth/."""
    rng = np.random.default_rng(0)
    for name in ("color", "depth"):
        (folder / name).mkdir(parents=True)
    for frame in range(count):
        colour = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        Image.fromarray(colour).save(folder / "color" / f"{frame:04d}.png")
        depth = np.zeros(HEIGHT * WIDTH, np.float32)
        depth[rng.choice(depth.size, POINTS, replace=False)] = rng.uniform(2, 3, POINTS)
        np.save(folder / "depth" / f"{frame:04d}.npy", depth.reshape(HEIGHT, WIDTH))


def kill_often(command: Callable[[], list[str]], progress: Callable[[], int], kills: int, seed: int) -> int:
    """Start, let it come further than before, kill; how often, where it did not end by itself first."""
    rng = random.Random(seed)
    for done in range(kills):
        process = start(command())
        before, deadline = progress(), time.monotonic() + 300
        while process.poll() is None and progress() <= before and time.monotonic() < deadline:
            time.sleep(0.01)
        moment = time.monotonic() + rng.random() * LATEST_KILL * rng.random()
        while process.poll() is None and time.monotonic() < moment:
            time.sleep(0.002)
        if process.poll() is not None:
            return done
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    return kills


def compared(whole: Path, killed: Path, kills: int) -> Verdict:
    """The files of two folders, byte for byte."""
    names = {path.name for folder in (whole, killed) for path in folder.iterdir()}
    left = {name for name in names if name.startswith(PARTIAL)}
    differing = [name for name in sorted(names - left) if contents(whole / name) != contents(killed / name)]
    return Verdict(kills=kills, differing=tuple(differing), leftovers=tuple(sorted(left)))


def contents(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-m", "gbpn.cli", *words], env=environment, stdout=quiet, stderr=quiet
    )


def finish(words: Sequence[str]) -> None:
    """To the end, which must be a good one."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "gbpn.cli", *words], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}: {done.stdout}{done.stderr}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--training-kills", type=int, default=50)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        verdicts = {}
        if asked.kills:
            verdicts["batch"] = soak_batch(
                Path(name), frames=asked.frames, kills=asked.kills, seed=asked.seed
            )
            print("batch", verdicts["batch"], flush=True)
        if asked.training_kills:
            verdicts["training"] = soak_training(
                Path(name), kills=asked.training_kills, seed=asked.seed, steps=asked.steps
            )
            print("training", verdicts["training"], flush=True)
    sys.exit(not all(verdict.sound for verdict in verdicts.values()))


if __name__ == "__main__":
    main()
