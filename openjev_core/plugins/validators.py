"""What attrs' own validators demand, in JSON Schema's words.

Each keyword holds for values of its own kind alone, so it may stand beside whatever else describes a field.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from attrs import validators

COMPARISONS = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}
LENGTHS = {str: "Length", list: "Items", dict: "Properties"}


def keywords(validator: Any, kinds: Collection[type]) -> dict[str, Any]:  # noqa: PLR0911 - one return per validator
    """The keywords of a field's validator; none for what JSON Schema has no word for.

    Args:
        validator: A validator; ``None`` when the field has none.
        kinds: The kinds of JSON values that the field takes.
    """
    if is_like(validator, validators.and_()):
        return {word: value for one in validator._validators for word, value in keywords(one, kinds).items()}  # noqa: SLF001 - it has no public name
    if is_like(validator, validators.optional(validators.ge(0))):
        demanded = keywords(validator.validator, kinds)
        return {**demanded, "enum": [*demanded["enum"], None]} if "enum" in demanded else demanded
    if is_like(validator, validators.ge(0)):
        return {COMPARISONS[validator.compare_op]: validator.bound}
    if is_like(validator, validators.min_len(0)):
        return {f"min{LENGTHS[kind]}": validator.min_length for kind in kinds if kind in LENGTHS}
    if is_like(validator, validators.max_len(0)):
        return {f"max{LENGTHS[kind]}": validator.max_length for kind in kinds if kind in LENGTHS}
    if is_like(validator, validators.in_([])):
        options = list(validator.options)
        return {"enum": options} if all(isinstance(option, (str, int, float)) for option in options) else {}
    if is_like(validator, validators.matches_re("")):
        return {"pattern": pattern_of(validator)}
    if is_like(validator, validators.deep_iterable(validators.ge(0))):
        inner = {"items": keywords(validator.member_validator, LENGTHS.keys())}
        return {**keywords(validator.iterable_validator, kinds), **inner}
    if is_like(validator, validators.deep_mapping(validators.ge(0), validators.ge(0))):
        inner = {
            "propertyNames": keywords(validator.key_validator, {str}),
            "additionalProperties": keywords(validator.value_validator, LENGTHS.keys()),
        }
        return {**keywords(validator.mapping_validator, kinds), **inner}
    return {}


def is_like(validator: Any, example: Any) -> bool:
    """Whether a validator is of the kind that attrs made the example of; its classes are private."""
    return type(validator) is type(example)


def pattern_of(validator: Any) -> str:
    """The pattern of ``matches_re``, which JSON Schema searches for anywhere."""
    pattern: str = validator.pattern.pattern
    whole = {"fullmatch": f"^(?:{pattern})$", "match": f"^(?:{pattern})"}
    return whole.get(validator.match_func.__name__, pattern)


def demanding(schema: Mapping[str, Any], demanded: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that demands these keywords, too; those about members are added to what it says of members."""
    out = dict(schema)
    for word, value in demanded.items():
        members = out.get(word)
        if isinstance(value, dict):
            if value:
                out[word] = demanding(members if isinstance(members, dict) else {}, value)
        else:
            out[word] = value
    return out
