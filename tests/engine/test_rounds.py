"""A type that yields a sequence of readouts gets their distributions, and may ask on."""

from __future__ import annotations

import asyncio
import threading

import orjson
import pytest
from attrs import evolve, frozen
from scripted_backend import ScriptedBackend, equal, preferring, scripted_engine
from until import until

from openjev_core import InvalidQuestion, Option, QuestionType, Readout
from openjev_core.errors import DeadlineExceeded, PluginError, RequestError
from openjev_core.plugins.registry import load_registry

pytestmark = pytest.mark.anyio

SIDES = (Option(key="left", text="left"), Option(key="right", text="right"))
NOUL = load_registry().types["noul"]
PLAIN = {"type": "noul", "instructions": "Is it?"}


@frozen(kw_only=True)
class Walk:
    """Steps to take, each towards the side that the one before preferred."""

    steps: int = 3


@frozen(kw_only=True)
class WalkAnswer:
    """Where it led."""

    path: list[str]
    asked: list[str]


def step(text, **more):
    return Readout(text=text, options=SIDES, loc=("steps",), **more)


def walk(question):
    path = "start"
    for _ in range(question.steps):
        (found,) = yield [step(f"From {path}?")]
        path += f" {found.top.key}"


def reduce(question, distributions):
    return WalkAnswer(path=[d.top.key for d in distributions], asked=[d.readout.text for d in distributions])


def walking(readouts=walk, **changes):
    kind = QuestionType(
        name="walk",
        summary="A walk.",
        api=1,
        question=Walk,
        answer=WalkAnswer,
        readouts=readouts,
        reduce=reduce,
        examples=(Walk(),),
    )
    return evolve(kind, **changes)


WALK = {"type": "walk"}
RIGHT = preferring(B=0.0, Yes=0.0)


async def test_what_is_read_decides_what_is_asked_next():
    backend = ScriptedBackend(lambda prompt, labels: [0.0, 1.0] if "From start right?" in prompt else [1.0, 0.9])
    evaluation = await scripted_engine(backend, walking()).evaluate(state="S.", questions={"q": {**WALK, "steps": 3}})
    assert ["From start?", "From start left?", "From start left left?"] == evaluation.answers["q"]["asked"]
    evaluation = await scripted_engine(ScriptedBackend(RIGHT), walking()).evaluate(state="S.", questions={"q": WALK})
    assert ["right"] * 3 == evaluation.answers["q"]["path"]
    assert "From start right right?" == evaluation.answers["q"]["asked"][-1]


async def test_rounds_of_all_questions_are_read_together():
    """Three rounds are three calls, however many questions ask on; one that does not is read with the first."""
    backend, calls = ScriptedBackend(RIGHT), []
    engine = scripted_engine(backend, walking(), NOUL)
    backend.damage = lambda readings: calls.append(len(readings)) or readings
    questions = {"a": WALK, "plain": PLAIN, "b": {**WALK, "steps": 2}}
    evaluation = await engine.evaluate(state="S.", questions=questions)
    assert [3, 2, 1] == calls == backend.announced
    assert ["a", "plain", "b"] == list(evaluation.answers)
    assert 6 == evaluation.usage.branches


async def test_single_readouts_wait_for_nothing_and_are_reduced_in_the_order_asked():
    given = []

    def mixed(_):
        yield step("one")
        given.append((yield [step("two", key=2), step("three")]))
        given.append((yield step("four")))
        given.append((yield (step("five"),)))
        yield step("six")

    backend, calls = ScriptedBackend(), []
    backend.damage = lambda readings: calls.append(len(readings)) or readings
    evaluation = await scripted_engine(backend, walking(mixed)).evaluate(state="S.", questions={"q": WALK})
    assert ["one", "two", "three", "four", "five", "six"] == evaluation.answers["q"]["asked"]
    assert [3, 2, 1] == calls
    assert [["two", "three"], None, ["five"]] == [found and [d.readout.text for d in found] for found in given]
    assert {(0.5, 0.5)} == {d.probabilities for found in given if found for d in found}


async def test_usage_counts_every_read_and_the_warm_up_once():
    backend = ScriptedBackend()
    usage = (await scripted_engine(backend, walking()).evaluate(state="S.", questions={"q": WALK})).usage
    prefix = len(backend.prefixes[0][0])
    suffixes = sum(len(branch.suffix) for _, branch in backend.branches)
    assert (3, 3 + 1, 4 * prefix + suffixes) == (usage.branches, usage.output_tokens, usage.input_tokens)
    assert 0 == backend.open


