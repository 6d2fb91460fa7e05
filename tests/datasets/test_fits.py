"""Fits find what made the data, say no more than held-out rows bear, and undo overconfidence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from openjev_core import RequestError
from openjev_core.calibration import Correction
from openjev_core.datasets import fits
from openjev_core.datasets.calibrations import calibrate, half_for_the_fit
from openjev_core.datasets.fits import (
    BIAS_PENALTY,
    TEMPERATURE_PENALTY,
    Example,
    Scored,
    fit,
    folds,
    out_of_fold,
    out_of_questions,
    probabilities,
)
from openjev_core.datasets.intervals import standard_error


def drawn(count, *, options=3, temperature=1.0, bias=(0.0, 0.0, 0.0, 0.0), seed=0, width=2.0, question="q", first=0):
    """Examples whose scores, once divided by the temperature and with the biases added, are the truth."""
    chance = np.random.default_rng(seed)
    examples = []
    for row in range(first, first + count):
        scores = chance.normal(0, width, options) * temperature
        p = softmax(scores / temperature + np.array(bias[:options]))
        examples.append(Example(row, question, (tuple(scores),), int(chance.choice(options, p=p))))
    return examples


def own(examples, question="q"):
    return fit(examples).questions[question]


def test_a_temperature_is_found():
    choice, correction = own(drawn(1500, temperature=4.0))

    assert ("temperature", ()) == (choice.form, correction.bias)
    assert pytest.approx(4.0, rel=0.15) == correction.temperature
    assert "question" == correction.part


def test_biases_are_found():
    choice, correction = own(drawn(1500, bias=(1.5, 0.0, -1.5, 0.0)))

    assert "temperature and bias" == choice.form
    assert pytest.approx(3.0, abs=0.4) == correction.bias[0] - correction.bias[2]
    assert correction.bias[0] > correction.bias[1] + 1 > correction.bias[2] + 2
    assert choice.why.startswith("log loss lower by 0.")


def test_what_needs_no_correction_gets_none():
    choice, correction = own(drawn(400))

    assert ("none", "nothing was seen to help on held-out rows") == (choice.form, choice.why)
    assert Correction(1.0, (), "question") == correction


def test_few_rows_that_need_little_get_none():
    """A correction that is better on them by less than chance allows may as well be worse on the next."""
    found = [own(drawn(60, temperature=1.2, seed=seed))[0].form for seed in range(10)]

    assert 8 <= found.count("none")


def test_a_row_that_asks_the_same_ten_times_says_no_more_than_once():
    """Readouts of one row share its state: ten copies of each are no ten times as many rows."""
    found = [
        own([example for example in drawn(60, temperature=1.2, seed=seed) for _ in range(10)])[0].form
        for seed in range(10)
    ]

    assert 8 <= found.count("none")


def test_one_question_says_nothing_of_others():
    """Fitted on base rates of 80, 15 and 5%, a bias made another question's accuracy .657 out of .760."""
    found = fit(drawn(600, bias=(2.0, 0.5, -0.5), temperature=3.0))

    assert found.pooled is None
    assert Correction() == found.correction("another")


def test_questions_that_share_a_temperature_pass_it_to_others():
    three = [
        *drawn(300, temperature=3.0, question="a", bias=(1.5, 0.0, -1.5)),
        *drawn(300, temperature=3.0, question="b", seed=1, first=300, bias=(-1.5, 0.0, 1.5)),
        *drawn(300, temperature=3.0, question="c", seed=2, first=600),
    ]
    found = fit(three)
    unknown = found.correction("another")

    assert ("type", ()) == (unknown.part, unknown.bias)
    # Were biases not fitted along with it, the temperature would have to stand for them as well.
    assert pytest.approx(3.0, rel=0.15) == unknown.temperature
    assert ["temperature and bias"] * 2 == [found.questions[name][0].form for name in "ab"]
    assert found.questions["c"][0].form in ("none", "pooled")


