"""Fitted corrections to label logprobs: what a calibration file says and how it is applied.

Fitting is not done here; this module reads a file and knows the formula. An option's score is
``logprob / temperature + bias[option]``, and the probabilities are the softmax of the scores (Guo et al. 2017:
temperature scaling, and with a bias per option a vector scaling whose factors are all the same). Where several orders
are read, each is corrected, then they are averaged.

Biases belong to the options of one question, and never to letters: letters cancel where all orders are read, and a bias
that was fitted on one question's base rates is wrong for the next. What every question of a type shares is the
temperature alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from attrs import field, frozen

from openjev_core.errors import StartupError

FORMAT = 2

LEAST_TEMPERATURE = 0.001
"""Below it logprobs divided by it would no longer be numbers to tell apart; fits stay far above."""

Applied = Literal["question", "type", "none"]
"""Which part of a calibration applied: what was fitted on this question, on its type, or nothing."""


@frozen(kw_only=True)
class TypePart:
    """What is applied to the questions of a type that the file does not know.

    Attributes:
        prompt: Digest of the prompts that the type wrote when it was fitted.
        temperature: Divides the label logprobs; 1 where that was not seen to help.
        kept: Whether it is applied.
        why: What decided that, for people.
        questions, rows, readouts: How many different ones it was fitted on.
    """

    prompt: str
    temperature: float
    kept: bool
    why: str
    questions: int
    rows: int
    readouts: int


@frozen(kw_only=True)
class QuestionPart:
    """What is applied to one readout of a question.

    Attributes:
        type: Its question type.
        text: The readout's words, shortened; for people.
        options: Its options' texts, in canonical order; for people.
        temperature: Divides the label logprobs.
        bias: What is added to each option's score, in nats and in canonical order; empty for none.
        form: What was kept: ``none``, ``pooled``, ``temperature`` or ``temperature and bias``.
        why: What decided that, for people.
        rows, readouts: How many it was fitted on.
    """

    type: str
    text: str
    options: Sequence[str]
    temperature: float
    bias: Sequence[float] = ()
    form: str
    why: str
    rows: int
    readouts: int


@frozen(kw_only=True)
class Acceptance:
    """From which probability on the answers to one question are accepted.

    Attributes:
        type: The question's type.
        text: The words of its first readout, shortened; for people.
        threshold: On the product, over the question's readouts, of the most probable option's probability; ``None``
            where none can be promised.
        words: What it rests on, for people.
        rows, kept, wrong: Labelled rows that it was tried on, how many of these have answers at or above it, and how
            many of those are wrong.
        more: Rows that it would take about, beyond those there were, where there is none; ``None`` where it is out of
            reach.
    """

    type: str
    text: str
    threshold: float | None
    words: str
    rows: int
    kept: int
    wrong: int
    more: int | None


@frozen(kw_only=True)
class Promise:
    """What is promised of accepted answers.

    Attributes:
        share: At least this share of them is right, for rows like those that it was made on.
        confidence: How sure that is, for each question.
        questions: Question's digest to the answers to it that are accepted.
    """

    share: float
    confidence: float
    questions: Mapping[str, Acceptance]

    @property
    def json(self) -> dict[str, float]:
        """What it promises."""
        return {"share": self.share, "confidence": self.confidence}


@frozen(kw_only=True)
class Calibration:
    """A calibration file.

    Attributes:
        format: Of the file: 2.
        model: Public name of the model that it was fitted on.
        template: Digest of that model's chat template.
        orders: How many orders each readout was read in.
        prior: Whether the label prior was divided out first.
        types: Question type name to what applies to questions of it that are not known.
        questions: A readout's digest to what applies to it.
        promise: What accepted answers are promised to be; ``None`` without a promise.
    """

    format: int
    model: str
    template: str
    orders: int | Literal["full"]
    prior: Literal["off", "contentless"]
    types: Mapping[str, TypePart]
    questions: Mapping[str, QuestionPart] = field(factory=dict)
    promise: Promise | None = None


@frozen
class Correction:
    """What is done to one readout's scores.

    Attributes:
        temperature: Divides them.
        bias: Is added to each, in the options' given order; empty for none.
        part: Where it comes from.
    """

    temperature: float = 1.0
    bias: Sequence[float] = ()
    part: Applied = "none"

    def scores(self, logprobs: Sequence[float]) -> list[float]:
        """The scores of one order, in the options' given order."""
        scaled = [value / self.temperature for value in logprobs]
        return [value + bias for value, bias in zip(scaled, self.bias, strict=True)] if self.bias else scaled


UNCORRECTED = Correction()


def read_calibration(path: str) -> Calibration:
    """Read a calibration file.

    Raises:
        StartupError: It is missing, is no calibration file, or holds a number that makes no sense.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise StartupError(f"OPENJEV_CALIBRATION: {path}: {error.strerror}; `openjev calibrate` writes one") from error
    try:
        found = msgspec.json.decode(content, type=dict[str, Any]).get("format")
        if found in range(1, FORMAT):
            raise StartupError(
                f"OPENJEV_CALIBRATION: {path} has format {found}, of an earlier openjev, whose biases belonged to "
                "letters and not to options; fit it anew with `openjev calibrate` on the same labelled rows"
            )
        calibration = msgspec.json.decode(content, type=Calibration)
    except msgspec.DecodeError as error:
        raise StartupError(f"OPENJEV_CALIBRATION: {path} is no calibration file: {error}") from error
    if calibration.format != FORMAT:
        raise StartupError(f"OPENJEV_CALIBRATION: {path} has format {calibration.format}; this openjev reads {FORMAT}")
    parts: list[TypePart | QuestionPart] = [*calibration.types.values(), *calibration.questions.values()]
    for part in parts:
        _check_numbers(path, part)
    return calibration


def _check_numbers(path: str, part: TypePart | QuestionPart) -> None:
    bias = part.bias if isinstance(part, QuestionPart) else ()
    if part.temperature < LEAST_TEMPERATURE or not all(map(math.isfinite, (part.temperature, *bias))):
        raise StartupError(
            f"OPENJEV_CALIBRATION: {path} has a temperature below {LEAST_TEMPERATURE:g} or a number that is not finite"
        )
    if isinstance(part, QuestionPart) and bias and len(bias) != len(part.options):
        raise StartupError(
            f"OPENJEV_CALIBRATION: {path} has {len(bias)} biases for the {len(part.options)} options of {part.text!r}"
        )


def write_calibration(calibration: Calibration, path: str) -> None:
    """Write a calibration file, for people to read too.

    Raises:
        StartupError: It cannot be written.
    """
    try:
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=2) + b"\n")
    except OSError as error:
        raise StartupError(f"{path}: cannot be written: {error.strerror or error}") from error


def digest(*parts: str) -> str:
    """Names texts that a calibration depends on."""
    # Each part's length stands before it, so that moving a border between parts changes the digest.
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(framed.encode("utf-8", "surrogatepass")).hexdigest()[:32]
