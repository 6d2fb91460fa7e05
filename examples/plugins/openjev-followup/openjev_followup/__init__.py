"""Followup: a question, and further ones that are asked only when its answer calls for them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from openjev_core import (
    Distribution,
    InvalidQuestion,
    Option,
    QuestionConverter,
    QuestionType,
    Readout,
    Rounds,
    hookimpl,
    load_registry,
    load_settings,
    registry_of,
)
from openjev_followup.parts import Part, ask, own, part_of, undecided

DISTRIBUTION = "openjev-followup"


@frozen(kw_only=True)
class When:
    """What in the first answer calls for a follow-up; all that is given must hold.

    Attributes:
        path: Where in the answer to look, outermost first: ["noul"], or ["probabilities", "billing"].
        at_least: The number there is this or more.
        at_most: The number there is this or less.
        one_of: The value there is one of these.
    """

    path: list[str]
    at_least: float | None = None
    at_most: float | None = None
    one_of: list[Any] | None = None

    def holds(self, answer: Mapping[str, Any]) -> bool:
        """Whether an answer calls for the follow-up. One without that place does not."""
        try:
            value = value_at(answer, self.path)
        except KeyError:
            return False
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return (
            (self.at_least is None or (is_number and value >= self.at_least))
            and (self.at_most is None or (is_number and value <= self.at_most))
            and (self.one_of is None or value in self.one_of)
        )


@frozen(kw_only=True)
class Further:
    """A follow-up.

    Attributes:
        when: What calls for it.
        question: A question of any installed type, with its ``type``.
    """

    when: When
    question: dict[str, Any]


@frozen(kw_only=True)
class Followup:
    """A question with follow-ups.

    Attributes:
        question: The question that is always asked: one of any installed type, with its ``type``.
        followups: Further questions by name, each with what calls for it.
    """

    question: dict[str, Any]
    followups: dict[str, Further]


@frozen(kw_only=True)
class FollowupAnswer:
    """The answer to a question with follow-ups.

    Attributes:
        answer: The answer to the question that is always asked, with its ``type``.
        followups: The answers to the follow-ups by name; null for one that was not called for.
    """

    answer: dict[str, Any]
    followups: dict[str, dict[str, Any] | None]


def value_at(answer: Mapping[str, Any], path: Sequence[str]) -> Any:
    """The value at a path; ``KeyError`` where there is none."""
    value: Any = answer
    for name in path:
        value = (value if isinstance(value, Mapping) else {})[name]
    return value


def followup(installed: Iterable[QuestionType[Any, Any]]) -> QuestionType[Followup, FollowupAnswer]:
    """The question type, over these types. It may also stand inside itself."""
    types = {one.name: one for one in installed}

    def readouts(question: Followup) -> Rounds:
        main, further = parts_of(question)
        try:
            # All of them, before anything is read: what is wrong with a follow-up must not depend on an answer.
            first = {part.loc: part.next_round() for part in (main, *further.values())}
            check_conditions(question, main.answer(reads, undecided(main)))
            yield from ask([main], [first[main.loc]])
            answer = main.answer(reads, main.found)
            called = [part for name, part in further.items() if question.followups[name].when.holds(answer)]
            yield from ask(called, [first[part.loc] for part in called])
        finally:
            for part in (main, *further.values()):
                part.asking.close()

    def reduce(question: Followup, distributions: Sequence[Distribution]) -> FollowupAnswer:
        main, further = parts_of(question)
        found: dict[tuple[str, ...], list[Distribution]] = {}
        for distribution in distributions:
            found.setdefault(distribution.readout.key.part, []).append(own(distribution))
        answers = {
            loc: part.answer(reads, found[loc]) for part in (main, *further.values()) if (loc := part.loc) in found
        }
        return FollowupAnswer(
            answer=answers[main.loc], followups={name: answers.get(part.loc) for name, part in further.items()}
        )

    def parts_of(question: Followup) -> tuple[Part, dict[str, Part]]:
        further = {
            name: part_of(reads, ("followups", name, "question"), one.question)
            for name, one in question.followups.items()
        }
        return part_of(reads, ("question",), question.question), further

    def suffix(readout: Readout, labelled: Sequence[tuple[str, Option]]) -> str:
        within = readout.key
        return types[within.type].suffix(evolve(readout, key=within.key), labelled)

    kind = QuestionType(
        name="followup",
        summary="A question, and further ones that are asked only when its answer calls for them.",
        api=1,
        question=Followup,
        answer=FollowupAnswer,
        readouts=readouts,
        reduce=reduce,
        suffix=suffix,
        labels=tuple(dict.fromkeys(label for one in types.values() for label in one.labels)),
        examples=(EXAMPLE,),
    )
    types[kind.name] = kind
    reads = QuestionConverter(registry_of(*types.values()))
    return kind


def check_conditions(question: Followup, answer: Mapping[str, Any]) -> None:
    """Refuse conditions that no answer can meet.

    Args:
        question: Whose conditions.
        answer: An answer to its first question.

    Raises:
        InvalidQuestion: One asks for nothing, for a place that an answer does not have, or for a number where none is.
    """
    for name, one in question.followups.items():
        when, loc = one.when, ("followups", name, "when")
        if when.at_least is None and when.at_most is None and when.one_of is None:
            raise InvalidQuestion("says nothing; give at_least, at_most or one_of", loc)
        try:
            value = value_at(answer, when.path)
        except KeyError as error:
            msg = f"a {answer['type']} answer has no {error.args[0]!r} there; it has: {', '.join(answer)}"
            raise InvalidQuestion(msg, (*loc, "path")) from error
        wants_number = when.at_least is not None or when.at_most is not None
        if wants_number and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise InvalidQuestion("at_least and at_most compare numbers, and this is none; use one_of", (*loc, "path"))


EXAMPLE = Followup(
    question={"type": "noul", "instructions": "Is the message a complaint?"},
    followups={
        "about": Further(
            when=When(path=["noul"], at_least=0.5),
            question={
                "type": "choice",
                "instructions": "What is the complaint about?",
                "criteria": {"price": "What it costs", "quality": "What it is like", "delivery": "When it comes"},
            },
        ),
        "anger": Further(
            when=When(path=["noul"], at_least=0.5),
            question={
                "type": "score",
                "instructions": "How angry is the writer?",
                "criteria": ["calm", "annoyed", "furious"],
            },
        ),
    },
)


@hookimpl
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:
    """Register Followup, over every type that is installed beside it and not disabled."""
    disabled = load_settings(os.environ).settings.disable_plugins
    return [followup(load_registry([*disabled, DISTRIBUTION]).types.values())]
