"""Fitting temperatures and label biases to labelled scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits

from openjev_core.calibration import Correction
from openjev_core.datasets.intervals import standard_error
from openjev_core.distribution import LOG_FLOOR
from openjev_core.engine.scores import OrderScores

FOLDS = 5
SEED = 0
BIAS_PENALTY = 0.5
"""Nats that a squared bias of 1 costs: that of a normal prior of width 1. Without one, a label that is never right in
the data would be pushed away without end."""
TEMPERATURES = (0.05, 1000.0)
"""Fits stay between these: at the upper end the scores say nothing, and the biases, if any, are all that is left."""

MOST_BIAS = 20.0

Form = Literal["none", "temperature", "temperature and bias"]
FORMS: tuple[Form, ...] = ("none", "temperature", "temperature and bias")
"""From simple to complex: of two that predict held-out rows equally well, the simpler is taken."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@frozen
class Example:
    """A labelled readout.

    Attributes:
        row: Its row; the examples of one row stay in one fold.
        orders: The scores of its options in each order that was read.
        label: The position of the right option, in the given order.
    """

    row: int
    orders: tuple[OrderScores, ...]
    label: int


@frozen
class Fit:
    """A chosen correction and how it was chosen.

    Attributes:
        form: The simplest form that predicts held-out rows as well as the best one does.
        correction: That form, fitted on every example.
        held_out: Each form's mean log loss on folds that it was not fitted on, in nats.
    """

    form: Form
    correction: Correction
    held_out: dict[Form, float]


class Scored:
    """Examples as arrays, padded to the longest.

    Averaging over orders is linear in the scores: with temperature T and biases b, the averaged log-probabilities are
    the softmax of ``mean(scores) / T + mean(b of the labels that the option stood under)``.
    """

    def __init__(self, examples: Sequence[Example], labels: Sequence[str]) -> None:
        widest = max(len(example.orders[0].scores) for example in examples)
        self.labels = tuple(labels)
        self.rows = np.array([example.row for example in examples])
        self.right = np.array([example.label for example in examples], dtype=np.int64)
        self.scores = np.full((len(examples), widest), -np.inf)
        self.standing = np.zeros((len(examples), widest, len(labels)))
        position = {label: index for index, label in enumerate(labels)}
        for index, example in enumerate(examples):
            width = len(example.orders[0].scores)
            logs = [log_softmax(np.array(order.scores)) for order in example.orders]
            self.scores[index, :width] = np.mean([np.maximum(log, LOG_FLOOR) for log in logs], axis=0)
            for order in example.orders:
                for option, label in enumerate(order.labels):
                    self.standing[index, option, position[label]] += 1 / len(example.orders)

    def log_probabilities(self, log_temperature: float, bias: Floats) -> Floats:
        """Per example and option."""
        with np.errstate(invalid="ignore"):
            shifted = self.scores / np.exp(log_temperature) + self.standing @ bias
        return np.asarray(log_softmax(shifted, axis=1))

    def losses(self, log_temperature: float, bias: Floats, members: Integers) -> Floats:
        """Minus the log-probability of the right option, for some of the examples."""
        logs = self.log_probabilities(log_temperature, bias)
        return np.asarray(-np.maximum(logs[members, self.right[members]], LOG_FLOOR))

    def loss(self, log_temperature: float, bias: Floats, members: Integers) -> tuple[float, float, Floats]:
        """Their mean, and its derivatives by the log temperature and by the biases."""
        logs = self.log_probabilities(log_temperature, bias)[members]
        error = np.exp(logs)
        error[np.arange(len(members)), self.right[members]] -= 1
        # Options that an example does not have were padded with minus infinity; they have no part in it.
        scores = np.where(np.isfinite(self.scores), self.scores, 0.0)[members] / np.exp(log_temperature)
        by_bias = np.einsum("eo,eol->l", error, self.standing[members]) / len(members)
        value = -logs[np.arange(len(members)), self.right[members]].mean()
        return float(value), float(-(error * scores).sum() / len(members)), by_bias


# The matrices are tiny: several threads only wait for one another (seen: seven times as long).
one_thread = threadpool_limits.wrap(limits=1, user_api="blas")


