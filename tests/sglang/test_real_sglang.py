"""The backend on the real SGLang, both front ends."""

from __future__ import annotations

import asyncio
import json
import math
import random
from contextlib import asynccontextmanager

import httpx
import pytest
from tiny_tokenizer import tiny_tokenizer

from openjev_core.backends.protocol import Branch
from openjev_core.backends.sglang.opening import open_sglang, tokens_line
from openjev_core.errors import BackendError, OpenJevError, StartupError
from openjev_core.prompts.session import routing_key
from openjev_core.prompts.tokenizer import load_tokenizer, tokenizer_from
from openjev_core.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.sglang]

LABELS = (49, 50, 51, 52)
NOISE = 1e-3
"""How far two reads of one prompt may differ: batches of different sizes add up in different orders."""


@asynccontextmanager
async def connected(server, **settings):
    made = Settings(**settings)
    async with open_sglang(server.url, made, vocab_size=server.vocab_size, api_key=server.api_key) as backend:
        yield backend


def prompt(seed, length):
    rng = random.Random(seed)
    return tuple(rng.randrange(100, 40_000) for _ in range(length))


def branches(seed, count, length=12):
    return [Branch(prompt(f"{seed}/{number}", length), LABELS) for number in range(count)]


async def read(backend, prefix, wanted, fanout):
    backend.fanout = fanout
    async with backend.prefix(prefix, key=routing_key(prefix)) as warm:
        readings, _ = await warm.read(wanted)
    return readings


async def plain_read(server, ids):
    """The same read by a client that knows nothing of openjev, alone at the server."""
    body = {
        "input_ids": ids,
        "sampling_params": {"max_new_tokens": 1, "temperature": 0},
        "return_logprob": True,
        "token_ids_logprob": list(LABELS),
    }
    headers = {"authorization": f"Bearer {server.api_key}"}
    async with httpx.AsyncClient(timeout=60, headers=headers) as client:
        answer = (await client.post(f"{server.url}/generate", json=body)).json()
    return [value for value, _, _ in answer["meta_info"]["output_token_ids_logprobs"][0]]


def furthest(one, other):
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


async def test_batch_calls_and_a_plain_single_call_agree(real_sglang):
    prefix, wanted = prompt(1, 200), branches(1, 6)
    async with connected(real_sglang) as backend:
        batch = await read(backend, prefix, wanted, "batch")
        calls = await read(backend, prefix, wanted, "calls")
    for branch, one, other in zip(wanted, batch, calls, strict=True):
        alone = await plain_read(real_sglang, [*prefix, *branch.suffix])
        assert furthest(one.logprobs, other.logprobs) < NOISE
        assert furthest(one.logprobs, alone) < NOISE
        assert one.prompt_tokens == other.prompt_tokens == 212


async def test_text_is_as_many_tokens_there_as_here(real_sglang):
    if real_sglang.model_dir is None:
        pytest.skip("the server's tokenizer is not at hand")
    tokenizer, _ = load_tokenizer(str(real_sglang.model_dir))
    async with connected(real_sglang) as backend:
        assert (await tokens_line(backend.client, tokenizer)).endswith(" tokens on both sides")
        with pytest.raises(StartupError, match="it has another tokenizer"):
            await tokens_line(backend.client, tokenizer_from(json.loads(tiny_tokenizer().to_str())))


def is_rust_of(backend, version):
    return (backend.facts.frontend, backend.facts.version) == ("rust", version)


def tells_reuse(backend):
    """Whether the server says how much it reused, and how its cache is set: the Rust front end of 0.5.19 does not."""
    return not is_rust_of(backend, "0.5.19")


async def test_the_whole_prefix_is_reused_where_that_is_told(real_sglang):
    prefix, wanted = prompt(2, 150), branches(2, 5)
    async with connected(real_sglang) as backend:
        for fanout in ("batch", "calls"):
            cached = [reading.cached_tokens for reading in await read(backend, prefix, wanted, fanout)]
            if tells_reuse(backend):
                assert min(cached) >= 150
            else:
                assert cached == [None] * 5


