"""One HTTP connection pool to SGLang, and its failures in openjev's terms.

aiohttp, used directly: of the clients measured it costs the least for a call, and httpx's requests and responses on top
of it cost as much again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson
from attrs import define, field

from openjev_core.backends.sglang.connector import PatientConnector
from openjev_core.backends.sglang.wire import message_of
from openjev_core.errors import BackendError, BackendUnavailable, DeadlineExceeded

CONNECT_PATIENCE = aiohttp.ClientTimeout(total=None, sock_connect=5.0)
"""For a connection; a call has a limit of its own."""
KEEPALIVE = 4.0
"""Seconds that an idle connection is kept: SGLang's Python front end closes its own after 5."""
WAITING_HELPS = frozenset({429, 502, 503, 504})
"""A full queue, or a router whose worker is gone."""
OK = 200


def pooled_session() -> aiohttp.ClientSession:
    """Connections for production: keep-alive, no limit of its own, no cookies, no proxies from the environment."""
    return aiohttp.ClientSession(
        connector=PatientConnector(limit=0, keepalive_timeout=KEEPALIVE),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("accept",),
    )


@define(eq=False)
class SGLangClient:
    """Calls to one SGLang, or to one router in front of several.

    Attributes:
        url: Its base address, without a trailing slash.
        api_key: Bearer key, if it wants one.
        answered_at: When its model last answered, on the monotonic clock; 0 before it did.
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    answered_at: float = 0.0
    generate_url: str = field(init=False)
    headers: dict[str, str] = field(init=False, repr=False)
    session: aiohttp.ClientSession | None = field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.generate_url = f"{self.url}/generate"
        self.headers = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "openjev"}
        if self.api_key is not None:
            self.headers["authorization"] = f"Bearer {self.api_key}"

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
        status, content = await self.post(
            self.generate_url, body, seconds, {**self.headers, "x-smg-routing-key": routing_key}
        )
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
        url = f"{self.url}/abort_request"
        status, _ = await self.post(url, orjson.dumps({"rid": rid}), seconds, self.headers)
        return status

    async def health(self, *, seconds: float) -> bool:
        """``GET /health``: whether it answers 200. Raises as :meth:`info` does."""
        status, _ = await self.send("GET", f"{self.url}/health", None, seconds, self.headers)
        return status == OK

    async def info(self, path: str, *, seconds: float) -> dict[str, Any] | None:
        """``GET path``: its object, or ``None`` where the server has no such page.

        Raises:
            BackendUnavailable: The server is not there.
            DeadlineExceeded: No answer in time.
        """
        status, content = await self.send("GET", f"{self.url}{path}", None, seconds, self.headers)
        try:
            found = orjson.loads(content) if status == OK else None
        except orjson.JSONDecodeError:
            return None
        return found if isinstance(found, dict) else None

    async def post(self, url: str, body: bytes, seconds: float, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Send ``body``; once more when the connection was closed before an answer began.

        A server may close an idle connection at the moment when it is used again. Reading a logprob twice does no
        harm, and a server that is really gone refuses the second attempt.
        """
        try:
            return await self.send("POST", url, body, seconds, headers)
        except ConnectionClosed:
            return await self.send("POST", url, body, seconds, headers)

    async def send(
        self, method: str, url: str, body: bytes | None, seconds: float, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Status and body."""
        if self.session is None:
            self.session = pooled_session()  # here and not at first: it belongs to the running event loop
        try:
            async with asyncio.timeout(seconds):
                response = await self.session.request(
                    method, url, data=body, headers=headers, allow_redirects=False, timeout=CONNECT_PATIENCE
                )
                # A body that was not read to its end, as when this is cancelled, closes the connection.
                async with response:
                    return response.status, await response.read()
        except aiohttp.ServerTimeoutError as error:
            raise unavailable(error) from error
        except TimeoutError:
            raise DeadlineExceeded(f"SGLang did not answer within {seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise unavailable(error) from error

    async def aclose(self) -> None:
        """Close the connections."""
        if self.session is not None:
            await self.session.close()


class ConnectionClosed(BackendUnavailable):
    """The connection was closed before an answer began."""


def unavailable(error: Exception) -> BackendUnavailable:
    """What a failed exchange means."""
    if isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientConnectionResetError)):
        return ConnectionClosed("SGLang closed the connection without an answer")
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError)):
        return BackendUnavailable(f"SGLang cannot be reached: {error}")
    return BackendUnavailable(f"SGLang broke off its answer: {error or type(error).__name__}")


def error_text(content: bytes) -> str:
    """The words of an error body."""
    try:
        return message_of(orjson.loads(content))
    except orjson.JSONDecodeError:
        return message_of(content[:300].decode("utf-8", "replace")) or "no reason given"
