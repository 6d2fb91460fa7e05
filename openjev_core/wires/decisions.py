"""OpenAI's ``POST /v1/decisions``: input items in, answers in the questions' order out.

A predicate is a noul, a choice is a choice over positions (so the boolean ``true`` and the string ``"true"`` are two),
and a score is a score whose levels read ``label: description``. Input items are a chat.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from attrs import define, field

from openjev_core.engine.evaluation import Evaluation
from openjev_core.errors import Loc, Problem, RequestError
from openjev_core.json_document import parse_document
from openjev_core.plugins.problems import mismatch
from openjev_core.wires.decision_shapes import (
    ITEMS,
    PARTS,
    QUESTIONS,
    TEXT,
    TEXT_AND_JSON,
    CallOutput,
    Choice,
    CustomToolCall,
    DecisionShapes,
    FunctionCall,
    Message,
    Predicate,
    Score,
    each,
)

TYPES = {"predicate": "noul", "choice": "choice", "score": "score"}
"""Question types of this wire, and the installed ones that answer them."""

FEWEST_CHOICES = 2
"""Choices of a question; a score may have one level."""

REQUIRED = ("model", "input", "questions")

Question = Predicate | Choice | Score


@define
class Chat:
    """Input items as the messages of a chat.

    Attributes:
        messages: As the engine takes them.
        places: For each message, the path of its item; empty for one that holds calls.
        calls: For each message, the paths of its calls.
    """

    _shapes: DecisionShapes
    messages: list[dict[str, Any]] = field(factory=list)
    places: list[Loc] = field(factory=list)
    calls: list[list[Loc]] = field(factory=list)
    _known: dict[str, type] = field(factory=dict)

    def add(self, index: int, value: Any) -> None:
        """Add the item at a position of the input.

        Raises:
            RequestError: It is none. Paths start at the item.
        """
        item = self._shapes.one_of(ITEMS, value, "an input item", default="message")
        place: Loc = ("input", index)
        if isinstance(item, Message):
            if item.role not in PARTS:
                msg = f"unknown role {item.role[:40]!r}; accepted: {', '.join(PARTS)}"
                raise RequestError.at(("role",), msg)
            content = self._content(item.content, PARTS[item.role], "content")
            self._append({"role": item.role, "content": content}, place)
        elif isinstance(item, CallOutput):
            call = self._known.get(item.call_id)
            if call is not ITEMS[item.type.removesuffix("_output")]:
                msg = f"no {item.type.removesuffix('_output')} before it has this call_id; an output follows its call"
                raise RequestError.at(("call_id",), msg)
            content = self._content(item.output, TEXT, "output")
            self._append({"role": "tool", "tool_call_id": item.call_id, "content": content}, place)
        else:
            self._add_call(item, place)

    def _add_call(self, item: FunctionCall | CustomToolCall, place: Loc) -> None:
        if item.call_id in self._known:
            raise RequestError.at(("call_id",), "another call has the same call_id; each call needs its own")
        self._known[item.call_id] = type(item)
        name = f"{item.namespace}.{item.name}" if item.namespace else item.name
        if isinstance(item, FunctionCall):
            call = {"id": item.call_id, "type": "function", "function": {"name": name, "arguments": item.arguments}}
        else:
            call = {"id": item.call_id, "type": "custom", "custom": {"name": name, "input": item.input}}
        if not self.messages or "tool_calls" not in self.messages[-1]:
            self._append({"role": "assistant", "content": None, "tool_calls": []}, ())
        self.messages[-1]["tool_calls"].append(call)
        self.calls[-1].append(place)

    def _append(self, message: dict[str, Any], place: Loc) -> None:
        self.messages.append(message)
        self.places.append(place)
        self.calls.append([])

    def _content(self, content: str | list[Any], kinds: Mapping[str, type], name: str) -> Any:
        try:
            texts = self._shapes.texts(content, kinds)
        except RequestError as error:
            raise error.under(name) from error
        return texts if isinstance(texts, str) else [{"type": "text", "text": text} for text in texts]

    def place(self, index: int, rest: Loc) -> Loc:
        """The path of the item that a path inside a message was made from."""
        match rest:
            case ("tool_calls", int(call), *_):
                return self.calls[index][call]
        return self.places[index] or ("input",)


@define
class DecisionsRequest:
    """One request of this wire.

    Attributes:
        installed: Names of the question types that are installed.
        questions: As the client sent them, once the body is read.
    """

    _shapes: DecisionShapes
    installed: Collection[str]
    questions: list[Question] = field(factory=list)
    _chat: Chat | None = None

    def document(self, body: bytes) -> dict[str, Any]:
        """The request as the engine's document: a question's id is its position. Other fields stay as they are.

        Raises:
            RequestError: The body is no request of this wire.
        """
        sent = parse_document(body)
        if not isinstance(sent, dict):
            raise mismatch("an object with model, input and questions", sent)
        problems = [Problem((n,), "missing; this field is required", "missing") for n in REQUIRED if n not in sent]
        document = {name: value for name, value in sent.items() if name not in ("input", "questions", "state")}
        for name, key, read in (("input", "state", self._state), ("questions", "questions", self._questions)):
            if name not in sent:
                continue
            try:
                document[key] = read(sent[name])
            except RequestError as error:
                problems.extend(error.under(name).problems)
        if problems:
            raise RequestError(problems)
        return document

    def _state(self, sent: Any) -> str | list[Any]:
        if isinstance(sent, str):
            return sent
        if not isinstance(sent, list) or not sent:
            raise mismatch("a string or a non-empty array of items", sent)
        self._chat = chat = Chat(self._shapes)
        each(enumerate(sent), lambda item: chat.add(*item))
        return chat.messages

    def _questions(self, sent: Any) -> dict[str, dict[str, Any]]:
        if not isinstance(sent, list):
            raise mismatch("an array of questions", sent)
        self.questions = []
        return {str(index): question for index, question in enumerate(each(sent, self._question))}

    def _question(self, sent: Any) -> dict[str, Any]:
        """One question as the engine takes it. Its client's form is remembered."""
        question: Question = self._shapes.one_of(QUESTIONS, sent, "a question")
        name = TYPES[question.type]
        if name not in self.installed:
            msg = f"a {question.type} is answered by the question type {name!r}, which this server does not have"
            raise RequestError.at(("type",), msg, "unknown_type")
        try:
            texts = self._shapes.texts(question.instructions, TEXT_AND_JSON)
        except RequestError as error:
            raise error.under("instructions") from error
        self.questions.append(question)
        asked: dict[str, Any] = {"type": name, "instructions": texts if isinstance(texts, str) else "\n".join(texts)}
        if isinstance(question, Choice):
            asked["criteria"] = choice_criteria(question)
        if isinstance(question, Score):
            levels = question.levels
            asked["criteria"] = [f"{one.label}: {one.description}" if one.description else one.label for one in levels]
        return asked

    def answered(self, evaluation: Evaluation) -> dict[str, Any]:
        """The response's body."""
        usage = evaluation.usage
        return {
            "model": evaluation.model,
            "answers": [
                written_answer(question, answer)
                for question, answer in zip(self.questions, evaluation.answers.values(), strict=True)
            ],
            "usage": {
                "input_tokens": usage.input_tokens,
                "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": 0},
                "output_tokens": usage.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.input_tokens + usage.output_tokens,
            },
        }

    def located(self, error: RequestError) -> RequestError:
        """The engine's error, with paths into the client's own body."""
        return RequestError([Problem(self._place(p.loc), p.msg, p.type) for p in error.problems])

    def _place(self, loc: Loc) -> Loc:
        match loc:
            case ("state", int(index), *rest) if self._chat is not None:
                return self._chat.place(index, tuple(rest))
            case ("state", *_):
                return ("input",)
            case ("questions", str(number), *rest) if number.isdecimal():
                return ("questions", int(number), *question_place(self.questions[int(number)], tuple(rest)))
        return loc


