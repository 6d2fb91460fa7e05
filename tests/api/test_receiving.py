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
from raw_http import connection, exchange, post, request
from until import eventually

from openjev_core.api.body import REQUEST_BYTES

SERVE_TOY = Path(__file__).parents[1] / "doubles" / "serve_toy.py"
LIMIT = 100_000
PART = 30_000


@pytest.fixture
def small():
    """A server that lets the requests which it receives take 200,000 bytes: two of the largest bodies."""
    with live_server(max_concurrent_requests=1, max_body_bytes=LIMIT) as running:
        yield running


def taken(server):
    return server.app.state.room.taken


def test_bodies_take_room_until_they_are_whole_and_no_more_than_there_is(small):
    assert 2 * LIMIT == small.app.state.room.most
    with ExitStack() as stack:
        for count in (1, 2):
            stack.enter_context(connection(small)).sendall(post(b"a" * PART, length=LIMIT))
            assert eventually(lambda count=count: taken(small) == count * (REQUEST_BYTES + PART))
        refused = exchange(small, post(request()))
        assert (503, "overloaded", "1") == (
            refused.status,
            refused.json["detail"]["error_type"],
            refused.headers["retry-after"],
        )
        assert 200 == exchange(small, b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n").status
    assert eventually(lambda: taken(small) == 0)
    assert 200 == exchange(small, post(request())).status
    assert 0 == taken(small)


def test_a_body_that_takes_the_last_room_is_refused_on_its_way(small):
    with connection(small) as one:
        one.sendall(post(b"a" * 90_000, length=LIMIT))
        assert eventually(lambda: taken(small) == REQUEST_BYTES + 90_000)
        reply = exchange(small, post(request() + b" " * 50_000))
    assert (503, "overloaded") == (reply.status, reply.json["detail"]["error_type"])


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
