"""SGLang as a :class:`openjev_core.backends.protocol.Backend`."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

from attrs import define, field

from openjev_core.backends.calls import check_call
from openjev_core.backends.protocol import Branch
from openjev_core.backends.sglang.aborts import Aborts
from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.backends.sglang.facts import ServerFacts
from openjev_core.backends.sglang.session import WARM_UP_LABELS, SGLangPrefix
from openjev_core.backends.sglang.slots import Slots
from openjev_core.backends.sglang.warmth import Warmth
from openjev_core.backends.sglang.wire import parse_one, reading, single_body
from openjev_core.errors import BackendError, BackendUnavailable, DeadlineExceeded

CHECK_TIMEOUT = 4.0
"""Seconds for a check's call; less than the engine waits for a check, which would otherwise cut it off unjudged."""
CHECK = Branch((0, 1), WARM_UP_LABELS)
CHECK_KEY = "openjev-check"


def rid_numbers() -> Iterator[str]:
    """Request ids: all of one length, because SGLang aborts by prefix; unlike any other process's."""
    process = secrets.token_hex(10)
    return (f"{process}{number:012x}" for number in itertools.count())


@define(eq=False, kw_only=True)
class SGLangBackend:
    """A running SGLang, or a router in front of several.

    Attributes:
        client: The connections.
        vocab_size: Ids lie in ``range(vocab_size)``. One that does not would kill the Python front end's server.
        max_prompt_tokens: The longest prompt that leaves room for its output token.
        fanout: ``batch``: one call carries as many branches as there are slots; ``calls``: one call each.
        slots: Prompts at SGLang at once.
        call_timeout: Seconds for one call: with a full queue the Rust front end never answers.
        facts: What the server said about itself at the start.
        warmth: The prefixes that it is known to hold.
        name: ``sglang``.
    """

    client: SGLangClient
    vocab_size: int
    max_prompt_tokens: int
    fanout: Literal["batch", "calls"]
    slots: Slots
    call_timeout: float
    facts: ServerFacts = ServerFacts()
    warmth: Warmth = field(factory=Warmth, repr=False)
    aborts: Aborts = field(init=False)
    rids: Iterator[str] = field(factory=rid_numbers, repr=False)
    name: str = field(default="sglang", init=False)

    def __attrs_post_init__(self) -> None:
        self.aborts = Aborts(self.client)

    def new_rid(self) -> str:
        """A fresh request id."""
        return next(self.rids)

    @asynccontextmanager
    async def prefix(self, ids: Sequence[int], *, key: str, single: bool = False) -> AsyncIterator[SGLangPrefix]:
        """See :meth:`openjev_core.backends.protocol.Backend.prefix`. SGLang itself decides how long it keeps one."""
        whole = Branch(tuple(ids), WARM_UP_LABELS)
        self.admit(whole, before=0)
        prefix = SGLangPrefix(self, whole, key, self.slots.party())
        try:
            await prefix.warm(single=single)
            yield prefix
        except BackendError:
            self.warmth.forget()
            raise

    def admit(self, branch: Branch, before: int) -> None:
        """Keep from SGLang what would kill it or be refused: a branch after ``before`` tokens.

        Raises:
            BackendError: An id outside the vocabulary, an empty or too long prompt, or labels that are not distinct.
        """
        check_call("SGLang", branch, before, self.vocab_size, self.max_prompt_tokens)

    async def check(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.check`.

        Not counted among the slots, so that a busy server can be asked too. A server that is too busy to answer in
        time is well when it answered another call meanwhile.
        """
        rid, asked_at = self.new_rid(), time.monotonic()
        body = single_body(CHECK.suffix_json, CHECK.labels_json, rid)
        try:
            answer = await self.client.generate(body, routing_key=CHECK_KEY, seconds=CHECK_TIMEOUT)
        except DeadlineExceeded:
            self.aborts.add([rid])
            if self.client.answered_at > asked_at:
                return
            raise BackendUnavailable(f"SGLang has not answered a one-token call for {CHECK_TIMEOUT:g} s") from None
        reading(parse_one(answer), CHECK.labels, rid=rid, prompt_tokens=len(CHECK.suffix))

    async def aclose(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.aclose`."""
        await self.aborts.aclose()
        await self.client.aclose()
