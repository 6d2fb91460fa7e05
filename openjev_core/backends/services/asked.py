"""One order of a readout, as a question of a service's own types: a noul, a choice or a score."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs
from attrs import field, frozen

from openjev_core.errors import BackendError
from openjev_core.json_document import compact
from openjev_core.orders import Order
from openjev_core.question import Option, QuestionType, Readout
from openjev_core.reader import Logprobs, PlannedReadout

Kind = Literal["noul", "choice", "score"]
OWN_KINDS: Mapping[str, Kind] = {"noul": "noul", "choice": "choice", "score": "score"}
"""Question types that the services know themselves."""

YES_NO = ("Yes", "No")
"""Own labels of a readout that is what a service calls a noul."""

SUM_TOLERANCE = 0.02
"""How far from 1 a service's probabilities may add up to: it may round them, 255 of them to four digits."""


@frozen
class AskedReadout:
    """A readout in one order, as a service is asked.

    Attributes:
        kind: The service's type.
        instructions: What is asked; ``None`` for the service's own general question.
        criteria: As ``/v1/systemone`` has them: of a choice the options by name, in the order shown; of a score the
            levels; of a noul ``true`` and ``false``, or ``None``.
        order: Which option is shown where.
        labels: A name of the place, or of the outcome, that each option stands under, in their given order.
        key: Digest of all this.
        size: Bytes of its JSON.
    """

    kind: Kind
    instructions: Any
    criteria: Any
    order: Order
    labels: tuple[str, ...]
    key: bytes = field(init=False, eq=False, repr=False)
    size: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        written = compact([self.kind, self.instructions, self.criteria, list(self.order)]).encode()
        object.__setattr__(self, "key", hashlib.blake2b(written, digest_size=16).digest())
        object.__setattr__(self, "size", len(written))

    @property
    def body(self) -> dict[str, Any]:
        """The question, as ``/v1/systemone`` takes it."""
        given = {"instructions": self.instructions, "criteria": self.criteria}
        return {"type": self.kind, **{name: value for name, value in given.items() if value is not None}}

    def logprobs(self, shown: Sequence[Any], service: str) -> Logprobs:
        """What was answered, in the options' given order.

        Args:
            shown: What the service gave as probabilities of the options, in the order shown.
            service: For messages.

        Raises:
            BackendError: They are no distribution over the options.
        """
        if len(shown) != len(self.order):
            raise BackendError(f"{service} answered {len(shown)} options where {len(self.order)} were asked")
        found = [0.0] * len(shown)
        for position, value in zip(self.order, shown, strict=True):
            if type(value) not in (int, float) or not 0 <= value <= 1:
                raise BackendError(f"{service} answered {str(value)[:40]!r} where a probability belongs")
            found[position] = float(value)
        if abs((total := math.fsum(found)) - 1) > SUM_TOLERANCE:
            raise BackendError(f"{service} answered probabilities that add up to {total:g}, not to 1")
        return tuple([math.log(p) if p > 0 else -math.inf for p in found])


@frozen
class ServiceReadout:
    """A readout, once per order: a :class:`openjev_core.reader.PreparedReadout`."""

    planned: PlannedReadout
    asked: tuple[AskedReadout, ...]

    @property
    def labels(self) -> Sequence[Sequence[str]]:
        """For each order, what each option stands under."""
        return [one.labels for one in self.asked]

    @property
    def keys(self) -> Sequence[bytes]:
        """For each order, a digest of what is asked."""
        return [one.key for one in self.asked]


@frozen(eq=False)
class ServiceQuestion:
    """A question's readouts: a :class:`openjev_core.reader.PreparedQuestion`. It holds for every state."""

    readouts: tuple[ServiceReadout, ...]


def asked_as(readout: Readout, order: Order, question_type: QuestionType[Any, Any], question: Any) -> AskedReadout:
    """A readout in one order, as a service is asked.

    Dedicated models are trained on their wire's own types, so a question of one of them that is shown as it was given
    travels as it came. Everything else travels as a choice among the options as shown; only a readout that is answered
    by Yes or No, in this order, is a noul. How a type writes its prompts is nothing to a service, which writes its own.

    Args:
        readout: What is read.
        order: Which option is shown where.
        question_type: Its type.
        question: The question that asks it; ``None`` where that is not known.
    """
    options = [readout.options[given] for given in order]
    labels = places(options, order)
    as_given = order == tuple(range(len(order)))
    if as_given and question is not None and (kind := OWN_KINDS.get(question_type.name)) is not None:
        plain = attrs.asdict(question)
        if set(plain) == {"instructions", "criteria"} and (
            kind == "noul" or len(plain["criteria"]) == len(readout.options)
        ):
            return AskedReadout(kind, plain["instructions"], own_criteria(plain["criteria"]), order, labels)
    instructions = readout.text or None
    if tuple(option.label for option in options) == YES_NO:
        outcomes = {"true": options[0].text, "false": options[1].text}
        return AskedReadout("noul", instructions, outcomes, order, labels)
    # A text may be empty where the label is all there is to read.
    criteria = {str(place): option.text or option.label or "" for place, option in enumerate(options, 1)}
    return AskedReadout("choice", instructions, criteria, order, labels)


def own_criteria(criteria: Any) -> Any:
    """A question's criteria, without the outcomes of a noul that it leaves open."""
    if isinstance(criteria, dict) and set(criteria) == {"true", "false"}:
        return {name: value for name, value in criteria.items() if value is not None} or None
    return criteria


def places(options: Sequence[Option], order: Order) -> tuple[str, ...]:
    """The label of each option, in their given order: its own one, or the number of its place."""
    labels = [""] * len(order)
    for place, (given, option) in enumerate(zip(order, options, strict=True), 1):
        labels[given] = option.label or str(place)
    return tuple(labels)
