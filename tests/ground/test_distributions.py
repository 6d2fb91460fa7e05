"""Probabilities, confidence and averages, against values worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openjev_core import Distribution, Option, Readout
from openjev_core.distribution import (
    average_orders,
    check_logprobs,
    confidence,
    entropy,
    label_mass,
    mean_mass,
    softmax,
    spread,
)
from openjev_core.errors import BackendError
from openjev_core.reader import OrderReading, check_reading

INF = math.inf
LN2, LN3 = math.log(2), math.log(3)


@pytest.mark.parametrize(
    ("logprobs", "temperature", "expected"),
    [
        ((0.0, 0.0), 1.0, (0.5, 0.5)),
        ((LN3, 0.0), 1.0, (0.75, 0.25)),
        ((-1000.0, -1000.0 - LN3), 1.0, (0.75, 0.25)),  # as far down as a whole vocabulary can push labels
        ((1000.0, 1000.0 - LN3), 1.0, (0.75, 0.25)),
        ((2 * LN3, 0.0), 2.0, (0.75, 0.25)),
        ((LN3 / 2, 0.0), 0.5, (0.75, 0.25)),
        ((0.0, -INF), 1.0, (1.0, 0.0)),
        ((-INF, 0.0, 0.0), 1.0, (0.0, 0.5, 0.5)),
        ((0.0, -5.0), 1e-300, (1.0, 0.0)),
        ((5.0,), 1.0, (1.0,)),
    ],
)
def test_softmax(logprobs, temperature, expected):
    assert expected == pytest.approx(softmax(logprobs, temperature), abs=1e-12)


@pytest.mark.parametrize(
    ("logprobs", "said"),
    [
        ((math.nan, 0.0), "not a number"),
        ((INF, 0.0), "not a number"),
        ((-INF, math.nan), "not a number"),
        ((-INF, -INF), "every label probability 0"),
        ((), "every label probability 0"),
    ],
)
def test_what_is_no_distribution_is_an_error_and_never_a_number(logprobs, said):
    with pytest.raises(BackendError, match=said):
        check_logprobs(logprobs)


@given(st.lists(st.floats(-700, 0), min_size=2, max_size=64), st.floats(0.05, 20))
def test_softmax_sums_to_one_and_keeps_the_ranking(logprobs, temperature):
    probabilities = softmax(logprobs, temperature)
    assert 1.0 == pytest.approx(math.fsum(probabilities), abs=1e-12)
    assert probabilities[logprobs.index(max(logprobs))] == max(probabilities)


def test_entropy_in_nats():
    assert pytest.approx(LN2) == entropy((0.5, 0.5))
    assert 0.0 == entropy((1.0, 0.0))


# H(.75, .25) = ln 4 - .75 ln 3; over ln 2 that is 0.811278...
UNORDERED = [
    ("entropy", (0.5, 0.5), 0.0),
    ("entropy", (1.0, 0.0), 1.0),
    ("entropy", (0.75, 0.25), 1 - (math.log(4) - 0.75 * LN3) / LN2),
    ("entropy", (0.5, 0.5, 0.0, 0.0), 0.5),
    ("jev", (0.5, 0.5), 0.0),
    ("jev", (1.0, 0.0), 1.0),
    ("jev", (0.75, 0.25), 0.5),
    ("jev", (0.7, 0.1, 0.1, 0.1), 0.6),
    ("jev", (0.25, 0.25, 0.25, 0.25), 0.0),
]

# D is (1 + 0 + 1) / 3 for three levels and (1.5 + .5 + .5 + 1.5) / 4 for four.
ORDERED = [
    ("entropy", (0.75, 0.25), 1 - (math.log(4) - 0.75 * LN3) / LN2),
    ("jev", (0.0, 1.0, 0.0), 1.0),
    ("jev", (0.2, 0.6, 0.2), 1 - 0.4 / (2 / 3)),
    ("jev", (0.6, 0.2, 0.2), 1 - 0.6 / (2 / 3)),
    ("jev", (0.1, 0.2, 0.7, 0.0), 1 - (0.1 * 2 + 0.2) / 1.0),
    ("jev", (0.5, 0.0, 0.5), 0.0),  # 1 - 1 / (2/3) is below 0
    ("jev", (0.5, 0.5), 0.0),  # the first of two modes, 1 - .5 / .5
]


@pytest.mark.parametrize(("formula", "probabilities", "expected"), UNORDERED)
def test_confidence_of_unordered_options(formula, probabilities, expected):
    assert expected == pytest.approx(confidence(probabilities, formula=formula, ordered=False), abs=1e-12)


@pytest.mark.parametrize(("formula", "probabilities", "expected"), ORDERED)
def test_confidence_of_ordered_options(formula, probabilities, expected):
    assert expected == pytest.approx(confidence(probabilities, formula=formula, ordered=True), abs=1e-12)


@given(st.lists(st.floats(-50, 0), min_size=2, max_size=30), st.sampled_from(["entropy", "jev"]), st.booleans())
def test_confidence_stays_within_its_bounds(logprobs, formula, ordered):
    assert 0.0 <= confidence(softmax(logprobs), formula=formula, ordered=ordered) <= 1.0


def test_one_order_is_its_softmax():
    assert pytest.approx((0.75, 0.25)) == average_orders([(LN3, 0.0)])


def test_orders_are_averaged_in_log_space():
    # Geometric means 3/4·1/2 and 1/4·1/2 under the root: the ratio is √3.
    first = math.sqrt(3) / (1 + math.sqrt(3))
    assert pytest.approx((first, 1 - first)) == average_orders([(LN3, 0.0), (0.0, 0.0)])


def test_orders_are_normalised_before_they_are_averaged():
    # Two backends' calls may be normalised differently; only differences within a call mean anything.
    assert pytest.approx((0.75, 0.25)) == average_orders([(LN3 - 40, -40.0), (LN3 + 7, 7.0)])


def test_one_order_cannot_veto_what_another_gives():
    assert pytest.approx((0.5, 0.5)) == average_orders([(0.0, -INF), (-INF, 0.0)])
    assert pytest.approx((0.0, 1.0), abs=1e-12) == average_orders([(-INF, 0.0), (-INF, 0.0)])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([(0.0, 0.0), (-INF, -INF)], "every label probability 0"),
        ([(-INF, -INF), (0.0, 0.0)], "every label probability 0"),
        ([(0.0, math.nan), (0.0, 0.0)], "not a number"),
        ([(0.0, 0.0)], "answered 1 of 2 branches"),
        ([(0.0, 0.0)] * 3, "answered 3 of 2 branches"),
        ([(0.0, 0.0), (0.0,)], "answered 1 of a branch's 2 labels"),
        ([(0.0, 0.0, 0.0), (0.0, 0.0)], "answered 3 of a branch's 2 labels"),
    ],
)
def test_what_a_session_reads_is_one_distribution_for_each_order(found, said):
    """Checked where it comes in: averaging would floor an order without a distribution into one."""
    with pytest.raises(BackendError, match=said):
        check_reading([OrderReading(logprobs) for logprobs in found], 2, 2)


@pytest.mark.parametrize("mass", [-0.1, 1.1, math.nan])
def test_a_label_mass_lies_between_0_and_1(mass):
    check_reading([OrderReading((0.0, 0.0), 1), OrderReading((0.0, 0.0), 0)], 2, 2)
    with pytest.raises(BackendError, match=f"a label mass of {mass}; one lies between 0 and 1"):
        check_reading([OrderReading((0.0, 0.0)), OrderReading((0.0, 0.0), mass)], 2, 2)


def test_label_mass_is_the_sum_of_the_labels_probabilities():
    assert pytest.approx(0.75) == label_mass([math.log(0.5), math.log(0.25), -INF])
    assert label_mass([-INF, -INF]) == 0
    assert label_mass([math.log(0.502), math.log(0.502)]) == 1


@pytest.mark.parametrize("logprobs", [(0.0, 0.0), (5000.0, -1.0), (-0.1, INF)])
def test_what_sums_to_more_than_1_are_no_log_probabilities(logprobs):
    with pytest.raises(BackendError, match=r"probabilities sum to .*, so what the backend returned are no log-prob"):
        label_mass(logprobs)


def test_the_mean_label_mass_is_known_where_every_one_is():
    assert pytest.approx(0.5) == mean_mass([0.25, 0.75])
    assert mean_mass([0.25, None]) is None
    assert mean_mass([]) is None


def test_the_temperature_applies_to_each_order():
    assert pytest.approx((0.75, 0.25)) == average_orders([(2 * LN3, 0.0), (2 * LN3, 0.0)], 2.0)


def test_spread_is_the_largest_disagreement():
    orders = [(0.0, 0.0), (LN3, 0.0), (0.0, LN3)]
    assert pytest.approx(0.5) == spread(orders)
    assert 0.0 == spread(orders[:1])


READOUT = Readout(text="Which?", options=[Option(key=key, text=str(key)) for key in ("a", 2, None)])
DISTRIBUTION = Distribution(READOUT, (0.2, 0.4, 0.4), 0.1)


def test_a_distribution_is_addressed_by_key():
    assert (0.2, 0.4, 0.4) == (DISTRIBUTION["a"], DISTRIBUTION[2], DISTRIBUTION[None])
    with pytest.raises(KeyError):
        DISTRIBUTION["b"]


def test_the_first_of_two_modes_wins():
    assert 1 == DISTRIBUTION.mode
    assert READOUT.options[1] == DISTRIBUTION.top


def test_options_may_come_from_any_iterable():
    assert 2 == len(Readout(text="", options=(Option(key=i, text="") for i in range(2))).options)
