"""The call that reads a prefix is left out where SGLang said that it holds it, and nowhere else."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from sglang_double_faults import Fault

from openjev_core.backends.protocol import Branch
from openjev_core.backends.sglang.opening import open_sglang
from openjev_core.backends.warmth import DISTRUST, KEY_BYTES, MEMORY, TRUSTED_FOR, Warmth
from openjev_core.errors import BackendError
from openjev_core.recent import bytes_of
from openjev_core.settings import Settings

pytestmark = pytest.mark.anyio

PREFIX = tuple(range(100, 230))
BRANCHES = [Branch((1000 + i, 2000 + i), (7, 5, 6)) for i in range(3)]


class Clock:
    """Seconds that pass when told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def warmth(clock):
    return Warmth(clock=clock)


def test_what_was_reused_moments_ago_is_held(warmth, clock):
    warmth.judge("state", 130, 130)
    clock.now += TRUSTED_FOR
    assert (True, False) == (warmth.holds("state"), warmth.holds("another"))
    clock.now += 0.1
    assert not warmth.holds("state")


@pytest.mark.parametrize(("reused", "held"), [(130, True), (128, True), (127, False), (0, False), (None, False)])
def test_all_of_it_has_to_have_been_reused_up_to_the_last_checkpoint(warmth, reused, held):
    warmth.judge("state", 130, reused)
    assert held == warmth.holds("state")


def test_one_that_is_gone_takes_the_trust_in_all_for_a_while(warmth, clock):
    warmth.judge("gone", 130, 130)
    warmth.judge("other", 130, 130)
    warmth.judge("gone", 130, 64)
    assert not warmth.holds("other")
    clock.now += DISTRUST
    warmth.judge("other", 130, 130)
    assert (True, False) == (warmth.holds("other"), warmth.holds("gone"))


def test_one_that_was_never_held_says_nothing_about_others(warmth):
    warmth.judge("other", 130, 130)
    warmth.judge("never", 130, 0)
    assert warmth.holds("other")


def test_one_that_was_not_trusted_any_more_says_nothing_about_others(warmth, clock):
    warmth.judge("old", 130, 130)
    clock.now += TRUSTED_FOR + 1
    warmth.judge("old", 130, 0)
    warmth.judge("other", 130, 130)
    assert warmth.holds("other")


