"""Training on two nodes: launch lines of docs/scale.md, a node killed, the run resumed on the other.

Two nodes are two processes with addresses of their own on this machine. The weights must be those of one
process, since the global batch is the same; in double precision, as in tests/train/test_runs.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
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
STEPS = 20
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
    return process.communicate(timeout=600)[0]


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
    process = started([*PLAIN, *train(out, STEPS)])
    said = ended(process)
    assert process.returncode == 0, said
    return out


@pytest.mark.parametrize("launch", [torchrun, slurm], ids=["torchrun", "slurm"])
def test_two_nodes_learn_what_one_learns(launch, alone: Path, tmp_path: Path) -> None:
    port = free_port()
    nodes = [launch(rank, port, train(tmp_path / "run", STEPS)) for rank in range(2)]
    said = [ended(node) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    assert_same(alone, tmp_path / "run")


def test_a_node_is_killed_and_the_run_goes_on_with_one(alone: Path, tmp_path: Path) -> None:
    run, port = tmp_path / "run", free_port()
    nodes = [torchrun(rank, port, train(run, STEPS)) for rank in range(2)]
    deadline = time.monotonic() + 200
    while not list((run / "checkpoints").glob("step-*.pt")):
        assert nodes[0].poll() is None, ended(nodes[0])
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for process in (*psutil.Process(nodes[1].pid).children(recursive=True), psutil.Process(nodes[1].pid)):
        process.kill()  # the whole machine at once
    said = ended(nodes[0])
    nodes[1].communicate()
    assert nodes[0].returncode != 0, "half a batch would have been learnt"
    assert 1 <= state(run)["step"] < STEPS, said
    rest = started([*PLAIN, *train(run, STEPS), "--resume"])
    said = ended(rest)
    assert rest.returncode == 0, said
    assert_same(alone, run)


RAY = """
import sys
from pathlib import Path

import ray
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer


def one_process(options):
    import os
    os.environ["TORCHELASTIC_RUN_ID"] = "ray"
    from gbpn.train.loop import Machine, train
    from gbpn.train.recipe import named
    recipe = named("synthetic").changed(options["settings"])
    here, all_of_them = (int(os.environ[name]) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    machine = Machine(
        accelerator="cpu", processes=here, nodes=all_of_them // here, precision="64-true", workers=0,
        progress=False,
    )
    train(recipe, None, Path(options["out"]), machine=machine)


ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False)
options = {"out": sys.argv[1], "settings": sys.argv[2:]}
TorchTrainer(one_process, train_loop_config=options, scaling_config=ScalingConfig(num_workers=2)).fit()
"""
"""As docs/scale.md shows it."""


def test_ray_train_starts_the_same_run(alone: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray.train", reason="needs pip install gbpn[scale]")
    run = tmp_path / "run"
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        RAY,
        str(run),
        *SETTINGS,
        f"steps={STEPS}",
        f"validate_every={STEPS}",
    ]
    process = started(command, RAY_worker_niceness="0", RAY_USAGE_STATS_ENABLED="0")
    said = ended(process)
    assert process.returncode == 0, said
    assert_same(alone, run)
