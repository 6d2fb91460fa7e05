"""A question's branches depend on the question and the state alone."""

from __future__ import annotations

import pytest
from attrs import evolve, frozen
from chatml_model import chatml_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from preparing import branches_of, prepared
from scripted_backend import scripted_engine

from openjev_core import InvalidQuestion, Option, QuestionType, Readout, RequestError
from openjev_core.errors import BackendUnavailable, PluginError
from openjev_core.orders import available_orders, orders_of
from openjev_core.plugins.registry import load_registry

ENGINE = scripted_engine(max_answers=255)
TYPES = load_registry().types

INSTRUCTIONS = st.text(max_size=10).filter(str.strip)
NOULS = st.builds(
    lambda text, true: (TYPES["noul"], TYPES["noul"].question(instructions=text, criteria=true)),
    INSTRUCTIONS,
    st.none(),
)
CHOICES = st.builds(
    lambda text, criteria: (TYPES["choice"], TYPES["choice"].question(instructions=text, criteria=criteria)),
    st.none() | INSTRUCTIONS,
    st.dictionaries(st.text(max_size=6), st.none() | st.text(max_size=6), min_size=2, max_size=5),
)
SCORES = st.builds(
    lambda criteria: (TYPES["score"], TYPES["score"].question(criteria=criteria)),
    st.lists(st.text(max_size=6), min_size=2, max_size=5),
)
QUESTIONS = st.dictionaries(st.text(min_size=1, max_size=8), NOULS | CHOICES | SCORES, min_size=1, max_size=4)


def branches(questions, orders=1, state="A state."):
    found = prepared(ENGINE.reader, state, questions, orders=orders)
    return {name: (branches_of(question), question.shared) for name, question in found.questions.items()}


@given(QUESTIONS, st.randoms(use_true_random=False), st.sampled_from([1, 2, "full"]))
def test_neither_names_nor_neighbours_nor_order_change_them(questions, random, orders):
    together = branches(questions, orders)
    ids = list(questions)
    random.shuffle(ids)
    assert together == branches({question_id: questions[question_id] for question_id in ids}, orders)
    renamed = branches({f"renamed {question_id}": asked for question_id, asked in questions.items()}, orders)
    assert list(together.values()) == list(renamed.values())
    for question_id, asked in questions.items():
        assert together[question_id] == branches({question_id: asked}, orders)[question_id]


@given(QUESTIONS)
def test_no_id_and_no_name_beside_a_description_reaches_the_model(questions):
    secret = "\U0001f512"
    hidden = {}
    for question_id, (kind, question) in questions.items():
        if kind.name == "choice":
            criteria = {f"{secret}{i}": d if d is not None else "d" for i, d in enumerate(question.criteria.values())}
            question = evolve(question, criteria=criteria)  # noqa: PLW2901 - the question with hidden names
        hidden[secret + question_id] = (kind, question)
    found = prepared(ENGINE.reader, "A state.", hidden)
    assert not [v for q in found.questions.values() for r in q.readouts for v in r.variants if secret in v.words]


@given(st.lists(st.text(max_size=4), min_size=2, max_size=9), st.booleans(), st.booleans(), st.integers(1, 12))
def test_orders(texts, ordered, permute, count):
    readout = Readout(
        text="?",
        options=[Option(key=i, text=text) for i, text in enumerate(texts)],
        ordered=ordered,
        permute=permute,
    )
    given_order = tuple(range(len(texts)))
    orders = orders_of(readout, count)
    assert min(count, available_orders(readout)) == len(orders) == len(set(orders))
    assert all(given_order == tuple(sorted(order)) for order in orders)
    assert orders_of(readout, available_orders(readout)) == orders_of(readout, "full")
    if count == 1 or not permute:
        assert (given_order,) == orders
    elif ordered:
        assert (given_order, given_order[::-1]) == orders


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=9, unique=True))
def test_every_option_stands_everywhere_equally_often_when_all_orders_are_read(keys):
    readout = Readout(text="?", options=[Option(key=k, text=str(k)) for k in keys])
    shown = list(zip(*orders_of(readout, "full"), strict=True))
    assert all(sorted(place) == list(range(len(keys))) for place in shown)


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=9, unique=True), st.randoms(use_true_random=False))
def test_listing_options_in_another_order_reads_the_same_prompts(keys, random):
    def prompts(listed):
        readout = Readout(text="?", options=[Option(key=k, text=str(k)) for k in listed])
        return {tuple(listed[given_at] for given_at in order) for order in orders_of(readout, "full")}

    other = list(keys)
    random.shuffle(other)
    assert prompts(keys) == prompts(other)


