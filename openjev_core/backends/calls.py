"""The check of a call that every backend makes before it sends one."""

from __future__ import annotations

from openjev_core.backends.protocol import Branch
from openjev_core.errors import BackendError


def check_call(server: str, branch: Branch, before: int, vocab_size: int, max_prompt_tokens: int) -> None:
    """Refuse a call that a server would refuse, or die of.

    Args:
        server: The server's name, for messages.
        branch: The end of the prompt; a whole prefix counts as a branch with nothing before it.
        before: Tokens of the prompt before the branch's own.
        vocab_size: Ids lie in ``range(vocab_size)``.
        max_prompt_tokens: The longest prompt that leaves room for its output token.

    Raises:
        BackendError: An id outside the vocabulary, an empty or too long prompt, or labels that are not distinct.
    """
    if branch.fault is not None:
        raise BackendError(f"a call to {server} cannot be made: {branch.fault}")
    if branch.lowest < 0 or branch.highest >= vocab_size:
        raise BackendError(
            f"a token id lies outside the vocabulary of {vocab_size}: the tokenizer belongs to another model"
        )
    prompt_tokens = before + len(branch.suffix)
    if prompt_tokens > max_prompt_tokens:
        raise BackendError(f"a prompt of {prompt_tokens} tokens; {server} takes at most {max_prompt_tokens}")
