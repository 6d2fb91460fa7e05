"""The embedded engine with the demo model: what it answers, that it can be stopped, and that it goes away."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import subprocess
import sys
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
import pytest

from openjev_core.backends.llamacpp import embedded
from openjev_core.backends.llamacpp.embedded import start_embedded
from openjev_core.backends.llamacpp.model import open_llamacpp
from openjev_core.backends.protocol import Branch
from openjev_core.errors import BackendUnavailable, StartupError
from openjev_core.settings import Settings

pytestmark = pytest.mark.anyio

STATE = "The customer writes: I was charged twice for order 1123 and nobody answers my mails. " * 4


def branches_of(model, *questions):
    labels = tuple(model.tokenizer.encode(" A") + model.tokenizer.encode(" B") + model.tokenizer.encode(" C"))
    return [Branch(tuple(model.tokenizer.encode(f" {question}\nAnswer:")), labels) for question in questions]


async def read(model, branches, *, state=STATE, shared=0):
    async with model.backend.prefix(model.tokenizer.encode(state), key="key") as warm:
        readings, further = await warm.read(branches, shared)
        return readings, [warm.warm_up, *further]


async def test_probabilities_are_those_of_the_labels_alone(demo_model):
    branches = branches_of(demo_model, "Who should take it?", "Is it urgent?")
    readings, (warm_up,) = await read(demo_model, branches)
    prefix = len(demo_model.tokenizer.encode(STATE))
    assert (prefix, 1) == (warm_up.prompt_tokens, warm_up.output_tokens)
    for branch, reading in zip(branches, readings, strict=True):
        assert pytest.approx(1, abs=1e-6) == sum(math.exp(value) for value in reading.logprobs)
        assert (prefix + len(branch.suffix), prefix, 1) == (
            reading.prompt_tokens,
            reading.cached_tokens,
            reading.output_tokens,
        )


async def test_the_order_of_the_labels_does_not_matter(demo_model):
    (branch,) = branches_of(demo_model, "Who should take it?")
    turned = Branch(branch.suffix, branch.labels[::-1])
    (one, other), _ = await read(demo_model, [branch, turned])
    assert one.logprobs == other.logprobs[::-1]


async def test_numbers_are_the_same_whatever_was_read_before(demo_model):
    branches = branches_of(demo_model, "Who should take it?", "Who should pay?", "Is it?", "Who should take it now?")
    expected, _ = await read(demo_model, branches)
    await read(demo_model, branches, state=STATE[:200])
    again, _ = await read(demo_model, branches[::-1])
    await demo_model.backend.check()
    once_more, _ = await read(demo_model, branches[1:] + branches[:1])
    assert expected == again[::-1]
    assert expected == once_more[-1:] + once_more[:-1]


async def test_a_shared_beginning_is_read_once(demo_model):
    tags = [f"Which of the many kinds of complaint that we know of does this one belong to: {tag}?" for tag in "XYZ"]
    branches = branches_of(demo_model, *tags)
    shared = next(n for n, ids in enumerate(zip(*(b.suffix for b in branches), strict=False)) if len(set(ids)) > 1)
    readings, (warm_up, further) = await read(demo_model, branches, shared=shared)
    assert [warm_up.prompt_tokens + shared] * 3 == [reading.cached_tokens for reading in readings]
    assert (warm_up.prompt_tokens + shared, warm_up.prompt_tokens) == (further.prompt_tokens, further.cached_tokens)
    assert readings == (await read(demo_model, branches, shared=shared))[0]


async def test_255_labels_come_back(demo_model):
    labels = tuple(range(1000, 1255))
    ((reading,), _) = await read(demo_model, [Branch((260,), labels)])
    assert 255 == len(reading.logprobs)
    assert pytest.approx(1, abs=1e-5) == sum(math.exp(value) for value in reading.logprobs)


async def test_a_cancelled_evaluation_is_broken_off_in_the_server(monkeypatch):
    true = embedded._import_xllamacpp()

    def counting(params):
        params.endpoint_metrics = True
        return true.Server(params)

    shim = SimpleNamespace(CommonParams=true.CommonParams, Server=counting, __version__=true.__version__)
    monkeypatch.setattr(embedded, "_import_xllamacpp", lambda: shim)
    async with open_llamacpp(Settings()) as model:
        before = await tokens_read(model)
        task = asyncio.create_task(read(model, [], state="word " * 7000))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # Queues behind the cancelled call, so that one is over when this is.
        await read(model, [], state="word")
        assert await tokens_read(model) - before < 7000


async def tokens_read(model):
    """Prompt tokens that the server has computed."""
    _, page = await model.backend.client.http.send_within(30, "GET", "metrics")
    (line,) = [line for line in page.decode().splitlines() if line.startswith("llamacpp:prompt_tokens_total ")]
    return int(line.split()[1])


async def test_a_check_goes_through_between_the_calls_of_an_evaluation(demo_model):
    branches = branches_of(demo_model, *(f"Is it number {number}?" for number in range(6)))
    expected, _ = await read(demo_model, branches)
    async with demo_model.backend.prefix(demo_model.tokenizer.encode(STATE), key="key") as warm:
        reading = asyncio.create_task(warm.read(branches))
        for _ in range(3):
            await demo_model.backend.check()
        assert expected == (await reading)[0]


async def test_the_context_is_that_of_the_training(demo_model):
    assert 8191 == demo_model.backend.max_prompt_tokens


async def test_closing_frees_the_port_and_says_nothing(capfd):
    async with open_llamacpp(Settings(max_input_tokens=512)) as model:
        url = urlsplit(model.backend.client.url)
        assert (511, True, "HuggingFaceTB/SmolLM2-135M-Instruct") == (
            model.backend.max_prompt_tokens,
            model.demo,
            model.public_name,
        )
        assert ("<|im_start|>", "<|im_end|>") == (model.template.bos_token, model.template.eos_token)
        assert "{% for message in messages %}" in model.template.source
        # Other users of the machine can reach the port, but not use it.
        async with httpx.AsyncClient(base_url=model.backend.client.url) as stranger:
            assert 401 == (await stranger.post("/completion", json={"prompt": [1]})).status_code
        backend = model.backend
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect((url.hostname, url.port))
    with pytest.raises(BackendUnavailable):
        await backend.client.complete((1,), slot=0, reuse=True)
    assert ("", "") == capfd.readouterr()


async def test_a_cancelled_start_leaves_no_engine_behind(demo_engine, monkeypatch):
    closed = []
    monkeypatch.setattr(
        "openjev_core.backends.llamacpp.embedded.EmbeddedServer.close", lambda server: _note(closed, server)
    )
    task = asyncio.create_task(start_embedded(demo_engine.file.path, context=256, threads=1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 1 == len(closed)


START_AND_END = """
import os, sys
from pathlib import Path
from openjev_core.backends.llamacpp import embedded

