"""Fits find what made the data, say no more than held-out rows bear, and undo overconfidence."""

from __future__ import annotations

import math

import numpy as np
import pytest

from openjev_core import RequestError
from openjev_core.calibration import Correction
from openjev_core.datasets import fits
from openjev_core.datasets.calibrations import calibrate, labelled_scores
from openjev_core.datasets.fits import (
    BIAS_PENALTY,
    Example,
    Scored,
    fit,
    folds,
    labels_of,
    out_of_fold,
    uncorrected,
)
from openjev_core.datasets.intervals import standard_error
from openjev_core.distribution import average_orders
from openjev_core.engine.scores import OrderScores

LABELS = ("A", "B", "C", "D")


def drawn(count, *, options=3, temperature=1.0, bias=(0.0, 0.0, 0.0, 0.0), orders=1, seed=0, width=2.0):
    """Examples whose scores, once divided by the temperature and with the biases added, are the truth."""
    chance = np.random.default_rng(seed)
    examples = []
    for row in range(count):
        scores = chance.normal(0, width, options) * temperature
        corrected = scores / temperature + np.array(bias[:options])
        p = np.exp(corrected) / np.exp(corrected).sum()
        read = [OrderScores(LABELS[:options], tuple(scores))]
        if orders == 2:
            read.append(OrderScores(LABELS[:options][::-1], tuple(scores)))
        examples.append(Example(row, tuple(read), int(chance.choice(options, p=p))))
    return examples


def test_a_temperature_is_found():
    found = fit(drawn(1500, temperature=4.0))

    assert "temperature" == found.form
    assert {} == found.correction.bias
    assert pytest.approx(4.0, rel=0.15) == found.correction.temperature
    assert 1500 == found.correction.rows


def test_biases_are_found():
    found = fit(drawn(1500, bias=(1.5, 0.0, -1.5, 0.0)))

    assert "temperature and bias" == found.form
    assert pytest.approx(3.0, abs=0.4) == found.correction.bias["A"] - found.correction.bias["C"]
    assert found.correction.bias["A"] > found.correction.bias["B"] + 1 > found.correction.bias["C"] + 2


def test_what_needs_no_correction_gets_none():
    found = fit(drawn(400))

    assert "none" == found.form
    assert Correction(temperature=1.0, bias={}, rows=400) == found.correction


@pytest.mark.parametrize("seed", range(5))
def test_few_rows_that_need_little_get_none(seed):
    """A correction that is better on them by less than chance allows may as well be worse on the next."""
    assert "none" == fit(drawn(60, temperature=1.2, seed=seed)).form


@pytest.mark.parametrize("seed", range(5))
def test_a_row_that_asks_the_same_ten_times_says_no_more_than_once(seed):
    """Readouts of one row share its state: ten copies of each are no ten times as many rows."""
    once = drawn(60, temperature=1.2, seed=seed)

    assert "none" == fit([example for example in once for _ in range(10)]).form


def test_the_standard_error_counts_rows_and_not_readouts():
    values, rows = np.array([1.0, 2.0, 4.0, 9.0]), np.array([7, 3, 5, 1])
    plain = values.std(ddof=1) / 2

    assert pytest.approx(plain) == standard_error(values, rows)
    assert pytest.approx(plain) == standard_error(np.repeat(values, 3), np.repeat(rows, 3))
    # By hand: the deviations from the mean, 4, sum to -12 in the one row and to 12 in the other.
    assert pytest.approx(4.0) == standard_error(np.array([0.0, 0.0, 0.0, 0.0, 12.0, 12.0]), np.repeat([1, 2], 3))


def test_scores_without_any_information_stay_within_bounds():
    chance = np.random.default_rng(0)
    noise = [
        Example(row, (OrderScores(LABELS[:2], tuple(chance.normal(0, 3, 2))),), int(chance.integers(2)))
        for row in range(200)
    ]

    assert 10 <= fit(noise).correction.temperature <= 1000


def test_minus_infinity_is_a_score():
    examples = [Example(row, (OrderScores(("A", "B"), (0.0, -math.inf)),), int(row % 5 == 0)) for row in range(100)]

    corrected = fit(examples).correction

    assert math.isfinite(corrected.temperature)
    assert all(math.isfinite(value) for value in corrected.bias.values())


def test_what_is_fitted_is_what_is_applied():
    """The formula here, over orders at once, is the engine's: correct each order, then average."""
    examples = drawn(40, options=4, orders=2, seed=3)
    scored = Scored(examples, labels_of(examples))
    temperature, bias = 1.7, np.array([0.4, -0.2, 0.1, 0.3])

    together = np.exp(scored.log_probabilities(math.log(temperature), bias))

    for example, row in zip(examples, together, strict=True):
        corrected = [
            [s / temperature + bias[LABELS.index(label)] for s, label in zip(o.scores, o.labels, strict=True)]
            for o in example.orders
        ]
        assert pytest.approx(average_orders(corrected)) == row.tolist()


