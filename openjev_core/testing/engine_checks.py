"""The checks that hold an engine to its contract: it is opened, read, interrupted and asked too much.

They know an engine by the seam alone (:mod:`openjev_core.reader`), so they hold for models and for services.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from itertools import count
from typing import Any

from attrs import evolve, frozen

from openjev_core.distribution import average_orders
from openjev_core.engine.opening import open_model
from openjev_core.engine_type import EngineType
from openjev_core.errors import BackendError, RequestError
from openjev_core.plugins.contract import engine_fault
from openjev_core.plugins.problems import raised
from openjev_core.plugins.registry import PluginEntry, Registry
from openjev_core.question import Option, QuestionType, Readout
from openjev_core.reader import Model, PlannedReadout, PreparedQuestion, Session, read_checked
from openjev_core.settings import Settings
from openjev_core.testing.checks import ContractBroken, Finding

NOISE = 0.05
"""How far apart two probabilities of one read may be: on quantized weights, how calls are batched moves them."""
PATIENCE = 120.0
"""Seconds for a read."""
PROMPTLY = 5.0
"""Seconds in which a read that is cancelled has to end."""
PAUSES = (0.0, 0.001, 0.01, 0.1)
"""Seconds after which reads are cancelled."""
MOST = 20_000
"""Readouts after which a question that asks for ever should have been refused."""
HUGE = "word " * 1_000_000

Probabilities = list[tuple[float, ...]]
"""Of one readout, for each of its orders."""


@frozen
class Asked:
    """The question of the checks."""


def readout(text: str, *options: str) -> Readout:
    """A readout of these options."""
    return Readout(text=text, options=tuple(Option(key=option, text=option) for option in options))


TYPE: QuestionType[Any, Any] = QuestionType(
    name="engine-check",
    summary="The readouts by which an engine is checked.",
    api=1,
    question=Asked,
    answer=Asked,
    readouts=lambda _: READOUTS,
    reduce=lambda question, _: question,
)

STATES: tuple[Any, ...] = (
    "I was charged twice, and nobody answers.",
    "",
    {"ticket": {"id": 7, "lines": ["\u00e9\u4e2d", None, 1.5]}},
    [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "How can I help?"}],
)
READOUTS: tuple[Readout, ...] = (
    readout("Which team should handle this?", "Payments and refunds", "Bugs and outages", "New subscriptions"),
    readout("Is the writer angry?", "yes", "no"),
    readout("Which number is named?", *[f"number {n}" for n in range(6)]),
)
TEAM = READOUTS[0]
FORWARD, ROTATED = (0, 1, 2), (2, 0, 1)


async def check_engine(engine: EngineType, settings: Settings | None = None, *, noise: float = NOISE) -> None:
    """Prove an engine against its contract. It is opened once, read some dozens of times, and closed.

    Args:
        engine: The engine.
        settings: What it is opened with, such as its address and its own settings.
        noise: How far apart two probabilities of one read may be.

    Raises:
        ContractBroken: It breaks the contract. Lists what was found.
        StartupError: It does not open.
    """
    if fault := engine_fault(engine):
        raise ContractBroken(f"engine {engine.name!r}", [Finding("record", fault, "mend the record first")])
    settings = evolve(settings or Settings(), engine=engine.name)
    entry = PluginEntry(name=engine.name, distribution="checked", version="0", status="loaded", engines=(engine,))
    found: list[Finding] = []
    async with AsyncExitStack() as stack:
        model = await open_model(settings, Registry((entry,)), lambda _: None, stack)
        for rule, check in RULES.items():
            try:
                found.extend([Finding(rule, msg, fix) for msg, fix in await check(model, noise)])
            except TimeoutError:
                found.append(Finding(rule, f"it did not end within {PATIENCE:g} s", "end, or raise BackendError"))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is the finding
                fix = "raise RequestError before anything is read, BackendError where no answer can be had"
                found.append(Finding(rule, f"it raised {raised(error)}", fix))
    if found:
        raise ContractBroken(f"engine {engine.name!r}", found)


def planned(*readouts: Readout) -> list[PlannedReadout]:
    """Readouts, each in the given order alone."""
    return [PlannedReadout(one, (tuple(range(len(one.options))),)) for one in readouts]


async def opened(model: Model, state: Any, readouts: Sequence[PlannedReadout]) -> tuple[Session, PreparedQuestion]:
    """A session on a state, with readouts prepared; beside the event loop, where the server does it too."""

    def prepare() -> tuple[Session, PreparedQuestion]:
        session = model.reader.session(state)
        return session, session.prepare(TYPE, iter(readouts))

    return await asyncio.to_thread(prepare)


async def read(session: Session, question: PreparedQuestion) -> list[Probabilities]:
    """The probabilities of a question's readouts."""
    async with asyncio.timeout(PATIENCE), session:
        (found,) = await read_checked(session, [question])
    return [[average_orders([order.logprobs], 1.0) for order in one] for one in found]


