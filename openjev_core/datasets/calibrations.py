"""Calibrations from labelled scores, and the report on what they do to rows that the fit has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openjev_core.calibration import FORMAT, Calibration, Correction, TypeCalibration
from openjev_core.datasets.checked_rows import CheckedRows
from openjev_core.datasets.fits import FOLDS, Example, Fit, fit, out_of_fold, uncorrected
from openjev_core.datasets.intervals import LEVEL
from openjev_core.datasets.items import Items, items_of
from openjev_core.datasets.measures import CALIBRATION_ERROR, MEASURES
from openjev_core.datasets.reliability import reliability
from openjev_core.engine.calibrated import prompt_digest
from openjev_core.engine.engine import Engine
from openjev_core.engine.scores import OrderScores
from openjev_core.errors import RequestError

FEWEST = 50
"""Labelled readouts of a type that a fit needs at least."""

FEWEST_OF_A_SIZE = 100
"""Labelled readouts of one number of options from which on that number gets a correction of its own."""

SHOWN = ("accuracy", "log_loss", "brier", "ece", "adaptive_ece")


def labelled_scores(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Example]]:
    """The labelled readouts of a run's records, by question type."""
    found: dict[str, list[Example]] = {}
    for record in records:
        for readout in record.get("readouts", ()):
            orders = [OrderScores(tuple(o["labels"]), tuple(map(_number, o["scores"]))) for o in readout["orders"]]
            found.setdefault(readout["type"], []).append(Example(record["row"], tuple(orders), readout["label"]))
    return found


def labelled_rows(checked: CheckedRows) -> dict[str, list[int]]:
    """Type name to the row number of each readout that has a label."""
    found: dict[str, list[int]] = {}
    for number, questions in checked.items():
        for question in questions.values():
            if question.label is not None:
                found.setdefault(question.shape.type, []).extend([number] * len(question.shape.readouts))
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


def calibrate(
    scores: Mapping[str, list[Example]], only: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Fit every type.

    Args:
        scores: Type name to its labelled readouts.
        only: Types to fit; all types with labels when empty.

    Returns:
        Type name to its corrections, ``{"any": Correction, "by_options": {...}}``, and the report.

    Raises:
        RequestError: A type has too few labelled readouts.
    """
    by_type = {name: examples for name, examples in scores.items() if not only or name in only}
    check_enough({name: [example.row for example in examples] for name, examples in by_type.items()}, only)
    corrections: dict[str, dict[str, Any]] = {}
    groups = []
    for name, examples in sorted(by_type.items()):
        overall = fit(examples)
        sizes = {size: of_size for size, of_size in _by_size(examples).items() if len(of_size) >= FEWEST_OF_A_SIZE}
        # Where all have one size, its own correction would be the overall one again.
        own = {size: fit(of_size) for size, of_size in sizes.items()} if len(_by_size(examples)) > 1 else {}
        corrections[name] = {
            "any": overall.correction,
            "by_options": {str(size): fitted.correction for size, fitted in own.items()},
        }
        groups.append(_group(name, None, examples, overall))
        groups.extend(_group(name, size, sizes[size], fitted) for size, fitted in own.items())
    return corrections, {
        "groups": groups,
        "method": {
            "before_and_after": f"both on rows that the fit had not seen: {FOLDS} folds, form and numbers fitted on "
            "the others",
            "interval": f"{LEVEL:.0%}, from the spread between rows",
            "ece": CALIBRATION_ERROR,
        },
    }


def calibration_of(engine: Engine, corrections: Mapping[str, Mapping[str, Any]]) -> Calibration:
    """The calibration file's content for the engine that the scores came from."""
    settings = engine.settings
    return Calibration(
        format=FORMAT,
        model=engine.model.public_name,
        template=engine.model.wording,
        orders=settings.orders,
        prior=settings.prior,
        types={
            name: TypeCalibration(
                prompt=prompt_digest(engine.registry.types[name]), any=found["any"], by_options=found["by_options"]
            )
            for name, found in corrections.items()
        },
    )


def _by_size(examples: Sequence[Example]) -> dict[int, list[Example]]:
    found: dict[int, list[Example]] = {}
    for example in examples:
        found.setdefault(len(example.orders[0].scores), []).append(example)
    return dict(sorted(found.items()))


def _group(name: str, size: int | None, examples: Sequence[Example], fitted: Fit) -> dict[str, Any]:
    before, after = _items(examples, uncorrected(examples)), _items(examples, out_of_fold(examples))
    correction: Correction = fitted.correction
    return {
        "type": name,
        "options": size,
        "count": len(examples),
        "form": fitted.form,
        "temperature": correction.temperature,
        "bias": dict(correction.bias),
        "held_out_log_loss": dict(fitted.held_out),
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
