"""From JSON to questions and from answers to JSON, strictly, by the plugins' own classes.

cattrs would coerce: ``1`` to ``"1"``, ``"false"`` to ``True``, a string to a tuple of letters. Here a JSON value either
is what the class says or is an error that names its path, what was expected and what was found.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Union, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
    StructureHandlerNotFoundError,
)

from openjev_core.errors import Loc, PluginError, Problem, RequestError
from openjev_core.plugins.registry import Registry
from openjev_core.question import QuestionType

JSON_NAMES: Mapping[type, str] = {
    str: "a string",
    dict: "an object",
    list: "an array",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    types.NoneType: "null",
}


def json_name(value: Any) -> str:
    """What a JSON value is, in JSON's words."""
    return JSON_NAMES.get(type(value), type(value).__name__)


def mismatch(expected: str, value: Any) -> RequestError:
    """The error of a value that is not of the expected kind."""
    return RequestError.at((), f"expected {expected}, found {json_name(value)}", "type_error")


class QuestionConverter:
    """Structures questions and unstructures answers for the types of one registry."""

    def __init__(self, registry: Registry) -> None:
        self._types = dict(registry.types)
        self._converter = strict_converter()

    def question(self, data: Any) -> tuple[QuestionType[Any, Any], Any]:
        """Structure one question of a request.

        Args:
            data: The JSON value, ``type`` included.

        Returns:
            The question type, and an instance of its ``question`` class.

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
        question_type = self._types.get(name)
        if question_type is None:
            msg = f"unknown question type {name[:80]!r}; installed: {self._installed()}"
            raise RequestError.at(("type",), msg, "unknown_type")
        fields = {key: value for key, value in data.items() if key != "type"}
        try:
            return question_type, self._converter.structure(fields, question_type.question)
        except (BaseValidationError, RequestError, ValueError, TypeError) as error:
            raise RequestError(problems_of(error, question_type.question)) from error
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
        except Exception as error:
            raise PluginError(question_type.name, f"its answer cannot be written: {type(error).__name__}") from error
        body = {"type": question_type.name, **fields}
        if (fault := json_fault(body)) is not None:
            raise PluginError(question_type.name, f"its answer holds {fault}")
        return body

    def _installed(self) -> str:
        return ", ".join(sorted(self._types)) or "none"


def json_fault(value: Any, loc: Loc = ()) -> str | None:  # noqa: PLR0911 - one return per kind of JSON value
    """What in ``value`` is no finite JSON, with its path; ``None`` when all of it is."""
    where = ".".join(str(part) for part in loc)
    if isinstance(value, float):
        return None if math.isfinite(value) else f"a number that is not finite at {where}"
    if value is None or isinstance(value, (str, bool, int)):
        return None
    if isinstance(value, Mapping):
        for key, child in value.items():
            if not isinstance(key, str):
                return f"a key that is no string at {where}"
            if (fault := json_fault(child, (*loc, key))) is not None:
                return fault
        return None
    if isinstance(value, (list, tuple)):
        faults = (json_fault(child, (*loc, index)) for index, child in enumerate(value))
        return next((fault for fault in faults if fault is not None), None)
    return f"a {type(value).__name__}, which is no JSON, at {where}"


def problems_of(error: BaseException, cls: type | None = None) -> list[Problem]:
    """Every problem in a structuring error, with its path."""
    if isinstance(error, RequestError):
        return list(error.problems)
    if isinstance(error, ForbiddenExtraKeysError):
        accepted = ", ".join(field.name for field in attrs.fields(error.cl)) if attrs.has(error.cl) else ""
        msg = f"unknown field; accepted: {accepted or 'none'}"
        return [Problem((name,), msg, "extra_forbidden") for name in sorted(error.extra_fields)]
    if isinstance(error, BaseValidationError):
        cls = error.cl if isinstance(error.cl, type) else cls
        problems: list[Problem] = []
        for inner, note in _with_notes(error):
            part = _path_of(note)
            if isinstance(inner, KeyError) and part:
                problems.append(Problem(part, "missing; this field is required", "missing"))
            else:
                problems.extend(Problem((*part, *p.loc), p.msg, p.type) for p in problems_of(inner, cls))
        return problems
    msg = " ".join(str(error).split()) or f"not accepted by {cls.__name__ if cls else 'its type'}"
    return [Problem(_field_named(msg, cls), msg)]


def _field_named(msg: str, cls: type | None) -> Loc:
    """The path of a validator's complaint. attrs' own validators begin with their field's name in quotes."""
    named = re.match(r"'(\w+)' ", msg)
    fields = {field.name for field in attrs.fields(cls)} if cls is not None and attrs.has(cls) else set()
    return (named[1],) if named and named[1] in fields else ()


