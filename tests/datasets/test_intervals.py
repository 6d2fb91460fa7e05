"""Intervals against references, and against how often they hold the truth where that went wrong before."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from openjev_core.datasets import intervals
from openjev_core.datasets.intervals import difference, mean, share, sign_test, standard_error
from openjev_core.datasets.items import items_of
from openjev_core.datasets.measures import MEASURES, f1_influence, macro_f1, roc_influence

BY_NAME = {measure.name: measure for measure in MEASURES}


def crowded(seed, rows, each, accuracy=0.8):
    """Right or wrong, row by row: the questions of a row go together."""
    chance = np.random.default_rng(seed)
    hard = np.repeat(chance.normal(0, 1, rows), each)
    threshold = stats.norm.ppf(accuracy) * math.sqrt(2)
    return hard + chance.normal(0, 1, rows * each) < threshold, np.repeat(np.arange(rows), each)


def binary(p, label):
    return {
        "kind": "binary", "names": ["Yes", "No"], "positive": 0, "label": 0 if label else 1,
        "predicted": 0 if p >= 0.5 else 1, "probabilities": [p, 1 - p],
    }  # fmt: skip


@pytest.mark.parametrize(("hits", "count"), [(20, 20), (0, 7), (3, 5), (812, 1000)])
def test_with_a_question_a_row_a_share_has_the_wilson_interval_of_scipy(hits, count):
    expected = stats.binomtest(hits, count).proportion_ci(0.95, method="wilson")
    found = share(np.arange(count) < hits, np.arange(count))

    assert (pytest.approx(expected.low, abs=1e-12), pytest.approx(expected.high)) == (found.low, found.high)


def test_five_rows_are_held_as_often_as_said():
    """The bootstrap's interval of 5 rows held an accuracy of .95 in 23% of runs."""
    chance = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        found = share(chance.random(5) < 0.95, np.arange(5))
        held += found.low <= 0.95 <= found.high

    assert 380 <= held


def test_ten_questions_of_a_row_are_no_ten_rows():
    """As many answers in a tenth of the rows: their intervals hold the truth too, and so are wider."""
    held, widths = 0, []
    for seed in range(200):
        found = share(*crowded(seed, 30, 10))
        held += found.low <= 0.8 <= found.high
        widths.append(found.high - found.low)
    alone = share(*crowded(0, 300, 1))

    assert 180 <= held
    assert np.mean(widths) > 1.5 * (alone.high - alone.low)


def test_copies_of_a_question_say_nothing_new():
    right, rows = np.arange(60) % 3 > 0, np.arange(60)
    once, ten_times = share(right, rows), share(np.repeat(right, 10), np.repeat(rows, 10))

    assert ten_times.low < once.low
    assert once.high < ten_times.high


def test_the_standard_error_is_that_of_the_mean_where_each_row_has_one():
    values = np.random.default_rng(0).exponential(size=40)

    assert pytest.approx(stats.sem(values)) == standard_error(values, np.arange(40))
    assert pytest.approx(stats.sem(values)) == standard_error(np.repeat(values, 3), np.repeat(np.arange(40), 3))


def test_a_mean_of_something_symmetric_has_students_interval():
    values = np.concatenate([np.arange(40.0), -np.arange(40.0)])
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = mean(values, np.arange(80))

    assert (pytest.approx(low), pytest.approx(high)) == (found.low, found.high)


def test_a_mean_of_rare_large_losses_is_held_as_often_as_said():
    """Plain intervals of such losses hold the truth in nine of ten runs."""
    chance = np.random.default_rng(3)
    held = plain = 0
    for _ in range(400):
        values = chance.lognormal(0, 1, 60)
        found, ends = mean(values, np.arange(60)), stats.ttest_1samp(values, 0).confidence_interval(0.95)
        held += found.low <= math.exp(0.5) <= found.high
        plain += ends[0] <= math.exp(0.5) <= ends[1]

    assert plain < 368 < held


