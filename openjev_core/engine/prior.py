"""Label priors: what the model answers about an empty state, measured once per readout and kept within bounds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from openjev_core.engine.admission import Admission
from openjev_core.engine.request import Question
from openjev_core.engine.scores import Priors
from openjev_core.engine.threads import Threads
from openjev_core.reader import Logprobs, PreparedQuestion, Reader, Session, read_checked
from openjev_core.recent import ENTRY_BYTES, Recent, bytes_of

KEPT_BYTES = 4 * 1024 * 1024
"""Upper bound on the bytes of the priors that are kept: some ten thousand."""

EMPTY_STATE = ""

Prepared = Sequence[tuple[Question, PreparedQuestion]]


class PriorMemory:
    """The log-probabilities of readouts about an empty state.

    They are known by what is read, the options' given order included: two requests that ask the same thing share a
    prior, and two that list the same options in different orders do not get each other's.

    Args:
        reader: Reads.
        admission: Counts the branches that are being read.
        threads: Tokenizing may wait for a server.
    """

    def __init__(self, reader: Reader, admission: Admission, threads: Threads) -> None:
        self._reader = reader
        self._admission = admission
        self._threads = threads
        self._known: Recent[bytes, Logprobs] = Recent(KEPT_BYTES)

    async def priors(self, prepared: Prepared) -> tuple[Priors, Session | None]:
        """The priors of what was prepared for a request, and the session that measured those that were not known.

        Raises:
            BackendError: As the session raises it.
        """
        priors: dict[bytes, Logprobs] = {}
        missing = {}
        for asked, question in prepared:
            keys = tuple([key for readout in question.readouts for key in readout.keys])
            # Taken now: while this request waits, others may push what it needs out of the memory.
            known = {key: found for key in keys if (found := self._known.get(key)) is not None}
            priors.update(known)
            if len(known) < len(set(keys)):
                missing[keys] = asked, question
        if not missing:
            return priors, None
        session, questions = await self._threads.run(lambda: self._empty(list(missing.values())))
        with self._admission.reading(sum(map(len, missing))):
            async with session:
                read = await read_checked(session, questions)
        for keys, orders in zip(missing, read, strict=True):
            for key, one in zip(keys, itertools.chain.from_iterable(orders), strict=True):
                priors[key] = one.logprobs
                self._known.keep(key, one.logprobs, ENTRY_BYTES + bytes_of(key, one.logprobs))
        return priors, session

    def _empty(self, prepared: Prepared) -> tuple[Session, list[PreparedQuestion]]:
        """A session on an empty state, with the same readouts."""
        session = self._reader.session(EMPTY_STATE)
        return session, [
            session.prepare(asked.type, [readout.planned for readout in question.readouts], question, asked.value)
            for asked, question in prepared
        ]
