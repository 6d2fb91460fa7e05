"""Writers of prompts for models of several kinds."""

from __future__ import annotations

import httpx
import pytest
from chatml_model import CHATML, chat_template, chatml_tokenizer
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from openjev_core.backends.protocol import ChatTemplate
from openjev_core.prompts.chat import prompt_writer


@pytest.fixture(scope="session")
def writer_for():
    """Template source to writer, on the small ChatML tokenizer."""
    return lambda source: prompt_writer(chatml_tokenizer(), chat_template(source))


@pytest.fixture(scope="session")
def writer(writer_for):
    """The writer for the template that shows everything."""
    return writer_for(CHATML)


class TextFile(SingleFileSnapshotExtension):
    """Bytes as they are: line ends are part of a prompt."""

    _write_mode = WriteMode.BINARY
    file_extension = "txt"


@pytest.fixture
def pinned(snapshot):
    """Compares with a file of bytes: ``pinned(name=...) == found``."""
    return snapshot.use_extension(TextFile)


@pytest.fixture(scope="session")
def demo_template(demo_engine):
    """The demo model's chat template."""
    headers = {"Authorization": f"Bearer {demo_engine.server.api_key}"}
    props = httpx.get(f"{demo_engine.server.url}/props", headers=headers, timeout=30).json()
    return ChatTemplate(props["chat_template"], props.get("bos_token") or "", props.get("eos_token") or "")
