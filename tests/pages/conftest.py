"""A browser for the pages, servers to point it at, and what every browser test holds the pages to."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from live_server import live_server
from openjev_process import serving
from survey_type import SURVEY
from toy_model import ToyBackend

from openjev_core.plugins.registry import load_registry, registry_of

CHROMIUM = os.environ.get("OPENJEV_TEST_CHROMIUM", "/usr/bin/chromium")
ARTIFACTS = Path(os.environ.get("OPENJEV_TEST_ARTIFACTS", Path(__file__).parents[2] / "test-artifacts"))
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser():
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no Chromium at {CHROMIUM}: apt-get install chromium, or name one in OPENJEV_TEST_CHROMIUM")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - a run without browser tests does without it

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def embedded():
    """``openjev serve`` on the embedded engine, as a user starts it."""
    with serving() as child:
        yield child.wait_until_it_listens()
        child.stop()


@pytest.fixture(scope="module")
def toy():
    """A server that answers at once, with the installed types and a third party's."""
    registry = registry_of(*load_registry().types.values(), SURVEY)
    with live_server(registry=registry, backend=ToyBackend()) as running:
        yield running


@pytest.fixture
def open_page(browser, request):
    """Open pages of a server. The test fails on what they complain about, and on calls to anyone else."""
    contexts, complaints = [], []

    def open_(url, *, width=1360, height=900, scheme="light", wait="#model[data-status]", allowed=(), **options):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        context.set_default_timeout(15_000)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()

        def heard(message):
            if message.type in ("error", "warning") and not any(re.search(a, message.text) for a in allowed):
                complaints.append(f"console {message.type}: {message.text}")

        page.on("console", heard)
        page.on("pageerror", lambda error: complaints.append(f"page error: {error}"))
        page.on("request", lambda r: r.url.startswith(("data:", "blob:")) or home(url, r.url, complaints))
        page.goto(url)
        if wait:
            page.wait_for_selector(wait)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert [] == complaints


def home(url, asked, complaints):
    """Note a request that goes anywhere but to the server of ``url``."""
    if urlsplit(asked).netloc != urlsplit(url).netloc:
        complaints.append(f"asked {asked}")


@pytest.fixture
def keep(request):
    """Keep a screenshot for a person to look at."""

    def keep_(page, name, **options):
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=ARTIFACTS / f"{name}.png", animations="disabled", **options)

    return keep_
