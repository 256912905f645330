"""The HTTP interface, and who may talk to the server."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image
from talking import Client, running

import gbpn
from gbpn.studio import protocol
from gbpn.studio.limits import Limits
from gbpn.studio.run import Server, address, is_loopback

POINTS = [[10, 20, 2.5], [50, 40, 1.25]]


@pytest.fixture(scope="module")
def api(thin: gbpn.DepthCompleter) -> Iterator[Server]:
    """`gbpn serve`: no page."""
    with running(thin, page=False, limits=Limits(upload_bytes=200_000)) as one:
        yield one


def url(server: Server, path: str) -> str:
    return f"http://{server.address.host}:{server.address.port}{path}"


def picture() -> tuple[np.ndarray, bytes]:
    image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG")
    return image, buffer.getvalue()


def get(server: Server, path: str, **options: Any) -> httpx.Response:
    return httpx.get(url(server, path), timeout=120, **options)


def post(server: Server, files: dict[str, tuple[str, bytes]], **fields: str) -> httpx.Response:
    return httpx.post(url(server, "/api/v1/complete"), files=files, data=fields, timeout=120)


def test_maps_are_those_of_one_call(api: Server, thin: gbpn.DepthCompleter) -> None:
    image, content = picture()
    answer = post(api, {"image": ("a.png", content)}, points=json.dumps(POINTS), intrinsics="60,60,32,24")
    assert answer.status_code == 200, answer.text
    result = thin(image, np.array(POINTS), [60, 60, 32, 24])
    with np.load(io.BytesIO(answer.content)) as arrays:
        np.testing.assert_array_equal(arrays["depth"], result.depth)
        np.testing.assert_array_equal(arrays["confidence"], result.confidence)
        np.testing.assert_array_equal(arrays["observed"], result.observed)


def test_depth_files_and_other_formats(api: Server, thin: gbpn.DepthCompleter) -> None:
    image, content = picture()
    table = "\n".join(",".join(map(str, row)) for row in POINTS).encode()
    files = {"image": ("a.png", content), "depth": ("points.csv", table)}
    answer = post(api, files, format="png")
    assert answer.status_code == 200, answer.text
    result = thin(image, np.array(POINTS))
    stored = np.array(Image.open(io.BytesIO(answer.content))) / float(answer.headers["x-depth-scale"])
    np.testing.assert_allclose(stored, result.depth, atol=0.0011)
    assert any("60°" in notice for notice in json.loads(answer.headers["x-notices"]))
    assert post(api, files, format="ply").content.startswith(b"ply")


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({}, 422, "measurements are needed"),
        ({"points": "[[1, 2]]"}, 422, "rows of x, y, metres"),
        ({"points": "[[1, 2, -3]]"}, 422, "depth above 0"),
        ({"points": "[" * 100000}, 422, "JSON"),
        ({"points": "[[1e999, 2, 3]]"}, 422, "finite"),
        ({"points": "[[1,2,3]]", "intrinsics": "1,2"}, 422, "fx,fy,cx,cy"),
        ({"points": "[[1,2,3]]", "format": "exe"}, 422, "npz"),
        ({"points": "[[1,2,3]]", "scale": "-1"}, 422, "greater than 0"),
    ],
)
def test_what_cannot_be_used_is_said(api: Server, fields: dict[str, str], status: int, says: str) -> None:
    answer = post(api, {"image": ("a.png", picture()[1])}, **fields)
    assert answer.status_code == status
    assert says in answer.text


def test_no_picture_no_depth_no_path(api: Server) -> None:
    assert "not a picture" in post(api, {"image": ("a.png", b"nonsense")}, points="[[1,2,3]]").text
    content = picture()[1]
    for name in ("../../x.csv", "x.pkl", "x.npz", "x"):
        answer = post(api, {"image": ("a.png", content), "depth": (name, b"0,0,nan")})
        assert answer.status_code == 422
        assert "gbpn-studio" not in answer.text  # no path of the server's
    broken = post(api, {"image": ("a.png", content), "depth": ("x.npy", b"\x93NUMPY\x01\x00\x05\x00{junk")})
    assert broken.status_code == 422


def test_bodies_that_are_too_large_are_refused(api: Server) -> None:
    assert post(api, {"image": ("a.png", bytes(300_000))}).status_code == 413

    def pieces() -> Iterator[bytes]:  # without a stated length
        yield from (bytes(50_000) for _ in range(10))

    kind = {"content-type": "multipart/form-data; boundary=x"}
    try:
        answer = httpx.post(url(api, "/api/v1/complete"), content=pieces(), headers=kind, timeout=60)
        assert 400 <= answer.status_code < 500
    except httpx.TransportError:
        pass  # hung up on


def test_serve_has_no_page_and_studio_has(api: Server, server: Server) -> None:
    for one in (api, server):
        assert get(one, "/health").json()["status"] == "ok"
        assert "/api/v1/complete" in get(one, "/openapi.json").json()["paths"]
    assert get(api, "/").status_code == 404
    page = get(server, "/")
    assert "gbpn studio" in page.text
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert get(server, "/api/v1/scenes/kitchen.jpg").content.startswith(b"\xff\xd8")
    for path in ("/api/v1/scenes/..%2fkitchen.jpg", "/api/v1/scenes/nowhere.jpg", "/..%2f..%2fpage.py"):
        assert get(server, path).status_code == 404


def test_who_comes_early_waits(thin: gbpn.DepthCompleter) -> None:
    """The address is printed before the server runs: nobody is refused meanwhile."""
    one = Server(thin, address("127.0.0.1", 0))
    with socket.create_connection((one.address.host, one.address.port), timeout=5):
        pass
    one._listener.close()


def test_other_pages_and_other_names_are_refused(server: Server) -> None:
    own = url(server, "")
    assert get(server, "/health", headers={"origin": own}).status_code == 200
    assert get(server, "/health", headers={"origin": "http://evil.example"}).status_code == 403
    assert get(server, "/health", headers={"host": "evil.example"}).status_code == 403
    assert get(server, "/health", headers={"origin": "http://["}).status_code == 403
    assert get(server, "/health", headers={"host": "["}).status_code == 403
    with Client(server.address, origin=own) as client:
        assert client.welcome.protocol == protocol.VERSION
    for options in ({"origin": "http://evil.example"}, {"origin": "null"}):
        with pytest.raises(Exception, match="403"):
            Client(server.address, **options)


def test_beyond_this_machine_a_token_is_needed(thin: gbpn.DepthCompleter) -> None:
    assert address("0.0.0.0", 1).token
    assert address("192.168.1.5", 1).url.startswith("http://192.168.1.5:1/?token=")
    assert address("127.0.0.1", 1).token is None
    assert is_loopback("::1")
    assert not is_loopback("example.org")
    with running(thin, token="s3cret") as own:
        assert get(own, "/health").status_code == 200
        assert get(own, "/").status_code == 401
        assert get(own, "/?token=wrong").status_code == 401
        assert get(own, "/api/v1/scenes", headers={"authorization": "Bearer s3cret"}).status_code == 200
        with httpx.Client(timeout=120) as browser:
            assert browser.get(url(own, "/?token=s3cret")).status_code == 200
            assert browser.get(url(own, "/assets/index.js")).status_code == 200  # by the cookie
        with Client(own.address) as client:
            assert client.welcome.scenes
        stranger = replace(own.address, token=None)
        with pytest.raises(Exception, match=r"40[13]"):
            Client(stranger)
