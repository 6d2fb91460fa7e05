"""``openjev smoke``."""

from __future__ import annotations

import json

import pytest
from live_server import live_server
from lying_server import lying_server

from openjev_core.cli.smoke import verdict_lines
from openjev_core.smoke.report import Verdict
from openjev_core.smoke.server import Call


@pytest.fixture(scope="module")
def truth():
    with live_server() as server:
        yield server.url


def test_a_true_server_passes(openjev, truth, tmp_path):
    result = openjev("smoke", truth, "--no-semantics", "--json", tmp_path / "report.json")

    assert 0 == result.exit_code, result.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["passed"]
    assert {"passed": len(report["checks"]), "failed": 0, "skipped": 0} == report["counts"]
    names = [check["name"] for check in report["checks"]]
    assert names == [line[8:58].strip() for line in result.stdout.splitlines() if line.startswith("ok ")]
    assert f"toy/Toy-1 on toy at {truth}, ready after " in result.stdout
    (noul,) = [check for check in report["checks"] if check["name"] == "state: chat transcript"]
    assert noul["latency_seconds"] > 0
    assert noul["prefix_tokens"] > 0
    assert noul["prefix_tokens"] == noul["cached_tokens"]


def test_cached_tokens_are_null_where_they_are_not_reported(openjev, truth, tmp_path):
    with lying_server(truth, lambda heard: heard.headers.pop("x-openjev-cached-tokens", None)) as url:
        result = openjev("smoke", url, "--no-semantics", "--json", tmp_path / "report.json")

    assert 0 == result.exit_code, result.output
    checks = {check["name"]: check for check in json.loads((tmp_path / "report.json").read_text())["checks"]}
    assert checks["state: chat transcript"]["cached_tokens"] is None
    assert checks["state: chat transcript"]["prefix_tokens"] > 0
    assert "cached not reported" in result.stdout


def test_a_failed_check_shows_what_was_sent_and_what_came_back(openjev, truth, tmp_path):
    def lie(heard):
        if heard.path == "/v1/systemone" and heard.count == 0:
            heard.status, heard.body = 502, b'{"detail": {"message": "\x1b[31mred\xe2\x80\xae"}}'

    with lying_server(truth, lie) as url:
        result = openjev("smoke", url, "--no-semantics", "--json", tmp_path / "report.json")

    assert 1 == result.exit_code
    lines = [line.strip() for line in result.stdout.splitlines()]
    start = next(index for index, line in enumerate(lines) if line.startswith("FAILED"))
    assert "POST /v1/systemone: expected status 200, found status 502" == lines[start + 1]
    assert "POST /v1/systemone: status 502" == lines[start + 2]
    assert lines[start + 3].startswith('sent {"model": "jev-latest", "state": "Hi, I was charged')
    assert r'received {"detail": {"message": "\x1b[31mred\u202e"}}' == lines[start + 4]
    report = json.loads((tmp_path / "report.json").read_text())
    assert not report["passed"]
    (failed,) = [check for check in report["checks"] if check["status"] == "failed"]
    assert (
        "Is the customer asking for money back?"
        == failed["calls"][0]["sent"]["questions"]["wants money?"]["instructions"]
    )


def test_a_server_that_makes_no_sense_fails_and_the_way_out_is_named(openjev, truth):
    result = openjev("smoke", truth)

    assert 1 == result.exit_code
    assert "--no-semantics leaves these checks out" in result.stderr


def test_a_server_that_never_starts_fails(openjev, truth, tmp_path):
    with lying_server(truth, lambda heard: setattr(heard, "status", 503)) as url:
        result = openjev("smoke", url, "--timeout", "0.1", "--json", tmp_path / "report.json")

    assert 1 == result.exit_code
    assert "0 passed, 1 failed, 0 skipped" == result.stdout.splitlines()[-1]
    assert json.loads((tmp_path / "report.json").read_text())["startup_seconds"] is None


def test_address_and_key_come_from_the_environment(openjev, monkeypatch):
    with live_server(api_key=("first", "second")) as server:
        monkeypatch.setenv("OPENJEV_URL", server.url + "/")
        monkeypatch.setenv("OPENJEV_API_KEY", " second , other")
        result = openjev("smoke", "--no-semantics")

    assert 0 == result.exit_code, result.output
    assert "second" not in result.output


def test_a_flag_wins_over_the_key_in_the_environment(openjev, monkeypatch):
    with live_server(api_key=("first",)) as server:
        monkeypatch.setenv("OPENJEV_API_KEY", "wrong")
        assert 0 == openjev("smoke", server.url, "--no-semantics", "--key", "first").exit_code
        assert 1 == openjev("smoke", server.url, "--no-semantics").exit_code


def test_a_wrong_address_is_told(openjev):
    result = openjev("smoke", "localhost:8000")

    assert 2 == result.exit_code
    assert "the server's URL: expected an address such as http://127.0.0.1:8000, found 'localhost:8000'" in (
        result.stderr
    )


def test_a_report_that_cannot_be_written_is_told_before_the_run(openjev, truth, tmp_path):
    result = openjev("smoke", truth, "--json", tmp_path / "missing" / "report.json")

    assert 1 == result.exit_code
    assert "No such file or directory" in result.stderr
    assert "" == result.stdout


def test_long_texts_are_cut_on_the_terminal_and_say_so():
    call = Call(
        method="POST", path="/v1/systemone", sent={"state": "x" * 5000}, body=b"y" * 5000, status=200, seconds=1
    )
    lines = verdict_lines(Verdict(name="noul", status="failed", problem="no", calls=(call,)))

    assert lines[3].endswith("... and 3013 characters more")
    assert lines[4].endswith("... and 3000 characters more")
