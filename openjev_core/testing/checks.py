"""The checks that hold a question type to the contract.

Each rule looks at one thing and yields what it finds wrong, with the way to mend it. They run what the engine would
run: the registry's own fault finder, the strict converter, the planner's readout check, the label check on real
tokenizers, and the reducer on extreme distributions.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import attrs
from attrs import frozen

from openjev_core.asking import asked_of
from openjev_core.backends.protocol import Tokenizer
from openjev_core.errors import OpenJevError, PluginError, RequestError, StartupError
from openjev_core.plugins.contract import type_fault
from openjev_core.plugins.problems import raised
from openjev_core.plugins.registry import registry_of
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.plugins.writing import json_fault
from openjev_core.prompts.chat import answer_turn
from openjev_core.prompts.labels import LabelCheck
from openjev_core.question import ENGLISH, Distribution, QuestionType, Readout
from openjev_core.testing.scripted import distribution_of
from openjev_core.testing.tokenizers import INSTALL, real_tokenizers

MAX_ANSWERS = 64
MAX_READOUTS = 512
"""Readouts of an example that are looked at; a type that asks for more for an example asks for too many."""

ODD_VALUES: tuple[Any, ...] = (None, True, 0, -1, 1.5, "", " ", "x", [], ["x"], [None], {}, {"x": "y"}, {"x": None})
"""What a client may send in any field's place."""


Shape = Callable[[int, int], list[float]]
"""The probabilities of so many options, in the readout at a position."""


def _first(count: int, _: int) -> list[float]:
    return [1.0] + [0.0] * (count - 1)


def _last(count: int, _: int) -> list[float]:
    return [0.0] * (count - 1) + [1.0]


SHAPES: Mapping[str, Shape] = {
    "uniform": lambda count, _: [1 / count] * count,
    "certain of the first": _first,
    "certain of the last": _last,
    "half zeros": lambda count, _: [0.0 if i % 2 else 1 / math.ceil(count / 2) for i in range(count)],
    "skewed": lambda count, _: [2.0 ** -(i + 1) for i in range(count - 1)] + [2.0 ** -(count - 1)],
    "contradictory": lambda count, index: (_last if index % 2 else _first)(count, index),
}
"""Distributions at their extremes: certain of one place, uniform, with zeros, and readouts that contradict."""


@frozen
class Finding:
    """One way in which a question type or an engine breaks its contract.

    Attributes:
        rule: The rule's name.
        msg: What was found.
        fix: What to change.
    """

    rule: str
    msg: str
    fix: str


class ContractBroken(AssertionError):
    """A question type or an engine breaks its contract. The message lists every finding.

    Attributes:
        findings: What was found.
    """

    def __init__(self, what: str, found: Sequence[Finding]) -> None:
        self.findings = tuple(found)
        lines = [f"{finding.rule}: {finding.msg}; {finding.fix}" for finding in found]
        super().__init__(f"{what} breaks the contract:\n" + "\n".join(f"- {line}" for line in lines))


def check_question_type(
    question_type: QuestionType[Any, Any], tokenizers: Mapping[str, Tokenizer] | None = None
) -> None:
    """Prove a question type against the contract.

    Args:
        question_type: The type.
        tokenizers: Model name to tokenizer, to try its own labels on; when ``None``, those of the demo model and of
            Qwen3.6 that are installed. Asked for only when the type has labels of its own.

    Raises:
        ContractBroken: It breaks the contract.
        StartupError: The type has labels of its own, and no tokenizer is installed to try them on.
    """
    if found := findings(question_type, tokenizers):
        raise ContractBroken(f"question type {question_type.name!r}", found)


def findings(question_type: QuestionType[Any, Any], tokenizers: Mapping[str, Tokenizer] | None = None) -> list[Finding]:
    """Every way in which a question type breaks the contract; see :func:`check_question_type`."""
    if (fault := type_fault(question_type)) is not None:
        return [Finding("record", fault, "mend the record first: nothing else can be checked")]
    if not question_type.examples:
        fix = "give `examples=(...,)`: valid questions, which checks, the smoke test and the API reference use"
        return [Finding("examples", "there are none", fix)]
    question_type = registry_of(question_type).types[question_type.name]
    found = [finding for rule in RULES for finding in rule(question_type)]
    if question_type.labels:
        found.extend(_label_findings(question_type, tokenizers))
    return found


