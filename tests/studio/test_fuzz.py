"""Anything at all, sent to the HTTP interface and the socket: no server error, and the server lives on.

`GBPN_FUZZ_FACTOR=20` sends as many times more, from other seeds.
"""

from __future__ import annotations

import os

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from talking import Client

from gbpn.studio import protocol
from gbpn.studio.run import Server

FACTOR = int(os.environ.get("GBPN_FUZZ_FACTOR", "1"))


def test_random_frames_never_end_the_server(server: Server) -> None:
    rng = np.random.default_rng(FACTOR - 1)
    points = np.arange(3, dtype=np.float32)
    good = [
        protocol.encode(protocol.SetPoints(id=1, x=points, y=points, depth=points + 1, std=points)),
        protocol.encode(protocol.OpenScene(id=2, name="kitchen")),
        protocol.encode(protocol.Suggest(id=3, count=3)),
        protocol.encode(protocol.Export(id=4, what="depth.png")),
        protocol.encode(protocol.Listen(id=5, x=-5, y=10**9)),
        protocol.encode(protocol.TakePattern(id=6, pattern="tof", count=-1, seed=-(2**50))),
    ]
    sent = answered = closed = 0
    while sent < 600 * FACTOR:
        try:
            with Client(server.address) as client:
                for _ in range(15):
                    frame = bytearray(good[rng.integers(len(good))])
                    for _ in range(rng.integers(0, 12)):
                        frame[rng.integers(len(frame))] = rng.integers(256)
                    client.socket.send(
                        bytes(frame) if rng.random() < 0.9 else rng.bytes(rng.integers(0, 400))
                    )
                    sent += 1
                client.send(protocol.Suggest, count=0)
                while True:
                    message = client.receive()
                    assert "inside the server" not in getattr(message, "message", ""), message
                    answered += 1
                    if "suggestions at a time" in getattr(message, "message", ""):
                        break
                    if "no picture is open" in getattr(message, "message", "") and message.reply == 1:
                        break
        except Exception as error:
            if "4002" not in str(error):
                raise
            closed += 1
    assert answered > 300
    print(f"{sent} frames, {answered} answers, {closed} connections closed for too many bad frames")
    health = httpx.get(f"http://127.0.0.1:{server.address.port}/health", timeout=10)
    assert health.json()["status"] == "ok"


def test_random_requests_never_fail_inside(server: Server) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    base = f"http://127.0.0.1:{server.address.port}"
    schema = schemathesis.openapi.from_url(f"{base}/openapi.json")
    calls = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=25 * FACTOR, deadline=None, suppress_health_check=list(HealthCheck), database=None
        )
        def run(case: object) -> None:
            nonlocal calls
            calls += 1
            answer = case.call(base_url=base, timeout=60)  # type: ignore[attr-defined]
            assert answer.status_code < 500, (answer.status_code, answer.text)

        from hypothesis import given

        given(case=operation.as_strategy())(run)()
    assert calls > 50
    print(f"{calls} requests")
