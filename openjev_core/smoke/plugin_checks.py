"""One check for each installed question type that ships examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openjev_core.plugins.registry import Registry
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.question import QuestionType
from openjev_core.smoke.answers import Question, check_against_class
from openjev_core.smoke.checks import STATE, Check
from openjev_core.smoke.examination import Examination
from openjev_core.smoke.expectations import expect
from openjev_core.smoke.verdicts import Mismatch


def plugin_checks(registry: Registry) -> tuple[Check, ...]:
    """The checks of the registry's types: each asks its examples, in one request where the limits allow it."""
    converter = QuestionConverter(registry)
    checks = []
    for name, question_type in registry.types.items():
        if question_type.examples:
            examples = [converter.wire_question(question_type, example) for example in question_type.examples]
            checks.append(Check(f"plugin: {name}", examples_check(question_type, examples)))
    return tuple(checks)


def examples_check(question_type: QuestionType[Any, Any], examples: Sequence[Question]) -> Any:
    """Ask a type's examples."""

    async def run(examination: Examination) -> None:
        step = await examination.limit("max_questions")
        for first in range(0, len(examples), step):
            asked = {f"example {i}": q for i, q in enumerate(examples[first : first + step], first + 1)}
            try:
                answers = await examination.evaluate(STATE, asked)
            except Mismatch as error:
                if b"unknown_type" in examination.calls[-1].body:
                    raise Mismatch(
                        f"the server has no question type {question_type.name!r}, which is installed here: install its "
                        "plugin there, or leave it out with OPENJEV_DISABLE_PLUGINS"
                    ) from error
                raise
            for answer in answers.values():
                check_against_class(question_type, answer)

    return run


async def other_types(examination: Examination, registry: Registry) -> None:
    """``/openapi.json`` names the question types; those that are not installed here are noted: nothing asks them."""
    schema = await examination.get("/openapi.json")
    try:
        mapping = schema["components"]["schemas"]["Question"]["discriminator"]["mapping"]
        served = set(mapping)
    except (KeyError, TypeError):
        raise Mismatch("expected the schema to name the question types under Question, found none") from None
    builtin = {"noul", "choice", "score"}
    expect(builtin <= served, "the schema to name noul, choice and score", sorted(served))
    if unknown := sorted(served - set(registry.types) - builtin):
        examination.notes.append(f"not checked, since they are not installed here: {', '.join(unknown)}")
    without = sorted(name for name, question_type in registry.types.items() if not question_type.examples)
    if without:
        examination.notes.append(f"not checked, since they ship no examples: {', '.join(without)}")
    for entry in registry.failures:
        examination.notes.append(f"not checked, since its plugin does not load here: {entry.name} ({entry.cause})")
