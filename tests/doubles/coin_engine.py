"""A plugin of one file that adds an engine: each option is as probable as its settings say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from attrs import evolve, frozen

from openjev_core import (
    Address,
    EngineStart,
    EngineType,
    Model,
    OrderReading,
    hookimpl,
    prompt_model,
    setting,
    setting_values,
)


@frozen(kw_only=True)
class CoinSettings:
    side: str = setting("heads", setting_values.one_of("heads", "tails"), "the side that falls")
    weight: float = setting(0.75, setting_values.positive, "how probable it is")
    spins: bool = setting(False, setting_values.flag, "whether it falls at all")
    token: str | None = setting(None, setting_values.bearer_key, "what it is tossed with", secret=True)
    fault: str = setting("none", setting_values.text, "what it does wrong")


@asynccontextmanager
async def open_coin(start: EngineStart) -> AsyncIterator[Model]:
    from openjev_core.testing import scripted_model  # noqa: PLC0415 - what opening needs

    own = start.own
    start.progress(f"coin: {own.side} at {own.weight:g}, spins {own.spins}, token {own.token}")
    if own.fault == "raises":
        raise ZeroDivisionError("no coin")
    if own.fault == "hangs":
        await asyncio.Event().wait()
    if own.fault == "nothing":
        yield None
        return

    def script(prompt, labels):
        first = own.weight if own.side == "heads" else 1 - own.weight
        return [first, *[(1 - first) / (len(labels) - 1)] * (len(labels) - 1)]

    model = prompt_model(scripted_model(script), start.settings, start.labels)
    yield model if own.fault == "none" else evolve(model, reader=FaultyReader(model.reader, own.fault))


@frozen
class FaultyReader:
    """A reader whose sessions do something wrong."""

    reader: object
    fault: str

    def session(self, state):
        if self.fault == "opening raises":
            raise ZeroDivisionError(state)
        return FaultySession(self.reader.session(state), self.fault)


class FaultySession:
    """A session that passes everything on but what it reads."""

    def __init__(self, session, fault):
        self._session, self._fault = session, fault

    def __getattr__(self, name):
        return getattr(self._session, name)

    async def __aenter__(self):
        await self._session.__aenter__()
        return self

    async def __aexit__(self, *error):
        await self._session.__aexit__(*error)

    def prepare(self, *asked):
        if self._fault == "preparing raises":
            raise ZeroDivisionError("no edge")
        return self._session.prepare(*asked)

    async def read(self, questions):
        found = await self._session.read(questions)
        first = found[0][0]
        match self._fault:
            case "one too few":
                first[0] = OrderReading(first[0].logprobs[:-1])
            case "one order too few":
                first.pop()
            case "one readout too few":
                found[0].pop()
            case "one question too few":
                found.pop()
            case "NaN":
                first[0] = OrderReading((float("nan"), *first[0].logprobs[1:]))
            case "a mass of 2":
                first[0] = OrderReading(first[0].logprobs, 2.0)
            case "no numbers":
                first[0] = OrderReading(tuple("AB"))
            case "reading raises":
                raise ZeroDivisionError("no side")
            case "reading hangs":
                await asyncio.Event().wait()
        return found


async def recognise(address: Address) -> str | None:
    status, _ = await address.page("/coin")
    return "GET /coin" if status == 200 else None


@hookimpl
def openjev_engines() -> Sequence[EngineType]:
    return [EngineType(name="coin.toss", summary="Tosses a coin.", api=1, open=open_coin, settings=CoinSettings)]
