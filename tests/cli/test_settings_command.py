"""``openjev settings``."""

from __future__ import annotations

import json

from openjev_core.settings import setting_fields, variable


def rows(openjev):
    return {row["name"]: row for row in json.loads(openjev("settings", "--json").stdout)}


def test_every_setting_has_a_row(openjev):
    assert [variable(field.name) for field in setting_fields()] == list(rows(openjev))


def test_a_row_says_value_origin_and_meaning(openjev, monkeypatch):
    monkeypatch.setenv("OPENJEV_PORT", "9000")
    found = rows(openjev)
    meaning = "port to listen on; 0 takes a free one"
    assert {"name": "OPENJEV_PORT", "value": 9000, "origin": "environment", "meaning": meaning} == found["OPENJEV_PORT"]
    assert ("127.0.0.1", "default") == (found["OPENJEV_HOST"]["value"], found["OPENJEV_HOST"]["origin"])


def test_secrets_are_masked_and_their_number_is_too(openjev, monkeypatch):
    monkeypatch.setenv("OPENJEV_API_KEY", "first-secret,second-secret")
    monkeypatch.setenv("OPENJEV_BACKEND_API_KEY", "third-secret")
    for output in (openjev("settings").output, openjev("settings", "--json").output):
        assert "secret" not in output.replace("Bearer", "")
        assert 2 == output.count("********")


def test_an_unset_secret_is_shown_as_unset(openjev):
    assert [] == rows(openjev)["OPENJEV_API_KEY"]["value"]
    assert rows(openjev)["OPENJEV_BACKEND_API_KEY"]["value"] is None


def test_the_table_writes_lists_as_the_environment_does(openjev, monkeypatch):
    monkeypatch.setenv("OPENJEV_CORS_ORIGINS", "http://a, http://b")
    assert "http://a,http://b" in openjev("settings").stdout


def test_a_wrong_setting_is_exit_code_2(openjev, monkeypatch):
    monkeypatch.setenv("OPENJEV_API_KEY", "")
    monkeypatch.setenv("OPENJEV_MAX_ANSWERS", "1")
    result = openjev("settings")
    expected = "openjev: OPENJEV_MAX_ANSWERS: expected an integer from 2 to 1000, found '1'\n"
    assert (2, expected) == (result.exit_code, result.stderr)
