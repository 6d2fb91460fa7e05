"""The own settings of an engine that a plugin adds, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import coin_engine
import pytest

COIN = Path(coin_engine.__file__)


@pytest.fixture
def with_coin(openjev, monkeypatch):
    """Run the command line with the plugin."""
    monkeypatch.setenv("OPENJEV_PLUGINS", str(COIN))
    return openjev


def asked(run, *flags):
    result = run(
        "ask",
        "--json",
        "--engine",
        "coin.toss",
        *flags,
        "--state",
        "-",
        "--choice",
        "Which? = heads | tails",
        input="x",
    )
    assert 0 == result.exit_code, result.stderr
    (answer,) = json.loads(result.stdout)["answers"].values()
    return answer["probabilities"]["heads"], result.stderr


def test_a_flag_wins_over_the_variable(with_coin, monkeypatch):
    assert 0.75 == pytest.approx(asked(with_coin)[0])
    monkeypatch.setenv("OPENJEV_COIN_TOSS_WEIGHT", "0.6")
    heads, complaints = asked(with_coin)
    assert 0.6 == pytest.approx(heads)
    assert "is not a setting" not in complaints
    assert 0.9 == pytest.approx(asked(with_coin, "--coin-toss-weight", "0.9")[0])


def test_each_command_that_takes_an_engine_takes_its_settings(with_coin, openjev, monkeypatch):
    for command in ("serve", "ask", "eval", "batch", "calibrate"):
        shown = with_coin(command, "--help").stdout
        for flag in ("--coin-toss-side", "--coin-toss-weight", "--coin-toss-spins", "--no-coin-toss-spins"):
            assert flag in shown.replace("\n", ""), command
        assert "--coin-toss-token" not in shown
    assert "--coin-toss-side" not in with_coin("schema", "--help").stdout
    monkeypatch.delenv("OPENJEV_PLUGINS")
    assert "--coin-toss-side" not in openjev("ask", "--help").stdout


def test_they_are_listed_with_the_settings(with_coin, monkeypatch):
    monkeypatch.setenv("OPENJEV_COIN_TOSS_SIDE", "tails")
    monkeypatch.setenv("OPENJEV_COIN_TOSS_TOKEN", "secret")
    result = with_coin("settings", "--json")
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert {
        "name": "OPENJEV_COIN_TOSS_SIDE",
        "value": "tails",
        "origin": "environment",
        "meaning": "the side that falls",
    } == rows["OPENJEV_COIN_TOSS_SIDE"]
    assert (0.75, "default") == tuple(rows["OPENJEV_COIN_TOSS_WEIGHT"][key] for key in ("value", "origin"))
    assert "********" == rows["OPENJEV_COIN_TOSS_TOKEN"]["value"]


def test_a_wrong_value_is_exit_code_2(with_coin, monkeypatch):
    monkeypatch.setenv("OPENJEV_COIN_TOSS_SIDE", "edge")
    for command in (("settings",), ("ask", "--engine", "coin.toss", "--state", "-", "--noul", "Late?")):
        result = with_coin(*command, input="x")
        assert 2 == result.exit_code
        assert "OPENJEV_COIN_TOSS_SIDE: expected one of heads, tails, found 'edge'" in result.stderr


def test_the_engine_is_listed(with_coin):
    rows = json.loads(with_coin("plugins", "list", "--json").stdout)
    found = [(row["name"], row["kind"], row["status"], row["summary"]) for row in rows]
    assert ("coin.toss", "engine", "loaded", "Tosses a coin.") in found


def test_an_engine_that_is_named_is_opened_and_checked(with_coin, monkeypatch):
    found = with_coin("plugins", "check", "coin.toss")
    assert (
        f"FAILED  coin.toss ({COIN})\n"
        "  orders: options shown in one order got numbers 0.625 apart\n"
        "    fix: give log-probabilities in the options' given order, not in the order shown\n"
    ) == found.stdout
    assert 1 == found.exit_code

    monkeypatch.setenv("OPENJEV_COIN_TOSS_WEIGHT", str(1 / 3))
    found = with_coin("plugins", "check", "coin.toss")
    assert f"ok      coin.toss ({COIN})\n" == found.stdout
    assert 0 == found.exit_code

    monkeypatch.setenv("OPENJEV_COIN_TOSS_FAULT", "nothing")
    found = with_coin("plugins", "check", "coin.toss")
    assert (
        "openjev: the engine coin.toss does not open: engine coin.toss: open gave a NoneType; it has to yield an "
        "openjev_core.Model\n"
    ) == found.stderr
    assert 1 == found.exit_code
