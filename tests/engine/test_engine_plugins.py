"""Engines that plugins add: their own settings, and what becomes of one that breaks its contract."""

from __future__ import annotations

from pathlib import Path

import coin_engine
import pytest
from attrs import evolve, frozen

from openjev_core import EngineType, Settings, SettingsError, StartupError, open_engine, registry_of, setting
from openjev_core.errors import BackendError, DeadlineExceeded
from openjev_core.own_settings import own_fields
from openjev_core.plugins.contract import engine_fault
from openjev_core.plugins.registry import load_registry
from openjev_core.setting_values import positive
from openjev_core.settings import load_settings

pytestmark = pytest.mark.anyio

COIN = Path(coin_engine.__file__)
QUESTIONS = {"q": {"type": "choice", "criteria": {"heads": None, "tails": None}}}


@pytest.fixture
def registry():
    return load_registry(files=[str(COIN)])


async def tossed(registry, lines=None, **own):
    """The probability of the first option, on the coin with these settings of its own."""
    settings = Settings(
        engine="coin.toss", request_timeout=1.0, own={f"coin_toss_{name}": value for name, value in own.items()}
    )
    progress = (lambda _: None) if lines is None else lines.append
    async with open_engine(settings, registry=registry, progress=progress) as engine:
        evaluation = await engine.evaluate(state="x", questions=QUESTIONS)
    return evaluation.answers["q"]["probabilities"]["heads"]


async def test_it_is_opened_with_its_own_settings(registry):
    lines = []
    assert 0.75 == pytest.approx(await tossed(registry))
    assert 0.1 == pytest.approx(await tossed(registry, lines, side="tails", weight="0.9", spins="yes", token="secret"))
    assert ["coin: tails at 0.9, spins True, token secret"] == lines[:1]


async def test_a_wrong_value_is_refused_by_its_variable(registry):
    expected = "OPENJEV_COIN_TOSS_SIDE: expected one of heads, tails, found 'edge'"
    with pytest.raises(SettingsError, match=expected):
        await tossed(registry, side="edge")
    with pytest.raises(SettingsError, match=r"OPENJEV_COIN_TOSS_TOKEN: .*, found the value given$"):
        await tossed(registry, token=" secret")


def test_they_are_read_from_flags_and_the_environment():
    environ = {"OPENJEV_COIN_TOSS_SIDE": "tails", "OPENJEV_COIN_TOSS_WEIGHT": "0.5", "OPENJEV_COIN_TOSS_SIZE": "9"}
    names = list(own_fields(coin_engine.openjev_engines()[0]))
    assert ["coin_toss_side", "coin_toss_weight", "coin_toss_spins", "coin_toss_token", "coin_toss_fault"] == names
    loaded = load_settings(environ, flags={"coin_toss_weight": "0.9", "coin_toss_side": None}, own=names)
    assert {"coin_toss_side": "tails", "coin_toss_weight": "0.9"} == loaded.settings.own
    origins = {name: loaded.origins[name] for name in names}
    assert ["environment", "flag", "default", "default", "default"] == list(origins.values())
    unknown = "OPENJEV_COIN_TOSS_SIZE is not a setting and does nothing; did you mean OPENJEV_COIN_TOSS_SIDE?"
    assert (unknown,) == loaded.warnings


OPENING = {
    "raises": "engine coin.toss: open raised ZeroDivisionError: no coin (coin_engine.py:",
    "nothing": "engine coin.toss: open gave a NoneType; it has to yield an openjev_core.Model",
    "hangs": "engine coin.toss: expected it to be ready within 1 s, found it still starting; OPENJEV_STARTUP_TIMEOUT",
}


@pytest.mark.parametrize("fault", OPENING)
async def test_one_that_does_not_open_ends_the_start_by_name(registry, fault):
    settings = Settings(engine="coin.toss", startup_timeout=1.0, own={"coin_toss_fault": fault})
    with pytest.raises(StartupError) as refused:
        async with open_engine(settings, registry=registry):
            pass
    assert OPENING[fault] in str(refused.value)


READING = {
    "one too few": "the backend answered 1 of a branch's 2 labels",
    "one order too few": "the backend answered 0 of 1 branches",
    "one readout too few": "the backend answered 0 of 1 readouts",
    "one question too few": "the backend answered 0 of 1 questions",
    "NaN": "a label logprob that is not a number",
    "a mass of 2": "a label mass of 2.0",
    "no numbers": "the engine broke its contract: reading raised TypeError",
    "opening raises": "the engine broke its contract: opening a session raised ZeroDivisionError",
    "preparing raises": "the engine broke its contract: preparing raised ZeroDivisionError",
    "reading raises": "the engine broke its contract: reading raised ZeroDivisionError",
}


@pytest.mark.parametrize("fault", READING)
@pytest.mark.parametrize("prior", ["off", "contentless"])
async def test_one_that_reads_wrong_fails_the_request_alone(registry, fault, prior):
    settings = Settings(engine="coin.toss", prior=prior, own={"coin_toss_fault": fault})
    async with open_engine(settings, registry=registry) as engine:
        for _ in range(2):
            with pytest.raises(BackendError) as refused:
                await engine.evaluate(state="x", questions=QUESTIONS)
            assert 502 == refused.value.status
            assert READING[fault] in str(refused.value)
        assert (0, 0) == (engine.in_flight, engine.branches_in_flight)


async def test_one_that_hangs_costs_the_request_its_time(registry):
    with pytest.raises(DeadlineExceeded):
        await tossed(registry, fault="reading hangs")


def test_one_that_raises_at_import_is_named_and_no_other_is_lost(tmp_path):
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere\n")
    registry = load_registry(files=[str(tmp_path / "broken.py")])
    (failed,) = registry.failures
    assert ("broken", "failed") == (failed.name, failed.status)
    assert "ModuleNotFoundError: No module named 'no_such_module_anywhere' (broken.py:1)" in failed.cause
    assert {"llama.cpp", "sglang", "systemone"} <= set(registry.engines)


@frozen
class WithoutParser:
    side: str = "heads"


@frozen
class Workers:
    timeout: float = setting(1.0, positive, "how long")


FAULTY = [
    ({"settings": dict}, "engine 'coin.toss': its settings are no attrs class"),
    (
        {"settings": WithoutParser},
        "engine 'coin.toss': its settings have a field 'side' without a parser; make it with",
    ),
    (
        {"name": "request", "settings": Workers},
        "engine 'request': its setting OPENJEV_REQUEST_TIMEOUT is one of openjev's own; give the field 'timeout'",
    ),
    ({"open": None}, "engine 'coin.toss': its open cannot be called"),
    ({"recognise": "GET /coin"}, "engine 'coin.toss': its recognise cannot be called"),
    ({"api": 2}, "engine 'coin.toss' was written for contract version 2"),
]


@pytest.mark.parametrize(("change", "said"), FAULTY)
def test_a_record_that_breaks_the_contract_is_refused(change, said):
    (coin,) = coin_engine.openjev_engines()
    assert engine_fault(coin) is None
    assert engine_fault(evolve(coin, **change)).startswith(said)
    assert isinstance(coin, EngineType)


async def test_an_unknown_engine_lists_those_there_are(registry):
    del registry
    with pytest.raises(SettingsError, match=r"OPENJEV_ENGINE: expected one of llama.cpp, .*, found 'coin.toss'"):
        async with open_engine(Settings(engine="coin.toss"), registry=registry_of(*load_registry().types.values())):
            pass
