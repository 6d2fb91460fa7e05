"""Measures against values worked out by hand, and intervals that hold what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from openjev_core.datasets.curves import reliability, risk_coverage
from openjev_core.datasets.intervals import estimate, paired_difference, share
from openjev_core.datasets.measures import MEASURES, adaptive_calibration_error, calibration_error, items_of
from openjev_core.datasets.reports import report_of

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
    assert math.isnan(value("auroc", binary(0.9, True), binary(0.4, True)))


def test_macro_f1_knows_options_by_name_whatever_their_order():
    judged = [
        nominal([0.9, 0.1, 0.0], 0, ("a", "b", "c")),
        nominal([0.1, 0.9, 0.0], 1, ("c", "a", "b")),
        nominal([0.9, 0.1, 0.0], 1, ("a", "b", "c")),
    ]

    # a: two of three predictions right, and both of its two found; b: never predicted.
    assert pytest.approx((2 * 2 / (2 * 2 + 1) + 0) / 2) == value("macro_f1", *judged)


def test_formulas_give_what_scikit_learn_gives():
    chance = np.random.default_rng(0)
    for _ in range(20):
        nouls = items(*(binary(round(p, 1), p < chance.random()) for p in chance.random(40)))
        choices = items(
            *(nominal(chance.dirichlet([1, 1, 1, 1]).tolist(), int(chance.integers(3)), "abcd") for _ in range(40))
        )

        assert pytest.approx(roc_auc_score(nouls.is_positive, nouls.positive)) == BY_NAME["auroc"].of(nouls)
        for some in (nouls, choices):
            labels = np.unique(some.labels)
            expected = f1_score(some.labels, some.predictions, labels=labels, average="macro", zero_division=0)
            assert pytest.approx(expected) == BY_NAME["macro_f1"].of(some)


def test_a_prediction_of_nothing_is_of_no_class():
    assert 0.0 == value("macro_f1", {**nominal([0.5, 0.3, 0.2], 0), "predicted": None})


def test_bins_are_as_even_as_they_can_be():
    confidence, correct = np.linspace(0.1, 0.9, 11), np.zeros(11)
    parts = np.array_split(np.arange(11), 4)
    expected = sum(len(part) * abs(confidence[part].mean()) for part in parts) / 11

    assert pytest.approx(expected) == adaptive_calibration_error(confidence, correct, bins=4)


def test_mean_absolute_error():
    judged = {**nominal([0.2, 0.3, 0.5], 0), "kind": "ordinal", "error": 1.3}

    assert pytest.approx(1.3) == value("mae", judged)


def test_calibration_error_over_bins_of_equal_count():
    confidence = np.array([0.6, 0.6, 0.9, 0.9])
    correct = np.array([1.0, 0.0, 1.0, 1.0])

    assert pytest.approx((0.1 + 0.1) / 2) == adaptive_calibration_error(confidence, correct, bins=2)
    assert pytest.approx(0.0) == adaptive_calibration_error(confidence, correct, bins=1)


def test_calibration_error_over_bins_of_equal_width():
    confidence = np.array([0.5, 0.55, 0.6, 0.95, 1.0, 0.0])
    correct = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])

    # Up to 0.5: 0.5 and 0.0, one right; above: the other four, two right.
    assert pytest.approx((0.5 + 1.1) / 6) == calibration_error(confidence, correct, bins=2)
    # Up to 0.2: 0.0, none right; up to 0.6: 1.65 in all, two right; above: 1.95, one right.
    assert pytest.approx((0.0 + 0.35 + 0.95) / 6) == calibration_error(confidence, correct, bins=5)


def test_measures_that_mean_nothing_are_left_out():
    def applying(*judged):
        return [measure.name for measure in MEASURES if measure.applies(items(*judged))]

    assert ["accuracy", "macro_f1", "auroc", "log_loss", "brier", "ece", "adaptive_ece"] == applying(binary(0.9, True))
    assert ["accuracy", "macro_f1", "log_loss", "brier", "ece", "adaptive_ece"] == applying(nominal([0.5, 0.3, 0.2], 0))
    assert ["accuracy", "mae", "log_loss", "brier", "ece", "adaptive_ece"] == applying(
        {**nominal([1, 0, 0], 0), "kind": "ordinal"}
    )
    without = {**nominal([1, 0, 0], 0), "probabilities": None, "kind": "joint"}
    assert ["accuracy"] == applying(without)


def test_an_interval_holds_the_truth_about_as_often_as_it_says():
    chance = np.random.default_rng(1)
    held = 0
    for _ in range(60):
        right = chance.random(80) < 0.7
        found = estimate(items(*(binary(0.9, bool(one)) for one in right)), BY_NAME["accuracy"].of)
        held += found.low <= 0.7 <= found.high

    assert 50 <= held <= 60


def test_questions_of_one_row_count_as_one():
    one_each = items_of([(row, binary(0.9, row % 2 == 0)) for row in range(40)])
    four_each = items_of([(row, binary(0.9, row % 2 == 0)) for row in range(10) for _ in range(4)])

    def width(of):
        found = estimate(of, BY_NAME["accuracy"].of)
        return found.high - found.low

    assert width(four_each) > 1.5 * width(one_each)


def test_a_paired_difference_is_tighter_than_two_intervals():
    chance = np.random.default_rng(1)
    right = [bool(one) for one in chance.random(200) < 0.7]
    before = items(*(binary(0.9, one) for one in right))
    after = items(*(binary(0.9, one or index % 20 == 0) for index, one in enumerate(right)))
    found = paired_difference(before, after, BY_NAME["accuracy"].of)
    alone = estimate(before, BY_NAME["accuracy"].of)

    assert 0 <= found.low <= found.value <= found.high
    assert found.high - found.low < (alone.high - alone.low) / 2


def test_one_row_has_no_interval():
    assert (1.0, None, None) == (
        (found := estimate(items(binary(0.9, True)), BY_NAME["accuracy"].of)).value,
        found.low,
        found.high,
    )


def test_what_is_not_defined_has_no_value():
    assert estimate(items(binary(0.9, True), binary(0.8, True)), BY_NAME["auroc"].of).value is None


def test_a_share_of_none_is_none_and_of_all_is_not_certain():
    assert share(0, 0).value is None
    assert (1.0, 1.0) == (share(20, 20).value, share(20, 20).high)
    assert pytest.approx(0.8389, abs=1e-4) == share(20, 20).low


def test_reliability_is_of_equal_counts():
    bins = reliability(items(*(binary(0.5 + i / 200, i % 2 == 0) for i in range(100))), bins=5)

    assert [20] * 5 == [one.count for one in bins]
    assert [0.5] * 5 == [one.accuracy for one in bins]


def test_risk_falls_as_the_uncertain_are_set_aside():
    curve = risk_coverage(items(binary(0.9, True), binary(0.9, True), binary(0.6, False), binary(0.6, True)))

    assert ([0.9, 0.6], [2, 4], [2, 3]) == (list(curve.thresholds), list(curve.kept), list(curve.right))
    assert pytest.approx(0.5 * 0 + 0.5 * 0.25) == curve.area


def test_a_threshold_is_suggested_only_when_the_data_bear_it():
    few = risk_coverage(items(*(binary(0.9, True) for _ in range(10))))
    many = risk_coverage(items(*(binary(0.9, True) for _ in range(60)), *(binary(0.6, False) for _ in range(60))))

    # 0.05 ** (1 / 10) = 0.741 and 0.05 ** (1 / 60) = 0.951
    assert few.suggest(0.9).threshold is None
    assert 0.9 == few.suggest(0.74).threshold
    assert (0.9, 0.5, 1.0) == ((found := many.suggest(0.95)).threshold, found.coverage, found.accuracy)
    assert many.suggest(0.96).threshold is None


def test_none_right_suggests_nothing():
    assert risk_coverage(items(binary(0.9, False))).suggest(0.5).threshold is None


def test_flips_are_told_by_number_of_options_and_order():
    two = {**nominal([0.7, 0.3], 0, ("a", "b")), "reordered": {"reversed": 1}}
    three = {**nominal([0.5, 0.3, 0.2], 0), "reordered": {"reversed": 0, "shuffled": 2}}
    unlabelled = {**three, "label": None, "reordered": {"reversed": None, "shuffled": 0}}
    record = {
        "row": 1, "id": "1", "model": "m", "seconds": 1.0, "input_tokens": 10, "output_tokens": 2,
        "questions": {"two": two, "three": three, "unlabelled": unlabelled},
    }  # fmt: skip

    report = report_of({"command": "eval"}, [record], 1, [0.9])

    found = {(one["options"], one["order"]): (one["count"], one["rate"]["value"]) for one in report["flips"]}
    assert {
        ("2", "reversed"): (1, 1.0),
        ("3 or more", "reversed"): (2, 0.5),
        ("3 or more", "shuffled"): (2, 0.5),
    } == found


def test_refused_rows_are_listed_and_counted_nowhere():
    refused = {"row": 1, "id": "one", "error": "422: state: too long"}

    report = report_of({"command": "eval"}, [refused], 2, [0.9])

    assert {"in_data": 2, "answered": 0, "refused": [refused]} == report["rows"]
    assert ([], [], {}) == (report["groups"], report["flips"], report["cost"])
