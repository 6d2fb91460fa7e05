"""What a type checker sees of the library. Checked by mypy with the rest of the project; never run."""

from __future__ import annotations

from typing import assert_type

import openjev_core
from openjev_core import (
    Engine,
    Evaluation,
    RequestError,
    Settings,
    SyncEngine,
    open_engine,
)

QUESTIONS = {"urgent": {"type": "noul", "instructions": "Is it urgent?"}}


def in_a_script() -> float:
    """The blocking form."""
    with SyncEngine(Settings(orders=2)) as engine:
        assert_type(engine, SyncEngine)
        evaluation = engine.evaluate(state="...", questions=QUESTIONS)
        engine.evaluat  # type: ignore[attr-defined]  # noqa: B018 - misspelt on purpose
    assert_type(evaluation, Evaluation)
    assert_type(evaluation.usage.input_tokens, int)
    return float(evaluation.answers["urgent"]["noul"])


async def in_a_program() -> Evaluation:
    """The async form."""
    async with open_engine(Settings(model="model.gguf")) as engine:
        assert_type(engine, Engine)
        try:
            return await engine.evaluate(state={"a": [1]}, questions=QUESTIONS, orders="full", partial=True)
        except RequestError as error:
            assert_type(error.problems[0].msg, str)
            raise


openjev_core.Nonsense  # type: ignore[attr-defined]  # noqa: B018 - names that come on first use are no license for any
