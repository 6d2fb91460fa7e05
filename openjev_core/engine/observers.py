"""Telling plugins about finished evaluations. What they raise, and how long they take, changes no evaluation."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import define

from openjev_core.engine.evaluation import Evaluation
from openjev_core.engine.request import Request
from openjev_core.engine.threads import Threads
from openjev_core.errors import OpenJevError
from openjev_core.observation import FinishedEvaluation
from openjev_core.plugins.registry import Observer

WAITING = 1000
"""Observations that may wait for a slow observer; beyond, they are dropped and the log says so."""

FAREWELL_SECONDS = 5.0
"""What a close leaves observers: an audit trail should not end before its last entries."""

log = logging.getLogger(__name__)


@define
class Observed:
    """What is known of an evaluation so far.

    Attributes:
        request: What was asked, once it is structured.
        evaluation: What was answered.
    """

    request: Request | None = None
    evaluation: Evaluation | None = None


class Observers:
    """The observers of one engine."""

    def __init__(self, observers: Sequence[Observer], model: str) -> None:
        self._observers = observers
        self._model = model
        # Of their own, so that a slow observer takes none from evaluations.
        self._threads = Threads(4)
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def observing(self, request_id: str) -> Iterator[Observed]:
        """Tell the observers of the evaluation that the block makes, however it ends.

        Yields:
            Where the block notes what it knows. Without a request there was no evaluation to tell of.
        """
        observed, error = Observed(), None
        started = time.perf_counter()
        try:
            yield observed
        except BaseException as raised:
            error = raised.error_type if isinstance(raised, OpenJevError) else type(raised).__name__
            raise
        finally:
            if self._observers and observed.request is not None:
                evaluation = observed.evaluation
                self._tell(
                    FinishedEvaluation(
                        request_id=request_id,
                        model=self._model,
                        types=observed.request.types,
                        answers=evaluation.answers if evaluation else {},
                        error=error,
                        input_tokens=evaluation.usage.input_tokens if evaluation else 0,
                        output_tokens=evaluation.usage.output_tokens if evaluation else 0,
                        seconds=time.perf_counter() - started,
                    )
                )

    def _tell(self, finished: FinishedEvaluation) -> None:
        if len(self._tasks) >= WAITING:
            log.warning("observers are %d evaluations behind: request %s was not told", WAITING, finished.request_id)
            return
        task = asyncio.get_running_loop().create_task(self._threads.run(lambda: self._call(finished)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Wait for what observers are still to be told of, but not for one that hangs."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=FAREWELL_SECONDS)
        if late:
            log.warning("observers did not end within %g s: %d evaluations were not told", FAREWELL_SECONDS, len(late))

    def _call(self, finished: FinishedEvaluation) -> None:
        for observer in self._observers:
            try:
                observer(finished)
            except BaseException:  # a SystemExit would end the server
                log.exception("an observer of evaluations failed on request %s", finished.request_id)
