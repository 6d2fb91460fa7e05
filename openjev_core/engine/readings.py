"""Reading a request round by round: in each every readout, in all the orders that were planned, at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from attrs import evolve, frozen

from openjev_core.engine.admission import Admission
from openjev_core.engine.answers import Reducer
from openjev_core.engine.plan import Prepared
from openjev_core.engine.preparation import Preparation
from openjev_core.engine.prior import PriorMemory
from openjev_core.engine.request import Request
from openjev_core.engine.scores import Priors, Readings, ReadReadout
from openjev_core.errors import PluginError
from openjev_core.reader import Logprobs, Session, Usage, read_checked


@frozen(kw_only=True)
class Read:
    """What was read of a request.

    Attributes:
        readings: Question id to its readouts with what was read of them, in the order in which they were asked.
        priors: What is divided out.
        failures: Question id to the error of its type; empty unless the request allows failures.
        usage: What was read, priors that were not known included.
        waited: Seconds of waiting for places at the model.
        prepare: Seconds that preparing took.
        prefill: Seconds until the prefixes were warm.
        seconds: Seconds that reading the branches took.
    """

    readings: Readings
    priors: Priors
    failures: Mapping[str, PluginError]
    usage: Usage
    waited: float
    prepare: float
    prefill: float
    seconds: float


@frozen
class PreparedReader:
    """Reads prepared requests.

    Attributes:
        preparation: Prepares the rounds that follow the first.
        admission: Counts the branches that are being read.
        priors: Measures label priors, where these are divided out.
        reducer: Makes the distributions that types wait for.
    """

    preparation: Preparation
    admission: Admission
    priors: PriorMemory | None
    reducer: Reducer

    async def read(self, request: Request, prepared: Prepared) -> Read:
        """Read a request, from its first round until no type asks on. The rounds of all questions are read together.

        The session is left between two rounds: a type may take its time then, and a model with one slot measures priors
        in it.

        Raises:
            BackendError: As the session raises it, or what it gives is no distribution over a readout's options.
            OpenJevError: As :meth:`Preparation.ask_on`.
        """
        session = prepared.session
        readings: dict[str, list[ReadReadout]] = {name: [] for name in prepared.questions}
        priors: dict[bytes, Logprobs] = {}
        sessions = [session]
        try:
            while True:
                if self.priors is not None:
                    pairs = [(request.questions[name], question) for name, question in prepared.questions.items()]
                    known, spent = await self.priors.priors(pairs)
                    priors.update(known)
                    sessions.extend([spent] if spent is not None else [])
                with self.admission.reading(prepared.branches):
                    for name, read in (await read_all(session, prepared)).items():
                        readings[name].extend(read)
                if not prepared.asking:
                    break
                waiting = partial(self.reducer.waiting, prepared.asking, readings, priors)
                prepared = await self.preparation.ask_on(request, prepared, waiting)
        finally:
            self.preparation.abandon(prepared)
        return Read(
            readings=readings,
            priors=priors,
            failures=prepared.failures,
            usage=evolve(
                session.usage,
                input_tokens=sum([one.usage.input_tokens for one in sessions]),
                output_tokens=sum([one.usage.output_tokens for one in sessions]),
            ),
            waited=sum([one.waited for one in sessions]),
            prepare=prepared.seconds,
            prefill=sum([one.prefill for one in sessions]),
            seconds=sum([one.reading for one in sessions]),
        )


async def read_all(session: Session, prepared: Prepared) -> Readings:
    """Read a round.

    Raises:
        BackendError: As the session raises it, or what it gives is no distribution over a readout's options.
    """
    questions = prepared.questions
    if not prepared.branches:  # every readout leaves one option
        return {name: [ReadReadout(readout, ()) for readout in one.readouts] for name, one in questions.items()}
    async with session:
        read = await read_checked(session, list(questions.values()))
    return {
        name: list(map(ReadReadout, question.readouts, found))
        for (name, question), found in zip(questions.items(), read, strict=True)
    }