def _with_notes(error: BaseValidationError) -> list[tuple[BaseException, Any]]:
    kinds = (AttributeValidationNote, IterableValidationNote)
    return [
        (inner, next((n for n in getattr(inner, "__notes__", ()) if isinstance(n, kinds)), None))
        for inner in error.exceptions
    ]


def _path_of(note: Any) -> Loc:
    if isinstance(note, AttributeValidationNote):
        return (note.name,)
    return (note.index,) if isinstance(note, IterableValidationNote) else ()


@cache
def _scalar_hook(cls: type) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        # bool is an int to Python, and not to JSON.
        if type(value) is cls or (cls is float and type(value) is int):
            return float(value) if type(value) is int and cls is float else value
        raise mismatch(JSON_NAMES[cls], value)

    return structure


def is_json_union(tp: Any) -> bool:
    """Whether a type is a union of JSON's own kinds, such as :data:`~openjev_core.Content` or ``int | None``."""
    if get_origin(tp) not in (Union, types.UnionType):
        return False
    return all(arg in JSON_NAMES or arg in (dict[str, Any], list[Any]) for arg in get_args(tp))


def strict_converter() -> Converter:
    """A cattrs converter that coerces nothing and forbids unknown fields."""
    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    for cls in (str, int, float, bool):
        converter.register_structure_hook(cls, _scalar_hook(cls))
    converter.register_structure_hook_factory(is_json_union, _json_union_hook)
    converter.register_structure_hook_factory(_is_sequence, lambda tp: _sequence_hook(converter, tp))
    converter.register_structure_hook_factory(_is_mapping, lambda tp: _mapping_hook(converter, tp))
    converter.register_structure_hook_factory(attrs.has, lambda tp: _object_hook(converter, tp))
    return converter


def _json_union_hook(tp: Any) -> Callable[[Any, Any], Any]:
    accepted = {get_origin(arg) or arg for arg in get_args(tp)}
    expected = " or ".join(", ".join(JSON_NAMES[arg] for arg in JSON_NAMES if arg in accepted).rsplit(", ", 1))

    def structure(value: Any, _: Any) -> Any:
        if type(value) in accepted:
            return value
        if float in accepted and type(value) is int:
            return float(value)
        raise mismatch(expected, value)

    return structure


def _is_sequence(tp: Any) -> bool:
    origin = get_origin(tp) or tp
    return origin in (list, tuple) or origin is Sequence


def _is_mapping(tp: Any) -> bool:
    origin = get_origin(tp) or tp
    return origin is dict or origin is Mapping


def _sequence_hook(converter: Converter, tp: Any) -> Callable[[Any, Any], Any]:
    origin, args = get_origin(tp) or tp, get_args(tp)
    if origin is tuple and args and args[-1] is not Ellipsis:
        raise StructureHandlerNotFoundError(f"{tp}: a fixed-length tuple; use tuple[X, ...] or a class", tp)
    element = args[0] if args else Any
    make = tuple if origin is tuple else list

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not list:
            raise mismatch("an array", value)
        return make(_members(converter, element, enumerate(value)))

    return structure


def _mapping_hook(converter: Converter, tp: Any) -> Callable[[Any, Any], Any]:
    args = get_args(tp) or (str, Any)

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise mismatch("an object", value)
        return dict(zip(value, _members(converter, args[1], value.items()), strict=True))

    return structure


def _members(converter: Converter, element: Any, members: Any) -> list[Any]:
    """Structure each member; every problem is collected, each under its key or index."""
    if element is Any:
        return [child for _, child in members]
    hook = converter.get_structure_hook(element)
    structured: list[Any] = []
    problems: list[Problem] = []
    for part, child in members:
        try:
            structured.append(hook(child, element))
        except (BaseValidationError, RequestError, ValueError, TypeError) as error:
            problems.extend(Problem((part, *p.loc), p.msg, p.type) for p in problems_of(error))
    if problems:
        raise RequestError(problems)
    return structured


def _object_hook(converter: Converter, tp: Any) -> Callable[[Any, Any], Any]:
    from cattrs.gen import make_dict_structure_fn  # noqa: PLC0415 - generates code; needed only when a class is met

    generated = make_dict_structure_fn(tp, converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=True)

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise mismatch("an object", value)
        return generated(value, tp)

    return structure