def _summary(question_type: QuestionType[Any, Any]) -> Iterator[Finding]:
    summary = question_type.summary
    if not summary.strip() or "\n" in summary:
        yield Finding("summary", f"it is {summary!r}", "say in one line what the type answers")


def _round_trip(question_type: QuestionType[Any, Any]) -> Iterator[Finding]:
    """A question that is written as JSON and read again is the same question."""
    converter = QuestionConverter(registry_of(question_type))
    for index, example in enumerate(question_type.examples):
        rule = f"structure, example {index}"
        if type(example) is not question_type.question:
            fix = f"make examples instances of {question_type.question.__name__}"
            yield Finding(rule, f"it is a {type(example).__name__}", fix)
            continue
        try:
            wire = converter.wire_question(question_type, example)
            fault = json_fault(wire)
            back = None if fault else converter.question(wire)[1]
        except OpenJevError as error:
            fix = "give an example that a client could send: its class has to accept it"
            yield Finding(rule, f"its JSON does not structure: {_said(error)}", fix)
            continue
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is the finding
            yield Finding(rule, f"it cannot be written as JSON: {raised(error)}", "use types of JSON in the class")
            continue
        if fault:
            yield Finding(rule, f"it holds {fault}", "use types of JSON in the question class")
        elif back != example:
            fix = "give the class value equality (attrs.frozen), and no converter that changes its own results"
            yield Finding(rule, f"it comes back from JSON as {back!r}", fix)


def _readouts(question_type: QuestionType[Any, Any]) -> Iterator[Finding]:
    """Every example gives readouts that the engine takes, the same ones each time, whatever is read of them."""
    for index, example in enumerate(question_type.examples):
        for kind, shape in SHAPES.items():
            rule = f"readouts, example {index}" + ("" if kind == "uniform" else f", {kind}")
            try:
                first, second = (_asked(question_type, example, shape) for _ in range(2))
            except OpenJevError as error:
                whose = "readouts" if isinstance(error, PluginError) else "example, which has to be a valid question"
                yield Finding(rule, _said(error), f"mend the {whose}")
                break
            if not first:
                yield Finding(rule, "there are none", "yield at least one Readout")
            if len(first) >= MAX_READOUTS:
                yield Finding(rule, f"there are {MAX_READOUTS} or more", "bound the readouts of a question")
            if first != second:
                fix = "depend on the question and its distributions alone: no clock, no chance"
                yield Finding(rule, "they differ from one call to the next", fix)
            if not first or len(first) >= MAX_READOUTS or first != second:
                break


def _closing(question_type: QuestionType[Any, Any]) -> Iterator[Finding]:
    """A generator that is closed while it waits ends, as where a client hangs up."""
    try:
        given = question_type.readouts(question_type.examples[0])
        if not isinstance(given, Generator):
            return
        next(given, None)
    except (Exception, SystemExit):  # noqa: BLE001 - another rule reports it
        return
    try:
        given.close()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is the finding
        fix = "let GeneratorExit pass, and clean up in a finally"
        yield Finding("readouts, closed early", f"it raised {raised(error)}", fix)


def _suffixes(question_type: QuestionType[Any, Any]) -> Iterator[Finding]:
    """A suffix shows every label and every option's text, the same way each time."""
    for index, example in enumerate(question_type.examples):
        rule = f"suffix, example {index}"
        for readout in _valid_readouts(question_type, example):
            labelled = [(option.label or f"L{n}", option) for n, option in enumerate(readout.options)]
            try:
                words, again = (question_type.written(example, readout, labelled) for _ in range(2))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is the finding
                yield Finding(rule, f"it raised {raised(error)}", "write every readout that the type makes")
                break
            if not isinstance(words, str) or words != words.strip():
                yield Finding(rule, "it is no string without outer white space", "return the stripped text")
                break
            if words != again:
                yield Finding(rule, "it differs from one call to the next", "depend on the arguments alone")
                break
            if missing := [label for label, _ in labelled if label not in words]:
                fix = "show every label: the model can only answer with what it has read"
                yield Finding(rule, f"labels are not shown: {', '.join(missing[:5])}", fix)
                break


