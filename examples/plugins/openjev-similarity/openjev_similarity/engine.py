"""The reader: of a state and a readout, one log-probability per option."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from attrs import define, field, frozen
from tokenizers import Encoding

from openjev_core import (
    EngineStart,
    Limits,
    Model,
    OrderReading,
    PlannedReadout,
    PreparedQuestion,
    QuestionType,
    RequestError,
    StartupError,
    Usage,
    content_text,
)
from openjev_similarity.sentences import MAX_TOKENS, SentenceModel, load

SCALE = 20.0
"""A cosine times this is a log-probability, up to a constant: the softmax that the model was trained by."""

MAX_TEXTS = 4096
"""Options in a request: what ends a question type that asks for ever. 64 questions of 64 options are as many."""


async def similarity_model(start: EngineStart) -> Model:
    """The engine, ready to read.

    Raises:
        StartupError: The settings name a model, and this engine has one of its own.
    """
    if start.settings.model is not None:
        raise StartupError(
            f"engine similarity: expected no --model (OPENJEV_MODEL), found {start.settings.model!r}; its sentence "
            "model comes with it"
        )
    start.progress("loading the sentence model all-MiniLM-L6-v2; options are read by their own words, no question is")
    sentences = await asyncio.to_thread(load)
    reader = SimilarityReader(sentences)
    return Model(
        reader=reader,
        engine="similarity",
        public_name=start.settings.public_name or "all-MiniLM-L6-v2",
        limits=Limits.of(start.settings, MAX_TOKENS),
        wording="openjev-similarity-1",
        check=reader.check,
    )


@frozen
class SimilarityReader:
    """A sentence model, as a :class:`openjev_core.Reader`."""

    sentences: SentenceModel

    def session(self, state: str | dict[str, Any] | list[Any]) -> SimilaritySession:
        """A session on a state; one that is no text is read as JSON."""
        return SimilaritySession(self, self.encoded(content_text(state), ("state",)))

    def encoded(self, text: str, loc: tuple[str | int, ...]) -> Encoding:
        """A text's tokens.

        Raises:
            RequestError: There are too many.
        """
        encoding = self.sentences.encode(text)
        if len(encoding.ids) > MAX_TOKENS:
            msg = f"{len(encoding.ids)} tokens; the sentence model reads at most {MAX_TOKENS} as one text; shorten it"
            raise RequestError.at(loc, msg, "too_long")
        return encoding

    async def check(self) -> None:
        """Embed a word."""
        await asyncio.to_thread(self.sentences.embed, self.sentences.encode("check"))


@frozen
class ComparedReadout:
    """A readout, ready to be compared: a :class:`openjev_core.PreparedReadout`.

    Attributes:
        planned: The readout and its orders, which change nothing here: an option has no place.
        texts: What is compared with the state, per option.
        encodings: Their tokens.
    """

    planned: PlannedReadout
    texts: tuple[str, ...]
    encodings: tuple[Encoding, ...]

    @property
    def labels(self) -> Sequence[Sequence[str]]:
        """Options go by their number."""
        return [[str(number) for number in range(len(self.texts))] for _ in self.planned.orders]

    @property
    def keys(self) -> Sequence[bytes]:
        """The texts say what is read, in every order the same."""
        return ["\0".join(self.texts).encode()] * len(self.planned.orders)


@frozen(eq=False)
class ComparedQuestion:
    """A question's readouts: a :class:`openjev_core.PreparedQuestion`."""

    readouts: tuple[ComparedReadout, ...]


@define(eq=False)
class SimilaritySession:
    """A state, with which options are compared: a :class:`openjev_core.Session`.

    Attributes:
        reader: Its reader.
        state: The state's tokens.
        waited, prefill, reading: Seconds; nothing is waited for, the state and the options take the others.
    """

    reader: SimilarityReader
    state: Encoding
    waited: float = field(default=0.0, init=False)
    prefill: float = field(default=0.0, init=False)
    reading: float = field(default=0.0, init=False)
    _texts: int = field(default=0, init=False)
    _read: list[int] = field(factory=list, init=False)
    _vector: Any = field(default=None, init=False)

    def prepare(
        self,
        question_type: QuestionType[Any, Any],  # noqa: ARG002 - how a type words a prompt means nothing here
        readouts: Iterable[PlannedReadout],
        earlier: PreparedQuestion | None = None,
        question: Any = None,  # noqa: ARG002 - readouts say all
    ) -> ComparedQuestion:
        """Tokenize the options.

        Raises:
            RequestError: One is too long, or they are too many.
        """
        known = cast("ComparedQuestion | None", earlier)
        prepared = []
        for made in known.readouts if known is not None else map(self._compared, readouts):
            self._texts += len(made.texts)
            if self._texts > MAX_TEXTS:
                msg = f"more than {MAX_TEXTS} options to compare, over all questions; ask fewer"
                raise RequestError.at(made.planned.readout.loc, msg, "too_long")
            prepared.append(made)
        return known or ComparedQuestion(tuple(prepared))

    def _compared(self, planned: PlannedReadout) -> ComparedReadout:
        readout = planned.readout
        texts = tuple(option.text for option in readout.options)
        return ComparedReadout(planned, texts, tuple(self.reader.encoded(text, readout.loc) for text in texts))

    async def __aenter__(self) -> Self:
        if self._vector is None:
            started = time.perf_counter()
            self._vector = await asyncio.to_thread(self.reader.sentences.embed, self.state)
            self.prefill = time.perf_counter() - started
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def read(self, questions: Sequence[PreparedQuestion]) -> list[list[list[OrderReading]]]:
        """Compare the options of every readout with the state; once for all orders, which change nothing."""
        started = time.perf_counter()
        compared = cast("Sequence[ComparedQuestion]", questions)
        found = [[await self._compare(readout) for readout in question.readouts] for question in compared]
        self.reading += time.perf_counter() - started
        return found

    async def _compare(self, readout: ComparedReadout) -> list[OrderReading]:
        orders = len(readout.planned.orders)
        if not orders:
            return []
        # One text at a time, so that a cancelled evaluation stops.
        cosines = [await asyncio.to_thread(self._cosine, encoding) for encoding in readout.encodings]
        self._read += [sum(len(one.ids) for one in readout.encodings)] * orders
        return [OrderReading(tuple(SCALE * cosine for cosine in cosines))] * orders

    def _cosine(self, encoding: Encoding) -> float:
        return float(self._vector @ self.reader.sentences.embed(encoding))

    @property
    def usage(self) -> Usage:
        """Tokens of the state, once, and of every option; none is generated."""
        tokens = len(self.state.ids)
        return Usage(
            input_tokens=tokens + sum(self._read),
            output_tokens=0,
            prefix_tokens=tokens,
            branches=len(self._read),
            cached_tokens=None,
        )

    def shown(self, questions: Mapping[str, PreparedQuestion]) -> dict[str, Any]:
        """What is compared with what."""
        return {
            "prefix": " ".join(self.state.tokens),
            "prefix_tokens": [],
            "branches": [
                {
                    "question_id": question_id,
                    "readout": index,
                    "labels": {
                        label: option.text
                        for label, option in zip(labels, readout.planned.readout.options, strict=True)
                    },
                    "prompt": "\n".join(cast("ComparedReadout", readout).texts),
                    "tokens": [],
                }
                for question_id, question in questions.items()
                for index, readout in enumerate(question.readouts)
                for labels in readout.labels
            ],
        }