async def test_orders_are_averaged_in_every_round():
    def first_shown(prompt, labels):
        return [1.0 if label == "A" else 0.0 for label in labels]

    backend = ScriptedBackend(first_shown)
    engine = scripted_engine(backend, walking(), orders="full")
    evaluation = await engine.evaluate(state="S.", questions={"q": WALK})
    assert 6 == len(backend.branches)
    assert 0 < evaluation.answers["q"]["x_order_spread"]
    # Which order is shown first no longer matters, so nothing is preferred: the first on ties.
    assert ["left"] * 3 == evaluation.answers["q"]["path"]


async def test_priors_are_divided_out_in_every_round():
    def biased(prompt, labels):
        state = 1.5 if "S." in prompt else 0.0
        return [2.0, state]

    backend = ScriptedBackend(biased)
    engine = scripted_engine(backend, walking(), prior="contentless")
    first = await engine.evaluate(state="S.", questions={"q": WALK})
    assert ["right"] * 3 == first.answers["q"]["path"]
    assert 3 + 3 == len(backend.branches)
    again = await engine.evaluate(state="S.", questions={"q": WALK})
    assert first.answers == again.answers
    assert 3 + 3 + 3 == len(backend.branches)


async def test_adding_a_question_asks_nothing_else():
    alone = await scripted_engine(ScriptedBackend(RIGHT), walking(), NOUL).evaluate(state="S.", questions={"q": WALK})
    beside = await scripted_engine(ScriptedBackend(RIGHT), walking(), NOUL).evaluate(
        state="S.", questions={"other": {**WALK, "steps": 1}, "q": WALK, "plain": PLAIN}
    )
    assert alone.answers["q"] == beside.answers["q"]


def for_ever(_):
    while True:
        yield [step("Again?")]


async def test_a_type_that_asks_for_ever_is_refused_with_how_far_it_came():
    backend = ScriptedBackend()
    engine = scripted_engine(backend, walking(for_ever), max_total_input_tokens=2000)
    with pytest.raises(RequestError) as refused:
        await engine.evaluate(state="S.", questions={"q": WALK})
    (problem,) = refused.value.problems
    read = len(backend.branches)
    assert (("questions", "q", "steps"), "too_long") == (problem.loc, problem.type)
    assert read > 3
    assert f"with its branch {read + 1} " in problem.msg
    assert problem.msg.endswith(f"; the question had asked {read} readouts in {read} rounds before")
    assert (0, 0) == (backend.open, engine.branches_in_flight)


async def test_the_deadline_holds_over_all_rounds():
    backend = ScriptedBackend(seconds=0.02)
    engine = scripted_engine(backend, walking(for_ever), request_timeout=0.2)
    with pytest.raises(DeadlineExceeded):
        await engine.evaluate(state="S.", questions={"q": WALK})
    assert 0 == backend.open


def breaks(error):
    def readouts(_):
        yield [step("One?")]
        raise error

    return readouts


def empty(_):
    yield []


def late_text(_):
    yield [step("One?")]
    yield [step("Two?"), "three"]


FAULTS = [
    (breaks(ZeroDivisionError("secret")), "readouts raised ZeroDivisionError"),
    (breaks(SystemExit("secret")), "readouts raised SystemExit"),
    (empty, "readouts yielded an empty sequence; yield at least one Readout, or none and go on"),
    (late_text, "readouts gave a str, not a Readout or a sequence of them"),
    (lambda _: [[step("One?")]], "readouts gave a list, whose distributions only a generator can be given"),
]


@pytest.mark.parametrize(("readouts", "rule"), FAULTS, ids=[rule for _, rule in FAULTS])
async def test_a_round_that_breaks_the_contract(readouts, rule):
    engine = scripted_engine(ScriptedBackend(RIGHT), walking(readouts), NOUL)
    with pytest.raises(PluginError) as failed:
        await engine.evaluate(state="S.", questions={"plain": PLAIN, "q": WALK})
    assert f"question type 'walk' failed: {rule}" == str(failed.value)
    evaluation = await engine.evaluate(state="S.", questions={"plain": PLAIN, "q": WALK}, partial=True)
    assert {"q": rule} == evaluation.failures
    assert evaluation.answers["plain"]["noul"] > 0.99
    with pytest.raises(PluginError):
        await engine.evaluate(state="S.", questions={"q": WALK}, partial=True)


def certain(_):
    while True:
        yield [Readout(text="Alone?", options=SIDES[:1], loc=("steps",))]


async def test_rounds_of_one_option_cost_nothing_and_end_too():
    backend = ScriptedBackend()
    with pytest.raises(RequestError) as refused:
        await scripted_engine(backend, walking(certain)).evaluate(state="S.", questions={"q": WALK})
    came = "; the question had asked 1000 readouts in 1000 rounds before"
    assert (
        f"asks for more than 1000 readouts of one option, whose answers are certain{came}"
        == refused.value.problems[0].msg
    )
    assert [] == backend.prefixes


