"""One HTTP connection pool to SGLang, and its failures in openjev's terms.

httpx's requests and responses over a transport of kept connections, below httpx's client: 0.1 CPU-ms a call where the
client over its own transport takes 0.9. Anything that speaks :class:`httpx.AsyncBaseTransport` can stand in for it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import httpx
import orjson
from attrs import define, field

from openjev_core.backends.sglang.transport import PooledTransport
from openjev_core.backends.sglang.wire import message_of
from openjev_core.errors import BackendError, BackendUnavailable, DeadlineExceeded

CONNECT_TIMEOUT = 5.0
KEEPALIVE = 4.0
"""Seconds that an idle connection is kept: SGLang's Python front end closes its own after 5."""
WAITING_HELPS = frozenset({429, 502, 503, 504})
"""A full queue, or a router whose worker is gone."""
OK = 200


@define(eq=False)
class SGLangClient:
    """Calls to one SGLang, or to one router in front of several.

    Attributes:
        url: Its base address, without a trailing slash.
        api_key: Bearer key, if it wants one.
        transport: What sends.
        answered_at: When its model last answered, on the monotonic clock; 0 before it did.
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    transport: httpx.AsyncBaseTransport = field(factory=lambda: PooledTransport(KEEPALIVE))
    answered_at: float = 0.0
    generate_url: httpx.URL = field(init=False)
    headers: list[tuple[bytes, bytes]] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.generate_url = httpx.URL(f"{self.url}/generate")
        self.headers = [
            (b"host", self.generate_url.netloc),
            (b"content-type", b"application/json"),
            (b"accept-encoding", b"identity"),
            (b"user-agent", b"openjev"),
        ]
        if self.api_key is not None:
            self.headers.append((b"authorization", f"Bearer {self.api_key}".encode("ascii")))

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
        key = (b"x-smg-routing-key", routing_key.encode("ascii"))
        status, content = await self.post(self.generate_url, body, seconds, key)
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
        url = httpx.URL(f"{self.url}/abort_request")
        status, _ = await self.post(url, orjson.dumps({"rid": rid}), seconds)
        return status

    async def health(self, *, seconds: float) -> bool:
        """``GET /health``: whether it answers 200. Raises as :meth:`info` does."""
        status, _ = await self.send(httpx.Request("GET", f"{self.url}/health", headers=self.headers), seconds)
        return status == OK

    async def info(self, path: str, *, seconds: float) -> dict[str, Any] | None:
        """``GET path``: its object, or ``None`` where the server has no such page.

        Raises:
            BackendUnavailable: The server is not there.
            DeadlineExceeded: No answer in time.
        """
        request = httpx.Request("GET", f"{self.url}{path}", headers=self.headers)
        status, content = await self.send(request, seconds)
        try:
            found = orjson.loads(content) if status == OK else None
        except orjson.JSONDecodeError:
            return None
        return found if isinstance(found, dict) else None

    async def post(self, url: httpx.URL, body: bytes, seconds: float, *more: tuple[bytes, bytes]) -> tuple[int, bytes]:
        """Send ``body``; once more when the connection was closed before an answer began.

        A server may close an idle connection at the moment when it is used again. Reading a logprob twice does no
        harm, and a server that is really gone refuses the second attempt.
        """
        # Given as a stream, with all of its headers: made from `content`, a request takes half of what its call costs.
        headers = [*self.headers, *more, (b"content-length", b"%d" % len(body))]
        request = httpx.Request("POST", url, headers=headers, stream=httpx.ByteStream(body))
        try:
            return await self.send(request, seconds)
        except ConnectionClosed:
            return await self.send(request, seconds)

    async def send(self, request: httpx.Request, seconds: float) -> tuple[int, bytes]:
        """Status and body."""
        request.extensions["timeout"] = {"connect": min(CONNECT_TIMEOUT, seconds)}
        try:
            async with asyncio.timeout(seconds):
                response = await self.transport.handle_async_request(request)
                try:
                    # As it was sent: no coding was accepted, so there is none to undo.
                    content = b"".join([chunk async for chunk in cast("httpx.AsyncByteStream", response.stream)])
                finally:
                    await response.aclose()
        except TimeoutError:
            raise DeadlineExceeded(f"SGLang did not answer within {seconds:g} s") from None
        except (httpx.HTTPError, OSError) as error:
            raise unavailable(error) from error
        return response.status_code, content

    async def aclose(self) -> None:
        """Close the connections."""
        await self.transport.aclose()


class ConnectionClosed(BackendUnavailable):
    """The connection was closed before an answer began."""


def unavailable(error: Exception) -> BackendUnavailable:
    """What a failed exchange means."""
    if isinstance(error, httpx.RemoteProtocolError):
        return ConnectionClosed("SGLang closed the connection without an answer")
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        return BackendUnavailable(f"SGLang cannot be reached: {error}")
    return BackendUnavailable(f"SGLang broke off its answer: {error or type(error).__name__}")


def error_text(content: bytes) -> str:
    """The words of an error body."""
    try:
        return message_of(orjson.loads(content))
    except orjson.JSONDecodeError:
        return message_of(content[:300].decode("utf-8", "replace")) or "no reason given"
