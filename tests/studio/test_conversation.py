"""A page's conversation with the server, held against the Python interface."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from talking import CAMERA, MORE, TABLE, Client, opened, png, running, session_of, small

import gbpn
from gbpn import scenes
from gbpn.engine import explanation
from gbpn.studio import protocol
from gbpn.studio.limits import Limits
from gbpn.studio.run import Server
from gbpn.weights.files import save


def test_a_scene_is_sent_as_it_is(server: Server) -> None:
    with Client(server.address) as client:
        message = client.ask(protocol.OpenScene, name="kitchen")
    sample = scenes.load("kitchen")
    np.testing.assert_array_equal(message.truth, sample.target[0].numpy())
    np.testing.assert_array_equal(message.picture, (sample.image * 255).round().permute(1, 2, 0).numpy())
    assert message.intrinsics == [262.0, 262.0, 159.5, 119.5]


def test_answers_are_those_of_a_session(server: Server, thin: gbpn.DepthCompleter) -> None:
    with opened(server) as client:
        first = client.points(TABLE, "first")
        assert first.std is None
        assert first.confidence is None  # both come with the refined answer
        refined = client.answer(first.reply, lambda message: message.stage == "last")
        np.testing.assert_array_equal(refined.depth, session_of(thin, TABLE).depth)
        # whatever came before: the answer after removals and corrections is that of a new session
        client.points(MORE)
        client.points([[60, 30, 2.75, 0.0]])
        again = client.points(MORE)
        session = session_of(thin, MORE)
        np.testing.assert_array_equal(again.depth, session.depth)
        np.testing.assert_array_equal(again.confidence, session.confidence)


def test_the_first_answer_goes_on_from_the_messages(server: Server, thin: gbpn.DepthCompleter) -> None:
    with opened(server) as client:
        client.points(TABLE)
        got = client.points(MORE, "first")
    session = session_of(thin, TABLE)
    session.quick()
    session.add(10, 10, 3.0)
    np.testing.assert_array_equal(got.depth, session.quick().depth)


def test_only_the_newest_points_are_refined(server: Server) -> None:
    with opened(server) as client:
        numbers = []
        for step in range(40):
            x = np.array([5 + step], np.int32)
            one = np.ones(1, np.float32)
            numbers.append(client.send(protocol.SetPoints, x=x, y=x, depth=one, std=one * 0))
        seen = []
        while not seen or seen[-1] != (numbers[-1], "last"):
            message = client.receive()
            if isinstance(message, protocol.Maps):
                seen.append((message.reply, message.stage))
    replies = [reply for reply, _ in seen]
    assert len(seen) < 40  # those that were overtaken while they waited are never computed
    firsts = [reply for reply, stage in seen if stage == "first"]
    assert firsts == sorted(firsts)
    assert replies[-1] == numbers[-1]


@pytest.mark.parametrize("pattern", ["points", "lidar", "tof", "corners"])
@pytest.mark.parametrize("count", [1, 20000])
def test_patterns_measure_the_dense_map(server: Server, pattern: str, count: int) -> None:
    with Client(server.address) as client:
        client.ask(protocol.OpenScene, name="bedroom")
        taken = client.ask(protocol.TakePattern, pattern=pattern, count=count, seed=3)
        assert isinstance(taken, protocol.Taken), taken
        maps = client.answer(taken.reply, lambda message: isinstance(message, protocol.Maps))
    truth = scenes.load("bedroom").target[0].numpy()
    assert 1 <= len(taken.x) <= 20000
    if pattern in ("points", "lidar"):
        assert len(taken.x) == count if pattern == "points" else 0.5 * count <= len(taken.x) <= 1.5 * count
    if pattern != "tof":
        np.testing.assert_array_equal(taken.depth, truth[taken.y, taken.x])
    assert np.isfinite(maps.depth).all()


@pytest.mark.parametrize("model", ["thin", "learned"])
def test_suggestions_films_and_all_the_rest(model: str, request: pytest.FixtureRequest) -> None:
    completer: gbpn.DepthCompleter = request.getfixturevalue(model)
    edges = completer.model.config.nonlocal_edges
    session = session_of(completer, MORE)
    with running(completer, limits=Limits(workers=2)) as own, opened(own) as client:
        assert client.welcome.learned_edges == (edges > 0)
        maps = client.points(MORE)
        np.testing.assert_array_equal(maps.depth, session.depth)
        suggested = client.ask(protocol.Suggest, count=4)
        wanted = session.suggest(4)
        assert suggested.x.tolist() == [one.x for one in wanted]
        assert suggested.y.tolist() == [one.y for one in wanted]
        np.testing.assert_allclose(suggested.gain, [one.gain for one in wanted], rtol=1e-5)

        stills = list(explanation.film(session))
        assert ("nonlocal" in {still.part for still in stills}) == (edges > 0)
        got = [client.ask(protocol.Film)]
        got += [client.receive() for _ in stills[1:]]
        for still, frame in zip(stills, got, strict=True):
            assert (frame.stage, frame.iteration, frame.part) == (still.stage, still.iteration, still.part)
            np.testing.assert_allclose(frame.depth, still.depth, rtol=1e-6)

        heard, wanted_heard = client.ask(protocol.Listen, x=30, y=40), explanation.listening(session, 30, 40)
        np.testing.assert_allclose(heard.shares, wanted_heard.shares, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(heard.strength, wanted_heard.strength, rtol=1e-4, atol=1e-7)

        compared = client.ask(protocol.Compare, to="first")
        np.testing.assert_allclose(compared.depth, explanation.first_stage(session), rtol=1e-6)
        exact = client.ask(protocol.Compare, to="exact")
        if client.welcome.has_exact:
            np.testing.assert_allclose(exact.depth, explanation.exact(session), rtol=1e-5)
        else:
            assert isinstance(exact, protocol.Failed)

        outliers = client.ask(protocol.FindOutliers, limit=1.5)
        assert outliers.x.tolist() == [one.x for one in session.outliers(1.5)]


def test_files_are_those_of_the_interface(server: Server, thin: gbpn.DepthCompleter, tmp_path: Path) -> None:
    session = session_of(thin, TABLE)
    result = session.result
    files = {}
    with opened(server) as client:
        client.points(TABLE)
        for what in client.welcome.exports:
            message = client.ask(protocol.Export, what=what)
            if what == "std.npy":  # the thin model is not calibrated
                assert "confidence" in message.message
                continue
            assert isinstance(message, protocol.File), (what, message)
            files[what] = message.content.tobytes()
            (tmp_path / message.name).write_bytes(files[what])
    np.testing.assert_array_equal(np.load(io.BytesIO(files["depth.npy"])), result.depth)
    np.testing.assert_array_equal(np.load(io.BytesIO(files["confidence.npy"])), result.confidence)
    assert files["depth.png"] == result.to_png(tmp_path / "x.png").read_bytes()
    result.to_point_cloud(tmp_path / "x.ply")
    assert files["cloud.ply"] == (tmp_path / "x.ply").read_bytes()
    np.testing.assert_array_equal(np.array(Image.open(io.BytesIO(files["mask.png"]))) > 0, result.observed)
    assert files["points.csv"].decode().splitlines()[1] == "60,30,2.5,0.0"
    for name in ("cloud.glb", "mesh.glb"):
        _check_glb(files[name], result.depth)


def _check_glb(content: bytes, depth: np.ndarray) -> None:
    magic, version, length = struct.unpack_from("<4sII", content)
    assert (magic, version, length) == (b"glTF", 2, len(content))
    (size,) = struct.unpack_from("<I", content, 12)
    document = json.loads(content[20 : 20 + size])
    accessor, view = document["accessors"][0], document["bufferViews"][0]
    places = np.frombuffer(content, "<f4", 3 * accessor["count"], 28 + size + view["byteOffset"]).reshape(
        -1, 3
    )
    np.testing.assert_array_equal(places.min(0), np.float32(accessor["min"]))
    if document["meshes"][0]["primitives"][0]["mode"] == 0:
        np.testing.assert_allclose(-places[:, 2], depth[np.isfinite(depth)], rtol=1e-6)


def test_the_code_repeats_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snippet of a dropped picture, run in a folder with the files it names."""
    weights = save(gbpn.build("small-2", width=0.5), tmp_path / "thin.safetensors")
    table = "\n".join(f"{x},{y},{1 + 0.01 * x:.4f}" for x in range(2, 80, 3) for y in range(1, 60, 6)) + "\n"
    completer = gbpn.DepthCompleter.from_pretrained(weights, device="cpu")
    with running(completer, weights=str(weights)) as own, Client(own.address) as client:
        message = client.ask(
            protocol.OpenUpload,
            name="my photo.png", depth_type=".csv", scale=0.0, camera=CAMERA, camera_type="",
            picture=png(small()), depth=np.frombuffer(table.encode(), np.uint8),
        )  # fmt: skip
        assert len(message.x) == 26 * 10
        points = np.stack([message.x, message.y, message.depth, 0 * message.depth], axis=1)
        answer = client.points(points)
        for what in ("image.png", "points.csv", "repeat.py"):
            file = client.ask(protocol.Export, what=what)
            (tmp_path / file.name).write_bytes(file.content.tobytes())
    monkeypatch.chdir(tmp_path)
    found: dict[str, object] = {}
    exec((tmp_path / "my_photo_repeat.py").read_text(), found)
    np.testing.assert_array_equal(found["result"].depth, answer.depth)  # type: ignore[attr-defined]


