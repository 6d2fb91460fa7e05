"""Which prefixes a server such as SGLang holds, as far as its own counts tell, so that reading one again is left out.

Reading a prefix before its branches are sent keeps SGLang from computing it once per branch. Where one state is asked
about again and again that call finds everything computed, and costs a round trip for nothing. So it is left out for a
prefix whose branches, moments ago, reused all of it; a server that does not say so is always asked first. That saved
13% of this process's CPU for three questions about 600 tokens, and 21% of their time on an SGLang that runs on a CPU.

A single branch computes a new prefix once as well, and few branches behind a short one compute little of it again: they
do without the call too, which saves a small request a round trip. Whether a prefix is read by itself so depends on how
many branches come, and moves their probabilities as batching does: by 6e-6 at most with SGLang 0.5.19 in float32, over
84 questions; reading the same questions in other batches moved them by 8e-6.

Such a call leaves less behind, though: models with recurrent layers resume from checkpoints alone, and those of a
prompt that was read in one go may all lie behind the prefix. So a prefix that was read along with its branches is read
by itself when the next ones come.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import define, field

from openjev_core.recent import ENTRY_BYTES, Recent

MEMORY = 1024 * 1024
"""Upper bound on the bytes of what is remembered of prefixes that were reused, and of those that were read along."""

KEY_BYTES = ENTRY_BYTES + 100
"""Upper bound on the bytes of one entry, whose key is a hash of 32 characters."""

TRUSTED_FOR = 10.0
"""Seconds since a prefix was last reused. SGLang forgets what was used least recently, and other clients use it too."""

DISTRUST = 60.0
"""Seconds without trust in any prefix after one was gone: more is being read than SGLang can hold."""

CHECKPOINT = 64
"""Models with recurrent layers resume from a multiple of so many tokens, so the last ones of a prefix may be read again
with each branch. A prefix of fewer tokens has nothing to lose."""


@define(eq=False)
class Warmth:
    """What one server, or one router with several behind it, is known to hold.

    Attributes:
        checkpoint: Prefixes are kept in multiples of so many tokens.
        clock: Monotonic seconds.
    """

    checkpoint: int = CHECKPOINT
    clock: Callable[[], float] = time.monotonic
    _reused_at: Recent[str, float] = field(factory=lambda: Recent(MEMORY), init=False, repr=False)
    _read_along: Recent[str, bool] = field(factory=lambda: Recent(MEMORY), init=False, repr=False)
    _distrusted_until: float = field(default=float("-inf"), init=False)

    def holds(self, key: str) -> bool:
        """Whether the prefix with this key needs no call."""
        return self._trusted(key) and self.clock() >= self._distrusted_until

    def may_read_along(self, key: str) -> bool:
        """Whether branches may bring this prefix along: once, until the prefix is forgotten again."""
        if self._read_along.get(key):
            return False
        self._read_along.keep(key, True, KEY_BYTES)
        return True

    def judge(self, key: str, tokens: int, reused: int | None) -> None:
        """Take note of what a prefix's branches reused.

        Args:
            key: The prefix's.
            tokens: How many it has.
            reused: Those that the branch which reused the fewest did; ``None`` where the server does not say.
        """
        if reused is not None and reused >= tokens // self.checkpoint * self.checkpoint:
            self._reused_at.keep(key, self.clock(), KEY_BYTES)
        elif self._trusted(key):
            self._reused_at.keep(key, float("-inf"), KEY_BYTES)
            self._distrusted_until = self.clock() + DISTRUST

    def forget(self) -> None:
        """Trust nothing that was seen: the server failed, and may be another one now."""
        self._reused_at = Recent(MEMORY)

    def _trusted(self, key: str) -> bool:
        reused_at = self._reused_at.get(key)
        return reused_at is not None and self.clock() - reused_at <= TRUSTED_FOR
