"""The scores of readouts, order by order: what comes before a distribution, for fitting corrections."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from openjev_core.engine.reading import ReadoutReadings
from openjev_core.engine.scoring import Priors, Scorer
from openjev_core.prompts.compiler import CompiledQuestion
from openjev_core.question import Readout


@frozen
class OrderScores:
    """What one order of a readout's options got.

    Attributes:
        labels: The label that each option stood under; in the options' given order.
        scores: Each option's score in nats, in the options' given order; only differences mean something. ``-inf`` is
            allowed.
    """

    labels: tuple[str, ...]
    scores: tuple[float, ...]


@frozen
class ReadoutScores:
    """A readout's scores.

    Attributes:
        readout: The readout.
        orders: One per order that was read.
    """

    readout: Readout
    orders: tuple[OrderScores, ...]


def readout_scores(
    question: CompiledQuestion, readings: Sequence[ReadoutReadings], priors: Priors
) -> tuple[ReadoutScores, ...]:
    """The scores of a question's readouts, the label prior divided out where there is one, nothing else applied."""
    scorer = Scorer()
    found = []
    for compiled, of_readout in zip(question.readouts, readings, strict=True):
        orders = []
        # An adaptive evaluation reads the first of the variants only.
        for variant, reading in zip(compiled.variants, of_readout, strict=False):
            labels = [""] * len(variant.order)
            for (label, _), given in zip(variant.labelled, variant.order, strict=True):
                labels[given] = label
            scores = scorer.scores(question.type.name, variant, reading.logprobs, priors)
            orders.append(OrderScores(tuple(labels), tuple(scores)))
        found.append(ReadoutScores(compiled.readout, tuple(orders)))
    return tuple(found)