def test_uncorrected_is_plain():
    (example,) = drawn(1)
    weights = np.exp(example.orders[0].scores)

    assert pytest.approx((weights / weights.sum()).tolist()) == uncorrected([example])[0]


def test_questions_of_one_row_are_never_on_both_sides():
    rows = np.repeat(np.arange(20), 3)

    for training, held_out in folds(rows, np.arange(60)):
        assert not set(rows[training]) & set(rows[held_out])


def test_held_out_predictions_do_not_know_their_label():
    """Were a row's own label used, changing it would change its own prediction."""
    examples = drawn(60, temperature=3.0)
    flipped = [Example(examples[0].row, examples[0].orders, (examples[0].label + 1) % 3), *examples[1:]]

    assert out_of_fold(examples)[0] == out_of_fold(flipped)[0]
    assert out_of_fold(examples) != out_of_fold(flipped)


def test_the_form_is_chosen_without_the_rows_that_are_predicted(monkeypatch):
    examples, chosen_on = drawn(60, bias=(1.5, 0.0, -1.5, 0.0)), []
    choose = fits.choose
    monkeypatch.setattr(
        fits, "choose", lambda scored, members: (chosen_on.append(sorted(members)), choose(scored, members))[1]
    )

    out_of_fold(examples)

    everything = np.arange(60)
    assert [sorted(training) for training, _ in folds(everything, everything)] == chosen_on


def test_what_is_found_has_the_lowest_penalized_loss():
    """Its slope in every direction is zero, by differences and not by the derivatives that the search itself uses."""
    examples = drawn(300, temperature=2.0, bias=(2.5, 0.0, -2.5, 0.0), orders=2)
    scored, everything = Scored(examples, labels_of(examples)), np.arange(300)
    found = fit(examples)
    assert "temperature and bias" == found.form

    def penalized(parameters):
        bias = parameters[1:]
        return scored.losses(parameters[0], bias, everything).mean() + BIAS_PENALTY / 300 * float(bias @ bias)

    correction = found.correction
    best = np.array([math.log(correction.temperature), *(correction.bias[label] for label in scored.labels)])
    for step in np.eye(len(best)) * 1e-4:
        assert pytest.approx(0, abs=1e-4) == (penalized(best + step) - penalized(best - step)) / 2e-4


def records(count, type="choice", options=3, **fields):
    return [
        {
            "row": example.row + 1,
            "readouts": [
                {
                    "type": type,
                    "label": example.label,
                    "orders": [{"labels": list(o.labels), "scores": list(o.scores)} for o in example.orders],
                }
            ],
        }
        for example in drawn(count, options=options, **fields)
    ]


def test_calibration_error_at_least_halves_on_held_out_rows():
    corrections, report = calibrate(labelled_scores(records(600, temperature=5.0)), ())

    (group,) = report["groups"]
    assert group["measures"]["ece"]["after"]["value"] <= group["measures"]["ece"]["before"]["value"] / 2
    assert group["measures"]["log_loss"]["difference"]["high"] < 0
    assert pytest.approx(5.0, rel=0.25) == corrections["choice"]["any"].temperature


def test_numbers_of_options_with_enough_rows_get_their_own():
    mixed = [
        *records(150, options=2, temperature=6.0),
        *records(120, options=4, seed=1),
        *records(20, options=3, seed=2),
    ]
    mixed = [{**record, "row": row} for row, record in enumerate(mixed)]

    corrections, report = calibrate(labelled_scores(mixed), ())

    assert ["2", "4"] == list(corrections["choice"]["by_options"])
    assert [None, 2, 4] == [group["options"] for group in report["groups"]]


def test_one_number_of_options_needs_no_entry_of_its_own():
    assert {} == calibrate(labelled_scores(records(150)), ())[0]["choice"]["by_options"]


def test_too_few_rows_are_refused():
    with pytest.raises(RequestError, match=r"49 labelled choice readouts in 49 rows are too few .* --only TYPE"):
        calibrate(labelled_scores(records(49)), ())


def test_many_readouts_of_few_rows_are_too_few():
    crowded = [{**record, "row": record["row"] % 3} for record in records(100)]

    with pytest.raises(RequestError, match="100 labelled choice readouts in 3 rows are too few"):
        calibrate(labelled_scores(crowded), ())


def test_other_types_can_be_left_out():
    both = [*records(60), *records(10, type="noul", options=2)]

    with pytest.raises(RequestError, match="10 labelled noul readouts"):
        calibrate(labelled_scores(both), ())
    assert ["choice"] == list(calibrate(labelled_scores(both), ["choice"])[0])
    with pytest.raises(RequestError, match="no question of type 'score' has a label"):
        calibrate(labelled_scores(both), ["score"])


def test_null_scores_are_minus_infinity():
    record = {"row": 1, "readouts": [{"type": "t", "label": 0, "orders": [{"labels": ["A"], "scores": [None]}]}]}

    assert (-math.inf,) == labelled_scores([record, {"row": 2, "error": "refused"}])["t"][0].orders[0].scores
