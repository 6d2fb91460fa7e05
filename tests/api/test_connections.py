"""How many connections are open at once, and who goes when there are too many."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import ExitStack, suppress

import pytest
from live_server import live_server
from raw_http import connection, exchange, post, read_reply, request
from until import eventually

from openjev_core.api.serving import server as server_module

LIVE = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
HEADERS = ["Accept: application/json, text/event-stream", "Content-Type: application/json"]
QUESTION = {"type": "predicate", "instructions": "It is so."}
BODIES = {
    "/v1/systemone": request(),
    "/v1/decisions": json.dumps({"model": "jev-1", "input": "A state.", "questions": [QUESTION]}).encode(),
    "/mcp": json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "decide", "arguments": {"state": "A state.", "instructions": "It is so."}},
        }
    ).encode(),
}
SLOW = {
    "silent": b"",
    "head": b"GET /health/live HTTP/1.1\r\nHost: x\r\nX: ",
    "long head": b"GET /health/live HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 30_000,
    "body": post(b"{", length=1000),
    "decision": post(b"{", path="/v1/decisions", length=1000),
}


@pytest.fixture
def few(monkeypatch):
    """A server that holds ten connections."""
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 10)
    with live_server(keep_alive=60.0, body_timeout=60.0, mcp=True) as running:
        yield running


def opened(server):
    return len(server.app.state.connections.open)


def is_open(sock):
    sock.settimeout(0.01)
    try:
        return sock.recv(1, socket.MSG_PEEK) != b""
    except TimeoutError:
        return True
    except OSError:
        return False
    finally:
        sock.settimeout(10)


def crowd(server, stack, data, count=100):
    """So many clients that send something, and then no more."""
    slow = []
    for _ in range(count):
        slow.append(stack.enter_context(connection(server)))
        with suppress(OSError):
            slow[-1].sendall(data)
    return slow


@pytest.mark.parametrize("kind", SLOW)
def test_clients_that_take_their_time_keep_nobody_out(few, kind):
    with ExitStack() as stack:
        slow = crowd(few, stack, SLOW[kind])
        assert 200 == exchange(few, LIVE).status
        assert 200 == exchange(few, post(request())).status
        assert eventually(lambda: not any(map(is_open, slow[:90])))
        assert is_open(slow[-1])
        assert 10 == opened(few)


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions", "/mcp"])
def test_whose_request_is_being_worked_on_is_not_closed(few, path):
    few.backend.gate = gate = asyncio.Event()
    with ExitStack() as stack:
        busy = stack.enter_context(connection(few))
        busy.sendall(post(BODIES[path], path=path, headers=HEADERS))
        assert eventually(lambda: few.backend.running)
        crowd(few, stack, SLOW["head"])
        assert is_open(busy)
        few.loop.call_soon_threadsafe(gate.set)
        assert 200 == read_reply(busy).status
        assert eventually(lambda: not few.app.state.running.working)


def test_a_crowd_that_is_worked_on_leaves_no_place(few):
    few.backend.gate = gate = asyncio.Event()
    with ExitStack() as stack:
        busy = crowd(few, stack, post(request()), count=10)
        assert eventually(lambda: 10 == len(few.app.state.running.working))
        with connection(few) as one:
            assert eventually(lambda: not is_open(one))
        few.loop.call_soon_threadsafe(gate.set)
        assert [200] * 10 == [read_reply(one).status for one in busy]
        assert 200 == exchange(few, LIVE).status


def test_what_has_ended_takes_no_place():
    with live_server(keep_alive=0.1) as running:
        with ExitStack() as stack:
            crowd(running, stack, LIVE, count=5)
        assert eventually(lambda: 0 == opened(running))