def test_mistakes_are_answered_and_the_conversation_goes_on(server: Server) -> None:
    one = np.ones(1, np.float32)
    with Client(server.address) as client:
        wrong = client.ask(protocol.SetPoints, x=one, y=one, depth=one, std=one)
        assert "no picture" in wrong.message
        assert "no example scene" in client.ask(protocol.OpenScene, name="../../etc/passwd").message
    with opened(server) as client:
        assert "inside 96×64" in client.ask(protocol.SetPoints, x=one * 96, y=one, depth=one, std=one).message
        two = np.array([1, 1], np.int32)
        both = client.ask(protocol.SetPoints, x=two, y=two, depth=two, std=two * 0)
        assert "two points at one pixel" in both.message
        assert "depth above 0" in client.ask(protocol.SetPoints, x=one, y=one, depth=-one, std=one).message
        uneven = client.ask(protocol.SetPoints, x=two, y=one, depth=one, std=one)
        assert "x, y, depth, std each" in uneven.message
        assert "one of points" in client.ask(protocol.TakePattern, pattern="spiral", count=5, seed=0).message
        assert "suggestions at a time" in client.ask(protocol.Suggest, count=0).message
        assert "no export" in client.ask(protocol.Export, what="../secret").message
        assert "measure a point" in client.ask(protocol.Export, what="depth.png").message
        client.socket.send(b"nonsense")
        assert "header" in client.receive().message
        assert client.points(TABLE).depth.shape == (64, 96)


