"""From JSON to questions and from answers to JSON, strictly, by the plugins' own classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson

from openjev_core.errors import Loc, PluginError, RequestError
from openjev_core.json_document import SURROGATE
from openjev_core.plugins.problems import mismatch
from openjev_core.plugins.registry import Registry
from openjev_core.plugins.strict import strict_converter, structured
from openjev_core.question import QuestionType


class QuestionConverter:
    """Structures questions and unstructures answers for the types of one registry.

    Args:
        registry: The types.

    Attributes:
        types: Wire name to question type.
    """

    def __init__(self, registry: Registry) -> None:
        self.types = dict(registry.types)
        self._failed = {entry.name for entry in registry.failures}
        self._converter = strict_converter()

    def question(self, data: Any) -> tuple[QuestionType[Any, Any], Any]:
        """Structure one question of a request.

        Args:
            data: The JSON value, ``type`` included.

        Returns:
            Its question type, and an instance of that type's question class.

        Raises:
            RequestError: With paths inside the question.
            PluginError: The class raised something that is no complaint about a value.
        """
        if not isinstance(data, dict):
            raise mismatch("an object with a type", data)
        if "type" not in data:
            raise RequestError.at(("type",), f"missing; installed question types: {self._installed()}", "missing")
        name = data["type"]
        if not isinstance(name, str):
            raise mismatch("a string", name).under("type")
        question_type = self.types.get(name)
        if question_type is None:
            msg = f"unknown question type {name[:80]!r}; installed: {self._installed()}"
            if name in self._failed:
                msg = f"question type {name!r} did not load, the log of the start says why; served: {self._installed()}"
            raise RequestError.at(("type",), msg, "unknown_type")
        fields = {key: value for key, value in data.items() if key != "type"}
        try:
            return question_type, structured(self._converter, fields, question_type.question)
        except RequestError:
            raise
        except Exception as error:
            raise PluginError(name, f"its question class raised {type(error).__name__}") from error

    def wire_question(self, question_type: QuestionType[Any, Any], question: Any) -> dict[str, Any]:
        """A question as its JSON object, ``type`` first: what a client would send."""
        return {"type": question_type.name, **self._converter.unstructure(question, question_type.question)}

    def answer(self, question_type: QuestionType[Any, Any], answer: Any) -> dict[str, Any]:
        """An answer as its JSON object, ``type`` first.

        Raises:
            PluginError: The answer is of another class, or holds something that JSON cannot.
        """
        if not isinstance(answer, question_type.answer):
            rule = f"reduce returned a {type(answer).__name__}, not a {question_type.answer.__name__}"
            raise PluginError(question_type.name, rule)
        try:
            fields = self._converter.unstructure(answer, question_type.answer)
            if (plain := plain_json(fields)) is not None:
                return {"type": question_type.name, **plain}
            fault = json_fault(fields)
        except Exception as error:
            raise PluginError(question_type.name, f"its answer cannot be written: {type(error).__name__}") from error
        if fault is not None:
            raise PluginError(question_type.name, f"its answer holds {fault}")
        return {"type": question_type.name, **fields}

    def _installed(self) -> str:
        return ", ".join(sorted(self.types)) or "none"


def plain_json(value: Any) -> Any:
    """``value`` as finite JSON of Python's own types; ``None`` where only a closer look tells whether it is.

    A null may be a number that is not finite. Every answer is written and read once, which takes a fifth of the time
    of going through it.
    """
    try:
        written = orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError:  # no JSON, a lone surrogate, or an integer of more than 64 bits
        return None
    return None if b"null" in written else orjson.loads(written)


def json_fault(value: Any, loc: Loc = ()) -> str | None:  # noqa: PLR0911 - one return per kind of JSON value
    """What in ``value`` is no finite JSON, with its path; ``None`` when all of it is."""
    if isinstance(value, float):
        return None if math.isfinite(value) else f"a number that is not finite at {place(loc)}"
    if isinstance(value, str):
        return f"a lone surrogate, which is no character, at {place(loc)}" if SURROGATE.search(value) else None
    if value is None or isinstance(value, (bool, int)):
        return None
    if isinstance(value, Mapping):
        for key, child in value.items():
            if not isinstance(key, str) or SURROGATE.search(key):
                return f"a key that is no string of characters at {place(loc)}"
            if (fault := json_fault(child, (*loc, key))) is not None:
                return fault
        return None
    if isinstance(value, (list, tuple)):
        faults = (json_fault(child, (*loc, index)) for index, child in enumerate(value))
        return next((fault for fault in faults if fault is not None), None)
    return f"a {type(value).__name__}, which is no JSON, at {place(loc)}"


def place(loc: Loc) -> str:
    """A path as it is written in messages."""
    return ".".join(str(part) for part in loc)
