"""The verdict that a report begins with, and the mistakes that it shows."""

from __future__ import annotations

import numpy as np
import pytest

from openjev_core.datasets.items import items_of
from openjev_core.datasets.mistakes import by_outcome, confusion, surest_mistakes
from openjev_core.datasets.verdicts import verdict

NAMES = ("billing", "sales", "technical")


def answered(label, predicted, names=NAMES, sure=0.8):
    rest = (1 - sure) / (len(names) - 1)
    return {
        "type": "choice",
        "kind": "nominal",
        "names": list(names),
        "label": label,
        "predicted": predicted,
        "probabilities": [sure if index == predicted else rest for index in range(len(names))],
    }


def drawn(count, accuracy, seed=0, common=0.6):
    """Answers with a given accuracy, to labels of which a share is the first option."""
    chance = np.random.default_rng(seed)
    found = []
    for row in range(count):
        label = 0 if chance.random() < common else int(chance.integers(1, 3))
        predicted = label if chance.random() < accuracy else (label + 1) % 3
        found.append((row, "team", answered(label, predicted)))
    return found


def test_a_model_that_can_judge_is_better_than_the_commonest_label():
    found = verdict("team", drawn(300, 0.9))

    assert "yes" == found["better"]
    assert found["words"].startswith("Better than the commonest label, 'billing': accuracy ")
    assert found["difference"]["low"] > 0.1
    assert {"team": "billing"} == found["baseline"]["labels"]


def test_one_that_always_gives_the_commonest_label_is_not():
    found = verdict("team", [(row, "team", answered(int(row % 3 == 0), 0)) for row in range(60)])

    assert "no" == found["better"]
    assert (
        "Not better than the commonest label, 'billing': right on the very same questions, "
        "accuracy 66.7% against 66.7% on 60 rows."
    ) == found["words"]


def test_one_that_cannot_judge_is_not_better():
    found = verdict("team", drawn(300, 0.62))

    assert "no" == found["better"]
    assert found["words"].startswith("Not better than the commonest label, 'billing', as far as these rows tell")


def test_one_that_is_mostly_wrong_is_worse():
    assert verdict("team", drawn(300, 0.2))["words"].startswith("Worse than the commonest label, 'billing'")


def test_few_rows_tell_too_little():
    found = verdict("team", drawn(8, 0.9))

    assert "unclear" == found["better"]
    assert found["words"].startswith("Too little to tell whether it is better than the commonest label")
    assert "8 rows are too few" in found["words"]


def test_each_question_has_its_own_commonest_label():
    members = [(row, "team", answered(0, 0)) for row in range(20)]
    members += [(row, "plan", answered(1, 0)) for row in range(20)]
    found = verdict("all questions", members)

    assert {"team": "billing", "plan": "sales"} == found["baseline"]["labels"]
    assert (1.0, 0.5) == (found["baseline"]["accuracy"], found["accuracy"]["value"])


def test_where_options_differ_from_row_to_row_guessing_stands_in():
    members = [(row, "q", answered(0, 0, (f"a{row}", "b"))) for row in range(30)]
    found = verdict("q", members)

    assert "yes" == found["better"]
    assert 0.5 == found["baseline"]["accuracy"]
    assert "Better than guessing among the options" in found["words"]


def test_ten_questions_of_each_row_do_not_make_a_verdict():
    """Better in 8 of 20 rows and worse in 2: as many answers in 200 rows would have been enough."""
    gained = [(row, answered(1, 1) if row < 8 else answered(0, 1) if row < 10 else answered(0, 0)) for row in range(20)]
    crowded = verdict("team", [(row, "team", one) for row, one in gained for _ in range(10)])
    alone = verdict("team", [(10 * row + k, "team", one) for row, one in gained for k in range(10)])

    assert "no" == crowded["better"]
    assert "yes" == alone["better"]


def test_confusion_has_labels_in_rows_and_answers_in_columns():
    judged = [answered(0, 0), answered(0, 1), answered(0, 1), answered(2, 0), {**answered(1, 1), "predicted": None}]
    found = confusion(items_of(list(enumerate(judged))))

    assert ["(none of them)", "billing", "sales", "technical"] == found["names"]
    assert [[0, 0, 0, 0], [0, 1, 2, 0], [1, 0, 0, 0], [0, 1, 0, 0]] == found["counts"]
    assert {"label": "billing", "answered": "sales", "count": 2} == found["pairs"][0]


def test_each_outcome_has_its_numbers():
    judged = [answered(0, 0), answered(0, 1), answered(1, 1), answered(2, 1)]
    first, second, third = by_outcome(items_of(list(enumerate(judged))))

    assert ("billing", 2, 1, 1.0, 0.5) == (
        first["name"],
        first["labelled"],
        first["answered"],
        first["precision"]["value"],
        first["recall"]["value"],
    )
    assert (1, 3, pytest.approx(1 / 3), pytest.approx(0.5)) == (
        second["labelled"],
        second["answered"],
        second["precision"]["value"],
        second["f1"],
    )
    assert (None, "there are no questions") == (third["precision"]["value"], third["precision"]["reason"])


def test_the_surest_mistakes_come_first_with_their_states():
    members = [
        (1, "team", answered(0, 1, sure=0.7)),
        (2, "team", answered(1, 2, sure=0.9)),
        (3, "team", answered(1, 1, sure=0.99)),
    ]
    found = surest_mistakes(members, {1: "Mild.", 2: {"text": "x" * 2000}, 3: "Right."}, {1: "a", 2: "b", 3: "c"})

    assert ["b", "a"] == [one["id"] for one in found]
    assert ("sales", "technical", 0.9) == (found[0]["label"], found[0]["answered"], found[0]["probability"])
    assert found[0]["state"].endswith("… (2011 characters)")
    assert "Mild." == found[1]["state"]
