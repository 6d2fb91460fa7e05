"""From a request to a prefix and branches of token ids, within the limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import evolve, frozen

from openjev_core.backends.protocol import Branch
from openjev_core.errors import InvalidQuestion, Loc, OpenJevError, PluginError, RequestError
from openjev_core.prompts.chat import Prefix, PromptWriter
from openjev_core.prompts.labels import Labels
from openjev_core.prompts.orders import Order, orders_of
from openjev_core.question import Option, QuestionType, Readout

SHARE_FROM = 32
"""Shared suffix tokens from which warming them by themselves is worth a call."""


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

    @property
    def branches(self) -> tuple[Branch, ...]:
        """Every branch, readout by readout, order by order."""
        return tuple(variant.branch for readout in self.readouts for variant in readout.variants)


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


@frozen(kw_only=True)
class Bounds:
    """What a request may ask for.

    Attributes:
        max_answers: Options in a readout.
        max_input_tokens: Tokens of a branch, its output token included.
        max_total_input_tokens: Tokens submitted by a request, warm-up and every branch counted in full.
    """

    max_answers: int
    max_input_tokens: int
    max_total_input_tokens: int


@frozen
class Compiler:
    """Compiles requests for one model."""

    writer: PromptWriter
    labels: Labels
    bounds: Bounds

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
        prefix = self.writer.write(state)
        budget = Budget.after(prefix, self.bounds)
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
        return Compiled(prefix, tuple(compiled), failures)

    def _question(  # noqa: PLR0917 - what one question's prompts depend on, and nothing else
        self,
        question_id: str,
        question_type: QuestionType[Any, Any],
        question: Any,
        orders: int | Literal["full"],
        prefix: Prefix,
        budget: Budget,
    ) -> tuple[CompiledQuestion, Budget]:
        compiled = []
        for readout in pull_readouts(question_type, question):
            check_readout(question_type, readout, self.bounds.max_answers)
            variants = []
            for order in orders_of(readout, orders):
                variant = self._variant(question_type, readout, order, prefix)
                budget = budget.spend(len(variant.branch.suffix), readout.loc)
                variants.append(variant)
            compiled.append(CompiledReadout(readout, tuple(variants)))
        if not compiled:
            raise PluginError(question_type.name, "readouts gave none")
        one = CompiledQuestion(question_id, question_type, question, tuple(compiled), 0)
        return evolve(one, shared=worth_sharing(one)), budget

    def _variant(
        self, question_type: QuestionType[Any, Any], readout: Readout, order: Order, prefix: Prefix
    ) -> Variant:
        labels, labelled = self._labelled(readout, order)
        try:
            words = question_type.suffix(readout, labelled)
        except Exception as error:
            raise PluginError(question_type.name, f"suffix raised {type(error).__name__}") from error
        if not isinstance(words, str) or words != words.strip():
            raise PluginError(question_type.name, "suffix returned no string without outer white space")
        return Variant(order, labelled, words, Branch(self.writer.suffix(words, prefix.ending), labels))

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


@frozen
class Budget:
    """Tokens that a request has submitted so far, against its limits."""

    _prefix: int
    _total: int
    _branches: int
    _bounds: Bounds

    @classmethod
    def after(cls, prefix: Prefix, bounds: Bounds) -> Budget:
        """The budget once the warm-up is counted.

        Raises:
            RequestError: The state alone is too long.
        """
        # A branch adds at least a suffix token and its output token.
        if len(prefix.ids) + 2 > bounds.max_input_tokens:
            raise RequestError.at(("state",), too_long(len(prefix.ids), bounds.max_input_tokens), "too_long")
        return cls(len(prefix.ids), len(prefix.ids), 0, bounds)

    def spend(self, suffix: int, loc: Loc) -> Budget:
        """The budget after one more branch of ``suffix`` own tokens.

        Raises:
            RequestError: The branch or the total is over its limit.
        """
        branch = self._prefix + suffix + 1
        if branch > self._bounds.max_input_tokens:
            raise RequestError.at(loc, too_long(branch, self._bounds.max_input_tokens), "too_long")
        total = self._total + self._prefix + suffix
        if total > self._bounds.max_total_input_tokens:
            msg = (
                f"the request submits {total} tokens with its branch {self._branches + 1} (the state counts once for "
                f"each branch and once for the warm-up), over the limit max_total_input_tokens of "
                f"{self._bounds.max_total_input_tokens}; shorten the state or ask fewer questions"
            )
            raise RequestError.at(loc, msg, "too_long")
        return evolve(self, total=total, branches=self._branches + 1)


def too_long(found: int, limit: int) -> str:
    """The message for a branch over its limit."""
    return (
        f"a branch of {found} tokens (state, question, options and one output token) is over the limit "
        f"max_input_tokens of {limit}; shorten the state or the question"
    )


def pull_readouts(question_type: QuestionType[Any, Any], question: Any) -> Iterator[Readout]:
    """A question's readouts, one by one, so that an endless generator ends at the token limit.

    Raises:
        InvalidQuestion: As the type raises it.
        PluginError: For anything else that it raises. Generators raise late, hence the guard around every pull.
    """
    try:
        yield from question_type.readouts(question)
    except (InvalidQuestion, GeneratorExit):
        raise
    except OpenJevError:
        raise
    except Exception as error:
        raise PluginError(question_type.name, f"readouts raised {type(error).__name__}") from error


def check_readout(question_type: QuestionType[Any, Any], readout: object, max_answers: int) -> None:
    """Hold a readout to the contract.

    Raises:
        RequestError: The question asks for too few or too many options.
        PluginError: The type's own fault.
    """
    name = question_type.name
    if not isinstance(readout, Readout):
        raise PluginError(name, f"readouts gave a {type(readout).__name__}, not a Readout")
    count = len(readout.options)
    if not 2 <= count <= max_answers:  # noqa: PLR2004 - one option is no question
        msg = f"a {name} question takes 2 to {max_answers} options (max_answers), found {count}"
        raise RequestError.at(readout.loc, msg, "option_count")
    if not all(isinstance(option, Option) and isinstance(option.text, str) for option in readout.options):
        raise PluginError(name, "a readout's options are not all Option records with a text")
    if not isinstance(readout.text, str) or readout.text != readout.text.strip():
        raise PluginError(name, "a readout's text has outer white space")
    if len({option.key for option in readout.options}) != count:
        raise PluginError(name, "two options of a readout have one key")
    own = [option.label for option in readout.options if option.label is not None]
    if not own:
        return
    if len(own) != count or len(set(own)) != count:
        raise PluginError(name, "a readout's options have own labels in part, or one label twice")
    if undeclared := sorted(set(own) - set(question_type.labels)):
        raise PluginError(name, f"a readout uses labels that the type does not declare: {', '.join(undeclared)}")


def worth_sharing(question: CompiledQuestion) -> int:
    """How many leading suffix tokens a question's branches share, if that is worth a warm-up of its own.

    Depends on the question alone: were it to depend on its neighbours, adding one would move the answers of another,
    since how a prompt is split into batches moves probabilities on quantized weights.
    """
    if len(question.readouts) < 3:  # noqa: PLR2004 - two reads of a text against one warm-up and two short reads
        return 0
    common = common_prefix([branch.suffix for branch in question.branches])
    return common if common >= SHARE_FROM else 0


def common_prefix(sequences: Sequence[Sequence[int]]) -> int:
    """How many leading items all the sequences share, leaving each at least one of its own."""
    shortest = min(len(sequence) for sequence in sequences)
    first = sequences[0]
    for position in range(shortest - 1):
        if any(sequence[position] != first[position] for sequence in sequences):
            return position
    return shortest - 1
