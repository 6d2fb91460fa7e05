"""Connecting is not cancelled with the call that asked for it."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from openjev_core.backends.sglang.connector import PatientConnector

pytestmark = pytest.mark.anyio


class Handler:
    closed = False

    def close(self):
        self.closed = True


@pytest.fixture
async def connecting(monkeypatch):
    """What aiohttp's own connecting returns, to be settled by the test."""
    future = asyncio.get_running_loop().create_future()

    async def connect(self, *args):
        return await future

    monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", connect)
    return future


async def test_a_connection_is_handed_over(connecting):
    async with PatientConnector() as connector:
        call = asyncio.create_task(connector._create_connection("request", [], None))
        connecting.set_result(handler := Handler())
        assert handler is await call
        assert not handler.closed


async def test_a_cancelled_call_leaves_connecting_alone_and_its_connection_is_closed(connecting):
    async with PatientConnector() as connector:
        call = asyncio.create_task(connector._create_connection("request", [], None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not connecting.cancelled()
        connecting.set_result(handler := Handler())
        await asyncio.sleep(0.01)
        assert handler.closed


async def test_connecting_that_fails_for_nobody_is_silent(connecting, caplog):
    async with PatientConnector() as connector:
        call = asyncio.create_task(connector._create_connection("request", [], None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        connecting.set_exception(OSError("refused"))
        await asyncio.sleep(0.01)
        assert "" == caplog.text
