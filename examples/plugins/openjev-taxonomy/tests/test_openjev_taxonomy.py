from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from openjev_taxonomy import TAXONOMY, Node, Taxonomy, TaxonomySettings, readouts, target

from openjev_core import InvalidQuestion, RequestError
from openjev_core.testing import check_question_type, rendered_prompts


def tree(*widths: int, name: str = "n") -> dict[str, Any]:
    """A tree whose nodes have so many children, level by level: ``n0`` to ``n9``, then ``n00`` and so on."""
    width, *below = widths
    names = [f"{name}{index}" for index in range(width)]
    return {one: {"children": tree(*below, name=one)} if below else None for one in names}


def towards(target: str, certainty: float = 0.7) -> Any:
    """A script that prefers, in every choice, the option that leads to a leaf; the others share the rest."""

    def script(prompt: str, labels: list[str]) -> list[float]:
        shown = prompt.rpartition("Options:\n")[2].split("<|im_end|>")[0].splitlines()
        names = [line.split(": ")[1] for line in shown]
        leading = [target.startswith(name) for name in names]
        if True not in leading:
            return [1 / len(labels)] * len(labels)
        return [certainty if leads else (1 - certainty) / (len(labels) - 1) for leads in leading]

    return script


def ask(engine: Any, question: dict[str, Any]) -> Any:
    return asyncio.run(engine.evaluate(state="", questions={"q": {"type": "taxonomy", **question}}))


def test_it_keeps_the_contract() -> None:
    check_question_type(TAXONOMY)


def test_its_prompts(prompt_snapshot: Any) -> None:
    shown = rendered_prompts(
        TAXONOMY, TAXONOMY.examples[0], script=lambda prompt, labels: [0.3, 0.6, 0.1][: len(labels)]
    )
    assert shown == prompt_snapshot


@pytest.mark.parametrize(("beam", "reads"), [(1, 1 + 1 + 1), (3, 1 + 3 + 3), (10, 1 + 10 + 10), (64, 1 + 10 + 64)])
def test_a_thousand_leaves_take_a_few_reads(openjev_engine: Any, beam: int, reads: int) -> None:
    """10 x 10 x 10: all of it would be 111 reads."""
    engine = openjev_engine(TAXONOMY, script=towards("n472"))

    evaluation = ask(engine, {"criteria": tree(10, 10, 10), "beam": beam})

    assert ["n4", "n47", "n472"] == evaluation.answers["q"]["path"]
    assert reads == evaluation.usage.branches
    assert reads + 1 == evaluation.usage.output_tokens


def test_probabilities_are_products_and_sum_to_one_with_what_was_left_aside(openjev_engine: Any) -> None:
    answer = ask(openjev_engine(TAXONOMY, script=towards("n10", 0.75)), {"criteria": tree(2, 2), "beam": 1}).answers[
        "q"
    ]

    assert pytest.approx(0.75 * 0.75) == answer["probability"]
    assert [["n1", "n10"], ["n1", "n11"]] == [part["path"] for part in answer["leaves"]]
    assert pytest.approx([0.75 * 0.75, 0.75 * 0.25]) == [part["probability"] for part in answer["leaves"]]
    assert [{"path": ["n0"], "probability": pytest.approx(0.25)}] == answer["aside"]


def test_a_beam_finds_what_the_first_choice_hides(openjev_engine: Any) -> None:
    """n0 is preferred by a little, and then undecided between its ten leaves; n1 has one leaf that fits."""

    def script(prompt: str, labels: list[str]) -> list[float]:
        if "Within" not in prompt:
            return [0.55, 0.45]
        return [0.1] * 10 if "Within: n0" in prompt else [0.91] + [0.01] * 9

    narrow, wide = (
        ask(openjev_engine(TAXONOMY, script=script), {"criteria": tree(2, 10), "beam": beam}).answers["q"]
        for beam in (1, 2)
    )

    assert (["n0", "n00"], ["n1"]) == (narrow["path"], narrow["aside"][0]["path"])
    assert narrow["aside"][0]["probability"] > narrow["probability"]
    assert ["n1", "n10"] == wide["path"]
    assert pytest.approx(0.45 * 0.91) == wide["probability"]