@one_thread  # type: ignore[untyped-decorator]  # threadpoolctl ships no types
def fit(examples: Sequence[Example]) -> Fit:
    """Choose a form by cross-validated log loss and fit it on everything.

    Args:
        examples: From at least :data:`FOLDS` rows.
    """
    scored = Scored(examples, labels_of(examples))
    everything = np.arange(len(examples))
    form, held_out = choose(scored, everything)
    log_temperature, bias = _fitted(scored, everything, form)
    correction = Correction(
        temperature=float(np.exp(log_temperature)),
        bias={} if form != "temperature and bias" else dict(zip(scored.labels, map(float, bias), strict=True)),
        rows=len(examples),
    )
    return Fit(form, correction, held_out)


@one_thread  # type: ignore[untyped-decorator]  # as above
def out_of_fold(examples: Sequence[Example]) -> list[list[float]]:
    """Each example's corrected probabilities by a fit that has not seen its row: form, temperature and biases."""
    scored = Scored(examples, labels_of(examples))
    predicted: list[list[float]] = [[] for _ in examples]
    for training, held_out in folds(scored.rows, np.arange(len(examples))):
        form, _ = choose(scored, training)
        logs = scored.log_probabilities(*_fitted(scored, training, form))
        for index in held_out:
            width = len(examples[index].orders[0].scores)
            predicted[index] = np.exp(logs[index, :width]).tolist()
    return predicted


def uncorrected(examples: Sequence[Example]) -> list[list[float]]:
    """Each example's probabilities without a correction."""
    scored = Scored(examples, labels_of(examples))
    logs = scored.log_probabilities(0.0, np.zeros(len(scored.labels)))
    return [np.exp(row[: len(e.orders[0].scores)]).tolist() for row, e in zip(logs, examples, strict=True)]


def labels_of(examples: Sequence[Example]) -> list[str]:
    """Every label that an option stood under, in the order of their first appearance."""
    return list(dict.fromkeys(label for e in examples for order in e.orders for label in order.labels))


def choose(scored: Scored, members: Integers) -> tuple[Form, dict[Form, float]]:
    """The form to fit to some examples, and each form's held-out log loss.

    The chosen form is the simplest one that predicts held-out folds as well as the best one does, within the standard
    error of their difference (Breiman et al. 1984): a correction that is better by less may as well be worse on the
    next rows.
    """
    parts = folds(scored.rows, members)
    rows = scored.rows[np.concatenate([held for _, held in parts])]
    losses: dict[Form, Floats] = {
        form: np.concatenate([scored.losses(*_fitted(scored, training, form), held) for training, held in parts])
        for form in FORMS
    }
    held_out = {form: float(one.mean()) for form, one in losses.items()}
    best = losses[min(held_out, key=lambda form: held_out[form])]

    def as_good(form: Form) -> bool:
        worse = losses[form] - best
        return bool(worse.mean() <= standard_error(worse, rows))

    return next(form for form in FORMS if as_good(form)), held_out


def folds(rows: Integers, members: Integers) -> list[tuple[Integers, Integers]]:
    """``(training, held out)`` positions; the examples of one row are never on both sides."""
    count = min(FOLDS, len(np.unique(rows[members])))
    splitter = GroupKFold(n_splits=count, shuffle=True, random_state=SEED)
    return [(members[a], members[b]) for a, b in splitter.split(members, groups=rows[members])]


def _fitted(scored: Scored, members: Integers, form: Form) -> tuple[float, Floats]:
    """Log temperature and biases of one form, fitted on some examples."""
    zero = np.zeros(len(scored.labels))
    if form == "none":
        return 0.0, zero
    biased = form == "temperature and bias"

    def objective(parameters: Floats) -> tuple[float, Floats]:
        bias = parameters[1:] if biased else zero
        value, by_temperature, by_bias = scored.loss(parameters[0], bias, members)
        penalty = BIAS_PENALTY / len(members)
        gradient = [by_temperature, *(by_bias + 2 * penalty * bias)] if biased else [by_temperature]
        return value + penalty * float(bias @ bias), np.array(gradient)

    bounds = [tuple(np.log(TEMPERATURES)), *([(-MOST_BIAS, MOST_BIAS)] * len(zero) if biased else [])]
    found = minimize(objective, np.zeros(len(bounds)), method="L-BFGS-B", jac=True, bounds=bounds).x
    return float(found[0]), np.asarray(found[1:]) if biased else zero
