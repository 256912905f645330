"""docs/scale.md, word for word: all console lines and python blocks, one after the other in one shell."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_bucket import free_port

pytest.importorskip("ray", reason="needs pip install gbpn[scale]")
pytest.importorskip("moto", reason="needs pip install gbpn[dev]")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
FENCE = re.compile(r"^```(python|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
PROGRAMS = {
    "gbpn": "gbpn.cli",
    "ray": "ray.scripts.scripts",
    "moto_server": "moto.server",
    "pip": "gbpn.cli --version",  # what it would install is here
}


def script() -> str:
    """The page as a shell script that stops at the first failure and says where it is."""
    lines = ["set -e"]
    for language, text in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if language == "python":
            lines.append(f"echo '+ python'; python - <<'END'\n{text}END")
            continue
        for line in text.splitlines():
            assert line.startswith("$ "), line
            command = line[2:].replace("'", "'\\''")
            lines += [f"echo '+ {command}'", line[2:]]
    port = str(free_port())
    return "\n".join(lines).replace("5055", port).replace("6399", str(free_port()))


def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python = f'"{sys.executable}"'
    for name, words in {**{k: f"-m {v}" for k, v in PROGRAMS.items()}, "python": ""}.items():
        program = tmp_path / "bin" / name
        rest = "" if name == "pip" else '"$@"'
        program.write_text(f"#!/bin/sh\nexec {python} {words} {rest}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    calm = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "RAY_worker_niceness": "0"}
    place = tmp_path / "empty folder"
    place.mkdir()
    said = tmp_path / "said.txt"
    with said.open("w") as file:
        shell = subprocess.Popen(
            ["bash", "-c", script()],
            cwd=place,
            env={**os.environ, **calm, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = shell.wait(timeout=1500)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)  # the bucket, and what a failure left
    text = said.read_text()
    assert code == 0, text[-4000:]
    assert text.count("+ ") > 20
    assert "4 done before" in text
    assert len(list((place / "out" / "tars").glob("*.tar"))) == 2
    for name in ("spread", "from-bucket"):
        for kind in ("depth", "std"):
            file_name = f"0003_{kind}.npy"
            one, other = (place / "out" / folder / file_name for folder in ("plain", name))
            assert one.read_bytes() == other.read_bytes()