def test_what_can_hold_no_better_leaf_is_not_read(openjev_engine: Any) -> None:
    criteria = {"deep": {"children": tree(2, 2)}, "leaf": None}
    engine = openjev_engine(TAXONOMY, script=lambda prompt, labels: [0.3, 0.7])

    evaluation = ask(engine, {"criteria": criteria})

    assert (1, ["leaf"]) == (evaluation.usage.branches, evaluation.answers["q"]["path"])
    assert [{"path": ["deep"], "probability": pytest.approx(0.3)}] == evaluation.answers["q"]["aside"]


def test_leaves_may_lie_at_any_depth_and_one_child_costs_nothing(openjev_engine: Any) -> None:
    criteria: dict[str, Any] = {"end": None, "other": None}
    for level in range(12):
        criteria = {f"level {level}": {"children": criteria}}
    engine = openjev_engine(TAXONOMY, script=lambda prompt, labels: [0.75, 0.25])

    evaluation = ask(engine, {"criteria": criteria})

    assert [*(f"level {level}" for level in reversed(range(12))), "end"] == evaluation.answers["q"]["path"]
    assert 1 == evaluation.usage.branches
    assert pytest.approx(0.75) == evaluation.answers["q"]["probability"]


def test_the_confidence_is_that_of_the_least_certain_choice(openjev_engine: Any) -> None:
    def script(prompt: str, labels: list[str]) -> list[float]:
        return [0.5, 0.5] if "Within: n0" in prompt else [1.0, 0.0]

    answer = ask(openjev_engine(TAXONOMY, script=script), {"criteria": tree(2, 2)}).answers["q"]

    assert pytest.approx(0.0) == answer["confidence"]
    assert (
        1.0
        == ask(openjev_engine(TAXONOMY, script=lambda p, n: [1.0, 0.0]), {"criteria": tree(2, 2)}).answers["q"][
            "confidence"
        ]
    )


def test_names_and_descriptions_are_shown(openjev_engine: Any) -> None:
    shown = rendered_prompts(
        TAXONOMY,
        Taxonomy(
            instructions="Which?",
            criteria={"a\nb": Node(children={"x": Node(description=["y"]), "z": None}), "c": None},
        ),
        script=lambda prompt, labels: [0.9, 0.1],
    )

    assert " Which?\n\nOptions:\nA: a\n  b\nB: c<" in shown
    assert ' Which?\n  Within: a\n  b\n\nOptions:\nA: x: ["y"]\nB: z<' in shown


@pytest.mark.parametrize("label", [["Hardware", "Router", "Setup"], "Hardware > Router > Setup", "Setup"])
def test_a_label_is_a_leaf(label: Any) -> None:
    question = TAXONOMY.examples[0]
    (top,) = next(readouts(question, TaxonomySettings()))

    assert "Hardware" == target(question, label, top)


@pytest.mark.parametrize("label", ["Hardware", ["Router", "Setup"], 3, ""])
def test_what_is_no_leaf_is_no_label(label: Any) -> None:
    question = TAXONOMY.examples[0]
    (top,) = next(readouts(question, TaxonomySettings()))

    with pytest.raises(InvalidQuestion, match="means 0 leaves of the tree"):
        target(question, label, top)


def test_it_is_answered_by_a_server(openjev_server: Any) -> None:
    url = openjev_server(TAXONOMY, script=towards("n11"))
    document = {"model": "jev-latest", "state": "", "questions": {"q": {"type": "taxonomy", "criteria": tree(2, 2)}}}

    answer = httpx.post(f"{url}/v1/systemone", json=document).json()["answers"]["q"]
    shown = httpx.post(f"{url}/v1/prompts", json=document).json()

    assert ["n1", "n11"] == answer["path"]
    assert (1, ["q"]) == (len(shown["branches"]), shown["asks_on"])


@pytest.mark.parametrize(
    ("question", "msg"),
    [
        ({"criteria": {}}, "questions.q.criteria: a taxonomy question needs at least one option, found none"),
        ({"criteria": {"a": None, "b": None}, "beam": 0}, "questions.q.beam: 'beam' must be >= 1: 0"),
        ({"criteria": {"a": {"parts": {}}}}, "questions.q.criteria.a.parts: "),
        (
            {"criteria": {"a": None, "b": {"children": {str(n): None for n in range(65)}}}},
            "questions.q.criteria.b.children: a part takes at most 64 parts, found 65",
        ),
    ],
)
def test_what_it_refuses(openjev_engine: Any, question: dict[str, Any], msg: str) -> None:
    with pytest.raises(RequestError) as refusal:
        ask(openjev_engine(TAXONOMY, script=lambda prompt, labels: [1.0, 0.0]), question)

    assert str(refusal.value).startswith(msg)
