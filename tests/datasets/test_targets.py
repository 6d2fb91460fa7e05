"""Labels of answers that come from many readouts, and from those that depend on what is read."""

from __future__ import annotations

import asyncio

import attrs
import pytest
from attrs import frozen

from openjev_core import InvalidQuestion, Option, PluginError, QuestionType, Readout, RequestError, Settings
from openjev_core.calibration import write_calibration
from openjev_core.datasets.acceptance import acceptance
from openjev_core.datasets.askers import Reply
from openjev_core.datasets.calibrations import (
    calibrate,
    calibration_of,
    examples_of,
    labelled_questions,
    labelled_rows,
)
from openjev_core.datasets.checked_rows import check_questions, check_rows
from openjev_core.datasets.records import EvaluationRecorder, ScoreRecorder
from openjev_core.datasets.rows import Row
from openjev_core.datasets.shapes import shape_of
from openjev_core.datasets.targets import OTHER
from openjev_core.datasets.verdicts import verdict
from openjev_core.plugins.registry import registry_of
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.testing import scripted_engine, scripted_model
from openjev_core.testing.scripted import engine_on

TONES = ("calm", "cross", "furious")


@frozen(kw_only=True)
class Many:
    count: int


@frozen(kw_only=True)
class ManyAnswer:
    many: list[str]


def tones(question):
    for index in range(question.count):
        yield Readout(key=index, text=f"Sentence {index}?", options=[Option(key=tone, text=tone) for tone in TONES])


def tops(question, distributions):
    return ManyAnswer(many=[distribution.top.key for distribution in distributions])


def tone_of(question, label, readout):
    """A null says nothing about its sentence."""
    if not isinstance(label, list) or len(label) != question.count:
        raise InvalidQuestion(f"is no list of {question.count} tones")
    return label[readout.key]


SENTENCES = QuestionType(
    name="sentences", summary="A tone for each sentence.", api=1, question=Many, answer=ManyAnswer,
    readouts=tones, reduce=tops, target=tone_of,
)  # fmt: skip


def down(question):
    path = ""
    for _ in range(question.count):
        options = [Option(key=digit, text=digit) for digit in "0123456789"]
        (found,) = yield [Readout(key=path, text=f"Next of {path}?", options=options)]
        path += found.top.key


def digit_of(question, label, readout):
    digits = label if isinstance(label, list) else list(str(label))
    depth = len(readout.key)
    if depth >= len(digits):
        return None
    return digits[depth] if "".join(digits[:depth]) == readout.key else None


TREE = QuestionType(
    name="tree", summary="A path.", api=1, question=Many, answer=ManyAnswer, readouts=down, reduce=tops,
    target=digit_of,
)  # fmt: skip

EIGHT = {"type": "sentences", "count": 8}
THREE = {"type": "tree", "count": 3}
UNSAID = ["calm"] * 7 + [None]


def converter(*types):
    return QuestionConverter(registry_of(*types))


def row(number, question, label):
    labels = {} if label is None else {"q": label}
    place, questions = f"row {number}", {"q": question}
    return Row(number=number, place=place, id=place, state="x", questions=questions, labels=labels, fields={})


@frozen
class Answers:
    answer: object

    async def ask(self, state, questions):
        answers = {key: {"type": "any", "many": self.answer} for key in questions}
        return Reply(model="m", answers=answers, input_tokens=1, output_tokens=1, seconds=0.1)


def judged(rows, kind, answer):
    asks = converter(kind)
    checked = check_rows(rows, asks, labelled=True)
    recorder = EvaluationRecorder(Answers(answer), asks, checked, reorder=True, seed=0)
    return [asyncio.run(recorder.record(one))["questions"]["q"] for one in rows]


def test_eight_sentences_of_three_tones_are_judged():
    other = ["furious"] * 8
    first, second = judged([row(1, EIGHT, ["calm"] * 8), row(2, EIGHT, other)], SENTENCES, other)

    assert ["joint", None] == [first["kind"], first["probabilities"]]
    assert [str(["calm"] * 8).replace("'", '"').replace(" ", ""), OTHER] == [first["names"][0], first["names"][2]]
    assert [(0, 1), (1, 1)] == [(one["label"], one["predicted"]) for one in (first, second)]
    assert pytest.approx(3**-8) == first["chance"]


def test_an_answer_that_no_label_means_is_another_answer():
    (only,) = judged([row(1, EIGHT, ["calm"] * 8)], SENTENCES, ["cross"] * 8)

    assert OTHER == only["names"][only["predicted"]]


def test_what_a_label_does_not_say_is_not_judged():
    shape = shape_of(EIGHT, converter(SENTENCES))

    assert 7 == shape.labelled(shape.outcome_of(UNSAID))


