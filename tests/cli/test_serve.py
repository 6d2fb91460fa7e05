"""``openjev serve``: what it is told and what it tells, in this process."""

from __future__ import annotations

import json
import logging
from importlib.metadata import EntryPoint

import pytest
from toy_model import toy_model

from openjev_core.api.serving import process
from openjev_core.cli import logs
from openjev_core.cli.logs import JsonLines, TextLines
from openjev_core.cli.serve import announcement
from openjev_core.plugins import declared, registry
from openjev_core.settings import Settings
from openjev_core.testing.scripted import engine_on


@pytest.fixture
def served(monkeypatch):
    """What ``run_server`` was called with, in place of serving."""
    calls = []
    monkeypatch.setattr(process, "run_server", lambda settings, **rest: calls.append((settings, rest)))
    monkeypatch.setattr(logs, "write_logs", lambda _style: None)
    return calls


@pytest.fixture
def broken(monkeypatch):
    """A plugin that does not import, beside the installed ones."""
    point = EntryPoint("broken", "not_there_at_all", "openjev")
    installed = declared.entry_points
    monkeypatch.setattr(declared, "entry_points", lambda **query: [*installed(**query), point])


def test_flags_win_over_the_environment_and_it_over_the_preset(openjev, served, monkeypatch):
    monkeypatch.setenv("OPENJEV_PORT", "9000")
    monkeypatch.setenv("OPENJEV_CONFIDENCE", "entropy")
    assert 0 == openjev("serve", "--compat", "jev", "--port", "9001", "--tracing", "--no-debug-prompts").exit_code
    settings = served[0][0]
    assert (9001, 255, "entropy") == (settings.port, settings.max_answers, settings.confidence)
    assert (True, False) == (settings.tracing, settings.debug_prompts)


def test_the_preset_makes_the_references_numbers(openjev, served):
    openjev("serve", "--compat", "jev")
    assert (255, "jev") == (served[0][0].max_answers, served[0][0].confidence)
    openjev("serve")
    assert (64, "entropy") == (served[1][0].max_answers, served[1][0].confidence)


@pytest.mark.usefixtures("broken")
def test_a_failed_plugin_ends_the_start_unless_told_to_go_on(openjev, served):
    result = openjev("serve")
    assert (1, []) == (result.exit_code, served)
    for part in ("broken of unknown", "not_there_at_all", "--skip-failed-plugins"):
        assert part in result.stderr
    assert 0 == openjev("serve", "--skip-failed-plugins").exit_code
    assert {"noul", "choice", "score"} == set(served[0][1]["registry"].types)


def test_a_name_that_disables_no_plugin_is_told(openjev, served, caplog):
    assert 0 == openjev("serve", "--disable-plugins", "openjev-cion").exit_code
    assert any("'openjev-cion' disables nothing" in message for message in caplog.messages)


def test_no_flag_takes_a_secret(openjev):
    text = openjev(
        "serve",
        "--help",
    ).output
    assert "--api-key" not in text
    assert "--backend-api-key" not in text
    assert 2 == openjev("serve", "--api-key", "x").exit_code


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--port", "70000"), "--port: expected an integer from 0 to 65535, found '70000'"),
        (("--", "--tp", "2"), "expected flags for SGLang with --sglang-python only, found '--tp 2' without it"),
        (("--connect", "http://x", "--sglang-python", "y"), "expected one of them, found both"),
        (("--connect", "http://x", "--profile", "qwen37"), "did you mean qwen36?"),
    ],
)
def test_what_makes_no_sense_is_exit_code_2(openjev, served, args, said):
    result = openjev("serve", *args)
    assert (2, []) == (result.exit_code, served)
    assert said in result.stderr
    assert 1 == len(result.stderr.splitlines())


def test_a_running_server_says_itself_what_it_serves(openjev, served):
    openjev("serve", "--connect", "http://x")
    settings = served[0][0]
    assert (None, None, ()) == (settings.model, settings.revision, settings.served_model_name)


def test_a_profile_names_the_model_unless_the_user_does(openjev, served, monkeypatch):
    openjev("serve", "--connect", "http://x", "--profile", "qwen36")
    profiled = served[0][0]
    assert ("nvidia/Qwen3.6-35B-A3B-NVFP4", "Qwen/Qwen3.6-35B-A3B") == (profiled.model, profiled.public_name)
    assert "1355db6a052410cfd62085d94b58866fd0f2c3c5" == profiled.revision
    monkeypatch.setenv("OPENJEV_MODEL", "mine")
    openjev("serve", "--connect", "http://x", "--profile", "qwen36", "--served-model-name", "Mine-1")
    own = served[1][0]
    assert ("mine", None, "Mine-1") == (own.model, own.revision, own.public_name)


def test_a_profiles_preset_gives_way_to_flags(openjev, served):
    openjev("serve", "--connect", "http://x", "--profile", "smollm2-cpu")
    openjev("serve", "--connect", "http://x", "--profile", "smollm2-cpu", "--max-input-tokens", "1000")
    assert [2040, 1000] == [settings.max_input_tokens for settings, _ in served]


def test_the_announcement_says_what_is_served():
    settings = Settings(max_questions=5, max_answers=7)
    engine = engine_on(toy_model(demo=True), settings, registry.load_registry())
    text = "\n".join(announcement(engine, "http://127.0.0.1:1"))
    for part in (
        "model toy/Toy-1 on toy",
        "is no classifier",
        "noul (openjev)",
        "5 questions, 7 options each",
        "keys: none",
        "POST http://127.0.0.1:1/v1/systemone",
    ):
        assert part in text
    keyed = engine_on(toy_model(), Settings(api_key=("hidden",)), registry.load_registry())
    text = "\n".join(announcement(keyed, "http://127.0.0.1:1"))
    assert "a Bearer key is needed" in text
    assert "hidden" not in text
    assert "classifier" not in text


def record(name, message, *args):
    return logging.LogRecord(name, logging.INFO, __file__, 1, message, args, None)


def test_a_text_line_cannot_be_forged():
    line = TextLines().format(record("openjev.server", "model %s", "a\nINFO forged\x1b[2J"))
    assert line.endswith(r"INFO    model a\nINFO forged\x1b[2J")


def test_json_lines_hold_time_and_level_and_a_requests_own_fields():
    line = json.loads(JsonLines().format(record("openjev.requests", "%s", '{"status": 200}')))
    assert {"time", "level", "status"} == set(line)
    assert ("info", 200) == (line["level"], line["status"])
    other = json.loads(JsonLines().format(record("openjev.server", "stopping: %d", 3)))
    assert ("openjev.server", "stopping: 3") == (other["logger"], other["message"])
