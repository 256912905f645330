"""Who may talk to the server: its own pages; with a token once it listens beyond this machine."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard"]

_COOKIE = "gbpn_token"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OPEN_PATHS = ("/health",)
"""Answered without a token."""
_POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


class Guard:
    """Refuses other origins, other host names, missing tokens, and bodies that are too large."""

    def __init__(self, app: ASGIApp, *, hosts: tuple[str, ...], token: str | None, upload_bytes: int) -> None:
        """`hosts`: names under which the server may be called besides the loopback's; ("*",) allows all."""
        self.app, self.hosts, self.token, self.upload_bytes = app, hosts, token, upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is None:
            await self.app(scope, self._counted(receive, scope), self._answering(scope, send))
        elif scope["type"] == "websocket":
            await receive()  # the handshake; closed before it is accepted, it is answered 403
            await send({"type": "websocket.close", "code": 1008, "reason": refusal[1]})
        else:
            await JSONResponse({"detail": refusal[1]}, status_code=refusal[0])(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        host = _name(headers.get("host", ""))
        if "*" not in self.hosts and host not in (*_LOOPBACK, *self.hosts):
            return 403, "this server is not called that: use the address that gbpn printed"
        origin = headers.get("origin")
        if origin is not None and _place(origin) != headers.get("host", "").lower():
            return 403, "requests from other pages are refused"
        if self.token is not None and scope["path"] not in _OPEN_PATHS and not self._knows(scope, headers):
            return 401, "a token is needed: open the address that gbpn printed"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.upload_bytes:
            return 413, f"at most {self.upload_bytes} bytes are taken"
        return None

    def _knows(self, scope: Scope, headers: Headers) -> bool:
        assert self.token is not None
        given = [*parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])]
        given.append(headers.get("authorization", "").removeprefix("Bearer "))
        for part in headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == _COOKIE:
                given.append(value)
        return any(hmac.compare_digest(one.encode(), self.token.encode()) for one in given)

    def _counted(self, receive: Receive, scope: Scope) -> Receive:
        """A body without a stated length ends when it grows too large."""
        got = 0

        async def counted() -> Message:
            nonlocal got
            message = await receive()
            if message["type"] == "http.request":
                got += len(message.get("body", b""))
                if got > self.upload_bytes:
                    return {"type": "http.disconnect"}
            return message

        return counted

    def _answering(self, scope: Scope, send: Send) -> Callable[[Message], Awaitable[None]]:
        """Adds what browsers are to enforce, and hands the token to the page as a cookie."""

        async def answering(message: Message) -> None:
            if message["type"] == "http.response.start":
                out: Any = MutableHeaders(raw=message["headers"])
                out["x-content-type-options"] = "nosniff"
                out["referrer-policy"] = "no-referrer"
                out["content-security-policy"] = _POLICY
                if self.token is not None and b"token=" in scope.get("query_string", b""):
                    out.append("set-cookie", f"{_COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        return answering


def _place(origin: str) -> str | None:
    """Host and port of an origin; None where it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _name(host: str) -> str:
    """`Host` without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
