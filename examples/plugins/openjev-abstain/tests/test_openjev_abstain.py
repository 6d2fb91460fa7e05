from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openjev_abstain import ABSTAIN, Abstain

from openjev_core import RequestError
from openjev_core.testing import check_question_type, rendered_prompts

QUESTION = Abstain(criteria={"router": "The home router", "none of these": None})


def ask(engine: Any) -> Any:
    return asyncio.run(engine.evaluate(state="", questions={"q": QUESTION})).answers["q"]


def test_it_keeps_the_contract() -> None:
    check_question_type(ABSTAIN)


def test_its_prompt(prompt_snapshot: Any) -> None:
    assert rendered_prompts(ABSTAIN, ABSTAIN.examples[0]) == prompt_snapshot


def test_an_option_is_chosen(openjev_engine: Any) -> None:
    answer = ask(openjev_engine(ABSTAIN, script=lambda prompt, labels: [0.5, 0.2, 0.2, 0.1]))

    assert "router" == answer["choice"]
    assert pytest.approx({"router": 0.5, "none of these": 0.2}) == answer["probabilities"]
    assert pytest.approx((0.2, 0.1)) == (answer["none_of_these"], answer["cannot_tell"])


@pytest.mark.parametrize("probabilities", [[0.2, 0.2, 0.5, 0.1], [0.2, 0.2, 0.1, 0.5]])
def test_a_refusal_is_no_choice(openjev_engine: Any, probabilities: list[float]) -> None:
    answer = ask(openjev_engine(ABSTAIN, script=lambda prompt, labels: probabilities))

    assert answer["choice"] is None


def test_an_option_may_have_a_refusal_s_name(openjev_engine: Any) -> None:
    answer = ask(openjev_engine(ABSTAIN, script=lambda prompt, labels: [0.1, 0.6, 0.2, 0.1]))

    assert "none of these" == answer["choice"]


def test_what_it_refuses(openjev_engine: Any) -> None:
    question = {"type": "abstain", "criteria": {}}

    with pytest.raises(RequestError) as refusal:
        asyncio.run(openjev_engine(ABSTAIN).evaluate(state="", questions={"q": question}))

    assert "questions.q.criteria: an abstain question needs at least one option, found none" == str(refusal.value)
