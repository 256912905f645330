"""S3 on this machine, and a bucket that errs: a proxy in front of it which injects errors and delays."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def s3_server(bucket: str = "frames") -> Iterator[int]:
    """The port of an S3 of its own process, with one bucket."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, "the S3 server did not start"
            try:
                call(port, "PUT", f"/{bucket}")
                break
            except OSError:
                assert time.monotonic() < deadline, "the S3 server does not answer"
                time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


def call(port: int, method: str, path: str, body: bytes = b"") -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    key = (
        "AWS4-HMAC-SHA256 Credential=test/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    )
    connection.request(method, path, body=body, headers={"Authorization": key})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status < 300, (answer.status, data)
    return data


def uri(port: int, path: str) -> str:
    return f"s3://{path}?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1&access_key=test&secret_key=test"


@dataclass
class Mood:
    """How a bucket behaves."""

    errors: float = 0.0
    """Share of requests that are answered 500 or 503, or cut off."""
    slow: float = 0.0
    """Share of requests that take `delay` seconds longer."""
    delay: float = 0.5
    forbidden: str = ""
    """Requests whose path contains this are refused."""
    broken: str = ""
    """Requests whose path contains this are answered 500."""
    silent: Counter[str] = field(default_factory=Counter)
    """How many more requests whose path contains a word are never answered."""
    down: bool = False
    seen: Counter[str] = field(default_factory=Counter)
    random: Random = field(default_factory=lambda: Random(0))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, path: str) -> str:
        with self.lock:
            draw, kind = self.random.random(), self.random.random()
            mood = "good"
            if self.forbidden and self.forbidden in path:
                mood = "403"
            elif self.broken and self.broken in path:
                mood = "500"
            elif word := next((word for word, left in self.silent.items() if left and word in path), ""):
                self.silent[word] -= 1
                mood = "silent"
            elif self.down or draw < self.errors:
                mood = "500" if kind < 0.5 else "503" if kind < 0.8 else "cut"
            elif draw < self.errors + self.slow:
                mood = "slow"
            self.seen[mood] += 1
            return mood


@contextmanager
def hostile(port: int, mood: Mood) -> Iterator[int]:
    """The port of a proxy in front of the S3 at `port`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def serve(self) -> None:
            body = self.body()
            state = mood.next(self.path)
            if state == "silent":
                self.close_connection = True
                self.rfile.read(1)  # until the client goes away
                return
            if state == "cut":
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if state in ("500", "503", "403"):
                self.answer(int(state), {}, b"")
                return
            if state == "slow":
                time.sleep(mood.delay)
            onward = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            own = {"connection", "transfer-encoding", "expect", "content-length"}
            headers = {k: v for k, v in self.headers.items() if k.lower() not in own}
            onward.request(self.command, self.path, body=body, headers=headers)
            answer = onward.getresponse()
            data = answer.read()
            self.answer(answer.status, dict(answer.getheaders()), data)
            onward.close()

        def body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
            self.send_response(status)
            dropped = {"connection", "transfer-encoding", "date", "server"}
            if self.command != "HEAD" or "Content-Length" not in {k.title() for k in headers}:
                dropped.add("content-length")
            for name, value in headers.items():
                if name.lower() not in dropped:
                    self.send_header(name, value)
            if "content-length" in dropped:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = serve

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # clients go away

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
