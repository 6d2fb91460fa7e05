"""``openjev serve`` and ``ask`` as processes, on the double of SGLang."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess

import httpx
import pytest
from openjev_process import OPENJEV, clean_environment, serving
from tiny_tokenizer import write_tiny_tokenizer

pytestmark = pytest.mark.anyio

REQUEST = {
    "model": "jev-latest",
    "state": "I was charged twice.",
    "questions": {"team": {"type": "choice", "criteria": {"billing": "Payments", "sales": None}}},
}


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    return write_tiny_tokenizer(tmp_path_factory.mktemp("models") / "tiny")


async def test_checked_announced_answered_and_stopped(start_double, tokenizer):
    sglang = await start_double(model_path=str(tokenizer))
    with serving("--connect", sglang.url, "--model", tokenizer, "--max-input-tokens", "2042") as child:
        url = await asyncio.to_thread(child.wait_until_it_listens)
        async with httpx.AsyncClient() as client:
            answer = (await client.post(f"{url}/v1/systemone", json=REQUEST)).json()
        assert "smollm2" == answer["model"]
        assert {"billing", "sales"} == set(answer["answers"]["team"]["probabilities"])
        assert 0 == await asyncio.to_thread(child.stop)
    for line in (f"reachable: SGLang 0.5.19, rust front end, at {sglang.url}", "model smollm2 on sglang", "keys: none"):
        assert line in child.log
    assert "Traceback" not in child.log
    assert "no key is set" not in child.log


async def test_for_all_the_world_in_json_and_stopped_by_ctrl_c(start_double, tokenizer):
    sglang = await start_double(model_path=str(tokenizer))
    flags = ("--connect", sglang.url, "--model", tokenizer, "--host", "0.0.0.0", "--log-format", "json")
    with serving(*flags, OPENJEV_MAX_INPUT_TOKENS="2042") as child:
        await asyncio.to_thread(child.wait_until_it_listens)
        assert 0 == await asyncio.to_thread(child.stop, signal.SIGINT)
    messages = [json.loads(line)["message"] for line in child.lines]
    assert any(message.startswith("reachable: ") for message in messages)
    assert any("no key is set (OPENJEV_API_KEY)" in message for message in messages)


async def test_a_failed_check_ends_the_start_in_one_line(start_double, tokenizer):
    sglang = await start_double(model_path=str(tokenizer))
    with serving("--connect", sglang.url, "--model", tokenizer, OPENJEV_API_KEY="hidden-key") as child:
        assert 1 == await asyncio.to_thread(child.ended)
    assert child.lines[-1].startswith("openjev: longest prompt: expected 32767 tokens at least")
    assert "Traceback" not in child.log
    assert "hidden-key" not in child.log


async def test_a_taken_port_is_told_before_anything_is_loaded():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serving("--port", port) as child:
            assert 1 == await asyncio.to_thread(child.ended)
    assert f"openjev: cannot listen on 127.0.0.1 port {port}: Address already in use" in child.lines[-1]
    assert 1 == len(child.lines)


async def test_ask_takes_the_same_connection(start_double, tokenizer):
    sglang = await start_double(model_path=str(tokenizer))
    result = await asyncio.to_thread(
        subprocess.run,
        [OPENJEV, "ask", "-", "--json", "--connect", sglang.url, "--model", tokenizer, "--max-input-tokens", "2042"],
        input=json.dumps(REQUEST),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=clean_environment(),
    )
    assert (0, "smollm2") == (result.returncode, json.loads(result.stdout or "{}").get("model")), result.stderr


async def until(condition):
    """Wait until something is so."""
    for _ in range(1500):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come to that")


async def test_ctrl_c_while_waiting_is_quiet_and_ends_the_work(start_double, tokenizer):
    sglang = await start_double(model_path=str(tokenizer), latency=60)
    child = await asyncio.create_subprocess_exec(
        *(OPENJEV, "ask", "-", "--connect", sglang.url, "--model", tokenizer, "--skip-checks"),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )
    child.stdin.write(json.dumps(REQUEST).encode())
    child.stdin.close()
    await until(lambda: sglang.jobs)
    child.send_signal(signal.SIGINT)
    _, errors = await child.communicate()
    assert 130 == child.returncode
    assert b"Traceback" not in errors
    await until(lambda: not sglang.jobs)
