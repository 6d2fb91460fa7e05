"""Slots: bounded, fair between evaluations, none lost to a cancellation."""

from __future__ import annotations

import asyncio
import random

import pytest

from openjev_core.backends.slots import Slots

pytestmark = pytest.mark.anyio


def waiting(party, wanted):
    """A wait that has begun."""
    return asyncio.ensure_future(party.acquire(wanted))


async def turn():
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("size", "granted"), [(64, 64), (10, 10)])
async def test_alone_an_evaluation_gets_all_that_it_can_use_and_no_more_than_there_is(size, granted):
    slots = Slots(size)
    assert granted == await slots.party().acquire(64)
    assert slots.free == 0


@pytest.mark.parametrize(
    ("wanted", "granted"),
    [
        ([64, 64, 64], [4, 4, 4]),
        ([1, 64, 64], [1, 5, 6]),  # what one does not need goes to the others
    ],
)
async def test_what_becomes_free_is_divided_among_those_who_wait(wanted, granted):
    slots = Slots(12)
    first = slots.party()
    await first.acquire(12)
    waits = [waiting(slots.party(), count) for count in wanted]
    await turn()
    first.release(12)
    assert granted == sorted(await asyncio.gather(*waits))


async def test_the_party_that_holds_the_fewest_is_next():
    slots = Slots(4)
    greedy, modest = slots.party(), slots.party()
    assert await greedy.acquire(4) == 4
    more, one = waiting(greedy, 10), waiting(modest, 1)
    await turn()
    greedy.release(1)
    await turn()
    assert (one.done(), more.done()) == (True, False)
    modest.release(1)
    assert await more == 1


async def test_those_who_hold_alike_are_served_in_order():
    slots = Slots(1)
    first = slots.party()
    await first.acquire(1)
    waits = [waiting(slots.party(), 1) for _ in range(3)]
    await turn()
    first.release(1)
    await turn()
    assert [wait.done() for wait in waits] == [True, False, False]


async def test_a_cancelled_wait_leaves_the_queue():
    slots = Slots(1)
    first, second, third = slots.party(), slots.party(), slots.party()
    await first.acquire(1)
    given_up, kept = waiting(second, 1), waiting(third, 1)
    await turn()
    given_up.cancel()
    await turn()
    first.release(1)
    assert await kept == 1
    assert slots.waiting == []


async def test_a_grant_that_meets_a_cancellation_is_given_back():
    slots = Slots(1)
    first, second = slots.party(), slots.party()
    await first.acquire(1)
    wait = waiting(second, 1)
    await turn()
    first.release(1)
    wait.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait
    assert (slots.free, second.held) == (1, 0)


async def test_two_waits_of_one_party():
    slots = Slots(4)
    party = slots.party()
    await party.acquire(4)
    waits = [waiting(party, 2), waiting(party, 2)]
    await turn()
    party.release(4)
    assert await asyncio.gather(*waits) == [2, 2]
    assert (slots.free, slots.waiting) == (0, [])


@pytest.mark.parametrize("seed", range(5))
async def test_whatever_happens_no_slot_is_lost_or_made(seed):
    rng = random.Random(seed)
    slots = Slots(9)
    most = 0

    async def client():
        nonlocal most
        party = slots.party()
        for _ in range(rng.randrange(1, 4)):
            granted = await party.acquire(rng.randrange(1, 20))
            most = max(most, slots.size - slots.free)
            try:
                await asyncio.sleep(rng.random() * 0.003)
            finally:
                party.release(granted)

    tasks = [asyncio.create_task(client()) for _ in range(60)]
    for task in rng.sample(tasks, 25):
        await asyncio.sleep(rng.random() * 0.001)
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (slots.free, slots.waiting) == (9, [])
    assert most == 9
