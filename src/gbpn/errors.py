"""Every error that leaves gbpn on purpose.

    GbpnError
    ├── InputError (ValueError)       what the caller passed: shape, dtype, device, range
    │   └── NonFiniteError            NaN or infinity in a named tensor
    ├── BackendError (RuntimeError)   a named backend or optional package is missing
    ├── ConvergenceError              a linear solver did not reach the asked accuracy
    ├── CheckpointError               a weight file is missing, truncated or of another layout
    ├── DatasetError                  a data tree or one of its files is not as expected
    ├── WriteError (OSError)          a file could not be written
    ├── StorageError (OSError)        a bucket or file system refuses, or fails again and again
    └── TrainingError                 a run cannot go on

A message says what was wanted, what was got, and what to do.
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "CheckpointError",
    "ConvergenceError",
    "DatasetError",
    "GbpnError",
    "InputError",
    "NonFiniteError",
    "StorageError",
    "TrainingError",
    "WriteError",
]


class GbpnError(Exception):
    """Base of all errors of this package."""


class InputError(GbpnError, ValueError):
    """What the caller passed cannot be used."""


class NonFiniteError(InputError):
    """A tensor holds NaN or infinity."""


class BackendError(GbpnError, RuntimeError):
    """A backend or an optional package that was asked for is not there."""


class ConvergenceError(GbpnError, ArithmeticError):
    """A linear solver did not reach the accuracy that was asked of it."""


class CheckpointError(GbpnError):
    """A weight file is missing, truncated, or of another layout or version."""


class DatasetError(GbpnError):
    """A data tree, or one file in it, is not as expected."""


class _SystemError(GbpnError, OSError):
    """The number of the system's error goes along to another process."""

    def __reduce__(self) -> tuple[type[_SystemError], tuple[object, ...], dict[str, object]]:
        return type(self), self.args, {**self.__dict__, "errno": self.errno}


class WriteError(_SystemError):
    """A file could not be written."""


class StorageError(_SystemError):
    """A bucket or file system does not do what it was asked."""

    passing = False
    """Whether the same request may succeed later: a timeout may, a refusal does not."""


class TrainingError(GbpnError):
    """A training run cannot go on."""
