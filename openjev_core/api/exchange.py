"""One request and what came of it, and the types of the ASGI interface as they are used here."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import unquote

from attrs import define, field, frozen

from openjev_core.engine.evaluation import Evaluation
from openjev_core.engine.request import Request

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

Header = tuple[bytes, bytes]


@frozen
class Reply:
    """A whole response.

    Attributes:
        status: HTTP status code.
        body: Its bytes; they leave with a content-length.
        headers: Everything but content-length and the request id. Names in lower case, as HTTP/2 wants them.
    """

    status: int
    body: bytes
    headers: tuple[Header, ...] = ()


@define(kw_only=True, eq=False)
class Exchange:
    """What is known of a request, filled in while it is answered; the log, the metrics and the traces read it.

    Attributes:
        request_id: On the response, in the log and in traces.
        method: As sent.
        path: Without the query; see :func:`path_of`.
        client: Address of the client, or of the proxy before it where proxies are not trusted.
        headers: Lower-case name to value; repeated headers are joined by a comma.
        started: ``time.perf_counter()`` on arrival.
        route: Path of the matching route; ``other`` when there is none.
        status: The response's, once it is on its way; ``None`` when there was none.
        questions: Question id to question type of a structured request, in request order.
        evaluation: What the engine answered.
        error: Why there was no answer.
        hung_up: The client went away before the response.
    """

    request_id: str
    method: str
    path: str
    client: str
    headers: Mapping[bytes, bytes]
    started: float
    route: str = "other"
    status: int | None = None
    questions: Mapping[str, str] = field(factory=dict)
    evaluation: Evaluation | None = None
    error: Exception | None = None
    hung_up: bool = False

    def note(self, request: Request) -> None:
        """Note the question types of a request that has been structured."""
        self.questions = request.types


def path_of(scope: Scope) -> str:
    """A request's path, decoded, but for slashes that were sent encoded: those are no separators."""
    path: str = scope["path"]
    # hypercorn has decoded those, too.
    raw: bytes = scope.get("raw_path") or b""
    if b"%2f" not in raw.lower():
        return path
    return "%2F".join(unquote(part) for part in re.split("%2[Ff]", raw.decode("latin-1")))


def joined_headers(headers: Iterable[Header]) -> dict[bytes, bytes]:
    """Header name to value, repeated headers joined by a comma as HTTP allows."""
    joined: dict[bytes, bytes] = {}
    for name, value in headers:
        joined[name] = joined[name] + b", " + value if name in joined else value
    return joined
