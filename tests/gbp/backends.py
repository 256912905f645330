"""Which inference backends this machine can test."""

from __future__ import annotations

from fields import symmetric_field
from gbpn import infer
from gbpn.errors import BackendError

KNOWN = ("reference", "cpu")


def _works(backend: str) -> bool:
    try:
        infer(symmetric_field(2, 2), iterations=1, backend=backend)
    except BackendError:
        return False
    return True


BACKENDS = tuple(backend for backend in KNOWN if _works(backend))
