"""Gaussian belief propagation on GPUs: sweeps and the non-local step as Triton kernels, with adjoints.

Same functions, signatures and meaning as `gbpn.gbp.reference`. A sweep is one launch of many programs, which
hand lines over to one another, and so is its adjoint. Registered as torch operators
(`gbpn::triton_sweep`, `gbpn::triton_nonlocal_step`) with fake and autograd implementations.

These kernels have not yet been run on a GPU. They are tested in Triton's interpreter on the CPU against the
reference (values and gradients) and compiled ahead of time for sm_80, sm_90, sm_100 and gfx942. Their speed
is computed by `gbpn bench gpu-model`, not measured.
"""

from __future__ import annotations

import gbpn.kernels.triton_launch  # noqa: F401  (first: it says how to get triton where that is missing)
from gbpn.gbp.triton.nonlocal_operator import nonlocal_step
from gbpn.gbp.triton.sweep_operator import sweep

__all__ = ["nonlocal_step", "sweep"]
