"""The page that is shipped: small, self-contained, and what its sources build."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gbpn.studio.app import static_folder

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
MOST_BYTES = 1_500_000


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_it_is_small_and_asks_nothing_of_the_network() -> None:
    bundle = files(static_folder())
    assert "index.html" in bundle
    assert sum(map(len, bundle.values())) <= MOST_BYTES
    for name, content in bundle.items():
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
    old = [name for name in built if built[name] != shipped[name]]
    assert not old, f"{old} are not what web/ builds: run `npm run build` in web/"


def test_its_own_tests_pass(node: None) -> None:
    npx("tsc", "--noEmit")
    npx("vitest", "run")
