"""One call to SGLang: what each of its ways to fail becomes, and what facts are taken from its pages."""

from __future__ import annotations

import asyncio

import httpx
import orjson
import pytest

from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.backends.sglang.facts import ServerFacts, read_facts
from openjev_core.errors import BackendError, BackendUnavailable, DeadlineExceeded

pytestmark = pytest.mark.anyio


def client_for(handler, **more):
    return SGLangClient("http://sglang.test/base", transport=httpx.MockTransport(handler), **more)


async def generate(handler, **more):
    return await client_for(handler, **more).generate(b"{}", routing_key="state", seconds=5)


async def test_what_is_sent():
    sent = []

    def handler(request):
        sent.append(request)
        return httpx.Response(200, content=b"answer")

    assert await generate(handler, api_key="key") == b"answer"
    (request,) = sent
    assert str(request.url) == "http://sglang.test/base/generate"
    assert request.headers["authorization"] == "Bearer key"
    assert request.headers["x-smg-routing-key"] == "state"
    assert request.headers["content-type"] == "application/json"
    assert request.content == b"{}"


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        (400, {"error": {"message": "too long"}}, BackendError, "SGLang answered 400: too long"),
        (400, {"object": "error", "message": "two\nlines"}, BackendError, "SGLang answered 400: two lines"),
        (401, {"error": "Unauthorized"}, BackendError, "OPENJEV_BACKEND_API_KEY"),
        (404, None, BackendError, "SGLang answered 404"),
        (429, {"error": "slow down"}, BackendUnavailable, "429: slow down"),
        (500, None, BackendError, "SGLang answered 500"),
        (502, None, BackendUnavailable, "502"),
        (503, {"message": "The request queue is full."}, BackendUnavailable, "503: The request queue is full"),
        (504, None, BackendUnavailable, "504"),
    ],
)
async def test_a_status_becomes_the_error_that_fits_a_client(status, body, error, said):
    content = b"" if body is None else orjson.dumps(body)
    with pytest.raises(BackendError, match=said) as caught:
        await generate(lambda _: httpx.Response(status, content=content))
    assert type(caught.value) is error


async def test_a_long_error_page_is_cut_to_a_line():
    with pytest.raises(BackendError) as caught:
        await generate(lambda _: httpx.Response(500, content=b"<html>\n" * 10_000))
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def failing(error):
    def handler(request):
        raise error

    return handler


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (httpx.ConnectError("refused"), "cannot be reached: refused"),
        (httpx.ConnectTimeout("no route"), "cannot be reached"),
        (httpx.ReadError("reset"), "broke off"),
        (httpx.RemoteProtocolError("no response"), "closed the connection"),
        (OSError("no file descriptors"), "broke off"),
    ],
)
async def test_a_failed_exchange_is_an_unavailable_backend(failure, said):
    with pytest.raises(BackendUnavailable, match=said) as caught:
        await generate(failing(failure))
    assert caught.value.status == 503


async def test_no_answer_in_time_is_a_deadline():
    async def handler(_):
        await asyncio.sleep(60)

    client = client_for(handler)
    with pytest.raises(DeadlineExceeded, match=r"0\.01 s"):
        await client.generate(b"{}", routing_key="", seconds=0.01)


async def test_only_the_models_own_answers_prove_that_it_lives():
    client = client_for(lambda request: httpx.Response(200 if request.url.path.endswith("generate") else 404))
    await client.abort("rid", seconds=1)
    await client.info("/server_info", seconds=1)
    assert client.answered_at == 0.0
    await client.generate(b"{}", routing_key="", seconds=1)
    assert client.answered_at > 0.0


async def facts_from(pages):
    def handler(request):
        page = pages.get(request.url.path.removeprefix("/base"))
        return httpx.Response(404) if page is None else httpx.Response(200, content=orjson.dumps(page))

    return await read_facts(client_for(handler))


async def test_facts_of_the_python_front_end():
    server = {"context_length": 2048, "max_req_input_len": 2042, "page_size": 64, "disable_radix_cache": True}
    model = {"model_path": "/model", "tokenizer_path": "/tokenizer", "served_model_name": "name"}
    assert await facts_from({"/server_info": server | {"version": "0.5.19"}, "/model_info": model}) == ServerFacts(
        frontend="python",
        version="0.5.19",
        model_path="/model",
        tokenizer_path="/tokenizer",
        served_model_name="name",
        max_prompt_tokens=2041,
        page_size=64,
        radix_cache=False,
    )


async def test_facts_of_the_rust_front_end():
    facts = await facts_from({"/server_info": {"max_context_length": 4096, "max_total_num_tokens": 3000}})
    assert facts == ServerFacts(frontend="rust", max_prompt_tokens=2999)


async def test_facts_of_a_router():
    facts = await facts_from({"/get_model_info": {"model_path": "/model", "served_model_name": "name"}})
    assert facts == ServerFacts(model_path="/model", served_model_name="name")


@pytest.mark.parametrize("page", [[], "text", 5, {"context_length": "2048", "page_size": True}])
async def test_pages_of_another_shape_report_nothing(page):
    facts = await facts_from({"/server_info": page})
    assert (facts.max_prompt_tokens, facts.page_size, facts.radix_cache) == (None, None, None)
