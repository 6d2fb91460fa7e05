"""Faults that a test asks the double for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from attrs import define

Kind = Literal[
    # in one member's answer
    "null_one",  # a probability of zero, as SGLang's encoder spells it
    "null_all",
    "infinity",  # the same, as Python's own encoder spells it
    "nan",
    "missing",
    "duplicate",
    "foreign",  # an id that was not asked for, instead of one that was
    "no_logprobs",
    "no_prompt_tokens",
    "aborted",
    "element_error",
    # in the whole answer
    "swapped",
    "short",
    "object",
    "garbage",
    "not_generate",
    "empty",
    "text_500",
    "queue_full",
    # in the connection or the process
    "truncated",
    "reset",
    "hang",
    "slow",
    "die",
]
Stage = Literal["any", "warm", "branch"]


@define
class Fault:
    """What goes wrong, with which calls, how often.

    Attributes:
        kind: What.
        stage: ``warm``: calls that ask for one label, ``branch``: for more.
        times: How many calls; ``None`` for all from now on.
        seconds: How slow, for ``slow``.
        member: The member of a batch that a member's fault strikes; the last when out of range.
    """

    kind: Kind
    stage: Stage = "any"
    times: int | None = 1
    seconds: float = 0.5
    member: int = 0

    def strikes(self, labels: int) -> bool:
        """Whether it strikes a call whose members ask for this many labels; counts when it does."""
        if self.times == 0 or (self.stage != "any" and (self.stage == "warm") != (labels == 1)):
            return False
        if self.times is not None:
            self.times -= 1
        return True


def remove_logprobs(meta: dict[str, Any]) -> None:
    """As if ``return_logprob`` had been ignored."""
    del meta["output_token_ids_logprobs"]


def entries_of(change: Callable[[list[list[Any]]], None]) -> Callable[[dict[str, Any]], None]:
    """A fault in the list of ``[logprob, id, text]``."""

    def strike(meta: dict[str, Any]) -> None:
        change(meta["output_token_ids_logprobs"][0])

    return strike


def set_first(value: float | None) -> Callable[[list[list[Any]]], None]:
    """Overwrite the first entry's log-probability."""

    def change(entries: list[list[Any]]) -> None:
        entries[0][0] = value

    return change


def set_all(entries: list[list[Any]]) -> None:
    """No log-probability is known."""
    for entry in entries:
        entry[0] = None


def repeat_first(entries: list[list[Any]]) -> None:
    """The first label twice, with two values."""
    entries.append([entries[0][0] - 1.0, entries[0][1], None])


def rename_first(entries: list[list[Any]]) -> None:
    """A label that nobody asked for."""
    entries[0][1] += 1_000_000


MEMBER_FAULTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "null_one": entries_of(set_first(None)),
    "null_all": entries_of(set_all),
    "infinity": entries_of(set_first(-math.inf)),
    "nan": entries_of(set_first(math.nan)),
    "missing": entries_of(lambda entries: entries.__delitem__(0)),
    "duplicate": entries_of(repeat_first),
    "foreign": entries_of(rename_first),
    "no_logprobs": remove_logprobs,
    "no_prompt_tokens": lambda meta: meta.__delitem__("prompt_tokens"),
}
"""Changes to one member's ``meta_info``."""
