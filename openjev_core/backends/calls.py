"""What a call may be, whoever answers it."""

from __future__ import annotations

from collections.abc import Sequence

from openjev_core.errors import BackendError


def check_call(  # noqa: PLR0917 - a call's three parts, and the server's name and two limits
    server: str, ids: Sequence[int], prompt_tokens: int, labels: Sequence[int], vocab_size: int, max_prompt_tokens: int
) -> None:
    """Keep from a server what it would refuse, or die of.

    Args:
        server: Its name, for messages.
        ids: Token ids of the prompt, or of its part that has not been checked yet.
        prompt_tokens: How many the whole prompt has.
        labels: Token ids whose logprobs are wanted.
        vocab_size: Ids lie in ``range(vocab_size)``.
        max_prompt_tokens: The longest prompt that leaves room for its output token.

    Raises:
        BackendError: An id outside the vocabulary, an empty or too long prompt, or labels that are not distinct.
    """
    if not ids or not labels:
        raise BackendError(f"a call to {server} needs at least one token and one label")
    if min(ids) < 0 or max(ids) >= vocab_size or min(labels) < 0 or max(labels) >= vocab_size:
        raise BackendError(
            f"a token id lies outside the vocabulary of {vocab_size}: the tokenizer belongs to another model"
        )
    if prompt_tokens > max_prompt_tokens:
        raise BackendError(f"a prompt of {prompt_tokens} tokens; {server} takes at most {max_prompt_tokens}")
    if len(set(labels)) != len(labels):
        raise BackendError("a branch names one label twice")
