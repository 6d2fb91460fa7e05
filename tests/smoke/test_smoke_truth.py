"""Smoke checks against a server that does what it should."""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs
import pytest
from attrs import frozen
from live_server import live_server
from toy_model import ToyBackend

from openjev_core import Distribution, Option, QuestionType, Readout
from openjev_core.errors import SettingsError
from openjev_core.plugins.registry import PluginEntry, Registry, load_registry
from openjev_core.smoke.checks import SENSE, contract_checks
from openjev_core.smoke.report import smoke

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def truth():
    with live_server() as server:
        yield server.url


def statuses(report):
    return {verdict.name: verdict.status for verdict in report.verdicts}


def problems(report):
    return {verdict.name: verdict.problem for verdict in report.verdicts if verdict.status != "passed"}


@frozen(kw_only=True)
class Coin:
    instructions: str


@frozen(kw_only=True)
class CoinAnswer:
    heads: float


def coin_readouts(question: Coin):
    sides = (Option(key="heads", text="heads"), Option(key="tails", text="tails"))
    yield Readout(text=question.instructions, options=sides)
    yield Readout(text=question.instructions + " Really?", options=sides)


def coin_answer(question: Coin, distributions: Sequence[Distribution]) -> CoinAnswer:
    return CoinAnswer(heads=distributions[0]["heads"])


COIN = QuestionType(
    name="coin",
    summary="Heads or tails.",
    api=1,
    question=Coin,
    answer=CoinAnswer,
    readouts=coin_readouts,
    reduce=coin_answer,
    examples=(Coin(instructions="Which side?"), Coin(instructions="Which side now?")),
)


def with_types(*types, **fields):
    entry = PluginEntry(name="coins", distribution="openjev-coins", version="1", status="loaded", types=types)
    return Registry((*load_registry().entries, attrs.evolve(entry, **fields)))


async def test_passes_every_check_of_a_true_server(truth):
    finished = []

    report = await smoke(truth, registry=load_registry(), semantics=False, finished=finished.append)

    assert {} == problems(report)
    assert report.passed
    assert ["ready", *(check.name for check in contract_checks(load_registry()))] == list(statuses(report))
    assert {"key", "as many answers as allowed", "plugin: noul", "plugin: choice"} <= set(statuses(report))
    assert list(report.verdicts) == finished
    assert "toy/Toy-1" == report.model
    assert "toy" == report.backend
    assert () == report.notes


async def test_measures_what_the_server_reports(truth):
    report = await smoke(truth, registry=load_registry(), semantics=False)

    (together,) = [verdict for verdict in report.verdicts if verdict.name == "three types in one request"]
    cost = together.cost
    assert 4 == cost["output_tokens"]
    assert cost["prefix_tokens"] > 0
    assert 3 * cost["prefix_tokens"] == cost["cached_tokens"]
    assert cost["input_tokens"] > 4 * cost["prefix_tokens"]
    assert cost["latency_seconds"] == round(together.calls[-1].seconds, 4)


async def test_asks_the_examples_of_every_installed_type(truth):
    registry = with_types(COIN)
    with live_server(registry=registry) as server:
        report = await smoke(server.url, registry=registry, semantics=False)

    assert {} == problems(report)
    (verdict,) = [verdict for verdict in report.verdicts if verdict.name == "plugin: coin"]
    assert ["Which side?", "Which side now?"] == [
        question["instructions"] for question in verdict.calls[-1].sent["questions"].values()
    ]


async def test_asks_examples_in_as_many_requests_as_the_limits_need():
    registry = with_types(COIN)
    with live_server(registry=registry, max_questions=1) as server:
        report = await smoke(server.url, registry=registry, semantics=False)

    # Three types in one request, and noul's two examples in two.
    assert ["three types in one request"] == list(problems(report))
    (verdict,) = [verdict for verdict in report.verdicts if verdict.name == "plugin: coin"]
    sent = [list(call.sent["questions"]) for call in verdict.calls if call.method == "POST"]
    assert [["example 1"], ["example 2"]] == sent


