"""Askers: an engine in this process, or a server of this API, asked one row's questions at a time."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, Protocol, TypeVar

import httpx
import stamina
from attrs import frozen

from openjev_core.bounded_reply import ReplyTooLarge, bounded_reply
from openjev_core.engine.calibrated import calibration_digest
from openjev_core.engine.engine import Engine
from openjev_core.engine.request import ALIAS
from openjev_core.errors import (
    AtCapacity,
    BackendError,
    BackendUnavailable,
    OpenJevError,
    PluginError,
    RequestError,
    StartupError,
)
from openjev_core.json_document import compact, parse_document
from openjev_core.orders import Orders

ATTEMPTS = 8
LONGEST_WAIT = 30.0
"""Upper bound on the seconds between two attempts, whatever ``Retry-After`` says."""

MOST_REPLY_BYTES = 64 * 1024 * 1024
"""Upper bound on the bytes of a reply that is read: answers repeat names and levels of the request, and little more."""

REFUSALS = frozenset({400, 413, 422})
WORTH_RETRYING = frozenset({408, 425, 429, 500, 502, 503, 504, 529})

P = ParamSpec("P")
T = TypeVar("T")


class Refused(Exception):
    """The row cannot be answered, and asking again would not help. The message says why."""


@frozen(kw_only=True)
class Reply:
    """One request's answers.

    Attributes:
        model: The public name of the model that answered.
        answers: Question id to answer, as on the wire.
        input_tokens, output_tokens: As counted by the engine or server that answered.
        seconds: Duration of the attempt that succeeded.
    """

    model: str
    answers: Mapping[str, Any]
    input_tokens: int
    output_tokens: int
    seconds: float


class Asker(Protocol):
    """Answers one request at a time; several may run at once."""

    @property
    def source(self) -> Mapping[str, Any]:
        """For the first line of a run: who answers, and with which settings."""
        ...

    async def ask(self, state: Any, questions: Mapping[str, Any]) -> Reply:
        """Answer questions about a state.

        Raises:
            Refused: The questions cannot be answered for this state.
            OpenJevError: Something else is wrong, and will be wrong for the next row too.
        """
        ...


@frozen
class EngineAsker:
    """Asks an engine in this process."""

    engine: Engine

    @property
    def source(self) -> Mapping[str, Any]:
        """The model, and every setting on which a probability depends.

        A calibration is named by its digest: `openjev calibrate` writes a new one under the same file name.
        """
        settings, calibration = self.engine.settings, self.engine.calibration
        return {
            "answered_by": "this process",
            "model": self.engine.model.public_name,
            "template": self.engine.model.wording,
            "orders": settings.orders,
            "prior": settings.prior,
            "calibration": None if calibration is None else calibration_digest(calibration),
            "temperature": settings.temperature,
            "confidence": settings.confidence,
        }

    async def ask(self, state: Any, questions: Mapping[str, Any]) -> Reply:
        """Evaluate a request, and again where the backend had a passing fault."""
        document = {"model": ALIAS, "state": state, "questions": questions}

        async def evaluate() -> Reply:
            started = time.perf_counter()
            evaluation = await self.engine.evaluate_request(self.engine.structure(document))
            return Reply(
                model=evaluation.model,
                answers=evaluation.answers,
                input_tokens=evaluation.usage.input_tokens,
                output_tokens=evaluation.usage.output_tokens,
                seconds=time.perf_counter() - started,
            )

        try:
            return await retried(evaluate)
        except (RequestError, PluginError) as error:
            raise Refused(str(error)) from None


async def retried(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call an engine in this process, and again after a fault that may pass."""
    caller = stamina.AsyncRetryingCaller(attempts=3, timeout=None).on((BackendError, AtCapacity))
    return await caller(function, *args, **kwargs)


class _TryAgain(OpenJevError):
    """The server could not answer this time.

    Attributes:
        after: Seconds to wait first, by the server's ``Retry-After``; ``None`` without one.
    """

    def __init__(self, message: str, after: float | None) -> None:
        self.after = after
        super().__init__(message)


