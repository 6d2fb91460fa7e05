"""The shape of a question: how labels and answers are read, for any question type.

Nothing here knows Noul, Choice or Score. A type's own reducer is called with all the probability on one option. The
answer that it returns shows what a label for that option looks like, and where an answer holds the option's
probability.
"""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Literal

from attrs import frozen

from openjev_core.asking import Asking
from openjev_core.datasets.places import listed
from openjev_core.datasets.targets import MOST_READOUTS, TargetShape
from openjev_core.errors import PluginError, RequestError
from openjev_core.plugins.forms import fields_of
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.question import Distribution, QuestionType, Readout

Kind = Literal["binary", "ordinal", "nominal", "joint"]
"""``binary``: the answer is the probability of one of two outcomes. ``ordinal``: it is a place on a scale. ``nominal``:
it is one of the options. ``joint``: it comes from several readouts together."""

MISSING = frozenset({"nan", "null", "none", "n/a", "na", "?", "-"})
"""What programs write for a missing label."""

MOST_COMBINATIONS = 4096
"""Upper bound on the combinations of options over a question's readouts: each is tried, to find the one that a label
means."""


@frozen(kw_only=True)
class Shape:
    """How to read the labels and answers of one question.

    Attributes:
        type: The question type's name.
        kind: The kind of its answer.
        headline: The answer's field that a label is compared with.
        readouts: The question's readouts.
        outcomes: Every combination of options, as the option's position in each readout.
        answers: The answer of each outcome, were it certain.
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
        """The outcome whose probability a binary question's answer is; ``None`` for other kinds."""
        if self.kind != "binary":
            return None
        return next(i for i, certain in enumerate(self.answers) if certain[self.headline] == 1)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each outcome."""
        return tuple(_written(self._name(index)) for index in range(self.options))

    def outcome_of(self, label: Any) -> int:
        """The outcome that a label means: an answer's value, an option's key, or either one's text.

        Raises:
            RequestError: The label means no outcome, or more than one.
        """
        for reading in (_same, _same_text):
            found = [i for i in range(self.options) if any(reading(label, value) for value in self._accepted(i))]
            if len(found) == 1:
                return found[0]
            if found:
                names = listed(ascii(self.names[i]) for i in found)
                raise RequestError.at((), f"the label {label!r:.80} fits more than one outcome: {names}")
        # Of a label that looks like an option, escapes show what differs.
        shown = ascii(label) if isinstance(label, str) and not label.isprintable() else repr(label)
        hint = "; leave the cell empty where there is no label" if _folded(str(label)) in MISSING else ""
        if not isinstance(label, str) and any(_same_text(str(label), name) for name in self.names):
            hint = f'; write the name of an option as a text: "{label}"'
        msg = f"the label {shown:.80} fits no option; accepted: {listed(self.names)}{hint}"
        raise RequestError.at((), msg)

    def predicted(self, answer: Mapping[str, Any], label: int | None = None) -> int | None:
        """The outcome that an answer stands for; ``None`` when it stands for none.

        Args:
            answer: As on the wire.
            label: The right outcome. Where several outcomes have one answer, such as two reasons to abstain, this one
                is taken.
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
        """The probability of each outcome; ``None`` when the answer does not hold them."""
        if self.kind == "binary":
            yes = answer.get(self.headline)
            if not isinstance(yes, (int, float)) or isinstance(yes, bool):
                return None
            return [yes if certain[self.headline] == 1 else 1 - yes for certain in self.answers]
        given = None if self.kind == "joint" else answer.get("probabilities")
        keys = [_certain_key(certain) for certain in self.answers]
        if not isinstance(given, Mapping) or len(set(keys)) != len(keys) or not all(key in given for key in keys):
            return None
        return [float(given[key]) for key in keys]

    def positions(self, outcome: int, readouts: Sequence[Readout]) -> Sequence[int | None]:  # noqa: ARG002 - a shape of other types looks at them
        """The position of the right option of each readout that was read."""
        return self.outcomes[outcome]

    def labelled(self, outcome: int) -> int:  # noqa: ARG002 - as above
        """How many readouts that are read an outcome says the right option of."""
        return sum(len(readout.options) > 1 for readout in self.readouts)

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


def shape_of(question: Any, converter: QuestionConverter) -> Shape | TargetShape:
    """Find out how to read a question's labels and answers.

    A type's ``target`` says what a label means, where it has one. The outcomes of other types are listed, where that
    can be done; where not, the question can be asked but takes no label.

    Args:
        question: As on the wire.
        converter: Structures it by the installed question types.

    Raises:
        RequestError: The question is not valid, with paths inside it.
        PluginError: The question's type broke its contract.
    """
    question_type, structured = converter.question(question)
    asking = Asking(question_type, structured)
    with closing(asking):
        readouts = list(islice(asking.pull(), MOST_READOUTS))
    count = math.prod(len(readout.options) for readout in readouts)
    if question_type.target is not None or asking.waits or (len(readouts) > 1 and count > MOST_COMBINATIONS):
        return TargetShape(
            question_type, structured, headline_in(question_type), _no_label(question_type, asking, count)
        )
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


def headline_in(question_type: QuestionType[Any, Any]) -> str:
    """The field of a type's answers that says what was answered."""
    return headline_of(question_type.name, {field.name: None for field in fields_of(question_type.answer)})


def _no_label(question_type: QuestionType[Any, Any], asking: Asking, count: int) -> str:
    """Why a question whose outcomes are not listed takes no label, where its type has no ``target``."""
    if asking.waits:
        found = f"what a {question_type.name} question asks depends on what is read"
    else:
        found = (
            f"a {question_type.name} question with {asking.readouts} readouts has {count} possible answers, and up to "
            f"{MOST_COMBINATIONS} are listed"
        )
    return f"{found}, so a label says nothing unless the type has a `target`; ask in parts, or add one to the type"


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
    return answer_of(question_type, question, distributions, converter)


def answer_of(
    question_type: QuestionType[Any, Any],
    question: Any,
    distributions: Sequence[Distribution],
    converter: QuestionConverter,
) -> Mapping[str, Any]:
    """What a type answers to a question with these distributions, as JSON.

    Raises:
        PluginError: The reducer broke its contract.
    """
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
    given = answer.get("probabilities")
    if not isinstance(given, Mapping):
        return None
    certain = [key for key, value in given.items() if value == 1]
    return certain[0] if len(certain) == 1 else None


def _same(label: Any, value: Any) -> bool:
    """Equal as JSON: ``true`` is not ``1``, and ``1`` is ``1.0``."""
    return isinstance(label, bool) == isinstance(value, bool) and bool(label == value)


def _same_text(label: Any, value: Any) -> bool:
    """Equal as a spreadsheet writes them: ``true`` and ``TRUE``, ``2`` and ``2.0``, an accent written in two ways."""
    return isinstance(label, str) and _folded(label) in {_folded(str(value)), _folded(_written(value))}


def _folded(text: str) -> str:
    """A text without outer white space, case and the two ways to write an accent in Unicode."""
    return unicodedata.normalize("NFC", text.strip()).lower()


def _written(value: Any) -> str:
    """A value for people: whole numbers without a fraction."""
    return f"{value:g}" if isinstance(value, float) else str(value).strip()
