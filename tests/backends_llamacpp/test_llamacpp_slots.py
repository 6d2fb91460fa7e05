"""What a slot's cache holds, and that no answer depends on it.

The double's numbers show how a prompt was split over calls (see ``llamacpp_double``): equal numbers are equal splits.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llamacpp_double import LlamaCppDouble

from openjev_core.backends.llamacpp.backend import LlamaCppBackend, spaced_order
from openjev_core.backends.llamacpp.client import LlamaCppClient
from openjev_core.backends.llamacpp.slot import Slot, SlotPool
from openjev_core.backends.protocol import Branch
from openjev_core.errors import BackendError, BackendUnavailable

pytestmark = pytest.mark.anyio

PREFIX = tuple(range(100, 160))
OTHER = (*PREFIX[:40], 7, 8, 9)
LABELS = (11, 12, 13)
ALIKE = [Branch((5, 6, 20), LABELS), Branch((5, 6, 21, 22), LABELS), Branch((5, 30), LABELS), Branch((9,), LABELS)]

COMMON = tuple(range(200, 220))
TAGS = [Branch((*COMMON, 1, 2), LABELS), Branch((*COMMON, 1, 3), LABELS), Branch((*COMMON, 4), LABELS)]


def backend_on(double, *, slots=1, max_prompt_tokens=1000):
    client = LlamaCppClient(double)
    return LlamaCppBackend(
        client=client,
        vocab_size=1000,
        max_prompt_tokens=max_prompt_tokens,
        pool=SlotPool([Slot(client, number) for number in range(slots)]),
        release=client.aclose,
    )


async def read(backend, branches, *, prefix=PREFIX, shared=0):
    async with backend.prefix(prefix, key="key") as warm:
        readings, further = await warm.read(branches, shared)
        return readings, [warm.warm_up, *further]


def cold_reads(double):
    """The prompts that were read from their first token on."""
    return [body["prompt"] for body in double.asked if not body["cache_prompt"]]


async def alone(branch, *, prefix=PREFIX):
    """What a branch's reading is on a server that has done nothing else."""
    backend = backend_on(LlamaCppDouble())
    ((reading,), _) = await read(backend, [branch], prefix=prefix)
    await backend.aclose()
    return reading


async def test_branches_are_read_behind_the_prefix_wherever_they_stand():
    double = LlamaCppDouble()
    readings, (warm_up,) = await read(backend_on(double), ALIKE)
    assert [await alone(branch) for branch in ALIKE] == readings
    assert (60, 0, 1) == (warm_up.prompt_tokens, warm_up.cached_tokens, warm_up.output_tokens)
    assert [(63, 60), (64, 60), (62, 60), (61, 60)] == [(r.prompt_tokens, r.cached_tokens) for r in readings]
    # The prefix once, each suffix, and a token to part the two of three that begin alike and cannot all stand apart.
    assert 60 + (3 + 4 + 2 + 1) + 1 == double.computed


async def test_branches_that_begin_alike_are_read_apart():
    double = LlamaCppDouble()
    backend = backend_on(double)
    branches = [Branch((first, second), LABELS) for first in (5, 6, 7) for second in (1, 2)]
    readings, _ = await read(backend, branches)
    assert [await alone(branch) for branch in branches] == readings
    assert 60 + 6 * 2 == double.computed


async def test_a_branch_that_begins_as_the_last_one_read_waits_for_another():
    double = LlamaCppDouble()
    backend = backend_on(double)
    await read(backend, [Branch((5, 1), LABELS)])
    await read(backend, [Branch((5, 2), LABELS), Branch((6, 1), LABELS)])
    assert 60 + 2 + 2 + 2 == double.computed


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(0, 5))
def test_apart_leaves_no_more_alike_than_there_have_to_be(tokens, before):
    order = spaced_order(tokens, before)
    assert sorted(order) == list(range(len(tokens)))
    placed = [tokens[index] for index in order]
    found = sum(one == other for one, other in itertools.pairwise([before, *placed]))
    assert found == least_alike(tokens, before)


def least_alike(tokens, before):
    """How many have to stand behind their like: those of a token that outnumber the places between the others."""
    places = {token: len(tokens) - count + (token != before) for token, count in Counter(tokens).items()}
    return max((max(0, tokens.count(token) - room) for token, room in places.items()), default=0)


