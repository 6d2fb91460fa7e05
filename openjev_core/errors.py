"""Every error that openjev raises on purpose, as one tree.

::

    OpenJevError
    ├── RequestError            422  the request is wrong; nothing was inferred
    │   └── InvalidQuestion     422  raised by a question type, at a path inside the question
    ├── HttpError               its own status: what is wrong lies outside the JSON document
    │   ├── MalformedBody       400  a body that does not decompress
    │   ├── Unauthorized        401  missing or wrong key
    │   ├── ForeignOrigin       403  a page of another origin
    │   ├── NotFound            404  no such route
    │   ├── MethodNotAllowed    405  the route exists, the method does not
    │   ├── BodyTimeout         408  the body did not arrive in time
    │   ├── BodyTooLarge        413  over the limit, counted after decompression
    │   ├── UnsupportedBody     415  content encoding or media type that is not read
    │   ├── Overloaded          503  the bodies that are being received leave no room for another
    │   └── HttpVersion         505  a version of HTTP that is not served
    ├── PluginError             500  a question type broke its contract
    ├── BackendError            502  the backend's answer is no distribution
    │   ├── BackendUnavailable  503  the backend does not answer
    │   └── DeadlineExceeded    504  the evaluation ran out of time
    ├── AtCapacity              529  as many evaluations are running as are admitted
    ├── Stopping                503  the server stops and could not finish the evaluation
    └── StartupError            no status: ends the start, and the command with exit code 1
        └── SettingsError       no status: a setting is wrong; exit code 2

Each class knows its HTTP ``status`` and its ``error_type`` (the wire's machine-readable name); the API layer adds
nothing but the JSON around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from attrs import frozen

Loc = tuple[str | int, ...]
"""A path into a request, outermost first: ``("questions", "urgency", "criteria", 0)``."""

MAX_PROBLEMS = 20
"""Problems of one request that are shown. A hostile request may have a million."""


@frozen
class Problem:
    """One thing that is wrong with a request.

    Attributes:
        loc: Where, as a path from the body's root (without the wire's leading ``"body"``).
        msg: What was found, what is accepted, what to do.
        type: Machine-readable kind: ``missing``, ``type_error``, ``value_error``, ``extra_forbidden``, ...
    """

    loc: Loc
    msg: str
    type: str = "value_error"


class OpenJevError(Exception):
    """Anything that openjev raises on purpose."""

    status: ClassVar[int | None] = None
    error_type: ClassVar[str] = "internal_error"
    retry_after: float | None = None
    """Seconds for a ``Retry-After`` header, for errors that waiting can cure."""


class RequestError(OpenJevError):
    """The request is wrong. Raised before any inference.

    Attributes:
        problems: What is wrong, in request order; never empty. Whoever finds problems one by one stops looking once
            there are more than :data:`MAX_PROBLEMS`.
    """

    status = 422
    error_type = "validation_error"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        # Made when it is asked for: on its way up, an error is made anew at each level of a request.
        return "; ".join(describe_problem(p) for p in self.problems)

    @classmethod
    def at(cls, loc: Loc, msg: str, type: str = "value_error") -> RequestError:
        """The error with a single problem."""
        return cls([Problem(loc, msg, type)])

    def under(self, *loc: str | int) -> RequestError:
        """The same problems, with ``loc`` put before each path."""
        return RequestError([Problem((*loc, *p.loc), p.msg, p.type) for p in self.problems])


class InvalidQuestion(RequestError):
    """A question that structures but makes no sense, such as two options of one meaning.

    Only :attr:`openjev_core.QuestionType.readouts` may raise it.

    Args:
        msg: What is wrong and what is accepted.
        loc: Where, as a path inside the question: ``("criteria", 2)``; or the name of a field.
    """

    def __init__(self, msg: str, loc: Loc | str = ()) -> None:
        super().__init__([Problem((loc,) if isinstance(loc, str) else tuple(loc), msg)])


class HttpError(OpenJevError):
    """What is wrong lies outside the JSON document: in the headers, the route or the bytes."""


class MalformedBody(HttpError):
    """A body that does not decompress, or malformed HTTP."""

    status = 400
    error_type = "malformed_body"


class Unauthorized(HttpError):
    """A missing or wrong key."""

    status = 401
    error_type = "authentication_error"


class ForeignOrigin(HttpError):
    """A page of an origin that may not call."""

    status = 403
    error_type = "foreign_origin"


class NotFound(HttpError):
    """No such route."""

    status = 404
    error_type = "not_found"


class MethodNotAllowed(HttpError):
    """The route exists; the method does not.

    Attributes:
        allowed: The methods that it has.
    """

    status = 405
    error_type = "method_not_allowed"

    def __init__(self, message: str, allowed: Sequence[str]) -> None:
        self.allowed = tuple(allowed)
        super().__init__(message)


class BodyTimeout(HttpError):
    """The body did not arrive in time."""

    status = 408
    error_type = "body_timeout"


class BodyTooLarge(HttpError):
    """The body is over the limit, counted after decompression."""

    status = 413
    error_type = "body_too_large"


class UnsupportedBody(HttpError):
    """A content encoding or media type that is not read."""

    status = 415
    error_type = "unsupported_body"


class Overloaded(HttpError):
    """The bodies that are being received leave no room for another."""

    status = 503
    error_type = "overloaded"
    retry_after = 1


class HttpVersion(HttpError):
    """A version of HTTP that is not served."""

    status = 505
    error_type = "http_version"


class PluginError(OpenJevError):
    """A question type broke its contract.

    Attributes:
        type_name: The question type's wire name.
        rule: What it did, for the client: no values, no traceback.
    """

    status = 500
    error_type = "plugin_error"

    def __init__(self, type_name: str, rule: str) -> None:
        self.type_name = type_name
        self.rule = rule
        super().__init__(f"question type {type_name!r} failed: {rule}")


class BackendError(OpenJevError):
    """The backend answered with something that is no distribution over the labels."""

    status = 502
    error_type = "backend_error"


class BackendUnavailable(BackendError):
    """The backend does not answer, or says that it cannot take the call now."""

    status = 503
    error_type = "backend_unavailable"
    retry_after = 2


class DeadlineExceeded(BackendError):
    """The evaluation ran out of time."""

    status = 504
    error_type = "deadline_exceeded"


class AtCapacity(OpenJevError):
    """As many evaluations are running as are admitted.

    Args:
        message: What runs and waits.
        retry_after: Seconds that recent evaluations took.
    """

    status = 529
    error_type = "at_capacity"
    retry_after = 1.0

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class Stopping(OpenJevError):
    """The server stops, and its grace period ended before the evaluation did."""

    status = 503
    error_type = "stopping"
    retry_after = 2


class StartupError(OpenJevError):
    """The server or engine cannot start. The message says what was expected, what was found, and how to change it."""


class SettingsError(StartupError):
    """A setting is wrong. The message names the variable, the value found and what is accepted."""


def describe_problem(problem: Problem) -> str:
    """``questions.urgency.criteria: a choice needs ...``: one line for a person."""
    path = ".".join(str(part) for part in problem.loc)
    return f"{path}: {problem.msg}" if path else problem.msg
