"""Connecting to a service: its limits, its model, and a first question that it has to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from openjev_core.address import Address
from openjev_core.backends.http_client import HttpClient
from openjev_core.backends.services.asked import AskedReadout
from openjev_core.backends.services.client import ServiceClient
from openjev_core.backends.services.reader import ServiceLimits, ServiceReader
from openjev_core.backends.services.wire import Wire
from openjev_core.calibration import digest
from openjev_core.engine_type import EngineStart
from openjev_core.errors import AtCapacity, BackendError, SettingsError, StartupError
from openjev_core.limits import Limits
from openjev_core.reader import Model
from openjev_core.settings import Settings, is_loopback

PROBE_STATE = "The lamp is on."
PROBE = AskedReadout("noul", "Is the lamp on?", None, (0, 1), ("Yes", "No"))
PROBE_TIMEOUT = 60.0
"""Seconds for the first answer: a service may have to load its model."""
DEFAULT_MODEL = "jev-latest"
"""The model that is asked for where a service lists it, or none."""
MOST_NAMED = 10
"""Models of a service that a message names."""
OK = 200


@asynccontextmanager
async def connected_service(start: EngineStart, wire: Wire) -> AsyncIterator[Model]:
    """The service at the start's address.

    Raises:
        StartupError: It does not answer a first question.
        SettingsError: Its key would travel in the clear.
    """
    address, settings = start.address, start.settings
    if address is None:
        raise StartupError(f"engine {wire.name}: it is a server: give its address with --connect")
    check_key(address.url, settings)
    name = f"the {wire.name} service at {address.url}"
    limits = await limits_of(address)
    client = ServiceClient(
        # Its address stays out of what clients are told.
        HttpClient(f"the {wire.name} service", address.url, settings.backend_api_key),
        wire,
        settings.model or await model_of(address),
    )
    try:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                answered = await client.ask(PROBE_STATE, [PROBE])
        except (BackendError, AtCapacity) as error:
            raise StartupError(f"probe: expected an answer to a first question from {name}, found: {error}") from error
        except TimeoutError:
            raise StartupError(
                f"probe: expected an answer to a first question from {name}, found none within {PROBE_TIMEOUT:g} s"
            ) from None
        start.progress(f"probe: {answered.model} answers a first question ({name})")
        reader = ServiceReader(
            client,
            ServiceLimits(
                questions=limits.get("max_questions", wire.max_questions),
                body_bytes=limits.get("max_body_bytes", settings.max_body_bytes),
                calls=min(settings.max_concurrent_branches, limits.get("max_concurrent_requests", 1_000_000)),
            ),
        )

        yield Model(
            reader=reader,
            engine=wire.name,
            public_name=settings.public_name or answered.model,
            limits=lowered(Limits.of(settings, settings.max_input_tokens - 1), limits),
            wording=digest(wire.name, answered.model),
            check=partial(client.check, PROBE_STATE, [PROBE]),
        )
    finally:
        await client.http.aclose()


def check_key(url: str, settings: Settings) -> None:
    """Refuse to send a key over a line that others can read.

    Raises:
        SettingsError: The address is no HTTPS and not on this machine.
    """
    parts = urlsplit(url)
    if settings.backend_api_key is not None and parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise SettingsError(
            f"OPENJEV_BACKEND_API_KEY: expected a service at an https address, found {url}, where others could read "
            "the key on its way"
        )


async def page_of(address: Address, path: str) -> Mapping[str, Any]:
    """A page of a service; empty where it has none, or shows it to others alone. What is wrong, its answer tells."""
    try:
        status, page = await address.page(path)
    except StartupError:
        return {}
    return page if status == OK else {}


async def limits_of(address: Address) -> Mapping[str, int]:
    """The limits that a service states, as openjev does at ``/v1/limits``; empty where it states none."""
    page = await page_of(address, "/v1/limits")
    return {name: value for name, value in page.items() if type(value) is int and value > 0}


async def model_of(address: Address) -> str:
    """The model that a service lists.

    Raises:
        SettingsError: It lists several, of which it names none as the usual one.
    """
    page = await page_of(address, "/v1/models")
    listed: Any = page.get("data") or page.get("models")
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    names = [name for one in entries if isinstance(name := one.get("id") or one.get("name"), str) and name]
    if DEFAULT_MODEL in names or not names:
        return DEFAULT_MODEL
    if len(names) > 1:
        raise SettingsError(
            f"OPENJEV_MODEL: the service at {address.url} has several models: say which one with --model: "
            f"{', '.join(names[:MOST_NAMED])}{', ...' if len(names) > MOST_NAMED else ''}"
        )
    return names[0]


def lowered(limits: Limits, stated: Mapping[str, int]) -> Limits:
    """The settings' limits, lowered to what a service states for one branch or readout."""
    return Limits(
        max_questions=limits.max_questions,
        max_answers_per_question=min(limits.max_answers_per_question, stated.get("max_answers_per_question", 255)),
        max_body_bytes=limits.max_body_bytes,
        max_input_tokens=min(limits.max_input_tokens, stated.get("max_input_tokens", limits.max_input_tokens)),
        max_total_input_tokens=limits.max_total_input_tokens,
        max_concurrent_requests=limits.max_concurrent_requests,
        max_concurrent_branches=limits.max_concurrent_branches,
    )