token = st.integers(0, 3)
suffixes = st.lists(st.lists(token, min_size=1, max_size=4).map(tuple), min_size=1, max_size=5)


@given(
    st.lists(st.tuples(st.sampled_from([PREFIX, OTHER, PREFIX[:30]]), suffixes, st.booleans()), max_size=4), suffixes
)
async def test_no_answer_depends_on_what_was_read_before(history, asked):
    branches = [Branch(suffix, LABELS) for suffix in asked]
    backend = backend_on(LlamaCppDouble())
    for prefix, earlier, check in history:
        await read(backend, [Branch(suffix, LABELS) for suffix in earlier], prefix=prefix)
        if check:
            await backend.check()
    readings, warm_ups = await read(backend, branches)
    fresh_readings, fresh_warm_ups = await read(backend_on(LlamaCppDouble()), branches)
    assert fresh_readings == readings
    assert [w.prompt_tokens for w in fresh_warm_ups] == [w.prompt_tokens for w in warm_ups]
    assert [await alone(branch) for branch in branches] == readings


async def test_a_prefix_that_a_slot_still_holds_is_not_computed_again_but_counted():
    double = LlamaCppDouble()
    backend = backend_on(double)
    first, (cold,) = await read(backend, ALIKE)
    computed = double.computed
    second, (warm,) = await read(backend, ALIKE)
    assert first == second
    # The first branch that begins with what was read last has to be parted from it.
    assert computed - 60 + 1 == double.computed - computed
    assert (60, 0, 1) == (cold.prompt_tokens, cold.cached_tokens, cold.output_tokens)
    assert (60, 60, 1) == (warm.prompt_tokens, warm.cached_tokens, warm.output_tokens)


class TestSharedBeginnings:
    """Branches of one question that begin alike for long."""

    async def test_are_read_once(self):
        double = LlamaCppDouble()
        readings, (_, further) = await read(backend_on(double), TAGS, shared=20)
        assert [(82, 80), (82, 80), (81, 80)] == [(r.prompt_tokens, r.cached_tokens) for r in readings]
        assert (80, 60, 1) == (further.prompt_tokens, further.cached_tokens, further.output_tokens)
        assert 60 + 20 + 2 + 2 + 1 == double.computed

    async def test_do_not_move_other_questions(self):
        double = LlamaCppDouble()
        backend = backend_on(double)
        question = Branch((*COMMON[:10], 7), LABELS)
        expected = await alone(question)
        async with backend.prefix(PREFIX, key="key") as warm:
            shared_first, _ = await warm.read(TAGS, 20)
            ((then,), _) = await warm.read([question])
            shared_again, _ = await warm.read(TAGS, 20)
        assert expected == then
        assert shared_first == shared_again
        assert [list(PREFIX)] == cold_reads(double)

    async def test_that_would_not_pay_are_read_with_each_branch(self):
        readings, warm_ups = await read(backend_on(LlamaCppDouble()), ALIKE[:2], shared=2)
        assert 1 == len(warm_ups)
        assert [await alone(branch) for branch in ALIKE[:2]] == readings

    async def test_leave_each_branch_a_token_of_its_own(self):
        branches = [Branch((*COMMON,), LABELS), Branch((*COMMON, 3), LABELS)]
        readings, _ = await read(backend_on(LlamaCppDouble()), branches, shared=20)
        assert [(80, 79), (81, 79)] == [(r.prompt_tokens, r.cached_tokens) for r in readings]

    async def test_survive_a_health_check_in_between(self):
        double = LlamaCppDouble()
        backend = backend_on(double)
        expected, _ = await read(backend, TAGS, shared=20)
        async with backend.prefix(PREFIX, key="key") as warm:
            double.hold = asyncio.Event()
            reading = asyncio.create_task(warm.read(TAGS, 20))
            await asyncio.sleep(0)
            checking = asyncio.create_task(backend.check())
            await asyncio.sleep(0)
            double.hold.set()
            await checking
            assert (expected, 1) == ((got := await reading)[0], len(got[1]))


