"""What a question type's functions get because they name it: its own settings, the prompt's words, the question."""

from __future__ import annotations

import asyncio
import math

import attrs
import httpx
import pytest
from attrs import frozen
from live_server import live_server

from openjev_core import (
    Option,
    PlannedReadout,
    PromptWords,
    QuestionType,
    Readout,
    Settings,
    SettingsError,
    load_settings,
    registry_of,
    setting,
    setting_values,
    standard_suffix,
)
from openjev_core.plugins.contract import type_fault
from openjev_core.plugins.registry import load_registry
from openjev_core.testing import check_question_type, rendered_prompts, scripted_engine

GERMAN = ("Frage:", "Optionen:", "Antwort:")


@frozen(kw_only=True)
class ShadeSettings:
    count: int = setting(3, setting_values.integer(2, 9), "shades to choose from")
    token: str | None = setting(None, setting_values.bearer_key, "what is not told", secret=True)


@frozen(kw_only=True)
class Shade:
    of: str
    language: str = "en"


@frozen(kw_only=True)
class ShadeAnswer:
    shade: int
    among: int
    first: float


def readouts(question, settings):
    options = [Option(key=i, text=f"{question.of} {i}") for i in range(settings.count)]
    return [Readout(text="Which shade?", options=options)]


def reduce(question, distributions, settings):
    (found,) = distributions
    return ShadeAnswer(shade=found.top.key, among=settings.count, first=math.exp(found.logprobs[0][0]))


def suffix(readout, labelled, question, words):
    written = standard_suffix(readout, labelled, words)
    return written.replace("Which shade?", "Welche Farbe?") if question.language == "de" else written


SHADE = QuestionType(
    name="dark-shade", summary="A shade.", api=1, question=Shade, answer=ShadeAnswer, readouts=readouts, reduce=reduce,
    suffix=suffix, settings=ShadeSettings, examples=(Shade(of="red"),),
)  # fmt: skip


def asked(engine, **question):
    document = {"model": "jev-latest", "state": "A wall.", "questions": {"q": {"type": "dark-shade", **question}}}
    return asyncio.run(engine.evaluate_request(engine.structure(document))).answers["q"]


def test_its_settings_have_their_defaults_and_are_read_by_its_variables():
    assert 3 == asked(scripted_engine(SHADE), of="red")["among"]
    assert 5 == asked(scripted_engine(SHADE, settings=Settings(own={"dark_shade_count": "5"})), of="red")["among"]


def test_a_value_that_is_not_accepted_is_named():
    with pytest.raises(SettingsError, match=r"^OPENJEV_DARK_SHADE_COUNT: expected .* from 2 to 9, found '99'$"):
        scripted_engine(SHADE, settings=Settings(own={"dark_shade_count": "99"}))


def test_a_class_of_settings_that_is_none_is_a_fault():
    @frozen
    class Bare:
        count: int = 3

    assert (
        "question type 'dark-shade': its settings have a field 'count' without a parser; "
        "make it with openjev_core.setting"
    ) == type_fault(attrs.evolve(SHADE, settings=Bare))
    assert (
        "question type 'dark-shade': its settings are no attrs class; decorate it with attrs.frozen(kw_only=True)"
        == (type_fault(attrs.evolve(SHADE, settings=dict)))
    )


def test_the_suffix_gets_the_question_and_the_words():
    english = rendered_prompts(SHADE, Shade(of="red"))
    assert "Which shade?\n\nOptions:\nA: red 0\n" in english
    assert english.replace("Which shade?", "Welche Farbe?") == rendered_prompts(SHADE, Shade(of="red", language="de"))
    check_question_type(SHADE)


def test_the_words_of_a_prompt_are_a_setting():
    engine = scripted_engine(SHADE, *load_registry().types.values(), settings=Settings(prompt_words=GERMAN))
    session = engine.reader.session("Eine Wand.")
    for name, question in (("dark-shade", Shade(of="rot", language="de")), ("noul", None)):
        question_type = engine.registry.types[name]
        value = question or question_type.examples[0]
        planned = [PlannedReadout(one, (tuple(range(len(one.options))),)) for one in question_type.readouts(value)]
        (branch,) = session.shown({"q": session.prepare(question_type, planned, question=value)})["branches"]
        assert [1, 1, 1] == [branch["prompt"].count(word) for word in GERMAN]
        assert [0, 0, 0] == [branch["prompt"].count(word) for word in attrs.astuple(PromptWords())]


@pytest.mark.parametrize("value", ["Frage:", "Frage:,,Antwort:", "a,b,c,d", "a\nb,c,d"])
def test_words_that_are_no_three_texts_are_refused(value):
    with pytest.raises(
        SettingsError, match=r"^OPENJEV_PROMPT_WORDS: expected three texts of one line, comma-separated"
    ):
        load_settings({"OPENJEV_PROMPT_WORDS": value})


def test_raw_logprobs_reach_the_reducer():
    engine = scripted_engine(SHADE, script=lambda prompt, labels: [0.25, 0.5, 0.25])

    assert pytest.approx(0.25) == asked(engine, of="red")["first"]


def test_limits_tell_settings_but_no_secret():
    with live_server(
        registry=registry_of(SHADE), own={"dark_shade_count": "4", "dark_shade_token": "s3cret"}
    ) as server:
        found = httpx.get(f"{server.url}/v1/limits").json()

    assert {"dark-shade": {"count": 4}} == found["types"]