def test_questions_that_share_nothing_pass_on_nothing():
    """Each of the two is predicted worse by the other's temperature than by none."""
    found = fit([*drawn(300, temperature=8.0, question="a"), *drawn(300, temperature=0.2, question="b", first=300)])

    assert "none" == found.pooled.form
    assert Correction() == found.correction("another")


def test_a_question_keeps_the_pooled_part_where_its_own_is_not_better():
    """A size's own correction once replaced the pooled one untested, and was worse in 98% of fits of 100 rows."""
    kept = 0
    for seed in range(10):
        many = [
            *drawn(600, temperature=3.0, question="a", seed=seed),
            *drawn(100, temperature=3.0, question="b", seed=100 + seed, first=600),
        ]
        kept += fit(many).questions["b"][0].form == "pooled"

    assert 8 <= kept


def test_few_labels_of_a_question_move_it_little_from_the_pooled():
    many = drawn(600, temperature=3.0, question="a")
    few = drawn(60, temperature=30.0, question="b", seed=1, first=600)
    scored = Scored([*many, *few])
    members = np.arange(600, 660)

    near, _ = fits._own(scored, members, "temperature", math.log(3.0), math.log(3.0))
    alone, _ = fits._own(Scored(few), np.arange(60), "temperature", 0.0, math.log(1000))

    assert math.log(3.0) < near < alone


def test_too_few_labels_of_a_question_give_it_no_part():
    found = fit([*drawn(100, question="a"), *drawn(49, question="b", seed=1, first=100)])

    assert ["a"] == list(found.questions)


def test_the_standard_error_counts_rows_and_not_readouts():
    values, rows = np.array([1.0, 2.0, 4.0, 9.0]), np.array([7, 3, 5, 1])
    plain = values.std(ddof=1) / 2

    assert pytest.approx(plain) == standard_error(values, rows)
    assert pytest.approx(plain) == standard_error(np.repeat(values, 3), np.repeat(rows, 3))
    # By hand: the deviations from the mean, 4, sum to -12 in the one row and to 12 in the other.
    assert pytest.approx(4.0) == standard_error(np.array([0.0, 0.0, 0.0, 0.0, 12.0, 12.0]), np.repeat([1, 2], 3))


def test_scores_without_any_information_stay_within_bounds():
    chance = np.random.default_rng(0)
    noise = [Example(row, "q", (tuple(chance.normal(0, 3, 2)),), int(chance.integers(2))) for row in range(200)]

    assert 10 <= own(noise)[1].temperature <= 1000


def test_minus_infinity_is_a_score():
    examples = [Example(row, "q", ((0.0, -math.inf),), int(row % 5 == 0)) for row in range(100)]

    _, corrected = own(examples)

    assert math.isfinite(corrected.temperature)
    assert all(map(math.isfinite, corrected.bias))


def test_what_is_fitted_is_what_is_applied():
    """The fit's formula, over orders at once, is that of answers: correct each order, then average."""
    chance = np.random.default_rng(3)
    examples = [
        Example(row, "q", (tuple(chance.normal(0, 2, 4)), tuple(chance.normal(0, 2, 4))), 0) for row in range(60)
    ]
    bias = np.array([0.4, -0.2, 0.1, 0.3])

    together = np.exp(Scored(examples).log_probabilities(math.log(1.7), bias, np.arange(60)))

    for example, row in zip(examples, together, strict=True):
        assert pytest.approx(probabilities(example, Correction(1.7, tuple(bias))), abs=1e-12) == row.tolist()
        logs = [log_softmax(np.array(order) / 1.7 + bias) for order in example.orders]
        assert pytest.approx(softmax(np.mean(logs, axis=0)).tolist(), abs=1e-12) == row.tolist()


def test_questions_of_one_row_are_never_on_both_sides():
    rows = np.repeat(np.arange(20), 3)

    for training, held_out in folds(rows, np.arange(60)):
        assert not set(rows[training]) & set(rows[held_out])


