"""What every worker has to do with a frame, and the files it needs for that, ready to be sent elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gbpn.errors import InputError
from gbpn.files.guard import shown
from gbpn.how import How
from gbpn.jobs.opening import open_completer
from gbpn.jobs.run import Run
from gbpn.jobs.sources import Sensor
from gbpn.predict.completer import DepthCompleter
from gbpn.sigma.limit import SigmaLimit

__all__ = ["PACKS", "Instructions", "require_same"]

PACKS = ("files", "tar", "parquet")
"""How outputs lie: files as `gbpn complete` writes them, one tar of each shard, or inside its table."""
_SIDE_FILES = ("intrinsics", "extrinsics", "calib", "depth_camera", "depth_extrinsics")
"""Fields of a sensor that may be files, which are the same for all frames."""
_MOST_CARRIED = 1 << 30
"""Bytes."""


@dataclass(frozen=True, kw_only=True)
class Instructions:
    """The options of `gbpn complete` that answers depend on."""

    weights: str = "default"
    how: How = field(default=How())
    sensor: Sensor = field(default_factory=Sensor)
    cloud: bool = False
    also: tuple[str, ...] = ()
    max_sigma: SigmaLimit | None = None
    pack: str = "files"
    carried: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Path on the driver's machine → the files there, by name below it ("" for the path itself)."""

    def __post_init__(self) -> None:
        if self.pack not in PACKS:
            raise InputError(f"--pack wants {', '.join(PACKS)}; got {self.pack!r}")
        if isinstance(self.sensor.sigma, Path) or self.sensor.confidence is not None:
            raise InputError("maps of --sigma and --confidence stay on one machine: give --sigma a number")
        if self.sensor.prior is not None:
            raise InputError("--prior is for one machine and frames in its folders: leave out --distributed")
        if self.sensor.reconstruction is not None:
            raise InputError("a COLMAP project is completed on one machine: leave out --distributed")
        if self.sensor.wide:
            raise InputError("panoramas and --fisheye are completed on one machine: leave out --distributed")
        if self.how.stream:
            raise InputError("--stream takes frames one after the other, on one machine: leave it out")

    def packed_up(self) -> Instructions:
        """With the contents of all files that they name, for machines that do not have them."""
        carried = {str(path): dict(_contents(path)) for path in self._paths()}
        if sum(len(data) for files in carried.values() for data in files.values()) > _MOST_CARRIED:
            raise InputError("weights and calibration are larger than a gigabyte: put them on every machine")
        return replace(self, carried=carried)

    def unpacked(self, folder: Path) -> Instructions:
        """The same with paths of this machine; files that are not here are written below `folder`."""
        moved: dict[str, Path] = {}
        for number, (name, files) in enumerate(self.carried.items()):
            if Path(name).exists():
                continue
            for below, data in files.items():
                path = folder / str(number) / (below or Path(name).name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            moved[name] = folder / str(number) / (Path(name).name if "" in files else "")
        changes: dict[str, Any] = {
            part: moved[str(value)]
            for part in _SIDE_FILES
            if isinstance(value := getattr(self.sensor, part), Path) and str(value) in moved
        }
        weights = str(moved.get(self.weights, self.weights))
        return replace(self, weights=weights, sensor=replace(self.sensor, **changes), carried={})

    def open(self) -> DepthCompleter:
        """The completer, if this machine can do what is asked."""
        return open_completer(self.weights, self.how)

    def run(self, completer: DepthCompleter, output: Path) -> Run:
        """What completes single frames, as on one machine."""
        return Run(
            completer=completer,
            sensor=self.sensor,
            output=output,
            cloud=self.cloud,
            also=self.also,
            max_sigma=self.max_sigma,
        )

    def _paths(self) -> Iterator[Path]:
        if Path(self.weights).exists():
            yield Path(self.weights)
        for part in _SIDE_FILES:
            if isinstance(value := getattr(self.sensor, part), Path):
                yield value


def require_same(machine: str, here: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise unless a machine completes as the run does, of which `wanted` is the identity."""
    if differences := How.of_json(here["how"]).differences(How.of_json(wanted["how"])):
        raise InputError(
            f"{machine} completes otherwise than the run: {', '.join(differences)}: give the whole "
            "run an option that all machines can do"
        )
    for name in ("model", "weights"):
        if here[name] != wanted[name]:
            raise InputError(
                f"{machine} has other {name} than the run: {shown(here[name])} instead of "
                f"{shown(wanted[name])}: install the same gbpn and weights on every machine"
            )


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_file():
        yield "", path.read_bytes()
        return
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield file.relative_to(path).as_posix(), file.read_bytes()
