"""Training on two nodes: launch lines of docs/scale.md, a node killed, the run resumed on the other.

Two nodes are two processes with addresses of their own on this machine. The weights must be those of one
process, since the global batch is the same; in double precision, as in tests/train/test_runs.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from hostile_bucket import free_port

from gbpn.train.run_folder import RunFolder

pytest.importorskip("lightning_fabric", reason="needs pip install gbpn[train]")

SETTINGS = (
    "model.width=0.25", "imagenet=no", "batch=4", "validation_limit=1", "checkpoint_every=1",
    "average_from=2", "dataset.count=8", "dataset.height=64", "dataset.width=64", "augmentation.height=64",
    "augmentation.width=64", "freeze_encoder_statistics=no",
)  # fmt: skip
PLAIN = [sys.executable, "-m", "gbpn.cli"]


def train(out: Path, steps: int, *more: str) -> list[str]:
    flags = [
        word
        for setting in (*SETTINGS, f"steps={steps}", f"validate_every={steps}")
        for word in ("--set", setting)
    ]
    words = ["train", "synthetic", "-o", str(out), "--accelerator", "cpu", "--workers", "0", "--no-progress"]
    return [*words, "--precision", "64-true", *flags, *more]


def started(command: list[str], **environment: str) -> subprocess.Popen[str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def torchrun(rank: int, port: int, words: list[str]) -> subprocess.Popen[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    launcher += ["--node-rank", str(rank), "--master-addr", "127.0.0.1", "--master-port", str(port)]
    return started(
        [*launcher, "--local-addr", f"127.0.0.{rank + 1}", "-m", "gbpn.cli", *words, "--nodes", "2"]
    )


def slurm(rank: int, port: int, words: list[str]) -> subprocess.Popen[str]:
    """As `srun --nodes 2 --ntasks-per-node 1 gbpn train …` starts it."""
    tasks = {"SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "1", "SLURM_NNODES": "2", "SLURM_JOB_NAME": "gbpn"}
    place = {"SLURM_PROCID": str(rank), "SLURM_NODEID": str(rank), "SLURM_LOCALID": "0", "SLURM_JOB_ID": "7"}
    main = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "SLURM_NODELIST": "127.0.0.[1-2]"}
    return started([*PLAIN, *words, "--nodes", "2"], **tasks, **place, **main)


def ended(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=300)[0]


def state(run: Path) -> dict[str, Any]:
    checkpoints = RunFolder(run).checkpoints
    return checkpoints.read(checkpoints.latest())


def assert_same(one: Path, other: Path) -> None:
    first, second = state(one), state(other)
    assert first["step"] == second["step"]
    for name, tensor in first["model"].items():
        if tensor.is_floating_point():
            torch.testing.assert_close(tensor, second["model"][name], rtol=1e-6, atol=1e-6, msg=name)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    out = tmp_path_factory.mktemp("alone") / "run"
    process = started([*PLAIN, *train(out, 5)])
    said = ended(process)
    assert process.returncode == 0, said
    return out


@pytest.mark.parametrize("launch", [torchrun, slurm], ids=["torchrun", "slurm"])
def test_two_nodes_learn_what_one_learns(launch, alone: Path, tmp_path: Path) -> None:
    port = free_port()
    nodes = [launch(rank, port, train(tmp_path / "run", 5)) for rank in range(2)]
    said = [ended(node) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    assert_same(alone, tmp_path / "run")


def test_a_node_is_killed_and_the_run_goes_on_with_one(alone: Path, tmp_path: Path) -> None:
    run, port = tmp_path / "run", free_port()
    nodes = [torchrun(rank, port, train(run, 5)) for rank in range(2)]
    deadline = time.monotonic() + 200
    while not list((run / "checkpoints").glob("step-*.pt")):
        assert nodes[0].poll() is None, ended(nodes[0])
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(nodes[1].pid, signal.SIGKILL)
    said = ended(nodes[0])
    nodes[1].communicate()
    assert nodes[0].returncode != 0, "half a batch would have been learnt"
    assert 1 <= state(run)["step"] < 5, said
    rest = started([*PLAIN, *train(run, 5), "--resume"])
    said = ended(rest)
    assert rest.returncode == 0, said
    assert_same(alone, run)
