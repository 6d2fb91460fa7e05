"""An evaluation against the vLLM double: what is sent, what comes back, what happens when a call goes wrong."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager

import pytest
from sglang_double_model import logprob
from until import until
from vllm_double_answers import Fault

from openjev_core.backends.protocol import Branch
from openjev_core.backends.vllm.opening import open_vllm
from openjev_core.distribution import check_logprobs
from openjev_core.errors import BackendError, BackendUnavailable
from openjev_core.settings import Settings

pytestmark = pytest.mark.anyio

PREFIX = tuple(range(100, 700))
LABELS = (7, 5, 6)


@pytest.fixture(params=["batch", "calls"])
def fanout(request):
    return request.param


def branches(count, labels=LABELS):
    return [Branch((1000 + i, 2000 + i), labels) for i in range(count)]


def expected(branch, prefix=PREFIX):
    return tuple(logprob((*prefix, *branch.suffix), label) for label in branch.labels)


@asynccontextmanager
async def connected(double, **settings):
    async with open_vllm(double.url, Settings(**settings), vocab_size=double.vocab_size) as backend:
        double.calls.clear()
        yield backend


async def read(backend, wanted, shared=0):
    async with backend.prefix(PREFIX, key="state") as warm:
        return await warm.read(wanted, shared)


async def is_well(backend):
    readings, _ = await read(backend, branches(4))
    assert [r.logprobs for r in readings] == [expected(b) for b in branches(4)]


@pytest.mark.parametrize("count", [1, 3, 64, 150])
async def test_every_answer_belongs_to_its_question(start_vllm, fanout, count):
    double = await start_vllm()
    async with connected(double, fanout=fanout) as backend:
        readings, further = await read(backend, branches(count))
    assert [r.logprobs for r in readings] == [expected(b) for b in branches(count)]
    assert [math.fsum(map(math.exp, expected(b))) for b in branches(count)] == [r.label_mass for r in readings]
    assert ([602] * count, [1] * count) == ([r.prompt_tokens for r in readings], [r.output_tokens for r in readings])
    assert further == []


async def test_choices_are_told_apart_by_their_index(start_vllm):
    double = await start_vllm()
    async with connected(double) as backend:
        double.faults.append(Fault("swapped", "branch"))
        readings, _ = await read(backend, branches(4))
    assert [r.logprobs for r in readings] == [expected(b) for b in branches(4)]


async def test_no_branch_is_sent_before_the_prefix_was_answered(start_vllm, fanout):
    double = await start_vllm(latency=0.02)
    async with connected(double, fanout=fanout) as backend:
        await is_well(backend)
    assert [600] == [len(prompt) for prompt in double.calls[0].prompts]
    sizes = [len(call.prompts) for call in double.calls[1:]]
    assert sizes == ([4] if fanout == "batch" else [1] * 4)
    assert {"state"} == {call.session for call in double.calls}


MIXED = [
    Branch((1,), (5, 6)),
    Branch((2,), tuple(range(10, 74))),
    Branch((3,), (8, 7, 5)),
    Branch((4,), tuple(range(10, 70))),
    Branch((5,), (6, 5)),
    Branch((6,), tuple(range(200, 500))),
]


async def test_branches_of_similar_labels_share_a_call(start_vllm):
    """One list holds for all prompts of a call, so 64 labels beside 2 would be read for nothing at many prompts."""
    double = await start_vllm()
    async with connected(double) as backend:
        readings, _ = await read(backend, MIXED)
    assert [r.logprobs for r in readings] == [expected(b) for b in MIXED]
    warm_up, *calls = double.calls
    assert [0] == warm_up.labels
    found = sorted((tuple(prompt[-1] for prompt in call.prompts), call.labels) for call in calls)
    assert found == [
        ((1, 3, 5), [5, 6, 7, 8]),
        ((2, 4), list(range(10, 74))),
        ((6,), list(range(200, 328))),
        ((6,), list(range(328, 456))),
        ((6,), list(range(456, 500))),
    ]


@pytest.mark.parametrize("count", [128, 129, 256, 257, 700])
async def test_more_labels_than_a_call_takes_are_read_in_slices(start_vllm, fanout, count):
    labels = tuple(range(9000, 9000 + count))[::-1]
    slices = math.ceil(count / 128)
    double = await start_vllm()
    async with connected(double, fanout=fanout) as backend:
        readings, _ = await read(backend, branches(2, labels))
    assert [r.logprobs for r in readings] == [expected(b) for b in branches(2, labels)]
    # Each slice is a read of the same prompt, and is counted as one.
    assert [(602 * slices, slices)] * 2 == [(r.prompt_tokens, r.output_tokens) for r in readings]
    assert [592 * slices if fanout == "calls" else None, 592 * slices] == [r.cached_tokens for r in readings]


async def test_a_long_shared_beginning_is_read_once_first(start_vllm, fanout):
    double = await start_vllm()
    shared = tuple(range(3000, 3300))
    tags = [Branch((*shared, 9000 + i), LABELS) for i in range(8)]
    async with connected(double, fanout=fanout) as backend:
        readings, further = await read(backend, tags, shared=300)
    assert [900] == [r.prompt_tokens for r in further]
    assert [r.logprobs for r in readings] == [expected(b) for b in tags]


async def test_how_much_was_reused_is_known_of_the_last_prompt_of_a_call(start_vllm, fanout):
    double = await start_vllm()
    async with connected(double, fanout=fanout) as backend:
        readings, _ = await read(backend, branches(3))
        assert [592 if fanout == "calls" else None] * 2 + [592] == [r.cached_tokens for r in readings]
        double.prompt_details = False
        readings, _ = await read(backend, branches(3))
        assert [None] * 3 == [r.cached_tokens for r in readings]


async def test_a_count_that_is_more_than_the_last_prompt_is_none_of_it(start_vllm):
    """As a server would report it that adds up all prompts of a call."""
    double = await start_vllm()
    async with connected(double) as backend:
        double.faults.append(Fault("summed", "branch"))
        readings, _ = await read(backend, branches(3))
        assert [None] * 3 == [r.cached_tokens for r in readings]


async def test_a_prefix_that_was_reused_block_by_block_takes_no_call_again(start_vllm):
    double = await start_vllm(block_size=128)
    async with connected(double) as backend:
        await read(backend, branches(3))
        await read(backend, branches(3))
    assert [1, 3, 3] == [len(call.prompts) for call in double.calls]


async def test_minus_infinity_is_a_probability_of_zero(start_vllm, fanout):
    double = await start_vllm()
    for kind in ("impossible", "minus_infinity"):
        async with connected(double, fanout=fanout) as backend:
            double.faults.append(Fault(kind, "branch"))
            readings, _ = await read(backend, branches(1))
        assert readings[0].logprobs == (-math.inf, *expected(branches(1)[0])[1:])


async def test_a_nan_is_left_to_who_reads_answers_of_all_backends(start_vllm):
    double = await start_vllm()
    async with connected(double) as backend:
        double.faults.append(Fault("nan", "branch"))
        readings, _ = await read(backend, branches(1))
        with pytest.raises(BackendError, match="not a number"):
            check_logprobs(readings[0].logprobs)


BAD_ANSWERS = {
    "missing": r"no logprob for the label ids \[5\]; vLLM 0.26.0 or newer is needed",
    "null": r"not what /v1/completions returns: Expected `float`, got `null`",
    "logits": "sum to 8.15, so what the backend returned are no log-probabilities",
    "no_logprobs": "no logprobs of one output position",
    "no_position": "no logprobs of one output position",
    "two_positions": "no logprobs of one output position",
    "foreign": r"vLLM answered the prompts .*99\] of a call with",
    "more": r"vLLM answered the prompts .* of a call with",
    "short": r"vLLM answered the prompts .* of a call with",
    "cut_short": "reports [0-9]+ prompt tokens, sent were",
    "no_usage": "reports no prompt count",
    "longer": "reports 50 output tokens, asked were",
    "too_cached": "reports 1000000000 cached tokens of",
    "garbage": "not JSON",
    "page": "not JSON",
    "other": "not what /v1/completions returns",
    "text_500": "vLLM answered 500: Internal Server Error",
    "refused": "vLLM answered 400: max_tokens must be at least 1",
    "redirect": "vLLM answered 307",
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
async def test_an_answer_that_is_no_distribution_is_an_error_and_never_a_number(start_vllm, fanout, kind):
    double = await start_vllm()
    async with connected(double, fanout=fanout) as backend:
        double.faults.append(Fault(kind, "branch"))
        with pytest.raises(BackendError, match=BAD_ANSWERS[kind]) as caught:
            await read(backend, branches(4))
        assert 502 == caught.value.status
        await is_well(backend)


async def test_one_prompt_answered_twice_is_an_error(start_vllm):
    double = await start_vllm()
    async with connected(double) as backend:
        double.faults.append(Fault("twice", "branch"))
        with pytest.raises(BackendError, match="answered prompt 0 twice"):
            await read(backend, branches(4))


UNAVAILABLE = {
    "aborted": "vLLM dropped the call",
    "queue_full": "vLLM answered 503: The server is overloaded",
    "truncated": "vLLM broke off its answer",
}


@pytest.mark.parametrize("stage", ["warm", "branch"])
@pytest.mark.parametrize("kind", UNAVAILABLE)
async def test_a_server_that_cannot_take_the_call_now(start_vllm, fanout, kind, stage):
    double = await start_vllm()
    async with connected(double, fanout=fanout) as backend:
        double.faults.append(Fault(kind, stage))
        with pytest.raises(BackendUnavailable, match=UNAVAILABLE[kind]):
            await read(backend, branches(4))
        await is_well(backend)


async def test_a_connection_that_closes_without_an_answer_is_tried_once_more(start_vllm):
    double = await start_vllm()
    async with connected(double) as backend:
        double.faults.append(Fault("reset", "warm"))
        await is_well(backend)
        double.faults.append(Fault("reset", "branch", times=2))
        with pytest.raises(BackendUnavailable, match="vLLM closed the connection"):
            await read(backend, branches(2))


async def test_a_server_that_dies_mid_request_and_comes_back_without_its_cache(start_vllm, fanout):
    double = await start_vllm()
    async with connected(double, fanout=fanout) as backend:
        double.faults.append(Fault("die", "branch"))
        with pytest.raises(BackendUnavailable):
            await read(backend, branches(4))
        with pytest.raises(BackendUnavailable, match="vLLM cannot be reached"):
            await read(backend, branches(4))
        with pytest.raises(BackendUnavailable, match="vLLM cannot be reached"):
            await backend.check()
        await double.start()
        await backend.check()
        double.calls.clear()
        await is_well(backend)
    assert [[0], [600]] == [double.calls[0].labels, [len(prompt) for prompt in double.calls[0].prompts]]


async def test_what_the_server_would_refuse_is_not_sent(start_vllm):
    double = await start_vllm()
    async with connected(double) as backend:
        for ids in ((1, 49152), (-1,), ()):
            with pytest.raises(BackendError, match=r"vocabulary|at least one"):
                async with backend.prefix(ids, key="state"):
                    pass
        async with backend.prefix(PREFIX, key="state") as warm:
            for bad in (Branch((49152,), LABELS), Branch((1,), (5, 49152)), Branch((1,), (5, 5)), Branch((), LABELS)):
                with pytest.raises(BackendError, match=r"vocabulary|at least one|twice"):
                    await warm.read([Branch((1,), LABELS), bad])
            with pytest.raises(BackendError, match="2048 tokens; vLLM takes at most 2047"):
                await warm.read([Branch((1,) * (2048 - 600), LABELS)])
            longest, _ = await warm.read([Branch((1,) * (2047 - 600), LABELS)])
    assert 2047 == longest[0].prompt_tokens
    assert 2 == len(double.calls)


async def test_check_asks_for_one_labelled_token(start_vllm):
    double = await start_vllm()
    async with connected(double) as backend:
        await backend.check()
        assert [([[0, 1]], [0])] == [(call.prompts, call.labels) for call in double.calls]
        double.faults.append(Fault("missing"))
        with pytest.raises(BackendError, match="no logprob"):
            await backend.check()


@pytest.mark.parametrize("stage", ["warm", "branch"])
async def test_a_cancelled_evaluation_stops_at_the_server(start_vllm, fanout, stage):
    double = await start_vllm()
    async with connected(double, fanout=fanout) as backend:
        double.faults.append(Fault("slow", stage, times=4, seconds=60.0))
        task = asyncio.create_task(read(backend, branches(4)))
        wanted = 4 if (fanout, stage) == ("calls", "branch") else 1
        await until(lambda: len(double.running) == wanted)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: double.idle)
        assert (wanted, backend.slots.size) == (double.aborted, backend.slots.free)
        double.faults.clear()
        await is_well(backend)


async def test_a_failed_branch_cancels_its_siblings(start_vllm):
    double = await start_vllm()
    async with connected(double, fanout="calls") as backend:
        double.faults.append(Fault("slow", "branch", times=3, seconds=60.0))
        double.faults.append(Fault("missing", "branch"))
        with pytest.raises(BackendError, match="no logprob"):
            await read(backend, branches(4))
        await until(lambda: double.idle)
        assert (3, backend.slots.size) == (double.aborted, backend.slots.free)


async def test_at_most_so_many_prompts_at_once(start_vllm, fanout):
    double = await start_vllm(latency=0.002)
    async with connected(double, fanout=fanout, max_concurrent_branches=10) as backend:
        await asyncio.gather(*(read(backend, branches(30)) for _ in range(4)))
    assert 10 == double.most_at_once


async def test_a_key_is_sent_and_not_shown(start_vllm):
    double = await start_vllm(api_key="right-key")
    async with connected(double, backend_api_key="right-key") as backend:
        await is_well(backend)
        assert "right-key" not in repr(backend)
        double.api_key = "another"
        with pytest.raises(BackendError, match=r"401: Unauthorized\. OPENJEV_BACKEND_API_KEY must be") as caught:
            await read(backend, branches(4))
        assert "right-key" not in str(caught.value)
