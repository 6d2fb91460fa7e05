"""Fitting temperatures and biases of options to labelled scores.

One temperature is fitted to all questions of a type, together with the biases of those that have labels enough. Each
of these then gets the simplest form that predicts rows which it was not fitted on: nothing, the pooled temperature, one
of its own, or that with biases. What is its own is drawn towards the pooled by a penalty, so that few labels move it
little.

scikit-learn and netcal have temperature scaling for one classifier; a temperature that questions share, biases drawn
towards none and averaging over orders they have not. The search, the folds and the softmax are scipy's and
scikit-learn's.
"""

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
from openjev_core.distribution import LOG_FLOOR, average_orders

FOLDS = 5
SEED = 0
FEWEST = 50
"""Labelled readouts of a question from which on it may get a part of its own."""

BIAS_PENALTY = 0.5
"""Nats that a squared bias of 1 costs: that of a normal prior of width 1. Without one, an option that is never right in
the data would be pushed away without end."""
TEMPERATURE_PENALTY = 2.0
"""Nats that a question's temperature costs which is e times the pooled one, squared: a normal prior of width 1/2."""

TEMPERATURES = (0.05, 1000.0)
"""Fits stay between these: at the upper end the scores say nothing, and the biases, if any, are all that is left."""

MOST_BIAS = 20.0

Form = Literal["none", "pooled", "temperature", "temperature and bias"]
FORMS: tuple[Form, ...] = ("none", "pooled", "temperature", "temperature and bias")
"""From simple to complex: of two that predict held-out rows equally well, the simpler is taken."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@frozen
class Example:
    """A labelled readout.

    Attributes:
        row: Its row; the examples of one row stay in one fold.
        question: Digest of the readout.
        orders: The scores of its options in each order that was read; the options in canonical order.
        label: The position of the right option, in canonical order.
    """

    row: int
    question: str
    orders: tuple[tuple[float, ...], ...]
    label: int


@frozen
class Choice:
    """A chosen form and what decided it.

    Attributes:
        form: The simplest form that predicts held-out rows as well as the best one does.
        held_out: Each form's mean log loss on folds that it was not fitted on, in nats.
        gain: How much lower the chosen form's loss is than that of ``none``.
        error: Its standard error, from the spread between rows.
    """

    form: Form
    held_out: dict[Form, float]
    gain: float
    error: float

    @property
    def why(self) -> str:
        """In words."""
        if self.form == "none":
            return "nothing was seen to help on held-out rows"
        return f"log loss lower by {self.gain:.3f} (standard error {self.error:.3f}) on held-out rows"


@frozen
class TypeFit:
    """What was fitted on the examples of one type.

    Attributes:
        temperature: The pooled one.
        pooled: Whether that predicts questions that it was not fitted on; ``None`` where there is one question alone.
        questions: Question to its chosen form and the correction in canonical order, for those that have enough labels.
    """

    temperature: float
    pooled: Choice | None
    questions: dict[str, tuple[Choice, Correction]]

    def correction(self, question: str) -> Correction:
        """What is applied to a question."""
        if question in self.questions:
            return self.questions[question][1]
        if self.pooled is not None and self.pooled.form == "pooled":
            return Correction(self.temperature, (), "type")
        return Correction()


class Scored:
    """Examples of one type as arrays, padded to the longest.

    Averaging over orders is linear in the scores: with temperature T and biases b, the averaged log-probabilities are
    the softmax of ``mean(scores) / T + b``.

    Attributes:
        rows, right, scores: Of each example: its row, the position of the right option, and the scores.
        known: The questions that have enough labels for biases.
        biases: Of each example and option: the position of its bias among all biases; one past the last for none.
        count: How many biases there are.
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        widest = max(len(example.orders[0]) for example in examples)
        self.rows = np.array([example.row for example in examples])
        self.right = np.array([example.label for example in examples], dtype=np.int64)
        self.scores = np.full((len(examples), widest), -np.inf)
        members: dict[str, list[int]] = {}
        for index, example in enumerate(examples):
            logs = [log_softmax(np.array(order)) for order in example.orders]
            self.scores[index, : len(logs[0])] = np.mean([np.maximum(log, LOG_FLOOR) for log in logs], axis=0)
            members.setdefault(example.question, []).append(index)
        self.members = {question: np.array(of) for question, of in members.items()}
        self.known = [
            question
            for question, of in self.members.items()
            if len(of) >= FEWEST and len(np.unique(self.rows[of])) >= FOLDS
        ]
        sizes = [len(examples[self.members[question][0]].orders[0]) for question in self.known]
        self.count = sum(sizes)
        self.biases = np.full(self.scores.shape, self.count)
        self.spans: dict[str, slice] = {}
        first = 0
        for question, size in zip(self.known, sizes, strict=True):
            self.spans[question] = slice(first, first + size)
            self.biases[self.members[question], :size] = np.arange(first, first + size)
            first += size

    def log_probabilities(self, log_temperature: float, bias: Floats, members: Integers) -> Floats:
        """Per example and option."""
        shifted = self.scores[members] / np.exp(log_temperature) + np.append(bias, 0.0)[self.biases[members]]
        return np.asarray(log_softmax(shifted, axis=1))

    def losses(self, log_temperature: float, bias: Floats, members: Integers) -> Floats:
        """Minus the log-probability of the right option, for some of the examples."""
        logs = self.log_probabilities(log_temperature, bias, members)
        return np.asarray(-np.maximum(logs[np.arange(len(members)), self.right[members]], LOG_FLOOR))

    def loss(self, log_temperature: float, bias: Floats, members: Integers) -> tuple[float, float, Floats]:
        """Their mean, and its derivatives by the log temperature and by the biases."""
        logs = self.log_probabilities(log_temperature, bias, members)
        error = np.exp(logs)
        each = np.arange(len(members))
        error[each, self.right[members]] -= 1
        # Options that an example does not have were padded with minus infinity; they have no part in it.
        scores = np.where(np.isfinite(self.scores[members]), self.scores[members], 0.0) / np.exp(log_temperature)
        slots = self.biases[members].ravel()
        by_bias = np.bincount(slots, weights=error.ravel(), minlength=self.count + 1)[: self.count] / len(members)
        value = -logs[each, self.right[members]].mean()
        return float(value), float(-(error * scores).sum() / len(members)), by_bias


