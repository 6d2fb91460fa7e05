"""A calibration file: what it does to probabilities, and what it is refused for."""

from __future__ import annotations

import asyncio
import math

import openjev_choice
import openjev_noul
import pytest

from openjev_core import RequestError, Settings, StartupError
from openjev_core.calibration import FORMAT, Calibration, QuestionPart, TypePart, write_calibration
from openjev_core.engine.calibrated import name_of, prompt_digest
from openjev_core.plugins.registry import registry_of
from openjev_core.prompts.model import template_digest
from openjev_core.question import ENGLISH
from openjev_core.testing.scripted import engine_on, scripted_model

(CHOICE,) = openjev_choice.openjev_question_types()
(NOUL,) = openjev_noul.openjev_question_types()


def first(_, labels):
    """Prefers what stands under the first letter, or Yes."""
    if len(labels) == 3:
        return [0.6, 0.3, 0.1]
    return [0.8 if label in ("A", "Yes") else 0.2 for label in labels]


MODEL = scripted_model(first)


def pooled(temperature=2.0, kept=True, prompt=None):
    return TypePart(
        prompt=prompt_digest(CHOICE, ENGLISH) if prompt is None else prompt, temperature=temperature, kept=kept,
        why="", questions=3, rows=100, readouts=300,
    )  # fmt: skip


def question_of(*names):
    return {"type": "choice", "instructions": "Which?", "criteria": dict.fromkeys(names)}


def digest_of(*names):
    request = engine_on(MODEL, Settings(), registry_of(CHOICE)).structure(
        {"model": "jev-latest", "state": "A state.", "questions": {"q": question_of(*names)}}
    )
    (readout,) = CHOICE.readouts(request.questions["q"].value)
    return name_of(CHOICE, None, readout).digest


def own(*names, temperature=1.0, bias=()):
    """A part of the question with these options; biases in the order of their names."""
    part = QuestionPart(
        type="choice", text="Which?", options=sorted(names), temperature=temperature, bias=bias,
        form="temperature and bias", why="", rows=100, readouts=100,
    )  # fmt: skip
    return {digest_of(*names): part}


def calibration(types=None, **fields):
    return Calibration(
        **{
            "format": FORMAT,
            "model": MODEL.public_name,
            "template": template_digest(MODEL.template),
            "orders": 1,
            "prior": "off",
            "types": {"choice": pooled()} if types is None else types,
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
    return answer(engine, *names, orders=orders)["probabilities"]


def answer(engine, *names, orders=None):
    questions = {"q": question_of(*names)}
    return asyncio.run(engine.evaluate(state="A state.", questions=questions, orders=orders)).answers["q"]


def test_a_temperature_divides_the_logprobs(engine_with):
    hot = math.sqrt(0.8) / (math.sqrt(0.8) + math.sqrt(0.2))

    assert pytest.approx(hot) == ask(engine_with(calibration()), "Red", "Blue")["Red"]


def test_a_bias_is_added_to_the_option_wherever_it_is_listed(engine_with):
    """The model gives .8 to what stands first. Blue, which stands first by name, has a bias."""
    engine = engine_with(calibration(questions=own("Red", "Blue", bias=(math.log(4), 0.0))))

    assert pytest.approx(0.5) == ask(engine, "Red", "Blue")["Blue"]
    assert pytest.approx(16 / 17) == ask(engine, "Blue", "Red")["Blue"]


def test_a_bias_of_an_option_stays_where_all_orders_are_read(engine_with):
    """Biases of letters cancelled there, so that no calibration could shift classes or levels."""
    fitted = calibration(orders="full", questions=own("Red", "Blue", bias=(1.0, -1.0)))

    found = ask(engine_with(fitted, orders="full"), "Red", "Blue")

    assert pytest.approx(1 / (1 + math.exp(-2))) == found["Blue"]


def test_what_applied_is_told(engine_with):
    engine = engine_with(calibration(questions=own("Red", "Blue", temperature=4.0)))

    assert "question" == answer(engine, "Red", "Blue")["x_calibration"]
    assert "type" == answer(engine, "Red", "Green")["x_calibration"]
    assert pytest.approx(math.sqrt(2) / (math.sqrt(2) + 1)) == ask(engine, "Red", "Blue")["Red"]


def test_a_question_that_is_not_known_gets_nothing_where_nothing_is_known_of_others(engine_with):
    found = answer(engine_with(calibration({"choice": pooled(temperature=1.0, kept=False)})), "Red", "Blue")

    assert ("none", pytest.approx(0.8)) == (found["x_calibration"], found["probabilities"]["Red"])


def test_without_a_calibration_nothing_is_said_of_it():
    assert "x_calibration" not in answer(engine_on(MODEL, Settings(), registry_of(CHOICE)), "Red", "Blue")


def test_an_option_alone_has_nothing_to_correct(engine_with):
    assert ("none", {"Red": 1.0}) == (
        (found := answer(engine_with(calibration()), "Red"))["x_calibration"],
        found["probabilities"],
    )


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
        ({"types": {"rank": pooled(prompt="")}}, {}, "question type 'rank'"),
        (
            {"types": {"choice": pooled(prompt="old")}},
            {},
            "prompts of 'choice'",
        ),
        ({"format": 3}, {}, "has format 3"),
        ({"format": 1}, {}, "format 1, of an earlier openjev.* fit it anew with `openjev calibrate`"),
        (
            {"questions": own("Red", "Blue", bias=(1.0, 2.0, 3.0))},
            {},
            "has 3 biases for the 2 options of 'Which\\?'",
        ),
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


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"format": 2}', b"\xff"])
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

    (order,) = readout.orders
    assert ("A", "B") == order.labels
    assert pytest.approx(math.log(4)) == order.scores[0] - order.scores[1]


def test_scores_name_the_labels_of_each_order():
    engine = engine_on(MODEL, Settings(orders="full"), registry_of(CHOICE))
    question = {"type": "choice", "instructions": "Which?", "criteria": {"Red": None, "Blue": None, "Tan": None}}
    request = engine.structure({"model": "jev-latest", "state": "A state.", "questions": {"q": question}})

    (readout,) = asyncio.run(engine.scores(request))["q"]

    # Sorted by text: Blue, Red, Tan. Given: Red, Blue, Tan.
    assert [("B", "A", "C"), ("A", "C", "B"), ("C", "B", "A")] == [order.labels for order in readout.orders]
