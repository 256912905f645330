"""Exported networks behind the face of a model: the same calls, evaluated by `gbpn.runtime`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gbpn.distribution import DepthDistribution, SigmaCalibration, Widening, stacked
from gbpn.errors import InputError
from gbpn.model.models import Model
from gbpn.runtime import CompletedMaps, DepthCompleter
from gbpn.sigma.check import DeferredCheck

__all__ = ["EngineModel"]


class EngineModel(Model):
    """A folder that `gbpn export` wrote, to be handed to `gbpn.DepthCompleter`."""

    checksum: Tensor

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        engine: str,
        iterations: tuple[int, ...] = (),
        precision: str = "auto",
    ) -> None:
        """engine: "onnxruntime", "openvino" or "auto"; iterations: of each stage, if not as trained;
        precision: see `gbpn.runtime.DepthCompleter`."""
        completer = DepthCompleter(
            folder,
            engine=engine,
            threads=torch.get_num_threads(),
            iterations=iterations,
            precision=precision,
        )
        super().__init__(completer.config)
        self.completer = completer
        stored = completer.manifest.calibration
        if stored is not None:
            self.calibration = SigmaCalibration(
                knots=stored.knots, log_std=stored.log_std, relative=stored.relative
            )
        self.card = completer.card if completer.manifest.size is None else _of_one_size(completer.card)
        identity = hashlib.sha256(
            f"{completer.engine} {completer.precision} {completer.manifest.checksum}".encode()
        )
        # In the state, where other models have their weights: answers of other files are not taken for these.
        self.register_buffer("checksum", torch.tensor(list(identity.digest()), dtype=torch.uint8))

    def complete(
        self,
        image: Tensor,
        sparse: Tensor,
        intrinsics: Tensor | None = None,
        *,
        sigmas: bool = False,
        **switches: Any,
    ) -> DepthDistribution:
        """As `GBPN.complete` on the CPU; images of a batch in turn, their sigmas then unchecked."""
        wanted = {name: value for name, value in switches.items() if value not in ("gbp", "keep", (), None)}
        if wanted and wanted != {"iterations": self.completer.iterations}:
            raise InputError(f"an exported model has no {', '.join(wanted)}: use engine torch")
        if intrinsics is None:
            raise InputError("an exported model needs intrinsics [B, 3, 3]; got None")
        arrays = zip(
            *(tensor.detach().float().cpu().numpy() for tensor in (image, sparse, intrinsics)), strict=True
        )
        answers = [self._distribution(self.completer.complete(x, s[0], k)) for x, s, k in arrays]
        return answers[0] if len(answers) == 1 else stacked(answers)

    def _distribution(self, maps: CompletedMaps) -> DepthDistribution:
        def tensor(values: Any) -> Tensor:
            return torch.from_numpy(values)[None, None]

        return DepthDistribution(
            mean=tensor(maps.depth),
            confidence_logit=tensor(maps.confidence_logit),
            belief_precision=tensor(maps.belief_precision),
            calibration=self.calibration,
            sigma_check=DeferredCheck(_widening(maps)) if self.calibration is not None else None,
        )


def _of_one_size(card: dict[str, Any]) -> dict[str, Any]:
    """A card that asks for no other size of a picture."""
    trained = {name: value for name, value in card.get("trained_for", {}).items() if name != "focal"}
    return {**card, "trained_for": trained}


def _widening(maps: CompletedMaps) -> Callable[[], Widening | None]:
    def found() -> Widening | None:
        if (values := maps.widening) is None:
            return None
        spread, noise = (torch.tensor(value, dtype=torch.float32).view(1, 1, 1, 1) for value in values)
        return Widening(spread, noise)

    return found
