"""Whether an answer is one to the question that was asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from openjev_core.question import QuestionType
from openjev_core.smoke.expectations import TOLERANCE, distribution, expect, number_between, object_with

Question = Mapping[str, Any]


def check_answer(question: Question, answer: Any) -> None:
    """Raise ``Mismatch`` unless ``answer`` fits ``question``; a type that this module does not know passes."""
    expect(isinstance(answer, dict), "an answer to be an object", answer)
    expect(answer.get("type") == question["type"], f"an answer of type {question['type']}", answer.get("type"))
    if (check := BY_TYPE.get(question["type"])) is not None:
        check(question, answer)


def check_noul(_question: Question, answer: Any) -> None:
    """P(yes), and no confidence."""
    fields = object_with(answer, "a noul's answer", required=("type", "noul"))
    number_between(fields["noul"], "noul", 0, 1)


def check_choice(question: Question, answer: Any) -> None:
    """A distribution over the names, and its mode."""
    required = ("type", "choice", "probabilities", "confidence")
    fields = object_with(answer, "a choice's answer", required=required)
    probabilities = distribution(fields["probabilities"], "probabilities", list(question["criteria"]))
    number_between(fields["confidence"], "confidence", 0, 1)
    best = max(probabilities.values())
    most_probable = [name for name, p in probabilities.items() if p == best]
    expect(fields["choice"] in most_probable, f"choice to be the most probable, {most_probable}", fields["choice"])


def check_score(question: Question, answer: Any) -> None:
    """A distribution over the levels, and its expectation."""
    required = ("type", "score", "legend", "probabilities", "confidence")
    fields = object_with(answer, "a score's answer", required=required)
    levels = question["criteria"]
    names = [str(level) for level in range(len(levels))]
    expect(fields["legend"] == dict(zip(names, levels, strict=True)), "legend to echo the levels", fields["legend"])
    probabilities = distribution(fields["probabilities"], "probabilities", names)
    number_between(fields["confidence"], "confidence", 0, 1)
    score = number_between(fields["score"], "score", 0, len(levels) - 1)
    mean = math.fsum(int(name) * p for name, p in probabilities.items())
    expect(abs(score - mean) <= TOLERANCE * len(levels), f"score to be the expectation of its levels, {mean}", score)


BY_TYPE: Mapping[str, Callable[[Question, Any], None]] = {
    "noul": check_noul,
    "choice": check_choice,
    "score": check_score,
}


def check_against_class(question_type: QuestionType[Any, Any], answer: Any) -> None:
    """Raise ``Mismatch`` unless the answer has the fields of the type's own answer class."""
    names = ("type", *(field.name for field in attrs.fields(question_type.answer)))
    object_with(answer, f"an answer of type {question_type.name}", required=names)
