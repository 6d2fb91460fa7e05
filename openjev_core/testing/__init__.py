"""For authors of question types and engines: an engine that answers by script, and the checks of the contracts.

Example:
    ::

        from openjev_core.testing import check_question_type, scripted_engine


        def test_contract() -> None:
            check_question_type(COIN)


        async def test_heads() -> None:
            engine = scripted_engine(COIN, script=lambda prompt, labels: [0.75, 0.25])
            evaluation = await engine.evaluate(state="...", questions={"coin": Coin(instructions="Which side?")})
            assert {"type": "coin", "heads": 0.75} == evaluation.answers["coin"]
"""

from __future__ import annotations

from openjev_core.testing.checks import ContractBroken, Finding, check_question_type, findings
from openjev_core.testing.engine_checks import check_engine
from openjev_core.testing.scripted import Script, ScriptedBackend, rendered_prompts, scripted_engine, scripted_model

__all__ = [
    "ContractBroken",
    "Finding",
    "Script",
    "ScriptedBackend",
    "check_engine",
    "check_question_type",
    "findings",
    "rendered_prompts",
    "scripted_engine",
    "scripted_model",
]
