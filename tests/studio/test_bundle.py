"""The page that is shipped: small, self-contained, and what its sources build."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gbpn.studio.site import static_folder

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
EMSCRIPTEN = "3.1.6"
MOST_BYTES, MOST_ENGINE_BYTES = 1_500_000, 4_500_000


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_it_is_small_and_asks_nothing_of_the_network() -> None:
    bundle = files(static_folder())
    assert "index.html" in bundle
    page = {name: content for name, content in bundle.items() if not name.endswith((".wasm", ".gz"))}
    assert sum(map(len, page.values())) <= MOST_BYTES
    assert sum(map(len, bundle.values())) - sum(map(len, page.values())) <= MOST_ENGINE_BYTES
    for name, content in page.items():
        text = content.decode("utf-8")
        loads = re.findall(
            r"""(?:src|href)=["'](?:https?:)?//[^"']+|@import|url\(\s*["']?https?:[^)]+""", text
        )
        assert not loads, (name, loads)
        for host in ("cdn.", "googleapis", "unpkg", "jsdelivr"):
            assert host not in text, (name, host)


def test_the_lock_file_names_no_host() -> None:
    lock = (WEB / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert '"integrity"' in lock


def test_the_lock_file_names_every_platform() -> None:
    """Else `npm ci` refuses it, also on platforms that are named."""
    packages = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    wanted = {name for one in packages.values() for name in one.get("optionalDependencies", {})}
    assert not {name for name in wanted if f"node_modules/{name}" not in packages}


@pytest.fixture(scope="module")
def node() -> None:
    if shutil.which("npm") is None or not (WEB / "node_modules").is_dir():
        pytest.skip("needs Node and `npm ci` in web/")


def npx(*words: str) -> None:
    result = subprocess.run(["npx", "--no-install", *words], cwd=WEB, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_its_sources_build_it(node: None, tmp_path: Path) -> None:
    npx("vite", "build", "--outDir", str(tmp_path), "--emptyOutDir", "--logLevel", "error")
    built, shipped = files(tmp_path), files(static_folder())
    assert built.keys() == shipped.keys()
    old = [name for name in built if unpacked(built[name]) != unpacked(shipped[name])]
    assert not old, f"{old} are not what web/ builds: run `npm run build` in web/"


def unpacked(content: bytes) -> bytes:
    """Packers differ by their version, what is inside does not."""
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def test_its_core_is_what_native_builds(tmp_path: Path) -> None:
    """The shipped WebAssembly against a new one, with the compiler that made it."""
    compiler = shutil.which("em++")
    if compiler is None:
        pytest.skip("needs emscripten (apt-get install emscripten)")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    if EMSCRIPTEN not in version:
        pytest.skip(f"the shipped core is of emscripten {EMSCRIPTEN}")
    script = ROOT / "native" / "build_wasm.sh"
    subprocess.run(["bash", str(script), str(tmp_path / "core.wasm")], check=True, capture_output=True)
    same = (tmp_path / "core.wasm").read_bytes() == (static_folder() / "engine" / "core.wasm").read_bytes()
    assert same, "run native/build_wasm.sh and `npm run build` in web/"


def test_its_own_tests_pass(node: None) -> None:
    npx("tsc", "--noEmit")
    npx("vitest", "run")
