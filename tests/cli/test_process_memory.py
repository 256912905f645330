"""Programs keep what they free: a map that is made again and again costs pages once."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

_CODE = """
import resource, sys
import torch
from gbpn.cli.process_memory import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()


def frame():
    maps = [torch.ones(1 << 20) for _ in range(20)]  # 80 MB

for _ in range(3):
    frame()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    frame()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


_FRESH = os.environ | {"MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}
"""glibc's own start values, stated so that what an import freed does not raise them."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="for the allocator of glibc")
def test_freed_memory_is_kept() -> None:
    def pages(how: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", _CODE, how], check=True, capture_output=True, text=True, env=_FRESH
        )
        return int(done.stdout)

    assert pages("keep") < 1000 < pages("default")
