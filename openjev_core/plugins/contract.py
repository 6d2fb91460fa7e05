"""Checks of a plugin's records against the contract. They call none of their functions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, get_args, get_origin

import attrs

from openjev_core.engine_type import EngineType
from openjev_core.own_settings import own_fields
from openjev_core.plugins.forms import (
    bare,
    can_be_told_apart,
    element_of,
    fields_of,
    is_collection,
    is_object,
    is_union,
    kinds_of,
)
from openjev_core.plugins.problems import JSON_NAMES
from openjev_core.plugins.schemas import schemas_of
from openjev_core.question import CONTRACT_VERSION, QuestionType
from openjev_core.settings import setting_fields, variable

ACCEPTED = (
    "str, int, float, bool, Any, Content, Literal, Enum, date, datetime, time, list[X], tuple[X, ...], dict[str, X], "
    "an attrs class, or a union of these"
)


def type_fault(question_type: object) -> str | None:
    """The first fault of a question type's record, in one line with its remedy; ``None`` without one."""
    if not isinstance(question_type, QuestionType):
        return f"openjev_question_types returned a {type(question_type).__name__}; return QuestionType records"
    fault = version_fault(question_type) or member_fault(question_type) or schema_fault(question_type)
    fault = fault or own_settings_fault(question_type)
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
    fault = fault or own_settings_fault(engine)
    return f"engine {engine.name!r}{fault}" if fault else None


def own_settings_fault(record: QuestionType[Any, Any] | EngineType) -> str | None:
    """The fault of the own settings of a type or an engine; ``None`` without one."""
    cls: object = record.settings
    if not (isinstance(cls, type) and attrs.has(cls)):
        return ": its settings are no attrs class; decorate it with attrs.frozen(kw_only=True)"
    taken = {field.name for field in setting_fields()}
    for name, field in own_fields(record).items():
        if "parse" not in field.metadata:
            return f": its settings have a field {field.name!r} without a parser; make it with openjev_core.setting"
        if name in taken:
            return f": its setting {variable(name)} is one of openjev's own; give the field {field.name!r} another name"
    return None


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
    if question_type.target is not None and not callable(question_type.target):
        return ": its target cannot be called; give a function, or None"
    return members_fault(question_type)


def members_fault(question_type: QuestionType[Any, Any]) -> str | None:
    """The fault of labels or examples; ``None`` without one."""
    for role in ("labels", "examples"):
        if not isinstance(found := getattr(question_type, role), tuple):
            return f": its {role} are {found!r}, which is no tuple; write `{role}=(..., )`"
    for label in question_type.labels:
        if not isinstance(label, str) or not label or label != label.strip():
            return f": its label {label!r} is no text without outer white space; write one such as 'Yes'"
    for example in question_type.examples:
        if not isinstance(example, question_type.question):
            return f": an example is a {type(example).__name__}; give instances of {question_type.question.__name__}"
    return None


def class_fault(cls: object) -> str | None:
    """The fault of a question or answer class that is no attrs class of types that JSON has; ``None`` without one."""
    if not (isinstance(cls, type) and attrs.has(cls)):
        return "is no attrs class; decorate it with attrs.frozen(kw_only=True)"
    try:
        if any(field.name == "type" for field in fields_of(cls)):
            return "has a field `type`, which the engine adds itself; remove it"
        return fields_fault(cls, set())
    except Exception as error:  # noqa: BLE001 - an annotation is any expression
        return f"has an annotation that cannot be resolved: {error}; import what it names where the class is defined"


def fields_fault(cls: type, seen: set[type]) -> str | None:
    """The first field of an attrs class that has no strict form in JSON."""
    seen.add(cls)
    names: set[str] = set()
    for field in fields_of(cls):
        where = f"has a field `{cls.__name__}.{field.attribute.name}`"
        if not isinstance(field.name, str) or field.name in names:
            return (
                f'{where} with the name {field.name!r} in JSON; give each field one of its own: metadata={{"wire": ""}}'
            )
        names.add(field.name)
        if (fault := form_fault(field.type, seen)) is not None:
            return fault if fault.startswith("has a field") else f"{where} {fault}"
    return None


def form_fault(tp: Any, seen: set[type]) -> str | None:
    """The fault of a type that has no strict form in JSON, with the field of that type; ``None`` without one."""
    tp = bare(tp)
    if tp in seen:
        return None
    if is_object(tp):
        return fields_fault(tp, seen)
    if not kinds_of(tp) <= JSON_NAMES.keys() or not kinds_of(tp) or not is_uniform(tp):
        shown = tp.__name__ if isinstance(tp, type) and not get_args(tp) else tp
        return f"of type {shown}, which has no strict form in JSON; use {ACCEPTED}"
    members = get_args(tp) if is_union(tp) else (element_of(tp),) if is_collection(tp) else ()
    faults = (form_fault(member, seen) for member in members)
    return next((fault for fault in faults if fault is not None), None) or (union_fault(tp) if is_union(tp) else None)


def is_uniform(tp: Any) -> bool:
    """Whether a collection has string keys, if any, and members of one type."""
    origin, args = get_origin(tp) or tp, get_args(tp)
    if origin in (dict, Mapping):
        return not args or bare(args[0]) in (str, Any)
    return origin is not tuple or not args or args[1:] == (Ellipsis,)


def union_fault(tp: Any) -> str | None:
    """The fault of a union with two members that one value could be of; ``None`` without one."""
    for one, other in itertools.combinations(get_args(tp), 2):
        both = [JSON_NAMES[kind] for kind in kinds_of(one) & kinds_of(other)]
        if not both or (is_object(bare(one)) and is_object(bare(other)) and can_be_told_apart(bare(one), bare(other))):
            continue
        remedy = (
            "only attrs classes can share one, where each has a required field of its own, or a Literal under one name"
        )
        return f"of type {tp}, two members of which are {both[0]} in JSON; {remedy}"
    return None


def schema_fault(question_type: QuestionType[Any, Any]) -> str | None:
    """The fault of classes that have no JSON schema; ``None`` without one."""
    try:
        schemas_of(question_type)
    except Exception as error:  # noqa: BLE001 - whatever it is, it would fail later at a client's request
        return f": its classes have no JSON schema: {error}"
    return None
