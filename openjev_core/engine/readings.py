"""Reading the orders of every readout of a request: all at once, or a few first and more where they can matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve, frozen

from openjev_core.engine.admission import Admission
from openjev_core.engine.answers import Reducer
from openjev_core.engine.plan import Prepared
from openjev_core.engine.prior import PriorMemory
from openjev_core.engine.request import Request
from openjev_core.engine.scores import Priors, Readings
from openjev_core.reader import (
    OrderReading,
    PreparedQuestion,
    PreparedReadout,
    Session,
    Share,
    Usage,
    check_reading,
)

FIRST_ORDERS = 2
"""Orders read before an adaptive evaluation first asks whether more would change the answer; doubled from there."""

Settled = Callable[[str, int, list[OrderReading]], bool]
"""True when further orders of a readout cannot change the answer noticeably: from its question's id, its position there
and what has been read of it."""


@frozen(kw_only=True)
class Read:
    """What was read of a request.

    Attributes:
        readings: Question id to what was read of its readouts.
        priors: What is divided out.
        usage: What was read, priors that were not known included.
        prefill: Seconds until the prefixes were warm.
        seconds: Seconds that reading the branches took.
    """

    readings: Readings
    priors: Priors
    usage: Usage
    prefill: float
    seconds: float


@frozen
class PreparedReader:
    """Reads prepared requests.

    Attributes:
        admission: Counts the branches that are being read.
        priors: Measures label priors, where these are divided out.
        reducer: Knows when an adaptive evaluation has read enough.
    """

    admission: Admission
    priors: PriorMemory | None
    reducer: Reducer

    async def read(self, request: Request, prepared: Prepared) -> Read:
        """Read what was prepared; before that, the priors that are not known.

        Raises:
            BackendError: As the session raises it, or what it gives is no distribution over a readout's options.
        """
        session, questions = prepared.session, prepared.questions
        priors: Priors = {}
        spent: Session | None = None
        if self.priors is not None:
            typed = [(request.questions[name].type, question) for name, question in questions.items()]
            priors, spent = await self.priors.priors(typed)

        def settled(name: str, index: int, read: list[OrderReading]) -> bool:
            type_name = request.questions[name].type.name
            return self.reducer.is_settled(type_name, questions[name].readouts[index], read, priors)

        with self.admission.reading(prepared.branches):
            async with session:
                readings = await read_all(session, questions, settled if request.orders == "adaptive" else None)
        usage, prefill, seconds = session.usage, session.prefill, session.reading
        if spent is not None:
            usage = evolve(
                usage,
                input_tokens=usage.input_tokens + spent.usage.input_tokens,
                output_tokens=usage.output_tokens + spent.usage.output_tokens,
            )
            prefill, seconds = prefill + spent.prefill, seconds + spent.reading
        return Read(readings=readings, priors=priors, usage=usage, prefill=prefill, seconds=seconds)


async def read_all(
    session: Session, questions: Mapping[str, PreparedQuestion], settled: Settled | None = None
) -> Readings:
    """Read what was prepared.

    Args:
        session: Entered.
        questions: Question id to what was prepared for it.
        settled: Read a few orders of each readout first, and more only where this says no. Every order of every
            readout at once when ``None``.

    Raises:
        BackendError: As the session raises it, or what it gives is no distribution over a readout's options.
    """
    readings: dict[str, list[list[OrderReading]]] = {name: [[] for _ in q.readouts] for name, q in questions.items()}
    wanted = None if settled is None else FIRST_ORDERS
    while True:
        shares: list[Share] = []
        places: list[tuple[PreparedReadout, list[OrderReading]]] = []
        for name, question in questions.items():
            for index, (readout, read) in enumerate(zip(question.readouts, readings[name], strict=True)):
                available = len(readout.planned.orders)
                if len(read) == available or (read and settled is not None and settled(name, index, read)):
                    continue
                shares.append(
                    Share(question, index, len(read), available if wanted is None else min(wanted, available))
                )
                places.append((readout, read))
        if not shares:
            return readings
        for share, (readout, read), found in zip(shares, places, await session.read(shares), strict=True):
            check_reading(found, share.end - share.first, len(readout.planned.readout.options))
            read.extend(found)
        if wanted is None:
            return readings
        wanted *= 2
