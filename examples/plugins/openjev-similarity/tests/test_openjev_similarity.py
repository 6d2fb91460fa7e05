from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from openjev_similarity import openjev_engines
from openjev_similarity.engine import SCALE
from openjev_similarity.sentences import SentenceModel, load

from openjev_core import EngineType, RequestError, Settings, StartupError, open_engine
from openjev_core.testing import check_engine

OPTIONS = {"billing": "Payments, invoices, refunds", "sales": "Prices, new contracts"}
TEAM = {"type": "choice", "criteria": OPTIONS}
STATE = "My card was charged twice."


@pytest.fixture(scope="session")
def sentences() -> SentenceModel:
    return load()


def asked(questions: dict[str, Any], state: Any = STATE, **settings: Any) -> Any:
    async def ask() -> Any:
        async with open_engine(Settings(engine="similarity", **settings)) as engine:
            await engine.check()
            return await engine.evaluate(state=state, questions=questions)

    return asyncio.run(ask())


def cosine(sentences: SentenceModel, one: str, other: str) -> float:
    return float(sentences.embed(sentences.encode(one)) @ sentences.embed(sentences.encode(other)))


def test_the_hook_gives_one_engine_that_runs_in_this_process() -> None:
    (engine,) = openjev_engines()
    assert isinstance(engine, EngineType)
    assert ("similarity", None) == (engine.name, engine.recognise)


def test_it_keeps_the_contract_of_engines() -> None:
    (engine,) = openjev_engines()
    asyncio.run(check_engine(engine))


def test_meanings_that_are_alike_lie_close(sentences: SentenceModel) -> None:
    paid = cosine(sentences, "I paid the bill.", "The invoice was settled.")
    assert paid > cosine(sentences, "I paid the bill.", "The cat sleeps on the roof.") + 0.3
    assert pytest.approx(1, abs=1e-5) == cosine(sentences, STATE, STATE)


def test_an_answer_is_the_softmax_of_the_scaled_cosines(sentences: SentenceModel) -> None:
    answer = asked({"team": TEAM}).answers["team"]
    weights = [math.exp(SCALE * cosine(sentences, STATE, text)) for text in OPTIONS.values()]
    assert "billing" == answer["choice"]
    assert pytest.approx(weights[0] / sum(weights)) == answer["probabilities"]["billing"]
    assert "x_label_mass" not in answer


def test_orders_change_nothing() -> None:
    plain = asked({"team": TEAM}).answers["team"]
    averaged = asked({"team": TEAM}, orders="full").answers["team"]
    assert pytest.approx(plain["probabilities"]) == averaged["probabilities"]
    assert 0 == averaged["x_order_spread"]


def test_every_type_and_a_state_that_is_no_text_are_answered() -> None:
    questions = {
        "team": TEAM,
        "refund": {"type": "noul", "criteria": {"true": "Asks for money back", "false": "Wants something else"}},
        "anger": {"type": "score", "criteria": ["Calm", "Annoyed", "Furious"]},
    }
    evaluation = asked(questions, state={"ticket": [STATE]})
    assert list(questions) == list(evaluation.answers)
    assert (3, 0) == (evaluation.usage.branches, evaluation.usage.output_tokens)


def test_a_text_that_is_too_long_is_refused_and_never_cut() -> None:
    with pytest.raises(RequestError, match=r"state: 302 tokens; the sentence model reads at most 256"):
        asked({"team": TEAM}, state="word " * 300)
    with pytest.raises(RequestError, match=r"questions\.team\.criteria: 302 tokens"):
        asked({"team": {"type": "choice", "criteria": {"a": "word " * 300, "b": None}}})


def test_it_takes_no_other_model() -> None:
    with pytest.raises(StartupError, match="expected no --model"):
        asked({"team": TEAM}, model="gpt2")
