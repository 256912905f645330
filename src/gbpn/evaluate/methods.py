"""Everything that can be compared, by name: baselines, weights, other people's code or files."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gbpn.answer import CompletedDepth
from gbpn.baselines import METHODS, Method
from gbpn.distribution import DepthDistribution, stacked
from gbpn.engine import Engine
from gbpn.errors import InputError
from gbpn.evaluate import handmade, spread
from gbpn.evaluate.settings import Setting
from gbpn.files.guard import reading
from gbpn.formats.arrays import read_npy
from gbpn.formats.depth_files import read_depth
from gbpn.how import How
from gbpn.inputs.frame import FrameInputs
from gbpn.kernels.backends import fastest_device
from gbpn.measurements.areas import AreaGrid
from gbpn.measurements.validity import measured
from gbpn.model.loading import load
from gbpn.model.pipeline import Pipeline, SparseDepth
from gbpn.predict.completer import DepthCompleter
from gbpn.sample import Sample
from gbpn.sensors.patterns import zone_middles
from gbpn.sensors.sampling import areas

__all__ = [
    "BASELINES",
    "Entry",
    "Predictor",
    "distinct",
    "method_entry",
    "read_prediction",
    "split_iterations",
    "weight_entries",
]

_HANDMADE: dict[str, Callable[..., DepthDistribution]] = {
    "diebel_thrun": handmade.diebel_thrun,
    "gbp_handmade": handmade.gbp_handmade,
    "spread": spread.spread,
}
BASELINES = (*METHODS, *_HANDMADE)
"""Names of all methods that need no weights."""

Predictor = Callable[[Sequence[Sample], Setting], DepthDistribution]
"""Frames of one size in, their answers as one batch out."""

_WEIGHT_SUFFIXES = (".safetensors", ".pth", ".pt")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method that takes part; loads where it runs."""

    name: str
    """What tables call it."""
    spec: str
    """What was asked for."""
    kind: str
    """baseline, callable, folder or weights."""
    outliers: str = "keep"
    """What weights do with outliers, see `Pipeline.outliers`."""
    as_used: bool = False
    """Whether weights run as in `gbpn.DepthCompleter`, with all that it does around the model."""

    @property
    def identity(self) -> str:
        """Changes when the method does: resumed results must be of the same weights."""
        path = Path(self.spec)
        if self.kind in ("baseline", "callable"):
            source = inspect.getsourcefile(self._function())
            path = Path(source) if source else path
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else self.spec
        return f"{self.kind}:{digest}" + (
            ":as used" if self.as_used else "" if self.outliers == "keep" else f":{self.outliers}"
        )

    def load(self) -> Predictor:
        """Ready to run; raises what is wrong with it."""
        if self.kind == "weights":
            return _completer(self.spec) if self.as_used else _model(self.spec, self.outliers)
        if self.kind == "folder":
            return _one_by_one(partial(read_prediction, *_folder(self.spec)))
        if self.spec == "gbp_handmade":
            return _handmade
        return _one_by_one(_adapted(self._function()))

    def _function(self) -> Callable[..., Any]:
        """The baseline or imported function."""
        known: dict[str, Callable[..., Any]] = {**METHODS, **_HANDMADE}
        return known.get(self.spec) or _import(self.spec)


def method_entry(spec: str) -> Entry:
    """A baseline's name, a folder of predictions, perhaps as NAME=FOLDER, or `module:function`: Sample →
    DepthDistribution or map."""
    if spec in BASELINES:
        return Entry(name=spec, spec=spec, kind="baseline")
    name, separator, stored = spec.partition("=")
    if separator and not Path(spec).exists():
        if not _folder(stored)[0].is_dir():
            raise InputError(f"method {spec!r}: no folder {stored!r} with predictions of {name!r}")
        return Entry(name=name, spec=stored, kind="folder")
    folder, _ = _folder(spec)
    if folder.is_dir():
        return Entry(name=folder.name, spec=spec, kind="folder")
    if ":" in spec:
        return Entry(name=spec.rpartition(":")[2], spec=spec, kind="callable")
    raise InputError(
        f"unknown method {spec!r}: choose from {', '.join(BASELINES)}, or give module:function, "
        "or a folder of predictions"
    )


def weight_entries(spec: str, outliers: str = "keep", as_used: bool = False) -> list[Entry]:
    """One entry for a file or name that `gbpn.load` takes; for a folder of weight files one each, by name."""
    folder = Path(spec)
    if folder.is_dir() and not (folder / "model.safetensors").is_file():
        files = sorted(p for p in folder.iterdir() if p.suffix in _WEIGHT_SUFFIXES)
        if not files:
            raise InputError(f"{folder}: no weight file ({', '.join(_WEIGHT_SUFFIXES)}) in this folder")
        return [
            Entry(name=p.stem, spec=str(p), kind="weights", outliers=outliers, as_used=as_used) for p in files
        ]
    stem = folder.name if folder.is_dir() else folder.stem if folder.suffix in _WEIGHT_SUFFIXES else spec
    return [Entry(name=stem, spec=spec, kind="weights", outliers=outliers, as_used=as_used)]


def distinct(entries: Sequence[Entry]) -> list[Entry]:
    """The entries with equal names told apart by number."""
    seen: dict[str, int] = {}
    out = []
    for entry in entries:
        seen[entry.name] = seen.get(entry.name, 0) + 1
        again = seen[entry.name] > 1
        out.append(replace(entry, name=f"{entry.name} ({seen[entry.name]})") if again else entry)
    return out


