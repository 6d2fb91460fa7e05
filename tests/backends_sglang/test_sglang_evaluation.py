"""An evaluation against the double: what is sent, what comes back, what happens when a call goes wrong."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager

import pytest
from sglang_double_faults import Fault
from sglang_double_model import logprob

from openjev_core.backends.protocol import Branch
from openjev_core.backends.sglang.opening import open_sglang
from openjev_core.errors import BackendError, BackendUnavailable, StartupError
from openjev_core.settings import Settings

pytestmark = pytest.mark.anyio

PREFIX = tuple(range(100, 160))
LABELS = (7, 5, 6)


def branches(count, labels=LABELS):
    return [Branch((1000 + i, 2000 + i), labels) for i in range(count)]


def expected(prefix, branch):
    return tuple(logprob((*prefix, *branch.suffix), label) for label in branch.labels)


@asynccontextmanager
async def connected(double, **settings):
    async with open_sglang(double.url, Settings(**settings), vocab_size=double.vocab_size) as backend:
        double.calls.clear()
        yield backend


async def read(backend, count, *, prefix=PREFIX, labels=LABELS, shared=0):
    async with backend.prefix(prefix, key="state") as warm:
        return await warm.read(branches(count, labels), shared)


async def settled(double):
    """Until the double has noticed what it is going to notice."""
    for _ in range(200):
        if double.idle:
            return
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("count", [1, 3, 64, 150])
async def test_every_answer_belongs_to_its_question(start_double, frontend, fanout, count):
    double = await start_double(frontend=frontend)
    async with connected(double, fanout=fanout) as backend:
        readings, further = await read(backend, count)
    assert [r.logprobs for r in readings] == [expected(PREFIX, b) for b in branches(count)]
    assert further == []


async def test_a_question_more_is_a_generation_more(start_double, frontend, fanout):
    double = await start_double(frontend=frontend)
    async with connected(double, fanout=fanout) as backend:
        before = double.completed
        async with backend.prefix(PREFIX, key="state") as warm:
            readings, _ = await warm.read(branches(5))
    assert double.completed - before == 6
    assert warm.warm_up.output_tokens + sum(r.output_tokens for r in readings) == 6
    assert warm.warm_up.prompt_tokens == 60
    assert [r.prompt_tokens for r in readings] == [62] * 5


async def test_one_batch_is_one_http_call(start_double):
    double = await start_double()
    async with connected(double, fanout="batch") as backend:
        await read(backend, 64)
    assert [len(call.jobs) for call in double.calls] == [1, 64]


async def test_calls_are_one_http_call_each(start_double):
    double = await start_double()
    async with connected(double, fanout="calls") as backend:
        await read(backend, 5)
    assert [len(call.jobs) for call in double.calls] == [1] * 6


async def test_cached_tokens_come_from_the_python_front_end_alone(start_double):
    counts = {}
    for frontend in ("python", "rust"):
        double = await start_double(frontend=frontend)
        async with connected(double) as backend:
            readings, _ = await read(backend, 2)
        counts[frontend] = [r.cached_tokens for r in readings]
    assert counts == {"python": [60, 60], "rust": [None, None]}


async def test_branches_of_different_label_sets(start_double, fanout):
    double = await start_double()
    mixed = [Branch((1,), (5, 6)), Branch((2, 3), (9,) * 1 + (8, 7)), Branch((4,), tuple(range(10, 74)))]
    async with connected(double, fanout=fanout) as backend, backend.prefix(PREFIX, key="state") as warm:
        readings, _ = await warm.read(mixed)
    assert [r.logprobs for r in readings] == [expected(PREFIX, b) for b in mixed]


async def test_every_call_of_a_prefix_carries_its_routing_key(start_double, fanout):
    double = await start_double()
    async with connected(double, fanout=fanout) as backend:
        await read(backend, 3)
    assert {call.routing_key for call in double.calls} == {"state"}


async def test_a_long_shared_beginning_is_read_once_first(start_double, fanout):
    double = await start_double(frontend="python")
    shared = tuple(range(3000, 3300))
    tags = [Branch((*shared, 9000 + i), LABELS) for i in range(8)]
    async with connected(double, fanout=fanout) as backend, backend.prefix(PREFIX, key="state") as warm:
        readings, further = await warm.read(tags, shared=300)
    assert [r.prompt_tokens for r in further] == [360]
    assert [r.cached_tokens for r in readings] == [360] * 8
    assert [r.logprobs for r in readings] == [expected(PREFIX, b) for b in tags]


async def test_a_short_shared_beginning_is_not_worth_a_call(start_double):
    double = await start_double()
    async with connected(double) as backend:
        _, further = await read(backend, 4, shared=1)
    assert further == []


async def test_a_null_beside_numbers_is_a_probability_of_zero(start_double, frontend, fanout):
    double = await start_double(frontend=frontend)
    async with connected(double, fanout=fanout) as backend:
        double.faults.append(Fault("null_one", "branch"))
        readings, _ = await read(backend, 1)
    want = expected(PREFIX, branches(1)[0])
    assert readings[0].logprobs == (-math.inf, *want[1:])


async def test_minus_infinity_as_pythons_encoder_writes_it(start_double):
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        double.faults.append(Fault("infinity", "branch"))
        readings, _ = await read(backend, 3)
    assert readings[0].logprobs[0] == -math.inf


async def test_a_nan_as_pythons_encoder_writes_it_is_left_to_who_reads_answers_of_all_backends(start_double):
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        double.faults.append(Fault("nan", "branch"))
        readings, _ = await read(backend, 3)
    assert math.isnan(readings[0].logprobs[0])


BAD_ANSWERS = {
    "null_all": "null for every label",
    "missing": r"no logprob for the label ids \[7\]",
    "duplicate": "two logprobs for one label",
    "foreign": r"no logprob for the label ids \[7\]",
    "no_logprobs": "ignored the labels",
    "no_prompt_tokens": "no prompt count",
    "element_error": "the member is not served",
    "garbage": "not JSON",
    "empty": "not JSON",
    "not_generate": "/generate",
    "object": "not what /generate returns",
    "text_500": "500: Internal Server Error",
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
async def test_an_answer_that_is_no_distribution_is_an_error_and_never_a_number(start_double, frontend, fanout, kind):
    double = await start_double(frontend=frontend)
    async with connected(double, fanout=fanout) as backend:
        double.faults.append(Fault(kind, "branch", member=1))
        with pytest.raises(BackendError, match=BAD_ANSWERS[kind]) as caught:
            await read(backend, 4)
        assert caught.value.status == 502
        await settled(double)
        readings, _ = await read(backend, 4)
    assert [r.logprobs for r in readings] == [expected(PREFIX, b) for b in branches(4)]


@pytest.mark.parametrize(
    ("kind", "message"), [("swapped", "where .* was due"), ("short", "answered 3 prompts of a batch of 4")]
)
async def test_a_batch_answered_out_of_order_or_in_part(start_double, frontend, kind, message):
    double = await start_double(frontend=frontend)
    async with connected(double, fanout="batch") as backend:
        double.faults.append(Fault(kind, "branch"))
        with pytest.raises(BackendError, match=message):
            await read(backend, 4)


UNAVAILABLE = {
    "aborted": "dropped the call: Abort in waiting queue",
    "queue_full": "503: The request queue is full",
    "truncated": "broke off",
}


@pytest.mark.parametrize("stage", ["warm", "branch"])
@pytest.mark.parametrize("kind", UNAVAILABLE)
async def test_a_server_that_cannot_take_the_call_now(start_double, frontend, fanout, kind, stage):
    double = await start_double(frontend=frontend)
    async with connected(double, fanout=fanout) as backend:
        double.faults.append(Fault(kind, stage))
        with pytest.raises(BackendUnavailable, match=UNAVAILABLE[kind]):
            await read(backend, 4)
        await settled(double)
        assert len((await read(backend, 4))[0]) == 4


async def test_a_connection_that_closes_without_an_answer_is_tried_once_more(start_double, fanout):
    double = await start_double()
    async with connected(double, fanout=fanout) as backend:
        double.faults.append(Fault("reset", "warm"))
        # The double's own rule that a rid is used once does not hold for a second attempt.
        readings, _ = await read(backend, 2)
        assert [r.logprobs for r in readings] == [expected(PREFIX, b) for b in branches(2)]
        double.faults.append(Fault("reset", "warm", times=2))
        with pytest.raises(BackendUnavailable, match="closed the connection"):
            await read(backend, 2)
    double.rules.violations = [v for v in double.rules.violations if "used before" not in v]


async def test_a_server_that_dies_mid_request_and_comes_back_without_its_cache(start_double, frontend, fanout):
    double = await start_double(frontend=frontend)
    async with connected(double, fanout=fanout) as backend:
        double.faults.append(Fault("die", "branch"))
        with pytest.raises(BackendUnavailable):
            await read(backend, 4)
        with pytest.raises(BackendUnavailable, match="cannot be reached"):
            await read(backend, 4)
        with pytest.raises(BackendUnavailable, match="cannot be reached"):
            await backend.check()
        await double.start()
        await backend.check()
        readings, _ = await read(backend, 4)
    assert [r.logprobs for r in readings] == [expected(PREFIX, b) for b in branches(4)]
    if frontend == "python":
        assert [r.cached_tokens for r in readings] == [60] * 4


async def test_what_would_kill_the_server_is_not_sent(start_double, frontend):
    double = await start_double(frontend=frontend)
    async with connected(double) as backend:
        for ids in ((1, 49152), (-1,), ()):
            with pytest.raises(BackendError, match=r"vocabulary|at least one"):
                async with backend.prefix(ids, key="state"):
                    pass
        async with backend.prefix(PREFIX, key="state") as warm:
            for branch in (
                Branch((49152,), LABELS),
                Branch((1,), (5, 49152)),
                Branch((1,), (5, 5)),
                Branch((), LABELS),
            ):
                with pytest.raises(BackendError):
                    await warm.read([Branch((1,), LABELS), branch])
            with pytest.raises(BackendError, match="2042 tokens; SGLang takes at most 2041"):
                await warm.read([Branch((1,) * (2042 - 60), LABELS)])
            longest, _ = await warm.read([Branch((1,) * (2041 - 60), LABELS)])
    assert longest[0].prompt_tokens == 2041
    assert len(double.calls) == 2


async def test_a_key_is_sent_and_a_wrong_one_named(start_double):
    double = await start_double(frontend="python", api_key="right")
    async with connected(double, backend_api_key="right") as backend:
        await read(backend, 2)
    with pytest.raises(StartupError, match="OPENJEV_BACKEND_API_KEY") as caught:
        async with connected(double, backend_api_key="wrong-key"):
            pass
    assert "wrong-key" not in str(caught.value)
    assert "right" not in str(caught.value)


async def test_no_page_with_keys_is_kept(start_double):
    double = await start_double(frontend="python", api_key="topsecret", admin_api_key="adminsecret")
    async with connected(double, backend_api_key="topsecret") as backend:
        assert backend.facts.page_size == 1
        assert "secret" not in repr(backend)


async def test_a_server_that_refuses_batches_is_called_branch_by_branch(start_double):
    double = await start_double()
    double.faults.append(Fault("text_500", "branch"))
    lines = []
    settings = Settings(fanout="batch")
    async with open_sglang(double.url, settings, vocab_size=double.vocab_size, log=lines.append) as backend:
        double.calls.clear()
        await read(backend, 3)
    assert backend.fanout == "calls"
    assert len(double.calls) == 4
    assert [line.partition(" (")[0] for line in lines] == ["fan-out: the server does not take batches"]


async def test_nothing_there_ends_the_start(start_double):
    double = await start_double()
    double.stop()
    with pytest.raises(StartupError, match="cannot be reached"):
        async with connected(double):
            pass


async def test_without_inspection_nothing_is_sent(start_double):
    double = await start_double()
    settings = Settings(max_input_tokens=500)
    async with open_sglang(double.url, settings, vocab_size=double.vocab_size, inspect=False) as backend:
        assert backend.max_prompt_tokens == 499
    assert double.calls == []


async def test_check_asks_for_one_labelled_token(start_double, frontend):
    double = await start_double(frontend=frontend)
    async with connected(double) as backend:
        await backend.check()
        assert [(len(call.jobs), call.jobs[0].labelled) for call in double.calls] == [(1, True)]
        double.faults.append(Fault("null_all"))
        with pytest.raises(BackendError, match="null for every label"):
            await backend.check()