def choice_criteria(question: Choice) -> dict[str, str]:
    """What the model reads for each value, by position: its description, or the value itself where there is none.

    Raises:
        RequestError: There are fewer than this wire allows, or two values are equal and of one type.
    """
    if len(question.choices) < FEWEST_CHOICES:
        msg = f"a choice takes {FEWEST_CHOICES} choices or more, found {len(question.choices)}"
        raise RequestError.at(("choices",), msg, "option_count")
    seen: set[tuple[type, str | bool]] = set()
    criteria: dict[str, str] = {}
    for index, choice in enumerate(question.choices):
        value = choice.value
        if (type(value), value) in seen:
            raise RequestError.at(("choices", index, "value"), "an earlier choice has this value; each needs its own")
        seen.add((type(value), value))
        text = str(value).lower() if isinstance(value, bool) else value
        criteria[str(index)] = text if choice.description is None else choice.description
    return criteria


def written_answer(question: Question, answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as this wire writes it. One whose question type failed is a refusal."""
    more = {name: value for name, value in answer.items() if name.startswith("x_")}
    if "x_error" in answer:
        return {"type": "refusal", "name": question.name, **more}
    written: dict[str, Any] = {"type": question.type, "name": question.name}
    if isinstance(question, Predicate):
        return {**written, "probability": answer["noul"], **more}
    probabilities = list(answer["probabilities"].values())
    if isinstance(question, Choice):
        values = [choice.value for choice in question.choices]
        written["choice"] = values[int(answer["choice"])]
        written["probabilities"] = [
            {"value": value, "probability": p} for value, p in zip(values, probabilities, strict=True)
        ]
    else:
        written["score"] = answer["score"]
        written["probabilities"] = [
            {"value": index, "label": level.label, "probability": p}
            for index, (level, p) in enumerate(zip(question.levels, probabilities, strict=True))
        ]
    return {**written, "confidence": answer["confidence"], **more}


def question_place(question: Question, rest: Loc) -> Loc:
    """A path inside an engine's question, as one inside the client's."""
    if rest[:1] != ("criteria",):
        return rest[:1] if rest[:1] == ("instructions",) else ()
    name = {"choice": "choices", "score": "levels"}.get(question.type)
    if name is None:
        return ()
    return (name, *(int(part) for part in rest[1:2]))