async def test_a_question_refused_in_a_later_round_is_a_wrong_request():
    engine = scripted_engine(None, walking(breaks(InvalidQuestion("no", ("steps",)))))
    with pytest.raises(RequestError) as refused:
        await engine.evaluate(state="S.", questions={"q": WALK})
    assert ("questions", "q", "steps") == refused.value.problems[0].loc


async def test_a_type_may_wait_and_then_ask_no_more():
    def once(_):
        yield [step("Once?")]

    evaluation = await scripted_engine(None, walking(once)).evaluate(state="S.", questions={"q": WALK})
    assert ["Once?"] == evaluation.answers["q"]["asked"]


async def test_orders_of_later_rounds_are_not_known_before():
    """So a request may ask for more than the first round has."""
    engine = scripted_engine(None, walking(), NOUL)
    document = {"model": "jev-latest", "state": "S.", "questions": {"q": WALK}, "x_orders": 9}
    evaluation = await engine.evaluate_request(engine.structure(document))
    assert 3 == len(evaluation.answers["q"]["path"])


def noting(closed, hold=None):
    """A type that notes in which thread it is closed, and what it does then."""

    def readouts(_):
        try:
            while True:
                yield [step("Again?")]
        except GeneratorExit:
            closed.append(threading.current_thread())
            if hold is not None:
                hold()
            raise

    return readouts


async def test_a_client_that_leaves_closes_the_generator_beside_the_event_loop():
    closed, go = [], threading.Event()
    backend = ScriptedBackend(gate=asyncio.Event())
    engine = scripted_engine(backend, walking(noting(closed, lambda: go.wait(20))))
    task = asyncio.create_task(engine.evaluate(state="S.", questions={"q": WALK}))
    await until(lambda: backend.running)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: closed)
    assert threading.main_thread() is not closed[0]
    go.set()


async def test_a_generator_that_is_running_when_its_client_leaves_is_closed_when_it_returns():
    closed, started, go = [], threading.Event(), threading.Event()

    def slow(_):
        try:
            yield [step("One?")]
            started.set()
            go.wait(20)
            yield [step("Two?")]
        finally:
            closed.append(threading.current_thread())

    engine = scripted_engine(None, walking(slow))
    task = asyncio.create_task(engine.evaluate(state="S.", questions={"q": WALK}))
    await until(started.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [] == closed
    go.set()
    await until(lambda: closed)
    assert threading.main_thread() is not closed[0]


ENDINGS = [
    ("a limit", {"max_total_input_tokens": 700}, RequestError, None),
    ("another question's fault", {}, PluginError, breaks(ZeroDivisionError())),
    ("a wrong question", {}, RequestError, breaks(InvalidQuestion("no"))),
]


@pytest.mark.parametrize(("settings", "error", "other"), [e[1:] for e in ENDINGS], ids=[e[0] for e in ENDINGS])
async def test_whatever_ends_the_evaluation_closes_every_generator(settings, error, other):
    closed = []
    types = [walking(noting(closed)), *([walking(other, name="other")] if other else [])]
    questions = {"q": WALK, **({"o": {"type": "other"}} if other else {})}
    with pytest.raises(error):
        await scripted_engine(None, *types, **settings).evaluate(state="S.", questions=questions)
    await until(lambda: closed)
    assert threading.main_thread() is not closed[0]


async def test_one_that_does_not_end_when_it_is_closed_is_named_in_the_log(caplog):
    def stubborn(_):
        try:
            while True:
                yield [step("Again?")]
        except GeneratorExit:
            yield [step("And again?")]

    engine = scripted_engine(None, walking(stubborn), max_total_input_tokens=700)
    with pytest.raises(RequestError):
        await engine.evaluate(state="S.", questions={"q": WALK})
    await until(lambda: "question type 'walk' raised RuntimeError when it was closed" in caplog.text)


async def test_a_preview_shows_the_first_round_and_who_asks_on():
    closed = []
    engine = scripted_engine(ScriptedBackend(equal), walking(noting(closed)), NOUL)
    document = {"model": "jev-latest", "state": "S.", "questions": {"p": PLAIN, "q": WALK}}
    shown = await engine.preview_body(orjson.dumps(document))
    assert ["p", "q"] == [branch["question_id"] for branch in shown["branches"]]
    assert ["q"] == shown["asks_on"]
    await until(lambda: closed)


async def test_scores_for_a_calibration_are_those_of_every_round():
    engine = scripted_engine(ScriptedBackend(RIGHT), walking())
    request = engine.structure({"model": "jev-latest", "state": "S.", "questions": {"q": WALK}})
    assert [2, 2, 2] == [len(one.orders[0].scores) for one in (await engine.scores(request))["q"]]