def test_held_out_predictions_do_not_know_their_label():
    """Were a row's own label used, changing it would change its own prediction."""
    examples = drawn(60, temperature=3.0)
    flipped = [Example(examples[0].row, "q", examples[0].orders, (examples[0].label + 1) % 3), *examples[1:]]

    assert out_of_fold(examples)[0] == out_of_fold(flipped)[0]
    assert out_of_fold(examples) != out_of_fold(flipped)


def test_predictions_for_other_questions_do_not_know_the_question():
    three = [*drawn(200, temperature=4.0, question="a"), *drawn(200, temperature=4.0, question="b", first=200)]
    three += drawn(200, temperature=4.0, question="c", first=400, seed=2)
    found = out_of_questions(three)
    other = out_of_questions([*three[:400], *drawn(200, temperature=40.0, question="c", first=400, seed=3)])

    assert "type" == found[400].part
    assert found[400] == other[400]
    assert found[0] != other[0]


def test_what_is_found_has_the_lowest_penalized_loss():
    """Its slope in every direction is zero, by differences and not by the derivatives that the search itself uses."""
    examples = drawn(300, temperature=2.0, bias=(2.5, 0.0, -2.5, 0.0))
    scored, everything = Scored(examples), np.arange(300)
    choice, correction = own(examples)
    assert "temperature and bias" == choice.form

    def penalized(parameters):
        bias = parameters[1:]
        away = TEMPERATURE_PENALTY / 300 * parameters[0] ** 2
        return scored.losses(parameters[0], bias, everything).mean() + BIAS_PENALTY / 300 * float(bias @ bias) + away

    best = np.array([math.log(correction.temperature), *correction.bias])
    for step in np.eye(len(best)) * 1e-4:
        assert pytest.approx(0, abs=1e-4) == (penalized(best + step) - penalized(best - step)) / 2e-4


def test_calibration_error_at_least_halves_on_held_out_rows():
    found, report = calibrate({"choice": drawn(600, temperature=5.0)}, ())

    (group,) = report["groups"]
    assert group["measures"]["ece"]["after"]["value"] <= group["measures"]["ece"]["before"]["value"] / 2
    assert group["measures"]["log_loss"]["difference"]["high"] < 0
    assert pytest.approx(5.0, rel=0.25) == found["choice"].temperature


def test_the_report_has_what_is_served_to_other_questions_and_to_each():
    two = [*drawn(150, question="a", temperature=6.0), *drawn(150, question="b", temperature=6.0, first=150, seed=1)]
    _, report = calibrate({"choice": [*two, *drawn(20, question="c", first=300, seed=2)]}, ())

    assert [("", 320), ("a", 150), ("b", 150)] == [(group["digest"], group["count"]) for group in report["groups"]]


def test_too_few_rows_are_refused():
    with pytest.raises(RequestError, match=r"49 labelled choice readouts in 49 rows are too few .* --only TYPE"):
        calibrate({"choice": drawn(49)}, ())


def test_many_readouts_of_few_rows_are_too_few():
    crowded = [Example(one.row % 3, "q", one.orders, one.label) for one in drawn(100)]

    with pytest.raises(RequestError, match="100 labelled choice readouts in 3 rows are too few"):
        calibrate({"choice": crowded}, ())


def test_other_types_can_be_left_out():
    both = {"choice": drawn(60), "noul": drawn(10, options=2)}

    with pytest.raises(RequestError, match="10 labelled noul readouts"):
        calibrate(both, ())
    assert ["choice"] == list(calibrate(both, ["choice"])[0])
    with pytest.raises(RequestError, match="no question of type 'score' has a label"):
        calibrate(both, ["score"])


def test_half_of_the_rows_are_for_the_fit():
    half = half_for_the_fit([row for row in range(100) for _ in range(3)])

    assert 50 == len(half)
    assert half == half_for_the_fit(range(100))
    assert half != frozenset(range(50))
