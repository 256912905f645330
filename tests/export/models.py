"""Thin models with random weights, and frames for them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

import gbpn
from gbpn.distribution import SigmaCalibration
from gbpn.model.models import GBPN
from gbpn.sigma.surroundings import FEATURES, HIDDEN

ONE_UNIT = ((16,), (8,), (4,), (2,), (1,))
"""Dilations of the paper's attention, one unit a level."""
THIN: dict[str, dict[str, Any]] = {
    "small-2": {"width": 0.25},
    "gbpn-1": {"width": 0.0625, "dilations": ONE_UNIT},
    "gbpn-2": {"width": 0.0625, "dilations": ONE_UNIT},
    "small-prior": {"width": 0.25, "iterations": (1, 2), "agreement_trust": 2.0},
}
"""Configurations that are exported, the default's first, and how they are made small here."""
SHALLOW: dict[str, Any] = {
    "encoder": "global-local",
    "block": "convolution",
    "dilations": ((1,),) * 5,
    "iterations": (1, 1),
    "agreement_trust": 8.0,
    "width": 0.25,
}
"""The default's two stages behind an encoder that is quickly exported, with few sweeps."""
_SURROUNDINGS = (
    *((value,) * len(FEATURES) for value in (0.0, 1.0)),
    *(
        tuple(round(0.3 * math.sin(7 * k + size), 4) for k in range(size))
        for size in (len(FEATURES) * HIDDEN, HIDDEN, HIDDEN * HIDDEN, HIDDEN, HIDDEN, 1)
    ),
)
CALIBRATION = SigmaCalibration(
    knots=(-6.0, -1.0, 2.0, 5.0),
    log_std=(0.5, -1.0, -2.5, -4.0),
    relative=True,
    surroundings=_SURROUNDINGS,
)


def thin(name: str) -> GBPN:
    """Of `THIN`, or "shallow"; every weight away from its start, so that no layer is left out."""
    torch.manual_seed(0)
    model = gbpn.build("small-2", **SHALLOW) if name == "shallow" else gbpn.build(name, **THIN[name])
    assert isinstance(model, GBPN)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.03 * torch.randn_like(parameter))
    model.calibration = CALIBRATION
    return model.eval()


def arrays(height: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Image [H, W, 3] uint8, sparse [H, W] metres, intrinsics [3, 3]."""
    rng = np.random.default_rng(height * width)
    image = rng.integers(0, 255, (height, width, 3), dtype=np.uint8)
    slope = 2 + np.linspace(0, 2, width)[None] + 0.02 * rng.standard_normal((height, width))
    sparse = np.where(rng.random((height, width)) < 0.04, slope, 0).astype(np.float32)
    camera = np.array([[0.8 * width, 0, width / 2], [0, 0.8 * width, height / 2], [0, 0, 1]], np.float32)
    return image, sparse, camera


def tensors(height: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """The same as a model takes them."""
    image, sparse, camera = arrays(height, width)
    planes = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
    return planes, torch.from_numpy(sparse)[None, None], torch.from_numpy(camera)[None]
