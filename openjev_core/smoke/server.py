"""The server under test: its address and key, calls that are recorded, and the wait until it is ready."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import httpx
from attrs import define, field, frozen

from openjev_core.bounded_reply import ReplyTooLarge, bounded_reply
from openjev_core.errors import RequestError, SettingsError
from openjev_core.json_document import compact, parse_document

MOST_BYTES = 8 * 1024 * 1024
"""Upper bound on the bytes of a reply that is read. Honest replies to these checks are far smaller."""

CONNECT_SECONDS = 10.0
POLL_SECONDS = 2.0
POLL_LIMIT = 15.0
REPEAT_SECONDS = 15.0
"""How often progress is reported while nothing changes."""

STARTING = (408, 425, 429)
"""Statuses below 500 of a server, or of a proxy before it, that may yet become ready."""

BUSY = (429, 503, 529)
TRIES = 4
LONGEST_PAUSE = 5.0
"""Upper bound on the seconds between two tries, whatever ``Retry-After`` says."""

Progress = Callable[[str], None]


class Mismatch(Exception):
    """The server did not do what is expected; the message says what was expected and what was found."""


class NeverReady(Exception):
    """The server did not become ready; the message says why."""


@frozen(kw_only=True)
class Call:
    """One call.

    Attributes:
        method, path: Of the request.
        sent: The JSON body; ``None`` where there was none.
        status: Of the reply; ``None`` without a whole reply.
        headers: Of the reply, names in lower case.
        body: The bytes of the reply.
        fault: Why there is no whole reply; ``None`` when there is one.
        timed_out: Whether the reply did not arrive in time.
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

    def json(self, status: int) -> Any:
        """The JSON value of a reply that has that status.

        Raises:
            Mismatch: The reply has another status, or is no JSON.
        """
        if self.fault is not None or self.status != status:
            hint = ""
            if self.status == 401:  # noqa: PLR2004 - HTTP's own number
                hint = "; the server asks for a key: give it with --key or OPENJEV_API_KEY"
            elif self.headers.get("location"):
                hint = f"; the server points to {self.headers['location']}: give that address instead"
            raise Mismatch(f"{self.method} {self.path}: expected status {status}, found {self.outcome}{hint}")
        try:
            return parse_document(self.body)
        except RequestError as error:
            raise Mismatch(f"{self.method} {self.path}: expected JSON, but {error}") from None

    def count(self, header: str) -> int | None:
        """The number in a header; ``None`` where the server does not send it.

        Raises:
            Mismatch: The header holds something else.
        """
        text = self.headers.get(header)
        if text is not None and not (text.isascii() and text.isdigit()):
            raise Mismatch(f"expected the header {header} to be a count, found {text!r}")
        return None if text is None else int(text)


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
        SettingsError: It holds something that a header cannot carry.
    """
    if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
        raise SettingsError("the key: expected visible ASCII characters without spaces, found something else")
    return key


@define
class Server:
    """A server under test.

    Attributes:
        url: Its address.
        key: The Bearer key to send, if any. No :class:`Call` holds it.
        seconds: Time limit of one call.
        calls: The calls since the current check began.
    """

    url: str
    key: str | None
    seconds: float
    _client: httpx.AsyncClient
    calls: list[Call] = field(factory=list)

    async def call(
        self, method: str, path: str, sent: Any = None, *, seconds: float | None = None, keyed: bool = True
    ) -> Call:
        """Make one call. Whatever becomes of it is in the record, and nothing is raised.

        Args:
            method: HTTP's.
            path: Appended to the server's address.
            sent: A JSON body.
            seconds: Time limit, where it is not the usual one.
            keyed: Whether the key is sent, if there is one.
        """
        limit = self.seconds if seconds is None else seconds
        headers = {"authorization": f"Bearer {self.key}"} if self.key and keyed else {}
        if sent is not None:
            headers["content-type"] = "application/json"
        content = None if sent is None else compact(sent).encode()
        request = self._client.build_request(method, self.url + path, headers=headers, content=content)
        began = time.monotonic()
        try:
            response, body = await bounded_reply(self._client, request, seconds=limit, most_bytes=MOST_BYTES)
            names = {name.lower(): value for name, value in response.headers.items()}
            outcome: dict[str, Any] = {"status": response.status_code, "headers": names, "body": body}
        except httpx.TimeoutException as error:
            outcome = {"fault": str(error) or "no connection in time", "timed_out": True}
        except (httpx.HTTPError, httpx.InvalidURL, ReplyTooLarge) as error:
            outcome = {"fault": f"{type(error).__name__}: {error}" if str(error) else type(error).__name__}
        made = Call(method=method, path=path, sent=sent, seconds=time.monotonic() - began, **outcome)
        self.calls.append(made)
        return made

    async def get(self, path: str) -> Any:
        """The JSON value of a GET that succeeds."""
        return (await self.call("GET", path)).json(200)

    async def post(self, path: str, sent: Any) -> Call:
        """Post, and again after a pause where the server is busy, as its clients would."""
        for left in reversed(range(TRIES)):
            call = await self.call("POST", path, sent)
            if call.status not in BUSY or left == 0:
                break
            await asyncio.sleep(pause_before_retry(call))
        return call


@asynccontextmanager
async def open_server(url: str, key: str | None, seconds: float) -> AsyncIterator[Server]:
    """A server under test.

    Raises:
        SettingsError: The address or the key is none.
    """
    address, key = checked_url(url), checked_key(key)
    headers = {"user-agent": f"openjev-smoke/{version('openjev')}", "accept": "application/json"}
    timeout = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    async with httpx.AsyncClient(headers=headers, timeout=timeout) as client:
        yield Server(address, key, seconds, client)


async def wait_until_ready(server: Server, seconds: float, progress: Progress) -> dict[str, Any]:
    """Ask ``/health`` until it says ok, and return what it says.

    No connection and 5xx are a start-up: an idle deployment answers 503 while its first container starts.

    Raises:
        NeverReady: The time is up, or the address answers something that no waiting will turn into this server.
    """
    began = time.monotonic()
    reported: tuple[str, float] = ("", 0.0)
    while True:
        left = began + seconds - time.monotonic()
        server.calls.clear()
        call = await server.call("GET", "/health", seconds=max(min(POLL_LIMIT, left), 0.1))
        waited = time.monotonic() - began
        if call.status == 200:  # noqa: PLR2004 - HTTP's own number
            return health_of(call)
        if call.status is not None and call.status < 500 and call.status not in STARTING:  # noqa: PLR2004 - HTTP's own number
            where = f", which points to {call.headers['location']}" if "location" in call.headers else ""
            raise NeverReady(f"expected /health to say 200 or 503, found {call.outcome}{where}")
        if waited + POLL_SECONDS > seconds:
            raise NeverReady(f"not ready after {waited:.0f} seconds: {call.outcome}")
        if call.outcome != reported[0] or waited - reported[1] >= REPEAT_SECONDS:
            reported = (call.outcome, waited)
            progress(f"waiting for {server.url}, {waited:.0f} of {seconds:.0f} seconds: {call.outcome}")
        await asyncio.sleep(POLL_SECONDS)


def health_of(call: Call) -> dict[str, Any]:
    """The body of a ``/health`` reply.

    Raises:
        NeverReady: It is not this server's.
    """
    try:
        health = call.json(200)
    except Mismatch as error:
        raise NeverReady(f"/health answers, but not as this server: {error}") from None
    match health:
        case {"status": "ok", "model": str(), "backend": {"name": str()}, "startup_seconds": int() | float()}:
            return dict(health)
    expected = '{"status": "ok", "startup_seconds", "model", "backend": {"name", ...}}'
    raise NeverReady(f"/health answers, but not as this server: expected {expected}, found {brief(health)}")


def pause_before_retry(call: Call) -> float:
    """Seconds to wait before a busy server is asked again."""
    try:
        asked = float(call.headers.get("retry-after", "1"))
    except ValueError:
        return 1.0
    return min(max(asked, 0.0), LONGEST_PAUSE) if asked == asked else 1.0  # noqa: PLR0124 - NaN is not itself


def brief(value: Any, most: int = 200) -> str:
    """A JSON value on one line, cut to ``most`` characters."""
    text = compact(value)
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"
