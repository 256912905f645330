"""Which inference backends laws and hard inputs are tested on.

GBPN_TEST_BACKENDS=reference,cpu,triton adds the Triton kernels, which take seconds per inference where only
their interpreter can run them; their twins in test_triton.py always run.
"""

from __future__ import annotations

import os

from fields import symmetric_field
from gbpn import infer
from gbpn.errors import BackendError


def _works(backend: str) -> bool:
    try:
        infer(symmetric_field(2, 2), iterations=1, backend=backend)
    except BackendError:
        return False
    return True


WANTED = os.environ.get("GBPN_TEST_BACKENDS", "reference,cpu").split(",")
BACKENDS = tuple(backend for backend in WANTED if _works(backend))