async def read_of(model: Model, state: Any, readouts: Sequence[PlannedReadout]) -> list[Probabilities]:
    """As :func:`read`, on a session of its own."""
    return await read(*await opened(model, state, readouts))


def furthest(one: Sequence[Probabilities], other: Sequence[Probabilities]) -> float:
    """The largest difference of two probabilities of one read."""
    pairs = zip(one, other, strict=True)
    orders = [pair for these, those in pairs for pair in zip(these, those, strict=True)]
    return max(abs(p - q) for these, those in orders for p, q in zip(these, those, strict=True))


Told = list[tuple[str, str]]
"""What was found and how to mend it."""


async def each_option_has_one_number(model: Model, noise: float) -> Told:
    """Whatever the state is: one log-probability per option, a label per option, the same numbers when read again."""
    told: Told = []
    for state in STATES:
        try:
            session, question = await opened(model, state, planned(*READOUTS))
        except RequestError as error:
            if isinstance(state, str):
                told.append((f"it refuses the state {state!r}: {error}", "take any text as a state"))
            continue
        first = await read(session, question)
        for one in question.readouts:
            wanted = [len(one.planned.readout.options)] * len(one.planned.orders)
            if [len(set(labels)) for labels in one.labels] != wanted:
                told.append(("a readout's labels are not one for each option", "give a label of its own to each"))
        keys = [key for one in question.readouts for key in one.keys]
        if len(set(keys)) != len(keys):
            told.append(("two readouts have one key", "make keys of all that is read"))
        usage = session.usage
        if min(usage.input_tokens, usage.output_tokens, usage.branches, usage.cached_tokens or 0) < 0:
            told.append((f"its usage has a count below zero: {usage}", "count what was read"))
        if (apart := furthest(first, await read_of(model, state, planned(*READOUTS)))) > noise:
            told.append(
                (f"one read gave numbers {apart:.3f} apart when read again", "read the same, or allow more noise")
            )
    return told


async def numbers_follow_their_options(model: Model, noise: float) -> Told:
    """What is shown in one order reads the same, whichever order it was given in, and belongs to its options."""
    options = [TEAM.options[position] for position in ROTATED]
    as_shown = readout(TEAM.text, *[option.text for option in options])
    rotated, given = await read_of(
        model, STATES[0], [PlannedReadout(TEAM, (FORWARD, ROTATED)), PlannedReadout(as_shown, (FORWARD,))]
    )
    by_option = tuple(rotated[1][position] for position in ROTATED)
    if (apart := furthest([[by_option]], [given])) > noise:
        fix = "give log-probabilities in the options' given order, not in the order shown"
        return [(f"options shown in one order got numbers {apart:.3f} apart", fix)]
    return []


