"""The objects in a body of OpenAI's ``POST /v1/decisions``, structured strictly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from attrs import frozen

from openjev_core.errors import MAX_PROBLEMS, Problem, RequestError
from openjev_core.json_document import compact, deeper_than
from openjev_core.plugins.problems import mismatch
from openjev_core.plugins.strict import Structurer
from openjev_core.prompts.messages import MEDIA_PARTS

MAX_JSON_DEPTH = 32
"""Arrays and objects inside one another in an ``input_json`` part."""

MAX_JSON_VALUES = 10_000
"""Values in an ``input_json`` part, arrays and objects among them."""

MAX_JSON_BYTES = 256 * 1024
"""Of an ``input_json`` part as compact JSON."""

S = TypeVar("S")
T = TypeVar("T")


@frozen(kw_only=True)
class InputText:
    """A part that is text; also ``output_text``."""

    type: str
    text: str
    prompt_cache_breakpoint: Any = None


@frozen(kw_only=True)
class InputJson:
    """A part that is a JSON value."""

    type: str
    data: Any
    prompt_cache_breakpoint: Any = None


@frozen(kw_only=True)
class Refusal:
    """A part in which an assistant refused."""

    type: str
    refusal: str


@frozen(kw_only=True)
class Message:
    """A message of a chat."""

    role: str
    content: str | list[Any]
    type: str = "message"
    id: str | None = None
    status: str | None = None
    phase: str | None = None


@frozen(kw_only=True)
class FunctionCall:
    """A call of a function."""

    type: str
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    namespace: str | None = None
    status: str | None = None


@frozen(kw_only=True)
class CustomToolCall:
    """A call of a tool that takes a text."""

    type: str
    call_id: str
    name: str
    input: str
    id: str | None = None
    namespace: str | None = None
    status: str | None = None


@frozen(kw_only=True)
class CallOutput:
    """What a call returned."""

    type: str
    call_id: str
    output: str | list[Any]
    id: str | None = None
    status: str | None = None


@frozen(kw_only=True)
class Predicate:
    """A statement that is true or not."""

    type: str
    instructions: str | list[Any]
    name: str | None = None


@frozen(kw_only=True)
class ChoiceValue:
    """One of the values to choose from."""

    value: str | bool
    description: str | None = None


@frozen(kw_only=True)
class Choice:
    """A choice between values."""

    type: str
    instructions: str | list[Any]
    choices: list[ChoiceValue]
    name: str | None = None


@frozen(kw_only=True)
class Level:
    """A level of a score."""

    label: str
    description: str | None = None


@frozen(kw_only=True)
class Score:
    """A place on an ordered scale, lowest level first."""

    type: str
    instructions: str | list[Any]
    levels: list[Level]
    name: str | None = None


TEXT: Mapping[str, type] = {"input_text": InputText}
TEXT_AND_JSON: Mapping[str, type] = {"input_text": InputText, "input_json": InputJson}
SPOKEN: Mapping[str, type] = {"output_text": InputText, "refusal": Refusal}
PARTS = {"user": TEXT_AND_JSON, "developer": TEXT, "system": TEXT, "assistant": SPOKEN}
"""Role to the kinds of parts that its messages may have."""

ITEMS: Mapping[str, type] = {
    "message": Message,
    "function_call": FunctionCall,
    "function_call_output": CallOutput,
    "custom_tool_call": CustomToolCall,
    "custom_tool_call_output": CallOutput,
}
QUESTIONS: Mapping[str, type] = {"predicate": Predicate, "choice": Choice, "score": Score}


class DecisionShapes:
    """Structures the objects of this wire, strictly."""

    def __init__(self) -> None:
        self._structurer = Structurer()

    def one_of(self, kinds: Mapping[str, type], value: Any, what: str, default: str | None = None) -> Any:
        """A value as an instance of the class that its ``type`` names.

        Raises:
            RequestError: It is of another type, or not as its class says. Paths start at the value.
        """
        if not isinstance(value, dict):
            raise mismatch("an object with a type", value)
        kind = value.get("type", default)
        if not isinstance(kind, str) or kind not in kinds:
            if isinstance(kind, str) and kind.startswith(MEDIA_PARTS):
                msg = f"{what} of type {kind[:40]!r}: this server reads text and JSON only, no images, audio or files"
                raise RequestError.at(("type",), msg, "unsupported_content")
            found = f"unknown type {kind[:40]!r}" if isinstance(kind, str) else "no type that is a string"
            raise RequestError.at(("type",), f"{what} has {found}; accepted: {', '.join(kinds)}", "unknown_type")
        return self._structurer.structure(value, kinds[kind])

    def texts(self, content: str | list[Any], kinds: Mapping[str, type]) -> str | list[str]:
        """A string as it is; parts as their texts, or as one text with a line for each where some are JSON.

        Raises:
            RequestError: A part is not one that stands here. Paths start at the content.
        """
        if isinstance(content, str):
            return content
        parts = each(content, lambda part: self.one_of(kinds, part, "a part"))
        texts = each(parts, part_text)
        return "\n".join(texts) if any(isinstance(part, InputJson) for part in parts) else texts


def part_text(part: InputText | InputJson | Refusal) -> str:
    """A part as the model reads it.

    Raises:
        RequestError: It is more JSON than a part may hold.
    """
    if isinstance(part, InputJson):
        return json_text(part.data)
    return part.refusal if isinstance(part, Refusal) else part.text


def json_text(data: Any) -> str:
    """The data of an ``input_json`` part as compact JSON.

    Raises:
        RequestError: It is deeper or larger than this wire allows.
    """
    if deeper_than(MAX_JSON_DEPTH, data):
        msg = f"nested too deep: more than {MAX_JSON_DEPTH} arrays and objects inside one another"
        raise RequestError.at(("data",), msg)
    if (count := value_count(data)) > MAX_JSON_VALUES:
        raise RequestError.at(("data",), f"a part holds at most {MAX_JSON_VALUES} JSON values, found {count}")
    text = compact(data)
    if (size := len(text.encode())) > MAX_JSON_BYTES:
        raise RequestError.at(("data",), f"a part holds at most {MAX_JSON_BYTES} bytes of compact JSON, found {size}")
    return text


def value_count(data: Any) -> int:
    """The values in a JSON value, itself among them."""
    if not isinstance(data, (dict, list)):
        return 1
    return 1 + sum(map(value_count, data.values() if isinstance(data, dict) else data))


def each(values: Iterable[S], structure: Callable[[S], T]) -> list[T]:
    """Every value structured; problems are collected, each under its position.

    Raises:
        RequestError: With the problems.
    """
    structured: list[T] = []
    problems: list[Problem] = []
    for index, value in enumerate(values):
        try:
            structured.append(structure(value))
        except RequestError as error:
            problems.extend(error.under(index).problems)
            if len(problems) > MAX_PROBLEMS:
                break
    if problems:
        raise RequestError(problems)
    return structured
