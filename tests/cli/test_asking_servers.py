"""``--url``: asked by either wire, a server gives what the model here gives."""

from __future__ import annotations

import asyncio
import json

import pytest
from live_server import live_server
from openjev_process import OPENJEV, clean_environment

CHOICE = {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "Payments", "sales": None}}
QUESTIONS = {
    "urgent": {"type": "noul", "instructions": "Is it urgent?"},
    "the team": CHOICE,
    "anger": {"type": "score", "instructions": "How angry?", "criteria": ["calm", "annoyed", "furious"]},
}
WIRES = ("", "/v1/systemone", "/v1/decisions")


def request(**changes):
    return json.dumps({"model": "jev-latest", "state": "I was charged twice.", "questions": QUESTIONS, **changes})


def told(result):
    return " ".join(result.stderr.split())


@pytest.fixture(scope="module")
def server():
    with live_server(served_model_name=("toy/Toy-1", "gpt-6-luna")) as running:
        yield running


@pytest.fixture(scope="module")
def locked():
    with live_server(api_key=("right",), max_questions=3) as running:
        yield running


@pytest.fixture
def keyed(locked, monkeypatch):
    monkeypatch.setenv("OPENJEV_API_KEY", "right")
    return locked


@pytest.fixture
def one_row(folder):
    (folder / "data.jsonl").write_text(json.dumps({"state": "x", "questions": {"q": CHOICE}}))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(table):
    """A table's lines, without the line of times below it."""
    return [line for line in table.splitlines() if " input tokens" not in line and "demo model" not in line]


@pytest.mark.parametrize("path", WIRES)
@pytest.mark.usefixtures("toy")
def test_the_table_is_that_of_the_model_here(openjev, server, path):
    here = openjev("ask", "-", "--model", "mine.gguf", input=request())
    there = openjev("ask", "-", "--url", server.url + path, input=request())
    assert (0, "") == (there.exit_code, there.stderr)
    assert rows_of(here.stdout) == rows_of(there.stdout)
    (line,) = [line for line in there.stdout.splitlines() if " input tokens" in line]
    assert line.startswith("toy/Toy-1: ")
    assert " of them reused, 4 output tokens" in line


def test_json_is_the_body_of_the_response(openjev, server):
    asked = {"model": "gpt-6-luna", "input": "Twice!", "questions": [{"type": "predicate", "instructions": "So?"}]}
    body = json.loads(openjev("ask", "-", "--url", server.url, "--json", input=json.dumps(asked)).stdout)
    assert ["model", "answers", "usage"] == list(body)
    assert ("predicate", None) == (body["answers"][0]["type"], body["answers"][0]["name"])
    body = json.loads(openjev("ask", "-", "--url", server.url, "--json", input=request()).stdout)
    assert list(QUESTIONS) == list(body["answers"])


def test_media_are_left_to_the_server(openjev, server):
    result = openjev("ask", "-", "--url", server.url, input=request(assets={"a": 1}))
    assert 2 == result.exit_code
    assert result.stderr.startswith("openjev: assets: this server reads text only")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "gpt-5"}, "unknown model 'gpt-5'"),
        ({"state": 7}, "expected a string"),
        ({"questions": {**QUESTIONS, "more": QUESTIONS["urgent"]}}, "1 to 3 questions"),
        ({"questions": {"q": {"type": "bogus"}}}, "questions.q.type: "),
        ({"questions": {"q": {**CHOICE, "criteria": ["a"]}}}, "questions.q.criteria: expected"),
    ],
)
@pytest.mark.parametrize("path", WIRES[1:])
def test_what_is_wrong_has_the_same_exit_code_on_both_wires(openjev, keyed, path, changes, words):
    result = openjev("ask", "-", "--url", keyed.url + path, input=request(**changes))
    assert 2 == result.exit_code, result.stderr
    assert words in told(result)
    assert "" == result.stdout


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        (("--temperature", "2"), "--temperature configures a model in this process; with --url the server's own holds"),
        (("--orders", "2"), "--orders configures a model in this process"),
        (("--request-timeout", "0"), "--request-timeout: expected"),
    ],
)
def test_a_flag_that_a_server_does_not_heed_is_refused(openjev, flag, words):
    result = openjev("ask", "-", "--url", "http://127.0.0.1:1", *flag, input=request())
    assert 2 == result.exit_code
    assert words in told(result)


