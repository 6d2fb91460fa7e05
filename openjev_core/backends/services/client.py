"""Calls to a service: what it refuses, and what its replies say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from attrs import define, evolve

from openjev_core.backends.http_client import OK, HttpClient, Reply
from openjev_core.backends.replies import decode, error_text, refusal
from openjev_core.backends.services.asked import AskedReadout
from openjev_core.backends.services.wire import Answered, Wire
from openjev_core.errors import AtCapacity, BackendError
from openjev_core.json_document import compact
from openjev_core.setting_values import DECIMAL

FULL = frozenset({429, 529})
"""Statuses of a service that has no room now."""
UNAVAILABLE = 503
"""The status of one that has none, where it says when to ask again, or of one that does not work."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
LONGEST_PAUSE = 600.0
"""Seconds beyond which a service's wish is not passed on."""

OBJECT: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


@define(eq=False)
class ServiceClient:
    """Calls to one service.

    Attributes:
        http: The connections.
        wire: The shape of the calls.
        model: The model that is asked for.
    """

    http: HttpClient
    wire: Wire
    model: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.http.server

    def body(self, state: Any, asked: Sequence[AskedReadout]) -> bytes:
        """A call's body."""
        return compact(self.wire.body(self.model, state, asked)).encode()

    async def ask(self, state: Any, asked: Sequence[AskedReadout]) -> Answered:
        """Ask for some readouts in one call. Cancelling closes the connection.

        Raises:
            AtCapacity: The service has no room now.
            BackendError: It refuses, does not answer, or answers something else.
        """
        reply = await self._call(state, asked)
        if reply.status in FULL or (reply.status == UNAVAILABLE and "retry-after" in reply.headers):
            said = f"{self.name} has no room now: it answered {reply.status}: {error_text(reply.body)}"
            raise AtCapacity(said, pause_of(reply.headers))
        return self._answered(reply, asked)

    async def check(self, state: Any, asked: Sequence[AskedReadout]) -> None:
        """Ask as :meth:`ask` does; a service that has no room now answers, and works.

        Raises:
            BackendError: As for :meth:`ask`.
        """
        reply = await self._call(state, asked)
        if reply.status not in FULL:
            self._answered(reply, asked)

    async def _call(self, state: Any, asked: Sequence[AskedReadout]) -> Reply:
        return await self.http.reply("POST", self.http.address(self.wire.path), self.body(state, asked))

    def _answered(self, reply: Reply, asked: Sequence[AskedReadout]) -> Answered:
        """What a reply says.

        Raises:
            BackendError: It refuses, or answers something else.
        """
        if reply.status in REDIRECTS:
            raise BackendError(
                f"{self.name} answered {reply.status}, a redirect to {reply.headers.get('location', '')[:200]!r}. "
                "It is not followed; connect to the service itself"
            )
        if reply.status != OK:
            raise refusal(self.name, reply.status, reply.body)
        found = decode(OBJECT, reply.body, server=self.name, path=f"/{self.wire.path}")
        return with_header_counts(self.wire.answered(found, asked, self.name), reply)


def with_header_counts(answered: Answered, reply: Reply) -> Answered:
    """The answer, with the cached tokens that openjev reports in a header."""
    cached = reply.headers.get("x-openjev-cached-tokens", "")
    if answered.cached_tokens is None and cached.isdecimal():
        return evolve(answered, cached_tokens=int(cached))
    return answered


def pause_of(headers: Mapping[str, str]) -> float:
    """Seconds after which a service wants to be asked again; 1 where it does not say."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        if DECIMAL.fullmatch(value := headers.get(name, "").strip()):
            return min(LONGEST_PAUSE, max(0.0, float(value) / unit))
    return 1.0
