"""Compile Triton kernels for GPUs that are not there. Runs in a process of its own: see `compiled`."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ARCHITECTURES: tuple[int | str, ...] = (80, 90)
if os.environ.get("GBPN_ALL_TESTS"):
    ARCHITECTURES = (80, 90, 100, "gfx942")
SIZES = "i32"
MATRICES = ("mma.sync", "wgmma.mma_async", "tcgen05.mma", "v_mfma")
"""Instructions of tensor cores, by architecture."""


def compiled(cases: list[dict[str, Any]], cache: Path) -> list[dict[str, Any]]:
    """For every case × architecture: kernel, architecture, PTX target, entry found or not, bytes of code,
    lines of it that wait for other programs, and those that multiply matrices on tensor cores.

    A case: {"module", "kernel", "numbers": names of integer arguments, "constants": {name: value}, "warps",
    "pointer": "*fp32", say, which all other arguments are but "pointers": {name: type}}. The interpreter is
    off in the child, whatever it is here.
    """
    environment = os.environ | {
        "TRITON_INTERPRET": "0",
        "TRITON_DEFAULT_FP_FUSION": "1",
        "TRITON_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(cases)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_compiled(report: list[dict[str, Any]], cases: list[dict[str, Any]]) -> None:
    """Every case became machine code for every architecture."""
    wanted = [(case["kernel"], architecture) for case in cases for architecture in ARCHITECTURES]
    assert [(entry["kernel"], entry["architecture"]) for entry in report] == wanted
    for entry in report:
        assert entry["entry"], entry
        assert entry["bytes"] > 1000, entry
        assert str(entry["architecture"]) in entry["target"], entry


def compile_one(case: dict[str, Any], architecture: int | str) -> dict[str, Any]:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = getattr(importlib.import_module(case["module"]), case["kernel"])
    constants = case["constants"]
    kinds = dict.fromkeys(kernel.arg_names, case["pointer"])
    kinds |= dict.fromkeys(case["numbers"], SIZES) | dict.fromkeys(constants, "constexpr")
    kinds |= {name: kind for name, kind in case.get("pointers", {}).items() if name in kinds}
    amd = isinstance(architecture, str)
    binary = triton.compile(
        ASTSource(kernel, kinds, constants),
        target=GPUTarget("hip", architecture, 64) if amd else GPUTarget("cuda", architecture, 32),
        options={"num_warps": case["warps"], "enable_fp_fusion": True},
    )
    text, code = ("amdgcn", "hsaco") if amd else ("ptx", "cubin")
    lines = binary.asm[text].splitlines()
    target = next(line for line in lines if line.strip().startswith((".target", ".amdgcn_target")))
    return {
        "kernel": case["kernel"],
        "architecture": architecture,
        "target": target,
        "entry": f"{'.amdhsa_kernel' if amd else '.entry'} {case['kernel']}" in binary.asm[text],
        "waits": [line.strip() for line in lines if ".acquire" in line or ".release" in line],
        "matrices": [line.strip() for line in lines if any(word in line for word in MATRICES)][:1],
        "bytes": len(binary.asm[code]),
    }


if __name__ == "__main__":
    report = [
        compile_one(case, architecture) for case in json.loads(sys.argv[1]) for architecture in ARCHITECTURES
    ]
    print(json.dumps(report))
