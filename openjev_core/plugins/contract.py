"""Checks of a plugin's records against the contract. They call none of their functions."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import attrs

from openjev_core.engine_type import EngineType
from openjev_core.plugins.schemas import schemas_of
from openjev_core.plugins.strict import is_collection, is_enumeration, is_json_union
from openjev_core.question import CONTRACT_VERSION, QuestionType

SCALARS = (str, int, float, bool, types.NoneType, Any)
ACCEPTED = (
    "str, int, float, bool, Any, Content, Literal, Enum, list[X], tuple[X, ...], dict[str, X] or an attrs class, or "
    "one of these or None"
)


def type_fault(question_type: object) -> str | None:
    """The first fault of a question type's record, in one line with its remedy; ``None`` without one."""
    if not isinstance(question_type, QuestionType):
        return f"openjev_question_types returned a {type(question_type).__name__}; return QuestionType records"
    fault = version_fault(question_type) or member_fault(question_type) or schema_fault(question_type)
    return f"question type {question_type.name!r}{fault}" if fault else None


def engine_fault(engine: object) -> str | None:
    """The first fault of an engine's record, in one line with its remedy; ``None`` without one."""
    if not isinstance(engine, EngineType):
        return f"openjev_engines returned a {type(engine).__name__}; return EngineType records"
    fault = version_fault(engine)
    if fault is None and not callable(engine.open):
        fault = ": its open cannot be called; give an async context manager's function"
    if fault is None and engine.recognise is not None and not callable(engine.recognise):
        fault = ": its recognise cannot be called; give an async function, or None"
    return f"engine {engine.name!r}{fault}" if fault else None


def version_fault(record: QuestionType[Any, Any] | EngineType) -> str | None:
    """The fault of a record that was written for another version of the contract; ``None`` without one."""
    # True and 1.0 equal 1, and nobody means them.
    if type(record.api) is int and record.api == CONTRACT_VERSION:
        return None
    return (
        f" was written for contract version {record.api!r}; "
        f"this openjev speaks version {CONTRACT_VERSION}: install a release of either that matches"
    )


def member_fault(question_type: QuestionType[Any, Any]) -> str | None:
    """The fault of an attribute that is of the wrong kind; ``None`` without one."""
    for role, cls in (("question", question_type.question), ("answer", question_type.answer)):
        if fault := class_fault(cls):
            return f": its {role} {fault}"
    for role in ("readouts", "reduce", "suffix"):
        if not callable(getattr(question_type, role)):
            return f": its {role} cannot be called; give a function"
    return members_fault(question_type)


def members_fault(question_type: QuestionType[Any, Any]) -> str | None:
    """The fault of labels or examples; ``None`` without one."""
    for role in ("labels", "examples"):
        if not isinstance(found := getattr(question_type, role), tuple):
            return f": its {role} are {found!r}, which is no tuple; write `{role}=(..., )`"
    for label in question_type.labels:
        if not isinstance(label, str) or not label or label != label.strip():
            return f": its label {label!r} is no text without outer white space"
    for example in question_type.examples:
        if not isinstance(example, question_type.question):
            return f": an example is a {type(example).__name__}; give instances of {question_type.question.__name__}"
    return None


def class_fault(cls: object) -> str | None:
    """The fault of a question or answer class that is no attrs class of types that JSON has; ``None`` without one."""
    if not (isinstance(cls, type) and attrs.has(cls)):
        return "is no attrs class; decorate it with attrs.frozen(kw_only=True)"
    if any(field.name == "type" for field in attrs.fields(cls)):
        return "has a field `type`, which the engine adds itself; remove it"
    try:
        return form_fault(cls, set())
    except NameError as error:
        return f"has an annotation that cannot be resolved: {error}"


def form_fault(tp: Any, seen: set[Any]) -> str | None:
    """The fault of a type that has no strict form in JSON, with the field of that type; ``None`` without one."""
    if isinstance(tp, NewType):
        tp = tp.__supertype__
    if tp in SCALARS or tp in seen or is_enumeration(tp):
        return None
    if isinstance(tp, type) and attrs.has(tp):
        seen.add(tp)
        return fields_fault(tp, seen)
    members = form_members(tp)
    if members is None:
        shown = tp.__name__ if isinstance(tp, type) and not get_args(tp) else tp
        return f"of type {shown}, which has no strict form in JSON; use {ACCEPTED}"
    return next((fault for member in members if (fault := form_fault(member, seen)) is not None), None)


def fields_fault(cls: type, seen: set[Any]) -> str | None:
    """The first field of an attrs class that has no strict form in JSON."""
    hints = get_type_hints(cls)
    for field in attrs.fields(cls):
        if (fault := form_fault(hints.get(field.name, Any), seen)) is not None:
            return fault if fault.startswith("has a field") else f"has a field `{cls.__name__}.{field.name}` {fault}"
    return None


def form_members(tp: Any) -> Sequence[Any] | None:
    """The types that a collection or union is made of; ``None`` when it has no strict form."""
    origin, args = get_origin(tp) or tp, get_args(tp)
    if origin in (Union, types.UnionType):
        others = [arg for arg in args if arg is not types.NoneType]
        return () if is_json_union(tp) else others if len(others) == 1 else None
    if origin in (dict, Mapping):
        return None if args and args[0] not in (str, Any) else args[1:]
    if origin is tuple:
        return args[:1] if not args or args[1:] == (Ellipsis,) else None
    return args if is_collection(tp) else None


def schema_fault(question_type: QuestionType[Any, Any]) -> str | None:
    """The fault of classes that have no JSON schema; ``None`` without one."""
    try:
        schemas_of(question_type)
    except Exception as error:  # noqa: BLE001 - whatever it is, it would fail later at a client's request
        return f": its classes have no JSON schema: {error}"
    return None
