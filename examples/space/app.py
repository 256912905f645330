"""The studio as a public page: no token, and the hub may show it in its frame.

python app.py

Everybody who opens the page has a conversation of their own; limits are those of `gbpn.studio.limits`.
"""

from __future__ import annotations

import os
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import gbpn
from gbpn.studio.app import make_app
from gbpn.studio.limits import Limits

FRAME = b"frame-ancestors https://huggingface.co"
"""Who may show the page inside theirs; the studio alone allows nobody."""


def framed(app: ASGIApp) -> ASGIApp:
    """The same application with that one sentence of its policy changed."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [
                    (name, value.replace(b"frame-ancestors 'none'", FRAME))
                    for name, value in message["headers"]
                ]
                message = {**message, "headers": headers}
            await send(message)

        await app(scope, receive, sending)

    return answer


def application(completer: gbpn.DepthCompleter) -> ASGIApp:
    return framed(
        make_app(completer, weights="default", page=True, limits=Limits(), hosts=("*",), token=None)
    )


def main() -> None:
    options: dict[str, Any] = {
        "ws": "websockets-sansio",
        "ws_max_size": Limits().upload_bytes,
        "server_header": False,
    }
    port = int(os.environ.get("GBPN_SPACE_PORT", "7860"))
    uvicorn.run(application(gbpn.DepthCompleter.from_pretrained()), host="0.0.0.0", port=port, **options)


if __name__ == "__main__":
    main()
