"""One call to SGLang: what each of its ways to fail becomes, and what facts are taken from its pages."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager

import orjson
import pytest
from attrs import frozen

from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.backends.sglang.facts import ServerFacts, read_facts
from openjev_core.errors import BackendError, BackendUnavailable, DeadlineExceeded

pytestmark = pytest.mark.anyio


@frozen
class Sent:
    """A request as the server saw it."""

    path: str
    headers: dict[str, str]
    content: bytes


def response(status, content=b""):
    return b"HTTP/1.1 %d Some Reason\r\ncontent-length: %d\r\n\r\n%b" % (status, len(content), content)


@asynccontextmanager
async def client_for(handler, **more):
    """A client of a server that answers with the bytes that ``handler`` gives; it closes after none or half of them."""

    async def serve(reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                first, *lines = head.split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
                content = await reader.readexactly(int(headers.get("content-length", 0)))
                answer = await handler(Sent(first.split()[1], headers, content))
                writer.write(answer)
                if not answer or answer.endswith(b"half"):
                    return
        except asyncio.IncompleteReadError:
            pass  # the client is through
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    client = SGLangClient(f"http://{host}:{port}/base", **more)
    try:
        yield client
    finally:
        await client.aclose()
        server.close()


def always(content):
    async def handler(_):
        return content

    return handler


async def generate(handler, **more):
    async with client_for(handler, **more) as client:
        return await client.generate(b"{}", routing_key="state", seconds=5)


async def test_what_is_sent():
    sent = []

    async def handler(request):
        sent.append(request)
        return response(200, b"answer")

    assert b"answer" == await generate(handler, api_key="key")
    (request,) = sent
    assert "/base/generate" == request.path
    assert "Bearer key" == request.headers["authorization"]
    assert "state" == request.headers["x-smg-routing-key"]
    assert "application/json" == request.headers["content-type"]
    assert "identity" == request.headers["accept-encoding"]
    assert b"{}" == request.content


async def test_one_connection_serves_one_call_after_another():
    async with client_for(always(response(200, b"answer"))) as client:
        for _ in range(3):
            await client.generate(b"{}", routing_key="", seconds=5)
        assert 1 == len({id(connection) for pool in client.session.connector._conns.values() for connection in pool})


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
        await generate(always(response(status, content)))
    assert type(caught.value) is error


async def test_a_long_error_page_is_cut_to_a_line():
    with pytest.raises(BackendError) as caught:
        await generate(always(response(500, b"<html>\n" * 10_000)))
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


async def test_a_server_that_is_not_there_is_an_unavailable_backend():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        client = SGLangClient(f"http://127.0.0.1:{sock.getsockname()[1]}")
        with pytest.raises(BackendUnavailable, match="cannot be reached") as caught:
            await client.generate(b"{}", routing_key="", seconds=5)
    await client.aclose()
    assert 503 == caught.value.status


async def test_a_server_that_closes_without_an_answer_is_asked_once_more():
    asked = []

    async def handler(request):
        asked.append(request.path)
        return b""

    with pytest.raises(BackendUnavailable, match="closed the connection without an answer"):
        await generate(handler)
    assert 2 == len(asked)


async def test_the_second_answer_counts_where_the_first_connection_was_closed():
    answers = [b"", response(200, b"answer")]

    async def handler(_):
        return answers.pop(0)

    assert b"answer" == await generate(handler)


@pytest.mark.parametrize("broken", [b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf", b"no HTTP at all\r\n\r\n"])
async def test_a_broken_answer_is_an_unavailable_backend(broken):
    with pytest.raises(BackendUnavailable, match="broke off"):
        await generate(always(broken))


async def test_no_answer_in_time_is_a_deadline():
    async def handler(_):
        await asyncio.sleep(60)

    async with client_for(handler) as client:
        with pytest.raises(DeadlineExceeded, match=r"0\.05 s"):
            await client.generate(b"{}", routing_key="", seconds=0.05)


async def test_only_the_models_own_answers_prove_that_it_lives():
    async def handler(request):
        return response(200 if request.path.endswith("generate") else 404)

    async with client_for(handler) as client:
        await client.abort("rid", seconds=1)
        await client.info("/server_info", seconds=1)
        assert 0.0 == client.answered_at
        await client.generate(b"{}", routing_key="", seconds=1)
        assert client.answered_at > 0.0


async def facts_from(pages):
    async def handler(request):
        page = pages.get(request.path.removeprefix("/base"))
        return response(404) if page is None else response(200, orjson.dumps(page))

    async with client_for(handler) as client:
        return await read_facts(client)


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
