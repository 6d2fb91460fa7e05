"""Labels: what the model answers with, each verified to be one token of the real tokenizer after the real ending."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from openjev_core.backends.protocol import Tokenizer
from openjev_core.errors import StartupError
from openjev_core.prompts.chat import Ending, PromptWriter


@frozen
class Labels:
    """The verified labels of one model.

    Attributes:
        by_position: ``(text, token id)`` of the engine's own labels, in order: ``A``, ``B``, ...
        own: The question types' own labels, text to token id.
        refused: Those of them that are none with this model, text to why.
    """

    by_position: tuple[tuple[str, int], ...]
    own: Mapping[str, int]
    refused: Mapping[str, str]


def candidates() -> Iterator[str]:
    """``A`` to ``Z``, then ``AA`` to ``ZZ``."""
    letters = string.ascii_uppercase
    yield from letters
    for first in letters:
        for second in letters:
            yield first + second


def verify_labels(writer: PromptWriter, ending: Ending, count: int, own: Sequence[str]) -> Labels:
    """Find ``count`` labels by position and check the question types' own.

    Args:
        writer: Writes the model's prompts.
        ending: The real ending that a label follows.
        count: How many options a readout may have.
        own: Labels that question types bring.

    Raises:
        StartupError: Fewer than ``count`` do. Lists what is missing.
    """
    check = LabelCheck.after(writer, ending)
    found: dict[str, int] = {}
    rejected: dict[str, str] = {}
    for text in candidates():
        if len(found) == count:
            break
        outcome = check.token_of(text)
        if isinstance(outcome, str):
            rejected[text] = outcome
        elif outcome in found.values():
            rejected[text] = "its token is another label's"
        else:
            found[text] = outcome
    if len(found) < count:
        missing = "; ".join(f"{text}: {why}" for text, why in rejected.items())
        raise StartupError(
            f"the tokenizer has {len(found)} labels of one token after the prompt's ending, and max_answers asks for "
            f"{count}; set OPENJEV_MAX_ANSWERS to {len(found)} or less. These are none: {missing}"
        )
    outcomes = {text: check.token_of(text) for text in own}
    return Labels(
        tuple(found.items()),
        {text: token for text, token in outcomes.items() if isinstance(token, int)},
        {text: why for text, why in outcomes.items() if isinstance(why, str)},
    )


@frozen
class LabelCheck:
    """Tells whether a text is one token where labels stand."""

    _tokenizer: Tokenizer
    _before: str
    _before_ids: list[int]

    @classmethod
    def after(cls, writer: PromptWriter, ending: Ending) -> LabelCheck:
        """A check for labels after ``ending``. Only its text after the last control token can merge with a label."""
        pieces = list(writer.control.cut(ending.text, "\0"))
        before = pieces[-1] if isinstance(pieces[-1], str) else ""
        return cls(writer.tokenizer, before, writer.tokenizer.encode(before) if before else [])

    def token_of(self, text: str) -> int | str:
        """The label's token id, or why it is none."""
        ids = self._tokenizer.encode(self._before + text)
        added = ids[len(self._before_ids) :]
        if ids[: len(self._before_ids)] != self._before_ids:
            return "it merges with the text before it"
        if len(added) != 1:
            return f"it is {len(added)} tokens"
        if not 0 <= added[0] < self._tokenizer.vocab_size:
            return "its token is outside the vocabulary"
        decoded = self._tokenizer.decode(added)
        return added[0] if decoded == text else f"its token decodes to {decoded!r}"