def _reducer(question_type: QuestionType[Any, Any]) -> Iterator[Finding]:
    """The reducer answers every distribution there can be, and changes nothing."""
    converter = QuestionConverter(registry_of(question_type))
    for index, example in enumerate(question_type.examples):
        for kind, shape in SHAPES.items():
            distributions = _valid(question_type, example, shape)
            if not distributions:
                break
            rule = f"reduce, example {index}, {kind}"
            before = copy.deepcopy(example)
            try:
                answers = [question_type.reduce(example, list(distributions)) for _ in range(2)]
                bodies = [converter.answer(question_type, answer) for answer in answers]
            except PluginError as error:
                fix = f"return an instance of {question_type.answer.__name__} that its annotations and JSON can hold"
                yield Finding(rule, _said(error), fix)
                break
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is the finding
                fix = "answer every distribution: zeros, ties and certainty happen"
                yield Finding(rule, f"it raised {raised(error)}", fix)
                break
            if bodies[0] != bodies[1]:
                yield Finding(rule, "two calls gave two answers", "depend on the arguments alone: no clock, no chance")
                break
            if before != example and before == copy.deepcopy(before):
                yield Finding(rule, "it changed the question", "make the reducer pure")
                break


def _odd_requests(question_type: QuestionType[Any, Any]) -> Iterator[Finding]:
    """Whatever stands in a field is answered or refused with a path, never a crash."""
    converter = QuestionConverter(registry_of(question_type))
    example = question_type.examples[0]
    if type(example) is not question_type.question or not _valid(question_type, example, SHAPES["uniform"]):
        return  # another rule reports it
    wire = converter.wire_question(question_type, example)
    for field in attrs.fields(question_type.question):
        for odd in ODD_VALUES:
            try:
                _, question = converter.question({**wire, field.name: odd})
                _asked(question_type, question, SHAPES["uniform"])
            except RequestError as error:
                if any(not problem.loc for problem in error.problems):
                    msg = f"{field.name}={odd!r} is refused without a path: {error}"
                    yield Finding("errors", msg, f'raise InvalidQuestion(msg, ("{field.name}",)) or set Readout.loc')
                    break
            except PluginError as error:
                fix = f"refuse it: raise InvalidQuestion(msg, ({field.name!r},)), or type the field more narrowly"
                yield Finding("errors", f"{field.name}={odd!r}: {_said(error)}", fix)
                break


RULES: tuple[Callable[[QuestionType[Any, Any]], Iterator[Finding]], ...] = (
    _summary,
    _round_trip,
    _readouts,
    _closing,
    _suffixes,
    _reducer,
    _odd_requests,
)


def _label_findings(
    question_type: QuestionType[Any, Any], tokenizers: Mapping[str, Tokenizer] | None
) -> Iterator[Finding]:
    """Each of the type's own labels is one token of every tokenizer."""
    if tokenizers is None:
        with real_tokenizers() as real:
            if not real:
                raise StartupError(f"labels are tried on a real tokenizer, and none is installed: {INSTALL}")
            yield from list(_label_findings(question_type, real))
        return
    for model, tokenizer in tokenizers.items():
        answer = answer_turn(ENGLISH)
        check = LabelCheck(tokenizer, answer, tokenizer.encode(answer))
        for label in question_type.labels:
            outcome = check.token_of(label)
            if isinstance(outcome, str):
                fix = "choose a label that is one token, or none (label=None) for the engine's own"
                yield Finding("labels", f"{label!r} does not work on {model}: {outcome}", fix)


def _asked(question_type: QuestionType[Any, Any], question: Any, shape: Shape) -> list[Distribution]:
    """Every readout that a type asks for where distributions have a shape, held to the contract."""

    def read(readout: Readout, index: int) -> Distribution:
        return distribution_of(readout, shape(len(readout.options), index))

    return list(asked_of(question_type, question, read, MAX_READOUTS, MAX_ANSWERS))


def _valid(question_type: QuestionType[Any, Any], example: Any, shape: Shape) -> list[Distribution]:
    """An example's readouts, read; none when they are invalid, which another rule reports."""
    try:
        return _asked(question_type, example, shape)
    except OpenJevError:
        return []


def _valid_readouts(question_type: QuestionType[Any, Any], example: Any) -> list[Readout]:
    """Every readout that an example may lead to. A type that asks on may ask something else in each shape."""
    asked: list[list[Readout]] = []
    for shape in SHAPES.values():
        readouts = [one.readout for one in _valid(question_type, example, shape)]
        if readouts not in asked:
            asked.append(readouts)
    return [readout for readouts in asked for readout in readouts]


def _said(error: OpenJevError) -> str:
    """An error, with what the type's own code raised and where."""
    if not isinstance(error, PluginError):
        return str(error)
    cause = error.__cause__
    return error.rule if cause is None else f"{error.rule.removesuffix(type(cause).__name__)}{raised(cause)}"
