"""The demo model, loaded once for all tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import anyio.from_thread
import pytest
from attrs import frozen

from openjev_core.backends.http_client import HttpClient
from openjev_core.backends.llamacpp.client import SERVER, LlamaCppClient, Vocabulary
from openjev_core.backends.llamacpp.embedded import EmbeddedServer, default_threads, start_embedded
from openjev_core.backends.llamacpp.gguf import GgufHeader, read_header
from openjev_core.backends.llamacpp.model import served_model
from openjev_core.backends.llamacpp.model_file import ModelFile, find_model
from openjev_core.backends.llamacpp.tokenizer import LlamaCppTokenizer, control_tokens_from_header
from openjev_core.backends.protocol import LoadedModel
from openjev_core.settings import Settings


@frozen
class DemoEngine:
    """The embedded engine with the demo model, and what is known of its file."""

    server: EmbeddedServer
    file: ModelFile
    header: GgufHeader


@pytest.fixture(scope="session")
def demo_engine() -> Iterator[DemoEngine]:
    file = find_model(None, None, lambda _: None)
    header = read_header(file.path)
    with anyio.from_thread.start_blocking_portal() as portal:
        server = portal.call(
            lambda: start_embedded(file.path, context=header.context_length, threads=default_threads())
        )
        yield DemoEngine(server, file, header)
        portal.call(server.close)


@pytest.fixture(scope="session")
def demo_tokenizer(demo_engine: DemoEngine) -> Iterator[LlamaCppTokenizer]:
    """The demo model's tokenizer, for tests of any kind."""
    vocabulary = Vocabulary(demo_engine.server.url, demo_engine.server.api_key)
    header = demo_engine.header
    yield LlamaCppTokenizer(vocabulary, len(header.tokens), control_tokens_from_header(header, vocabulary))
    vocabulary.close()


@pytest.fixture
async def demo_model(demo_engine: DemoEngine) -> AsyncIterator[LoadedModel]:
    """The demo model, for one async test: connections belong to a test's event loop, the engine to all."""
    server = demo_engine.server
    async with AsyncExitStack() as resources:
        client = LlamaCppClient(HttpClient(SERVER, server.url, server.api_key))
        resources.push_async_callback(client.aclose)
        yield await served_model(
            client, server.api_key, Settings(), resources, file=demo_engine.file, header=demo_engine.header
        )
