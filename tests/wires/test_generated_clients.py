"""Clients that generators make of the OpenAPI document, against a live server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from attrs import frozen
from live_server import live_server

from openjev_core.plugins.registry import load_registry, registry_of
from openjev_core.question import Option, QuestionType, Readout

ASK = """
import sys
from generated import Client
from generated.api.questions import evaluate
from generated.models import *

questions = {
    "n": NoulQuestion(type_="noul", instructions="Is it so?"),
    "c": ChoiceQuestion(type_="choice", criteria=ChoiceQuestionCriteria.from_dict({"a": None, "b": {"why": [1]}})),
    "s": ScoreQuestion(type_="score", criteria=["lo", "hi"], instructions=None),
    "t": TagsQuestion(type_="tags", tags=["x", "y"]),
}
asked = RequestQuestions()
asked.additional_properties = questions
state = RequestStateType1.from_dict({"document": "x"})
reply = evaluate.sync(client=Client(sys.argv[1]), body=Request(model="jev-latest", state=state, questions=asked))
answers = reply.answers.additional_properties
print(type(answers["n"]).__name__, 0 <= answers["n"].noul <= 1)
print(type(answers["c"]).__name__, sorted(answers["c"].probabilities.additional_properties))
print(type(answers["s"]).__name__, 0 <= answers["s"].score <= 1)
print(type(answers["t"]).__name__, answers["t"].fits)
wrong = Request(model="gpt-5", state="x", questions=asked)
print(evaluate.sync(client=Client(sys.argv[1]), body=wrong).error.code)
"""

TYPESCRIPT = """
import type { components } from "./api";
type Schemas = components["schemas"];
export const request: Schemas["Request"] = {
  model: "jev-latest",
  state: { document: "x" },
  questions: {
    n: { type: "noul", instructions: "Is it so?" },
    c: { type: "choice", criteria: { a: null, b: "Why", c: { k: [1] } } },
    s: { type: "score", criteria: ["lo", ["a"], { k: 1 }] },
    t: { type: "tags", tags: ["x", "y"] },
  },
};
export const chat: Schemas["Request"] = { ...request, state: [{ role: "user", content: "x" }], x_orders: "full" };
export const probability = (evaluation: Schemas["Evaluation"]): number => {
  const answer = evaluation.answers["n"];
  return answer !== undefined && answer.type === "noul" ? answer.noul : 0;
};
"""


@frozen(kw_only=True)
class Tags:
    tags: list[str]


@frozen(kw_only=True)
class TagsAnswer:
    fits: list[str]


TAGS = QuestionType(
    name="tags",
    summary="Which tags fit.",
    api=1,
    question=Tags,
    answer=TagsAnswer,
    readouts=lambda question: [Readout(text="Which?", options=[Option(key=tag, text=tag) for tag in question.tags])],
    reduce=lambda question, distributions: TagsAnswer(fits=list(question.tags)),
    examples=(Tags(tags=["a", "b"]),),
)


@pytest.fixture(scope="module")
def server():
    with live_server(registry=registry_of(*load_registry().types.values(), TAGS)) as running:
        yield running


@pytest.fixture
def document(server, tmp_path):
    path = tmp_path / "openapi.json"
    path.write_bytes(httpx.get(server.url + "/openapi.json").content)
    return path


def ran(*command: str, cwd: Path):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(
    "OPENJEV_TEST_CLIENTS" not in os.environ,
    reason="OPENJEV_TEST_CLIENTS names no Python that has openapi-python-client",
)
def test_a_python_client_asks_every_type(server, document, tmp_path):
    generator = Path(os.environ["OPENJEV_TEST_CLIENTS"]).with_name("openapi-python-client")
    said = ran(
        str(generator),
        "generate",
        "--path",
        str(document),
        "--meta",
        "none",
        "--output-path",
        "generated",
        cwd=tmp_path,
    )
    assert "will not be generated" not in said
    (tmp_path / "ask.py").write_text(ASK)
    assert [
        "NoulAnswer True",
        "ChoiceAnswer ['a', 'b']",
        "ScoreAnswer True",
        "TagsAnswer ['x', 'y']",
        "model_not_found",
    ] == ran(sys.executable, "ask.py", server.url, cwd=tmp_path).splitlines()


def test_nulls_where_a_generated_client_sends_them(server):
    asked = {"type": "noul", "instructions": "Is it so?", "criteria": None}
    body = {"model": "jev-latest", "state": "x", "questions": {"q": asked}, "x_orders": None, "x_partial": None}
    assert 200 == httpx.post(server.url + "/v1/systemone", json=body).status_code


@pytest.mark.skipif(
    "OPENJEV_TEST_TYPESCRIPT" not in os.environ or shutil.which("node") is None,
    reason="OPENJEV_TEST_TYPESCRIPT names a folder whose node_modules hold openapi-typescript and typescript",
)
def test_a_typescript_client_compiles_strictly(document, tmp_path):
    bin = Path(os.environ["OPENJEV_TEST_TYPESCRIPT"]) / "node_modules" / ".bin"
    ran(str(bin / "openapi-typescript"), str(document), "-o", "api.ts", cwd=tmp_path)
    (tmp_path / "use.ts").write_text(TYPESCRIPT)
    flags = ("--strict", "--noEmit", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes")
    ran(
        str(bin / "tsc"),
        *flags,
        "--target",
        "es2022",
        "--moduleResolution",
        "bundler",
        "--module",
        "esnext",
        "use.ts",
        cwd=tmp_path,
    )


def test_no_schema_leaves_its_items_or_fields_open(document):
    def check(node, place):
        if isinstance(node, dict):
            kind = node.get("type")
            assert kind != "array" or "items" in node, place
            assert kind != "object" or "properties" in node or "additionalProperties" in node, place
            assert node.get("default", 0) is not None, place
            for key, child in node.items():
                if key not in ("example", "examples"):
                    check(child, f"{place}/{key}")
        elif isinstance(node, list):
            for index, child in enumerate(node):
                check(child, f"{place}/{index}")

    check(json.loads(document.read_bytes())["components"]["schemas"], "")
