"""What a service's wire is, and the calls that it makes of readouts: the body out, the answers back in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from attrs import frozen

from openjev_core.backends.services.asked import AskedReadout
from openjev_core.errors import BackendError
from openjev_core.reader import OrderReading


@frozen(kw_only=True)
class Answered:
    """What a service answered to one call.

    Attributes:
        model: The model that it names.
        readings: One for each readout that was asked.
        input_tokens, output_tokens: Its own counts.
        cached_tokens: Those of the input that were not computed again; ``None`` where it does not say.
    """

    model: str
    readings: Sequence[OrderReading]
    input_tokens: int
    output_tokens: int
    cached_tokens: int | None


class Wire(Protocol):
    """A shape of calls.

    Attributes:
        name: The engine's.
        path: Where calls go.
        max_questions: Questions of a call, where the service does not say.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see above

    @property
    def path(self) -> str: ...  # noqa: D102 - see above

    @property
    def max_questions(self) -> int: ...  # noqa: D102 - see above

    def body(self, model: str, state: Any, asked: Sequence[AskedReadout]) -> dict[str, Any]:
        """A call's body."""
        ...

    def answered(self, reply: dict[str, Any], asked: Sequence[AskedReadout], service: str) -> Answered:
        """What a reply says.

        Args:
            reply: Its JSON object.
            asked: The readouts that were asked, in the order of :meth:`body`.
            service: For messages.

        Raises:
            BackendError: It is no answer to them; says where it differs.
        """
        ...


def member(value: Any, name: str, kind: type | tuple[type, ...], service: str) -> Any:
    """A member of an object in a reply.

    Raises:
        BackendError: There is none of this kind.
    """
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise BackendError(
            f"{service} answered without {name!r}, or with another kind of value there: {str(value)[:100]}"
        )
    return found


def count(value: Any, name: str, service: str) -> int:
    """A count of tokens in a reply.

    Raises:
        BackendError: It is no count.
    """
    found: int = member(value, name, int, service)
    if found < 0:
        raise BackendError(f"{service} answered a count of {found} {name}")
    return found


def label_mass(answer: dict[str, Any], service: str) -> float | None:
    """The share of the probability that the labels got, where an answer says it.

    Raises:
        BackendError: It is no share.
    """
    found = answer.get("x_label_mass")
    if found is None:
        return None
    if type(found) not in (int, float) or not 0 <= found <= 1 + 1e-6:
        raise BackendError(f"{service} answered {str(found)[:40]!r} as x_label_mass, which is a share from 0 to 1")
    return min(1.0, float(found))
