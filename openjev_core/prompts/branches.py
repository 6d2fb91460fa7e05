"""A question's readouts as branches: what the model reads for each order of the options, and which labels are read."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from attrs import field, frozen

from openjev_core.backends.protocol import Branch
from openjev_core.errors import PluginError
from openjev_core.orders import Order
from openjev_core.prompts.chat import Ending, PromptWriter
from openjev_core.prompts.labels import Labels
from openjev_core.question import Option, QuestionType, Readout
from openjev_core.reader import PlannedReadout

SHARE_FROM = 32
"""Shared suffix tokens from which warming them by themselves is worth a call."""


@frozen
class Variant:
    """A readout in one order of its options.

    Attributes:
        labelled: ``(label, option)`` as shown.
        labels: The label of each option, in their given order.
        words: What the question type wrote.
        branch: Its token ids; ``branch.labels`` stand in the options' given order.
    """

    labelled: tuple[tuple[str, Option], ...]
    labels: tuple[str, ...]
    words: str
    branch: Branch


@frozen
class BranchedReadout:
    """A readout, once per order: a :class:`openjev_core.reader.PreparedReadout`."""

    planned: PlannedReadout
    variants: tuple[Variant, ...]

    @property
    def labels(self) -> Sequence[Sequence[str]]:
        """For each order, the label of each option in their given order."""
        return [variant.labels for variant in self.variants]

    @cached_property
    def keys(self) -> Sequence[bytes]:
        """For each order, a digest of its branch: of the suffix, and of the labels in the options' given order."""
        return [branch_digest(variant.branch) for variant in self.variants]


@frozen(eq=False)
class BranchedQuestion:
    """A question's readouts: a :class:`openjev_core.reader.PreparedQuestion`.

    Attributes:
        readouts: In the order in which the type gave them.
        shared: Leading suffix tokens that all branches have in common and that are worth warming; else 0.
        ending: The template's ending, which every suffix carries.
        suffix_tokens: How many tokens each branch has of its own.
    """

    readouts: tuple[BranchedReadout, ...]
    ending: Ending
    shared: int = field(init=False)
    suffix_tokens: tuple[int, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        suffixes = [variant.branch.suffix for readout in self.readouts for variant in readout.variants]
        sharing = sum(1 for readout in self.readouts if readout.variants)
        object.__setattr__(self, "shared", worth_sharing(suffixes) if sharing >= SHARING_READOUTS else 0)
        object.__setattr__(self, "suffix_tokens", tuple(map(len, suffixes)))


SHARING_READOUTS = 3
"""Readouts from which a shared beginning may pay: two are two reads of it, against one warm-up and two short reads."""


@frozen
class BranchWriter:
    """Writes branches behind one prefix.

    Attributes:
        writer: Writes the model's prompts.
        labels: The model's labels.
        ending: What the template writes behind each suffix.
    """

    writer: PromptWriter
    labels: Labels
    ending: Ending

    def variant(
        self, question_type: QuestionType[Any, Any], question: Any, readout: Readout, order: Order, room: int
    ) -> Variant:
        """A readout in one order of its options.

        Args:
            question_type: Writes the suffix.
            question: Asks the readout.
            readout: Held to the contract already.
            order: Which option is shown where.
            room: Tokens beyond which the suffix need not be tokenized to its end.

        Raises:
            RequestError: The words hold a character for which the model has no token.
            TooManyTokens: There are certainly more than ``room`` tokens.
            PluginError: The type broke its contract.
        """
        label_ids, labelled = self._labelled(readout, order)
        try:
            words = question_type.written(question, readout, labelled)
        except BaseException as error:
            # Also a SystemExit: passed on, it would end the server.
            raise PluginError(question_type.name, f"suffix raised {type(error).__name__}") from error
        if not isinstance(words, str) or words != words.strip():
            raise PluginError(question_type.name, "suffix returned no string without outer white space")
        given = dict(zip(order, [label for label, _ in labelled], strict=True))
        labels = tuple([given[position] for position in range(len(order))])
        return Variant(labelled, labels, words, Branch(self.writer.suffix(words, self.ending, room), label_ids))

    def _labelled(self, readout: Readout, order: Order) -> tuple[tuple[int, ...], tuple[tuple[str, Option], ...]]:
        """Label ids in the options' given order, and ``(label, option)`` as shown."""
        options = readout.options
        if options[0].label is not None:
            own = [self.labels.own[str(option.label)] for option in options]
            return tuple(own), tuple((str(options[given].label), options[given]) for given in order)
        ids = [0] * len(options)
        labelled = []
        for (text, token), given in zip(self.labels.by_position, order, strict=False):
            ids[given] = token
            labelled.append((text, options[given]))
        return tuple(ids), tuple(labelled)


def worth_sharing(suffixes: Sequence[Sequence[int]]) -> int:
    """How many leading tokens a question's suffixes share, if that is worth a warm-up of its own.

    Depends on the question alone: were it to depend on its neighbours, adding one would move the answers of another,
    since how a prompt is split into batches moves probabilities on quantized weights.
    """
    common = common_prefix(suffixes)
    return common if common >= SHARE_FROM else 0


def common_prefix(sequences: Sequence[Sequence[int]]) -> int:
    """How many leading items all the sequences share, leaving each at least one of its own."""
    shortest = min(len(sequence) for sequence in sequences)
    first = sequences[0]
    for position in range(shortest - 1):
        if any(sequence[position] != first[position] for sequence in sequences):
            return position
    return shortest - 1


def branch_digest(branch: Branch) -> bytes:
    """Names a branch: its suffix, and its labels in their order."""
    ids = array("q", (len(branch.suffix), *branch.suffix, *branch.labels))
    return hashlib.blake2b(ids.tobytes(), digest_size=16).digest()
