"""What all of the hostile inputs together leave behind in a server process."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from attrs import frozen
from hostile_inputs import ACCEPTED, MALFORMED, OVERSIZED, REFUSED
from raw_http import exchange, post

DOUBLES = Path(__file__).parents[1] / "doubles"


@frozen
class Address:
    host: str
    port: int


@pytest.fixture
def process():
    command = [sys.executable, str(DOUBLES / "serve_toy.py"), "0", "port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        try:
            host, port = running.stdout.readline().strip().removeprefix("http://").split(":")
            yield running, Address(host, int(port))
        finally:
            running.kill()


def everything():
    bodies = [row[1] for row in (*REFUSED, *ACCEPTED)]
    yield from (post(body) for body in bodies)
    yield from (data for _, data in (*MALFORMED, *OVERSIZED))
    bomb = gzip.compress(bytes(50_000_000))
    yield post(bomb, headers=["Content-Encoding: gzip"])
    yield post(b'"' + b"a" * 10_000_000 + b'"')


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is measured as Linux counts it")
def test_memory_is_within_20_mb_of_before(process):
    running, server = process
    exchange(server, post(ACCEPTED[0][1]))
    # A large request as well: it is checked on threads of its own, and each takes an arena from malloc once.
    exchange(server, post(max((row[1] for row in REFUSED), key=lambda body: len(post(body)))))
    before = psutil.Process(running.pid).memory_info().rss
    statuses = {exchange(server, data).status for data in everything()}
    after = psutil.Process(running.pid).memory_info().rss
    assert {200, 400, 413, 422, 431, 501} == statuses
    assert after - before < 20_000_000
