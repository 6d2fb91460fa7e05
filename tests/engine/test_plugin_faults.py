"""A question type that breaks its contract fails by its name, shows no internals, and takes no other question along."""

from __future__ import annotations

import math

import pytest
from attrs import evolve, field, frozen
from scripted_backend import ScriptedBackend, preferring, scripted_engine
from until import until

from openjev_core.engine.observers import Observers
from openjev_core.errors import BackendError, InvalidQuestion, PluginError, RequestError, StartupError
from openjev_core.plugins.registry import load_registry

pytestmark = pytest.mark.anyio

TYPES = load_registry().types
FINE = {"type": "noul", "instructions": "Is it?"}


def raising(error):
    def function(*_):
        raise error

    return function


def broken(**changes):
    return evolve(TYPES["score"], name="broken", **changes)


ASKED = {"type": "broken", "criteria": ["a", "b"]}
ANSWER = TYPES["score"].answer


def answering(**changes):
    answer = ANSWER(**{"score": 0.5, "legend": {}, "probabilities": {}, "confidence": 1.0, **changes})
    return lambda question, distributions: answer


FAULTS = [
    (raising(ZeroDivisionError("secret")), "reduce raised ZeroDivisionError"),
    (raising(SystemExit("secret")), "reduce raised SystemExit"),
    (raising(KeyboardInterrupt()), "reduce raised KeyboardInterrupt"),
    (raising(InvalidQuestion("secret")), "reduce raised InvalidQuestion"),
    (raising(BackendError("secret")), "reduce raised BackendError"),
    (lambda question, distributions: None, "reduce returned a NoneType, not a ScoreAnswer"),
    (lambda question, distributions: {"score": 1}, "reduce returned a dict, not a ScoreAnswer"),
    (answering(score=math.nan), "its answer holds a number that is not finite at score"),
    (answering(probabilities={"0": -math.inf}), "its answer holds a number that is not finite at probabilities.0"),
    (answering(legend={"0": object()}), "its answer holds a object, which is no JSON, at legend.0"),
    (answering(legend={"0": "\ud800"}), "its answer holds a lone surrogate, which is no character, at legend.0"),
]


@pytest.mark.parametrize(("reduce", "rule"), FAULTS, ids=[rule for _, rule in FAULTS])
async def test_a_reducer_that_breaks_the_contract(reduce, rule):
    engine = scripted_engine(None, broken(reduce=reduce), TYPES["noul"])
    with pytest.raises(PluginError) as failed:
        await engine.evaluate(state="S.", questions={"fine": FINE, "q": ASKED})
    assert f"question type 'broken' failed: {rule}" == str(failed.value)
    assert (500, "plugin_error") == (failed.value.status, failed.value.error_type)


PARTIAL = [
    ({"reduce": raising(ZeroDivisionError("secret"))}, "reduce raised ZeroDivisionError", 3),
    ({"readouts": raising(ZeroDivisionError("secret"))}, "readouts raised ZeroDivisionError", 2),
]


@pytest.mark.parametrize(("changes", "rule", "calls"), PARTIAL)
async def test_with_partial_the_others_are_answered(changes, rule, calls):
    engine = scripted_engine(ScriptedBackend(preferring(Yes=0.0)), broken(**changes), TYPES["noul"])
    evaluation = await engine.evaluate(state="S.", questions={"q": ASKED, "fine": FINE}, partial=True)
    assert ["q", "fine"] == list(evaluation.answers)
    assert evaluation.answers["fine"]["noul"] > 0.99
    message = f"question type 'broken' failed: {rule}"
    assert {"type": "broken", "x_error": {"error_type": "plugin_error", "message": message}} == evaluation.answers["q"]
    assert {"q": rule} == evaluation.failures
    assert calls == evaluation.usage.output_tokens


@frozen(kw_only=True)
class Fragile:
    criteria: list[str] = field()

    @criteria.validator
    def _check(self, attribute, value):
        raise KeyError(attribute)


async def test_a_question_class_that_raises_fails_by_its_name():
    engine = scripted_engine(None, broken(question=Fragile, examples=()), TYPES["noul"])
    rule = "its question class raised KeyError"
    with pytest.raises(PluginError, match=f"question type 'broken' failed: {rule}"):
        await engine.evaluate(state="S.", questions={"q": ASKED, "fine": FINE})
    evaluation = await engine.evaluate(state="S.", questions={"q": ASKED, "fine": FINE}, partial=True)
    assert {"q": rule} == evaluation.failures
    assert 0.5 == evaluation.answers["fine"]["noul"]
    assert "plugin_error" == evaluation.answers["q"]["x_error"]["error_type"]


LABELLED = {"labels": ("Unsure",)}


async def test_a_type_whose_labels_the_model_lacks_fails_by_its_name(caplog):
    engine = scripted_engine(None, broken(**LABELLED), TYPES["noul"])
    assert ["noul"] == list(engine.registry.types)
    (failure,) = engine.registry.failures
    cause = (
        "question type 'broken' of direct has labels that do not work with openjev/scripted: "
        "'Unsure' (it is 6 tokens); declare labels of one token, or choose another model"
    )
    assert ("broken", "direct", cause) == (failure.name, failure.distribution, failure.cause)
    assert f"not served: {cause}" in caplog.text
    assert 0.5 == (await engine.evaluate(state="S.", questions={"fine": FINE})).answers["fine"]["noul"]
    with pytest.raises(RequestError) as refused:
        engine.structure({"model": "jev-latest", "state": "S.", "questions": {"q": ASKED}})
    told = "questions.q.type: question type 'broken' did not load, the log of the start says why; served: noul"
    assert told == str(refused.value)


def test_with_no_type_left_there_is_no_engine():
    with pytest.raises(StartupError, match="no question type is left: question type 'broken' of direct has labels"):
        scripted_engine(None, broken(**LABELLED))


async def test_with_partial_and_nothing_else_it_is_an_error():
    engine = scripted_engine(None, broken(readouts=raising(ZeroDivisionError())), TYPES["noul"])
    with pytest.raises(PluginError):
        await engine.evaluate(state="S.", questions={"q": ASKED}, partial=True)


async def test_with_partial_a_wrong_question_is_still_a_wrong_request():
    backend = ScriptedBackend()
    engine = scripted_engine(backend, broken(readouts=raising(InvalidQuestion("no", ("criteria",)))), TYPES["noul"])
    with pytest.raises(RequestError) as refused:
        await engine.evaluate(state="S.", questions={"fine": FINE, "q": ASKED}, partial=True)
    assert ("questions", "q", "criteria") == refused.value.problems[0].loc
    assert [] == backend.prefixes


async def test_an_observer_that_fails_matters_to_no_one(caplog):
    told = []

    def exits(finished):
        raise SystemExit(3)

    engine = scripted_engine()
    engine = evolve(engine, observers=Observers([exits, told.append], "m"))
    evaluation = await engine.evaluate(state="S.", questions={"fine": FINE})
    await until(lambda: told)
    assert evaluation.answers == told[0].answers
    assert "an observer of evaluations failed" in caplog.text
