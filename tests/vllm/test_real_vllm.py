"""The engine on the real vLLM: what it reads, what it refuses, and what is left there when clients hang up."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from contextlib import asynccontextmanager

import httpx
import pytest
from openjev_process import serving

from openjev_core import Settings, StartupError, open_engine
from openjev_core.backends.protocol import Branch
from openjev_core.backends.vllm.opening import open_vllm
from openjev_core.backends.vllm.wire import MAX_LABELS
from openjev_core.errors import BackendError
from openjev_core.prompts.session import routing_key

pytestmark = [pytest.mark.anyio, pytest.mark.vllm]

VOCABULARY = 49152
LABELS = (49, 50, 51, 52)
NOISE = 1e-3
"""How far two reads of one prompt may differ: batches of different sizes add up in different orders."""


@asynccontextmanager
async def connected(server, **settings):
    made = Settings(backend_api_key=server.api_key, **settings)
    async with open_vllm(server.url, made, vocab_size=VOCABULARY) as backend:
        yield backend


def prompt(seed, length):
    rng = random.Random(seed)
    return tuple(rng.randrange(100, 40_000) for _ in range(length))


def branches(seed, count, length=12, labels=LABELS):
    return [Branch(prompt(f"{seed}/{number}", length), labels) for number in range(count)]


async def read(backend, prefix, wanted, fanout="batch"):
    backend.fanout = fanout
    async with backend.prefix(prefix, key=routing_key(prefix)) as warm:
        readings, _ = await warm.read(wanted)
    return readings


async def plain_call(server, **changes):
    """A call by a client that knows nothing of openjev."""
    body = {"model": "smollm2", "max_tokens": 1, "temperature": 0, "logprobs": 0, "return_tokens_as_token_ids": True}
    headers = {"authorization": f"Bearer {server.api_key}"}
    async with httpx.AsyncClient(timeout=120, headers=headers) as client:
        return await client.post(f"{server.url}/v1/completions", json={**body, **changes})


async def plain_read(server, ids, labels=LABELS):
    answer = await plain_call(server, prompt=ids, logprob_token_ids=labels)
    found = answer.raise_for_status().json()["choices"][0]["logprobs"]["top_logprobs"][0]
    return [found[f"token_id:{label}"] for label in labels]


def furthest(one, other):
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


async def test_batch_calls_and_a_plain_single_call_agree(real_vllm):
    prefix, wanted = prompt(1, 200), branches(1, 6)
    async with connected(real_vllm) as backend:
        batch = await read(backend, prefix, wanted, "batch")
        calls = await read(backend, prefix, wanted, "calls")
    for branch, one, other in zip(wanted, batch, calls, strict=True):
        alone = await plain_read(real_vllm, [*prefix, *branch.suffix])
        assert furthest(one.logprobs, other.logprobs) < NOISE
        assert furthest(one.logprobs, alone) < NOISE
        assert one.prompt_tokens == other.prompt_tokens == 212


async def test_each_check_of_the_start_is_told(real_vllm):
    lines = []
    settings = Settings(connect=real_vllm.url, backend_api_key=real_vllm.api_key, max_input_tokens=4096)
    async with open_engine(settings, progress=lines.append) as engine:
        assert ("smollm2", "vllm", 4096) == (
            engine.model.public_name, engine.model.engine, engine.limits.max_input_tokens
        )  # fmt: skip
    source = real_vllm.model_dir
    assert [
        f"connect: found vllm at {real_vllm.url}, by GET /v1/models",
        f"loading the tokenizer of {source}",
        f"reachable: vLLM 0.32.0, at {real_vllm.url}",
        f"model: {source}, tokenized with {source}",
        "prefix cache: on, block size 128",
        "longest prompt: 4095 tokens, 4095 are promised",
    ] == lines[:6]
    assert lines[6].startswith("probe: 66 labels read, which hold ")


async def test_a_context_that_is_too_short_for_what_is_promised_ends_the_start(real_vllm):
    settings = Settings(connect=real_vllm.url, backend_api_key=real_vllm.api_key, max_input_tokens=8192)
    with pytest.raises(StartupError, match=r"longest prompt: expected 8191 .* found 4095; .*--max-model-len 8192"):
        async with open_engine(settings):
            pass


async def test_a_wrong_key_ends_the_start(real_vllm):
    if real_vllm.api_key is None:
        pytest.skip("the server asks for no key")
    with pytest.raises(StartupError, match="OPENJEV_BACKEND_API_KEY"):
        async with open_engine(Settings(connect=real_vllm.url, backend_api_key="another")):
            pass


async def test_the_blocks_of_a_prefix_are_reused(real_vllm):
    prefix, wanted = prompt(2, 300), branches(2, 4)
    async with connected(real_vllm) as backend:
        cached = [one.cached_tokens for one in await read(backend, prefix, wanted)]
        assert [None, None, None, 256] == cached  # of a batch, the last one's alone is told
        cached = [one.cached_tokens for one in await read(backend, prefix, wanted, "calls")]
        assert [256] * 4 == cached


async def test_a_prefix_that_was_reused_takes_no_call(real_vllm):
    prefix, wanted = prompt(8, 200), branches(8, 4)
    async with connected(real_vllm) as backend:
        first = await read(backend, prefix, wanted)
        async with backend.prefix(prefix, key=routing_key(prefix)) as warm:
            again, _ = await warm.read(wanted)
    assert () == warm.warm_up.logprobs  # one that was made has a label's
    assert all(furthest(a.logprobs, b.logprobs) < NOISE for a, b in zip(first, again, strict=True))


async def test_more_labels_than_a_call_takes(real_vllm):
    labels = tuple(range(1000, 1000 + 2 * MAX_LABELS + 1))
    prefix, wanted = prompt(3, 40), branches(3, 2, labels=labels)
    async with connected(real_vllm) as backend:
        readings = await read(backend, prefix, wanted)
    for branch, reading in zip(wanted, readings, strict=True):
        whole = [*prefix, *branch.suffix]
        slices = [labels[start : start + MAX_LABELS] for start in range(0, len(labels), MAX_LABELS)]
        alone = [value for part in slices for value in await plain_read(real_vllm, whole, part)]
        assert furthest(reading.logprobs, alone) < NOISE
        assert pytest.approx(math.fsum(map(math.exp, reading.logprobs))) == reading.label_mass
        assert (3 * 52, 3) == (reading.prompt_tokens, reading.output_tokens)
    refused = await plain_call(real_vllm, prompt=[5], logprob_token_ids=labels)
    assert 400 == refused.status_code


async def test_the_longest_prompt_that_is_promised_is_taken(real_vllm):
    async with connected(real_vllm) as backend:
        assert 4095 == backend.max_prompt_tokens
        readings = await read(backend, prompt(4, 20), [Branch((5,) * 4075, LABELS)])
        assert 4095 == readings[0].prompt_tokens
        with pytest.raises(BackendError, match="at most"):
            await read(backend, prompt(4, 20), [Branch((5,) * 4076, LABELS)])


async def test_what_it_refuses_is_refused_on_this_side_and_told_if_it_gets_there(real_vllm):
    async with connected(real_vllm) as backend:
        with pytest.raises(BackendError, match="vocabulary"):
            await read(backend, (1, VOCABULARY), branches(1, 1))
        with pytest.raises(BackendError, match="vocabulary"):
            await read(backend, (1,), [Branch((5,), (1, VOCABULARY))])
        backend.vocab_size = backend.max_prompt_tokens = 10**6
        with pytest.raises(BackendError, match=f"vLLM answered 400: Token id {VOCABULARY} is out of vocabulary"):
            await read(backend, (1, VOCABULARY), branches(1, 1))
        with pytest.raises(BackendError, match=r"vLLM answered 400: .*out-of-vocab"):
            await read(backend, (1,), [Branch((5,), (1, VOCABULARY))])
        with pytest.raises(BackendError, match="vLLM answered 400: max_tokens must be at least 1"):
            await read(backend, (1,), [Branch((5,) * 4095, LABELS)])
        await backend.check()


async def becomes(server, *, busy):
    """Whether the server says within a minute that something runs or waits, or that nothing does."""
    for _ in range(300):
        if (await asyncio.to_thread(server.running) > 0) == busy:
            return True
        await asyncio.sleep(0.2)
    return False


@pytest.mark.parametrize("way", ["cancelled", "deadline"])
async def test_work_that_is_given_up_stops(real_vllm, way):
    """Forty cold prompts of 1,000 tokens are minutes of work here; a one-token call waits for none of it."""
    wanted = branches(f"given up, {way}", 40, length=1000)
    async with connected(real_vllm) as backend:
        reading = asyncio.create_task(read(backend, prompt(way, 30), wanted))
        assert await becomes(real_vllm, busy=True)
        if way == "cancelled":
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reading, 2)
        assert backend.slots.free == backend.slots.size
        assert await becomes(real_vllm, busy=False)
        await backend.check()


TEAMS = {"billing": "Payments, invoices, refunds", "technical": "Bugs and outages", "sales": "Prices and contracts"}


def request(number):
    """A request whose state and question no other has."""
    question = {"type": "choice", "instructions": f"Which team is ticket {number} for?", "criteria": TEAMS}
    yes_no = {"type": "noul", "instructions": f"Is ticket {number} urgent?"}
    words = " ".join(random.Random(number).choices("router lamp invoice error price update noise refund".split(), k=60))
    return {"model": "smollm2", "state": f"Ticket {number}: {words}", "questions": {"team": question, "soon": yes_no}}


def numbers_of(answer):
    answers = answer["answers"]
    return [*answers["team"]["probabilities"].values(), answers["soon"]["noul"]]


async def test_forty_evaluations_of_which_nineteen_hang_up(real_vllm):
    rng = random.Random(19)
    hanging_up = set(rng.sample(range(40), 19))

    async def evaluation(client, number):
        asked = asyncio.create_task(client.post("/v1/systemone", json=request(number)))
        if number not in hanging_up:
            answer = await asked
            assert 200 == answer.status_code, answer.text
            return numbers_of(answer.json())
        await asyncio.wait([asked], timeout=rng.random() * 2)
        asked.cancel()
        return None

    flags = ("--connect", real_vllm.url, "--max-input-tokens", 4096)
    with serving(*flags, OPENJEV_BACKEND_API_KEY=real_vllm.api_key or "none") as child:
        async with httpx.AsyncClient(base_url=child.wait_until_it_listens(), timeout=300) as client:
            gate = asyncio.Semaphore(16)

            async def client_of(number):
                async with gate:
                    return await evaluation(client, number)

            found = await asyncio.gather(*(client_of(number) for number in range(40)))
            assert await becomes(real_vllm, busy=False)
            assert 200 == (await client.get("/health")).status_code
            for number, together in enumerate(found):
                if together is None:
                    continue
                alone = await client.post("/v1/systemone", json=request(number))
                assert furthest(together, numbers_of(alone.json())) < NOISE
    # The check can tell: answers to other requests lie further away.
    answered = [one for one in found if one is not None]
    assert 21 == len(answered)
    assert min(itertools.starmap(furthest, itertools.combinations(answered, 2))) > NOISE