async def a_session_is_entered_again(model: Model, noise: float) -> Told:
    """A type that asks on: more is prepared on a session that was read and left, which is then entered again."""
    session, question = await opened(model, STATES[0], planned(TEAM))
    first = await read(session, question)
    more = await asyncio.to_thread(session.prepare, TYPE, iter(planned(*READOUTS[1:])))
    second = await read(session, more)
    alone = await read_of(model, STATES[0], planned(*READOUTS))
    if (apart := furthest([*first, *second], alone)) > noise:
        return [(f"readouts of two rounds got numbers {apart:.3f} apart from those of one", "keep no round's results")]
    return []


async def no_call_gets_anothers_answer(model: Model, noise: float) -> Told:
    """Sessions at once, some of which are cancelled, each read what they read alone."""
    cases = [
        (f"{state} Case {number}.", planned(*READOUTS[number % 3 :]))
        for number, state in enumerate([STATES[0], "All is well, thank you."] * 2)
    ]
    alone = [await read_of(model, *case) for case in cases]
    given_up = [asyncio.create_task(read_of(model, *case)) for case in cases]
    together = [asyncio.create_task(read_of(model, *case)) for case in cases]
    await asyncio.sleep(PAUSES[1])
    for task in given_up:
        task.cancel()
    found = await asyncio.gather(*together)
    await asyncio.gather(*given_up, return_exceptions=True)
    apart = max(furthest(one, other) for one, other in zip(alone, found, strict=True))
    if apart > noise:
        return [(f"reads at once got numbers {apart:.3f} apart from those read alone", "match answers to their calls")]
    return []


async def cancelling_ends_a_read(model: Model, noise: float) -> Told:
    """A read that is cancelled ends at once, and the engine reads on as before."""
    before = await read_of(model, STATES[0], planned(*READOUTS))
    for pause in PAUSES:
        task = asyncio.create_task(read_of(model, f"{STATES[0]} After {pause}.", planned(*READOUTS)))
        await asyncio.sleep(pause)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=PROMPTLY)
        if not done:
            return [(f"a read went on for {PROMPTLY:g} s after it was cancelled", "let CancelledError pass")]
    if (apart := furthest(before, await read_of(model, STATES[0], planned(*READOUTS)))) > noise:
        return [
            (f"after reads that were cancelled, numbers are {apart:.3f} apart", "leave nothing of a cancelled read")
        ]
    return []


async def what_is_too_much_is_refused(model: Model, noise: float) -> Told:  # noqa: ARG001 - a rule's form
    """Readouts without end are refused while they are prepared; a huge state is read or refused, and nothing else."""
    taken = 0

    def endless() -> Iterator[PlannedReadout]:
        nonlocal taken
        for taken in count(1):
            if taken > MOST:
                return
            yield from planned(readout(f"Is it {taken}?", "yes", "no"))

    told: Told = []
    try:
        session = await asyncio.to_thread(model.reader.session, STATES[0])
        await asyncio.to_thread(session.prepare, TYPE, endless())
        fix = "take readouts one by one, and raise RequestError.at(readout.loc, ...) at a limit"
        told.append((f"it prepared {MOST} readouts of a question without a limit", fix))
    except RequestError:
        pass
    with suppress(RequestError, BackendError):
        await read_of(model, HUGE, planned(TEAM))
    return told


async def it_says_how_it_is(model: Model, noise: float) -> Told:  # noqa: ARG001 - a rule's form
    """Its check passes while it works, and what it shows is what is read."""
    async with asyncio.timeout(PATIENCE):
        await model.check()
    session, question = await opened(model, STATES[0], planned(*READOUTS))
    branches = session.shown({"q": question}).get("branches", ())
    if len(branches) != len(READOUTS):
        return [
            (f"it shows {len(branches)} branches of {len(READOUTS)}", "show a branch for each order of each readout")
        ]
    return []


RULES: dict[str, Callable[[Model, float], Awaitable[Told]]] = {
    "reading": each_option_has_one_number,
    "orders": numbers_follow_their_options,
    "rounds": a_session_is_entered_again,
    "at once": no_call_gets_anothers_answer,
    "cancelling": cancelling_ends_a_read,
    "limits": what_is_too_much_is_refused,
    "health": it_says_how_it_is,
}
