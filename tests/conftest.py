"""Where tests find golden numbers, and the real data that live beside the project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("TRITON_INTERPRET", "1")  # 0 runs the tests of kernels on a GPU
os.environ["GBPN_WEIGHTS_LICENCE"] = "read"  # no note among the messages that tests look at

import numpy as np
import pytest
import torch
from hypothesis import settings

import goldens
from second_device import as_one_operation, elsewhere

settings.register_profile("gbpn", deadline=None)  # no test asserts a time
settings.load_profile("gbpn")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared (real data), which is not on this machine")
    return SHARED


@pytest.fixture(scope="session", params=goldens.SETS)
def golden(request: pytest.FixtureRequest):
    """golden('op_sweeps')['c0_eta_in'] → tensor, of every set on this machine; NaN where nothing was kept."""

    def load(name: str) -> dict[str, torch.Tensor]:
        return goldens.tensors(goldens.SETS[request.param] / f"{name}.npz")

    return load


@pytest.fixture(scope="session")
def one_golden():
    """As `golden`, of the fullest set on this machine only: for what is slow."""
    folder = list(goldens.SETS.values())[-1]
    return lambda name: goldens.tensors(folder / f"{name}.npz")


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton kernels on the CPU, two to four times as fast as the interpreter is by itself.

    It prepares the whole language anew at each call of a device function; a launch does that anyhow, and for
    Triton's own library once is enough. Its product of bfloat16 matrices multiplies their bits as integers:
    here they are float32 first, which holds every bfloat16.
    """
    pytest.importorskip("triton", reason="needs triton (pip install gbpn[gpu])")
    if os.environ["TRITON_INTERPRET"] != "1":
        return
    import triton.language as tl
    from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder

    dot = InterpreterBuilder.create_dot

    def exact_dot(self, a, b, *rest):
        if a.dtype.scalar == tl.bfloat16:
            a, b = (self.cast_impl(x, tl.block_type(tl.float32, list(x.data.shape))) for x in (a, b))
        return dot(self, a, b, *rest)

    monkeypatch.setattr(InterpreterBuilder, "create_dot", exact_dot)
    slow, prepared = InterpretedFunction.__call__, set()

    def call(self, *arguments, **options):
        if self.fn.__module__ in prepared:
            return self.rewrite()(*arguments, **options)
        prepared.add(self.fn.__module__)
        return slow(self, *arguments, **options)

    monkeypatch.setattr(InterpretedFunction, "__call__", call)


@pytest.fixture
def poisoned():
    """New memory is full of NaN, so that a number that was never written shows."""
    torch.use_deterministic_algorithms(True)
    assert torch.empty(1).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def second_device(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a device beside the CPU, the fastest while the test runs; see `second_device.py`."""
    from gbpn.gbp import cpu, reference

    name = elsewhere()
    for place in ("kernels.backends", "evaluate.methods", "evaluate.evaluation"):
        monkeypatch.setattr(f"gbpn.{place}.fastest_device", lambda: name)
    for step in ("sweep", "nonlocal_step"):
        quick = as_one_operation(getattr(cpu, step), getattr(reference, step))
        monkeypatch.setattr(reference, step, quick)
    return name


@pytest.fixture
def with_threads():
    """with_threads(3, make) → make(), run with so many threads; afterwards there are as many as before."""
    before = torch.get_num_threads()

    def run(count: int, make):
        torch.set_num_threads(count)
        return make()

    yield run
    torch.set_num_threads(before)


@pytest.fixture(params=["baseline", "avx2", "avx512"])
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kernels of each instruction set that this processor has, in turn."""
    native = pytest.importorskip("gbpn._native", reason="needs the compiled module gbpn._native")
    try:
        native.force_simd_level(request.param)
    except ValueError as error:
        pytest.skip(str(error))
    yield request.param
    native.force_simd_level("auto")


@pytest.fixture(scope="session")
def released_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint as its authors write it, of full width, with the deterministic weights of the goldens."""
    weights = goldens.deterministic_weights(goldens.released_layout())
    assert goldens.fingerprint(weights) == goldens.FINGERPRINT
    path = tmp_path_factory.mktemp("released") / "result_ema.pth"
    state = {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}
    torch.save({"net": state, "epoch": 100, "best_metric": 0.1}, path)
    return path


LONG = (
    "export/test_onnx.py",
    "export/test_torch_export.py",
    "predict/test_real_reconstruction.py",
    "native/test_arm.py",
    "runtime/test_runtime.py",
    "scale/test_page.py",
    "scale/test_ray.py",
    "scale/test_training_nodes.py",
    "studio/test_browser_package.py",
    "studio/test_browser_site.py",
    "test_soak.py",
)
"""Files whose tests take minutes; `GBPN_ALL_TESTS=1` runs them too."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("GBPN_ALL_TESTS"):
        return
    for item in items:
        if item.path.as_posix().endswith(LONG):
            item.add_marker(pytest.mark.skip(reason="takes minutes: set GBPN_ALL_TESTS=1"))