def test_what_is_remembered_is_bounded(warmth):
    for number in range(2 * MEMORY // KEY_BYTES):
        warmth.judge(f"{number:032}", 130, 130)
        warmth.may_read_along(f"{number:032}")
    for memory in (warmth._reused_at, warmth._read_along):
        assert MEMORY - KEY_BYTES < memory.held <= MEMORY
        assert bytes_of(memory._entries) <= MEMORY


@asynccontextmanager
async def connected(double):
    async with open_sglang(double.url, Settings(), vocab_size=double.vocab_size) as backend:
        double.calls.clear()
        yield backend


async def read(backend, prefix=PREFIX):
    """What was used, and the answers."""
    async with backend.prefix(prefix, key=str(prefix[0])) as warm:
        readings, _ = await warm.read(BRANCHES)
    every = [warm.warm_up, *readings]
    used = sum(one.prompt_tokens for one in every), sum(one.output_tokens for one in every)
    return used, [one.logprobs for one in readings]


def sizes(double):
    """How many prompts each call had, from the last time on."""
    found = [len(call.jobs) for call in double.calls]
    double.calls.clear()
    return found


async def test_a_state_that_comes_again_takes_one_call_and_counts_as_before(start_double):
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        first = await read(backend)
        assert [1, 3] == sizes(double)
        assert [first, first] == [await read(backend), await read(backend)]
        assert [3, 3] == sizes(double)
        await read(backend, PREFIX[1:])
        assert [1, 3] == sizes(double)
    assert (4 * 130 + 3 * 2, 4) == first[0]


async def test_a_server_that_does_not_tell_is_always_asked_first(start_double):
    double = await start_double(frontend="rust")
    async with connected(double) as backend:
        assert await read(backend) == await read(backend)
    assert [1, 3, 1, 3] == sizes(double)


async def test_a_prefix_that_was_thrown_out_is_read_again(start_double):
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        first = await read(backend)
        double.tree = type(double.tree)()
        assert [first, first] == [await read(backend), await read(backend)]
    assert [1, 3, 3, 1, 3] == sizes(double)


async def test_after_a_failure_nothing_is_taken_for_granted(start_double):
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        first = await read(backend)
        double.faults.append(Fault("aborted"))
        with pytest.raises(BackendError):
            await read(backend)
        sizes(double)
        double.faults.clear()
        assert first == await read(backend)
    assert [1, 3] == sizes(double)


async def read_along(backend, prefix=PREFIX, count=1):
    """What announced branches used, what SGLang said that the first reused, and the answers."""
    async with backend.prefix(prefix, key=str(prefix[0]), branches=count) as warm:
        readings, _ = await warm.read(BRANCHES[:count])
    counts = [(one.prompt_tokens, one.output_tokens) for one in (warm.warm_up, *readings)]
    return counts, readings[0].cached_tokens, [one.logprobs for one in readings]


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_few_branches_of_a_short_prefix_take_one_call_and_count_as_with_a_warm_up(start_double, frontend, count):
    double = await start_double(frontend=frontend)
    async with connected(double) as backend:
        counts, _, logprobs = await read_along(backend, count=count)
        assert [count] == sizes(double)
        _, after_a_warm_up = await read(backend)
        assert [1, 3] == sizes(double)
    assert [(130, 1), *[(132, 1)] * count] == counts
    assert after_a_warm_up[:count] == logprobs


@pytest.mark.parametrize(("tokens", "calls"), [(511, [3]), (512, [1, 3])])
async def test_a_prefix_of_which_much_would_be_computed_again_is_read_first(start_double, tokens, calls):
    """Three branches compute a cold prefix three times: twice more than is needed."""
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        await read_along(backend, range(100, 100 + tokens), count=3)
    assert calls == sizes(double)


@pytest.mark.parametrize("count", [1, 3])
async def test_a_state_that_few_branches_ask_about_again_is_read_by_itself_once(start_double, count):
    """Recurrent layers are resumed from checkpoints, and the first branches may have left none within the prefix."""
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        first, reused, _ = await read_along(backend, count=count)
        assert (0, [count]) == (reused, sizes(double))
        assert (first, [1, count]) == ((await read_along(backend, count=count))[0], sizes(double))
        assert (first, [count]) == ((await read_along(backend, count=count))[0], sizes(double))
        await read_along(backend, PREFIX[1:], count=count)
        assert [count] == sizes(double)


async def test_a_single_branch_tells_what_sglang_reused(start_double):
    """A prompt that begins like one that came before: SGLang finds what they share."""
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        await read_along(backend)
        _, reused, _ = await read_along(backend, PREFIX[:100])
    assert 100 == reused


async def test_a_single_branch_that_reuses_nothing_says_nothing_about_others(start_double):
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        await read(backend)
        await read_along(backend, PREFIX[1:])
        sizes(double)
        await read(backend)
    assert [3] == sizes(double)


async def test_a_held_prefix_that_is_gone_when_a_single_branch_comes_is_not_trusted(start_double):
    double = await start_double(frontend="python")
    async with connected(double) as backend:
        await read(backend)
        double.tree = type(double.tree)()
        await read_along(backend)
        sizes(double)
        await read(backend)
    assert [1, 3] == sizes(double)


def test_what_was_read_along_is_forgotten_in_time(warmth):
    assert [True, False] == [warmth.may_read_along("state") for _ in range(2)]
    assert all(warmth.may_read_along(f"state {number}") for number in range(MEMORY // KEY_BYTES))
    assert warmth.may_read_along("state")
