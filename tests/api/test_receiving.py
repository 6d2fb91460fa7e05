"""Requests on their way in: what they may take together, and what is said when there are too many."""

from __future__ import annotations

import gzip
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from live_server import live_server
from raw_http import connection, exchange, post, read_reply, request
from until import eventually

from openjev_core.api.body import REQUEST_BYTES

SERVE_TOY = Path(__file__).parents[1] / "doubles" / "serve_toy.py"
LIMIT = 100_000
PART = 30_000
DECISION = b'{"model": "jev-1", "input": "A state.", "questions": [{"type": "predicate", "instructions": "It is so."}]}'


@pytest.fixture
def small():
    """A server that has room for two requests with the largest bodies."""
    with live_server(max_concurrent_requests=1, max_body_bytes=LIMIT) as running:
        yield running


def taken(server):
    return server.app.state.room.taken


def assert_displaced(sock):
    reply = read_reply(sock)
    assert (503, "overloaded", "1") == (
        reply.status,
        reply.json["detail"]["error_type"],
        reply.headers["retry-after"],
    )


def test_bodies_take_room_until_they_are_whole_and_the_longest_on_its_way_gives_way(small):
    assert 2 * (REQUEST_BYTES + LIMIT) == small.app.state.room.most
    with ExitStack() as stack:
        first, *others = (stack.enter_context(connection(small)) for _ in range(3))
        for count, sock in enumerate((first, *others), start=1):
            sock.sendall(post(b"a" * PART, length=LIMIT))
            assert eventually(lambda count=count: taken(small) == count * (REQUEST_BYTES + PART))
        assert 200 == exchange(small, post(request())).status
        assert_displaced(first)
        assert eventually(lambda: taken(small) == 2 * (REQUEST_BYTES + PART))
    assert eventually(lambda: taken(small) == 0)
    assert 200 == exchange(small, post(request())).status
    assert 0 == taken(small)


def test_a_body_that_takes_the_last_room_itself_has_another_give_way(small):
    with connection(small) as one:
        one.sendall(post(b"a" * 90_000, length=LIMIT))
        assert eventually(lambda: taken(small) == REQUEST_BYTES + 90_000)
        with connection(small) as two:
            two.sendall(post(b"a" * 20_000, length=LIMIT))
            assert eventually(lambda: taken(small) == 2 * REQUEST_BYTES + 110_000)
            assert 200 == exchange(small, post(request() + b" " * 50_000)).status
            assert_displaced(one)
            assert eventually(lambda: taken(small) == REQUEST_BYTES + 20_000)


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions"])
def test_bodies_that_never_end_keep_nobody_out(small, path):
    whole = request() if path == "/v1/systemone" else DECISION
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connection(small)).sendall(post(b"{", path=path, length=LIMIT))
        statuses = [exchange(small, post(whole, path=path)).status for _ in range(10)]
    assert [200] * 10 == statuses
    assert taken(small) <= small.app.state.room.most


def test_a_compressed_body_takes_what_has_arrived_of_it(small):
    packed = gzip.compress(b" " * 90_000)
    with connection(small) as one:
        one.sendall(post(packed[:-1], length=len(packed), headers=["Content-Encoding: gzip"]))
        assert eventually(lambda: taken(small) == REQUEST_BYTES + len(packed) - 1)


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are limited as Linux does it")
def test_descriptors_that_are_used_up_are_reported():
    command = [sys.executable, str(SERVE_TOY), "0", "port=0", "keep_alive=600"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        ExitStack() as stack,
    ):
        stack.callback(process.kill)
        host, port = process.stdout.readline().strip().removeprefix("http://").split(":")
        psutil.Process(process.pid).rlimit(psutil.RLIMIT_NOFILE, (100, 100))
        for _ in range(100):
            stack.enter_context(socket.create_connection((host, int(port))))
        assert "no file descriptor is left" in process.stderr.readline()
