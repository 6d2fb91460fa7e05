"""Averaging over orders: what is read, what is averaged, what it makes invariant."""

from __future__ import annotations

import asyncio
import itertools
import math
import re

import openjev_choice
import openjev_noul
import openjev_score
import pytest

from openjev_core import Option, QuestionType, Readout, RequestError, Settings
from openjev_core.orders import available_orders, orders_of
from openjev_core.testing import scripted_engine

(CHOICE,) = openjev_choice.openjev_question_types()
(NOUL,) = openjev_noul.openjev_question_types()
(SCORE,) = openjev_score.openjev_question_types()

TASTE = {"Red": 0.5, "Green": 0.3, "Blue": 0.2, "Grey": 0.1}
PLACE = {"A": 3.0, "B": 1.0, "C": 0.5, "D": 0.25}


def shown(prompt):
    """Label to option text, as the prompt shows them."""
    return dict(re.findall(r"^([A-Z]|Yes|No): (.*?)(?:<\|im_end\|>)?$", prompt, re.MULTILINE))


def biased(prompt, labels):
    """Likes some options, and some places much more."""
    options = shown(prompt)
    weights = [TASTE[options[label]] * PLACE[label] for label in labels]
    return [weight / sum(weights) for weight in weights]


def choice(*names):
    return {"type": "choice", "instructions": "Which?", "criteria": dict.fromkeys(names)}


def asked(engine, question, **options):
    return asyncio.run(engine.evaluate(state="A state.", questions={"q": question}, **options)).answers["q"]


def readout(*texts, **fields):
    return Readout(text="Which?", options=tuple(Option(key=i, text=t) for i, t in enumerate(texts)), **fields)


def test_one_order_is_the_given_one():
    assert ((0, 1, 2),) == orders_of(readout("c", "b", "a"), 1)


def test_all_orders_put_each_option_in_each_place_once():
    orders = orders_of(readout("c", "d", "b", "a"), "full")

    assert 4 == len(orders)
    for place in range(4):
        assert [0, 1, 2, 3] == sorted(order[place] for order in orders)


@pytest.mark.parametrize("count", [2, 3, 4, "full"])
@pytest.mark.parametrize("texts", [("a", "b", "c", "d"), ("same", "same", "x", "same")])
def test_the_orders_shown_do_not_depend_on_the_order_given(texts, count):
    options = [Option(key=f"key {i}", text=text) for i, text in enumerate(texts)]
    seen = {
        tuple(
            tuple(permuted[position].key for position in order)
            for order in orders_of(Readout(text="Which?", options=permuted), count)
        )
        for permuted in itertools.permutations(options)
    }

    assert 1 == len(seen)


def test_a_rubric_is_read_as_given_and_reversed():
    assert ((0, 1, 2), (2, 1, 0)) == orders_of(readout("c", "b", "a", ordered=True), "full")


def test_a_readout_may_forbid_other_orders():
    fixed = readout("c", "b", "a", permute=False)

    assert 1 == available_orders(fixed)
    assert ((0, 1, 2),) == orders_of(fixed, "full")


def test_fewer_orders_than_there_are_stand_evenly_apart():
    assert ((0, 1, 2, 3), (2, 3, 0, 1)) == orders_of(readout("a", "b", "c", "d"), 2)


def test_reading_all_orders_removes_a_preference_for_places():
    answer = asked(scripted_engine(CHOICE, script=biased), choice("Blue", "Grey", "Green", "Red"), orders="full")

    total = sum(TASTE.values())
    for name, taste in TASTE.items():
        assert pytest.approx(taste / total) == answer["probabilities"][name]


def test_plain_reading_keeps_a_preference_for_places():
    engine = scripted_engine(CHOICE, script=biased)

    assert "Blue" == asked(engine, choice("Blue", "Grey", "Green", "Red"))["choice"]
    assert "Red" == asked(engine, choice("Red", "Green", "Grey", "Blue"))["choice"]


@pytest.mark.parametrize("orders", [2, 3, "full"])
def test_the_order_given_changes_nothing_once_orders_are_averaged(orders):
    engine = scripted_engine(CHOICE, script=biased)
    names = ("Blue", "Grey", "Green", "Red")
    expected = asked(engine, choice(*names), orders=orders)["probabilities"]

    for permuted in itertools.permutations(names):
        probabilities = asked(engine, choice(*permuted), orders=orders)["probabilities"]
        # The script sums its weights in another order, which is a matter of the last digit.
        assert expected == pytest.approx(probabilities, abs=1e-12)


