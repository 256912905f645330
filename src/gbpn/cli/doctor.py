"""`gbpn doctor`: what this installation has, whether it works, and what would make it better."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

__all__ = ["EXTRAS", "Finding", "doctor", "findings"]

EXTRAS = {
    "gpu": ("triton",),
    "hub": ("huggingface_hub",),
    "onnx": ("onnx", "onnxruntime", "onnxscript"),
    "openvino": ("openvino",),
    "data": ("h5py",),
    "ros": ("rosbags",),
    "video": ("av",),
    "train": ("lightning-fabric", "tensorboard", "h5py"),
    "solvers": ("pyamg",),
    "rerun": ("rerun-sdk",),
    "scale": ("ray", "pyarrow"),
    "worlds": ("embreex", "numba"),
}
"""Packages of each extra that users choose, and `_PURPOSE` …"""
_PURPOSE = {
    "gpu": "inference on NVIDIA GPUs",
    "hub": "weights from the Hugging Face hub",
    "onnx": "gbpn export, --engine onnxruntime, gbpn.runtime",
    "openvino": "--engine openvino",
    "data": "NYUv2's own files",
    "ros": "ROS bags and MCAP recordings",
    "video": "video in and out",
    "train": "gbpn train",
    "solvers": "infer(solver='amg')",
    "rerun": "recordings for the rerun viewer",
    "scale": "buckets, manifests, tar shards, gbpn complete --distributed ray",
    "worlds": "drawn rooms and streets",
}
"""… what it is for."""
_MARKS = {"good": "[green]✓[/]", "optional": "[dim]–[/]", "bad": "[red]✗[/]"}
_WIDTH = 12
"""Characters of mark and name."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line."""

    name: str
    state: str
    """"good"; "optional": not there and not needed; "bad": gbpn works badly or not at all without it."""
    text: str
    advice: str = ""
    """What to do; empty where nothing needs to be done."""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Check every kernel on the GPU, time it, print a text to paste.")
    ] = False,
) -> None:
    """What is installed and works here, and how to get what is missing; exit code 1 if gbpn cannot work.

    With --gpu: 1 if a kernel is wrong, 2 if there is no GPU to check.
    """
    import json

    if gpu:
        raise typer.Exit(_gpu_report(as_json))

    from rich.console import Console
    from rich.markup import escape

    from gbpn.cli.rows import print_rows

    found = list(findings())
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=2))
    else:
        rows = []
        for one in found:
            advice = f" [yellow]→ {escape(one.advice)}[/]" if one.advice else ""
            rows.append((f"{_MARKS[one.state]} {escape(one.name)}", escape(one.text) + advice))
        print_rows(Console(highlight=False), rows, _WIDTH)
    if any(one.state == "bad" for one in found):
        raise typer.Exit(1)


def findings() -> Iterator[Finding]:
    """All that is looked at; whatever fails while looking is a finding too."""
    looks: tuple[tuple[str, Callable[[], Iterator[Finding]]], ...] = (
        ("gbpn", _package),
        ("kernels", _kernels),
        ("GPU", _gpu),
        ("weights", _weights),
        ("extras", _extras),
    )
    for name, look in looks:
        try:
            yield from look()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            yield Finding(name=name, state="bad", text=text, advice="reinstall gbpn")


def _package() -> Iterator[Finding]:
    from gbpn import __version__

    machine = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield Finding(name="gbpn", state="good", text=f"{__version__}, {machine}, {sys.prefix}")
    version = _version("torch")
    if version is None:
        yield Finding(
            name="torch",
            state="optional",
            text="not installed: gbpn.runtime only",
            advice="pip install torch",
        )
        return
    import torch

    count = torch.get_num_threads()
    threads = f"{count} {'thread' if count == 1 else 'threads'} on {os.cpu_count()} processors"
    waiting = os.environ.get("OMP_WAIT_POLICY", "").lower()
    advice = "" if waiting == "passive" else "OMP_WAIT_POLICY=passive where other work runs on the machine"
    yield Finding(name="torch", state="good", text=f"{version}, {threads}", advice=advice)


