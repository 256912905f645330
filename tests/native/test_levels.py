"""No function is shared between instruction sets: the check that every build runs, on objects made for it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "native" / "check_levels.cmake"
TOOLS = ("c++", "cmake", "nm")

pytestmark = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in TOOLS), reason=f"needs {', '.join(TOOLS)}"
)

OWN = (
    "namespace gbpn::avx2 { template <class T> T twice(T x) { return x + x; } template float twice(float); }"
)


def check(folder: Path, source: str, level: str = "avx2") -> subprocess.CompletedProcess[str]:
    (folder / "kernel.cpp").write_text(source)
    made = folder / "kernel.o"
    subprocess.run(["c++", "-std=c++17", "-c", str(folder / "kernel.cpp"), "-o", str(made)], check=True)
    command = ["cmake", "-DNM=nm", f"-DLEVEL={level}", f"-DOBJECTS={made}", "-P", str(CHECK)]
    return subprocess.run(command, capture_output=True, text=True)


def test_own_namespace_and_local_functions_pass(tmp_path: Path) -> None:
    local = """
        static inline float half(float x) { return x / 2; }
        namespace gbpn::avx2 { float f(float x) { return half(x); } }
    """
    for source in (OWN, local):
        done = check(tmp_path, source)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("inline float shared(float x) { return x; } float (*use())(float) { return shared; }", "_Z6sharedf"),
        ("namespace gbpn { float other(float x) { return x; } }", "_ZN4gbpn5otherEf"),
        (
            "#include <vector>\nnamespace gbpn::avx2 { void f(std::vector<int> &v) { v.push_back(1); } }",
            "_ZNSt6",
        ),
        ('extern "C" int plain() { return 1; }', "plain"),
    ],
)
def test_shared_functions_fail(tmp_path: Path, source: str, name: str) -> None:
    done = check(tmp_path, OWN + "\n" + source)
    assert done.returncode != 0
    assert name in done.stderr


def test_another_level_fails(tmp_path: Path) -> None:
    assert check(tmp_path, OWN, "avx512").returncode != 0
