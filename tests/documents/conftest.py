"""A server, as the README tells to start it, on a model that costs nothing."""

from __future__ import annotations

import asyncio
import threading

import pytest
from openjev_process import serving
from sglang_double import SGLangDouble
from tiny_tokenizer import write_tiny_tokenizer


@pytest.fixture(scope="session")
def without_weights(tmp_path_factory):
    """Settings, as an environment, that have every command answered by the double of SGLang."""
    tokenizer = write_tiny_tokenizer(tmp_path_factory.mktemp("models") / "tiny")
    double = SGLangDouble(context_length=40_000, model_path=str(tokenizer), strict=False)
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(double.start(), loop).result(20)
    yield {"OPENJEV_CONNECT": double.url, "OPENJEV_MODEL": str(tokenizer)}
    loop.call_soon_threadsafe(double.stop)
    loop.call_soon_threadsafe(loop.stop)


@pytest.fixture(scope="session")
def served(without_weights):
    """The address of ``openjev serve``."""
    with serving(**without_weights) as child:
        yield child.wait_until_it_listens()
