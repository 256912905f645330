"""Start the server: where it listens, under which token, and the browser."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
import webbrowser
from dataclasses import dataclass, replace

from gbpn.errors import GbpnError
from gbpn.predict import DepthCompleter
from gbpn.studio.app import make_app
from gbpn.studio.limits import Limits

__all__ = ["Address", "Server", "address", "is_loopback"]

_BACKLOG = 512
"""Connections that may wait to be taken."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a server is to be found."""

    host: str
    port: int
    """0: any that is free."""
    token: str | None
    """None on the loopback, where only this machine can ask."""

    @property
    def url(self) -> str:
        """For a browser."""
        name = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/" + (f"?token={self.token}" if self.token else "")


def address(host: str, port: int) -> Address:
    """With a new token unless the host is this machine alone."""
    return Address(host=host, port=port, token=None if is_loopback(host) else secrets.token_urlsafe(24))


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server:
    """A server with its port taken, ready to run."""

    def __init__(
        self,
        completer: DepthCompleter,
        where: Address,
        *,
        weights: str = "default",
        page: bool = True,
        limits: Limits | None = None,
    ) -> None:
        import uvicorn

        limits = limits or Limits()
        self._listener = _listener(where)
        self.address = replace(where, port=self._listener.getsockname()[1])
        hosts = () if is_loopback(where.host) else ("*",)
        self.app = make_app(
            completer, weights=weights, page=page, limits=limits, hosts=hosts, token=where.token
        )
        config = uvicorn.Config(
            self.app,
            log_level="warning",
            access_log=False,
            ws="websockets-sansio",
            ws_max_size=limits.upload_bytes,
            ws_per_message_deflate=False,  # on one machine, bytes are cheaper than time
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)

    def run(self, *, browser: bool = False) -> None:
        """Listen until interrupted, or stopped from another thread."""
        if browser:
            threading.Timer(0.5, webbrowser.open, (self.address.url,)).start()
        self._server.run(sockets=[self._listener])

    def stop(self) -> None:
        """End `run` soon."""
        self._server.should_exit = True


def _listener(where: Address) -> socket.socket:
    try:
        family, *_, place = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(_BACKLOG)  # who comes while the server starts waits instead of being refused
        return listener
    except OSError as error:
        raise GbpnError(
            f"cannot listen on {where.host}, port {where.port}: {error.strerror or error}: "
            "choose another --port"
        ) from error
