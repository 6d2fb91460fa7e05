"""From JSON to instances of attrs classes, without coercion.

A JSON value that is not of its field's type is an error with its path, the expected and the found type.
:mod:`openjev_core.plugins.contract` refuses classes with fields of types that this module does not know.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin

import msgspec

from openjev_core.errors import MAX_PROBLEMS, Problem, RequestError
from openjev_core.plugins.forms import (
    DATES,
    Field,
    bare,
    collection_kind,
    constraints,
    distance,
    element_of,
    fields_of,
    given_fields,
    is_collection,
    is_enumeration,
    is_object,
    is_union,
    kinds_of,
    members_of,
    unchanged_kinds,
)
from openjev_core.plugins.instances import instance_of, refusals
from openjev_core.plugins.problems import JSON_NAMES, mismatch

Hook = Callable[[Any], Any]
"""Takes a JSON value, gives what its type has for it, or raises :class:`RequestError` with paths from the value."""


class Structurer:
    """Makes instances of classes from JSON. What it needs for a type is made when the type is first met.

    Args:
        make: ``False`` to check alone: an object is held to every field that its class has, also those that it works
            out itself, and stays as it is.
    """

    def __init__(self, *, make: bool = True) -> None:
        self.make = make
        self._hooks: dict[Any, Hook] = {}

    def structure(self, value: Any, tp: Any) -> Any:
        """A JSON value as an instance of a type.

        Raises:
            RequestError: With the problems found; paths start at the value.
            Exception: A class raised something that is no complaint about a value.
        """
        return self.hook(tp)(value)

    def hook(self, tp: Any) -> Hook:
        """What structures a type."""
        found = self._hooks.get(tp)
        if found is None:
            found = self._hooks[tp] = self._made(tp)
        return found

    def _made(self, tp: Any) -> Hook:
        if metas := constraints(tp):
            return _constrained(self.hook(tp.__origin__), tp.__origin__, metas)
        tp = bare(tp)
        for is_one, made in ((is_union, _union), (is_collection, _collection), (is_object, _object)):
            if is_one(tp):
                return made(self, tp)
        if is_enumeration(tp):
            return _enumeration(tp)
        return _date(tp) if tp in DATES else _plain(tp)


def _plain(cls: Any) -> Hook:
    def structure(value: Any) -> Any:
        # bool is an int to Python, and not to JSON.
        if type(value) is cls or cls is Any:
            return value
        if cls is float and type(value) is int:
            try:
                return float(value)
            except OverflowError:
                raise RequestError.at((), "an integer too large for a number of double precision") from None
        raise mismatch(JSON_NAMES[cls], value)

    return structure


def _date(cls: type) -> Hook:
    def structure(value: Any) -> Any:
        if type(value) is not str:
            raise mismatch(JSON_NAMES[str], value)
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError:
            raise RequestError.at((), f"expected a {cls.__name__} as RFC 3339 writes it") from None

    return structure


def _enumeration(tp: Any) -> Hook:
    members = members_of(tp)
    accepted = ", ".join(json.dumps(value, ensure_ascii=False) for value, _ in members)

    def structure(value: Any) -> Any:
        for known, member in members:
            if type(value) is type(known) and value == known:
                return member
        raise RequestError.at((), f"expected one of {accepted}")

    return structure


def _constrained(inner: Hook, tp: Any, metas: Sequence[msgspec.Meta]) -> Hook:
    # msgspec checks what it documents. It need not know what stands inside a collection, which is structured here.
    kind = tp if bare(tp) in DATES else next(iter(kinds_of(tp)))
    form: Any = Annotated[(kind, *metas)]

    def structure(value: Any) -> Any:
        structured = inner(value)
        try:
            msgspec.convert(value, form)
        except msgspec.ValidationError as error:
            msg = str(error)
            raise RequestError.at((), msg[0].lower() + msg[1:]) from None
        return structured

    return structure


def _union(structurer: Structurer, tp: Any) -> Hook:
    unchanged = unchanged_kinds(tp)
    by_kind: defaultdict[type, list[Any]] = defaultdict(list)
    for member in get_args(tp):
        for kind in kinds_of(member):
            by_kind[kind].append(member)
    fields = {cls: given_fields(cls) for cls in by_kind[dict]} if len(by_kind[dict]) > 1 else {}
    expected = " or ".join(", ".join(JSON_NAMES[kind] for kind in JSON_NAMES if by_kind[kind]).rsplit(", ", 1))

    def structure(value: Any) -> Any:
        kind = type(value)
        if kind in unchanged:
            return value
        members = by_kind.get(kind) or (kind is int and by_kind.get(float)) or ()
        if not members:
            raise mismatch(expected, value)
        member = members[0] if len(members) == 1 else min(fields, key=lambda cls: distance(fields[cls], value))
        return structurer.structure(value, member)

    return structure


def _collection(structurer: Structurer, tp: Any) -> Hook:
    kind, element, sequence = collection_kind(tp), element_of(tp), get_origin(tp) or tp
    unchanged = unchanged_kinds(element)

    def structure(value: Any) -> Any:
        if not isinstance(value, (dict, list)) or type(value) is not kind:
            raise mismatch(JSON_NAMES[kind], value)
        if element is Any:
            return tuple(value) if sequence is tuple else value
        members = list(value.values() if isinstance(value, dict) else value)
        if not unchanged.issuperset(map(type, members)):
            members = _members(structurer.hook(element), value)
        if isinstance(value, dict):
            return dict(zip(value, members, strict=True))
        return tuple(members) if sequence is tuple else members

    return structure


def _members(hook: Hook, value: list[Any] | dict[str, Any]) -> list[Any]:
    """Structure each member. Problems are collected, each under its key or index, up to one more than are shown."""
    structured: list[Any] = []
    problems: list[Problem] = []
    for part, child in value.items() if isinstance(value, dict) else enumerate(value):
        try:
            structured.append(hook(child))
        except RequestError as error:
            problems.extend(error.under(part).problems)
            if len(problems) > MAX_PROBLEMS:
                break
    if problems:
        raise RequestError(problems)
    return structured


def _object(structurer: Structurer, cls: type) -> Hook:
    fields = given_fields(cls) if structurer.make else fields_of(cls)
    names = {field.name for field in fields}
    accepted = ", ".join(field.name for field in fields) or "none"
    hooks: Sequence[tuple[Field, Hook]] = ()

    def structure(value: Any) -> Any:
        nonlocal hooks
        if type(value) is not dict:
            raise mismatch("an object", value)
        # Made when the first object comes, since a class may hold itself; by two threads at once, it is made twice.
        hooks = hooks or [(field, structurer.hook(field.type)) for field in fields]
        given, problems = _fields(hooks, value)
        if len(value) > len(given):
            unknown = sorted(value.keys() - names)[: MAX_PROBLEMS + 1]
            problems += [
                Problem((name,), f"unknown field; accepted: {accepted}", "extra_forbidden") for name in unknown
            ]
        if not structurer.make:
            if problems:
                raise RequestError(problems)
            return value
        if problems:
            raise RequestError([*problems, *refusals(cls, fields, given, whole=False)])
        return instance_of(cls, fields, given)

    return structure


def _fields(hooks: Sequence[tuple[Field, Hook]], value: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Each field of an object structured, by its name, and what is wrong with those that are missing here."""
    given: dict[str, Any] = {}
    problems: list[Problem] = []
    for field, hook in hooks:
        if (name := field.name) in value:
            try:
                given[name] = hook(value[name])
            except RequestError as error:
                problems.extend(error.under(name).problems)
        elif field.required:
            problems.append(Problem((name,), "missing; this field is required", "missing"))
    return given, problems
