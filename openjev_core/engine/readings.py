"""Reading every readout of a request, in all the orders that were planned, at once."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from openjev_core.engine.admission import Admission
from openjev_core.engine.plan import Prepared
from openjev_core.engine.prior import PriorMemory
from openjev_core.engine.request import Request
from openjev_core.engine.scores import Priors, Readings
from openjev_core.reader import OrderReading, PreparedQuestion, Session, Share, Usage, check_reading


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
    """

    admission: Admission
    priors: PriorMemory | None

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

        readings: Readings = {name: [[] for _ in question.readouts] for name, question in questions.items()}
        if prepared.branches:  # there are none where every question leaves one option
            with self.admission.reading(prepared.branches):
                async with session:
                    readings = await read_all(session, questions)
        usage, prefill, seconds = session.usage, session.prefill, session.reading
        if spent is not None:
            usage = evolve(
                usage,
                input_tokens=usage.input_tokens + spent.usage.input_tokens,
                output_tokens=usage.output_tokens + spent.usage.output_tokens,
            )
            prefill, seconds = prefill + spent.prefill, seconds + spent.reading
        return Read(readings=readings, priors=priors, usage=usage, prefill=prefill, seconds=seconds)


async def read_all(session: Session, questions: Mapping[str, PreparedQuestion]) -> Readings:
    """Read what was prepared.

    Args:
        session: Entered.
        questions: Question id to what was prepared for it.

    Raises:
        BackendError: As the session raises it, or what it gives is no distribution over a readout's options.
    """
    shares = [
        Share(question, index, 0, len(readout.planned.orders))
        for question in questions.values()
        for index, readout in enumerate(question.readouts)
        if readout.planned.orders
    ]
    readings: dict[str, list[list[OrderReading]]] = {name: [] for name in questions}
    read = iter(await session.read(shares))
    for name, question in questions.items():
        for readout in question.readouts:
            found = next(read) if readout.planned.orders else []
            check_reading(found, len(readout.planned.orders), len(readout.planned.readout.options))
            readings[name].append(found)
    return readings