def test_a_camera_file_beside_the_picture(server: Server) -> None:
    def sent(suffix: str, text: str, camera: list[float]) -> Any:
        with Client(server.address) as client:
            return client.ask(
                protocol.OpenUpload,
                name="x", depth_type="", scale=0.0, camera=camera, camera_type=suffix,
                picture=png(small()), camera_file=np.frombuffer(text.encode(), np.uint8),
            )  # fmt: skip

    matrix = json.dumps({"K": [[90, 0, 40], [0, 91, 30], [0, 0, 1]], "width": 96, "height": 64})
    assert sent(".json", matrix, []).intrinsics == [90.0, 91.0, 40.0, 30.0]
    assert sent(".txt", "90 91 40 30", []).intrinsics == [90.0, 91.0, 40.0, 30.0]
    assert sent(".json", matrix, CAMERA).intrinsics == CAMERA  # what was typed wins
    for suffix, text in (
        (".json", "{nonsense"),
        (".txt", "1 2 3"),
        (".pkl", ""),
        ("/../x.txt", "90 91 40 30"),
    ):
        refused = sent(suffix, text, [])
        assert isinstance(refused, protocol.Failed)
        assert "camera file" in refused.message
        assert "gbpn-studio" not in refused.message  # no path of the server's


def test_photos_of_phones_are_read(server: Server) -> None:
    """HEIC where pillow-heif is installed; turned upright, with the camera that EXIF gives."""
    pillow_heif = pytest.importorskip("pillow_heif")
    pillow_heif.register_heif_opener()
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its side
    exif.get_ifd(0x8769)[0xA405] = 26  # focal length as of 35 mm film
    buffer = io.BytesIO()
    Image.fromarray(small()).save(buffer, format="HEIF", exif=exif.tobytes())
    with Client(server.address) as client:
        message = client.ask(
            protocol.OpenUpload,
            name="IMG_0001.HEIC", depth_type="", scale=0.0, camera=[], camera_type="",
            picture=np.frombuffer(buffer.getvalue(), np.uint8),
        )  # fmt: skip
    assert isinstance(message, protocol.Opened), message
    assert message.picture.shape == (96, 64, 3)
    assert message.intrinsics[0] == pytest.approx(26 / 36 * 96, rel=0.05)
    assert any("EXIF" in notice for notice in message.notices), message.notices


def test_uploads_are_limited_before_they_are_decoded(thin: gbpn.DepthCompleter) -> None:
    buffer = io.BytesIO()
    Image.new("L", (2000, 1000)).save(buffer, format="PNG")
    large = np.frombuffer(buffer.getvalue(), np.uint8)
    nothing = {"name": "x", "depth_type": "", "scale": 0.0, "camera": [], "camera_type": ""}
    with running(thin, limits=Limits(megapixels=1.0, upload_bytes=100_000)) as own:
        with Client(own.address) as client:
            answer = client.ask(protocol.OpenUpload, picture=large, **nothing)
            assert "megapixels" in answer.message
            noise = client.ask(protocol.OpenUpload, picture=np.arange(99, dtype=np.uint8), **nothing)
            assert "not a picture" in noise.message
        with Client(own.address) as client:
            client.send(protocol.OpenUpload, picture=np.zeros(200_000, np.uint8), **nothing)
            with pytest.raises(Exception, match="1009"):
                client.receive()


def test_large_pictures_are_reduced_and_keep_their_points(server: Server) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.full((900, 1200, 3), 90, np.uint8)).save(buffer, format="JPEG")
    sparse = np.zeros((900, 1200), np.float32)
    sparse[450, 600], sparse[3, 5] = 2.0, 3.0
    depth = io.BytesIO()
    np.save(depth, sparse)
    with Client(server.address) as client:
        message = client.ask(
            protocol.OpenUpload,
            name="x", depth_type=".npy", scale=0.0, camera=[1000.0, 1000.0, 600.0, 450.0], camera_type="",
            picture=np.frombuffer(buffer.getvalue(), np.uint8),
            depth=np.frombuffer(depth.getvalue(), np.uint8),
        )  # fmt: skip
    height, width = message.picture.shape[:2]
    assert height * width <= 640 * 480
    assert any("completed at" in notice for notice in message.notices)
    assert sorted(message.depth.tolist()) == [2.0, 3.0]
    assert abs(message.intrinsics[0] - 1000 * width / 1200) < 1
