"""Calls to SGLang, and its refusals in openjev's terms."""

from __future__ import annotations

import time
from typing import Any

import httpx
import orjson
from attrs import Factory, define, field

from openjev_core.backends.sglang.connection import Answer
from openjev_core.backends.sglang.connections import Connections
from openjev_core.backends.sglang.wire import message_of
from openjev_core.errors import BackendError, BackendUnavailable

WAITING_HELPS = frozenset({429, 502, 503, 504})
"""A full queue, or a router whose worker is gone."""
OK = 200


@define(eq=False)
class SGLangClient:
    """Calls to one SGLang, or to one router in front of several.

    Attributes:
        url: Its base address, without a trailing slash.
        api_key: Bearer key, if it wants one.
        connections: What sends.
        answered_at: When its model last answered, on the monotonic clock; 0 before it did.
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    connections: Connections = Factory(lambda self: Connections(httpx.URL(self.url)), takes_self=True)
    answered_at: float = 0.0
    _generate: bytes = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._generate = self.head("POST", "/generate")

    async def generate(self, body: bytes, *, routing_key: str, seconds: float) -> bytes:
        """``POST /generate``.

        Args:
            body: The request.
            routing_key: Routers that hash a key keep calls with the same one on one worker.
            seconds: For the whole call.

        Returns:
            The body of a 200.

        Raises:
            BackendUnavailable: It is not there, breaks off, or says that it cannot take the call now.
            DeadlineExceeded: No answer in time.
            BackendError: Any other status.
        """
        head = b"%bX-SMG-Routing-Key: %b\r\n" % (self._generate, routing_key.encode("ascii"))
        status, content = await self.send(head, body, seconds)
        if status == OK:
            self.answered_at = time.monotonic()
            return content
        said = f"SGLang answered {status}: {error_text(content)}"
        if status in WAITING_HELPS:
            raise BackendUnavailable(said)
        if status in (401, 403):
            raise BackendError(f"{said}. OPENJEV_BACKEND_API_KEY must be the server's --api-key")
        raise BackendError(said)

    async def abort(self, rid: str, *, seconds: float) -> int:
        """``POST /abort_request``; the status. Raises as :meth:`generate` does when there is no answer."""
        answer = await self.send(self.head("POST", "/abort_request"), orjson.dumps({"rid": rid}), seconds)
        return answer.status

    async def health(self, *, seconds: float) -> bool:
        """``GET /health``: whether it answers 200. Raises as :meth:`info` does."""
        answer = await self.send(self.head("GET", "/health"), b"", seconds)
        return answer.status == OK

    async def info(self, path: str, *, seconds: float) -> dict[str, Any] | None:
        """``GET path``: its object, or ``None`` where the server has no such page.

        Raises:
            BackendUnavailable: The server is not there.
            DeadlineExceeded: No answer in time.
        """
        status, content = await self.send(self.head("GET", path), b"", seconds)
        try:
            found = orjson.loads(content) if status == OK else None
        except orjson.JSONDecodeError:
            return None
        return found if isinstance(found, dict) else None

    def head(self, method: str, path: str) -> bytes:
        """A call's first line and the headers that all calls have. No coding is accepted: answers come as they are."""
        url = httpx.URL(f"{self.url}{path}")
        lines = [
            b"%b %b HTTP/1.1" % (method.encode("ascii"), url.raw_path),
            b"Host: %b" % url.netloc,
            b"Content-Type: application/json",
            b"Accept-Encoding: identity",
            b"User-Agent: openjev",
        ]
        if self.api_key is not None:
            lines.append(b"Authorization: Bearer %b" % self.api_key.encode("ascii"))
        return b"".join([b"%b\r\n" % line for line in lines])

    async def send(self, head: bytes, body: bytes, seconds: float) -> Answer:
        """Send a call: its first line and headers but for the length, and its body."""
        return await self.connections.exchange(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body), seconds)

    async def aclose(self) -> None:
        """Close the connections."""
        self.connections.close()


def error_text(content: bytes) -> str:
    """The words of an error body."""
    try:
        return message_of(orjson.loads(content))
    except orjson.JSONDecodeError:
        return message_of(content[:300].decode("utf-8", "replace")) or "no reason given"
