"""The plugin contract: what a question type is.

The engine knows readouts only. A *readout* is one read of the model's first output token over a small set of labels;
a *question type* turns a question into readouts, and their distributions into an answer. Everything here is a frozen
record; a plugin makes one :class:`QuestionType` and returns it from its hook.

This module knows nothing of prompts, tokenizers, HTTP or any one question type.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from attrs import field, frozen, validators

from openjev_core.errors import InvalidQuestion, Loc
from openjev_core.json_document import compact

CONTRACT_VERSION = 1
"""The version of this contract. A question type states the one that it was written for."""

Content = str | dict[str, Any] | list[Any]
"""A text field of the wire: a string, or JSON that is shown to the model in its compact form."""

Q = TypeVar("Q")
A = TypeVar("A")

NAME_PATTERN = re.compile(r"[a-z][a-z0-9_-]{0,63}")
LINE_BREAK = re.compile("\r\n|[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")


def _tuple(items: Any) -> Any:
    """Several things as a tuple. One thing is left as it is: a string is none of letters, and is refused by name."""
    return tuple(items) if isinstance(items, Iterable) and not isinstance(items, str) else items


@frozen(kw_only=True)
class Option:
    """One thing that a readout's answer can be.

    Attributes:
        key: The reducer's handle. Never on the wire, never shown to the model; unique in its readout.
        text: What the model reads beside the label.
        label: ``None`` for the engine's label by position (``A``, ``B``, ...), or one of the type's own
            :attr:`QuestionType.labels`, which then travels with the option when the order changes. All of a
            readout's options have one, or none has.
    """

    key: Hashable
    text: str
    label: str | None = None


@frozen(kw_only=True)
class Readout:
    """One first-token read over a set of options.

    Attributes:
        text: The question's words, without outer white space. What the readouts of one question share should stand
            first and what differs last: the engine reads a shared beginning once.
        options: From 1 to the server's ``max_answers`` options, in their given order. One alone is certain: it is not
            read, and its distribution is (1,).
        key: The plugin's own handle, to recognise the readout in ``reduce``.
        loc: Where in the question an error about this readout points, such as ``("criteria",)``.
        ordered: The order carries meaning (a rubric). Only that order and its reverse are shown, and ``confidence``
            uses the ordinal form of the configured formula.
        permute: ``False`` forbids every other order than the given one.
    """

    text: str
    options: tuple[Option, ...] = field(converter=_tuple)
    key: Hashable = None
    loc: Loc = ()
    ordered: bool = False
    permute: bool = True


@frozen
class Distribution:
    """What one readout's options got, in their given order.

    Attributes:
        readout: The readout that was read.
        probabilities: One per option of ``readout.options``; they sum to 1.
        confidence: In [0, 1], by the server's configured formula.
        spread: How far the orders disagreed: the largest difference, over options, between two orders'
            probabilities. 0 when one order was read.
        label_mass: How much of the probability of all that the model could have answered the options hold, in [0, 1]:
            the mean over the orders; ``None`` where the engine does not say. A small one means that the model would
            have written something else, and that the probabilities say little.
        logprobs: As the engine read them, for each order that was read: one per option in their given order, in nats,
            before priors, temperatures and calibrations. Only differences mean something. Empty where nothing was
            read: also where `openjev eval` tries what a label means.
    """

    readout: Readout
    probabilities: tuple[float, ...]
    confidence: float
    spread: float = 0.0
    label_mass: float | None = None
    logprobs: tuple[tuple[float, ...], ...] = ()

    def __getitem__(self, key: Hashable) -> float:
        """The probability of the option whose key is ``key``; ``KeyError`` when there is none."""
        for option, probability in zip(self.readout.options, self.probabilities, strict=True):
            if option.key == key:
                return probability
        raise KeyError(key)

    @property
    def mode(self) -> int:
        """The position of the most probable option, the first on ties."""
        return self.probabilities.index(max(self.probabilities))

    @property
    def top(self) -> Option:
        """The most probable option, the first on ties."""
        return self.readout.options[self.mode]


Rounds = Generator[Readout | Sequence[Readout], Sequence[Distribution], None]
"""What a ``readouts`` that asks on returns: a generator whose ``yield`` of a sequence gives the distributions."""


def content_text(content: Content) -> str:
    """A text field as the model reads it: a string without outer white space, anything else as compact JSON."""
    return content.strip() if isinstance(content, str) else compact(content)


def question_text(instructions: Content | None, otherwise: str) -> str:
    """What a question asks, as the model reads it: its instructions, or ``otherwise`` where it has none.

    Args:
        instructions: The question's field of that name.
        otherwise: The general question of the type.

    Raises:
        InvalidQuestion: The instructions are blank. They would leave the model without a question, and whoever wrote
            them without the general one that they may have meant.
    """
    if instructions is None:
        return otherwise
    text = content_text(instructions)
    if not text:
        raise InvalidQuestion(
            "blank instructions ask nothing; write what to judge, or leave the field out for a general question",
            ("instructions",),
        )
    return text


def indent_continuation(text: str) -> str:
    """Indent every line but the first by two spaces, so that no line of ``text`` can pass for a line of the prompt.

    Every separator that a reader or tokenizer may take for a line break counts, not the line feed alone.
    """
    # No separator is printable; asking that first takes a tenth of the time of looking for each.
    return text if text.isprintable() else LINE_BREAK.sub(lambda m: m.group() + "  ", text)


@frozen
class PromptWords:
    """The fixed words of a prompt, in the language of its questions. A setting says them: ``OPENJEV_PROMPT_WORDS``.

    Attributes:
        question: Stands before what a suffix says.
        options: Stands above the options.
        answer: Stands before the label, on a line of its own.
    """

    question: str = "Question:"
    options: str = "Options:"
    answer: str = "Answer:"


ENGLISH = PromptWords()


def standard_suffix(readout: Readout, labelled: Sequence[tuple[str, Option]], words: PromptWords = ENGLISH) -> str:
    """The standard form of a readout: its words, a blank line, ``Options:``, and one ``label: text`` line per option.

    Args:
        readout: The readout to write.
        labelled: ``(label, option)`` pairs in the order in which they are shown.
        words: The prompt's fixed words, of which this writes the one above the options.

    Returns:
        What follows ``Question: `` in the prompt, up to the last option, without outer white space: an option without
        text is its label and a colon, and a readout without words begins with ``Options:``.
    """
    lines = [f"{label}: {indent_continuation(option.text)}".rstrip() for label, option in labelled]
    text = f"{indent_continuation(readout.text)}\n\n" if readout.text else ""
    return f"{text}{words.options}\n" + "\n".join(lines)


@frozen
class NoSettings:
    """The settings of a question type or an engine that has none of its own."""


@frozen(kw_only=True)
class QuestionType(Generic[Q, A]):
    """A question type: the whole of what a plugin gives to the engine.

    ``readouts``, ``reduce``, ``suffix`` and ``target`` may name a parameter ``settings``, and get the type's own.

    Attributes:
        name: The wire's ``type`` tag: a lower-case slug of at most 64 characters.
        summary: One line for ``openjev plugins list`` and the API reference.
        api: The contract version that the type was written for: the literal ``1``, never
            :data:`CONTRACT_VERSION`, which would always match.
        question: An attrs class without a ``type`` field. Requests are structured into it, strictly: what its
            validators and ``Annotated[int, msgspec.Meta(ge=1)]`` refuse is told with its path, and documented. A field
            whose name in JSON is none in Python says it: ``field(metadata={"wire": "class"})``.
        answer: An attrs class without a ``type`` field; what is answered is held to its annotations. Attributes beyond
            a client's expectation start with ``x_``.
        readouts: Question to readouts; may be a generator. Sees neither state nor question id. It and ``target``
            alone may raise :class:`~openjev_core.InvalidQuestion`. A generator that yields a *sequence* of readouts
            gets a tuple of their distributions as the value of that ``yield``, and may ask more; a single readout is
            waited for by no one. What it asks depends on the question and on its own distributions alone.
        reduce: The question and one distribution per readout, in the order asked, to an ``answer``. Pure.
        suffix: How a readout and its labelled options are written; :func:`standard_suffix` by default. It may name the
            parameters ``question``, which asks the readout, and ``words``, the prompt's fixed words.
        labels: The type's own labels. They are verified at start: each must be one token.
        examples: Valid questions, for checks, the smoke test and the API reference.
        target: What a label of a data file says about a readout: the question, the label as JSON (a text where the file
            has no other values) and the readout, to the key of the right option; ``None`` where it says nothing. It
            takes what the answer's first field holds, too: an answer is right where it says the same as the label. May
            raise :class:`~openjev_core.InvalidQuestion` for a label that means nothing. Without it, `openjev eval` and
            `openjev calibrate` try every combination of options, which a few readouts allow.
        settings: An attrs class of the type's own settings, each field made by :func:`~openjev_core.setting`. The field
            ``x`` of a type ``t`` is the variable ``OPENJEV_T_X`` and the flag ``--t-x``; a secret has no flag. Those in
            force stand in ``GET /v1/limits``.
        own: The settings in force, an instance of that class. openjev sets it.
    """

    name: str = field(
        validator=[validators.instance_of(str), validators.matches_re(NAME_PATTERN.pattern, func=re.fullmatch)]
    )
    summary: str = field(validator=validators.instance_of(str))
    api: int
    question: type[Q]
    answer: type[A]
    readouts: Callable[..., Iterable[Readout | Sequence[Readout]]]
    reduce: Callable[..., A]
    suffix: Callable[..., str] = standard_suffix
    labels: tuple[str, ...] = field(default=(), converter=_tuple)
    examples: tuple[Q, ...] = field(default=(), converter=_tuple)
    target: Callable[..., Hashable | None] | None = None
    settings: type = NoSettings
    own: Any = None
    _suffix_names_question: bool = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_suffix_names_question", names_parameter(self.suffix, "question"))

    def written(self, question: Q, readout: Readout, labelled: Sequence[tuple[str, Option]]) -> str:
        """What the type's suffix writes of a readout.

        Args:
            question: Asks the readout.
            readout: The readout.
            labelled: ``(label, option)`` pairs in the order in which they are shown.
        """
        if self._suffix_names_question:
            return self.suffix(readout, labelled, question=question)
        return self.suffix(readout, labelled)


def names_parameter(function: object, name: str) -> bool:
    """Whether a function names a parameter. What cannot be called, or does not tell, names none."""
    try:
        return callable(function) and name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
