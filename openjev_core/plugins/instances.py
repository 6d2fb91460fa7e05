"""Making an instance of an attrs class, with every complaint of its converters and validators. attrs stops at one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from openjev_core.errors import Problem, RequestError
from openjev_core.plugins.forms import Field
from openjev_core.plugins.problems import complaint_of


def instance_of(cls: type, fields: Sequence[Field], given: Mapping[str, Any]) -> Any:
    """An instance of a class.

    Args:
        cls: The class.
        fields: Its fields.
        given: A field's name in JSON to its value, which is of the field's type.

    Raises:
        RequestError: With what its converters and validators refuse, each under its field.
        Exception: Something that is no complaint about a value: the class has a fault.
    """
    try:
        return cls(**{str(field.attribute.alias): given[field.name] for field in fields if field.name in given})
    except Exception as error:
        if problems := refusals(cls, fields, given, whole=True):
            raise RequestError(problems) from None
        if isinstance(error, (ValueError, TypeError)):
            raise RequestError.at((), said_by(error, cls)) from None
        raise


def refusals(cls: type, fields: Iterable[Field], given: Mapping[str, Any], *, whole: bool) -> list[Problem]:
    """What the converters and validators of a class refuse, each under its field.

    Args:
        cls: The class.
        fields: Its fields.
        given: As for :func:`instance_of`.
        whole: Every field is there and of its type. Otherwise a validator may miss another field, and what it raises
            then is nobody's fault.

    Raises:
        Exception: Something that is no complaint about a value: the class has a fault.
    """
    instance: Any = object.__new__(cls)
    problems: list[Problem] = []
    present = [field for field in fields if field.name in given or not field.required]
    for step in (assign, validate):
        for field in present:
            try:
                step(instance, field, given)
            except (ValueError, TypeError) as error:
                problems.append(Problem((field.name,), said_by(error, cls)))
            except Exception:
                if whole and not problems:
                    raise
    return problems


def assign(instance: Any, field: Field, given: Mapping[str, Any]) -> None:
    """Give an instance a field's value, or its default, by way of the field's converter."""
    attribute = field.attribute
    default: Any = attribute.default
    if field.name in given:
        value = given[field.name]
    elif isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # its stub is a function
        value = default.factory(instance) if default.takes_self else default.factory()
    else:
        value = default
    convert: Any = attribute.converter
    if convert is not None:
        takes_all = isinstance(convert, attrs.Converter)
        value = convert(value, instance, attribute) if takes_all else convert(value)
    object.__setattr__(instance, attribute.name, value)


def validate(instance: Any, field: Field, _: Mapping[str, Any]) -> None:
    """Have a field's validator look at its value, where there is one."""
    check: Callable[..., Any] | None = field.attribute.validator
    if check is not None and hasattr(instance, field.attribute.name):
        check(instance, field.attribute, getattr(instance, field.attribute.name))


def said_by(error: BaseException, cls: type) -> str:
    """What a class complains of."""
    return complaint_of(error) or f"not accepted by {cls.__name__}"
