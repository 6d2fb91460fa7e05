"""What a question type's functions get because they name it: the type's own settings, the prompt's fixed words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from attrs import evolve

from openjev_core.own_settings import own_settings
from openjev_core.question import (
    ENGLISH,
    NoSettings,
    PromptWords,
    QuestionType,
    names_parameter,
    standard_suffix,
)


def bound(
    question_type: QuestionType[Any, Any], texts: Mapping[str, str], words: PromptWords
) -> QuestionType[Any, Any]:
    """The type with its settings in force, and functions that get ``settings`` and ``words`` where they name them.

    Args:
        question_type: As a plugin gives it, or bound before.
        texts: The values of plugins' own settings that were given, by name.
        words: The prompt's fixed words.

    Raises:
        SettingsError: A value of its settings is not accepted.
    """
    own = None if question_type.settings is NoSettings else own_settings(question_type, texts)
    given = {"settings": own, "words": words}

    def with_given(function: Callable[..., Any]) -> Callable[..., Any]:
        if function is standard_suffix and words == ENGLISH:
            return function  # these are its own
        named = {name: value for name, value in given.items() if names_parameter(function, name)}
        return partial(function, **named) if named else function

    functions = {
        "readouts": with_given(question_type.readouts),
        "reduce": with_given(question_type.reduce),
        "suffix": with_given(question_type.suffix),
        "target": None if question_type.target is None else with_given(question_type.target),
    }
    if own is None and all(one is getattr(question_type, name) for name, one in functions.items()):
        return question_type  # it asks for nothing
    return cast("QuestionType[Any, Any]", evolve(cast("Any", question_type), own=own, **functions))