async def test_two_reads_at_once_are_read_in_turn():
    double = LlamaCppDouble()
    backend = backend_on(double)
    async with backend.prefix(PREFIX, key="key") as warm:
        both = await asyncio.gather(warm.read(TAGS, 20), warm.read(ALIKE))
    assert [list(PREFIX)] == cold_reads(double)
    assert [await alone(branch) for branch in ALIKE] == both[1][0]
    assert (await read(backend, TAGS, shared=20))[0] == both[0][0]


async def test_a_slot_that_another_client_used_is_warmed_again():
    double = LlamaCppDouble()
    backend = backend_on(double)
    async with backend.prefix(PREFIX, key="key") as warm:
        (before, _) = await warm.read(ALIKE)
        double.foreign_call(0, [1, 2, 3])
        (after, _) = await warm.read(ALIKE)
    assert before == after


@pytest.mark.parametrize("keeps", ["whole", "nothing"])
async def test_a_model_that_cannot_be_cut_back_is_found_out_and_read_whole(keeps):
    double = LlamaCppDouble(keeps=keeps)
    backend = backend_on(double)
    await backend.prove_reuse()
    assert not backend.reuses
    readings, (warm_up,) = await read(backend, ALIKE)
    assert [0, 0, 0, 0] == [reading.cached_tokens for reading in readings]
    assert (0, 0) == (warm_up.prompt_tokens, warm_up.output_tokens)
    assert readings[::-1] == (await read(backend, ALIKE[::-1]))[0]


async def test_a_model_that_can_be_cut_back_is_found_out_too():
    backend = backend_on(LlamaCppDouble())
    await backend.prove_reuse()
    assert backend.reuses


async def test_a_prefix_that_is_lost_with_each_branch_in_spite_of_the_proof_is_read_again_for_the_next():
    readings, _ = await read(backend_on(LlamaCppDouble(keeps="whole")), ALIKE)
    assert [await alone(branch) for branch in ALIKE] == readings


@pytest.mark.parametrize("shared", [0, 20])
async def test_a_prefix_that_is_never_kept_in_spite_of_the_proof_still_gets_answers(caplog, shared):
    readings, _ = await read(backend_on(LlamaCppDouble(keeps="nothing")), TAGS, shared=shared)
    whole = backend_on(LlamaCppDouble())
    whole.reuses = False
    assert (await read(whole, TAGS))[0] == readings
    assert ["llama.cpp does not keep the prefix in slot 0; reading whole prompts instead"] == caplog.messages


async def test_evaluations_get_the_slot_in_the_order_in_which_they_ask():
    double = LlamaCppDouble()
    backend = backend_on(double)
    double.hold = asyncio.Event()
    tasks = []
    for number in range(5):
        tasks.append(asyncio.create_task(read(backend, [Branch((number,), LABELS)], prefix=(500 + number, 1))))
        await asyncio.sleep(0)
    double.hold.set()
    await asyncio.gather(*tasks)
    assert [500 + number for number in range(5) for _ in range(2)] == [body["prompt"][0] for body in double.asked]


async def test_several_slots_keep_a_prefix_each():
    double = LlamaCppDouble()
    backend = backend_on(double, slots=2)
    for prefix in (PREFIX, OTHER, OTHER, PREFIX, PREFIX):
        await read(backend, ALIKE[:1], prefix=prefix)
    assert [list(PREFIX), list(OTHER)] == cold_reads(double)
    assert {0, 1} == {body["id_slot"] for body in double.asked}


async def test_a_cancelled_evaluation_gives_its_slot_to_the_next():
    double = LlamaCppDouble()
    backend = backend_on(double)
    double.hold = asyncio.Event()
    task = asyncio.create_task(read(backend, ALIKE))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    double.hold = None
    readings, (warm_up,) = await read(backend, ALIKE)
    assert 0 == warm_up.cached_tokens
    assert [await alone(branch) for branch in ALIKE] == readings


