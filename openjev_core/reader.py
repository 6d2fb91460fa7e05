"""The seam between question types and models: something that reads readouts about a state.

Above it nothing knows of tokens, prompts or servers; below it nothing knows of question types' answers, of priors or of
calibrations. The engine plans *which* readouts are read and in which orders their options are shown; a reader prepares
them about one state, where its limits are checked before any inference, and then reads them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Protocol, Self

from attrs import field, frozen

from openjev_core.distribution import check_logprobs
from openjev_core.errors import BackendError, OpenJevError
from openjev_core.limits import Limits
from openjev_core.orders import Order
from openjev_core.question import QuestionType, Readout

Logprobs = tuple[float, ...]
"""One log-probability per option of a readout, in the options' given order and in nats. ``-inf`` is allowed. Only
differences mean something: a reader may have normalised them over the labels or over a whole vocabulary."""


@frozen
class OrderReading:
    """What was read of one order of a readout's options.

    Attributes:
        logprobs: One per option.
        label_mass: How much of the probability of all that the model could have answered these options hold, in [0, 1];
            ``None`` where that is not known.
    """

    logprobs: Logprobs
    label_mass: float | None = None


@frozen
class PlannedReadout:
    """A readout, and the orders in which its options are to be shown: none where there is one option to choose from."""

    readout: Readout
    orders: tuple[Order, ...]


class PreparedReadout(Protocol):
    """A readout that a session can read.

    Attributes:
        planned: The readout and its orders.
        labels: For each order, the label that each option stands under; the options in their given order.
        keys: For each order, a name of what is read. Two that are equal read the same, behind equal states.
    """

    @property
    def planned(self) -> PlannedReadout: ...  # noqa: D102 - see above

    @property
    def labels(self) -> Sequence[Sequence[str]]: ...  # noqa: D102 - see above

    @property
    def keys(self) -> Sequence[bytes]: ...  # noqa: D102 - see above


class PreparedQuestion(Protocol):
    """A question's readouts, in the order in which its type gave them."""

    @property
    def readouts(self) -> Sequence[PreparedReadout]: ...  # noqa: D102 - see above


@frozen(kw_only=True)
class Usage:
    """What was read, by the model's own counts; no bill.

    A warm-up that was left out, because the backend holds the prefix or reads it with the branches, counts as one that
    reused all of it.

    Attributes:
        input_tokens: Prompt tokens of the warm-ups and of every branch; cached ones count too.
        output_tokens: Tokens produced.
        prefix_tokens: Tokens of the prefix that the branches share.
        branches: How many branches were read.
        cached_tokens: Prompt tokens of the branches that were not computed again; ``None`` where one does not say.
    """

    input_tokens: int
    output_tokens: int
    prefix_tokens: int
    branches: int
    cached_tokens: int | None


class Session(AbstractAsyncContextManager["Session"], Protocol):
    """One state, about which readouts are prepared and then read, in one round or several.

    Preparing blocks and infers nothing. Reading needs the session to be entered. Between two rounds it is left, and
    more may be prepared; then it is entered again. Cancelling it stops the work.

    Attributes:
        waited: Seconds of waiting for a place at the model, before the work began.
        prefill: Seconds that warming the prefix took.
        reading: Seconds that reading the branches took.
    """

    waited: float
    prefill: float
    reading: float

    def prepare(
        self,
        question_type: QuestionType[Any, Any],
        readouts: Iterable[PlannedReadout],
        earlier: PreparedQuestion | None = None,
        question: Any = None,
    ) -> PreparedQuestion:
        """Make a question's readouts ready to be read.

        Args:
            question_type: Writes them.
            readouts: Taken one by one, so that a type which asks for ever ends at the limits.
            earlier: What a session of the same reader made of the same readouts: used again where it fits this state.
            question: The instance of the type's question class that asks them.

        Raises:
            RequestError: A limit, or something that the model cannot be shown. Paths start at the question.
            PluginError: The type broke its contract.
        """
        ...

    async def read(self, questions: Sequence[PreparedQuestion]) -> list[list[list[OrderReading]]]:
        """Read what was prepared: of each question, each readout in all of its orders.

        Raises:
            BackendError: The model does not answer, or its answer is no distribution over the options.
        """
        ...

    @property
    def usage(self) -> Usage:
        """What has been read so far."""
        ...

    def shown(self, questions: Mapping[str, PreparedQuestion]) -> dict[str, Any]:
        """What the model reads for these questions, as JSON for a person: the body of ``/v1/prompts``."""
        ...

    async def __aenter__(self) -> Self: ...


