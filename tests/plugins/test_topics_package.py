"""A third party's package, built and installed as one, answers questions of a type with several readouts."""

from __future__ import annotations

import math
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scripted_backend import ScriptedBackend, scripted_engine

from openjev_core import RequestError
from openjev_core.plugins.registry import load_registry

SOURCE = Path(__file__).parents[1] / "plugin_package"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=SOURCE, check=True, timeout=60
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def topics(wheel, site):
    """The question type, from the installed wheel."""
    zipfile.ZipFile(wheel).extractall(site)
    registry = load_registry()
    assert () == registry.failures
    assert "openjev-topics" == registry.distribution_of("topics")
    return registry.types["topics"]


def by_topic(**probabilities):
    """A script that says yes to a topic with the probability that its description is named with."""

    def script(prompt, labels):
        assert ["Yes", "No"] == labels
        topic = prompt.rsplit("Topic: ", 1)[1].split("\n", 1)[0]
        return [math.log(probabilities[topic]), math.log(1 - probabilities[topic])]

    return script


def question(**topics):
    return {"type": "topics", "topics": {name: {"about": name.title(), **more} for name, more in topics.items()}}


@pytest.mark.anyio
async def test_each_topic_is_read_by_itself(topics):
    backend = ScriptedBackend(by_topic(Money=0.9, Bugs=0.2, Sales=0.6))
    engine = scripted_engine(backend, topics)
    asked = question(money={}, bugs={}, sales={"threshold": 0.7})
    evaluation = await engine.evaluate(state="A state.", questions={"q": asked})
    answer = evaluation.answers["q"]
    assert {"money": 0.9, "bugs": 0.2, "sales": 0.6} == pytest.approx(answer["probabilities"])
    assert ["money"] == answer["topics"]
    assert ["type", "topics", "probabilities", "x_confidence"] == list(answer)
    # The least decided topic is sales, at H(.6).
    assert 1 + (0.6 * math.log2(0.6) + 0.4 * math.log2(0.4)) == pytest.approx(answer["x_confidence"])
    assert 3 == evaluation.usage.branches


@pytest.mark.anyio
async def test_what_the_readouts_share_is_warmed_once_for_the_question(topics):
    backend = ScriptedBackend()
    engine = scripted_engine(backend, topics)
    evaluation = await engine.evaluate(state="A state.", questions={"q": question(a={}, b={}, c={})})
    (shared,) = backend.shares
    suffixes = [branch.suffix for _, branch in backend.branches]
    assert 1 == len({suffix[:shared] for suffix in suffixes})
    assert 3 == len({suffix[: shared + 1] for suffix in suffixes})
    assert 3 + 2 == evaluation.usage.output_tokens


@pytest.mark.anyio
async def test_what_is_worth_warming_depends_on_the_question_alone(topics):
    alone, beside = ScriptedBackend(), ScriptedBackend()
    await scripted_engine(alone, topics).evaluate(state="S.", questions={"q": question(a={}, b={}, c={})})
    questions = {"other": question(a={}, x={}), "q": question(a={}, b={}, c={})}
    await scripted_engine(beside, topics).evaluate(state="S.", questions=questions)
    assert [0, *alone.shares] == sorted(beside.shares)


@pytest.mark.anyio
async def test_orders_are_averaged_readout_by_readout(topics):
    def script(prompt, labels):
        yes_first = prompt.index("\nYes: ") < prompt.index("\nNo: ")
        return [math.log(0.9), math.log(0.1)] if yes_first else [math.log(0.5), math.log(0.5)]

    engine = scripted_engine(ScriptedBackend(script), topics)
    evaluation = await engine.evaluate(state="S.", questions={"q": question(a={}, b={})}, orders="full")
    answer = evaluation.answers["q"]
    # Geometric means: √(.9·.5) : √(.1·.5) is 3 : 1.
    assert {"a": 0.75, "b": 0.75} == pytest.approx(answer["probabilities"])
    assert 0.4 == pytest.approx(answer["x_order_spread"])
    assert 4 == evaluation.usage.branches


@pytest.mark.parametrize(
    ("asked", "loc"),
    [
        ({"type": "topics", "topics": {}}, ("topics",)),
        ({"type": "topics", "topics": {"a": {"about": "x", "threshold": 2}}}, ("topics", "a", "threshold")),
        ({"type": "topics", "topics": {"a": {"about": "x", "threshold": "0.5"}}}, ("topics", "a", "threshold")),
        ({"type": "topics", "topics": {"a": {}}}, ("topics", "a", "about")),
        ({"type": "topics", "topics": {"a": {"about": "x", "limit": 1}}}, ("topics", "a", "limit")),
    ],
)
@pytest.mark.anyio
async def test_its_own_refusals_are_told_where_they_stand(topics, asked, loc):
    backend = ScriptedBackend()
    with pytest.raises(RequestError) as refused:
        await scripted_engine(backend, topics).evaluate(state="S.", questions={"q": asked})
    assert ("questions", "q", *loc) == refused.value.problems[0].loc
    assert [] == backend.prefixes
