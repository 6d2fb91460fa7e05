"""What is still to be done when an engine closes."""

from __future__ import annotations

import threading
import time

import pytest
from attrs import evolve
from scripted_backend import scripted_engine

from openjev_core.engine import observers, opening
from openjev_core.engine.observers import Observers

pytestmark = pytest.mark.anyio

NOUL = {"q": {"type": "noul", "instructions": "Is it?"}}


async def test_observers_hear_of_the_last_evaluation(monkeypatch):
    """A command that asks once would otherwise end before its audit trail is written."""
    told = []

    def slow(finished):
        time.sleep(0.05)
        told.append(finished)

    engine = evolve(scripted_engine(), observers=Observers([slow], "m"))
    monkeypatch.setattr(opening, "engine_for", lambda *_: engine)

    async def model(*_):
        return engine.model

    monkeypatch.setattr(opening, "open_model", model)
    async with opening.open_engine() as opened:
        evaluation = await opened.evaluate(state="S.", questions=NOUL)
    assert [evaluation.answers] == [finished.answers for finished in told]


async def test_an_observer_that_hangs_does_not_keep_an_engine_from_closing(monkeypatch, caplog):
    monkeypatch.setattr(observers, "FAREWELL_SECONDS", 0.01)
    release = threading.Event()
    engine = evolve(scripted_engine(), observers=Observers([lambda _: release.wait(60)], "m"))
    await engine.evaluate(state="S.", questions=NOUL)
    await engine.aclose()
    release.set()
    assert "1 evaluations were not told" in caplog.text
