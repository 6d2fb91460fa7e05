"""From JSON to questions and from answers to JSON, strictly, by the plugins' own classes."""

from __future__ import annotations

from typing import Any

import attrs
import orjson

from openjev_core.errors import PluginError, RequestError
from openjev_core.plugins.forms import Field, fields_of, given_fields
from openjev_core.plugins.problems import mismatch
from openjev_core.plugins.registry import Registry
from openjev_core.plugins.strict import Structurer
from openjev_core.plugins.writing import as_json, json_fault
from openjev_core.question import QuestionType


class QuestionConverter:
    """Structures questions and writes answers for the types of one registry.

    Args:
        registry: The types.

    Attributes:
        types: Wire name to question type.
    """

    def __init__(self, registry: Registry) -> None:
        self.types = dict(registry.types)
        self._failed = {entry.name for entry in registry.failures}
        self._structurer = Structurer()
        self._checker = Structurer(make=False)
        self._fields: dict[type, tuple[Field, ...]] = {}

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
            return question_type, self._structurer.structure(fields, question_type.question)
        except RequestError:
            raise
        except Exception as error:
            raise PluginError(name, f"its question class raised {type(error).__name__}") from error

    def wire_question(self, question_type: QuestionType[Any, Any], question: Any) -> dict[str, Any]:
        """A question as its JSON object, ``type`` first: what a client would send."""
        return {"type": question_type.name, **as_json(question, given_fields)}

    def answer(self, question_type: QuestionType[Any, Any], answer: Any) -> dict[str, Any]:
        """An answer as its JSON object, ``type`` first.

        Raises:
            PluginError: The answer is of another class, does not hold what that class says, or holds something that
                JSON cannot.
        """
        name, expected = question_type.name, question_type.answer
        if not isinstance(answer, expected):
            raise PluginError(name, f"reduce returned a {type(answer).__name__}, not a {expected.__name__}")
        try:
            fault, plain = None, self._plain(answer)
            if plain is None:
                plain = as_json(answer, fields_of)
                fault = json_fault(plain)
            if fault is None:
                self._checker.structure(plain, expected)
        except RequestError as error:
            raise PluginError(name, f"its answer is not what {expected.__name__} says: {error}") from None
        except Exception as error:
            raise PluginError(name, f"its answer cannot be written: {type(error).__name__}") from error
        if fault is not None:
            raise PluginError(name, f"its answer holds {fault}")
        return {"type": name, **plain}

    def _plain(self, answer: Any) -> Any:
        """An answer as finite JSON of Python's own types; ``None`` where only a closer look tells whether it is.

        A null may be a number that is not finite. Every answer is written and read once, which takes a fifth of the
        time of going through it.
        """
        try:
            written = orjson.dumps(answer, self._object, orjson.OPT_PASSTHROUGH_DATACLASS)
        except TypeError:  # no JSON, a lone surrogate, or an integer of more than 64 bits
            return None
        return None if b"null" in written else orjson.loads(written)

    def _object(self, value: Any) -> dict[str, Any]:
        cls = type(value)
        if (fields := self._fields.get(cls)) is None:
            if not attrs.has(cls):
                raise TypeError
            fields = self._fields[cls] = fields_of(cls)
        return {field.name: getattr(value, field.attribute.name) for field in fields}

    def _installed(self) -> str:
        return ", ".join(sorted(self.types)) or "none"
