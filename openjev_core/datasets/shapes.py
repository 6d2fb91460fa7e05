"""What the answers of a question look like when they are certain: how labels and answers are read for any type.

Nothing here knows Noul, Choice or Score. A question type's own reducer is asked what it would answer if one option
had all the probability; so a label is whatever the answer would be, and what an answer says about each option is read
from where the certain answers say it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import frozen

from openjev_core.datasets.places import listed
from openjev_core.engine.plan import check_readout, pull_readouts
from openjev_core.errors import PluginError, RequestError
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.question import Distribution, QuestionType, Readout

Kind = Literal["binary", "ordinal", "nominal", "joint"]
"""``binary``: the answer is P(the second outcome). ``ordinal``: it is a place on a scale. ``nominal``: it is one of the
options. ``joint``: it comes from several readouts together."""

MOST_COMBINATIONS = 4096
"""Combinations of options over a question's readouts that are tried out to tell which one a label means."""


@frozen(kw_only=True)
class Shape:
    """How to read the labels and answers of one question.

    Attributes:
        type: The question type's name.
        kind: What kind of answer it is.
        headline: The answer's field that a label is compared with.
        readouts: The question's readouts.
        outcomes: One per combination of options that can be certain: the option's position in each readout.
        answers: The certain answer of each outcome.
    """

    type: str
    kind: Kind
    headline: str
    readouts: tuple[Readout, ...]
    outcomes: tuple[tuple[int, ...], ...]
    answers: tuple[Mapping[str, Any], ...]

    @property
    def options(self) -> int:
        """How many outcomes there are."""
        return len(self.outcomes)

    @property
    def positive(self) -> int | None:
        """Of a binary question, the outcome whose probability the answer tells; ``None`` of others."""
        if self.kind != "binary":
            return None
        return next(i for i, certain in enumerate(self.answers) if certain[self.headline] == 1)

    @property
    def names(self) -> tuple[str, ...]:
        """What to call each outcome."""
        return tuple(_written(self._name(index)) for index in range(self.options))

    def outcome_of(self, label: Any) -> int:
        """The outcome that a label means: an answer's value, an option's key, or either one's text.

        Raises:
            RequestError: It means none, or more than one.
        """
        for reading in (_same, _same_text):
            found = [i for i in range(self.options) if any(reading(label, value) for value in self._accepted(i))]
            if len(found) == 1:
                return found[0]
            if found:
                names = listed(self.names[i] for i in found)
                raise RequestError.at((), f"the label {label!r:.80} fits more than one outcome: {names}")
        raise RequestError.at((), f"the label {label!r:.80} fits no option; accepted: {listed(self.names)}")

    def predicted(self, answer: Mapping[str, Any], label: int | None = None) -> int | None:
        """The outcome that an answer decides for; ``None`` when it decides for none of them.

        Args:
            answer: As on the wire.
            label: The outcome that is right. Of several outcomes with one answer, such as two reasons to abstain, it
                is taken to be this one.
        """
        headline = answer.get(self.headline)
        if self.kind in ("binary", "ordinal"):
            probabilities = self.probabilities(answer)
            return None if probabilities is None else probabilities.index(max(probabilities))
        fitting = [i for i, certain in enumerate(self.answers) if _same(headline, certain[self.headline])]
        if label in fitting:
            return label
        return fitting[0] if fitting else None

    def probabilities(self, answer: Mapping[str, Any]) -> list[float] | None:
        """The probability of each outcome; ``None`` when the answer does not tell them."""
        if self.kind == "binary":
            yes = answer.get(self.headline)
            if not isinstance(yes, (int, float)) or isinstance(yes, bool):
                return None
            return [yes if certain[self.headline] == 1 else 1 - yes for certain in self.answers]
        told = None if self.kind == "joint" else answer.get("probabilities")
        keys = [_certain_key(certain) for certain in self.answers]
        if not isinstance(told, Mapping) or len(set(keys)) != len(keys) or not all(key in told for key in keys):
            return None
        return [float(told[key]) for key in keys]

    def _name(self, index: int) -> Any:
        said = self.answers[index][self.headline]
        alike = sum(answer[self.headline] == said for answer in self.answers)
        if self.kind == "binary" or (alike > 1 and len(self.readouts) == 1):
            return self.readouts[0].options[self.outcomes[index][0]].key
        return said

    def _accepted(self, index: int) -> list[Any]:
        values = [self.answers[index][self.headline]]
        if len(self.readouts) == 1:
            values.append(self.readouts[0].options[self.outcomes[index][0]].key)
        if self.kind == "binary":
            values.append(values[0] == 1)
        return values


