"""The tokens that a request may submit, and those that it has submitted so far."""

from __future__ import annotations

from collections.abc import Collection

from attrs import frozen

from openjev_core.errors import Loc, RequestError
from openjev_core.limits import Limits
from openjev_core.prompts.chat import Prefix


@frozen
class Budget:
    """Tokens that a request has submitted so far, against its limits.

    Attributes:
        branches: How many branches they belong to.
    """

    _prefix: int
    _total: int
    branches: int
    _limits: Limits

    @classmethod
    def after(cls, prefix: Prefix, limits: Limits) -> Budget:
        """The budget once the warm-up is counted.

        Raises:
            RequestError: The state alone is too long.
        """
        # A branch adds at least a suffix token and its output token.
        if len(prefix.ids) + 2 > limits.max_input_tokens:
            raise RequestError.at(("state",), too_long(str(len(prefix.ids)), limits.max_input_tokens), "too_long")
        return cls(len(prefix.ids), len(prefix.ids), 0, limits)

    @property
    def room(self) -> int:
        """The longest suffix that a branch may have."""
        branch = self._limits.max_input_tokens - self._prefix - 1
        return max(0, min(branch, self._limits.max_total_input_tokens - self._total - self._prefix))

    def afford(self, suffixes: Collection[int]) -> Budget | None:
        """The budget after branches of so many own tokens each; ``None`` when one of them has no room."""
        total = self._total + len(suffixes) * self._prefix + sum(suffixes)
        longest = self._prefix + max(suffixes) + 1
        if longest > self._limits.max_input_tokens or total > self._limits.max_total_input_tokens:
            return None
        return Budget(self._prefix, total, self.branches + len(suffixes), self._limits)

    def spend(self, suffix: int, loc: Loc) -> Budget:
        """The budget after one more branch of ``suffix`` own tokens.

        Raises:
            RequestError: The branch or the total is over its limit.
        """
        rest = self.afford((suffix,))
        if rest is None:
            raise self.overspent(suffix, loc)
        return rest

    def overspent(self, suffix: int, loc: Loc, about: str = "") -> RequestError:
        """The error of a branch that has no room.

        Args:
            suffix: Its own tokens.
            loc: Where in the question they come from.
            about: ``"at least "`` when they were not all counted.
        """
        branch = self._prefix + suffix + 1
        if branch > self._limits.max_input_tokens:
            msg = too_long(f"{about}{branch}", self._limits.max_input_tokens)
        else:
            msg = (
                f"the request submits {about}{self._total + self._prefix + suffix} tokens with its branch "
                f"{self.branches + 1} (the state counts once for each branch and once for the warm-up), over the "
                f"limit max_total_input_tokens of {self._limits.max_total_input_tokens}; shorten the state or ask "
                "fewer questions"
            )
        return RequestError.at(loc, msg, "too_long")


def too_long(found: str, limit: int) -> str:
    """The message for a branch over its limit."""
    return (
        f"a branch of {found} tokens (state, question, options and one output token) is over the limit "
        f"max_input_tokens of {limit}; shorten the state or the question"
    )
