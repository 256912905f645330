"""docs/scale.md, word for word: each console line is run in a shell, each python block executed."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_bucket import uri
from small_frames import write_frames, write_tar

from gbpn.scale.storage import Storage

pytest.importorskip("ray", reason="needs pip install gbpn[scale]")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
FENCE = re.compile(r"^```(python|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def shell(tmp_path: Path, bucket: int, weights: Path) -> dict[str, str]:
    """A folder with the files that the page names, and an environment with its programs."""
    write_frames(tmp_path / "frames", 3)
    lines = ["id,image,depth", *(f"{n},color/{n:04}.png,depth/{n:04}.png" for n in range(3))]
    (tmp_path / "frames" / "frames.csv").write_text("\n".join(lines))
    (tmp_path / "shards").mkdir()
    for number in range(2):
        write_tar(tmp_path / "shards" / f"train-{number:03}.tar", tmp_path / "frames", ["0000", "0001"])
    storage = Storage()
    for file in (tmp_path / "frames").rglob("*.png"):
        storage.write(uri(bucket, f"frames/{file.parent.name}/{file.name}"), file.read_bytes())
    programs = {"gbpn": "gbpn.cli", "ray": "ray.scripts.scripts"}
    (tmp_path / "bin").mkdir()
    for name, module in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    calm = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "RAY_worker_niceness": "0"}
    path = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{bucket}",
    }
    return {**os.environ, **keys, **calm, **path}


def test_every_command_of_the_page_runs(shell: dict[str, str], tmp_path: Path) -> None:
    ran = 0
    for language, text in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        if language == "python":
            commands = [f"\"{sys.executable}\" -c '{text}'"]
        for command in commands:
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=shell, capture_output=True, text=True, timeout=400
            )
            assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            ran += 1
    assert ran > 8
    assert len(list((tmp_path / "out" / "tars").glob("*.tar"))) == 2
    assert shutil.which("ray", path=shell["PATH"])
