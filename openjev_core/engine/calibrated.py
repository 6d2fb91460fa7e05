"""Digests of what a calibration depends on, the check that a server has the same, and the part that a readout gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from attrs import frozen

from openjev_core.asking import asked_of
from openjev_core.calibration import UNCORRECTED, Calibration, Correction, digest
from openjev_core.errors import PluginError, StartupError
from openjev_core.orders import Order, canonical_order
from openjev_core.plugins.registry import Registry
from openjev_core.prompts.chat import answer_turn, question_turn
from openjev_core.question import Distribution, PromptWords, QuestionType, Readout
from openjev_core.settings import Settings

MOST_READOUTS = 512
"""Readouts of an example that a digest is taken from."""


def undecided(readout: Readout, _: int) -> Distribution:
    """The distribution that prefers nothing."""
    count = len(readout.options)
    return Distribution(readout, (1 / count,) * count, 0.0)


def prompt_digest(question_type: QuestionType[Any, Any], fixed: PromptWords) -> str:
    """Digest of the words that frame a question type's readouts, taken from what it writes for its examples.

    What a type that asks on writes for them depends on what is read; here every option is as probable as any other.

    Args:
        question_type: The type.
        fixed: The prompt's fixed words.

    Raises:
        PluginError: The type broke its contract.
    """
    words = []
    for example in question_type.examples:
        for distribution in asked_of(question_type, example, undecided, MOST_READOUTS):
            readout = distribution.readout
            labelled = [(option.label or str(index), option) for index, option in enumerate(readout.options)]
            words.append(question_type.written(example, readout, labelled))
    return digest(question_turn(fixed), answer_turn(fixed), *words)


@frozen(kw_only=True)
class ReadoutName:
    """What a readout is known by, whichever way round its options are listed.

    Attributes:
        digest: Of the words that the model reads of it.
        order: The options' canonical order: place there to position given.
    """

    digest: str
    order: Order


def name_of(question_type: QuestionType[Any, Any], question: Any, readout: Readout) -> ReadoutName:
    """What a readout is known by.

    Raises:
        PluginError: The type's suffix failed.
    """
    order = canonical_order(readout)
    shown = [(readout.options[i].label or str(place), readout.options[i]) for place, i in enumerate(order)]
    try:
        words = question_type.written(question, readout, shown)
    except Exception as error:
        raise PluginError(question_type.name, f"suffix raised {type(error).__name__}") from error
    return ReadoutName(digest=digest(question_type.name, words), order=order)


def correction_for(calibration: Calibration, type_name: str, name: ReadoutName) -> Correction:
    """What a calibration does to a readout."""
    if (known := calibration.questions.get(name.digest)) is not None:
        given = dict(zip(name.order, known.bias, strict=True)) if known.bias else {}
        return Correction(known.temperature, tuple(given[i] for i in range(len(given))), "question")
    pooled = calibration.types.get(type_name)
    if pooled is not None and pooled.kept:
        return Correction(pooled.temperature, (), "type")
    return UNCORRECTED


def question_digest(names: Sequence[ReadoutName]) -> str:
    """What a question is known by: its readouts, in the order asked."""
    return digest(*[name.digest for name in names])


def calibration_digest(calibration: Calibration) -> str:
    """Digest of what a calibration file says, however it is laid out."""
    return digest(msgspec.json.encode(calibration, order="deterministic").decode())


def check_calibration(
    calibration: Calibration, model: str, wording: str, registry: Registry, settings: Settings
) -> None:
    """Refuse a calibration that was fitted on something else.

    Raises:
        StartupError: The model, its template, a question type, its prompts, the orders read or the label prior differ,
            or a temperature is set beside the fitted ones. Names both.
    """

    def differs(what: str, expected: str, found: str) -> StartupError:
        return StartupError(
            f"OPENJEV_CALIBRATION: fitted for {what} {expected!r}, found {found!r}; "
            "fit it anew with `openjev calibrate`"
        )

    if calibration.model != model:
        raise differs("model", calibration.model, model)
    if calibration.template != wording:
        raise differs("the chat template", calibration.template, wording)
    if calibration.orders != settings.orders:
        raise differs("OPENJEV_ORDERS", str(calibration.orders), str(settings.orders))
    if calibration.prior != settings.prior:
        raise differs("OPENJEV_PRIOR", calibration.prior, settings.prior)
    if settings.temperature != 1:
        raise StartupError(
            f"OPENJEV_CALIBRATION brings temperatures of its own, and OPENJEV_TEMPERATURE is {settings.temperature:g}; "
            "unset one of the two"
        )
    for name, entry in calibration.types.items():
        question_type = registry.types.get(name)
        if question_type is None:
            raise differs("question type", name, ", ".join(registry.types))
        if entry.prompt != (found := prompt_digest(question_type, PromptWords(*settings.prompt_words))):
            raise differs(f"the prompts of {name!r}", entry.prompt, found)
