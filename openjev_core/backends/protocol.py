"""What the engine asks of a backend, and what it says back.

Token ids in, label logprobs out. A backend knows nothing of questions, options, templates or text; how it warms a
prefix and fans branches out is its own affair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import orjson
from attrs import field, frozen


@frozen
class Branch:
    """One read: a suffix to the warmed prefix, and the labels to read after it.

    The same question's branch is read behind one state after another, so what can be known of it is worked out once,
    when it is made: what is kept of a question does not grow later.

    Attributes:
        suffix: Token ids that follow the prefix; never empty.
        labels: Distinct token ids whose logprobs are wanted; never empty.
        suffix_json: The suffix as the inside of a JSON array.
        labels_json: The labels as a JSON array.
        fault: What makes it unreadable for any backend; ``None`` where nothing does.
        lowest, highest: Of all its token ids; 0 where it has none.
    """

    suffix: tuple[int, ...]
    labels: tuple[int, ...]
    suffix_json: bytes = field(init=False, eq=False, repr=False)
    labels_json: bytes = field(init=False, eq=False, repr=False)
    fault: str | None = field(init=False, eq=False, repr=False)
    lowest: int = field(init=False, eq=False, repr=False)
    highest: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        fault = None
        if not self.suffix or not self.labels:
            fault = "it needs at least one token and one label"
        elif len(set(self.labels)) != len(self.labels):
            fault = "it names one label twice"
        ids = self.suffix + self.labels
        known = {
            "suffix_json": orjson.dumps(self.suffix)[1:-1],
            "labels_json": orjson.dumps(self.labels),
            "fault": fault,
            "lowest": min(ids, default=0),
            "highest": max(ids, default=0),
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)


@frozen
class Reading:
    """What one backend call returned.

    Attributes:
        logprobs: One per label, in the branch's label order, in nats. ``-inf`` is allowed. They are relative to one
            another only: a backend may have normalised them over the labels or over the vocabulary.
        prompt_tokens: The call's whole prompt, cached tokens included.
        cached_tokens: How many of them were reused; ``None`` when the backend does not say.
        output_tokens: Tokens that the call produced: 1.
        label_mass: How much of the probability of all tokens the labels hold; ``None`` when the backend normalises over
            the labels, and of a warm-up.
    """

    logprobs: tuple[float, ...]
    prompt_tokens: int
    cached_tokens: int | None = None
    output_tokens: int = 1
    label_mass: float | None = None


class WarmPrefix(Protocol):
    """A prefix that the backend has read once and can continue from, or that it reads with its first branches."""

    @property
    def warm_up(self) -> Reading:
        """The warm-up call itself; its logprobs mean nothing. One that was left out counts as one that reused all."""
        ...

    @property
    def waited(self) -> float:
        """Seconds that it waited for a place before its first call: after the warm-up, or while it was first read."""
        ...

    async def read(self, branches: Sequence[Branch], shared: int = 0) -> tuple[list[Reading], list[Reading]]:
        """Read branches after the prefix. May be called several times on one warm prefix, and concurrently.

        Args:
            branches: What to read: with ``shared`` 0 any branches, of any questions; else those of one question.
            shared: How many leading suffix ids all the branches have in common, when reading these once first is
                worth a call: then the backend may warm the prefix together with them. Depends on the question alone.

        Returns:
            One reading per branch in their order, and the readings of further warm-up calls, if any were made.

        Raises:
            BackendError: A branch or a label has no answer, or has two.
            BackendUnavailable: The backend does not answer.
        """
        ...


class Backend(Protocol):
    """A running model.

    Cancelling the task that uses a backend stops the work: what is in flight is aborted, nothing is left behind, and
    the cancellation does not wait for the backend's consent.
    """

    @property
    def name(self) -> str:
        """``llama.cpp`` or ``sglang``."""
        ...

    @property
    def max_prompt_tokens(self) -> int:
        """The longest prompt that leaves room for its one output token."""
        ...

    def prefix(
        self, ids: Sequence[int], *, key: str, branches: int | None = None
    ) -> AbstractAsyncContextManager[WarmPrefix]:
        """Warm a prefix: on entry it has been read once, or need not be; on exit what was held for it is released.

        Args:
            ids: The prefix's token ids; never empty.
            key: Names the prefix, no two alike; calls with one key belong on one worker.
            branches: Upper bound on the branches that will be read after it; ``None`` where that is not known. A
                backend may leave the warm-up out where few tokens would be computed again, if how a prompt is split
                over calls moves its numbers no further than what else it computes at the moment does.
        """
        ...

    async def check(self) -> None:
        """Make one labelled one-token call; return when it was answered as it should.

        Raises:
            BackendError: It was not.
        """
        ...

    async def aclose(self) -> None:
        """Release connections, slots and, where the backend runs in this process, the model."""
        ...


class Tokenizer(Protocol):
    """A model's tokenizer. Safe to call from several threads."""

    @property
    def vocab_size(self) -> int:
        """Ids lie in ``range(vocab_size)``."""
        ...

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Every text that the model's own front end would read as one control or added token, with its id."""
        ...

    def encode(self, text: str, *, control: bool = False) -> list[int]:
        """Token ids of ``text``, nothing added at either end.

        With ``control`` false every character is plain: no id of :attr:`control_tokens` is ever returned, whatever
        the text spells. With it true, control tokens are recognised as the model's own front end does.
        """
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``, control tokens included."""
        ...


@frozen
class ChatTemplate:
    """A model's chat template and the special tokens that it may name.

    Attributes:
        source: The Jinja source.
        bos_token, eos_token: Their texts; empty when the model has none.
    """

    source: str
    bos_token: str = ""
    eos_token: str = ""


@frozen
class LoadedModel:
    """A backend that is ready, with what is needed to write prompts for it.

    Attributes:
        backend: Takes token ids.
        tokenizer: Makes them.
        template: The model's own chat template.
        public_name: The model id that clients see.
        tokenizer_waits: Encoding asks someone else and waits, so it never runs on the event loop.
        one_at_a_time: Evaluations at once gain nothing.
        demo: The model shows the plumbing and is no classifier.
        release_date: ISO date for ``/v1/models``, where it is known.
    """

    backend: Backend
    tokenizer: Tokenizer
    template: ChatTemplate
    public_name: str
    tokenizer_waits: bool = False
    one_at_a_time: bool = False
    demo: bool = False
    release_date: str | None = None
