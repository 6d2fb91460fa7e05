"""Questions that leave one option: their answer is certain, and nothing is read for it."""

from __future__ import annotations

import itertools

import pytest
from attrs import evolve
from scripted_backend import ScriptedBackend, scripted_engine

from openjev_core import Option, Readout
from openjev_core.errors import RequestError
from openjev_core.plugins.registry import load_registry

pytestmark = pytest.mark.anyio

CHOICE = {"type": "choice", "criteria": {"only": "The one"}}
SCORE = {"type": "score", "instructions": "How much?", "criteria": ["all"]}
NOUL = {"type": "noul", "instructions": "Is it so?"}
CHOSEN = {"type": "choice", "choice": "only", "probabilities": {"only": 1.0}, "confidence": 1.0}
SCORED = {"type": "score", "score": 0.0, "legend": {"0": "all"}, "probabilities": {"0": 1.0}, "confidence": 1.0}


@pytest.mark.parametrize("settings", [{}, {"confidence": "jev"}, {"orders": "full"}, {"prior": "contentless"}])
async def test_an_option_alone_is_certain_and_not_read(settings):
    backend = ScriptedBackend()
    engine = scripted_engine(backend, **settings)
    for state in ("S.", "Another."):  # the second time, the questions are known
        evaluation = await engine.evaluate(state=state, questions={"c": CHOICE, "s": SCORE})
        assert {"c": CHOSEN, "s": SCORED} == evaluation.answers
    assert ([], [], 0) == (backend.prefixes, backend.branches, engine.in_flight)
    usage = evaluation.usage
    assert (0, 0, 0, 0) == (usage.input_tokens, usage.output_tokens, usage.branches, usage.cached_tokens)


@pytest.mark.parametrize("orders", [1, "full"])
async def test_it_changes_nothing_for_the_questions_beside_it(orders):
    alone, beside = ScriptedBackend(), ScriptedBackend()
    expected = await scripted_engine(alone).evaluate(state="S.", questions={"n": NOUL}, orders=orders)
    questions = {"c": CHOICE, "n": NOUL, "s": SCORE}
    evaluation = await scripted_engine(beside).evaluate(state="S.", questions=questions, orders=orders)
    assert {"c": CHOSEN, **expected.answers, "s": SCORED} == evaluation.answers
    assert ["c", "n", "s"] == list(evaluation.answers)
    assert (alone.prompts, alone.announced) == (beside.prompts, beside.announced)
    assert expected.usage == evaluation.usage


async def test_its_state_is_held_to_the_limits_all_the_same():
    with pytest.raises(RequestError, match="state: "):
        await scripted_engine(max_input_tokens=64).evaluate(state="x y " * 500, questions={"c": CHOICE})


async def test_a_question_with_readouts_of_both_kinds():
    def readouts(question):
        for count in (1, 3, 1, 2):
            yield Readout(text="Which?", options=[Option(key=n, text=f"{n}") for n in range(count)], loc=("criteria",))

    seen = []
    choice = load_registry().types["choice"]
    several = evolve(
        choice,
        name="several",
        readouts=readouts,
        reduce=lambda question, distributions: seen.extend(distributions) or choice.reduce(question, distributions[:1]),
        examples=(),
    )
    backend = ScriptedBackend()
    engine = scripted_engine(backend, several)
    evaluation = await engine.evaluate(state="S.", questions={"q": {**CHOICE, "type": "several"}})
    assert [1, 3, 1, 2] == [len(one.probabilities) for one in seen]
    assert [(1.0,), (1.0,)] == [one.probabilities for one in seen[::2]]
    assert (2, 3) == (len(backend.branches), evaluation.usage.output_tokens)


async def test_a_type_that_asks_so_for_ever_is_refused():
    readout = Readout(text="Which?", options=[Option(key=0, text="a")], loc=("criteria",))
    endless = evolve(
        load_registry().types["choice"], name="endless", readouts=lambda _: itertools.repeat(readout), examples=()
    )
    with pytest.raises(RequestError, match=r"questions\.q\.criteria: asks for more than 1000 readouts of one option"):
        await scripted_engine(None, endless).evaluate(state="S.", questions={"q": {**CHOICE, "type": "endless"}})
