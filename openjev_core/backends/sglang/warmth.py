"""Which prefixes SGLang holds, as far as its own counts tell.

Reading a prefix before its branches are sent keeps SGLang from computing it once per branch. Where one state is asked
about again and again that call finds everything computed, and costs a round trip for nothing. So it is left out for a
prefix whose branches were told, moments ago, to have reused it; a server that does not tell is always asked first.

A single branch computes a new prefix once as well, so it can do without the call. It leaves less behind, though: models
with recurrent layers resume from checkpoints alone, and those of a prompt that was read in one go may all lie behind
the prefix. So a prefix that a single branch has read that way is read by itself when the next one comes.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from attrs import define, field

from openjev_core.recent import Recent

READ_ALONG = 4096
"""Prefixes that are remembered for having been read along with a single branch; the least recently used goes first."""

TRUSTED_FOR = 10.0
"""Seconds since a prefix was last reused. SGLang forgets what was used least recently, and other clients use it too."""

DISTRUST = 60.0
"""Seconds without trust in any prefix after one was gone: more is being read than SGLang can hold."""

CHECKPOINT = 64
"""Models with recurrent layers resume from a multiple of so many tokens, so the last ones of a prefix may be read again
with each branch. A prefix of fewer tokens has nothing to lose."""


@define(eq=False)
class Warmth:
    """What one SGLang, or one router with several behind it, is known to hold.

    Attributes:
        clock: Monotonic seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _reused: OrderedDict[str, float] = field(factory=OrderedDict, init=False, repr=False)
    _distrusted_until: float = field(default=float("-inf"), init=False)
    _read_along: Recent[str, bool] = field(factory=lambda: Recent(READ_ALONG), init=False, repr=False)

    def may_read_along(self, key: str) -> bool:
        """Whether a single branch may bring this prefix along: once, until the prefix is forgotten again."""
        if self._read_along.get(key):
            return False
        self._read_along.keep(key, True, 1)
        return True

    def holds(self, key: str) -> bool:
        """Whether the prefix with this key needs no call."""
        now = self.clock()
        return now - self._reused.get(key, float("-inf")) <= TRUSTED_FOR and now >= self._distrusted_until

    def judge(self, key: str, tokens: int, reused: int | None) -> None:
        """Take note of what a prefix's branches reused.

        Args:
            key: The prefix's.
            tokens: How many it has.
            reused: Those that the branch which reused the fewest did; ``None`` where the server does not tell.
        """
        now = self.clock()
        if reused is not None and reused >= tokens // CHECKPOINT * CHECKPOINT:
            self._reused[key] = now
            self._reused.move_to_end(key)
            while now - next(iter(self._reused.values())) > TRUSTED_FOR:
                self._reused.popitem(last=False)
        elif now - self._reused.pop(key, float("-inf")) <= TRUSTED_FOR:
            self._distrusted_until = now + DISTRUST

    def forget(self) -> None:
        """Trust nothing that was seen: the server failed, and may be another one now."""
        self._reused.clear()