def shape_of(question: Any, converter: QuestionConverter) -> Shape:
    """Find out how to read a question's labels and answers.

    Args:
        question: As on the wire.
        converter: Structures it by the installed question types.

    Raises:
        RequestError: It is no valid question, with paths inside it; or it has too many outcomes to tell them apart.
        PluginError: Its type broke its contract.
    """
    question_type, structured = converter.question(question)
    readouts = []
    for readout in pull_readouts(question_type, structured):
        check_readout(question_type, readout, max_answers=None)
        readouts.append(readout)
    count = math.prod(len(readout.options) for readout in readouts)
    if len(readouts) > 1 and count > MOST_COMBINATIONS:
        msg = (
            f"a {question_type.name} question with {len(readouts)} readouts has {count} possible answers, and labels "
            f"are told apart among up to {MOST_COMBINATIONS}; ask in parts"
        )
        raise RequestError.at((), msg)
    outcomes = tuple(itertools.product(*(range(len(readout.options)) for readout in readouts)))
    answers = tuple(_certain_answer(question_type, structured, readouts, outcome, converter) for outcome in outcomes)
    headline = headline_of(question_type.name, answers[0])
    return Shape(
        type=question_type.name,
        kind=_kind(readouts, [answer[headline] for answer in answers]),
        headline=headline,
        readouts=tuple(readouts),
        outcomes=outcomes,
        answers=answers,
    )


def headline_of(type_name: str, answer: Mapping[str, Any]) -> str:
    """The field that says what was answered: the one named like the type, else the first."""
    fields = [name for name in answer if name != "type"]
    if not fields:
        raise PluginError(type_name, "its answer has no field to compare a label with")
    return type_name if type_name in fields else fields[0]


def _certain_answer(
    question_type: QuestionType[Any, Any],
    question: Any,
    readouts: Sequence[Readout],
    outcome: Sequence[int],
    converter: QuestionConverter,
) -> Mapping[str, Any]:
    distributions = [
        Distribution(readout, tuple(float(i == certain) for i in range(len(readout.options))), 1.0)
        for readout, certain in zip(readouts, outcome, strict=True)
    ]
    try:
        answer = question_type.reduce(question, distributions)
    except Exception as error:
        raise PluginError(question_type.name, f"reduce raised {type(error).__name__}") from error
    return converter.answer(question_type, answer)


def _kind(readouts: Sequence[Readout], headlines: Sequence[Any]) -> Kind:
    if len(readouts) > 1:
        return "joint"
    if all(type(value) in (int, float) for value in headlines):
        if sorted(headlines) == [0, 1] and not readouts[0].ordered:
            return "binary"
        if list(headlines) == sorted(set(headlines)):
            return "ordinal"
    return "nominal"


def _certain_key(answer: Mapping[str, Any]) -> str | None:
    told = answer.get("probabilities")
    if not isinstance(told, Mapping):
        return None
    certain = [key for key, value in told.items() if value == 1]
    return certain[0] if len(certain) == 1 else None


def _same(label: Any, value: Any) -> bool:
    """Equal as JSON: ``true`` is not ``1``, and ``1`` is ``1.0``."""
    return isinstance(label, bool) == isinstance(value, bool) and bool(label == value)


def _same_text(label: Any, value: Any) -> bool:
    """Equal as a spreadsheet would write them: ``true`` and ``TRUE`` are one, and so are ``2`` and ``2.0``."""
    if not isinstance(label, str):
        return False
    return label.strip().lower() in {str(value).strip().lower(), _written(value).lower()}


def _written(value: Any) -> str:
    """A value for people: whole numbers without a fraction."""
    return f"{value:g}" if isinstance(value, float) else str(value).strip()
