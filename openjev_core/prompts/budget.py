"""The tokens that a request may submit, and those that it has submitted so far."""

from __future__ import annotations

from collections.abc import Collection

from attrs import define

from openjev_core.errors import Loc, RequestError
from openjev_core.limits import Limits
from openjev_core.prompts.chat import Prefix


@define
class Budget:
    """Tokens that a request has submitted so far, against its limits.

    Attributes:
        prefix: Tokens of the prefix, which every branch submits again.
        limits: The limits.
        total: Tokens submitted so far.
        branches: How many branches were among them.
    """

    prefix: int
    limits: Limits
    total: int
    branches: int = 0

    @classmethod
    def after(cls, prefix: Prefix, limits: Limits) -> Budget:
        """The budget once the warm-up is counted.

        Raises:
            RequestError: The state alone is too long.
        """
        # A branch adds at least a suffix token and its output token.
        if len(prefix.ids) + 2 > limits.max_input_tokens:
            raise RequestError.at(("state",), too_long(str(len(prefix.ids)), limits.max_input_tokens), "too_long")
        return cls(len(prefix.ids), limits, total=len(prefix.ids))

    @property
    def room(self) -> int:
        """The longest suffix that a branch may have."""
        branch = self.limits.max_input_tokens - self.prefix - 1
        return max(0, min(branch, self.limits.max_total_input_tokens - self.total - self.prefix))

    def afford(self, suffixes: Collection[int]) -> bool:
        """Spend branches of so many own tokens each, if all of them have room."""
        total = self.total + len(suffixes) * self.prefix + sum(suffixes)
        longest = self.prefix + max(suffixes, default=0) + 1
        if longest > self.limits.max_input_tokens or total > self.limits.max_total_input_tokens:
            return False
        self.total = total
        self.branches += len(suffixes)
        return True

    def spend(self, suffix: int, loc: Loc) -> None:
        """Spend one more branch of ``suffix`` own tokens.

        Raises:
            RequestError: The branch or the total is over its limit.
        """
        if not self.afford((suffix,)):
            raise self.overspent(suffix, loc)

    def overspent(self, suffix: int, loc: Loc, about: str = "") -> RequestError:
        """The error of a branch that has no room.

        Args:
            suffix: Its own tokens.
            loc: Where in the question they come from.
            about: ``"at least "`` when they were not all counted.
        """
        branch = self.prefix + suffix + 1
        if branch > self.limits.max_input_tokens:
            msg = too_long(f"{about}{branch}", self.limits.max_input_tokens)
        else:
            msg = (
                f"the request submits {about}{self.total + self.prefix + suffix} tokens with its branch "
                f"{self.branches + 1} (the state counts once for each branch and once for the warm-up), over the "
                f"limit max_total_input_tokens of {self.limits.max_total_input_tokens}; shorten the state or ask "
                "fewer questions"
            )
        return RequestError.at(loc, msg, "too_long")


def too_long(found: str, limit: int) -> str:
    """The message for a branch over its limit."""
    return (
        f"a branch of {found} tokens (state, question, options and one output token) is over the limit "
        f"max_input_tokens of {limit}; shorten the state or the question"
    )
