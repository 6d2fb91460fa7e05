"""A server applies what a calibration's report promised, and accepts the answers that it promised of."""

from __future__ import annotations

import asyncio
import hashlib

import numpy as np
import openjev_choice
import openjev_noul
import openjev_score
import pytest
from attrs import evolve
from scipy.special import log_softmax, softmax

from openjev_core import Settings
from openjev_core.calibration import read_calibration, write_calibration
from openjev_core.datasets.acceptance import acceptance
from openjev_core.datasets.calibrations import calibrate, calibration_of, examples_of, half_for_the_fit
from openjev_core.datasets.calibrations import labelled_questions as with_scores
from openjev_core.datasets.checked_rows import check_rows
from openjev_core.datasets.fits import probabilities
from openjev_core.datasets.records import ScoreRecorder
from openjev_core.datasets.rows import Row
from openjev_core.engine.calibrated import calibration_digest, name_of, question_digest
from openjev_core.plugins.registry import registry_of
from openjev_core.testing.scripted import engine_on, scripted_model

(CHOICE,) = openjev_choice.openjev_question_types()
(NOUL,) = openjev_noul.openjev_question_types()
(SCORE,) = openjev_score.openjev_question_types()
TEAM = {"type": "choice", "instructions": "Which team?", "criteria": {"sales": None, "billing": None, "other": None}}
URGENT = {"type": "noul", "instructions": "Is it urgent?"}
LEVEL = {"type": "score", "instructions": "How cross?", "criteria": ["calm", "cross", "furious"]}
QUESTIONS = {"team": TEAM, "urgent": URGENT, "level": LEVEL}
OPTIONS = {"team": ["sales", "billing", "other"], "urgent": [True, False], "level": [0, 1, 2]}