async def test_says_what_to_do_about_a_type_that_the_server_lacks(truth):
    report = await smoke(truth, registry=with_types(COIN), semantics=False)

    assert {
        "plugin: coin": "the server has no question type 'coin', which is installed here: install its plugin there, or "
        "leave it out with OPENJEV_DISABLE_PLUGINS"
    } == problems(report)


async def test_notes_what_it_does_not_check(truth):
    registry = with_types(attrs.evolve(COIN, name="silent", examples=()))
    report = await smoke(truth, registry=registry, semantics=False)

    assert report.passed
    assert ("not checked, since they ship no examples: silent",) == report.notes


async def test_finds_that_a_toy_makes_no_sense(truth):
    report = await smoke(truth, registry=load_registry(), semantics=True)

    assert not report.passed
    assert set(problems(report)) <= {check.name for check in SENSE}
    verdict = next(verdict for verdict in report.verdicts if verdict.status == "failed")
    assert "expected" in verdict.problem
    assert 200 == verdict.calls[-1].status


async def test_gives_the_key_and_never_shows_it():
    with live_server(api_key=("other", "sesame-open")) as server:
        report = await smoke(server.url, registry=load_registry(), key="sesame-open", semantics=False)

    assert {} == problems(report)
    assert () == report.notes
    assert "sesame" not in json.dumps(report.json())


async def test_says_that_a_key_is_needed():
    with live_server(api_key=("sesame-open",)) as server:
        report = await smoke(server.url, registry=load_registry(), semantics=False)

    assert (
        "POST /v1/systemone: expected status 200, found status 401; the server asks for a key: give it with --key or "
        "OPENJEV_API_KEY"
    ) == problems(report)["three types in one request"]


async def test_notes_a_server_that_needs_no_key_where_one_was_given(truth):
    report = await smoke(truth, registry=load_registry(), key="sesame-open", semantics=False)

    assert report.passed
    assert ("the server answers without the key that was given: it has no OPENJEV_API_KEY",) == report.notes


async def test_asks_for_as_many_answers_as_the_server_says():
    with live_server(max_answers=7) as server:
        report = await smoke(server.url, registry=load_registry(), semantics=False)

    assert {} == problems(report)
    counts = [
        len(call.sent["questions"]["q"]["criteria"])
        for verdict in report.verdicts
        if verdict.name == "as many answers as allowed"
        for call in verdict.calls
        if call.method == "POST"
    ]
    assert [7] == counts


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8000", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999", "http://a?b=c", "http://[::1", ""],
)
async def test_refuses_what_is_no_address(url):
    with pytest.raises(SettingsError, match="expected an address such as"):
        await smoke(url, registry=load_registry())


async def test_refuses_a_password_in_the_address_without_showing_it():
    with pytest.raises(SettingsError) as caught:
        await smoke("http://me:sesame@127.0.0.1", registry=load_registry())
    assert "the server's URL holds a user name or password; give the key with --key" == str(caught.value)


@pytest.mark.parametrize("key", ["", "sesame open", "sesame\r\nx: y", "schlüssel"])
async def test_refuses_a_key_that_no_header_can_hold_without_showing_it(key):
    with pytest.raises(SettingsError) as caught:
        await smoke("http://127.0.0.1", registry=load_registry(), key=key)
    assert "the key: expected visible ASCII characters without spaces, found something else" == str(caught.value)


@pytest.mark.parametrize(
    ("mass", "low"),
    [
        (0.75, ""),
        (0.25, "; where it is low, the model would have said something else"),
    ],
)
async def test_notes_how_much_of_the_probability_the_labels_held(mass, low):
    backend = ToyBackend(damage=lambda readings: [attrs.evolve(reading, label_mass=mass) for reading in readings])
    with live_server(backend=backend) as server:
        report = await smoke(server.url, registry=load_registry(), semantics=False)

    assert (f"the labels held {mass:.1%} of the model's probability, {mass:.1%} at least{low}",) == report.notes
