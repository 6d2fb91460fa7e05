"""From a request to a prefix and branches of token ids, within the limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from attrs import field, frozen

from openjev_core.backends.protocol import Branch
from openjev_core.errors import PluginError, RequestError
from openjev_core.prompts.bounded import TooManyTokens
from openjev_core.prompts.budget import Bounds, Budget, too_long
from openjev_core.prompts.chat import Prefix, PromptWriter
from openjev_core.prompts.labels import Labels
from openjev_core.prompts.orders import Order, orders_of
from openjev_core.prompts.readouts import check_readout, pull_readouts
from openjev_core.question import Option, QuestionType, Readout
from openjev_core.recent import Recent

SHARE_FROM = 32
"""Shared suffix tokens from which warming them by themselves is worth a call."""


KNOWN_TOKENS = 64 * 1024
"""Suffix tokens, and characters of ids, of the questions that are kept compiled; and of the sets of questions."""


@frozen
class Variant:
    """A readout in one order of its options.

    Attributes:
        order: Which option is shown where.
        labelled: ``(label, option)`` as shown.
        words: What the question type wrote.
        branch: Its token ids; ``branch.labels`` stand in the options' *given* order.
    """

    order: Order
    labelled: tuple[tuple[str, Option], ...]
    words: str
    branch: Branch


@frozen
class CompiledReadout:
    """A readout, once per order."""

    readout: Readout
    variants: tuple[Variant, ...]


@frozen
class CompiledQuestion:
    """One question's readouts.

    Attributes:
        id: The question's id.
        type: Its type.
        question: The structured question.
        readouts: In the order in which the type gave them.
        shared: Leading suffix tokens that all of its branches have in common and that are worth warming; else 0.
    """

    id: str
    type: QuestionType[Any, Any]
    question: Any
    readouts: tuple[CompiledReadout, ...]
    shared: int

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """Every branch, readout by readout, order by order."""
        return tuple(variant.branch for readout in self.readouts for variant in readout.variants)


@frozen
class Kept:
    """Questions that were compiled.

    Attributes:
        asked: As they came. What is kept is found by who they are, so no other object may come by their ids meanwhile.
        compiled: What became of them.
        tokens: How many each of their branches has of its own.
    """

    asked: tuple[object, ...]
    compiled: tuple[CompiledQuestion, ...]
    tokens: tuple[int, ...]

    @property
    def size(self) -> int:
        """Tokens of all branches and characters of all ids, which a client chooses and nothing else bounds."""
        return sum(self.tokens) + sum(len(one.id) for one in self.compiled)

    @classmethod
    def of(cls, asked: Iterable[object], compiled: Iterable[CompiledQuestion]) -> Kept:
        """What is kept of questions."""
        known = tuple(compiled)
        return cls(tuple(asked), known, tuple(len(branch.suffix) for one in known for branch in one.branches))


@frozen
class Compiled:
    """A request, ready for a backend.

    Attributes:
        prefix: The shared prefix.
        questions: In request order, without those that failed.
        failures: Question id to the error of its type; empty unless failures are allowed.
    """

    prefix: Prefix
    questions: tuple[CompiledQuestion, ...]
    failures: Mapping[str, PluginError]

    @property
    def branch_count(self) -> int:
        """How many branches all of them have."""
        return sum([len(question.branches) for question in self.questions])


@frozen
class Compiler:
    """Compiles requests for one model.

    Attributes:
        writer: Writes its prompts.
        labels: Its labels.
        bounds: What a request may ask for.
        lasting: Names of types whose questions never change and whose functions are known to depend on nothing else:
            the same question object is compiled once for a while, and so is the same set of them.
    """

    writer: PromptWriter
    labels: Labels
    bounds: Bounds
    lasting: frozenset[str] = frozenset()
    _known: Recent[tuple[int, str, int | str], Kept] = field(factory=lambda: Recent(KNOWN_TOKENS), repr=False)
    _sets: Recent[tuple[object, ...], Kept] = field(factory=lambda: Recent(KNOWN_TOKENS), repr=False)

    def compile(
        self,
        state: str | dict[str, Any] | list[Any],
        questions: Mapping[str, tuple[QuestionType[Any, Any], Any]],
        *,
        orders: int | Literal["full"] = 1,
        partial: bool = False,
    ) -> Compiled:
        """Write every prompt of a request.

        Args:
            state: As sent.
            questions: Question id to type and structured question.
            orders: How many orders of its options each readout is read in.
            partial: Record a failing type instead of raising.

        Raises:
            RequestError: The state, a question or a limit. Paths start at the body.
            PluginError: A question type broke its contract, and ``partial`` is false.
        """
        prefix = self._prefix(state)
        budget = Budget.after(prefix, self.bounds)
        key = (*questions, *map(id, questions.values()), prefix.ending.text, orders)
        known = self._sets.get(key)
        if known is not None and budget.afford(known.tokens) is not None:
            return Compiled(prefix, known.compiled, {})
        compiled: list[CompiledQuestion] = []
        failures: dict[str, PluginError] = {}
        for question_id, (question_type, question) in questions.items():
            try:
                one, budget = self._question(question_id, question_type, question, orders, prefix, budget)
            except PluginError as error:
                if not partial:
                    raise
                failures[question_id] = error
            except RequestError as error:
                raise error.under("questions", question_id) from error
            else:
                compiled.append(one)
        if (
            compiled
            and not failures
            and self.lasting.issuperset(question_type.name for question_type, _ in questions.values())
        ):
            kept = Kept.of(questions.values(), compiled)
            self._sets.keep(key, kept, kept.size)
        return Compiled(prefix, tuple(compiled), failures)

    def _prefix(self, state: str | dict[str, Any] | list[Any]) -> Prefix:
        limit = self.bounds.max_input_tokens
        try:
            return self.writer.write(state, limit)
        except TooManyTokens as error:
            raise RequestError.at(("state",), too_long(f"at least {error.at_least}", limit), "too_long") from None

    def _question(  # noqa: PLR0917 - what one question's prompts depend on, and nothing else
        self,
        question_id: str,
        question_type: QuestionType[Any, Any],
        question: Any,
        orders: int | Literal["full"],
        prefix: Prefix,
        budget: Budget,
    ) -> tuple[CompiledQuestion, Budget]:
        key = id(question), prefix.ending.text, orders
        known = self._known.get(key) if question_type.name in self.lasting else None
        if known is not None and (rest := budget.afford(known.tokens)) is not None:
            (one,) = known.compiled
            return CompiledQuestion(question_id, one.type, one.question, one.readouts, one.shared), rest
        compiled = []
        for readout in pull_readouts(question_type, question):
            check_readout(question_type, readout, self.bounds.max_answers)
            variants = []
            for order in orders_of(readout, orders):
                try:
                    variant = self._variant(question_type, readout, order, prefix, budget.room)
                except TooManyTokens as error:
                    raise budget.overspent(error.at_least, readout.loc, "at least ") from None
                budget = budget.spend(len(variant.branch.suffix), readout.loc)
                variants.append(variant)
            compiled.append(CompiledReadout(readout, tuple(variants)))
        if not compiled:
            raise PluginError(question_type.name, "readouts gave none")
        readouts = tuple(compiled)
        one = CompiledQuestion(question_id, question_type, question, readouts, worth_sharing(readouts))
        if question_type.name in self.lasting:
            kept = Kept.of((question,), (one,))
            self._known.keep(key, kept, kept.size)
        return one, budget

    def _variant(
        self, question_type: QuestionType[Any, Any], readout: Readout, order: Order, prefix: Prefix, room: int
    ) -> Variant:
        labels, labelled = self._labelled(readout, order)
        try:
            words = question_type.suffix(readout, labelled)
        except BaseException as error:
            # Also a SystemExit: passed on, it would end the server.
            raise PluginError(question_type.name, f"suffix raised {type(error).__name__}") from error
        if not isinstance(words, str) or words != words.strip():
            raise PluginError(question_type.name, "suffix returned no string without outer white space")
        return Variant(order, labelled, words, Branch(self.writer.suffix(words, prefix.ending, room), labels))

    def _labelled(self, readout: Readout, order: Order) -> tuple[tuple[int, ...], tuple[tuple[str, Option], ...]]:
        """Label ids in the options' given order, and ``(label, option)`` as shown."""
        options = readout.options
        if options[0].label is not None:
            own = [self.labels.own[str(option.label)] for option in options]
            return tuple(own), tuple((str(options[given].label), options[given]) for given in order)
        ids = [0] * len(options)
        labelled = []
        for (text, token), given in zip(self.labels.by_position, order, strict=False):
            ids[given] = token
            labelled.append((text, options[given]))
        return tuple(ids), tuple(labelled)


def worth_sharing(readouts: Sequence[CompiledReadout]) -> int:
    """How many leading suffix tokens a question's branches share, if that is worth a warm-up of its own.

    Depends on the question alone: were it to depend on its neighbours, adding one would move the answers of another,
    since how a prompt is split into batches moves probabilities on quantized weights.
    """
    if len(readouts) < 3:  # noqa: PLR2004 - two reads of a text against one warm-up and two short reads
        return 0
    common = common_prefix([variant.branch.suffix for readout in readouts for variant in readout.variants])
    return common if common >= SHARE_FROM else 0


def common_prefix(sequences: Sequence[Sequence[int]]) -> int:
    """How many leading items all the sequences share, leaving each at least one of its own."""
    shortest = min(len(sequence) for sequence in sequences)
    first = sequences[0]
    for position in range(shortest - 1):
        if any(sequence[position] != first[position] for sequence in sequences):
            return position
    return shortest - 1