def noise(text, count, width=2.0):
    """Numbers that a text alone decides."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(0, width, count)


def script(prompt, labels):
    """Reads by the state and the question, with a preference for the letter that stands first."""
    state = prompt.split("State ")[1].split(".")[0]
    kinds = {"team?": "team", "urgent?": "urgent", "cross?": "level"}
    kind = next(kind for words, kind in kinds.items() if words in prompt)
    scores = noise(f"{state} {kind}", len(labels)) + np.arange(len(labels))[::-1] * 0.3
    return softmax(scores * 3).tolist()


def rows(first, count, shift=1.5):
    """Rows whose labels come of what is read at a third of its certainty, with a shift towards the last option."""
    found = []
    for number in range(first, first + count):
        labels = {}
        for kind, options in OPTIONS.items():
            p = softmax(noise(f"{number} {kind}", len(options)) + np.linspace(0, shift, len(options)))
            drawn = np.random.default_rng([number, len(kind)]).choice(len(options), p=p)
            labels[kind] = options[drawn]
        found.append(
            Row(
                number=number, place=f"row {number}", id=str(number), state=f"State {number}.",
                questions=QUESTIONS, labels=labels, fields={},
            )
        )  # fmt: skip
    return found


MODEL = scripted_model(script)
REGISTRY = registry_of(CHOICE, NOUL, SCORE)


def read(engine, data):
    """The labelled questions of rows, with their scores."""
    checked = check_rows(data, engine.converter, labelled=True)
    recorder = ScoreRecorder(engine, checked)

    async def records():
        return [await recorder.record(row) for row in data]

    return with_scores(asyncio.run(records()), checked)


@pytest.mark.parametrize("orders", [1, "full"])
def test_what_is_served_on_fresh_rows_is_what_the_fit_says(tmp_path, orders):
    plain = engine_on(MODEL, Settings(orders=orders), REGISTRY)
    questions = read(plain, rows(1, 150, shift=3.0))
    fits, _ = calibrate(examples_of(questions), ())
    write_calibration(calibration_of(plain, fits, questions), path := str(tmp_path / "c.json"))
    served = engine_on(MODEL, Settings(orders=orders, calibration=path), REGISTRY)
    forms = {name: next(iter(fitted.questions.values()))[0].form for name, fitted in fits.items()}
    assert {"temperature and bias"} == set(forms.values())

    for row in rows(1000, 20):
        answers = asyncio.run(served.evaluate(state=row.state, questions=row.questions)).answers
        fresh = {question.checked.shape.type: question for question in read(plain, [row])}
        assert {"question"} == {answer["x_calibration"] for answer in answers.values()}
        for kind, found in (
            ("choice", [answers["team"]["probabilities"][name] for name in sorted(OPTIONS["team"])]),
            ("noul", [1 - answers["urgent"]["noul"], answers["urgent"]["noul"]]),
            ("score", list(answers["level"]["probabilities"].values())),
        ):
            (example,) = fresh[kind].examples
            correction = fits[kind].correction(example.question)
            assert pytest.approx(probabilities(example, correction), abs=1e-12) == found
            # And by hand: each order corrected, then averaged.
            bias, temperature = np.array(correction.bias), correction.temperature
            logs = [log_softmax(np.array(order) / temperature + bias) for order in example.orders]
            assert pytest.approx(softmax(np.mean(logs, axis=0)).tolist(), abs=1e-12) == found


@pytest.mark.parametrize("orders", [1, "full"])
def test_classes_and_levels_can_be_shifted(tmp_path, orders):
    """With all orders read, biases of letters cancelled: a score one level too high stayed so, at an error of .85."""
    plain = engine_on(MODEL, Settings(orders=orders), REGISTRY)
    _, report = calibrate(examples_of(read(plain, rows(1, 200, shift=6.0))), ())

    for group in report["groups"]:
        loss = group["measures"]["log_loss"]
        assert loss["after"]["value"] < 0.6 * loss["before"]["value"], group["type"]


def test_a_calibration_of_one_question_leaves_another_alone(tmp_path):
    plain = engine_on(MODEL, Settings(), REGISTRY)
    questions = [one for one in read(plain, rows(1, 120, shift=4.0)) if one.checked.shape.type == "choice"]
    fits, _ = calibrate(examples_of(questions), ())
    write_calibration(calibration_of(plain, fits, questions), path := str(tmp_path / "c.json"))
    served = engine_on(MODEL, Settings(calibration=path), REGISTRY)

    other = {"q": {**TEAM, "criteria": {"sales": "Buying", "billing": None, "other": None}}, "u": URGENT}
    before = asyncio.run(plain.evaluate(state="State 7.", questions=other)).answers
    after = asyncio.run(served.evaluate(state="State 7.", questions=other)).answers

    assert ["none", "none"] == [answer.pop("x_calibration") for answer in after.values()]
    assert before == after


def promising(engine, data, share, sure=0.9):
    """A calibration fitted on half of the rows, which promises by the others."""
    questions = read(engine, data)
    half = half_for_the_fit([question.row for question in questions])
    fitted_on = [question for question in questions if question.row in half]
    fits, _ = calibrate(examples_of(fitted_on), ())
    calibration = calibration_of(engine, fits, fitted_on)
    others = [question for question in questions if question.row not in half]
    return evolve(calibration, promise=acceptance(others, calibration, engine.converter, "entropy", share, sure))


def test_accepted_are_the_answers_at_or_above_the_threshold(tmp_path):
    plain = engine_on(MODEL, Settings(), REGISTRY)
    calibration = promising(plain, rows(1, 300), 0.75)
    write_calibration(calibration, path := str(tmp_path / "c.json"))
    assert calibration_digest(read_calibration(path)) == calibration_digest(calibration)
    served = engine_on(MODEL, Settings(calibration=path), REGISTRY)
    question = served.structure({"model": "jev-latest", "state": "x", "questions": {"team": TEAM}}).questions["team"]
    (readout,) = CHOICE.readouts(question.value)
    by_text = {part.text: digest for digest, part in calibration.questions.items()}
    assert name_of(CHOICE, None, readout).digest == by_text["Which team?"]

    seen = set()
    for row in rows(2000, 40):
        answers = asyncio.run(served.evaluate(state=row.state, questions={"team": TEAM})).answers
        promised = calibration.promise.questions[question_digest([name_of(CHOICE, None, readout)])]
        accepted = max(answers["team"]["probabilities"].values()) >= promised.threshold
        assert accepted == answers["team"]["x_accept"]
        seen.add(accepted)
    assert {True, False} == seen


def test_of_a_question_that_nothing_is_promised_of_no_answer_is_accepted(tmp_path):
    plain = engine_on(MODEL, Settings(), REGISTRY)
    write_calibration(promising(plain, rows(1, 140), 0.99), path := str(tmp_path / "c.json"))
    served = engine_on(MODEL, Settings(calibration=path), REGISTRY)

    promise = served.promise
    assert {None} == {one.threshold for one in promise.questions.values()}
    assert all(one.words.startswith("not with th") for one in promise.questions.values())
    questions = {**QUESTIONS, "unknown": {"type": "noul", "instructions": "Is it urgent? Really?"}}
    answers = asyncio.run(served.evaluate(state="State 3.", questions=questions)).answers
    assert {False} == {answer["x_accept"] for answer in answers.values()}


def test_a_third_partys_answers_are_right_or_wrong_as_it_says():
    """It answers "other" unless it is sure, whatever is most probable."""

    def reduce(question, distributions):
        answer = CHOICE.reduce(question, distributions)
        sure = answer.probabilities[answer.choice] >= 0.8
        return answer if sure else evolve(answer, choice="other")

    cautious = evolve(CHOICE, name="cautious", reduce=reduce)
    engine = engine_on(scripted_model(lambda _, labels: [0.7, 0.2, 0.1]), Settings(), registry_of(cautious))
    question = {**TEAM, "type": "cautious"}
    data = [evolve(row, questions={"q": question}, labels={"q": "other"}) for row in rows(1, 120)]
    questions = read(engine, data)

    promise = acceptance(questions, calibration_of(engine, {}, questions), engine.converter, "entropy", 0.9, 0.9)

    (found,) = promise.questions.values()
    assert (0.0, 120, 0) == (found.threshold, found.kept, found.wrong)
