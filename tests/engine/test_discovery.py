"""``--connect``: which server answers at an address is found out, and what is none is refused with what was tried."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import pytest
from attrs import evolve
from live_server import live_server

from openjev_core import Settings, StartupError, open_engine
from openjev_core import address as address_module
from openjev_core.address import Address
from openjev_core.engine import discovery
from openjev_core.engine.discovery import recognised
from openjev_core.plugins.registry import load_registry

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def answering(pages, seen=None):
    """A server that answers with these pages, each ``(status, body)``, and 404 otherwise; gives its URL."""

    async def answer(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split()[1]
        if seen is not None:
            seen.append(head)
        status, body = pages.get(path, (404, b"not found"))
        if body is None:
            await asyncio.Event().wait()
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        more = "Location: /props\r\n" if status == 302 else ""
        writer.write(
            f"HTTP/1.1 {status} x\r\n{more}Connection: close\r\nContent-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


ENGINES = load_registry().engines.values()


async def find(url, api_key=None):
    """The name of the engine that recognises the server at a URL, and by what."""
    async with Address(url, api_key) as address:
        engine, how = await recognised(address, ENGINES)
    return engine.name, how


CONNECTING = "llama-server, sglang, vllm, systemone, decisions"
LOADING = 503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
PROPS = 200, {"default_generation_settings": {"n_ctx": 4096}, "build_info": "b1"}


async def test_an_sglang_is_found(start_double, frontend):
    double = await start_double(frontend=frontend, model_path="org/Model")
    assert ("sglang", "GET /model_info") == await find(double.url)


async def test_a_router_is_found_by_the_pages_old_name():
    async with answering({"/get_model_info": (200, {"model_path": "org/Model"})}) as url:
        assert ("sglang", "GET /get_model_info") == await find(url)


async def test_a_llama_server_is_found(demo_engine):
    server = demo_engine.server
    assert ("llama-server", "GET /props") == await find(server.url, server.api_key)


async def test_a_llama_server_that_loads_its_model_is_found():
    async with answering(dict.fromkeys(["/model_info", "/get_model_info", "/props"], LOADING)) as url:
        assert ("llama-server", "GET /props") == await find(url)


async def test_the_key_is_sent_and_no_coding_is_accepted():
    seen = []
    async with answering({"/props": PROPS}, seen) as url:
        await find(url, "secret")
    heads = [head.lower() for head in seen]
    assert 1 == len(heads)
    assert all("authorization: bearer secret\r\n" in h and "accept-encoding: identity\r\n" in h for h in heads)


async def test_a_key_that_is_refused_is_said_so(demo_engine):
    refused = r"refuses the key: GET /props \(401\)\. OPENJEV_BACKEND_API_KEY must be the server's key"
    with pytest.raises(StartupError, match=refused):
        await find(demo_engine.server.url, "wrong")


@pytest.mark.parametrize(
    ("pages", "tried"),
    [
        ({}, "tried GET /props (404), GET /model_info (404), GET /get_model_info (404)"),
        ({"/props": (200, b"<html>")}, "GET /props (200)"),
        ({"/props": (200, [])}, "GET /props (200)"),
        ({"/props": (200, {"default_generation_settings": None})}, "GET /props (200)"),
        ({"/props": (503, {"error": "no workers"})}, "GET /props (503)"),
        ({"/model_info": (200, {"model_path": 3})}, "GET /model_info (200)"),
        ({"/model_info": (302, b"")}, "GET /model_info (302)"),
        ({"/model_info": (500, {"model_path": "org/Model"})}, "GET /model_info (500)"),
        ({"/model_info": (200, {"model_path": "x" * 100})}, "GET /model_info (200)"),
    ],
)
async def test_an_unknown_server_is_refused_with_what_was_tried(pages, tried, monkeypatch):
    monkeypatch.setattr(address_module, "MAX_PAGE", 50)
    async with answering(pages) as url:
        with pytest.raises(StartupError) as refused:
            await find(url)
    said = str(refused.value)
    assert said.startswith(
        f"connect: expected one of {CONNECTING} at {url}, found a server that is none of them, or not"
    )
    assert tried in said
    assert said.endswith("Give the address of one with --connect, or say what it is with --engine")


async def test_another_openjev_is_a_service():
    with live_server() as server:
        assert ("systemone", "GET /v1/limits") == await find(server.url, None)


@pytest.mark.parametrize("name", ["systemone", "decisions"])
async def test_a_service_is_found_by_its_route(name):
    async with answering({f"/v1/{name}": (405, {})}) as url:
        assert (name, f"GET /v1/{name} (405)") == await find(url)


async def test_a_server_of_both_wires_is_asked_by_the_one_that_says_more():
    async with answering({"/v1/systemone": (405, {}), "/v1/decisions": (405, {})}) as url:
        assert ("systemone", "GET /v1/systemone (405)") == await find(url)


async def test_an_engine_that_cannot_say_harms_no_other(monkeypatch):
    monkeypatch.setattr(discovery, "RECOGNISE_TIMEOUT", 0.2)

    async def hangs(address):
        await asyncio.Event().wait()

    async def raises(address):
        raise ZeroDivisionError("no page")

    sglang = next(engine for engine in ENGINES if engine.name == "sglang")
    bad = [evolve(sglang, name=recognise.__name__, recognise=recognise) for recognise in (hangs, raises)]
    async with answering({"/model_info": (200, {"model_path": "m"})}) as url, Address(url, None) as address:
        engine, how = await recognised(address, [*bad, sglang])
        assert ("sglang", "GET /model_info") == (engine.name, how)
    async with answering({}) as url, Address(url, None) as address:
        with pytest.raises(StartupError) as refused:
            await recognised(address, [*bad, sglang])
    tried = (
        "tried hangs (recognise did not end within 0.2 s), raises (recognise raised ZeroDivisionError: no page), GET /"
    )
    assert tried in str(refused.value)


async def test_a_page_that_never_comes_is_given_up(monkeypatch):
    monkeypatch.setattr(address_module, "PAGE_TIMEOUT", 0.5)
    async with answering({"/props": (200, None), "/get_model_info": (200, {"model_path": "m"})}) as url:
        assert ("sglang", "GET /get_model_info") == await find(url)
    async with answering(dict.fromkeys(["/model_info", "/get_model_info", "/props"], (200, None))) as url:
        with pytest.raises(
            StartupError, match=r"tried GET /props \(ReadTimeout\), .*, GET /get_model_info \(ReadTimeout\)"
        ):
            await find(url)


async def test_a_page_that_trickles_is_given_up(monkeypatch):
    monkeypatch.setattr(address_module, "PAGE_TIMEOUT", 0.3)

    async def trickle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" ")
            await asyncio.sleep(0.05)

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    async with asyncio.timeout(20):  # each piece comes in time, so no limit on pieces ends it
        with pytest.raises(StartupError, match=r"GET /props \(ReadTimeout\), .*, GET /get_model_info \(ReadTimeout\)"):
            await find(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None)
    server.close()


async def test_an_endless_page_is_read_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(address_module, "MAX_PAGE", 100_000)
    sent = 0

    async def endless(reader, writer):
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 10_000)
            sent += 10_000
            try:
                await writer.drain()
            except ConnectionError:
                break

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    with pytest.raises(StartupError, match=r"GET /model_info \(200\)"):
        await find(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None)
    server.close()
    # What the sockets' buffers take comes on top: some megabytes of each of the three.
    assert 300_000 <= sent < 100_000_000


async def test_nothing_at_the_address_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(StartupError, match=rf"at {url}, found nothing: it cannot be reached .*--connect"):
            await find(url)


class TestOpening:
    """An engine on what was found."""

    async def test_a_llama_server_needs_no_model(self, demo_engine):
        server, lines = demo_engine.server, []
        settings = Settings(connect=server.url, backend_api_key=server.api_key)
        async with open_engine(settings, progress=lines.append) as engine:
            question = {"type": "noul", "instructions": "Is it late?"}
            evaluation = await engine.evaluate(state="It is midnight.", questions={"late": question})
        assert "llama.cpp" == engine.model.engine
        assert 0 < evaluation.answers["late"]["noul"] < 1
        assert f"connect: found llama-server at {server.url}, by GET /props" == lines[0]
        assert lines[1].startswith("control tokens: ")
        assert 2 == len(lines)

    async def test_a_llama_server_is_not_shared_by_workers(self, demo_engine):
        settings = Settings(connect=demo_engine.server.url, backend_api_key=demo_engine.server.api_key, workers=2)
        with pytest.raises(StartupError, match="OPENJEV_WORKERS: expected 1 with a llama-server, found 2"):
            async with open_engine(settings):
                pass