@pytest.mark.parametrize("path", WIRES[1:])
@pytest.mark.usefixtures("one_row")
@pytest.mark.parametrize(("command", "file"), [("ask", "-"), ("batch", "data.jsonl")])
def test_a_key_that_is_missing_is_exit_code_1(openjev, locked, path, command, file):
    result = openjev(command, file, "--url", locked.url + path, input=request())
    assert 1 == result.exit_code
    assert "set OPENJEV_API_KEY to its key" in told(result)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://127.0.0.1:1/v1/decisions"])
def test_a_server_that_is_not_there_is_exit_code_1(openjev, url):
    result = openjev("ask", "-", "--url", url, input=request())
    assert 1 == result.exit_code
    assert result.stderr.splitlines()[-1].startswith("openjev: http://127.0.0.1:1 did not answer after 3 attempts: ")


@pytest.mark.parametrize("flags", [(), ("--model", "gpt-6-luna")])
def test_rows_are_answered_alike_on_both_wires(openjev, server, folder, flags):
    labels = {"urgent": True, "the team": "sales", "anger": 2}
    chat = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}]
    rows = [{"state": state, "questions": QUESTIONS, "labels": labels} for state in ("One.", {"n": 2}, chat)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reports, answers = [], []
    for number, path in enumerate(WIRES):
        run = f"{number}.jsonl"
        url = server.url + path
        result = openjev("eval", "data.jsonl", "--url", url, "--orders", "full", "--run", run, "--json", "-", *flags)
        assert 0 == result.exit_code, result.stderr
        reports.append(json.loads(result.stdout))
        records = [json.loads(line) for line in (folder / run).read_text().splitlines()[1:]]
        answers.append([record["answers"] for record in sorted(records, key=lambda record: record["row"])])
    assert answers[0] == answers[1] == answers[2]
    assert [server.url, server.url, url] == [report["run"]["answered_by"] for report in reports]
    result = openjev("batch", "data.jsonl", "--url", url, "--out", "out.jsonl", *flags)
    assert 0 == result.exit_code, result.stderr
    assert 3 == len((folder / "out.jsonl").read_text().splitlines())


def test_a_row_that_a_server_of_decisions_cannot_be_asked_is_refused(openjev, server, folder):
    (folder / "data.jsonl").write_text(json.dumps({"state": "x", "questions": {"a": {"type": "tags"}}}) + "\n")
    result = openjev("batch", "data.jsonl", "--url", server.url + "/v1/decisions")
    assert 1 == result.exit_code
    words = "row 1 (1) was refused: questions.a.type: a server of /v1/decisions is asked questions of the types noul"
    assert words in told(result)


def test_agents_ask_a_server(server):
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from mcp import Client, StdioServerParameters  # noqa: PLC0415
    from mcp.client.stdio import stdio_client  # noqa: PLC0415

    async def answers(path):
        args = ["mcp", "--url", server.url + path]
        child = stdio_client(StdioServerParameters(command=str(OPENJEV), args=args, env=clean_environment()))
        async with Client(child) as client:
            asked = await client.call_tool("ask", {"state": "Twice!", "questions": QUESTIONS})
            refused = await client.call_tool("choose", {"state": "x", "criteria": ["a"]})
            assert refused.is_error
            assert "criteria: expected" in refused.content[0].text
        return asked.structured_content["answers"]

    systemone, decisions = asyncio.run(answers("")), asyncio.run(answers("/v1/decisions"))
    assert list(QUESTIONS) == list(systemone)
    assert systemone == decisions
