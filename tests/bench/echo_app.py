"""A bare hypercorn application that parses its JSON body and sends it back: what the stack itself costs."""

from __future__ import annotations

import sys

import orjson
import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config

HEADERS = [(b"content-type", b"application/json")]


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    content = orjson.dumps(orjson.loads(body)) if body else b"{}"
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": content})


if __name__ == "__main__":
    config = Config()
    config.bind = [f"127.0.0.1:{sys.argv[1]}"]
    uvloop.run(serve(app, config))