def test_labels_stand_in_the_options_given_order():
    question = TYPES["choice"].question(criteria={"x": "zebra", "y": "ape"})
    (readout,) = (
        prepared(ENGINE.reader, "S.", {"q": (TYPES["choice"], question)}, orders="full").questions["q"].readouts
    )
    shown = []
    for variant in readout.variants:
        labels = dict(zip(("zebra", "ape"), chatml_tokenizer().decode(list(variant.branch.labels)), strict=True))
        assert tuple(labels.values()) == variant.labels
        lines = variant.words.split("Options:\n")[1].splitlines()
        assert {f"{label}: {text}" for text, label in labels.items()} == set(lines)
        shown.append(lines)
    assert [["A: ape", "B: zebra"], ["A: zebra", "B: ape"]] == shown


def test_own_labels_travel_with_their_options():
    question = TYPES["noul"].question(instructions="Is it?")
    (readout,) = prepared(ENGINE.reader, "S.", {"q": (TYPES["noul"], question)}, orders="full").questions["q"].readouts
    yes, no = (chatml_tokenizer().encode(label)[0] for label in ("Yes", "No"))
    assert [(yes, no), (yes, no)] == [variant.branch.labels for variant in readout.variants]
    assert [["Yes", "No"], ["No", "Yes"]] == sorted(
        ([label for label, _ in variant.labelled] for variant in readout.variants), reverse=True
    )


@frozen(kw_only=True)
class Question:
    value: int = 0


@frozen(kw_only=True)
class Answer:
    value: float = 0.5


OPTIONS = (Option(key="a", text="one"), Option(key="b", text="two"))


def raising(error):
    def function(*_):
        raise error

    return function


def late(error):
    yield Readout(text="?", options=OPTIONS)
    raise error


def readout(**changes):
    return lambda question: [Readout(**{"text": "?", "options": OPTIONS, **changes})]


def labelled(*labels):
    return [Option(key=i, text="t", label=label) for i, label in enumerate(labels)]


