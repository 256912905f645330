"""`DepthCompleter` on arrays: `gbpn.model.pipeline` over exported networks and the native core."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gbpn.errors import InputError
from gbpn.how import How
from gbpn.measurements import agreement
from gbpn.measurements.range_gates import plausible
from gbpn.measurements.validity import measured
from gbpn.runtime.answer import CompletedMaps, sigmoid, stated_std
from gbpn.runtime.depth_unit import DepthUnit
from gbpn.runtime.engines import choose_engine, choose_precision, load_network
from gbpn.runtime.frame import Frame, as_image, as_intrinsics, as_sparse
from gbpn.runtime.inference import Beliefs, infer
from gbpn.runtime.manifest import Manifest
from gbpn.sigma.held_out import BESIDE_DOUBT, SETTINGS, drawn_patches, explain, factor_of_few
from gbpn.sigma.surroundings import doubt, grey

__all__ = ["Array", "DepthCompleter", "Encoding"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """What the first network knows of an image without any depth."""

    frame: Frame
    drawn: dict[str, Array]


class _Maps(NamedTuple):
    """An answer, [H, W] each."""

    mean: Array
    confidence_logit: Array
    belief_precision: Array


class DepthCompleter:
    """Completes depth with one exported model; safe to call from several threads."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        engine: str = "auto",
        threads: int | None = None,
        how: How | None = None,
        **options: Any,
    ) -> None:
        """
        folder   written by `gbpn export --form runtime`
        engine   of the networks: "onnxruntime", "openvino", or "auto": what is installed
        threads  None: as many as there are processors
        how      how frames are completed, see `gbpn.how.How`; what needs torch is refused
        options  or single fields of it: iterations, check_sigma, answers_reach; precision: with OpenVINO also
                 "bfloat16", for processors that compute it themselves; "auto": as the folder was exported
        """
        self.manifest = Manifest.read(Path(folder))
        self.config, self.card = self.manifest.config, self.manifest.card
        asked = How.of(how, **options)
        _refuse(asked)
        self.engine = choose_engine(asked.engine if engine == "auto" and asked.engine != "torch" else engine)
        self.threads = threads or os.cpu_count() or 1
        self.iterations = asked.iterations or self.config.iterations
        if len(self.iterations) != self.config.stages or min(self.iterations) < 1:
            raise InputError(
                f"{self.config.name!r} has {self.config.stages} stages: give as many counts of iterations "
                f"above 0; got {self.iterations}"
            )
        self.precision = choose_precision(asked.precision, self.engine, self.manifest.precision)
        self.how = replace(
            asked,
            engine=self.engine,
            iterations=self.iterations,
            precision=self.precision,
            outliers="keep",
            working_size="own",
            mirror="off",
            device="cpu",
        )
        """How frames are completed, with everything decided."""
        self._networks = {
            network.name: load_network(self.engine, network, self.threads, self.precision)
            for network in self.manifest.networks
        }

    def __call__(
        self, image: Any, sparse: Any, intrinsics: Any = None, *, sigmas: bool = True
    ) -> CompletedMaps:
        """Complete one image.

        image       [H, W, 3] RGB, uint8, uint16 or float in [0, 1]
        sparse      [H, W] metres (0 or NaN: not measured), or points [N, 3] of x, y (pixels) and depth
        intrinsics  fx, fy, cx, cy; a 3×3 matrix; None: 60° along the longer side is assumed
        sigmas      whether σ is wanted, which costs about as much as the depth
        """
        planes = as_image(image)
        _, height, width = planes.shape
        depth, dropped = plausible(as_sparse(sparse, height, width))
        if not measured(depth).any():
            raise InputError("there is no measurement: every value of the sparse depth is 0 or NaN")
        camera, notice = as_intrinsics(intrinsics, height, width)
        told = tuple(text for text in (notice, dropped) if text)
        maps = self.seen(
            self.look(planes, camera), depth, sigmas=sigmas, check=self.how.check_sigma, notices=told
        )
        return maps.within_reach(depth, self.how.answers_reach)

    def look(self, image: Array, intrinsics: Array) -> Encoding:
        """Run the first network: [3, H, W] in [0, 1] and [3, 3], float32."""
        frame = Frame.of(image, intrinsics, self.manifest)
        drawn = self._networks["first"]({"image": frame.image, "intrinsics": frame.intrinsics})
        return Encoding(frame=frame, drawn=drawn)

    def seen(
        self,
        encoding: Encoding,
        sparse: Array,
        *,
        sigmas: bool = True,
        check: bool = True,
        stages: int | None = None,
        notices: tuple[str, ...] = (),
    ) -> CompletedMaps:
        """Complete an image that was looked at, from measurements [H, W] in metres; before any gate.

        check   whether σ is held against measurements that are held out
        stages  only so many of the first ones
        """
        answer = self._answer(encoding, sparse, stages)
        return CompletedMaps(
            *answer,
            calibration=self.manifest.calibration if sigmas else None,
            doubt=self._doubt(encoding, sparse, answer) if sigmas else None,
            widening=self._check(encoding, sparse) if sigmas and check else None,
            notices=notices,
            how=self.how,
        )

    def _answer(self, encoding: Encoding, sparse: Array, stages: int | None = None) -> _Maps:
        """All stages, or the first ones, from empty messages."""
        frame, drawn = encoding.frame, encoding.drawn
        unit = DepthUnit.of(self.config.depth_scale, sparse)
        depth = frame.padded(sparse)
        there = measured(depth)
        counted = unit.into(depth)
        if (respond := self._networks.get("field")) is not None:
            drawn = {**drawn, **respond({**drawn, "measured": there.astype(np.float32)})}
        trust = agreement.trust(agreement.certainty(sparse), self.config.agreement_trust)
        weight = np.where(there, np.float32(trust), np.float32(0))
        beliefs = self._infer(0, drawn, counted, weight, None)
        if (redraw := self._networks.get("second")) is not None and stages != 1:
            confidence = sigmoid(self._logit(beliefs, drawn))
            nothing = np.float32(0)
            seen = {
                "depth": unit.seen(np.nan_to_num(beliefs.mean, nan=0.0)),
                "confidence": confidence.astype(np.float32),
                "measured": np.where(there, unit.seen(counted), nothing),
            }
            given = {**drawn, **seen, "image": frame.image, "intrinsics": frame.intrinsics}
            drawn = redraw(given)
            beliefs = self._infer(1, drawn, counted, weight, beliefs.messages)
        maps = unit.out(beliefs.mean), self._logit(beliefs, drawn), beliefs.precision
        return _Maps(*(np.ascontiguousarray(frame.cropped(values)[0, 0]) for values in maps))

    def _infer(
        self,
        stage: int,
        drawn: dict[str, Array],
        depth: Array,
        weight: Array,
        messages: dict[str, Array] | None,
    ) -> Beliefs:
        """`weight` multiplies the precision that the network gives to measurements."""
        return infer(
            drawn,
            depth,
            weight * drawn["unary"],
            messages,
            iterations=self.iterations[stage],
            steps=self.config.nonlocal_steps,
            reweighting=self.config.reweighting,
            threads=self.threads,
        )

    def _logit(self, beliefs: Beliefs, drawn: dict[str, Array]) -> Array:
        """The confidence logit at the padded size."""
        precision = beliefs.precision
        if self.config.confidence == "log":
            precision = np.log(np.maximum(precision, np.float32(1e-9)))
        logit: Array = precision + drawn["residual"]
        return logit

    def _check(self, encoding: Encoding, sparse: Array) -> tuple[float, float] | None:
        """Complete from most of the measurements, compare with the rest."""
        calibration, there = self.manifest.calibration, measured(sparse)
        if calibration is None:
            return None
        settings = BESIDE_DOUBT if calibration.surroundings else SETTINGS
        held = there & drawn_patches(there, settings)
        if not held.any():
            return factor_of_few(int(there.sum()), settings), 0.0
        rest = np.where(held, np.float32(0), sparse)
        blind = self._answer(encoding, rest)
        held &= blind.belief_precision > 0
        mean, metres = blind.mean[held], sparse[held]
        sigma = stated_std(calibration, mean, blind.confidence_logit[held])
        if (found := self._doubt(encoding, rest, blind)) is not None:
            sigma = sigma * found[held]
        return explain(np.abs(mean - metres) / metres, sigma / metres, settings)

    def _doubt(self, encoding: Encoding, sparse: Array, answer: _Maps) -> Array | None:
        """[H, W]: the factor on σ that the surroundings ask for; None if nothing is known of it."""
        calibration = self.manifest.calibration
        if calibration is None or not calibration.surroundings:
            return None
        log_std = np.interp(answer.confidence_logit, calibration.knots, calibration.log_std)
        whole = encoding.frame.cropped(encoding.frame.image)[0]
        picture = grey(whole, self.config.image_mean, self.config.image_std)
        points = np.where(measured(sparse), sparse, np.float32(0))
        numbers = [np.asarray(part, dtype=np.float32) for part in calibration.surroundings]
        return doubt(answer.mean, answer.belief_precision, log_std, points, picture, numbers)


def _refuse(how: How) -> None:
    """Raise for what is done with tensors only."""
    torch_only = {
        "solver exact": how.solver != "gbp",
        "outliers drop": how.outliers == "drop",
        "mirror on": how.mirror == "on",
        "keep_measured": how.keep_measured,
        f"prior_kind {how.prior_kind}": how.prior_kind != "auto",
        "stream": how.stream > 0,
        f"device {how.device}": how.device not in ("auto", "cpu"),
    }
    if asked := [name for name, wanted in torch_only.items() if wanted]:
        raise InputError(
            f"gbpn.runtime completes single frames on the processor, from all their measurements; got "
            f"{', '.join(asked)}: leave it out, or use gbpn.DepthCompleter"
        )
