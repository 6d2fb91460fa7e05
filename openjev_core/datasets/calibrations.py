"""Calibrations from labelled scores, and the report on what they do to rows that the fit has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from openjev_core.calibration import (
    FORMAT,
    Calibration,
    Correction,
    Promise,
    QuestionPart,
    TypePart,
)
from openjev_core.datasets.checked_rows import CheckedQuestion, CheckedRows
from openjev_core.datasets.fits import (
    FEWEST,
    FOLDS,
    SEED,
    Example,
    TypeFit,
    fit,
    out_of_fold,
    out_of_questions,
    probabilities,
)
from openjev_core.datasets.intervals import LEVEL
from openjev_core.datasets.items import Items, items_of
from openjev_core.datasets.measures import CALIBRATION_ERROR, MEASURES
from openjev_core.datasets.reliability import reliability
from openjev_core.engine.calibrated import ReadoutName, prompt_digest
from openjev_core.engine.engine import Engine
from openjev_core.errors import RequestError
from openjev_core.question import PromptWords

SHOWN = ("accuracy", "log_loss", "brier", "ece", "adaptive_ece")


@frozen(kw_only=True)
class LabelledQuestion:
    """A labelled question of a row, with the scores of its readouts.

    Attributes:
        row: The row's number.
        checked: The question and its label.
        names: What each of its labelled readouts is known by.
        words: For each of them its text, and its options' texts in canonical order.
        orders: For each the scores of each order, in the options' given order; no order for a certain one.
        labels: For each the position of the right option, as given.
    """

    row: int
    checked: CheckedQuestion
    names: tuple[ReadoutName, ...]
    words: tuple[tuple[str, tuple[str, ...]], ...]
    orders: tuple[tuple[tuple[float, ...], ...], ...]
    labels: tuple[int, ...]

    @property
    def examples(self) -> list[Example]:
        """Its readouts that were read, as examples."""
        return [
            Example(
                self.row,
                name.digest,
                tuple(tuple(scores[position] for position in name.order) for scores in orders),
                name.order.index(label),
            )
            for name, orders, label in zip(self.names, self.orders, self.labels, strict=True)
            if orders
        ]


def labelled_questions(records: Sequence[Mapping[str, Any]], checked: CheckedRows) -> list[LabelledQuestion]:
    """The labelled questions of a run's records.

    Args:
        records: As :class:`~openjev_core.datasets.records.ScoreRecorder` makes them.
        checked: The questions of the rows that they are of.
    """
    found = []
    for record in records:
        read: dict[str, list[Mapping[str, Any]]] = {}
        for readout in record.get("readouts", ()):
            read.setdefault(readout["question"], []).append(readout)
        for question_id, readouts in read.items():
            found.append(
                LabelledQuestion(
                    row=record["row"],
                    checked=checked[record["row"]][question_id],
                    names=tuple(ReadoutName(digest=one["digest"], order=tuple(one["order"])) for one in readouts),
                    words=tuple((one["text"], tuple(one["options"])) for one in readouts),
                    orders=tuple(
                        tuple(tuple(map(_number, order["scores"])) for order in readout["orders"])
                        for readout in readouts
                    ),
                    labels=tuple(readout["label"] for readout in readouts),
                )
            )
    return found


def examples_of(questions: Sequence[LabelledQuestion]) -> dict[str, list[Example]]:
    """Type name to its labelled readouts."""
    found: dict[str, list[Example]] = {}
    for question in questions:
        found.setdefault(question.checked.shape.type, []).extend(question.examples)
    return found


def half_for_the_fit(rows: Sequence[int]) -> frozenset[int]:
    """Half of the rows, drawn at random and always the same: those that a fit is made on where the others promise.

    A threshold holds for a probability that is not made from the rows that it was chosen on.
    """
    different = np.unique(rows)
    drawn = np.random.default_rng(SEED).permutation(different)
    return frozenset(drawn[: (len(different) + 1) // 2].tolist())


def labelled_rows(checked: CheckedRows) -> dict[str, list[int]]:
    """Type name to the row number of each labelled readout that has anything to tell apart."""
    found: dict[str, list[int]] = {}
    for number, questions in checked.items():
        for question in questions.values():
            if question.label is not None:
                found.setdefault(question.shape.type, []).extend([number] * question.shape.labelled(question.label))
    return found


def check_enough(rows: Mapping[str, Sequence[int]], only: Sequence[str]) -> None:
    """Refuse too few labelled readouts.

    Args:
        rows: Type name to the row of each of its labelled readouts.
        only: Types to fit; all of them when empty.

    Raises:
        RequestError: A type has too few labelled readouts, or none.
    """
    if missing := [name for name in only if name not in rows]:
        raise RequestError.at(("--only",), f"no question of type {missing[0]!r} has a label")
    for name in only or rows:
        count, different = len(rows[name]), len(set(rows[name]))
        if count < FEWEST or different < FOLDS:
            msg = (
                f"{count} labelled {name} readouts in {different} rows are too few to fit a calibration on; "
                f"{FEWEST} in {FOLDS} rows are needed. Label more, or fit other types alone with --only TYPE"
            )
            raise RequestError.at(("labels",), msg)


def calibrate(scores: Mapping[str, list[Example]], only: Sequence[str]) -> tuple[dict[str, TypeFit], dict[str, Any]]:
    """Fit every type.

    Args:
        scores: Type name to its labelled readouts.
        only: Types to fit; all types with labels when empty.

    Returns:
        Type name to what was fitted, and the report's groups by type and question, without their words.

    Raises:
        RequestError: A type has too few labelled readouts.
    """
    by_type = {name: examples for name, examples in sorted(scores.items()) if not only or name in only}
    check_enough({name: [example.row for example in examples] for name, examples in by_type.items()}, only)
    fits = {name: fit(examples) for name, examples in by_type.items()}
    return fits, {
        "groups": [group for name, examples in by_type.items() for group in _groups(name, examples, fits[name])],
        "method": {
            "before_and_after": f"both on rows that the fit had not seen: {FOLDS} folds of rows, form and numbers "
            "fitted on the others; for questions that the file does not know, folds of questions",
            "interval": f"{LEVEL:.0%}, from the spread between rows",
            "ece": CALIBRATION_ERROR,
        },
    }


def calibration_of(
    engine: Engine, fits: Mapping[str, TypeFit], questions: Sequence[LabelledQuestion], promise: Promise | None = None
) -> Calibration:
    """The calibration file's content for the engine that the scores came from.

    Args:
        engine: The engine.
        fits: Type name to what was fitted.
        questions: What it was fitted on.
        promise: What is promised of accepted answers.
    """
    settings = engine.settings
    rows: dict[str, list[int]] = {}
    words: dict[str, tuple[str, tuple[str, ...]]] = {}
    for question in questions:
        for name, said in zip(question.names, question.words, strict=True):
            rows.setdefault(name.digest, []).append(question.row)
            words[name.digest] = said
    by_type, types = examples_of(questions), engine.registry.types
    fixed = PromptWords(*settings.prompt_words)
    return Calibration(
        format=FORMAT,
        model=engine.model.public_name,
        template=engine.model.wording,
        orders=settings.orders,
        prior=settings.prior,
        types={
            name: _type_part(prompt_digest(types[name], fixed), fitted, by_type[name]) for name, fitted in fits.items()
        },
        questions={
            digest: QuestionPart(
                type=name,
                text=words[digest][0],
                options=words[digest][1],
                temperature=correction.temperature,
                bias=correction.bias,
                form=choice.form,
                why=choice.why,
                rows=len(set(rows[digest])),
                readouts=len(rows[digest]),
            )
            for name, fitted in fits.items()
            for digest, (choice, correction) in fitted.questions.items()
        },
        promise=promise,
    )


def named(report: dict[str, Any], calibration: Calibration) -> dict[str, Any]:
    """The report with the words of its questions, as the file has them."""
    for group in report["groups"]:
        if (part := calibration.questions.get(group["digest"])) is not None:
            group["question"] = part.text
            group["bias"] = dict(zip(part.options, part.bias, strict=bool(part.bias)))
    return report


def _type_part(prompt: str, fitted: TypeFit, examples: Sequence[Example]) -> TypePart:
    pooled = fitted.pooled
    kept = pooled is not None and pooled.form == "pooled"
    return TypePart(
        prompt=prompt,
        temperature=fitted.temperature if kept else 1.0,
        kept=kept,
        why="fitted on one question, which says nothing of others" if pooled is None else pooled.why,
        questions=len({example.question for example in examples}),
        rows=len({example.row for example in examples}),
        readouts=len(examples),
    )


def _groups(name: str, examples: Sequence[Example], fitted: TypeFit) -> list[dict[str, Any]]:
    """What is applied to questions that the file does not know, then each question that it knows."""
    groups = []
    if fitted.pooled is not None:
        unknown = {"form": fitted.pooled.form, "why": fitted.pooled.why, "held_out_log_loss": fitted.pooled.held_out}
        temperature = fitted.temperature if fitted.pooled.form == "pooled" else 1.0
        groups.append(
            {"type": name, "digest": "", "question": None, "temperature": temperature, "bias": {}, **unknown}
            | _measured(examples, out_of_questions(examples))
        )
    after = out_of_fold(examples)
    for digest, (choice, correction) in fitted.questions.items():
        mine = [index for index, example in enumerate(examples) if example.question == digest]
        groups.append(
            {
                "type": name,
                "digest": digest,
                "question": digest,
                "temperature": correction.temperature,
                "bias": {},
                "form": choice.form,
                "why": choice.why,
                "held_out_log_loss": choice.held_out,
            }
            | _measured([examples[i] for i in mine], [after[i] for i in mine])
        )
    return groups


def _measured(examples: Sequence[Example], corrections: Sequence[Correction]) -> dict[str, Any]:
    before = _items(examples, [probabilities(example, Correction()) for example in examples])
    pairs = zip(examples, corrections, strict=True)
    after = _items(examples, [probabilities(example, correction) for example, correction in pairs])
    return {
        "count": len(examples),
        "rows": len({example.row for example in examples}),
        "measures": {
            measure.name: {
                "before": measure.estimate(before).json(),
                "after": measure.estimate(after).json(),
                "difference": measure.difference(before, after).json(),
            }
            for measure in MEASURES
            if measure.name in SHOWN
        },
        "reliability": {"before": reliability(before), "after": reliability(after)},
    }


def _items(examples: Sequence[Example], probabilities: Sequence[Sequence[float]]) -> Items:
    return items_of(
        [
            (
                example.row,
                {
                    "kind": "nominal",
                    "names": [str(position) for position in range(len(of_example))],
                    "label": example.label,
                    "predicted": of_example.index(max(of_example)),
                    "probabilities": of_example,
                },
            )
            for example, of_example in zip(examples, map(list, probabilities), strict=True)
        ]
    )


def _number(score: float | None) -> float:
    """A recorded score: null stands for minus infinity, which JSON does not have."""
    return float("-inf") if score is None else score