def _kernels() -> Iterator[Finding]:
    """The compiled core, and one small inference with it against plain torch."""
    from gbpn.kernels.backends import COMPILED, native

    if not COMPILED:
        yield Finding(
            name="kernels",
            state="optional",
            text="not compiled: inference runs in plain torch, and a frame takes about twenty times as long",
            advice="install a C++ compiler, then pip install --force-reinstall --no-deps gbpn",
        )
        return
    level = native().simd_level()
    if _version("torch") is None:
        yield Finding(name="kernels", state="good", text=f"C++, {level}")
        return
    difference = _difference()
    yield Finding(
        name="kernels",
        state="good" if difference < 1e-3 else "bad",
        text=f"C++, {level}; differs from plain torch by {difference:.1e} in a small field",
        advice="" if difference < 1e-3 else "please report this with the output of gbpn doctor --json",
    )


def _difference() -> float:
    """Largest difference of the two backends' means on one random field."""
    import torch

    from gbpn.gbp import infer
    from gbpn.mrf import MRF, SymmetricEdges

    random = torch.Generator().manual_seed(0)
    height, width = 24, 32
    share = torch.rand(1, 1, height, width, generator=random)
    weight = (share < 0.2).float()
    edges = SymmetricEdges(
        weight=torch.ones(1, 1, 4, height, width),
        difference=torch.zeros(1, 1, 4, height, width),
        damping=torch.zeros(1, 1, height, width),
    )
    field = MRF(depth=(1 + 10 * share) * weight, weight=weight, local=edges)
    means = [infer(field, iterations=3, backend=name).belief.mean for name in ("reference", "cpu")]
    return float((means[0] - means[1]).abs().nan_to_num().max())


def _gpu() -> Iterator[Finding]:
    if _version("torch") is None:
        return
    import torch

    if not torch.cuda.is_available():
        yield Finding(
            name="GPU", state="optional", text="none that torch can use: everything runs on the CPU"
        )
        return
    from gbpn.kernels.backends import TRITON

    advice = "" if TRITON else "pip install 'gbpn[gpu]' for the kernels"
    yield Finding(name="GPU", state="good", text=torch.cuda.get_device_name(0), advice=advice)


def _gpu_report(as_json: bool) -> int:
    """Print it; the exit code."""
    import json

    import torch

    if not torch.cuda.is_available():
        typer.echo("there is no GPU that torch can use: nothing was checked", err=True)
        return 2
    from gbpn.bench import gpu_report

    found = list(gpu_report.checks("cuda"))
    right = all(one.right for one in found)
    times = gpu_report.speeds("cuda") if right else {}
    name = torch.cuda.get_device_name(0)
    if as_json:
        told = [asdict(one) | {"right": one.right} for one in found]
        typer.echo(json.dumps({"gpu": name, "checks": told, "milliseconds": times}, indent=2))
    else:
        typer.echo(gpu_report.text(name, found, times))
    return 0 if right else 1


def _weights() -> Iterator[Finding]:
    from gbpn.weights.files import embedded, named, read

    names = named()
    for name in names:
        file = embedded(name)
        read(file)  # raises if it is damaged
        text = f"{name}, {file.stat().st_size / 1e6:.1f} MB, whole; gbpn info {name} says more"
        yield Finding(name="weights", state="good", text=text)
    if not names:
        yield Finding(name="weights", state="bad", text="none embedded", advice="give --weights FILE")


def _extras() -> Iterator[Finding]:
    for extra, packages in EXTRAS.items():
        versions = {package: _version(package) for package in packages}
        missing = [package for package, version in versions.items() if version is None]
        if missing:
            text = f"{_PURPOSE[extra]}: no {', '.join(missing)}"
            advice = f"pip install 'gbpn[{extra}]' if you want it"
            yield Finding(name=f"[{extra}]", state="optional", text=text, advice=advice)
        else:
            told = ", ".join(f"{package} {version}" for package, version in versions.items())
            yield Finding(name=f"[{extra}]", state="good", text=f"{_PURPOSE[extra]}: {told}")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
