"""Measures against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import f1_score

from openjev_core.datasets.curves import risk_coverage
from openjev_core.datasets.items import items_of
from openjev_core.datasets.measures import MEASURES
from openjev_core.datasets.reliability import (
    bins_of_count,
    bins_of_width,
    calibration_error,
    calibration_test,
    reliability,
)
from openjev_core.datasets.reports import report_of
from openjev_core.datasets.rows import Row

BY_NAME = {measure.name: measure for measure in MEASURES}


def binary(p, label):
    """A judged noul: P(yes), and whether yes is right."""
    return {
        "type": "noul",
        "kind": "binary",
        "names": ["Yes", "No"],
        "positive": 0,
        "label": 0 if label else 1,
        "predicted": 0 if p >= 0.5 else 1,
        "probabilities": [p, 1 - p],
    }


def nominal(probabilities, label, names=("a", "b", "c")):
    return {
        "type": "choice",
        "kind": "nominal",
        "names": list(names),
        "positive": None,
        "label": label,
        "predicted": probabilities.index(max(probabilities)),
        "probabilities": probabilities,
    }


def row(number):
    return Row(number=number, place="", id=str(number), state="S.", questions={}, labels={}, fields={})


def items(*judged):
    return items_of(list(enumerate(judged)))


def value(name, *judged):
    return BY_NAME[name].of(items(*judged))


def test_accuracy():
    assert 0.5 == value("accuracy", binary(0.9, True), binary(0.9, False))


def test_log_loss():
    expected = -(math.log(0.9) + math.log(0.1)) / 2

    assert pytest.approx(expected) == value("log_loss", binary(0.9, True), binary(0.9, False))


def test_a_certain_mistake_costs_much_and_not_everything():
    assert pytest.approx(-math.log(1e-12)) == value("log_loss", binary(1.0, False))


def test_brier():
    assert pytest.approx(0.25 + 0.04 + 0.09) == value("brier", nominal([0.5, 0.2, 0.3], 0))


def test_auroc():
    judged = [binary(0.9, True), binary(0.4, True), binary(0.6, False), binary(0.1, False)]

    assert 0.75 == value("auroc", *judged)
    assert value("auroc", binary(0.9, True), binary(0.4, True)) is None


def test_macro_f1_knows_options_by_name_whatever_their_order():
    judged = [
        nominal([0.9, 0.1, 0.0], 0, ("a", "b", "c")),
        nominal([0.1, 0.9, 0.0], 1, ("c", "a", "b")),
        nominal([0.9, 0.1, 0.0], 1, ("a", "b", "c")),
    ]

    # a: two of three predictions right, and both of its two found; b: never predicted.
    assert pytest.approx((2 * 2 / (2 * 2 + 1) + 0) / 2) == value("macro_f1", *judged)


def test_an_outcome_that_is_answered_and_never_right_counts_as_scikit_learn_counts_it():
    judged = [nominal([0.9, 0.1, 0.0], 0), nominal([0.9, 0.1, 0.0], 0), nominal([0.1, 0.9, 0.0], 0)]

    # a: 2 * 2 / (3 + 2); b is answered once and labelled never.
    assert pytest.approx((0.8 + 0) / 2) == value("macro_f1", *judged)
    assert pytest.approx(f1_score([0, 0, 0], [0, 0, 1], average="macro", zero_division=0)) == value("macro_f1", *judged)


def test_the_ranked_probability_score_counts_levels_that_were_passed():
    """By hand: cumulative .2 and .7 against 0 and 1, over two steps; far off costs more than next to it."""
    ordinal = {**nominal([0.2, 0.5, 0.3], 1), "kind": "ordinal", "error": 0.0}

    assert pytest.approx((0.2**2 + 0.3**2) / 2) == value("rps", ordinal)
    far = [{**nominal(p, 0), "kind": "ordinal", "error": 0.0} for p in ([0.5, 0.0, 0.5], [0.5, 0.5, 0.0])]
    assert value("rps", far[0]) > value("rps", far[1])


def test_a_prediction_of_nothing_is_of_no_class():
    assert 0.0 == value("macro_f1", {**nominal([0.5, 0.3, 0.2], 0), "predicted": None})


def test_bins_are_as_even_as_they_can_be():
    assert [2, 3, 3, 3] == sorted(np.bincount(bins_of_count(np.linspace(0.1, 0.9, 11), bins=4)))


def test_equal_probabilities_share_a_bin_whatever_the_order_of_rows():
    """400 rows of four probabilities gave .058, and .236 when they were sorted by label: bins had split ties."""
    chance = np.random.default_rng(0)
    confidence = np.repeat([0.6, 0.7, 0.8, 0.9], 100)
    correct = chance.random(400) < confidence
    by_label = np.argsort(correct, kind="stable")
    errors = [
        calibration_error(correct[order] - confidence[order], bins_of_count(confidence[order]))
        for order in (np.arange(400), by_label, chance.permutation(400))
    ]
    # By hand: each probability is a bin of its own.
    expected = sum(abs(correct[i : i + 100].mean() - confidence[i]) for i in range(0, 400, 100)) / 4

    assert [pytest.approx(expected)] * 3 == errors


def test_mean_absolute_error():
    judged = {**nominal([0.2, 0.3, 0.5], 0), "kind": "ordinal", "error": 1.3}

    assert pytest.approx(1.3) == value("mae", judged)


def test_calibration_error_over_bins_of_equal_count():
    confidence = np.array([0.6, 0.61, 0.9, 0.91])
    residuals = np.array([1.0, 0.0, 1.0, 1.0]) - confidence

    assert pytest.approx((0.21 + 0.19) / 4) == calibration_error(residuals, bins_of_count(confidence, bins=2))
    assert pytest.approx(0.02 / 4) == calibration_error(residuals, bins_of_count(confidence, bins=1))


def test_calibration_error_over_bins_of_equal_width():
    confidence = np.array([0.5, 0.55, 0.6, 0.95, 1.0, 0.0])
    residuals = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0]) - confidence

    # Up to 0.5: 0.5 and 0.0, one right; above: the other four, two right.
    assert pytest.approx((0.5 + 1.1) / 6) == calibration_error(residuals, bins_of_width(confidence, bins=2))
    # Up to 0.2: 0.0, none right; up to 0.6: 1.65 in all, two right; above: 1.95, one right.
    assert pytest.approx((0.0 + 0.35 + 0.95) / 6) == calibration_error(residuals, bins_of_width(confidence, bins=5))


def calibrated(seed, rows, each=1, sure=1.0):
    """Nouls whose P(yes) is as far from a half as the truth is, or farther; the questions of a row go together."""
    chance = np.random.default_rng(seed)
    judged = []
    for row in range(rows):
        p, draw = chance.uniform(0.05, 0.95), chance.random()
        judged += [(row, binary(p, draw < 0.5 + (p - 0.5) * sure)) for _ in range(each)]
    return items_of(judged)


def test_a_calibration_error_has_no_interval_and_says_why():
    found = BY_NAME["adaptive_ece"].estimate(calibrated(0, 300))

    assert (None, None, "a calibration error has no interval that holds") == (found.low, found.high, found.reason)


@pytest.mark.parametrize("each", [1, 5])
def test_a_calibrated_model_fails_the_test_of_calibration_about_as_rarely_as_it_says(each):
    failures = sum(calibration_test(calibrated(seed, 80, each))["p"] <= 0.05 for seed in range(60))

    # 5% of 60 are 3; more than 8 come by chance in one of 250 such runs.
    assert failures <= 8


def test_what_chance_alone_makes_of_the_error_is_told():
    fine, off = calibrated(1, 400), calibrated(1, 400, sure=0.3)

    assert pytest.approx(BY_NAME["adaptive_ece"].of(fine), abs=0.02) == calibration_test(fine)["by_chance"]
    assert calibration_test(off)["p"] <= 0.002
    assert BY_NAME["adaptive_ece"].of(off) > 2 * calibration_test(off)["by_chance"]


def test_measures_that_mean_nothing_are_left_out():
    def applying(*judged):
        return [measure.name for measure in MEASURES if measure.applies(items(*judged))]

    assert ["accuracy", "macro_f1", "auroc", "log_loss", "brier", "ece", "adaptive_ece"] == applying(binary(0.9, True))
    assert ["accuracy", "macro_f1", "log_loss", "brier", "ece", "adaptive_ece"] == applying(nominal([0.5, 0.3, 0.2], 0))
    assert ["accuracy", "mae", "rps", "log_loss", "brier", "ece", "adaptive_ece"] == applying(
        {**nominal([1, 0, 0], 0), "kind": "ordinal"}
    )
    without = {**nominal([1, 0, 0], 0), "probabilities": None, "kind": "joint"}
    assert ["accuracy"] == applying(without)


def test_reliability_is_of_equal_counts_with_intervals():
    bins = reliability(items(*(binary(0.5 + i / 200, i % 2 == 0) for i in range(100))))

    assert [10] * 10 == [one["count"] for one in bins]
    assert [0.5] * 10 == [one["accuracy"]["value"] for one in bins]
    assert all(one["accuracy"]["low"] < 0.5 < one["accuracy"]["high"] for one in bins)


def test_risk_falls_as_the_uncertain_are_set_aside():
    curve = risk_coverage(items(binary(0.9, True), binary(0.9, True), binary(0.6, False), binary(0.6, True)))

    assert [(0.9, 0.5, 0.0), (0.6, 1.0, 0.25)] == [tuple(point.values()) for point in curve["points"]]
    assert pytest.approx(0.5 * 0 + 0.5 * 0.25) == curve["area"]


def test_flips_are_told_by_number_of_options_and_order():
    two = {**nominal([0.7, 0.3], 0, ("a", "b")), "reordered": {"reversed": 1}}
    three = {**nominal([0.5, 0.3, 0.2], 0), "reordered": {"reversed": 0, "shuffled": 2}}
    unlabelled = {**three, "label": None, "reordered": {"reversed": None, "shuffled": 0}}
    record = {
        "row": 1, "id": "1", "model": "m", "seconds": 1.0, "input_tokens": 10, "output_tokens": 2,
        "questions": {"two": two, "three": three, "unlabelled": unlabelled},
    }  # fmt: skip

    report = report_of({"command": "eval"}, [record], [row(1)], [0.9])

    found = {(one["options"], one["order"]): (one["count"], one["rate"]["value"]) for one in report["flips"]}
    assert {
        ("2", "reversed"): (1, 1.0),
        ("3 or more", "reversed"): (2, 0.5),
        ("3 or more", "shuffled"): (2, 0.5),
    } == found


def test_refused_rows_are_listed_and_counted_nowhere():
    refused = {"row": 1, "id": "one", "error": "422: state: too long"}

    report = report_of({"command": "eval"}, [refused], [row(1), row(2)], [0.9])

    assert {"in_data": 2, "answered": 0, "refused": [refused]} == report["rows"]
    assert ([], [], {}, []) == (report["groups"], report["flips"], report["cost"], report["verdict"])