async def test_a_cancelled_branch_leaves_the_prefix_usable():
    double = LlamaCppDouble()
    backend = backend_on(double)
    async with backend.prefix(PREFIX, key="key") as warm:
        double.hold = asyncio.Event()
        task = asyncio.create_task(warm.read(ALIKE))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        double.hold = None
        double.complete({"prompt": [*PREFIX, 5, 6], "id_slot": 0, "cache_prompt": True})  # the server got that far
        readings, _ = await warm.read(ALIKE)
    assert [await alone(branch) for branch in ALIKE] == readings
    assert [] == [body for body in double.asked[1:] if not body["cache_prompt"]]


class TestChecks:
    """Health checks."""

    async def test_leave_a_held_prefix_where_it_is(self):
        double = LlamaCppDouble()
        backend = backend_on(double)
        await read(backend, ALIKE)
        computed = double.computed
        await backend.check()
        assert 1 == double.computed - computed
        _, (warm_up,) = await read(backend, ALIKE)
        assert 60 == warm_up.cached_tokens

    async def test_that_find_another_clients_prompt_do_not_pass_it_off_as_the_prefix(self):
        double = LlamaCppDouble()
        backend = backend_on(double)
        await read(backend, ALIKE)
        double.foreign_call(0, list(PREFIX[:30]))
        await backend.check()
        readings, _ = await read(backend, ALIKE)
        assert [await alone(branch) for branch in ALIKE] == readings

    async def test_settle_for_the_servers_word_while_a_long_call_runs(self, monkeypatch):
        monkeypatch.setattr("openjev_core.backends.llamacpp.backend.CHECK_WAIT", 0.01)
        double = LlamaCppDouble()
        backend = backend_on(double)
        double.hold = asyncio.Event()
        task = asyncio.create_task(read(backend, ALIKE))
        await asyncio.sleep(0.01)
        await backend.check()
        assert 1 == len(double.asked)
        double.hold.set()
        await task

    @pytest.mark.parametrize("broken_off", [True, False])
    async def test_wait_for_the_end_of_a_call_only_where_one_was_broken_off(self, broken_off):
        double = LlamaCppDouble()
        backend = backend_on(double)
        double.hold = asyncio.Event()
        if broken_off:
            task = asyncio.create_task(read(backend, ALIKE))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        double.too_late = True
        double.hold.set()
        if broken_off:
            await backend.check()
        else:
            with pytest.raises(BackendUnavailable, match="did not answer within 2"):
                await backend.check()

    async def test_fail_where_the_answer_is_no_distribution(self):
        double = LlamaCppDouble()
        double.alter = lambda answer: answer.pop("completion_probabilities", None)
        with pytest.raises(BackendError, match="no probabilities"):
            await backend_on(double).check()

    async def test_fail_where_a_busy_server_says_that_it_is_not_well(self, monkeypatch):
        monkeypatch.setattr("openjev_core.backends.llamacpp.backend.CHECK_WAIT", 0.01)
        double = LlamaCppDouble()
        double.health = b'{"status": "error"}'
        backend = backend_on(double)
        async with backend.pool.slots[0].calls:
            with pytest.raises(BackendUnavailable, match="its /health does not say ok"):
                await backend.check()


@pytest.mark.parametrize(
    ("prefix", "branch", "complaint"),
    [
        ((), Branch((1,), LABELS), "at least one token"),
        ((1000,), Branch((1,), LABELS), "outside the vocabulary of 1000"),
        ((-1,), Branch((1,), LABELS), "outside the vocabulary"),
        ((1,), Branch((1000,), LABELS), "outside the vocabulary"),
        ((1,), Branch((1,), (1, 1000)), "outside the vocabulary"),
        ((1,), Branch((), LABELS), "at least one token"),
        ((1,), Branch((1,), ()), "one label"),
        ((1,), Branch((1,), (3, 3)), "one label twice"),
        ((1,) * 21, Branch((1,), LABELS), "a prompt of 21 tokens; llama.cpp takes at most 20"),
        ((1,) * 18, Branch((1, 2, 3), LABELS), "a prompt of 21 tokens"),
    ],
)
async def test_what_the_server_would_refuse_is_never_sent(prefix, branch, complaint):
    double = LlamaCppDouble()
    with pytest.raises(BackendError, match=complaint):
        await read(backend_on(double, max_prompt_tokens=20), [branch], prefix=prefix)
    assert [] == [body for body in double.asked if body["prompt"] != list(prefix)]
