"""The hooks that a plugin can implement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pluggy

from openjev_core.engine_type import EngineType
from openjev_core.observation import FinishedEvaluation
from openjev_core.question import QuestionType

PROJECT = "openjev"
"""pluggy's project name, and the entry-point group."""

OWN_COMMANDS = frozenset({
    "ask", "batch", "batch-ray", "calibrate", "eval", "mcp", "plugins", "schema", "serve", "settings", "smoke",
})  # fmt: skip
"""Names of commands that plugins cannot take."""

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


@hookspec
def openjev_engines() -> Sequence[EngineType]:  # type: ignore[empty-body]  # a spec has no body
    """Return the engines that this plugin adds: what reads readouts about a state.

    The module loads whenever a command of openjev starts, so what opening needs is imported inside ``open``.

    Example:
        ::

            from collections.abc import AsyncIterator, Sequence
            from contextlib import asynccontextmanager

            from openjev_core import EngineStart, EngineType, Model, hookimpl


            @asynccontextmanager
            async def open_coin(start: EngineStart) -> AsyncIterator[Model]:
                from openjev_core.testing import scripted_model
                from openjev_core import prompt_model

                yield prompt_model(scripted_model(), start.settings, start.labels)


            @hookimpl
            def openjev_engines() -> Sequence[EngineType]:
                return [EngineType(name="coin", summary="Finds every option as likely.", api=1, open=open_coin)]
    """


@hookspec
def openjev_evaluation_finished(finished: FinishedEvaluation) -> None:
    """Observe an evaluation that has ended: count it, write it to an audit trail.

    Called in a thread, after the answer has been sent on its way. What is raised is logged and changes nothing for the
    client; what takes long holds up no one but later observations.

    Args:
        finished: What happened.

    Example:
        ::

            import json
            import sys

            from openjev_core import FinishedEvaluation, hookimpl


            @hookimpl
            def openjev_evaluation_finished(finished: FinishedEvaluation) -> None:
                line = {"request": finished.request_id, "answers": finished.answers, "error": finished.error}
                print(json.dumps(line), file=sys.stderr)
    """


@hookspec
def openjev_commands() -> Mapping[str, Callable[..., None]]:  # type: ignore[empty-body]  # a spec has no body
    """Return commands to add to ``openjev``: their names, and functions in typer's form.

    A plugin that takes the name of one of ``openjev``'s own commands does not load, and two that take one name are in
    conflict: ``openjev plugins list`` shows either.

    Example:
        ::

            from collections.abc import Callable, Mapping

            import typer
            from openjev_core import hookimpl


            def flip(times: int = 1) -> None:
                typer.echo("heads " * times)


            @hookimpl
            def openjev_commands() -> Mapping[str, Callable[..., None]]:
                return {"flip": flip}
    """
