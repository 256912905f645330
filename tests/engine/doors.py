"""Every way from a photo and its measurements to depth, each asked the same: weights, `How`, frames.

A door opens the weights itself, as its users make it do, and gives back what they see: maps, and what the
record says of how they were made. Whatever it cannot do it must refuse with an error of ours.
"""

from __future__ import annotations

import ast
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from engine_frames import CAMERA, frame, points
from PIL import Image
from typer.testing import CliRunner

import gbpn
from gbpn.cli import app
from gbpn.cli.arguments import option_of
from gbpn.errors import GbpnError, InputError
from gbpn.formats.images import write_image
from gbpn.how import How
from gbpn.inputs.reading import frame_inputs
from gbpn.jobs.opening import open_completer

__all__ = ["DOORS", "Found", "Given", "runtime"]


@dataclass(frozen=True, kw_only=True)
class Given:
    """One frame."""

    picture: np.ndarray
    """[H, W, 3] uint8."""
    depth: np.ndarray
    """[H, W] metres, 0 where not measured."""
    prior: np.ndarray | None = None
    """[H, W] of another network."""

    @classmethod
    def drawn(cls, seed: int = 0, *, prior: bool = False, **options: Any) -> Given:
        picture, depth = frame(seed, **options)
        wall = np.linspace(2, 3, depth.shape[1], dtype=np.float32)[None].repeat(len(depth), 0)
        return cls(picture=picture, depth=depth, prior=wall if prior else None)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a door gives back of one frame."""

    depth: np.ndarray
    confidence: np.ndarray
    std: np.ndarray
    notices: tuple[str, ...]
    how: dict[str, Any]
    """What it says of how it was made."""

    @classmethod
    def of(cls, result: gbpn.CompletedDepth) -> Found:
        return cls(
            depth=result.depth,
            confidence=result.confidence,
            std=result.std,
            notices=result.notices,
            how=result.how.as_json(),
        )


Door = Callable[[Path, How, Sequence[Given]], list[Found]]
DOORS: dict[str, Door] = {}


def door(enter: Door) -> Door:
    DOORS[enter.__name__] = enter
    return enter


@door
def call(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    completer = open_completer(str(weights), how)
    return [Found.of(completer(one.picture, one.depth, CAMERA, prior=one.prior)) for one in frames]


@door
def batch(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    given = [one.picture for one in frames], [one.depth for one in frames]
    found = open_completer(str(weights), how).batch(*given, CAMERA, priors=[one.prior for one in frames])
    return [Found.of(one) for one in found]


@door
def session(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    completer, found = open_completer(str(weights), how), []
    for one in frames:
        measuring = completer.session(one.picture, CAMERA, prior=one.prior)
        measuring.add(*points(one.depth))
        found.append(Found.of(measuring.result))
    return found


@door
def stream(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    video = open_completer(str(weights), how).stream()
    inputs = [frame_inputs(one.picture, one.depth, CAMERA, prior=one.prior) for one in frames]
    return [Found.of(video.frame(one)) for one in inputs]


@door
def live(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    found = []
    with gbpn.Live(open_completer(str(weights), how), CAMERA) as robot:
        for number, one in enumerate(frames):
            robot.push_image(one.picture, number, prior=one.prior)
            robot.push_depth(one.depth, number)
            answer = None
            while answer is None:
                answer = robot.wait(0.05, after=number)
                if robot.problem is not None:
                    raise InputError(robot.problem)
            found.append(Found.of(answer.result))
    return found


@door
def files(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    """`gbpn complete`."""
    return _completed(weights, how, frames)


def _completed(weights: Path, how: How, frames: Sequence[Given], *words: str) -> list[Found]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("color", "depth", "prior"):
            (folder / name).mkdir()
        for number, one in enumerate(frames):
            write_image(folder / f"color/{number}.png", torch.from_numpy(one.picture).permute(2, 0, 1) / 255)
            np.save(folder / f"depth/{number}.npy", one.depth)
            if one.prior is not None:
                np.save(folder / f"prior/{number}.npy", one.prior)
        (folder / "K.txt").write_text(" ".join(map(str, CAMERA)))
        given = ["complete", str(folder / "color"), str(folder / "depth"), "-o", str(folder / "out")]
        given += ["--weights", str(weights), "--intrinsics", str(folder / "K.txt"), *_words(how), *words]
        given += ["--prior", str(folder / "prior")] if any(one.prior is not None for one in frames) else []
        answer = CliRunner().invoke(app, given)
        if isinstance(answer.exception, GbpnError):
            raise answer.exception
        if answer.exit_code == 3:  # frames failed, which is told, and the others are there
            raise InputError(answer.output)
        assert answer.exit_code == 0, (answer.output, answer.exception)
        return [_written(folder / "out", number) for number in range(len(frames))]


def _words(how: How) -> list[str]:
    """As they are typed."""
    words = []
    for one in fields(How):
        value, name = getattr(how, one.name), option_of(one)
        if one.metadata["flag"] is not None or isinstance(one.default, bool):
            words += [name] if value and not one.default else []
            words += [f"--no-{name[2:]}"] if one.default and not value else []
        elif value != one.default:
            words += [name, ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
    return words


def _written(folder: Path, number: int) -> Found:
    record = json.loads((folder / f"{number}.json").read_text())
    maps = {name: np.load(folder / f"{number}_{name}.npy") for name in ("depth", "confidence", "std")}
    return Found(**maps, notices=tuple(record["notices"]), how=record["how"])


@door
def distributed(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    """`gbpn complete --distributed here`: the worker of many machines, in this process."""
    return _completed(weights, how, frames, "--distributed", "here")


@door
def ray(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    """The same by actors of a cluster."""
    return _completed(weights, how, frames, "--distributed", "ray")


@door
def http(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    """`gbpn serve`."""
    found = []
    with _served(weights, how, page=False) as client:
        for one in frames:
            sent = {"image": ("a.png", _png(one.picture)), "depth": ("a.npy", _npy(one.depth))}
            if one.prior is not None:
                sent["prior"] = ("p.npy", _npy(one.prior))
            told = {"intrinsics": ",".join(map(str, CAMERA))}
            answer = client.post("/api/v1/complete", files=sent, data=told)
            if answer.status_code == 422:
                raise InputError(answer.json()["detail"])
            with np.load(io.BytesIO(answer.content)) as arrays:
                maps = {name: arrays[name] for name in ("depth", "confidence", "std")}
            notices = tuple(json.loads(answer.headers["x-notices"]))
            found.append(Found(**maps, notices=notices, how=json.loads(answer.headers["x-how"])))
    return found


@door
def socket(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    """`gbpn studio`, by its page; what a page takes away says how it was made."""
    from gbpn.studio import protocol

    found = []
    with _served(weights, how, page=True) as client, client.websocket_connect("/socket") as page:

        def ask(until: str, kind: Any, **told: Any) -> Any:
            page.send_bytes(protocol.encode(kind(id=1, **told)))
            while True:
                message = protocol.decode(page.receive_bytes(), protocol.FROM_SERVER)
                if isinstance(message, protocol.Failed):
                    raise InputError(message.message)
                if type(message).__name__ == until and getattr(message, "stage", "last") == "last":
                    return message

        for one in frames:
            picture = np.frombuffer(_png(one.picture), np.uint8)
            upload = {"name": "a.png", "depth_type": "", "scale": 0.0, "camera_type": "", "picture": picture}
            ask("Opened", protocol.OpenUpload, camera=list(CAMERA), **upload)
            x, y, metres = (np.asarray(part) for part in points(one.depth))
            table = {"x": x.astype(np.float32), "y": y.astype(np.float32), "depth": metres}
            maps = ask("Maps", protocol.SetPoints, **table, std=np.zeros_like(metres))
            code = ask("File", protocol.Export, what="repeat.py").content.tobytes().decode()
            seen = {name: np.asarray(getattr(maps, name)) for name in ("depth", "confidence", "std")}
            found.append(Found(**seen, notices=tuple(maps.notices), how=_repeated(weights, code)))
    return found


def _repeated(weights: Path, code: str) -> dict[str, Any]:
    """How a session is made by the Python that a page takes away."""
    (asked,) = (
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "from_pretrained"
    )
    options = {one.arg: ast.literal_eval(one.value) for one in asked.keywords}
    completer = gbpn.DepthCompleter.from_pretrained(weights, **options)
    return completer.session(np.zeros((40, 40, 3), np.uint8), CAMERA).engine.how.as_json()


def runtime(weights: Path, how: How, frames: Sequence[Given]) -> list[Found]:
    """`gbpn.runtime`: an exported folder without torch."""
    from gbpn.runtime import DepthCompleter

    completer, found = DepthCompleter(weights, threads=1, how=how), []
    for one in frames:
        maps = completer(one.picture, one.depth, CAMERA)
        seen = {name: getattr(maps, name) for name in ("depth", "confidence", "std")}
        found.append(Found(**seen, notices=maps.notices, how=maps.how.as_json()))
    return found


def _served(weights: Path, how: How, *, page: bool) -> Any:
    from starlette.testclient import TestClient

    from gbpn.studio.app import make_app

    made = make_app(open_completer(str(weights), how), weights=str(weights), page=page, hosts=("testserver",))
    return TestClient(made)


def _png(picture: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format="PNG")
    return buffer.getvalue()


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