def test_the_influence_of_an_f1_is_how_far_a_question_moves_it():
    """Against leaving each question out, one after the other."""
    chance = np.random.default_rng(0)
    names = ["a", "b", "c"]
    judged = [
        {"kind": "nominal", "names": names, "label": int(one), "predicted": int(other), "probabilities": None}
        for one, other in zip(chance.integers(3, size=300), chance.integers(3, size=300), strict=True)
    ]
    items = items_of(list(enumerate(judged)))
    without = [macro_f1(items.take(np.arange(300) != left)) for left in range(300)]

    jackknife = 299 * (macro_f1(items) - np.array(without))
    assert pytest.approx(jackknife, abs=0.02) == f1_influence(items)
    assert pytest.approx(0, abs=1e-12) == f1_influence(items).mean()


def test_the_influence_of_an_auroc_is_that_of_delong():
    chance = np.random.default_rng(0)
    judged = [binary(round(p, 1), chance.random() < p) for p in chance.random(200)]
    items = items_of(list(enumerate(judged)))
    without = [
        roc_auc_score(np.delete(items.is_positive, left), np.delete(items.positive, left)) for left in range(200)
    ]

    jackknife = 199 * (roc_auc_score(items.is_positive, items.positive) - np.array(without))
    assert pytest.approx(jackknife, abs=0.02) == roc_influence(items)


def test_an_auroc_of_one_is_not_certain():
    found = BY_NAME["auroc"].estimate(items_of([(row, binary(0.9 if row < 8 else 0.1, row < 8)) for row in range(40)]))

    assert (1.0, 1.0) == (found.value, found.high)
    assert 0.75 < found.low < 0.95


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (share(np.ones(12, bool), np.repeat(np.arange(4), 3)), "4 rows are too few: an interval needs 10"),
        (mean(np.arange(49.0), np.arange(49)), "49 rows are too few: an interval needs 50"),
        (difference(0.1, np.ones(9), np.arange(9), 9), "9 rows are too few: an interval needs 10"),
        (difference(0.1, np.ones(90), np.arange(90), 3), "the two differ in 3 rows, and an interval needs 10"),
        (
            BY_NAME["auroc"].estimate(items_of([(row, binary(0.6, row < 4)) for row in range(40)])),
            "'yes' is right in 4 rows, and an interval needs 5",
        ),
        (
            BY_NAME["macro_f1"].estimate(items_of([(row, binary(0.6, row < 36)) for row in range(40)])),
            "'No' is right in 4 rows, and an interval needs 5",
        ),
        (BY_NAME["auroc"].estimate(items_of([(1, binary(0.6, True))])), "not defined for these labels"),
        (share(np.ones(0, bool), np.ones(0)), "there are no questions"),
    ],
)
def test_where_there_is_no_interval_that_holds_the_reason_is_there(found, reason):
    assert (None, None, reason) == (found.low, found.high, found.reason)


def test_with_a_question_a_row_the_sign_test_is_mcnemars():
    differences = np.array([-1] * 6 + [1] + [0] * 9)

    assert pytest.approx(stats.binomtest(1, 7).pvalue) == sign_test(differences, np.arange(16))
    assert 1.0 == sign_test(np.zeros(5, dtype=int), np.arange(5))


def test_the_sign_test_counts_rows():
    """By hand, over every way to turn rows round: three rows that move by 3, 2 and -1."""
    differences, rows = np.array([1, 1, 1, 1, 1, -1]), np.array([0, 0, 0, 1, 1, 2])
    sums = [abs(sum(signs)) for signs in itertools.product((3, -3), (2, -2), (1, -1))]

    assert pytest.approx(np.mean([one >= 4 for one in sums])) == sign_test(differences, rows)


@pytest.mark.parametrize("each", [1, 5, 10])
def test_two_equal_runs_differ_by_the_test_about_as_rarely_as_it_says(each):
    """McNemar's test took the questions of a row for independent: 40% of equal runs differed with ten a row."""
    found = 0
    for seed in range(200):
        chance = np.random.default_rng(seed)
        moved = np.repeat(chance.choice([-1, 0, 1], size=40, p=[0.15, 0.7, 0.15]), each)
        found += sign_test(moved, np.repeat(np.arange(40), each)) <= 0.05

    assert found <= 18


def test_the_level_is_the_one_that_is_written():
    assert 0.95 == intervals.LEVEL