@frozen
class HttpAsker:
    """Asks a server over HTTP.

    Attributes:
        client: Has the server's address as its base.
        url: That address, for messages.
        orders: The ``x_orders`` to send; ``None`` sends none.
        seconds: Time limit of one attempt, to the last byte of its reply.
    """

    client: httpx.AsyncClient
    url: str
    orders: Orders | None
    seconds: float

    @property
    def source(self) -> Mapping[str, Any]:
        """The server's address, and the orders asked for; ``None`` where the server's own setting holds."""
        return {"answered_by": self.url, "orders": self.orders}

    async def ask(self, state: Any, questions: Mapping[str, Any]) -> Reply:
        """Post a request, and again after a pause where that may help."""
        document = {"model": ALIAS, "state": state, "questions": questions}
        if self.orders is not None:
            document["x_orders"] = self.orders
        body = compact(document).encode()
        caller = stamina.AsyncRetryingCaller(attempts=ATTEMPTS, timeout=None, wait_max=10.0).on(_backoff)
        try:
            return await caller(self._post, body)
        except (httpx.TransportError, _TryAgain) as error:
            msg = f"{self.url} did not answer after {ATTEMPTS} attempts: {_described(error)}"
            raise BackendUnavailable(msg) from None

    async def _post(self, body: bytes) -> Reply:
        headers = {"content-type": "application/json"}
        request = self.client.build_request("POST", "/v1/systemone", content=body, headers=headers)
        started = time.perf_counter()
        try:
            response, content = await bounded_reply(
                self.client, request, seconds=self.seconds, most_bytes=MOST_REPLY_BYTES
            )
        except ReplyTooLarge as error:
            raise StartupError(f"{self.url}: {error}, which no answer of this API is") from None
        seconds = time.perf_counter() - started
        status = response.status_code
        if status == httpx.codes.OK:
            return _reply(content, seconds, self.url)
        error_type, reason = _fault(content)
        # A question type that fails on this row would fail again, and may well take the next row.
        if status in REFUSALS or (status == httpx.codes.INTERNAL_SERVER_ERROR and error_type == PluginError.error_type):
            raise Refused(f"{status}: {reason}")
        if status in WORTH_RETRYING:
            raise _TryAgain(f"{status}: {reason}", _retry_after(response))
        hint = "; set OPENJEV_API_KEY to its key" if status == httpx.codes.UNAUTHORIZED else ""
        if location := response.headers.get("location"):
            hint = f"; it points to {location}, which --url takes as well"
        raise StartupError(f"{self.url} answered {status}: {reason}{hint}")


@asynccontextmanager
async def open_http(
    url: str, *, orders: Orders | None, api_key: str | None, seconds: float, concurrency: int
) -> AsyncIterator[HttpAsker]:
    """An asker of a server.

    Args:
        url: The server's base address, with or without ``/v1/systemone``.
        orders: The ``x_orders`` to send; ``None`` sends none.
        api_key: The Bearer key to send; ``None`` sends none.
        seconds: Time limit of one attempt.
        concurrency: Upper bound on the connections.

    Raises:
        StartupError: ``url`` is no HTTP address.
    """
    base = url.rstrip("/").removesuffix("/v1/systemone")
    if not base.startswith(("http://", "https://")):
        raise StartupError(f"--url {url}: expected an address that begins with http:// or https://")
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    limits = httpx.Limits(max_connections=concurrency)
    async with httpx.AsyncClient(base_url=base, headers=headers, timeout=seconds, limits=limits) as client:
        yield HttpAsker(client, base, orders, seconds)


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


def _described(error: Exception) -> str:
    return str(error) or type(error).__name__


def _fault(content: bytes) -> tuple[str | None, str]:
    """The ``error_type`` of an error body, if it has one, and what it says, as one line."""
    try:
        detail = json.loads(content)["detail"]
        if isinstance(detail, list):
            return None, "; ".join(f"{'.'.join(map(str, entry['loc'][1:]))}: {entry['msg']}" for entry in detail)
        return detail.get("error_type"), str(detail["message"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None, " ".join(content.decode("utf-8", "replace").split())[:200] or "an empty body"


def _reply(content: bytes, seconds: float, url: str) -> Reply:
    try:
        body = parse_document(content)
        usage = body["usage"]
        answers = {str(question_id): dict(answer) for question_id, answer in body["answers"].items()}
        return Reply(
            model=str(body["model"]),
            answers=answers,
            input_tokens=int(usage["input_tokens"]),
            output_tokens=int(usage["output_tokens"]),
            seconds=seconds,
        )
    except (RequestError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StartupError(f"{url} answered 200 with something that is no answer of this API: {error}") from None