def read_prediction(folder: Path, scale: float, sample: Sample) -> DepthDistribution:
    """A stored prediction: NAME.npy or NAME.npz (metres), or 16-bit NAME.png (metres = value / scale).

    NAME is the frame's name, with its slashes as folders or as underscores, or its last part alone.
    NAME.confidence.npy and NAME.std.npy are read where they exist.
    """
    tried = dict.fromkeys((sample.name, sample.name.replace("/", "_"), sample.name.rpartition("/")[2]))
    for name in tried:
        for suffix in (".npy", ".npz", ".png"):
            path = folder / f"{name}{suffix}"
            if path.is_file():
                depth = read_depth(path, scale if suffix == ".png" else None)
                mean = torch.where(measured(depth), depth, torch.nan)[None]
                extra = {k: _array(folder / f"{name}.{k}.npy", mean) for k in ("confidence", "std")}
                return DepthDistribution.of_depth(mean, **extra)
    raise InputError(
        f"{folder}: no prediction for {sample.name}; wanted one of {', '.join(tried)} (.npy, .npz, .png)"
    )


def _array(path: Path, like: torch.Tensor) -> torch.Tensor | None:
    """A map beside a prediction, in its shape; None where there is none."""
    if not path.is_file():
        return None
    with reading(path, "map", f"{list(like.shape[-2:])} numbers as the prediction"):
        return torch.from_numpy(read_npy(path, like.numel())).float().reshape(like.shape)


def _folder(spec: str) -> tuple[Path, float]:
    """`FOLDER` or `FOLDER@1000`: where predictions lie, and the scale of its PNGs (256 as in KITTI)."""
    path, _, scale = spec.rpartition("@")
    if path and scale.replace(".", "", 1).isdigit():
        return Path(path), float(scale)
    return Path(spec), 256.0


def _import(spec: str) -> Callable[..., Any]:
    module, _, name = spec.rpartition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"method {spec!r} cannot be imported: {error}") from error
    return found


def _adapted(function: Callable[..., Any]) -> Method:
    """Other people's functions may return a plain depth map."""

    def complete(sample: Sample) -> DepthDistribution:
        answer = function(sample)
        if isinstance(answer, DepthDistribution):
            return answer
        depth = torch.as_tensor(answer, dtype=torch.float32)
        return DepthDistribution.of_depth(depth.reshape(1, *sample.sparse.shape))

    return complete


def _one_by_one(method: Method) -> Predictor:
    return lambda samples, _: stacked([method(replace(sample, target=None)) for sample in samples])


def _handmade(samples: Sequence[Sample], setting: Setting) -> DepthDistribution:
    return stacked([handmade.gbp_handmade(sample, setting.iterations or 5) for sample in samples])


def _model(spec: str, outliers: str) -> Predictor:
    device = fastest_device()
    model = load(spec)
    how = How(precision="float32", outliers=outliers, device=device, working_size="own")
    plain = Engine.of(model, how).answering

    @torch.inference_mode()
    def complete(samples: Sequence[Sample], setting: Setting) -> DepthDistribution:
        iterations = (
            ()
            if setting.iterations is None
            else split_iterations(model.config.iterations, setting.iterations)
        )
        image, sparse, camera = (
            torch.stack([getattr(s, name) for s in samples]).to(device)
            for name in ("image", "sparse", "intrinsics")
        )
        answering = (
            replace(plain, iterations=iterations) if iterations and isinstance(plain, Pipeline) else plain
        )
        return answering.seen(answering.look(image, camera), SparseDepth(depth=sparse)).plain()

    return complete


def _completer(spec: str) -> Predictor:
    """The weights behind the door that people use: outliers dropped, areas as areas, working size by rule."""
    completer = DepthCompleter.from_pretrained(spec)

    def complete(samples: Sequence[Sample], setting: Setting) -> DepthDistribution:
        if setting.one_by_one:
            return stacked([_one_by_one_added(completer, s).distribution for s in samples])
        return stacked([completer.complete(_inputs(s, setting)).distribution for s in samples])

    return complete


def _one_by_one_added(completer: DepthCompleter, sample: Sample) -> CompletedDepth:
    """What a session says that was looked at after every single measurement."""
    session = completer.session(sample.image, sample.intrinsics)
    for y, x in torch.nonzero(measured(sample.sparse[0])).tolist():
        session.add(x, y, float(sample.sparse[0, y, x]))
        session.quick_depth()
    return session.result


def _inputs(sample: Sample, setting: Setting) -> FrameInputs:
    size = (sample.image.shape[1], sample.image.shape[2])
    sparse, cells = sample.sparse, areas(setting.pattern, size) if setting.pattern else None
    if cells is not None:  # the same readings where the completer expects the means of areas
        rows, columns = (zone_middles(*pair) for pair in zip(cells, size, strict=True))
        sparse = AreaGrid.of(cells, size).placed(sparse[:, rows[:, None], columns])
    return FrameInputs(image=sample.image, sparse=sparse, intrinsics=sample.intrinsics, areas=cells)


def split_iterations(trained: tuple[int, ...], total: int) -> tuple[int, ...]:
    """`total` iterations over the stages in the trained proportion, at least one each."""
    if len(trained) == 1:
        return (total,)
    first = min(max(round(total * trained[0] / sum(trained)), 1), total - 1)
    if total < 2:
        raise InputError(f"two stages need at least 2 iterations; got {total}")
    return (first, total - first)