# The matrices are tiny: several threads only wait for one another (seen: seven times as long).
one_thread = threadpool_limits.wrap(limits=1, user_api="blas")


@one_thread  # type: ignore[untyped-decorator]  # threadpoolctl ships no types
def fit(examples: Sequence[Example]) -> TypeFit:
    """Fit the examples of one type, from at least :data:`FOLDS` rows."""
    scored = Scored(examples)
    return _fit(scored, np.arange(len(examples)))


@one_thread  # type: ignore[untyped-decorator]  # as above
def out_of_fold(examples: Sequence[Example]) -> list[Correction]:
    """For each example the correction that a fit without its row gives its question: form, temperature and biases."""
    scored = Scored(examples)
    found: list[Correction] = [Correction()] * len(examples)
    for training, held_out in folds(scored.rows, np.arange(len(examples))):
        fitted = _fit(scored, training)
        for index in held_out:
            found[index] = fitted.correction(examples[index].question)
    return found


@one_thread  # type: ignore[untyped-decorator]  # as above
def out_of_questions(examples: Sequence[Example]) -> list[Correction]:
    """For each example the correction that a fit without its question gives to questions that it does not know."""
    scored = Scored(examples)
    found: list[Correction] = [Correction()] * len(examples)
    for training, held_out in _question_folds(scored, np.arange(len(examples))):
        log_temperature, _ = _pooled(scored, training)
        choice = _pooled_choice(scored, training)
        if choice is not None and choice.form == "pooled":
            for index in held_out:
                found[index] = Correction(float(np.exp(log_temperature)), (), "type")
    return found


def probabilities(example: Example, correction: Correction) -> tuple[float, ...]:
    """What is answered for an example, in canonical order: by the very formula that answers are made with."""
    return average_orders([correction.scores(order) for order in example.orders])


def folds(rows: Integers, members: Integers) -> list[tuple[Integers, Integers]]:
    """``(training, held out)`` positions; the examples of one row are never on both sides."""
    count = min(FOLDS, len(np.unique(rows[members])))
    splitter = GroupKFold(n_splits=count, shuffle=True, random_state=SEED)
    return [(members[a], members[b]) for a, b in splitter.split(members, groups=rows[members])]


def _fit(scored: Scored, members: Integers) -> TypeFit:
    """Pooled part and questions' own parts, from some of the examples."""
    log_temperature, _ = _pooled(scored, members)
    inner = [(_pooled(scored, training)[0], training, held) for training, held in folds(scored.rows, members)]
    questions: dict[str, tuple[Choice, Correction]] = {}
    for question in scored.known:
        own = np.intersect1d(scored.members[question], members)
        if len(own) < FOLDS:
            continue
        center = log_temperature if len(scored.members) > 1 else 0.0
        choice = _choice_for(scored, question, inner, single=len(scored.members) == 1)
        found, bias = _own(scored, own, choice.form, log_temperature, center)
        kept = tuple(map(float, bias[scored.spans[question]])) if choice.form == "temperature and bias" else ()
        questions[question] = choice, Correction(float(np.exp(found)), kept, "question")
    return TypeFit(float(np.exp(log_temperature)), _pooled_choice(scored, members), questions)