def test_the_average_is_geometric():
    def script(prompt, labels):
        return [0.9, 0.1] if shown(prompt)["A"] == "Red" else [0.4, 0.6]

    answer = asked(scripted_engine(CHOICE, script=script), choice("Red", "Blue"), orders=2)

    red, blue = math.sqrt(0.9 * 0.4), math.sqrt(0.1 * 0.6)
    assert pytest.approx(red / (red + blue)) == answer["probabilities"]["Red"]
    assert pytest.approx(0.5) == answer["x_order_spread"]


def test_an_option_that_one_order_rules_out_is_not_ruled_out():
    def script(prompt, labels):
        return [1.0, 0.0] if shown(prompt)["A"] == "Red" else [0.0, 1.0]

    answer = asked(scripted_engine(CHOICE, script=script), choice("Red", "Blue"), orders=2)

    assert pytest.approx(0.5) == answer["probabilities"]["Red"]
    assert pytest.approx(1.0) == answer["x_order_spread"]


def test_one_order_tells_no_spread():
    assert "x_order_spread" not in asked(scripted_engine(CHOICE, script=biased), choice("Red", "Blue"))


def test_own_labels_travel_with_their_options():
    def script(prompt, labels):
        assert ["Yes", "No"] == list(labels)
        assert {"Yes": "the answer is yes", "No": "the answer is no"} == shown(prompt)
        return [0.8, 0.2] if prompt.index("Yes: ") < prompt.index("No: ") else [0.6, 0.4]

    answer = asked(scripted_engine(NOUL, script=script), {"type": "noul", "instructions": "So?"}, orders="full")

    yes, no = math.sqrt(0.8 * 0.6), math.sqrt(0.2 * 0.4)
    assert pytest.approx(yes / (yes + no)) == answer["noul"]


def test_each_question_reads_the_orders_that_it_has():
    engine = scripted_engine(CHOICE, NOUL, SCORE)
    questions = {
        "choice": choice("Red", "Green", "Blue"),
        "noul": {"type": "noul", "instructions": "So?"},
        "score": {"type": "score", "criteria": ["low", "middle", "high"]},
    }

    evaluation = asyncio.run(engine.evaluate(state="A state.", questions=questions, orders=3))

    assert 3 + 2 + 2 == evaluation.usage.branches
    assert 3 + 2 + 2 + 1 == evaluation.usage.output_tokens


def test_a_type_of_ones_own_is_averaged_without_doing_anything():
    plain = QuestionType(
        name="pick",
        summary="A third party's.",
        api=1,
        question=openjev_choice.Choice,
        answer=openjev_choice.ChoiceAnswer,
        readouts=CHOICE.readouts,
        reduce=CHOICE.reduce,
    )

    answer = asked(scripted_engine(plain, script=biased), {**choice("Blue", "Red"), "type": "pick"}, orders="full")

    assert pytest.approx(0.5 / 0.7) == answer["probabilities"]["Red"]


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        (0, "from 1 up"),
        (-1, "from 1 up"),
        (True, "from 1 up"),
        (1.0, "from 1 up"),
        ("all", "or full"),
        ("adaptive", "or full"),
        (4, "at most 3"),
    ],
)
def test_orders_that_make_no_sense_are_refused(orders, words):
    with pytest.raises(RequestError, match=words) as refused:
        asked(scripted_engine(CHOICE), choice("Red", "Green", "Blue"), orders=orders)

    assert ("x_orders",) == refused.value.problems[0].loc


def test_the_limit_counts_every_order():
    engine = scripted_engine(CHOICE, settings=Settings(max_total_input_tokens=1000))
    asked(engine, choice("Red", "Green", "Blue", "Grey"))

    with pytest.raises(RequestError, match="max_total_input_tokens"):
        asked(engine, choice("Red", "Green", "Blue", "Grey"), orders="full")


def test_each_place_further_down_costing_a_nat_changes_nothing_where_all_orders_are_read():
    """Rotations close to each other agree and are wrong alike, so reading fewer of them until they agree is no way."""
    taste = dict(zip("abcdefgh", (0.0, 0.3, 0.1, 0.6, 2.0, 0.2, 0.5, 0.4), strict=True))

    def script(prompt, labels):
        options = dict(re.findall(r"^([A-Z]): (\w)(?:<\|im_end\|>)?$", prompt, re.MULTILINE))
        weights = [math.exp(taste[options[label]] - "ABCDEFGH".index(label)) for label in labels]
        return [weight / sum(weights) for weight in weights]

    answer = asked(scripted_engine(CHOICE, script=script), choice(*taste), orders="full")

    total = sum(map(math.exp, taste.values()))
    for name, value in taste.items():
        assert pytest.approx(math.exp(value) / total) == answer["probabilities"][name]


def test_the_setting_holds_where_a_request_says_nothing():
    engine = scripted_engine(CHOICE, settings=Settings(orders="full"))

    assert 2 == asyncio.run(engine.evaluate(state="A state.", questions={"q": choice("Red", "Blue")})).usage.branches
