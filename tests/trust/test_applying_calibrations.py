"""A calibration file: what it does to probabilities, and what it is refused for."""

from __future__ import annotations

import asyncio
import math

import openjev_choice
import openjev_noul
import pytest

from openjev_core import RequestError, Settings, StartupError
from openjev_core.calibration import FORMAT, Calibration, Correction, TypeCalibration, write_calibration
from openjev_core.engine.calibrated import prompt_digest
from openjev_core.plugins.registry import registry_of
from openjev_core.prompts.model import template_digest
from openjev_core.testing.scripted import engine_on, scripted_model

(CHOICE,) = openjev_choice.openjev_question_types()
(NOUL,) = openjev_noul.openjev_question_types()
MODEL = scripted_model(lambda _, labels: [0.8, 0.2] if len(labels) == 2 else [0.6, 0.3, 0.1])


HOT = Correction(temperature=2.0)


def calibration(any=HOT, by_options=None, **fields):
    entry = TypeCalibration(prompt=prompt_digest(CHOICE), any=any, by_options=by_options or {})
    return Calibration(
        **{
            "format": FORMAT,
            "model": MODEL.public_name,
            "template": template_digest(MODEL.template),
            "orders": 1,
            "prior": "off",
            "types": {"choice": entry},
            **fields,
        }
    )


@pytest.fixture
def engine_with(tmp_path):
    def make(found, **settings):
        path = tmp_path / "calibration.json"
        write_calibration(found, str(path))
        return engine_on(MODEL, Settings(calibration=str(path), **settings), registry_of(CHOICE, NOUL))

    return make


def ask(engine, *names, orders=None):
    questions = {"q": {"type": "choice", "instructions": "Which?", "criteria": dict.fromkeys(names)}}
    evaluation = asyncio.run(engine.evaluate(state="A state.", questions=questions, orders=orders))
    return evaluation.answers["q"]["probabilities"]


def test_a_temperature_divides_the_logprobs(engine_with):
    hot = math.sqrt(0.8) / (math.sqrt(0.8) + math.sqrt(0.2))

    assert pytest.approx(hot) == ask(engine_with(calibration()), "Red", "Blue")["Red"]


def test_a_bias_is_added_to_the_label_that_an_option_stands_under(engine_with):
    biased = Correction(temperature=1.0, bias={"B": math.log(4)})

    assert pytest.approx(0.5) == ask(engine_with(calibration(biased)), "Red", "Blue")["Red"]


def test_a_number_of_options_may_have_its_own(engine_with):
    engine = engine_with(calibration(Correction(temperature=1.0), {"2": Correction(temperature=2.0)}))

    assert pytest.approx(0.6) == ask(engine, "Red", "Blue", "Green")["Red"]
    assert pytest.approx(2 / 3) == ask(engine, "Red", "Blue")["Red"]


def test_a_type_that_it_does_not_name_is_left_alone(engine_with):
    question = {"type": "noul", "instructions": "So?"}

    evaluation = asyncio.run(engine_with(calibration()).evaluate(state="A state.", questions={"q": question}))

    assert pytest.approx(0.8) == evaluation.answers["q"]["noul"]


@pytest.mark.parametrize(
    ("fields", "settings", "words"),
    [
        ({"model": "another/model"}, {}, "model 'another/model', found 'openjev/scripted'"),
        ({"template": "0" * 32}, {}, "the chat template '0000"),
        ({"orders": "full"}, {}, "OPENJEV_ORDERS 'full', found '1'"),
        ({}, {"orders": "full"}, "OPENJEV_ORDERS '1', found 'full'"),
        ({"prior": "contentless"}, {}, "OPENJEV_PRIOR 'contentless', found 'off'"),
        ({}, {"temperature": 1.5}, "OPENJEV_TEMPERATURE is 1.5"),
        ({"types": {"rank": TypeCalibration(prompt="", any=Correction(temperature=1.0))}}, {}, "question type 'rank'"),
        (
            {"types": {"choice": TypeCalibration(prompt="old", any=Correction(temperature=1.0))}},
            {},
            "prompts of 'choice'",
        ),
        ({"format": 2}, {}, "has format 2"),
    ],
)
def test_one_fitted_on_something_else_is_refused_at_start(engine_with, fields, settings, words):
    with pytest.raises(StartupError, match=words):
        engine_with(calibration(**fields), **settings)


@pytest.mark.parametrize(("fitted", "asked"), [(1, 2), (1, "full"), (2, 1), ("full", 1), ("full", 2)])
def test_a_request_for_other_orders_is_refused(engine_with, fitted, asked):
    engine = engine_with(calibration(orders=fitted), orders=fitted)

    with pytest.raises(RequestError, match=f"this server's calibration was fitted for orders of {fitted!r}") as refused:
        ask(engine, "Red", "Blue", orders=asked)
    assert ("x_orders",) == refused.value.problems[0].loc


@pytest.mark.parametrize(("fitted", "asked"), [(1, 1), (2, 2), ("full", "full")])
def test_a_request_for_the_same_orders_is_not(engine_with, fitted, asked):
    engine = engine_with(calibration(orders=fitted), orders=fitted)

    assert ask(engine, "Red", "Blue") == ask(engine, "Red", "Blue", orders=asked)


@pytest.mark.parametrize("number", ["0", "-1.0", "1e400", "1e-320", "0.0009"])
def test_a_temperature_that_makes_no_sense_is_refused(tmp_path, number):
    path = tmp_path / "calibration.json"
    write_calibration(calibration(), str(path))
    path.write_text(path.read_text().replace('"temperature": 2.0', f'"temperature": {number}'))

    with pytest.raises(StartupError, match=r"calibration\.json"):
        engine_on(MODEL, Settings(calibration=str(path)), registry_of(CHOICE))


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"format": 1}', b"\xff"])
def test_a_file_that_is_no_calibration_is_refused(tmp_path, content):
    path = tmp_path / "calibration.json"
    path.write_bytes(content)

    with pytest.raises(StartupError, match="is no calibration file"):
        engine_on(MODEL, Settings(calibration=str(path)), registry_of(CHOICE))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(StartupError, match="openjev calibrate"):
        engine_on(MODEL, Settings(calibration=str(tmp_path / "none.json")), registry_of(CHOICE))


def test_scores_are_told_without_the_calibration(engine_with):
    engine = engine_with(calibration())
    question = {"type": "choice", "instructions": "Which?", "criteria": {"Red": None, "Blue": None}}
    request = engine.structure({"model": "jev-latest", "state": "A state.", "questions": {"q": question}})

    (readout,) = asyncio.run(engine.scores(request))["q"]

    (order,) = readout
    assert ("A", "B") == order.labels
    assert pytest.approx(math.log(4)) == order.scores[0] - order.scores[1]


def test_scores_name_the_labels_of_each_order():
    engine = engine_on(MODEL, Settings(orders="full"), registry_of(CHOICE))
    question = {"type": "choice", "instructions": "Which?", "criteria": {"Red": None, "Blue": None, "Tan": None}}
    request = engine.structure({"model": "jev-latest", "state": "A state.", "questions": {"q": question}})

    (readout,) = asyncio.run(engine.scores(request))["q"]

    # Sorted by text: Blue, Red, Tan. Given: Red, Blue, Tan.
    assert [("B", "A", "C"), ("A", "C", "B"), ("C", "B", "A")] == [order.labels for order in readout]
