"""What "auto" means for one model on this machine; what either cannot do is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from gbpn.config import ModelConfig
from gbpn.errors import BackendError, InputError
from gbpn.how import How
from gbpn.kernels.backends import usable_device
from gbpn.network.convolution import has_bfloat16

__all__ = ["refuse", "settled", "trained_focal"]


def settled(how: How, config: ModelConfig, card: Mapping[str, Any]) -> How:
    """`how` without a doubt left, for networks in torch; its iterations stay as they are."""
    if how.engine != "torch":
        raise InputError(
            f"engine {how.engine} wants a folder written by gbpn export; these are weights: run gbpn export, "
            "or use engine torch"
        )
    device = usable_device(how.device)
    if how.stream and how.mirror == "on":
        raise InputError("a stream has no mirror image: use mirror off")
    mirrored = how.mirror == "on" or (how.mirror == "auto" and config.mirror and not how.stream)
    return replace(
        how,
        device=device,
        precision=_precision(how.precision, device, "bfloat16" in card),
        outliers="drop" if how.outliers == "auto" else how.outliers,
        mirror="on" if mirrored else "off",
        working_size="own" if how.stream or trained_focal(card) is None else how.working_size,
    )


def trained_focal(card: Mapping[str, Any]) -> float | None:
    """Focal length in pixels that the weights were trained at, as their card states it."""
    trained = card.get("trained_for", {}).get("focal")
    return float(trained) if isinstance(trained, int | float) and trained > 0 else None


def refuse(name: str, why: str, **wrong: bool) -> None:
    """Raise if one of the options named is wrong for a model."""
    if asked := [option for option, given in wrong.items() if given]:
        raise InputError(f"{name!r} {why}: it has no {', '.join(asked)}")


def _precision(wanted: str, device: str, checked: bool) -> str:
    able = torch.device(device).type == "cpu" and has_bfloat16()
    if wanted == "auto":
        return "bfloat16" if able and checked else "float32"
    if wanted == "bfloat16" and not able:
        raise BackendError(
            "precision bfloat16 needs a processor that computes it itself (AVX-512 BF16, or AMX); "
            f"device {device} here does not: use precision float32"
        )
    return wanted
