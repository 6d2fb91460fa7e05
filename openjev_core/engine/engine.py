"""The engine: a loaded model that evaluates requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import attrs
from attrs import frozen

from openjev_core.backends.protocol import LoadedModel
from openjev_core.calibration import Calibration, read_calibration
from openjev_core.engine.admission import Admission
from openjev_core.engine.deadline import within
from openjev_core.engine.digests import check_calibration
from openjev_core.engine.evaluation import Evaluation, Limits, Preview, Request, Timings, Usage
from openjev_core.engine.health import Health
from openjev_core.engine.intake import ALIAS, Intake
from openjev_core.engine.observing import Observers
from openjev_core.engine.offload import Threads
from openjev_core.engine.preview import preview_of
from openjev_core.engine.prior import EMPTY_STATE, PriorCache, Spent
from openjev_core.engine.reading import Readings, Settled, read
from openjev_core.engine.reducing import Reducer
from openjev_core.engine.scores import ReadoutScores, readout_scores
from openjev_core.engine.scoring import Priors, Scorer
from openjev_core.errors import PluginError, RequestError
from openjev_core.json_document import document_of, parse_document
from openjev_core.plugins.registry import Registry
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.prompts.budget import Bounds
from openjev_core.prompts.chat import prompt_writer
from openjev_core.prompts.compiler import Compiled, Compiler
from openjev_core.prompts.labels import verify_labels
from openjev_core.prompts.orders import available_orders
from openjev_core.prompts.proof import prove
from openjev_core.settings import Settings

SMALL_BODY = 16 * 1024
"""Bytes of a request up to which preparing it, in one order of its options, is left on the event loop: half a
millisecond as a rule, 25 for the worst that could be contrived."""

LARGE_BODY = 256 * 1024
"""Bytes of a request from which parsing it would hold up others."""

OWN_DISTRIBUTION = "openjev"
"""Whose question types are known to return, and to depend on nothing but their question."""

T = TypeVar("T")


@frozen(kw_only=True)
class Engine:
    """Evaluates requests on one loaded model. Made by :func:`engine_for` or :func:`openjev_core.open_engine`.

    Attributes:
        settings: What it runs with.
        registry: The question types it knows.
        model: The loaded model.
        limits: The limits in force.
    """

    settings: Settings
    registry: Registry
    model: LoadedModel
    limits: Limits
    converter: QuestionConverter
    compiler: Compiler
    _intake: Intake
    _reducer: Reducer
    _admission: Admission
    _health: Health
    _priors: PriorCache | None
    _observers: Observers
    _threads: Threads
    _own: frozenset[str]
    _foreign_types: bool

    @property
    def calibration(self) -> Calibration | None:
        """The calibration that it applies."""
        return self._reducer.scorer.calibration

    @property
    def in_flight(self) -> int:
        """Evaluations that are running now."""
        return self._admission.in_flight

    @property
    def branches_in_flight(self) -> int:
        """Branches of the evaluations whose reading has begun and not ended."""
        return self._admission.branches_in_flight

    def structure(self, document: Any, size: int | None = None) -> Request:
        """Structure a parsed request body.

        Args:
            document: The body.
            size: Its bytes, where it came as bytes.

        Raises:
            RequestError: With every problem found.
        """
        return self._intake.structure(document, size)

    async def receive(self, body: bytes) -> Request:
        """Parse and structure a request body.

        Structuring runs the question types' own classes. Where a third party's are installed, and where the body is
        large, it is done in a thread and under the evaluation's deadline.

        Raises:
            RequestError: With every problem found.
            DeadlineExceeded: A question class hangs.
        """
        if len(body) < LARGE_BODY and not self._foreign_types:
            return self.structure(parse_document(body), len(body))
        async with within(self.settings.request_timeout):
            return await self._threads.run(lambda: self.structure(parse_document(body), len(body)))

    async def evaluate(
        self,
        *,
        state: Any,
        questions: Mapping[str, Any],
        model: str = ALIAS,
        orders: int | Literal["full", "adaptive"] | None = None,
        partial: bool = False,
    ) -> Evaluation:
        """Answer questions about a state.

        Args:
            state: A string, object or array; a chat when it has a chat's form.
            questions: Question id to question: the wire's JSON object, or an instance of a type's question class.
            model: The served name, ``jev-latest`` or a ``jev-...`` version.
            orders: How many orders of its options to read each readout in; the setting when ``None``.
            partial: Answer the other questions when a question type fails.

        Raises:
            RequestError: The request is wrong; nothing was inferred.
            OpenJevError: See :mod:`openjev_core.errors`.
        """
        document: dict[str, Any] = {
            "model": model,
            "state": state,
            "questions": {key: self._wire(question) for key, question in questions.items()},
            "x_partial": partial,
        }
        if orders is not None:
            document["x_orders"] = orders
        return await self.evaluate_request(self.structure(document_of(document)))

    async def evaluate_request(self, request: Request, *, request_id: str = "") -> Evaluation:
        """Answer a structured request. Cancelling the task stops the work in the backend.

        Args:
            request: What to answer.
            request_id: For observers.

        Raises:
            RequestError: A limit, a question or the state is wrong; nothing was inferred.
            PluginError: A question type broke its contract.
            AtCapacity: Too many evaluations are running.
            DeadlineExceeded: It took longer than ``request_timeout``.
            BackendError: The backend failed.
        """
        seconds = self.settings.request_timeout
        with self._admission.admit(), self._observers.observing(request, request_id) as observed:
            async with within(seconds):
                return observed(await self._evaluate(request))

    async def scores(self, request: Request) -> Mapping[str, Sequence[ReadoutScores]]:
        """Read a request and stop before the distributions: what a calibration is fitted on.

        Returns:
            Question id to the scores of its readouts. The label prior is divided out where the settings say so; no
            calibration and no temperature is applied.

        Raises:
            OpenJevError: As for :meth:`evaluate_request`.
        """
        seconds = self.settings.request_timeout
        with self._admission.admit():
            async with within(seconds):
                _, compiled, readings, priors = await self._read(request)
        return {q.id: readout_scores(q, readings.by_question[q.id], priors) for q in compiled.questions}

    async def preview(self, request: Request) -> Preview:
        """Every prompt of a request, without inference.

        Raises:
            OpenJevError: As for :meth:`evaluate_request`, but for those of the backend.
        """
        with self._admission.admit():
            async with within(self.settings.request_timeout):
                return await self._threads.run(lambda: preview_of(self._compile(request), self.model.tokenizer))

    async def check(self) -> None:
        """Ask the backend for a labelled token, at most once a second however often this is called.

        Raises:
            BackendError: It does not answer as it should.
        """
        await self._health.check()

    async def aclose(self) -> None:
        """Let observers hear of the last evaluations. The model is closed by whoever opened it."""
        await self._observers.aclose()

    def _wire(self, question: Any) -> Any:
        for question_type in self.registry.types.values():
            if type(question) is question_type.question:
                return self.converter.wire_question(question_type, question)
        return question

    async def _beside(self, request: Request, work: Callable[[], T]) -> T:
        """Do a request's work beside the event loop; on it where that is surely short.

        Short is small work of this project's own question types: handing it to a thread would cost more than it
        does. Further orders multiply it. A third party's code may hang, and is never run on the event loop.
        """
        small = request.size is not None and request.size <= SMALL_BODY and self._wanted_orders(request) == 1
        if small and not self.model.tokenizer_waits and self._own.issuperset(request.type_names):
            return work()
        return await self._threads.run(work)

    def _wanted_orders(self, request: Request) -> int | Literal["full", "adaptive"]:
        return self.settings.orders if request.orders is None else request.orders

    def _settled(self, request: Request, priors: Priors) -> Settled | None:
        if self._wanted_orders(request) != "adaptive":
            return None
        return lambda question, readout, readings: self._reducer.is_settled(question, readout, readings, priors)

    def _compile(self, request: Request) -> Compiled:
        wanted = self._wanted_orders(request)
        if self.calibration is not None:
            check_calibrated_orders(request.orders, self.settings.orders)
        compiled = self.compiler.compile(
            request.state,
            request.questions,
            orders="full" if wanted == "adaptive" else wanted,
            partial=request.partial,
        )
        check_orders(request.orders, compiled)
        return compiled

    async def _read(self, request: Request) -> tuple[float, Compiled, Readings, Priors]:
        """The seconds that compiling took, what was compiled, what was read, and the label priors."""
        started = time.perf_counter()
        compiled = await self._beside(request, lambda: self._compile(request))
        if not compiled.questions:
            # With nothing left to read there is nothing to answer partially either.
            raise next(iter(compiled.failures.values()))
        prepared = time.perf_counter() - started
        priors, spent = ({}, Spent()) if self._priors is None else await self._priors.priors(compiled)
        with self._admission.reading(compiled.branch_count):
            readings = await read(self.model.backend, compiled, self._settled(request, priors))
        if spent.readings:
            readings = attrs.evolve(
                readings,
                warm_ups=[*spent.readings, *readings.warm_ups],
                prefill=spent.prefill + readings.prefill,
                branches=spent.branches + readings.branches,
            )
        return prepared, compiled, readings, priors

    async def _evaluate(self, request: Request) -> Evaluation:
        prepared, compiled, readings, priors = await self._read(request)
        answers, failures = await self._beside(
            request, lambda: self._reducer.answers(compiled, readings.by_question, priors, partial=request.partial)
        )
        return self._evaluation(request, compiled, readings, answers, {**compiled.failures, **failures}, prepared)

    def _evaluation(  # noqa: PLR0917 - everything an evaluation is made of, in the order in which it came to be
        self,
        request: Request,
        compiled: Compiled,
        readings: Readings,
        answers: Mapping[str, dict[str, Any]],
        failures: Mapping[str, PluginError],
        prepared: float,
    ) -> Evaluation:
        failed = {
            question_id: {
                "type": error.type_name,
                "x_error": {"error_type": error.error_type, "message": str(error)},
            }
            for question_id, error in failures.items()
        }
        every = {**answers, **failed}
        return Evaluation(
            model=self.model.public_name,
            answers={question_id: every[question_id] for question_id in request.questions} if failed else answers,
            usage=Usage(input_tokens=readings.input_tokens, output_tokens=readings.output_tokens),
            timings=Timings(prepare=prepared, prefill=readings.prefill, branches=readings.branches),
            prefix_tokens=len(compiled.prefix.ids),
            cached_tokens=readings.cached_tokens,
            branches=len(readings.branch_readings),
            types=tuple([asked.type.name for asked in request.questions.values()]),
            failures={question_id: error.rule for question_id, error in failures.items()},
        )


def check_orders(asked: int | Literal["full", "adaptive"] | None, compiled: Compiled) -> None:
    """Refuse a request that asks for more orders than any of its readouts has.

    Raises:
        RequestError: It does.
    """
    if not isinstance(asked, int):
        return
    most = max((available_orders(r.readout) for q in compiled.questions for r in q.readouts), default=asked)
    if asked > most:
        msg = f'asks for {asked} orders; the questions of this request have at most {most}; "full" reads all there are'
        raise RequestError.at(("x_orders",), msg)


def check_calibrated_orders(
    asked: int | Literal["full", "adaptive"] | None, fitted: int | Literal["full", "adaptive"]
) -> None:
    """Refuse a request for other orders than those that the server's calibration was fitted for.

    Raises:
        RequestError: Its probabilities would be corrected for something that they are not.
    """
    alike = {"full", "adaptive"}  # the one approximates the other
    if asked is None or asked == fitted or {asked, fitted} <= alike:
        return
    msg = (
        f"asks for {asked!r} where this server's calibration was fitted for orders of {fitted!r}; leave x_orders out, "
        "or ask a server without OPENJEV_CALIBRATION"
    )
    raise RequestError.at(("x_orders",), msg)


def engine_for(model: LoadedModel, settings: Settings, registry: Registry) -> Engine:
    """An engine on a model that is ready.

    Raises:
        StartupError: The model's tokenizer or template cannot carry the prompts, or has too few labels; or the
            calibration was fitted on something else.
    """
    calibration = read_calibration(settings.calibration) if settings.calibration else None
    if calibration is not None:
        check_calibration(calibration, model.public_name, model.template, registry, settings)
    limits = effective_limits(settings, model)
    own_types = frozenset(name for name in registry.types if registry.distribution_of(name) == OWN_DISTRIBUTION)
    converter = QuestionConverter(registry, own_types)
    writer = prompt_writer(model.tokenizer, model.template)
    ending = prove(writer).ending
    own = sorted({label for question_type in registry.types.values() for label in question_type.labels})
    labels = verify_labels(writer, ending, settings.max_answers, own)
    bounds = Bounds(
        max_answers=limits.max_answers_per_question,
        max_input_tokens=limits.max_input_tokens,
        max_total_input_tokens=limits.max_total_input_tokens,
    )
    admission = Admission(settings.max_concurrent_requests)
    return Engine(
        settings=settings,
        registry=registry,
        model=model,
        limits=limits,
        converter=converter,
        compiler=Compiler(writer, labels, bounds, own_types),
        intake=Intake(converter, model.public_name, settings.max_questions),
        reducer=Reducer(converter, Scorer(calibration), settings.temperature, settings.confidence),
        admission=admission,
        health=Health(model.backend),
        observers=Observers(registry.observers, model.public_name),
        # Work whose client has left may run on for a moment beside that of the evaluations that are admitted.
        own=own_types,
        foreign_types=bool(registry.types.keys() - own_types),
        threads=Threads(2 * settings.max_concurrent_requests + 8),
        priors=(
            PriorCache(model.backend, writer.write(EMPTY_STATE), admission) if settings.prior == "contentless" else None
        ),
    )


def effective_limits(settings: Settings, model: LoadedModel) -> Limits:
    """The settings' limits, with the longest branch lowered to what the backend takes."""
    longest = model.backend.max_prompt_tokens + 1  # with the output token
    shared = {
        field.name: getattr(settings, field.name) for field in attrs.fields(Limits) if hasattr(settings, field.name)
    }
    shared["max_input_tokens"] = min(settings.max_input_tokens, longest)
    return Limits(max_answers_per_question=settings.max_answers, **shared)