def test_a_path_of_a_thousand_is_judged_however_it_is_written():
    first, second, third = judged([row(1, THREE, "472"), row(2, THREE, 472), row(3, THREE, 471)], TREE, ["4", "7", "2"])

    assert [0, 0, 1] == [one["label"] for one in (first, second, third)]
    assert [0, 0, 0] == [one["predicted"] for one in (first, second, third)]
    assert pytest.approx(1e-3) == first["chance"]


def test_guesses_where_every_row_has_options_of_its_own_are_as_rare_as_its_answers():
    questions = judged([row(n, {"type": "tree", "count": n + 1}, "1" * (n + 1)) for n in (1, 2)], TREE, ["1", "1"])

    found = verdict("q", [(n, "q", question) for n, question in enumerate(questions)])

    assert pytest.approx((0.01 + 0.001) / 2) == found["baseline"]["accuracy"]


def test_scores_of_readouts_that_were_asked_on_the_wrong_way_have_no_label():
    """The model goes to 9 first, where the label says nothing more."""
    engine = scripted_engine(TREE, script=lambda prompt, labels: [0.01] * 9 + [0.91])
    rows = [row(1, THREE, "972"), row(2, THREE, "123")]
    checked = check_rows(rows, engine.converter, labelled=True)
    recorder = ScoreRecorder(engine, checked)

    first, second = (asyncio.run(recorder.record(one))["readouts"] for one in rows)

    assert {"tree": [1, 1, 1, 2, 2, 2]} == labelled_rows(checked)
    assert [9, 7] == [one["label"] for one in first]
    assert [1] == [one["label"] for one in second]


def test_a_type_that_asks_on_is_calibrated_and_served_so(tmp_path):
    """The model prefers 9 at the top, and the labels say 3: what is fitted there changes what is asked next."""
    script = lambda prompt, labels: [0.02] * 3 + [0.3] + [0.02] * 5 + [0.54]  # noqa: E731
    registry = registry_of(TREE)
    plain = scripted_engine(TREE, script=script)
    rows = [row(number, THREE, "377" if number % 8 else "977") for number in range(1, 121)]
    checked = check_rows(rows, plain.converter, labelled=True)
    recorder = ScoreRecorder(plain, checked)
    questions = labelled_questions([asyncio.run(recorder.record(one)) for one in rows], checked)
    fits, _ = calibrate(examples_of(questions), ())
    calibration = calibration_of(plain, fits, questions)
    write_calibration(calibration, path := str(tmp_path / "c.json"))
    served = engine_on(scripted_model(script), Settings(calibration=path), registry)

    before, after = (
        asyncio.run(engine.evaluate(state="x", questions={"q": THREE})).answers["q"] for engine in (plain, served)
    )

    assert ["9", "9", "9"] == before["many"]
    assert "3" == after["many"][0]
    assert ["Next of ?"] == [part.text for part in calibration.questions.values() if part.readouts == len(rows)]
    assert {} == acceptance(questions, calibration, plain.converter, "entropy", 0.9, 0.9).questions


@pytest.mark.parametrize(
    ("kind", "question", "label", "msg"),
    [
        (SENTENCES, EIGHT, ["calm"], "labels.q: the label ['calm'] is no list of 8 tones"),
        (SENTENCES, EIGHT, [None] * 8, "says nothing about what this sentences question asks"),
        (attrs.evolve(SENTENCES, target=None), EIGHT, ["calm"] * 8, "8 readouts has 6561 possible answers, and up to"),
        (attrs.evolve(TREE, target=None), THREE, 123, "what a tree question asks depends on what is read"),
    ],
)
def test_labels_that_mean_nothing_are_refused_with_their_row(kind, question, label, msg):
    with pytest.raises(RequestError) as refusal:
        check_rows([row(1, question, label)], converter(kind), labelled=True)

    assert str(refusal.value).startswith("row 1: labels.q: ")
    assert msg in str(refusal.value)


@pytest.mark.parametrize("kind", [SENTENCES, TREE])
def test_without_labels_such_questions_need_no_target(kind):
    question = {"type": kind.name, "count": 20}

    check_questions([row(1, question, None)], converter(attrs.evolve(kind, target=None)))


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        (lambda q, label, readout: "angry", "target gave 'angry', which is the key of no option; there are calm, "),
        (lambda q, label, readout: label.x, "target raised AttributeError"),
    ],
)
def test_a_target_that_breaks_the_contract_is_the_types_fault(target, rule):
    with pytest.raises(PluginError, match=rule):
        check_rows([row(1, EIGHT, [])], converter(attrs.evolve(SENTENCES, target=target)), labelled=True)


def test_a_target_is_a_function():
    with pytest.raises(ValueError, match="its target cannot be called; give a function, or None"):
        registry_of(attrs.evolve(TREE, target="digits"))
