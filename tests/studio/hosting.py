"""A plain file server for a site, which counts what it sends and can be made to fail."""

from __future__ import annotations

import functools
import http.server
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ISOLATION = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
AT = "some/where"
"""The site lies below this path."""


class Host:
    """Where the site is, and what was sent."""

    def __init__(self, folder: Path, headers: dict[str, str]) -> None:
        self.folder, self.headers = folder, headers
        self.sent: Counter[str] = Counter()
        """Bytes by file."""
        self.cut: dict[str, int] = {}
        """Files that are cut off after so many bytes."""
        self.changed: set[str] = set()
        """Files whose last byte is another one."""
        handler = functools.partial(_Handler, self)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/{AT}/"

    def stop(self) -> None:
        """Be gone, as a lost network is."""
        self.server.shutdown()
        self.server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, host: Host, *rest: Any) -> None:
        self.host = host
        super().__init__(*rest)

    def do_GET(self) -> None:
        name = self.path.split("?")[0].removeprefix(f"/{AT}/") or "index.html"
        path = self.host.folder / name
        if ".." in name or not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        if name in self.host.changed:
            content = content[:-1] + bytes([content[-1] ^ 1])
        kinds = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".jpg": "image/jpeg"}
        self.send_response(200)
        self.send_header("Content-Type", kinds.get(path.suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(len(content)))
        for key, value in self.host.headers.items():
            self.send_header(key, value)
        self.end_headers()
        content = content[: self.host.cut.get(name, len(content))]
        self.host.sent[name] += len(content)
        self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        """Nothing."""


@contextmanager
def hosting(folder: Path, headers: dict[str, str] | None = None) -> Iterator[Host]:
    """A host that runs meanwhile."""
    host = Host(folder, headers or {})
    thread = threading.Thread(target=host.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield host
    finally:
        host.stop()
        thread.join()
