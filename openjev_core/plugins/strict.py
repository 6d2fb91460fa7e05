"""A cattrs converter that coerces nothing.

cattrs would coerce: ``1`` to ``"1"``, ``"false"`` to ``True``, a string to a tuple of letters. Here a JSON value that
is not of its field's type is an error with its path, the expected and the found type.
:mod:`openjev_core.plugins.contract` refuses classes with fields of types that this module does not know.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.errors import BaseValidationError
from cattrs.gen import make_dict_structure_fn

from openjev_core.errors import MAX_PROBLEMS, Problem, RequestError
from openjev_core.plugins.problems import JSON_NAMES, mismatch, problems_of

Hook = Callable[[Any, Any], Any]


def strict_converter() -> Converter:
    """A converter that coerces nothing and forbids unknown fields."""
    converter = Converter(forbid_extra_keys=True, detailed_validation=True, unstruct_collection_overrides={tuple: list})
    for cls in (str, int, float, bool):
        converter.register_structure_hook(cls, _scalar_hook(cls))
    # An enumeration that is a string too would be left as it is.
    converter.register_unstructure_hook(str, lambda text: text.value if isinstance(text, Enum) else text)
    converter.register_structure_hook_factory(is_enumeration, _enumeration_hook)
    converter.register_structure_hook_factory(is_json_union, _json_union_hook)
    converter.register_structure_hook_factory(is_collection, lambda tp: _collection_hook(converter, tp))
    converter.register_structure_hook_factory(attrs.has, lambda tp: _object_hook(converter, tp))
    return converter


def structured(converter: Converter, value: Any, cls: type) -> Any:
    """A JSON value as an instance of ``cls``, by a :func:`strict_converter`.

    Raises:
        RequestError: With the problems found; paths start at the value.
        Exception: The class raised something that is no complaint about a value.
    """
    try:
        return converter.structure(value, cls)
    except (BaseValidationError, RequestError, ValueError, TypeError) as error:
        raise RequestError(problems_of(error, cls)) from error


def _scalar_hook(cls: type) -> Hook:
    def structure(value: Any, tp: Any) -> Any:
        if tp is not cls:  # an enumeration that is a `str` or `int` too; cattrs asks for the hook of that first
            return _enumeration_hook(tp)(value, tp)
        # bool is an int to Python, and not to JSON.
        if type(value) is cls:
            return value
        if cls is float and type(value) is int:
            return _to_float(value)
        raise mismatch(JSON_NAMES[cls], value)

    return structure


def _to_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise RequestError.at((), "an integer too large for a number of double precision") from None


def is_enumeration(tp: Any) -> bool:
    """Whether a type names the values that it accepts."""
    return get_origin(tp) is Literal or (isinstance(tp, type) and issubclass(tp, Enum))


def _enumeration_hook(tp: Any) -> Hook:
    members = [(m, m) for m in get_args(tp)] if get_origin(tp) is Literal else [(m.value, m) for m in tp]
    accepted = ", ".join(json.dumps(value, ensure_ascii=False) for value, _ in members)

    def structure(value: Any, _: Any) -> Any:
        for known, member in members:
            if type(value) is type(known) and value == known:
                return member
        raise RequestError.at((), f"expected one of {accepted}")

    return structure


def is_json_union(tp: Any) -> bool:
    """Whether a type is a union of JSON's own kinds, such as :data:`~openjev_core.Content` or ``int | None``."""
    if get_origin(tp) not in (Union, types.UnionType):
        return False
    return all(arg in JSON_NAMES or arg in (dict[str, Any], list[Any]) for arg in get_args(tp))


def _json_union_hook(tp: Any) -> Hook:
    accepted = {get_origin(arg) or arg for arg in get_args(tp)}
    expected = " or ".join(", ".join(JSON_NAMES[arg] for arg in JSON_NAMES if arg in accepted).rsplit(", ", 1))

    def structure(value: Any, _: Any) -> Any:
        if type(value) in accepted:
            return value
        if float in accepted and type(value) is int:
            return _to_float(value)
        raise mismatch(expected, value)

    return structure


def is_collection(tp: Any) -> bool:
    """Whether a type is an array or object of members of one type."""
    return (get_origin(tp) or tp) in (list, tuple, Sequence, dict, Mapping)


def _collection_hook(converter: Converter, tp: Any) -> Hook:
    origin, args = get_origin(tp) or tp, get_args(tp)
    kind: type = dict if origin in (dict, Mapping) else list
    element = (args[-1] if kind is dict else args[0]) if args else Any

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, (dict, list)) or type(value) is not kind:
            raise mismatch(JSON_NAMES[kind], value)
        if element is Any:
            return tuple(value) if origin is tuple else value
        # The hook is asked for when it is needed: a class may hold a list of itself.
        members = _members(converter.get_structure_hook(element), element, value)
        if kind is dict:
            return dict(zip(list(value), members, strict=True))
        return tuple(members) if origin is tuple else members

    return structure


def _members(hook: Hook, element: Any, value: list[Any] | dict[str, Any]) -> list[Any]:
    """Structure each member. Problems are collected, each under its key or index, up to one more than are shown."""
    structured: list[Any] = []
    problems: list[Problem] = []
    for part, child in value.items() if isinstance(value, dict) else enumerate(value):
        try:
            structured.append(hook(child, element))
        except (BaseValidationError, RequestError, ValueError, TypeError) as error:
            problems.extend(Problem((part, *p.loc), p.msg, p.type) for p in problems_of(error))
            if len(problems) > MAX_PROBLEMS:
                break
    if problems:
        raise RequestError(problems)
    return structured


def _object_hook(converter: Converter, tp: Any) -> Hook:
    generated = make_dict_structure_fn(tp, converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=True)

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise mismatch("an object", value)
        return generated(value, tp)

    return structure
