"""SGLang as a :class:`openjev_core.backends.protocol.Backend`: prefixes that are warmed once, branches behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import define, field

from openjev_core.backends.calls import check_call
from openjev_core.backends.fanout import WARM_UP_LABELS, ServedPrefix, check_server
from openjev_core.backends.protocol import Branch, Reading
from openjev_core.backends.sglang.client import SGLangClient
from openjev_core.backends.sglang.wire import (
    SGLangFacts,
    batch_body,
    parse_many,
    parse_one,
    read_element,
    single_body,
)
from openjev_core.backends.slots import Slots
from openjev_core.backends.warmth import Warmth


@define(eq=False, kw_only=True)
class SGLangBackend:
    """A running SGLang, or a router in front of several.

    Attributes:
        client: The connections.
        vocab_size: Ids lie in ``range(vocab_size)``. One that does not would kill the Python front end's server.
        max_prompt_tokens: The longest prompt that leaves room for its output token.
        fanout: ``batch``: one call carries as many branches as there are slots; ``calls``: one call each.
        slots: Prompts at SGLang at once.
        facts: What the server said about itself at the start.
        warmth: The prefixes that it is known to hold.
        name: ``sglang``.
        title: ``SGLang``.
    """

    client: SGLangClient
    vocab_size: int
    max_prompt_tokens: int
    fanout: Literal["batch", "calls"]
    slots: Slots
    facts: SGLangFacts = SGLangFacts()
    warmth: Warmth = field(factory=Warmth, repr=False)
    name: str = field(default="sglang", init=False)
    title: str = field(default="SGLang", init=False)

    @property
    def answered_at(self) -> float:
        """See :class:`openjev_core.backends.fanout.PromptServer`."""
        return self.client.answered_at

    def prefix(self, ids: Sequence[int], *, key: str, branches: int | None = None) -> ServedPrefix:
        """See :meth:`openjev_core.backends.protocol.Backend.prefix`. SGLang itself decides how long it keeps one."""
        return ServedPrefix(self, Branch(tuple(ids), WARM_UP_LABELS), key, branches)

    def check_branch(self, branch: Branch, before: int) -> None:
        """Refuse what would kill SGLang or be refused by it: a branch after ``before`` tokens.

        Raises:
            BackendError: An id outside the vocabulary, an empty or too long prompt, or labels that are not distinct.
        """
        check_call("SGLang", branch, before, self.vocab_size, self.max_prompt_tokens)

    def calls(self, branches: Sequence[Branch]) -> list[Sequence[int]]:
        """See :meth:`openjev_core.backends.fanout.PromptServer.calls`."""
        positions = range(len(branches))
        return [positions] if self.fanout == "batch" else [[position] for position in positions]

    async def call(self, prefix: Branch | None, branches: Sequence[Branch], key: str) -> list[Reading]:
        """See :meth:`openjev_core.backends.fanout.PromptServer.call`."""
        rid = self.client.new_rid()
        length, before = (0, b"") if prefix is None else (len(prefix.suffix), prefix.suffix_json + b",")
        if len(branches) == 1:
            (branch,) = branches
            body = single_body(before + branch.suffix_json, branch.labels_json, rid)
            element = parse_one(await self.client.generate(body, rids=[rid], routing_key=key))
            return [read_element(element, branch.labels, rid=rid, prompt_tokens=length + len(branch.suffix))]
        # SGLang names a batch's members after it; a list of names works too, but not through a router.
        rids = [f"{rid}_{number}" for number in range(len(branches))]
        body = batch_body(before, branches, rid)
        elements = parse_many(await self.client.generate(body, rids=rids, routing_key=key), len(branches))
        return [
            read_element(element, branch.labels, rid=name, prompt_tokens=length + len(branch.suffix))
            for element, branch, name in zip(elements, branches, rids, strict=True)
        ]

    async def check(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.check`."""
        await check_server(self)

    async def aclose(self) -> None:
        """See :meth:`openjev_core.backends.protocol.Backend.aclose`."""
        await self.client.aclose()
