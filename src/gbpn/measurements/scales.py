"""What 16-bit depth files are divided by, and which metres a scene may have."""

from __future__ import annotations

__all__ = ["FARTHEST_PLAUSIBLE", "KITTI_SCALE", "MILLIMETRES", "NEAREST_PLAUSIBLE"]

MILLIMETRES = 1000.0
"""Scale of depth cameras' 16-bit PNGs."""
KITTI_SCALE = 256.0
"""Scale of KITTI's and VOID's 16-bit PNGs."""
FARTHEST_PLAUSIBLE = 250.0
"""Metres; a median beyond this is a wrong scale rather than a scene."""
NEAREST_PLAUSIBLE = 0.02
"""Metres; a maximum below this is a wrong scale rather than a scene."""
