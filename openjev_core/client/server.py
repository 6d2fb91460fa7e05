"""A running server, asked over HTTP: ``POST /v1/systemone``, or OpenAI's ``POST /v1/decisions``."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import stamina
from attrs import frozen

from openjev_core.bounded_reply import ReplyTooLarge, bounded_reply
from openjev_core.errors import (
    BackendUnavailable,
    OpenJevError,
    PluginError,
    Problem,
    RequestError,
    StartupError,
    describe_problem,
)
from openjev_core.json_document import parse_document

SYSTEMONE = "/v1/systemone"
DECISIONS = "/v1/decisions"

ATTEMPTS = 8
LONGEST_WAIT = 30.0
"""Upper bound on the seconds between two attempts, whatever ``Retry-After`` says."""

MOST_REPLY_BYTES = 64 * 1024 * 1024
"""Upper bound on the bytes of a reply that is read: answers repeat names and levels of the request, and little more."""

REFUSALS = frozenset({400, 413, 422})
REFUSED_BY_NAME = frozenset({(404, "model_not_found"), (500, PluginError.error_type)})
"""Refusals whose status alone says less: OpenAI's of an unknown model, and a question type that fails on this request,
which would fail again and may well take the next one."""

WORTH_RETRYING = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


class Refused(Exception):
    """The request cannot be answered, and asking again would not help. The message says why.

    Args:
        problems: What is wrong.
        status: The server's, where one said so.
    """

    def __init__(self, problems: tuple[Problem, ...], status: int | None = None) -> None:
        self.problems = problems
        self.status = status
        told = "; ".join(map(describe_problem, problems))
        super().__init__(told if status is None else f"{status}: {told}")


class _TryAgain(OpenJevError):
    """The server could not answer this time.

    Attributes:
        after: Seconds to wait first, by the server's ``Retry-After``; ``None`` without one.
    """

    def __init__(self, message: str, after: float | None) -> None:
        self.after = after
        super().__init__(message)


@frozen
class Server:
    """A running server.

    Attributes:
        client: Has the server's address as its base.
        url: That address, for messages.
        path: The wire that it is asked by, :data:`SYSTEMONE` or :data:`DECISIONS`.
        seconds: Time limit of one attempt, to the last byte of its reply.
        attempts: How often a request is sent while the server has a passing fault.
    """

    client: httpx.AsyncClient
    url: str
    path: str
    seconds: float
    attempts: int = ATTEMPTS

    async def post(self, body: bytes, path: str | None = None) -> tuple[dict[str, Any], float]:
        """Post a request, and again after a pause where that may help.

        Args:
            body: The request, as it is.
            path: Another wire than the server's usual one.

        Returns:
            The response's body, and the seconds that the attempt took which succeeded.

        Raises:
            Refused: The server refuses it.
            BackendUnavailable: There was no answer.
            StartupError: What answers is no server of this API, or wants a key.
        """
        return await self._retried("POST", path or self.path, body)

    async def first_model(self) -> str:
        """The first model that the server lists. Raises as :meth:`post` does."""
        body, _ = await self._retried("GET", "/v1/models", None)
        try:
            return str(body["data"][0]["id"])
        except (LookupError, TypeError):
            raise StartupError(f"{self.url}/v1/models lists no model; name one with --model") from None

    async def promise(self) -> dict[str, float] | None:
        """What it promises of answers with ``x_accept``; ``None`` for nothing. Raises as :meth:`post` does."""
        body, _ = await self._retried("GET", "/v1/limits", None)
        try:
            found = body.get("accepted_answers")
            return None if found is None else {name: float(found[name]) for name in ("share", "confidence")}
        except (LookupError, TypeError, ValueError):
            raise no_answer(self.url, "its /v1/limits has accepted_answers without share and confidence") from None

    async def _retried(self, method: str, path: str, body: bytes | None) -> tuple[dict[str, Any], float]:
        caller = stamina.AsyncRetryingCaller(attempts=self.attempts, timeout=None, wait_max=10.0).on(_backoff)
        try:
            return await caller(self._sent, method, path, body)
        except (httpx.TransportError, _TryAgain) as error:
            reason = str(error) or type(error).__name__
            msg = f"{self.url} did not answer after {self.attempts} attempts: {reason}"
            raise BackendUnavailable(msg) from None

    async def _sent(self, method: str, path: str, body: bytes | None) -> tuple[dict[str, Any], float]:
        headers = {"content-type": "application/json"} if body is not None else {}
        request = self.client.build_request(method, path, content=body, headers=headers)
        started = time.perf_counter()
        try:
            response, content = await bounded_reply(
                self.client, request, seconds=self.seconds, most_bytes=MOST_REPLY_BYTES
            )
        except ReplyTooLarge as error:
            raise StartupError(f"{self.url}: {error}, which no answer of this API is") from None
        seconds = time.perf_counter() - started
        if response.status_code == httpx.codes.OK:
            return self._parsed(content), seconds
        raise self._fault(response, content, path)

    def _parsed(self, content: bytes) -> dict[str, Any]:
        try:
            body = parse_document(content)
        except RequestError as error:
            raise no_answer(self.url, error) from None
        if not isinstance(body, dict):
            raise no_answer(self.url, "it is no object")
        return body

    def _fault(self, response: httpx.Response, content: bytes, path: str) -> Exception:
        """What a response that is no answer is raised as."""
        status = response.status_code
        error_type, problems = _problems(content)
        reason = "; ".join(map(describe_problem, problems))
        if status in REFUSALS or (status, error_type) in REFUSED_BY_NAME:
            return Refused(problems, status)
        if status in WORTH_RETRYING:
            return _TryAgain(f"{status}: {reason}", _retry_after(response))
        hint = ""
        if status == httpx.codes.UNAUTHORIZED:
            hint = "; set OPENJEV_API_KEY to its key"
        elif status == httpx.codes.NOT_FOUND and path == SYSTEMONE:
            hint = f"; for a server of OpenAI's wire, give the address with its path: {self.url}{DECISIONS}"
        if location := response.headers.get("location"):
            hint = f"; it points to {location}, which --url takes as well"
        return StartupError(f"{self.url} answered {status}: {reason}{hint}")


@asynccontextmanager
async def open_server(
    url: str, *, api_key: str | None, seconds: float, concurrency: int = 1, attempts: int = ATTEMPTS
) -> AsyncIterator[Server]:
    """A server, to be asked in the block.

    Args:
        url: Its base address. One that ends in ``/v1/decisions`` is asked by that wire, any other by systemone.
        api_key: The Bearer key to send; ``None`` sends none.
        seconds: Time limit of one attempt.
        concurrency: Upper bound on the connections.
        attempts: How often a request is sent while the server has a passing fault.

    Raises:
        StartupError: ``url`` is no HTTP address.
    """
    base = url.rstrip("/")
    path = DECISIONS if base.endswith(DECISIONS) else SYSTEMONE
    base = base.removesuffix(path).removesuffix("/v1")
    if not base.startswith(("http://", "https://")):
        raise StartupError(f"--url {url}: expected an address that begins with http:// or https://")
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    limits = httpx.Limits(max_connections=concurrency)
    async with httpx.AsyncClient(base_url=base, headers=headers, timeout=seconds, limits=limits) as client:
        yield Server(client, base, path, seconds, attempts)


def no_answer(url: str, reason: object) -> StartupError:
    """The error of a 200 that holds no answer."""
    return StartupError(f"{url} answered 200 with something that is no answer of this API: {reason}")


def _backoff(error: Exception) -> bool | float:
    if isinstance(error, _TryAgain):
        return True if error.after is None else min(error.after, LONGEST_WAIT)
    return isinstance(error, httpx.TransportError)


def _retry_after(response: httpx.Response) -> float | None:
    try:
        seconds = float(response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if seconds >= 0 else None


def _problems(content: bytes) -> tuple[str | None, tuple[Problem, ...]]:
    """The ``error_type`` of an error body, if it has one, and what it says: in this API's shape or in OpenAI's."""
    try:
        body = json.loads(content)
        detail = body.get("detail")
        if isinstance(detail, list):
            return None, tuple(Problem(tuple(entry["loc"][1:]), str(entry["msg"])) for entry in detail)
        if detail is not None:
            return detail.get("error_type"), (Problem((), str(detail["message"])),)
        return body["error"].get("code"), (Problem((), str(body["error"]["message"])),)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        text = " ".join(content.decode("utf-8", "replace").split())[:200] or "an empty body"
        return None, (Problem((), text),)
