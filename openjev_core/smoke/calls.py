"""HTTP calls to the server under test, each kept with what was sent and what came back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
from attrs import frozen

from openjev_core.errors import SettingsError
from openjev_core.json_document import compact

MAX_BYTES = 8 * 1024 * 1024
"""The largest reply that is read. The largest honest one is the API's schema, a few hundred kilobytes."""

CONNECT_SECONDS = 10.0


@frozen(kw_only=True)
class Call:
    """One call.

    Attributes:
        method, path: Of the request.
        sent: The JSON body, ``None`` where there was none.
        status: Of the reply; ``None`` when there was none.
        headers: The reply's, names in lower case.
        body: The reply's bytes.
        fault: Why there is no whole reply, for a person; ``None`` when there is one.
        timed_out: The reply did not arrive in time.
        seconds: From the first byte sent to the last one received.
    """

    method: str
    path: str
    sent: Any = None
    status: int | None = None
    headers: Mapping[str, str] = {}
    body: bytes = b""
    fault: str | None = None
    timed_out: bool = False
    seconds: float

    @property
    def outcome(self) -> str:
        """Status or fault, as a phrase."""
        return self.fault if self.fault is not None else f"status {self.status}"


def checked_url(url: str) -> str:
    """``url`` as the address that paths are appended to.

    Raises:
        SettingsError: It is no http or https URL of a server.
    """
    expected = "expected an address such as http://127.0.0.1:8000"
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError(f"the server's URL: {expected}: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise SettingsError("the server's URL holds a user name or password; give the key with --key")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise SettingsError(f"the server's URL: {expected}, found {url!r}")
    return url.strip().rstrip("/")


def checked_key(key: str | None) -> str | None:
    """``key`` as a header can carry it; ``None`` when there is none.

    Raises:
        SettingsError: It holds something that a header cannot.
    """
    if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
        raise SettingsError("the key: expected visible ASCII characters without spaces, found something else")
    return key


class Service:
    """A server under test.

    Args:
        url: Where it is; from :func:`checked_url`.
        key: Bearer key to send, if any. It stands in no :class:`Call`.
        patience: Seconds for one call, from connecting to the last byte.
    """

    def __init__(self, url: str, *, key: str | None = None, patience: float) -> None:
        self.url = url
        self.key = key
        self._patience = patience
        self._client = httpx.AsyncClient(
            headers={"user-agent": f"openjev-smoke/{version('openjev')}", "accept": "application/json"},
            timeout=httpx.Timeout(patience, connect=min(CONNECT_SECONDS, patience)),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def call(
        self, method: str, path: str, sent: Any = None, *, patience: float | None = None, keyed: bool = True
    ) -> Call:
        """Make one call; whatever becomes of it is in the record, and nothing is raised.

        Args:
            method: HTTP's.
            path: Appended to the server's address.
            sent: A JSON body.
            patience: Seconds for this call, when not the usual ones.
            keyed: Send the key, if there is one.
        """
        limit = self._patience if patience is None else patience
        headers = {"authorization": f"Bearer {self.key}"} if self.key and keyed else {}
        if sent is not None:
            headers["content-type"] = "application/json"
        content = None if sent is None else compact(sent).encode()
        request = self._client.build_request(method, self.url + path, headers=headers, content=content)
        began = time.monotonic()

        def record(**fields: Any) -> Call:
            return Call(method=method, path=path, sent=sent, seconds=time.monotonic() - began, **fields)

        reply: dict[str, Any] = {}
        try:
            # httpx limits the wait for each piece; a server that trickles needs a limit on the whole.
            async with asyncio.timeout(limit):
                response = await self._client.send(request, stream=True)
                try:
                    reply = {
                        "status": response.status_code,
                        "headers": {name.lower(): value for name, value in response.headers.items()},
                    }
                    body = bytearray()
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) > MAX_BYTES:
                            fault = f"the reply is larger than {MAX_BYTES} bytes; its beginning is kept"
                            return record(**reply, body=bytes(body[:MAX_BYTES]), fault=fault)
                    return record(**reply, body=bytes(body))
                finally:
                    await response.aclose()
        except (TimeoutError, httpx.TimeoutException):
            return record(**reply, fault=f"no whole reply within {limit:g} seconds", timed_out=True)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return record(**reply, fault=f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
