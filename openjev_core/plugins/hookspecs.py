"""The hooks that a plugin can implement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pluggy

from openjev_core.question import QuestionType

PROJECT = "openjev"
"""pluggy's project name, and the entry-point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def openjev_question_types() -> Sequence[QuestionType[Any, Any]]:  # type: ignore[empty-body]  # a spec has no body
    """Return the question types that this plugin adds.

    Example:
        A module that an entry point in the group ``openjev`` names::

            from collections.abc import Iterable, Sequence

            from attrs import frozen
            from openjev_core import Distribution, Option, QuestionType, Readout, hookimpl


            @frozen(kw_only=True)
            class Coin:
                instructions: str


            @frozen(kw_only=True)
            class CoinAnswer:
                heads: float


            def readouts(question: Coin) -> Iterable[Readout]:
                sides = (Option(key="heads", text="heads"), Option(key="tails", text="tails"))
                yield Readout(text=question.instructions, options=sides)


            def reduce(question: Coin, distributions: Sequence[Distribution]) -> CoinAnswer:
                return CoinAnswer(heads=distributions[0]["heads"])


            @hookimpl
            def openjev_question_types() -> Sequence[QuestionType]:
                return [
                    QuestionType(
                        name="coin",
                        summary="Heads or tails.",
                        api=1,
                        question=Coin,
                        answer=CoinAnswer,
                        readouts=readouts,
                        reduce=reduce,
                        examples=(Coin(instructions="Which side would the speaker call?"),),
                    )
                ]
    """
