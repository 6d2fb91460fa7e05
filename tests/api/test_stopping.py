"""Stopping a server process: it takes no more, finishes what runs, and exits with 0."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from raw_http import read_reply, request

from openjev_core.api.serving.server import server_config
from openjev_core.errors import SettingsError
from openjev_core.settings import Settings

DOUBLES = Path(__file__).parents[1] / "doubles"
REQUEST = json.loads(request())


@contextmanager
def process(seconds, **settings):
    flags = [f"{name}={value}" for name, value in {"port": 0, **settings}.items()]
    command = [sys.executable, str(DOUBLES / "serve_toy.py"), str(seconds), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running, running.stdout.readline().strip()
        finally:
            if running.poll() is None:
                running.kill()


def address(url):
    host, port = url.split("://")[1].split(":")
    return host, int(port)


def evaluating(url, pool):
    """A request that is being evaluated."""
    future = pool.submit(httpx.post, url + "/v1/systemone", json=REQUEST, timeout=30)
    while "openjev_evaluations_in_flight 1.0" not in httpx.get(url + "/metrics").text:
        time.sleep(0.02)
    return future


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_stops_at_once(number):
    with process(0) as (running, url):
        assert 200 == httpx.get(url + "/health/live").status_code
        with socket.create_connection(address(url)) as idle:
            running.send_signal(number)
            assert 0 == running.wait(5)
            assert b"" == idle.recv(1)
        assert "Traceback" not in running.stderr.read()


def test_an_evaluation_in_progress_is_finished():
    with process(1.0) as (running, url), ThreadPoolExecutor(1) as pool:
        answer = evaluating(url, pool)
        running.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        with pytest.raises(httpx.ConnectError):
            httpx.get(url + "/health/live")
        assert 200 == answer.result().status_code
        assert 0 == running.wait(5)
        assert "Traceback" not in running.stderr.read()


def test_the_server_itself_leaves_evaluations_the_grace_period():
    """hypercorn cancels after 3 s by default, with an empty 500."""
    assert server_config(Settings(grace_period=60.0)).graceful_timeout > 60.0


def test_after_the_grace_period_an_evaluation_is_cut_short_and_its_client_told():
    with process(60.0, grace_period=0.3) as (running, url), ThreadPoolExecutor(1) as pool:
        answer = evaluating(url, pool)
        running.send_signal(signal.SIGTERM)
        reply = answer.result()
        assert 503 == reply.status_code
        assert "stopping" == reply.json()["detail"]["error_type"]
        assert "retry-after" in reply.headers
        assert 0 == running.wait(5)
        assert "Traceback" not in running.stderr.read()


def test_a_client_that_is_still_sending_is_told_too():
    with process(0, grace_period=0.3) as (running, url):
        with socket.create_connection(address(url), timeout=10) as slow:
            slow.sendall(b"POST /v1/systemone HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            time.sleep(0.2)
            running.send_signal(signal.SIGTERM)
            reply = read_reply(slow)
            assert (503, "stopping") == (reply.status, reply.json["detail"]["error_type"])
            assert 0 == running.wait(10)
        assert "Traceback" not in running.stderr.read()


def test_an_idle_client_over_tls_does_not_hold_the_stop(certificates):
    files, context = certificates
    with process(0, grace_period=60.0, **files) as (running, url):
        with socket.create_connection(address(url)) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1"):
            running.send_signal(signal.SIGTERM)
            assert 0 == running.wait(20)
        assert "Traceback" not in running.stderr.read()


@pytest.mark.parametrize("content", ["", "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"])
def test_a_certificate_that_is_none_is_told_before_anything_listens(certificates, tmp_path, content):
    files, _ = certificates
    broken = tmp_path / "broken.pem"
    broken.write_text(content)
    with pytest.raises(SettingsError, match=r"OPENJEV_CERTFILE and OPENJEV_KEYFILE: expected .* found .*broken\.pem"):
        server_config(Settings(certfile=str(broken), keyfile=files["keyfile"]))


def test_a_taken_port_is_told_before_anything_is_loaded():
    with process(0) as (_, url), process(0, port=address(url)[1]) as (second, nothing):
        assert "" == nothing
        assert 0 != second.wait(10)
        assert "cannot listen on 127.0.0.1" in second.stderr.read()