def _choice_for(
    scored: Scored, question: str, inner: Sequence[tuple[float, Integers, Integers]], *, single: bool
) -> Choice:
    """The form for a question. Where it is its type's only one, a pooled temperature is but its own."""
    parts = []
    for log_temperature, training, held_out in inner:
        own = np.intersect1d(scored.members[question], training)
        tested = np.intersect1d(scored.members[question], held_out)
        if len(own) and len(tested):
            parts.append((log_temperature, own, tested))
    forms = [form for form in FORMS if not (single and form == "pooled")]
    losses: dict[Form, Floats] = {
        form: np.concatenate(
            [
                scored.losses(*_own(scored, own, form, log_temperature, 0.0 if single else log_temperature), tested)
                for log_temperature, own, tested in parts
            ]
        )
        for form in forms
    }
    return _simplest(losses, scored.rows[np.concatenate([tested for _, _, tested in parts])])


def _pooled_choice(scored: Scored, members: Integers) -> Choice | None:
    """Whether the pooled temperature helps questions that it was not fitted on; ``None`` with a single question."""
    parts = _question_folds(scored, members)
    if not parts:
        return None
    none = np.zeros(scored.count)
    losses: dict[Form, Floats] = {
        "none": np.concatenate([scored.losses(0.0, none, held) for _, held in parts]),
        "pooled": np.concatenate([scored.losses(_pooled(scored, training)[0], none, held) for training, held in parts]),
    }
    return _simplest(losses, scored.rows[np.concatenate([held for _, held in parts])])


def _question_folds(scored: Scored, members: Integers) -> list[tuple[Integers, Integers]]:
    names = np.empty(len(scored.rows), dtype=np.int64)
    for number, of in enumerate(scored.members.values()):
        names[of] = number
    different = len(np.unique(names[members]))
    if different < 2:  # noqa: PLR2004
        return []
    splitter = GroupKFold(n_splits=min(FOLDS, different), shuffle=True, random_state=SEED)
    return [(members[a], members[b]) for a, b in splitter.split(members, groups=names[members])]


def _simplest(losses: dict[Form, Floats], rows: Integers) -> Choice:
    """The simplest form that predicts held-out rows as well as the best one does.

    As well is within the standard error of their difference (Breiman et al. 1984): a correction that is better by less
    may as well be worse on the next rows.
    """
    held_out = {form: float(one.mean()) for form, one in losses.items()}
    best = losses[min(held_out, key=lambda form: held_out[form])]

    def as_good(form: Form) -> bool:
        worse = losses[form] - best
        return bool(worse.mean() <= standard_error(worse, rows))

    form = next(form for form in losses if as_good(form))
    gained = losses["none"] - losses[form]
    return Choice(form, held_out, float(gained.mean()), standard_error(gained, rows))


def _pooled(scored: Scored, members: Integers) -> tuple[float, Floats]:
    """The log temperature of a type, fitted with the biases of the questions that may have them."""

    def objective(parameters: Floats) -> tuple[float, Floats]:
        value, by_temperature, by_bias = scored.loss(parameters[0], parameters[1:], members)
        penalty, bias = BIAS_PENALTY / len(members), parameters[1:]
        return value + penalty * float(bias @ bias), np.array([by_temperature, *(by_bias + 2 * penalty * bias)])

    return _searched(objective, 0.0, scored.count)


def _own(scored: Scored, own: Integers, form: Form, pooled: float, center: float) -> tuple[float, Floats]:
    """Log temperature and biases of one form for one question, fitted on some of its examples."""
    none = np.zeros(scored.count)
    if form == "none":
        return 0.0, none
    if form == "pooled":
        return pooled, none
    biased = form == "temperature and bias"

    def objective(parameters: Floats) -> tuple[float, Floats]:
        bias = parameters[1:] if biased else none
        value, by_temperature, by_bias = scored.loss(parameters[0], bias, own)
        penalty, away = BIAS_PENALTY / len(own), parameters[0] - center
        drawn = TEMPERATURE_PENALTY / len(own)
        slope = by_temperature + 2 * drawn * away
        gradient = [slope, *(by_bias + 2 * penalty * bias)] if biased else [slope]
        return value + penalty * float(bias @ bias) + drawn * away**2, np.array(gradient)

    found, bias = _searched(objective, pooled, scored.count if biased else 0)
    return found, bias if biased else none


def _searched(objective: object, start: float, biases: int) -> tuple[float, Floats]:
    bounds = [tuple(np.log(TEMPERATURES)), *([(-MOST_BIAS, MOST_BIAS)] * biases)]
    first = np.array([start, *np.zeros(biases)])
    found = minimize(objective, first, method="L-BFGS-B", jac=True, bounds=bounds).x
    return float(found[0]), np.asarray(found[1:])
