"""What calls to SGLang send, what its answers mean, and what its pages say."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import orjson
import pytest
from scripted_server import Script, answer

from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.backends.sglang.wire import SGLangFacts
from openjev_core.errors import BackendError, BackendUnavailable

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def serving(handle, *, path="", tls=None, **options):
    """A client of a server on a port of its own."""
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    async with client_of(f"{'https' if tls else 'http'}://127.0.0.1:{port}{path}", **options) as client:
        yield client
    server.close()


@asynccontextmanager
async def client_of(url, **options):
    client = SGLangClient(url, **options)
    client.aborts.supported = False  # a call of its own would take an answer of the script
    try:
        yield client
    finally:
        await client.aclose()


async def post(client, body=b"{}"):
    return await client.generate(body, rids=["a-rid"], routing_key="state")


def head_of(method, path, more=""):
    lines = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Type: application/json\r\n"
    return f"{lines}Accept-Encoding: identity\r\nUser-Agent: openjev\r\n{more}\r\n"


async def test_what_calls_send():
    script = Script(*[[OK]] * 6)
    async with serving(script, path="/a b", api_key="key") as client:
        port = client.url.split(":")[2].partition("/")[0]
        assert b"ok" == await post(client, b'{"a":1}')
        assert 200 == await client.abort("a-rid", seconds=9)
        assert await client.health(seconds=9)
        assert await client.facts() == SGLangFacts()
    key = "Authorization: Bearer key\r\n"
    assert [
        head_of("POST", "/a%20b/generate", f"{key}X-SMG-Routing-Key: state\r\nContent-Length: 7\r\n") + '{"a":1}',
        head_of("POST", "/a%20b/abort_request", f"{key}Content-Length: 15\r\n") + '{"rid":"a-rid"}',
        *(head_of("GET", f"/a%20b/{page}", key) for page in ("health", "server_info", "model_info", "get_model_info")),
    ] == [sent.decode().replace(f":{port}\r\n", ":PORT\r\n") for sent in script.received]


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        (400, {"error": {"message": "too long"}}, BackendError, "^SGLang answered 400: too long$"),
        (400, {"object": "error", "message": "two\nlines"}, BackendError, "^SGLang answered 400: two lines$"),
        (401, {"error": "Unauthorized"}, BackendError, "OPENJEV_BACKEND_API_KEY"),
        (404, None, BackendError, "^SGLang answered 404: no reason given$"),
        (429, {"error": "slow down"}, BackendUnavailable, "429: slow down"),
        (500, None, BackendError, "^SGLang answered 500"),
        (502, None, BackendUnavailable, "502"),
        (503, {"message": "The request queue is full."}, BackendUnavailable, "503: The request queue is full"),
        (504, None, BackendUnavailable, "504"),
    ],
)
async def test_a_status_becomes_the_error_that_fits_a_client(status, body, error, said):
    content = b"" if body is None else orjson.dumps(body)
    async with serving(Script([answer(status, content)])) as client:
        with pytest.raises(BackendError, match=said) as caught:
            await post(client)
    assert type(caught.value) is error


async def test_a_long_error_page_is_cut_to_a_line():
    async with serving(Script([answer(500, b"<html>\n" * 10_000)])) as client:
        with pytest.raises(BackendError) as caught:
            await post(client)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


async def test_only_the_models_own_answers_prove_that_it_lives():
    async with serving(Script([OK], [OK], [OK])) as client:
        await client.abort("rid", seconds=1)
        await client.health(seconds=1)
        assert client.answered_at == 0.0
        await post(client)
        assert client.answered_at > 0.0


class Pages(Script):
    """A server that answers by path."""

    def answer(self, head):
        (pages,) = self.answers
        page = pages.get(head.split(b" ")[1].decode())
        return [answer(404, b"") if page is None else answer(200, orjson.dumps(page))]


async def facts_from(pages):
    async with serving(Pages(pages)) as client:
        return await client.facts()


async def test_facts_of_the_python_front_end():
    server = {"context_length": 2048, "max_req_input_len": 2042, "page_size": 64, "disable_radix_cache": True}
    model = {"model_path": "/model", "tokenizer_path": "/tokenizer", "served_model_name": "name"}
    assert await facts_from({"/server_info": server | {"version": "0.5.19"}, "/model_info": model}) == SGLangFacts(
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
    assert facts == SGLangFacts(frontend="rust", max_prompt_tokens=2999)


async def test_facts_of_a_router():
    facts = await facts_from({"/get_model_info": {"model_path": "/model", "served_model_name": "name"}})
    assert facts == SGLangFacts(model_path="/model", served_model_name="name")


@pytest.mark.parametrize("page", [[], "text", 5, {"context_length": "2048", "page_size": True}])
async def test_pages_of_another_shape_report_nothing(page):
    facts = await facts_from({"/server_info": page})
    assert (facts.max_prompt_tokens, facts.page_size, facts.radix_cache) == (None, None, None)
