"""What a Python type stands for in JSON: the kinds of values that it takes, and the fields of a class."""

from __future__ import annotations

import datetime as dt
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

import attrs
import msgspec
from attrs import frozen

from openjev_core.plugins.problems import JSON_NAMES

WIRE_NAME = "wire"
"""Key of a field's metadata that holds its name in JSON, where that is none in Python: ``class``, ``from-date``."""

PLAIN = (str, int, float, bool, types.NoneType)
DATES = (dt.date, dt.datetime, dt.time)
"""Written as RFC 3339 says."""


@frozen
class Field:
    """A field of an attrs class.

    Attributes:
        attribute: attrs' own record of it.
        name: Its name in JSON.
        type: Its annotation, resolved.
    """

    attribute: attrs.Attribute[Any]
    name: str
    type: Any

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.attribute.default is attrs.NOTHING


def fields_of(cls: type) -> tuple[Field, ...]:
    """The fields of an attrs class.

    Raises:
        NameError: An annotation cannot be resolved.
    """
    hints = get_type_hints(cls, include_extras=True)
    return tuple(Field(a, a.metadata.get(WIRE_NAME, a.name), hints.get(a.name, Any)) for a in attrs.fields(cls))


def given_fields(cls: type) -> tuple[Field, ...]:
    """The fields that whoever makes an instance gives; the class works out the others itself."""
    return tuple(field for field in fields_of(cls) if field.attribute.init)


def constraints(tp: Any) -> tuple[msgspec.Meta, ...]:
    """The constraints that stand around a type: those of ``Annotated[int, msgspec.Meta(ge=1)]``."""
    return tuple(m for m in getattr(tp, "__metadata__", ()) if isinstance(m, msgspec.Meta))


def bare(tp: Any) -> Any:
    """A type without its new name and without what is annotated to it."""
    while isinstance(tp, NewType) or get_origin(tp) is Annotated:
        tp = tp.__supertype__ if isinstance(tp, NewType) else tp.__origin__
    return Any if is_union(tp) and Any in get_args(tp) else tp


def is_union(tp: Any) -> bool:
    """Whether a type is a union of others."""
    return get_origin(tp) in (Union, types.UnionType)


def is_enumeration(tp: Any) -> bool:
    """Whether a type names the values that it accepts."""
    return get_origin(tp) is Literal or (isinstance(tp, type) and issubclass(tp, Enum))


def members_of(tp: Any) -> list[tuple[Any, Any]]:
    """Each value of an enumeration as JSON has it, with what Python has for it."""
    return [(m, m) for m in get_args(tp)] if get_origin(tp) is Literal else [(m.value, m) for m in tp]


def is_collection(tp: Any) -> bool:
    """Whether a type is an array or object of members of one type."""
    return (get_origin(tp) or tp) in (list, tuple, Sequence, dict, Mapping)


def collection_kind(tp: Any) -> type:
    """``dict`` for an object of members, ``list`` for an array."""
    return dict if (get_origin(tp) or tp) in (dict, Mapping) else list


def element_of(tp: Any) -> Any:
    """The type of a collection's members."""
    args = get_args(tp) or (Any,)
    return args[-1] if collection_kind(tp) is dict else args[0]


def kinds_of(tp: Any) -> frozenset[type]:
    """The kinds of JSON values that a type takes, as Python's types; empty when it has no strict form in JSON."""
    tp = bare(tp)
    kinds: Iterable[Any] = ()
    if tp is Any:
        kinds = JSON_NAMES
    elif tp in PLAIN:
        kinds = (tp,)
    elif tp in DATES:
        kinds = (str,)
    elif is_enumeration(tp):
        kinds = (type(value) for value, _ in members_of(tp))
    elif is_union(tp):
        kinds = (kind for member in get_args(tp) for kind in kinds_of(member))
    elif is_collection(tp):
        kinds = (collection_kind(tp),)
    elif is_object(tp):
        kinds = (dict,)
    return frozenset(kinds)


def unchanged_kinds(tp: Any) -> frozenset[type]:
    """The kinds of values that a type takes as they are."""
    if constraints(tp):
        return frozenset()
    tp = bare(tp)
    if is_union(tp):
        return frozenset(kind for member in get_args(tp) for kind in unchanged_kinds(member))
    if is_collection(tp):
        same = element_of(tp) is Any and (get_origin(tp) or tp) is not tuple
        return frozenset({collection_kind(tp)}) if same else frozenset()
    return frozenset({tp}) if tp in PLAIN else frozenset()


def is_object(tp: Any) -> bool:
    """Whether a type is an attrs class."""
    return isinstance(tp, type) and attrs.has(tp)


def can_be_told_apart(one: type, other: type) -> bool:
    """Whether an object of one class shows that it is none of the other.

    By a field that both have, as enumerations of different values; or by a field that one requires and the other lacks.
    """
    fields = [{field.name: field for field in given_fields(cls)} for cls in (one, other)]
    for name in fields[0].keys() & fields[1].keys():
        kinds = [bare(of[name].type) for of in fields]
        if all(map(is_enumeration, kinds)) and not set(values_of(kinds[0])) & set(values_of(kinds[1])):
            return True
    return any(
        field.required and name not in theirs
        for own, theirs in (fields, reversed(fields))
        for name, field in own.items()
    )


def values_of(tp: Any) -> Iterator[tuple[type, Any]]:
    """The JSON values of an enumeration, each with its kind: ``True`` is not 1."""
    return ((type(value), value) for value, _ in members_of(tp))


def distance(fields: Sequence[Field], value: Mapping[str, Any]) -> tuple[int, int]:
    """How far an object is from a class with these fields: enumerations that differ, then names missing or unknown.

    It looks at the object alone, and not at what its members hold: unions inside unions would take a time that doubles
    with each level.
    """
    wrong = 0
    for field in fields:
        tp = bare(field.type)
        if field.name in value and is_enumeration(tp):
            found = value[field.name]
            wrong += not any((type(found), found) == accepted for accepted in values_of(tp))
    missing = sum(field.required and field.name not in value for field in fields)
    return wrong, missing + len(value.keys() - {field.name for field in fields})
