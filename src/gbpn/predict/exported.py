"""Exported networks behind the face of a model: the same calls, evaluated by `gbpn.runtime`."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gbpn.distribution import DepthDistribution, SigmaCalibration, Widening, stacked
from gbpn.errors import InputError
from gbpn.how import How
from gbpn.measurements import outliers
from gbpn.measurements.areas import AreaGrid
from gbpn.model import settling
from gbpn.model.models import Model
from gbpn.model.pipeline import SparseDepth
from gbpn.runtime import CompletedMaps, DepthCompleter
from gbpn.runtime.completer import Encoding

__all__ = ["ExportedModel"]


class ExportedModel(Model):
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
                knots=stored.knots,
                log_std=stored.log_std,
                relative=stored.relative,
                surroundings=stored.surroundings,
            )
        self.card = completer.card if completer.manifest.size is None else _of_one_size(completer.card)
        identity = hashlib.sha256(
            f"{completer.engine} {completer.precision} {completer.manifest.checksum}".encode()
        )
        # In the state, where other models have their weights: answers of other files are not taken for these.
        self.register_buffer("checksum", torch.tensor(list(identity.digest()), dtype=torch.uint8))

    def settled(self, how: How) -> How:
        fixed = self.completer
        settling.refuse(
            self.config.name,
            "is exported and runs on the processor, as trained",
            solver=how.solver != "gbp",
            mirror=how.mirror == "on",
            stream=how.stream > 0,
            device=how.device not in ("auto", "cpu"),
            iterations=bool(how.iterations) and how.iterations != fixed.iterations,
            precision=how.precision not in ("auto", fixed.precision),
        )
        return replace(
            how,
            engine=fixed.engine,
            device="cpu",
            iterations=fixed.iterations,
            precision=fixed.precision,
            mirror="off",
            outliers="drop" if how.outliers == "auto" else how.outliers,
            working_size="own" if settling.trained_focal(self.card) is None else how.working_size,
        )

    def answering(self, how: How) -> _Exported:
        return _Exported(
            completer=self.completer,
            calibration=self.calibration,
            drops=how.outliers == "drop",
            check_sigmas=how.check_sigma,
        )

    def complete(
        self,
        image: Tensor,
        sparse: Tensor,
        intrinsics: Tensor | None = None,
        *,
        sigmas: bool = True,
        **switches: Any,
    ) -> DepthDistribution:
        """As `GBPN.complete` on the CPU, without switches; images of a batch in turn."""
        if switches:
            raise InputError(f"an exported model has no {', '.join(switches)}: use gbpn.DepthCompleter")
        if intrinsics is None:
            raise InputError("an exported model needs intrinsics [B, 3, 3]; got None")
        answering = self.answering(How(outliers="keep"))
        return stacked(
            [
                answering.seen(answering.look(x[None], k[None]), SparseDepth(depth=s[None]), sigmas=sigmas)
                for x, s, k in zip(image, sparse, intrinsics, strict=True)
            ]
        )


@dataclass(frozen=True, kw_only=True)
class _Exported:
    """As an engine sees it."""

    completer: DepthCompleter
    calibration: SigmaCalibration | None
    drops: bool
    check_sigmas: bool

    def look(self, image: Tensor, intrinsics: Tensor | None = None) -> Encoding:
        assert intrinsics is not None
        return self.completer.look(_array(image), _array(intrinsics))

    def seen(
        self, looks: Encoding, sparse: SparseDepth, *, sigmas: bool = True, areas: AreaGrid | None = None
    ) -> DepthDistribution:
        """The answer; `areas` are nothing to it."""
        if sparse.std is not None or sparse.weight is not None:
            raise InputError(
                "sigma and confidence of measurements need weights in torch; these are exported: leave "
                "them out"
            )
        used, dropped = sparse, None
        if self.drops and (suspect := outliers.suspects(sparse.depth)) is not None:
            rest = _array(sparse.without(suspect).depth)[0]
            first = self._distribution(self.completer.seen(looks, rest, sigmas=False, stages=1))
            dropped = outliers.contradicted(sparse.depth, suspect, first)
            used = sparse.without(dropped)
        maps = self.completer.seen(looks, _array(used.depth)[0], sigmas=sigmas, check=self.check_sigmas)
        return replace(self._distribution(maps), dropped=dropped, sigma_left_out=not sigmas)

    def _distribution(self, maps: CompletedMaps) -> DepthDistribution:
        def tensor(values: Any) -> Tensor:
            return torch.from_numpy(values)[None, None]

        found = maps.widening
        return DepthDistribution(
            mean=tensor(maps.depth),
            confidence_logit=tensor(maps.confidence_logit),
            belief_precision=tensor(maps.belief_precision),
            calibration=self.calibration,
            doubt=None if maps.doubt is None else tensor(maps.doubt),
            widening=None
            if found is None or self.calibration is None
            else Widening(*(torch.tensor(value, dtype=torch.float32).view(1, 1, 1, 1) for value in found)),
        )


def _of_one_size(card: dict[str, Any]) -> dict[str, Any]:
    """A card that asks for no other size of a picture."""
    trained = {name: value for name, value in card.get("trained_for", {}).items() if name != "focal"}
    return {**card, "trained_for": trained}


def _array(batch: Tensor) -> Any:
    """The first of a batch, as the runtime takes it."""
    return batch[0].detach().float().cpu().numpy()