if hasattr(os, "sched_setaffinity"):
    # On one core the server's own threads come late.
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
for _ in range(4):
    embedded._start(Path(sys.argv[1]), 256, 1)
"""


def test_a_server_may_end_as_soon_as_it_has_started(demo_engine):
    """One that is destroyed before it works on calls waits for ever, so this is tried in another process."""
    command = [sys.executable, "-c", START_AND_END, str(demo_engine.file.path)]
    assert 0 == subprocess.run(command, timeout=60, check=False).returncode


async def _note(closed, server):
    closed.append(server)


async def test_a_missing_engine_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(StartupError, match=r"install 'openjev\[embedded\]'.*--connect URL"):
        async with open_llamacpp(Settings()):
            pytest.fail("it opened")


async def test_an_engine_that_does_not_load_names_what_is_missing(monkeypatch):
    def refuse(name):
        raise ImportError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr("importlib.import_module", refuse)
    with pytest.raises(StartupError, match=r"libgomp.so.1.*install libgomp1"):
        await start_embedded("model.gguf", context=256, threads=1)


class TestThreadsWait:
    """The environment in which libgomp is loaded."""

    def test_asleep_after_a_short_spin(self, monkeypatch):
        for name in embedded.WAITING:
            monkeypatch.delenv(name, raising=False)
        with embedded._environment(embedded.WAITING):
            assert ("passive", "1000") == (os.environ["OMP_WAIT_POLICY"], os.environ["GOMP_SPINCOUNT"])
        assert set() == set(embedded.WAITING) & set(os.environ)

    @pytest.mark.parametrize("name", embedded.WAITING)
    def test_as_the_user_says(self, monkeypatch, name):
        for other in embedded.WAITING:
            monkeypatch.delenv(other, raising=False)
        monkeypatch.setenv(name, "users")
        with embedded._environment(embedded.WAITING):
            assert {name: "users"} == {key: os.environ[key] for key in embedded.WAITING if key in os.environ}
        assert "users" == os.environ[name]
