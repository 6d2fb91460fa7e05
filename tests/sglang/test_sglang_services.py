"""Every type on a real SGLang, and on its own /v1/systemone, which is a service that decides by itself."""

from __future__ import annotations

import json

import httpx
import pytest
from document_blocks import ROOT
from example_types import every_question, every_type

from openjev_core import BackendError, Settings, open_engine

pytestmark = [pytest.mark.anyio, pytest.mark.sglang]

NOISE = 1e-3
"""How far two reads of one prompt may differ: batches of different sizes add up in different orders."""
REQUEST = json.loads((ROOT / "examples" / "request.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def service(real_sglang):
    """A client of the server."""
    headers = {} if real_sglang.api_key is None else {"authorization": f"Bearer {real_sglang.api_key}"}
    with httpx.Client(base_url=real_sglang.url, headers=headers, timeout=120) as client:
        yield client


def opened(service, engine="systemone", **settings):
    if engine == "systemone" and service.get("/v1/systemone").status_code == 404:
        pytest.skip("this SGLang has no /v1/systemone: the Python front end of 0.5.23 has")
    key = service.headers.get("authorization", "Bearer ").removeprefix("Bearer ") or None
    asking = Settings(connect=str(service.base_url), engine=engine, backend_api_key=key, **settings)
    return open_engine(asking, registry=every_type())


async def test_plain_questions_are_answered_as_a_plain_call_answers_them(service):
    asking = opened(service)
    body = {"model": "jev-latest", "state": REQUEST["state"], "questions": REQUEST["questions"]}
    expected = service.post("/v1/systemone", json=body).raise_for_status().json()
    async with asking as engine:
        found = await engine.evaluate(state=REQUEST["state"], questions=REQUEST["questions"])
    assert expected["model"] == found.model
    for name, answer in expected["answers"].items():
        other = found.answers[name]
        assert answer["x_label_mass"] == pytest.approx(other["x_label_mass"], abs=NOISE)
        if answer["type"] == "noul":
            assert answer["noul"] == pytest.approx(other["noul"], abs=NOISE)
        else:
            assert answer["probabilities"] == pytest.approx(other["probabilities"], abs=NOISE)
    usage = expected["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (found.usage.input_tokens, found.usage.output_tokens)


@pytest.mark.parametrize("engine", ["systemone", "sglang"])
@pytest.mark.parametrize("orders", [1, 2])
@pytest.mark.parametrize("prior", ["off", "contentless"])
async def test_every_type_is_answered(service, engine, orders, prior):
    questions = every_question()
    async with opened(service, engine, orders=orders, prior=prior, max_input_tokens=2042) as opened_engine:
        found = await opened_engine.evaluate(state=REQUEST["state"], questions=questions)
    assert list(questions) == list(found.answers)
    assert not [name for name, answer in found.answers.items() if "x_error" in answer]
    assert all(0 <= answer["x_label_mass"] <= 1 for answer in found.answers.values())


async def test_what_it_refuses_is_passed_on(service):
    async with opened(service) as engine:
        with pytest.raises(BackendError, match="answered 4") as refused:
            await engine.evaluate(state="word " * 4000, questions=REQUEST["questions"])
    assert 502 == refused.value.status
