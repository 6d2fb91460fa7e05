"""The engine: a loaded model that evaluates requests."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from openjev_core.calibration import Calibration, Promise, read_calibration
from openjev_core.engine.admission import Admission
from openjev_core.engine.answers import Reducer
from openjev_core.engine.calibrated import check_calibration
from openjev_core.engine.evaluation import Evaluation, Timings
from openjev_core.engine.health import Health
from openjev_core.engine.observers import Observers
from openjev_core.engine.plan import Planner, Prepared
from openjev_core.engine.preparation import HEAVY_AT_ONCE, MOST_SEPARATORS, Body, Note, Preparation
from openjev_core.engine.prior import PriorMemory
from openjev_core.engine.readings import PreparedReader
from openjev_core.engine.request import ALIAS, Request, Requests
from openjev_core.engine.scores import ScoredReadout, Scorer, order_scores
from openjev_core.engine.threads import Threads
from openjev_core.errors import StartupError
from openjev_core.json_document import document_of, parse_document
from openjev_core.limits import Limits
from openjev_core.orders import Orders
from openjev_core.plugins.registry import Registry
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.reader import Model, Reader
from openjev_core.settings import Settings

OWN_DISTRIBUTION = "openjev"
"""Whose question types are known to return, and to depend on nothing but their question."""

logger = logging.getLogger(__name__)


def ignore(_: Request) -> None:
    """Take no note of a request."""


@frozen(kw_only=True)
class Engine:
    """Evaluates requests on one model. Made by :func:`engine_for` or :func:`openjev_core.open_engine`.

    Attributes:
        settings: What it runs with.
        registry: The question types it knows.
        model: The model that it reads.
        converter: Structures questions and writes answers.
    """

    settings: Settings
    registry: Registry
    model: Model
    converter: QuestionConverter
    _requests: Requests
    _preparation: Preparation
    _readings: PreparedReader
    _reducer: Reducer
    _admission: Admission
    _health: Health
    _observers: Observers

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self.model.limits

    @property
    def reader(self) -> Reader:
        """Reads readouts about states."""
        return self.model.reader

    @property
    def calibration(self) -> Calibration | None:
        """The calibration that it applies."""
        return self._reducer.scorer.calibration

    @property
    def promise(self) -> Promise | None:
        """What is promised of the answers that have ``x_accept``."""
        return None if self.calibration is None else self.calibration.promise

    @property
    def names(self) -> Sequence[str]:
        """The model ids that requests may name, the public name first."""
        return self._requests.served

    @property
    def in_flight(self) -> int:
        """Evaluations that are running now."""
        return self._admission.in_flight

    @property
    def waiting(self) -> int:
        """Evaluations that wait for a place."""
        return self._admission.waiting

    @property
    def branches_in_flight(self) -> int:
        """Branches of the evaluations whose reading has begun and not ended."""
        return self._admission.branches_in_flight

    def structure(self, document: Any) -> Request:
        """Structure a parsed request body.

        Raises:
            RequestError: With the problems found.
        """
        return self._requests.structure(document)

    async def evaluate_body(
        self,
        body: Body,
        *,
        read: Callable[[bytes], Any] = parse_document,
        request_id: str = "",
        structured: Callable[[Request], None] = ignore,
    ) -> Evaluation:
        """Answer a request body. Cancelling the task stops the work in the backend.

        Args:
            body: JSON as it came, or what makes it of what came: called in a thread once there is a place.
            read: Gives the body's document, as :meth:`structure` takes it. It runs in a thread where the body is long.
            request_id: For observers.
            structured: Called with the request once it is structured, whatever becomes of it then; from any thread.

        Raises:
            RequestError: The request is wrong; nothing was inferred. Holds the problems found.
            BodyTooLarge: It has more values than any request.
            PluginError: A question type broke its contract.
            AtCapacity: Too many evaluations are running.
            DeadlineExceeded: It took longer than ``request_timeout``.
            BackendError: The backend failed.
        """
        return await self._evaluate(lambda note: self._preparation.of_body(body, note, read), structured, request_id)

    async def evaluate_request(self, request: Request, *, request_id: str = "") -> Evaluation:
        """Answer a structured request; see :meth:`evaluate_body`."""

        async def prepared(note: Note) -> tuple[Request, Prepared]:
            note(request)
            return request, await self._preparation.of_request(request)

        return await self._evaluate(prepared, ignore, request_id)

    async def evaluate(
        self,
        *,
        state: Any,
        questions: Mapping[str, Any],
        model: str = ALIAS,
        orders: Orders | None = None,
        partial: bool = False,
        detail: bool = False,
    ) -> Evaluation:
        """Answer questions about a state.

        Args:
            state: A string, object or array; a chat when it has a chat's form.
            questions: Question id to question: the wire's JSON object, or an instance of a type's question class.
            model: The served name, ``jev-latest`` or a ``jev-...`` version.
            orders: How many orders of its options to read each readout in; the setting when ``None``.
            partial: Answer the other questions when a question type fails.
            detail: Answers get ``x_detail``: what each of their readouts' orders gave.

        Raises:
            RequestError: The request is wrong; nothing was inferred.
            OpenJevError: See :mod:`openjev_core.errors`.
        """
        document: dict[str, Any] = {
            "model": model,
            "state": state,
            "questions": {key: self._wire(question) for key, question in questions.items()},
            "x_partial": partial,
            "x_detail": detail,
        }
        if orders is not None:
            document["x_orders"] = orders
        return await self.evaluate_request(self.structure(document_of(document)))

    async def scores(self, request: Request) -> Mapping[str, Sequence[ScoredReadout]]:
        """Read a request and stop before the distributions: what a calibration is fitted on.

        Returns:
            Question id to its readouts with their scores, order by order. The label prior is divided out where the
            settings say so; no calibration and no temperature is applied.

        Raises:
            OpenJevError: As for :meth:`evaluate_body`.
        """
        async with self._admission.admit():
            prepared = await self._preparation.of_request(request)
            read = await self._readings.read(request, prepared)
        return {
            name: [ScoredReadout(one.readout.planned.readout, order_scores(one, read.priors)) for one in readouts]
            for name, readouts in read.readings.items()
            if name not in read.failures
        }

    async def preview_body(self, body: Body, *, structured: Callable[[Request], None] = ignore) -> dict[str, Any]:
        """What the model would read for a request body, without inference: the body of ``/v1/prompts``.

        Of a question that asks on, once it knows what was read, the first round.

        Raises:
            OpenJevError: As for :meth:`evaluate_body`, but for those of the backend.
        """
        async with self._admission.admit():
            _, prepared = await self._preparation.of_body(body, structured, parse_document)
            try:
                shown = await self._preparation.beside(lambda: prepared.session.shown(prepared.questions), short=False)
            finally:
                self._preparation.abandon(prepared)
            return {**shown, "asks_on": list(prepared.asking)}

    async def check(self) -> None:
        """Ask the backend for a labelled token, at most once a second however often this is called.

        Raises:
            BackendError: It does not answer as it should.
        """
        await self._health.check()

    async def aclose(self) -> None:
        """Let observers hear of the last evaluations. The model is closed by whoever opened it."""
        await self._observers.aclose()

    async def _evaluate(
        self, source: Callable[[Note], Awaitable[tuple[Request, Prepared]]], structured: Note, request_id: str
    ) -> Evaluation:
        """One evaluation: admitted, planned and prepared, read round by round, reduced."""
        with self._observers.observing(request_id) as observed:

            def note(request: Request) -> None:
                observed.request = request
                structured(request)

            async with self._admission.admit() as waited:
                request, prepared = await source(note)
                read = await self._readings.read(request, prepared)
                answers, failures = await self._preparation.beside(
                    lambda: self._reducer.answers(request, read.readings, read.priors, read.failures),
                    short=self._preparation.is_short(request),
                )
                observed.evaluation = Evaluation(
                    model=self.model.public_name,
                    answers=answers,
                    usage=read.usage,
                    timings=Timings(
                        queue=waited + read.waited, prepare=read.prepare, prefill=read.prefill, branches=read.seconds
                    ),
                    failures=failures,
                )
                return observed.evaluation

    def _wire(self, question: Any) -> Any:
        for question_type in self.registry.types.values():
            if type(question) is question_type.question:
                return self.converter.wire_question(question_type, question)
        return question


def engine_for(model: Model, settings: Settings, registry: Registry) -> Engine:
    """An engine on a model that is ready.

    Raises:
        StartupError: The calibration was fitted on something else, or the model has no labels for any question type.
        SettingsError: A value of a type's own setting is not accepted.
    """
    registry = registry.configured(settings)
    calibration = read_calibration(settings.calibration) if settings.calibration else None
    if calibration is not None:
        check_calibration(calibration, model.public_name, model.wording, registry, settings)
    registry = with_labels(registry, model.refused_labels, model.public_name)
    converter = QuestionConverter(registry)
    requests = Requests(
        converter,
        tuple(dict.fromkeys([model.public_name, *settings.served_model_name])),
        settings.max_questions,
        settings.orders,
        calibrated=calibration is not None,
        lasting=frozenset(name for name in registry.types if registry.distribution_of(name) == OWN_DISTRIBUTION),
    )
    reducer = Reducer(converter, Scorer(calibration), settings.temperature, settings.confidence)
    admission = Admission(settings.max_concurrent_requests, settings.request_timeout, settings.queue_timeout)
    # Work whose client has left may run on for a moment beside that of the evaluations that are admitted.
    threads = Threads(2 * settings.max_concurrent_requests + 8)
    priors = PriorMemory(model.reader, admission, threads) if settings.prior == "contentless" else None
    own_types_alone = requests.lasting.issuperset(registry.types)
    heavy = Threads(HEAVY_AT_ONCE)
    preparation = Preparation(
        requests,
        Planner(model.reader, requests, model.limits.max_answers_per_question),
        heavy if own_types_alone else threads,
        heavy,
        max(MOST_SEPARATORS, model.limits.max_input_tokens),
        own_types_alone=own_types_alone,
        preparing_waits=model.preparing_waits,
    )
    return Engine(
        settings=settings,
        registry=registry,
        model=model,
        converter=converter,
        requests=requests,
        preparation=preparation,
        readings=PreparedReader(preparation, admission, priors, reducer),
        reducer=reducer,
        admission=admission,
        health=Health(model.check),
        observers=Observers(registry.observers, model.public_name),
    )


def with_labels(registry: Registry, refused: Mapping[str, str], model: str) -> Registry:
    """The registry without the question types whose own labels the model does not have; says so in the log.

    Args:
        registry: The types.
        refused: Label to why it is none.
        model: The model's name.

    Raises:
        StartupError: No type is left.
    """
    causes = {}
    for name, question_type in registry.types.items():
        if faults := [f"{label!r} ({refused[label]})" for label in question_type.labels if label in refused]:
            causes[name] = (
                f"question type {name!r} of {registry.distribution_of(name)} has labels that do not work with {model}: "
                f"{', '.join(faults)}; declare labels of one token, or choose another model"
            )
    for cause in causes.values():
        logger.warning("not served: %s", cause)
    if causes and len(causes) == len(registry.types):
        raise StartupError(f"no question type is left: {'; '.join(causes.values())}")
    return registry.without(causes) if causes else registry