async def test_a_prefix_that_was_reused_takes_no_call_where_that_is_told(real_sglang):
    prefix, wanted = prompt(8, 200), branches(8, 4)
    async with connected(real_sglang) as backend:
        first = await read(backend, prefix, wanted, "batch")
        async with backend.prefix(prefix, key=routing_key(prefix)) as warm:
            again, _ = await warm.read(wanted)
        # A warm-up that was made has a label's logprob.
        assert tells_reuse(backend) == (warm.warm_up.logprobs == ())
    assert (200, 1) == (warm.warm_up.prompt_tokens, warm.warm_up.output_tokens)
    assert all(furthest(a.logprobs, b.logprobs) < NOISE for a, b in zip(first, again, strict=True))


async def test_facts(real_sglang):
    async with connected(real_sglang, fanout="batch") as backend:
        assert backend.fanout == "batch"
        assert backend.facts.version in ("0.5.19", "0.5.23")
        assert backend.facts.frontend == real_sglang.frontend
        expected = (True, 1) if tells_reuse(backend) else (None, None)
        assert expected == (backend.facts.radix_cache, backend.facts.page_size)


async def test_the_longest_prompt_that_is_promised_is_taken(real_sglang):
    async with connected(real_sglang) as backend:
        length = backend.max_prompt_tokens
        readings = await read(backend, prompt(3, 20), [Branch((5,) * (length - 20), LABELS)], "calls")
        assert readings[0].prompt_tokens == length
        with pytest.raises(BackendError, match="at most"):
            await read(backend, prompt(3, 20), [Branch((5,) * (length - 19), LABELS)], "calls")


@pytest.mark.parametrize("way", ["cancelled", "deadline"])
async def test_work_that_is_given_up_stops(real_sglang, way):
    """Forty cold prompts of 1,000 tokens are minutes of work here; a one-token call waits for none of it."""
    wanted = branches(f"given up, {way}", 40, length=1000)
    async with connected(real_sglang) as backend:
        if is_rust_of(backend, "0.5.23"):
            pytest.skip(
                "it stops nothing: for a closed connection as little as for /abort_request, which it answers 200"
            )
        reading = asyncio.create_task(read(backend, prompt(way, 30), wanted, "calls"))
        await asyncio.sleep(2)
        if way == "cancelled":
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reading, 4)
        async with asyncio.timeout(60):
            while True:
                try:
                    await backend.check()
                except BackendError:
                    continue
                break
        assert backend.slots.free == backend.slots.size


async def test_two_hundred_mixed_evaluations_with_cancellations_leave_it_well_and_idle(real_sglang):
    rng = random.Random(11)
    async with connected(real_sglang) as backend:
        gate = asyncio.Semaphore(16)

        async def client(number):
            async with gate:
                wanted = branches(number, rng.choice([1, 1, 2, 3, 8]), length=6)
                task = asyncio.create_task(
                    read(backend, prompt(number % 50, 40), wanted, rng.choice(["batch", "calls"]))
                )
                if number % 4 == 0:
                    await asyncio.sleep(rng.random() * 1.5)
                    task.cancel()
                try:
                    readings = await task
                except asyncio.CancelledError:
                    return "cancelled"
                assert all(math.isfinite(value) for one in readings for value in one.logprobs)
                assert [one.prompt_tokens for one in readings] == [46] * len(wanted)
                return "answered"

        outcomes = await asyncio.gather(*(client(number) for number in range(200)))
        assert outcomes.count("answered") >= 150
        assert backend.slots.free == backend.slots.size
        await backend.check()
        assert await server_idle(real_sglang)


async def server_idle(server):
    """Whether the server itself says that nothing runs or waits; the Rust front end does not say."""
    if server.frontend == "rust":
        return True
    headers = {"authorization": f"Bearer {server.api_key}"}
    async with httpx.AsyncClient(headers=headers) as client:
        for _ in range(50):
            (load,) = (await client.get(f"{server.url}/v1/loads")).json()["loads"]
            if load["num_running_reqs"] == load["num_waiting_reqs"] == 0:
                return True
            await asyncio.sleep(0.2)
    return False


async def test_sixty_four_clients_at_once(real_sglang):
    async with connected(real_sglang) as backend:
        readings = await asyncio.gather(
            *(read(backend, prompt(f"client {n}", 30), branches(n, 2, 5), backend.fanout) for n in range(64))
        )
    assert [[one.prompt_tokens for one in each] for each in readings] == [[35, 35]] * 64


async def test_what_would_kill_it_is_refused_on_this_side(real_sglang):
    async with connected(real_sglang) as backend:
        with pytest.raises(OpenJevError, match="vocabulary"):
            await read(backend, (1, real_sglang.vocab_size), branches(1, 1), "calls")
        await backend.check()