BROKEN = [
    ({"readouts": raising(ValueError("internals"))}, "readouts raised ValueError"),
    ({"readouts": lambda q: late(KeyError("internals"))}, "readouts raised KeyError"),
    ({"readouts": raising(SystemExit(3))}, "readouts raised SystemExit"),
    ({"readouts": lambda q: late(StopIteration())}, "readouts raised RuntimeError"),
    ({"readouts": raising(RequestError.at(("x",), "internals"))}, "readouts raised RequestError"),
    ({"readouts": raising(BackendUnavailable("internals"))}, "readouts raised BackendUnavailable"),
    ({"readouts": lambda q: None}, "readouts returned NoneType; yield each Readout, or return a list of them"),
    ({"readouts": lambda q: []}, "readouts gave none"),
    ({"readouts": lambda q: ["x"]}, "readouts gave a str, not a Readout or a sequence of them"),
    ({"readouts": readout(text=" ?")}, "a readout's text is no string without outer white space"),
    ({"readouts": readout(text=None)}, "a readout's text is no string without outer white space"),
    ({"readouts": readout(loc="criteria")}, "a readout's loc is no tuple of field names and positions"),
    ({"readouts": readout(loc=(None,))}, "a readout's loc is no tuple of field names and positions"),
    ({"readouts": readout(options=[OPTIONS[0], "b"])}, "a readout's options are not all Option records with a text"),
    (
        {"readouts": readout(options=[OPTIONS[0], Option(key=2, text=3)])},
        "a readout's options are not all Option records with a text",
    ),
    ({"readouts": readout(options=[OPTIONS[0], OPTIONS[0]])}, "two options of a readout have one key"),
    ({"readouts": readout(options=[Option(key=[], text=""), OPTIONS[0]])}, "an option's key cannot be hashed"),
    (
        {"readouts": readout(options=labelled("Yes", None)), "labels": ("Yes",)},
        "a readout's options have own labels in part, or one label twice",
    ),
    (
        {"readouts": readout(options=labelled("Yes", "Yes")), "labels": ("Yes",)},
        "a readout's options have own labels in part, or one label twice",
    ),
    (
        {"readouts": readout(options=labelled("Yes", "No")), "labels": ("Yes",)},
        "a readout uses labels that the type does not declare: No",
    ),
    ({"suffix": raising(ValueError("internals"))}, "suffix raised ValueError"),
    ({"suffix": raising(SystemExit(3))}, "suffix raised SystemExit"),
    ({"suffix": lambda readout, shown: b"x"}, "suffix returned no string without outer white space"),
    ({"suffix": lambda readout, shown: "x\n"}, "suffix returned no string without outer white space"),
]


def broken_type(**changes):
    fields = {
        "name": "broken",
        "summary": "For tests.",
        "api": 1,
        "question": Question,
        "answer": Answer,
        "readouts": readout(),
        "reduce": lambda question, distributions: Answer(),
    }
    return QuestionType(**{**fields, **changes})


@pytest.mark.parametrize(("changes", "rule"), BROKEN, ids=[rule for _, rule in BROKEN])
def test_what_breaks_the_contract_is_the_types_fault_and_shows_no_internals(changes, rule):
    with pytest.raises(PluginError) as broken:
        prepared(ENGINE.reader, "S.", {"q": (broken_type(**changes), Question())})
    assert f"question type 'broken' failed: {rule}" == str(broken.value)


def test_a_refusal_of_its_own_is_told_inside_its_question():
    question_type = broken_type(readouts=lambda q: late(InvalidQuestion("two of a kind", ["value"])))
    with pytest.raises(RequestError) as refused:
        prepared(ENGINE.reader, "S.", {"a b.c": (question_type, Question())})
    (problem,) = refused.value.problems
    assert (("questions", "a b.c", "value"), "two of a kind") == (problem.loc, problem.msg)


@pytest.mark.parametrize("count", [0, 256])
def test_too_few_and_too_many_options_name_limit_and_count(count):
    options = [Option(key=i, text=str(i)) for i in range(count)]
    question_type = broken_type(readouts=readout(options=options, loc=("value",)))
    with pytest.raises(RequestError) as refused:
        prepared(ENGINE.reader, "S.", {"q": (question_type, Question())})
    (problem,) = refused.value.problems
    assert (("questions", "q", "value"), "option_count") == (problem.loc, problem.type)
    assert f"a broken question takes 1 to 255 options (max_answers), found {count}" == problem.msg


def test_255_options():
    options = [Option(key=i, text=str(i)) for i in range(255)]
    found = prepared(ENGINE.reader, "S.", {"q": (broken_type(readouts=readout(options=options)), Question())})
    (branch,) = branches_of(found.questions["q"])
    assert 255 == len(set(branch.labels))


def test_with_partial_the_other_questions_are_prepared():
    fine = (TYPES["noul"], TYPES["noul"].question(instructions="Is it?"))
    bad = (broken_type(readouts=raising(ValueError("internals"))), Question())
    found = prepared(ENGINE.reader, "S.", {"a": fine, "b": bad, "c": fine}, partial=True)
    assert ["a", "c"] == [*found.questions]
    assert {"b": "readouts raised ValueError"} == {key: error.rule for key, error in found.failures.items()}
