"""Askers: an engine in this process, or a server of this API, asked one row's questions at a time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, Protocol, TypeVar

import stamina
from attrs import frozen

from openjev_core.client.asking import ask_server
from openjev_core.client.server import DECISIONS, SYSTEMONE, Refused, Server, open_server
from openjev_core.engine.calibrated import calibration_digest
from openjev_core.engine.engine import Engine
from openjev_core.engine.request import ALIAS
from openjev_core.errors import (
    AtCapacity,
    BackendError,
    PluginError,
    Problem,
    RequestError,
)
from openjev_core.orders import Orders

P = ParamSpec("P")
T = TypeVar("T")


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

    async def promise(self) -> Mapping[str, float] | None:
        """What is promised of the answers that have ``x_accept``: ``share`` and ``confidence``."""
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

    async def promise(self) -> Mapping[str, float] | None:
        """That of the engine's calibration."""
        promise = self.engine.promise
        return None if promise is None else promise.json

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
            problems = error.problems if isinstance(error, RequestError) else (Problem((), str(error)),)
            raise Refused(problems) from None


async def retried(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call an engine in this process, and again after a fault that may pass."""
    caller = stamina.AsyncRetryingCaller(attempts=3, timeout=None).on((BackendError, AtCapacity))
    return await caller(function, *args, **kwargs)


@frozen
class HttpAsker:
    """Asks a server over HTTP.

    Attributes:
        server: The server.
        orders: The ``x_orders`` to send; ``None`` sends none.
        model: The model id to send; ``jev-latest`` when ``None``.
    """

    server: Server
    orders: Orders | None
    model: str | None = None

    @property
    def source(self) -> Mapping[str, Any]:
        """The server's address, and the orders asked for; ``None`` where the server's own setting holds."""
        url = self.server.url if self.server.path == SYSTEMONE else self.server.url + self.server.path
        source = {"answered_by": url, "orders": self.orders}
        return source if self.model is None else {**source, "asked_for": self.model}

    async def promise(self) -> Mapping[str, float] | None:
        """That of the server."""
        return await self.server.promise()

    async def ask(self, state: Any, questions: Mapping[str, Any]) -> Reply:
        """Post a request, and again after a pause where that may help."""
        document = {"model": self.model or ALIAS, "state": state, "questions": questions}
        if self.orders is not None:
            document["x_orders"] = self.orders
        try:
            answered = await ask_server(self.server, document)
        except RequestError as error:
            raise Refused(error.problems) from None
        read, made, _ = answered.usage
        return Reply(
            model=answered.model,
            answers=answered.answers,
            input_tokens=read,
            output_tokens=made,
            seconds=answered.seconds,
        )


@asynccontextmanager
async def open_http(
    url: str,
    *,
    orders: Orders | None,
    api_key: str | None,
    seconds: float,
    concurrency: int,
    model: str | None = None,
) -> AsyncIterator[HttpAsker]:
    """An asker of a server.

    Args:
        url: The server's address, as :func:`open_server` takes it.
        orders: The ``x_orders`` to send; ``None`` sends none.
        api_key: The Bearer key to send; ``None`` sends none.
        seconds: Time limit of one attempt.
        concurrency: Upper bound on the connections.
        model: The model id to send. A server of decisions is sent the first that it lists when ``None``.

    Raises:
        StartupError: ``url`` is no HTTP address, or the server lists no model.
    """
    async with open_server(url, api_key=api_key, seconds=seconds, concurrency=concurrency) as server:
        if model is None and server.path == DECISIONS:
            model = await server.first_model()
        yield HttpAsker(server, orders, model)
