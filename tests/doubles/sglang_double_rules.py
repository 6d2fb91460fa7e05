"""What every call to SGLang has to keep. A broken rule becomes a line in ``violations``, which fails the test."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from os.path import commonprefix
from typing import Any

from attrs import define, field
from sglang_double_model import WIDTH, pack

COLD = 1200
"""Tokens that branches of a cold prefix may compute again: openjev's 1,024, and what their suffixes have in common."""


@define
class Rules:
    """The rules, and what broke them.

    A call that asks for one label is a warm-up or a probe; one that asks for more is a branch, and has to continue a
    warm-up that was answered before it was sent, unless little is computed again without.
    """

    vocab_size: int
    max_prompt: int
    violations: list[str] = field(factory=list)
    answered: dict[int, set[int]] = field(factory=dict)
    """Hashes of the warm-ups that were answered, by length in tokens."""
    rids: set[str] = field(factory=set)

    def check(
        self,
        body: dict[str, Any],
        members: Sequence[tuple[str, list[int], bytes, list[int]]],
        *,
        beside: Sequence[bytes],
    ) -> None:
        """Note what is wrong with a call.

        Args:
            body: The call.
            members: Its prompts as ``(rid, prompt, packed, labels)``.
            beside: The branches of the same prefix that are at work, packed.
        """
        expected = {"return_logprob": True, "logprob_start_len": -1, "top_logprobs_num": 0}
        for name, value in expected.items():
            if body.get(name) != value:
                self.violations.append(f"{name} is {body.get(name)!r}, not {value!r}")
        if body.get("sampling_params") != {"max_new_tokens": 1, "temperature": 0}:
            self.violations.append(f"sampling_params is {body.get('sampling_params')!r}")
        self.check_rids([rid for rid, *_ in members])
        branches = [*beside, *(packed for *_, packed, labels in members if len(labels) > 1)]
        common = len(commonprefix(branches)) // WIDTH  # noqa: RUF071 - of bytes, no paths
        cold = common * (len(branches) - 1) < COLD
        for rid, prompt, _, labels in members:
            self.check_member(rid, prompt, labels, cold=cold)

    def check_rids(self, rids: Sequence[str]) -> None:
        """SGLang aborts by prefix: a call's name may not begin another's."""
        bases = {rid.partition("_")[0] for rid in rids}
        for base in bases:
            if len(bases) > 1 or len(base) < 16 or base in self.rids:
                self.violations.append(f"rid {base!r} is short, was used before, or is not the call's only one")
            if self.rids and len(base) != len(next(iter(self.rids))):
                self.violations.append(f"rid {base!r} differs in length from others, so one may be another's prefix")
        self.rids |= bases

    def check_member(self, rid: str, prompt: list[int], labels: list[int], *, cold: bool) -> None:
        """Note what is wrong with one prompt."""
        if not labels:
            self.violations.append(f"{rid} asks for no label: in one batch with a labelled call it kills the scheduler")
        if len(set(labels)) != len(labels):
            self.violations.append(f"{rid} asks for a label twice: {labels}")
        outside = [number for number in (*prompt, *labels) if not 0 <= number < self.vocab_size]
        if outside:
            self.violations.append(f"{rid} has ids outside the vocabulary: {outside[:4]}")
        if len(prompt) > self.max_prompt:
            self.violations.append(f"{rid} has {len(prompt)} tokens, the longest prompt is {self.max_prompt}")
        if len(labels) > 1 and not cold and not outside and not self.continues_a_warm_up(pack(prompt)):
            self.violations.append(f"{rid} is a branch of {len(prompt)} tokens whose prefix has not been answered yet")

    def continues_a_warm_up(self, prompt: bytes) -> bool:
        """Whether an answered warm-up is a proper beginning of ``prompt``."""
        hashed, at = 0, 0
        for length in sorted(self.answered):
            if length * WIDTH >= len(prompt):
                return False
            hashed, at = zlib.crc32(prompt[at : length * WIDTH], hashed), length * WIDTH
            if hashed in self.answered[length]:
                return True
        return False

    def warmed(self, prompt: bytes) -> None:
        """A warm-up has been answered."""
        self.answered.setdefault(len(prompt) // WIDTH, set()).add(zlib.crc32(prompt))
