"""One call to SGLang: what each of its ways to fail becomes, and what facts are taken from its pages."""

from __future__ import annotations

import orjson
import pytest

from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.backends.sglang.connection import Answer, ConnectionClosed
from openjev_core.backends.sglang.facts import ServerFacts, read_facts
from openjev_core.errors import BackendError, BackendUnavailable, DeadlineExceeded

pytestmark = pytest.mark.anyio


class Answers:
    """Connections that always give the same answer, or one by the path, or raise."""

    def __init__(self, answer):
        self.answer = answer
        self.sent = []

    async def exchange(self, request, seconds):
        self.sent.append((request, seconds))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(request.split(b" ")[1].decode()) if callable(self.answer) else self.answer


def client_for(answer, **more):
    return SGLangClient("http://sglang.test:30000/base", connections=Answers(answer), **more)


async def generate(answer):
    return await client_for(answer).generate(b"{}", routing_key="state", seconds=5)


HEADERS = (
    b"Host: sglang.test:30000\r\nContent-Type: application/json\r\nAccept-Encoding: identity\r\nUser-Agent: openjev\r\n"
)


async def test_what_a_call_sends():
    client = client_for(Answer(200, b"answer"), api_key="key")
    assert b"answer" == await client.generate(b'{"a":1}', routing_key="state", seconds=5)
    assert [
        (
            b"POST /base/generate HTTP/1.1\r\n%bAuthorization: Bearer key\r\nX-SMG-Routing-Key: state\r\n"
            b'Content-Length: 7\r\n\r\n{"a":1}' % HEADERS,
            5,
        )
    ] == client.connections.sent


async def test_what_other_calls_send():
    client = client_for(Answer(200, b"{}"))
    await client.abort("a-rid", seconds=1)
    await client.info("/server_info", seconds=2)
    assert await client.health(seconds=3)
    assert [
        (b'POST /base/abort_request HTTP/1.1\r\n%bContent-Length: 15\r\n\r\n{"rid":"a-rid"}' % HEADERS, 1),
        (b"GET /base/server_info HTTP/1.1\r\n%bContent-Length: 0\r\n\r\n" % HEADERS, 2),
        (b"GET /base/health HTTP/1.1\r\n%bContent-Length: 0\r\n\r\n" % HEADERS, 3),
    ] == client.connections.sent


@pytest.mark.parametrize(
    ("url", "first", "host"),
    [
        ("http://127.0.0.1:30000", b"POST /generate HTTP/1.1", b"Host: 127.0.0.1:30000"),
        ("https://sglang.test", b"POST /generate HTTP/1.1", b"Host: sglang.test"),
        ("http://[::1]:30000", b"POST /generate HTTP/1.1", b"Host: [::1]:30000"),
        ("http://fa\u00df.de/a b", b"POST /a%20b/generate HTTP/1.1", b"Host: xn--fa-hia.de"),
    ],
)
async def test_addresses_are_written_as_http_wants_them(url, first, host):
    assert [first, host] == SGLangClient(url).head("POST", "/generate").split(b"\r\n")[:2]


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
        await generate(Answer(status, content))
    assert type(caught.value) is error


async def test_a_long_error_page_is_cut_to_a_line():
    with pytest.raises(BackendError) as caught:
        await generate(Answer(500, b"<html>\n" * 10_000))
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "failure", [ConnectionClosed("closed"), BackendUnavailable("broke off"), DeadlineExceeded("within 5 s")]
)
async def test_a_failed_exchange_is_passed_on(failure):
    client = client_for(failure)
    with pytest.raises(BackendError) as caught:
        await client.generate(b"{}", routing_key="", seconds=5)
    assert failure is caught.value
    assert 1 == len(client.connections.sent)


async def test_only_the_models_own_answers_prove_that_it_lives():
    client = client_for(lambda path: Answer(200 if path.endswith("generate") else 404, b""))
    await client.abort("rid", seconds=1)
    await client.info("/server_info", seconds=1)
    assert client.answered_at == 0.0
    await client.generate(b"{}", routing_key="", seconds=1)
    assert client.answered_at > 0.0


async def facts_from(pages):
    def answer(path):
        page = pages.get(path.removeprefix("/base"))
        return Answer(404, b"") if page is None else Answer(200, orjson.dumps(page))

    return await read_facts(client_for(answer))


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
