"""Keeping known secrets out of lines that are passed on."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

SHORTEST = 6
"""A shorter value is no secret worth hiding, and would blot out ordinary words."""
SHOWN = "[hidden]"


@frozen(repr=False)
class Redaction:
    """Values that are never shown, the longest first: one may contain another."""

    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Iterable[str]) -> Redaction:
        """The redaction of these."""
        return cls(tuple(sorted({value for value in values if len(value) >= SHORTEST}, key=len, reverse=True)))

    def clean(self, line: str) -> str:
        """The line without them."""
        for value in self.values:
            line = line.replace(value, SHOWN)
        return line
