"""Who answers: an engine in this process, or a server of this API."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, Protocol

import httpx
import stamina
from attrs import frozen

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

ATTEMPTS = 8
LONGEST_WAIT = 30.0
"""Seconds between two attempts, at most, whatever a server asks for."""

REFUSALS = frozenset({400, 413, 422})
WORTH_RETRYING = frozenset({408, 425, 429, 500, 502, 503, 504, 529})

Orders = int | Literal["full", "adaptive"]


class Refused(Exception):
    """This row cannot be answered, and asking again would not help. The message says why."""


@frozen(kw_only=True)
class Reply:
    """One request's answers.

    Attributes:
        model: The public name of the model that answered.
        answers: Question id to answer, as on the wire.
        input_tokens, output_tokens: The answering side's own counts.
        seconds: From sending to receiving, attempts that failed left out.
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
        """What a run's file says about who answered and how."""
        ...

    async def ask(self, state: Any, questions: Mapping[str, Any]) -> Reply:
        """Answer questions about a state.

        Raises:
            Refused: They cannot be answered.
            OpenJevError: Something else is wrong, and will be for the next row too.
        """
        ...


@frozen
class EngineAsker:
    """Asks an engine in this process."""

    engine: Engine

    @property
    def source(self) -> Mapping[str, Any]:
        """The model, and every setting on which a probability depends.

        A calibration is named by what it says: `openjev calibrate` writes a new one under the name of the old.
        """
        settings, calibration = self.engine.settings, self.engine.calibration
        return {
            "answered_by": "this process",
            "model": self.engine.model.public_name,
            "orders": settings.orders,
            "prior": settings.prior,
            "calibration": None if calibration is None else calibration_digest(calibration),
            "temperature": settings.temperature,
            "confidence": settings.confidence,
        }

    async def ask(self, state: Any, questions: Mapping[str, Any]) -> Reply:
        """Evaluate, again where the backend had a passing fault."""
        document = {"model": ALIAS, "state": state, "questions": questions}
        async for attempt in stamina.retry_context(on=worth_retrying, attempts=3, timeout=None):
            with attempt:
                started = time.perf_counter()
                try:
                    evaluation = await self.engine.evaluate_request(self.engine.structure(document))
                except (RequestError, PluginError) as error:
                    raise Refused(str(error)) from None
                return Reply(
                    model=evaluation.model,
                    answers=evaluation.answers,
                    input_tokens=evaluation.usage.input_tokens,
                    output_tokens=evaluation.usage.output_tokens,
                    seconds=time.perf_counter() - started,
                )
        raise AssertionError("unreachable: the last attempt raises")  # pragma: no cover


class _TryAgain(OpenJevError):
    """The server could not answer now.

    Attributes:
        after: Seconds that it asks to be left alone for, if it says.
    """

    def __init__(self, message: str, after: float | None) -> None:
        self.after = after
        super().__init__(message)


@frozen
class HttpAsker:
    """Asks a server over HTTP."""

    client: httpx.AsyncClient
    url: str
    orders: Orders | None

    @property
    def source(self) -> Mapping[str, Any]:
        """The server, and the orders that it is asked for; ``None`` for its own setting."""
        return {"answered_by": self.url, "orders": self.orders}

    async def ask(self, state: Any, questions: Mapping[str, Any]) -> Reply:
        """Post a request, again and later where the server says that this may help."""
        document = {"model": ALIAS, "state": state, "questions": questions}
        if self.orders is not None:
            document["x_orders"] = self.orders
        body = compact(document).encode()
        try:
            async for attempt in stamina.retry_context(on=_backoff, attempts=ATTEMPTS, timeout=None, wait_max=10.0):
                with attempt:
                    return await self._post(body)
        except (httpx.TransportError, _TryAgain) as error:
            msg = f"{self.url} did not answer after {ATTEMPTS} attempts: {_described(error)}"
            raise BackendUnavailable(msg) from None
        raise AssertionError("unreachable: the last attempt raises")  # pragma: no cover

    async def _post(self, body: bytes) -> Reply:
        started = time.perf_counter()
        response = await self.client.post("/v1/systemone", content=body, headers={"content-type": "application/json"})
        seconds = time.perf_counter() - started
        if response.status_code in REFUSALS:
            raise Refused(f"{response.status_code}: {_reason(response)}")
        if (
            response.status_code == httpx.codes.INTERNAL_SERVER_ERROR
            and _error_type(response) == PluginError.error_type
        ):
            # The question type fails on this row; it would do so again, and may well take the next.
            raise Refused(f"500: {_reason(response)}")
        if response.status_code in WORTH_RETRYING:
            msg = f"{response.status_code}: {_reason(response)}"
            raise _TryAgain(msg, _retry_after(response))
        if response.status_code != httpx.codes.OK:
            hint = "; set OPENJEV_API_KEY to its key" if response.status_code == httpx.codes.UNAUTHORIZED else ""
            raise StartupError(f"{self.url} answered {response.status_code}: {_reason(response)}{hint}")
        return _reply(response, seconds, self.url)


@asynccontextmanager
async def open_http(
    url: str, *, orders: Orders | None, api_key: str | None, seconds: float, concurrency: int
) -> AsyncIterator[HttpAsker]:
    """A server to ask.

    Args:
        url: Its base address, with or without ``/v1/systemone``.
        orders: For ``x_orders``; ``None`` leaves it out.
        api_key: Sent as a Bearer key, if any.
        seconds: How long one attempt may take.
        concurrency: Connections at most.

    Raises:
        StartupError: ``url`` is no HTTP address.
    """
    base = url.removesuffix("/").removesuffix("/v1/systemone")
    if not base.startswith(("http://", "https://")):
        raise StartupError(f"--url {url}: expected an address that begins with http:// or https://")
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    limits = httpx.Limits(max_connections=concurrency)
    async with httpx.AsyncClient(base_url=base, headers=headers, timeout=seconds, limits=limits) as client:
        yield HttpAsker(client, base, orders)


def worth_retrying(error: Exception) -> bool:
    """Whether an engine in this process may do better next time."""
    return isinstance(error, (BackendError, AtCapacity))


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


def _error_type(response: httpx.Response) -> str | None:
    """What an error body says it is."""
    try:
        return str(response.json()["detail"]["error_type"])
    except (ValueError, LookupError, TypeError):
        return None


def _reason(response: httpx.Response) -> str:
    """What an error body says: one line."""
    try:
        detail = response.json()["detail"]
        if isinstance(detail, list):
            return "; ".join(f"{'.'.join(map(str, entry['loc'][1:]))}: {entry['msg']}" for entry in detail)
        return str(detail["message"])
    except (ValueError, LookupError, TypeError):
        return " ".join(response.text.split())[:200] or "an empty body"


def _reply(response: httpx.Response, seconds: float, url: str) -> Reply:
    try:
        body = parse_document(response.content)
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
