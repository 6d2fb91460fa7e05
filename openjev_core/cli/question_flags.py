r"""Questions written as flags.

::

    --noul   "Is it urgent?"
    --choice "Which team? = billing: Payments and refunds | technical: Bugs | sales"
    --score  "How angry? = calm < annoyed < furious"

Separators stand between spaces. The first `` = `` ends the question, `` | `` and `` < `` separate the options, and the
first ``: `` in an option, with a space after it alone, separates its name from its description. A
backslash before one of these characters makes it plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from openjev_core.errors import Problem, RequestError
from openjev_core.json_document import SURROGATE

# A backslash before a separator parts it from its space, so that it matches none of these.
QUESTION_END = re.compile(r"(?:^|\s)=(?=\s|$)")
CHOICE_PARTS = re.compile(r"(?:^|\s)\|(?=\s|$)")
SCORE_PARTS = re.compile(r"(?:^|\s)<(?=\s|$)")
NAME_END = re.compile(r"(?<!\\):(?=\s|$)")
ESCAPED = re.compile(r"\\([=|<:\\])")

CHOICE_FORM = "'QUESTION = NAME: DESCRIPTION | NAME | ...', two options or more, spaces around = and |"
SCORE_FORM = "'QUESTION = LOWEST < ... < HIGHEST', two levels or more, spaces around = and <"


def questions_of(*, nouls: Sequence[str], choices: Sequence[str], scores: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The questions of a request, under ids made for them: ``noul_1``, ``noul_2``, ``choice_1``, ...

    Raises:
        RequestError: A flag is not of its form; every one that is not is named.
    """
    kinds: Mapping[str, tuple[Sequence[str], Callable[[str], dict[str, Any]]]] = {
        "noul": (nouls, noul_of),
        "choice": (choices, choice_of),
        "score": (scores, score_of),
    }
    questions: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    for kind, (texts, parse) in kinds.items():
        for number, text in enumerate(texts, start=1):
            try:
                questions[f"{kind}_{number}"] = parse(legible(text))
            except ValueError as error:
                problems.append(Problem((f"--{kind} {text!r}",), str(error)))
    if problems:
        raise RequestError(problems)
    return questions


def legible(text: str) -> str:
    """``text``, as it stands.

    Raises:
        ValueError: It holds a surrogate, which is how Python spells an argument's bytes that are no UTF-8.
    """
    if SURROGATE.search(text):
        raise ValueError("the text is not valid UTF-8")
    return text


def noul_of(text: str) -> dict[str, Any]:
    """A yes/no question: the whole text.

    Raises:
        ValueError: It is empty.
    """
    if not text.strip():
        raise ValueError("expected a question or a statement, found none")
    return {"type": "noul", "instructions": text.strip()}


def choice_of(text: str) -> dict[str, Any]:
    """A choice between named options.

    Raises:
        ValueError: It is not of the form.
    """
    question, options = halves(text, CHOICE_PARTS, CHOICE_FORM)
    criteria: dict[str, str | None] = {}
    for option in options:
        name, described, description = option, "", ""
        if found := NAME_END.search(option):
            name, described, description = option[: found.start()], ":", option[found.end() :]
        name, description = plain(name), plain(description)
        if not name or (described and not description):
            raise ValueError(f"expected {CHOICE_FORM}; found an option without a name or description: {option!r}")
        if name in criteria:
            raise ValueError(f"two options have the name {name!r}; names must be unique")
        criteria[name] = description or None
    return {"type": "choice", "instructions": question, "criteria": criteria}


def score_of(text: str) -> dict[str, Any]:
    """A place on a rubric, lowest level first.

    Raises:
        ValueError: It is not of the form.
    """
    question, levels = halves(text, SCORE_PARTS, SCORE_FORM)
    return {"type": "score", "instructions": question, "criteria": [plain(level) for level in levels]}


def halves(text: str, parts: re.Pattern[str], form: str) -> tuple[str, list[str]]:
    """The question and its options, the options' backslashes still in them."""
    found = QUESTION_END.search(text)
    if found is None:
        raise ValueError(f"expected {form}; found no ' = '")
    question = plain(text[: found.start()])
    options = [option.strip() for option in parts.split(text[found.end() :])]
    if not question:
        raise ValueError(f"expected {form}; found no question before the ' = '")
    if len(options) < 2:  # noqa: PLR2004 - one option is no question
        raise ValueError(f"expected {form}; found one option: {options[0]!r}")
    if not all(options):
        raise ValueError(f"expected {form}; found an empty option")
    return question, options


def plain(text: str) -> str:
    """``text`` without outer white space and with its escaped characters as themselves."""
    return ESCAPED.sub(r"\1", text.strip())