class Reader(Protocol):
    """Something that reads readouts about states."""

    def session(self, state: str | dict[str, Any] | list[Any]) -> Session:
        """A session on a state. Blocks: the state is tokenized.

        Raises:
            RequestError: The state is too long, or cannot be shown to the model. Paths start at the body.
        """
        ...


@frozen(kw_only=True)
class Model:
    """A model that is ready to be read: what opening an engine gives.

    Attributes:
        reader: Reads readouts about states.
        engine: The name of what reads, for people.
        public_name: The model id that clients see.
        limits: What a request may ask for.
        wording: Names what words the model's prompts beside openjev, such as its chat template. A calibration that was
            fitted under one holds for no other.
        check: Reads something small; raises :class:`~openjev_core.BackendError` where the answer is not as it should
            be. Cancelling it ends it.
        refused_labels: Question types' own labels that the model does not have as one token, each with the reason. The
            types that declare them are not served.
        preparing_waits: Preparing asks a server and waits, so it never runs on the event loop.
        one_at_a_time: Evaluations at once gain nothing.
        demo: The model shows the plumbing and is no classifier.
        release_date: ISO date for ``/v1/models``, where it is known.
    """

    reader: Reader
    engine: str
    public_name: str
    limits: Limits
    wording: str
    check: Callable[[], Awaitable[None]]
    refused_labels: Mapping[str, str] = field(factory=dict)
    preparing_waits: bool = False
    one_at_a_time: bool = False
    demo: bool = False
    release_date: str | None = None


async def read_checked(session: Session, questions: Sequence[PreparedQuestion]) -> list[list[list[OrderReading]]]:
    """Read questions, and hold what the session gives to the contract.

    Args:
        session: Entered.
        questions: As :meth:`Session.read` takes them.

    Raises:
        BackendError: As the session raises it; or as :func:`check_readings` does; or the session raises something
            else, which is a fault of the engine.
    """
    with contract_kept("reading"):
        read = await session.read(questions)
        check_readings(read, questions)
    return read


@contextmanager
def contract_kept(doing: str) -> Iterator[None]:
    """Turn whatever an engine raises beside openjev's own errors into its fault.

    Args:
        doing: What the engine does in the block.

    Raises:
        BackendError: It raised something else.
    """
    try:
        yield
    except OpenJevError:
        raise
    except Exception as error:
        # Its text may quote the state, which no log and no other client shall see.
        raise BackendError(f"the engine broke its contract: {doing} raised {type(error).__name__}") from error


def check_readings(read: Sequence[Sequence[Sequence[OrderReading]]], questions: Sequence[PreparedQuestion]) -> None:
    """Hold what a session read to the contract.

    Raises:
        BackendError: It is not all that was asked, or as :func:`check_reading` does.
    """
    if len(read) != len(questions):
        raise BackendError(f"the backend answered {len(read)} of {len(questions)} questions")
    for question, found in zip(questions, read, strict=True):
        if len(found) != len(question.readouts):
            raise BackendError(f"the backend answered {len(found)} of {len(question.readouts)} readouts")
        for readout, orders in zip(question.readouts, found, strict=True):
            check_reading(orders, len(readout.planned.orders), len(readout.planned.readout.options))


def check_reading(found: Sequence[OrderReading], orders: int, options: int) -> None:
    """Hold what a session read of one readout to the contract.

    Raises:
        BackendError: It is not one distribution over the options for each order, or a label mass is none.
    """
    if len(found) != orders:
        raise BackendError(f"the backend answered {len(found)} of {orders} branches")
    for one in found:
        if len(one.logprobs) != options:
            raise BackendError(f"the backend answered {len(one.logprobs)} of a branch's {options} labels")
        check_logprobs(one.logprobs)
        if one.label_mass is not None and not 0 <= one.label_mass <= 1:
            raise BackendError(f"the backend reports a label mass of {one.label_mass}; one lies between 0 and 1")
