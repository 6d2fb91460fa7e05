"""Whatever an author gets wrong is told with its distribution, type, rule and remedy, and harms no other type."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from functools import cache

import pytest
from plugin_distribution import WORKING, install
from typer.testing import CliRunner
from wrong_plugins import WRONG

from openjev_core import RequestError, Settings, load_registry, prompt_model
from openjev_core.cli.app import app
from openjev_core.engine.engine import engine_for
from openjev_core.testing import tokenizers
from openjev_core.testing.scripted import ScriptedTokenizer, scripted_model

pytestmark = pytest.mark.anyio

QUESTIONS = {
    "coin": {"type": "coin", "instructions": "Which side?"},
    "noul": {"type": "noul", "instructions": "Is it so?"},
}
TOLD = re.compile(r"FAILED  coin \(openjev-coin( 1\.0)?\)\n  (?P<said>.*)\n    fix: \w.*\n")


@pytest.fixture(autouse=True)
def _toy_tokenizer(monkeypatch):
    """Labels are tried on a tokenizer that is opened in no time."""

    @contextmanager
    def toy():
        yield {"toy": ScriptedTokenizer(["Yes", "No"])}

    monkeypatch.setattr(tokenizers, "real_tokenizers", toy)


def test_there_are_more_than_130():
    assert len(WRONG) > 130
    assert len(WRONG) == len({source for source, _ in WRONG.values()})


def test_the_plugin_that_they_are_made_of_is_right(site):
    install(site, "openjev-coin", WORKING, entry_point="coin")

    assert "ok      coin (openjev-coin)\n" == CliRunner().invoke(app, ["plugins", "check", "coin"]).stdout


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine")
async def test_a_wrong_plugin_is_told_and_the_other_types_answer(site, wrong):
    source, expected = WRONG[wrong]
    install(site, "openjev-coin", source, entry_point="coin")

    done = CliRunner().invoke(app, ["plugins", "check", "coin"])

    assert 1 == done.exit_code, done.output
    told = TOLD.match(done.stdout)
    assert told, done.stdout
    assert expected in told["said"]
    evaluation = await evaluated(load_registry())
    assert pytest.approx(0.5) == evaluation.answers["noul"]["noul"]


@cache
def model_with(labels):
    """The model, proven once for each set of labels: that takes longer than all else here."""
    return prompt_model(scripted_model(), Settings(), labels)


async def evaluated(registry):
    """Both questions answered as far as they can be; the coin is left out where it is refused, or none is served."""
    engine = engine_for(model_with(registry.labels), Settings(), registry)
    if "coin" in engine.registry.types:
        with suppress(RequestError):
            return await engine.evaluate(state="", questions=QUESTIONS, partial=True)
    return await engine.evaluate(state="", questions={"noul": QUESTIONS["noul"]})
