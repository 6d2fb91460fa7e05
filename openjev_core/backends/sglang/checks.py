"""What is checked of a running SGLang before its answers are served, each in one line for a person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from openjev_core.backends.sglang.facts import PROMPT_SLACK, ServerFacts
from openjev_core.errors import StartupError

NOT_REPORTED = "not reported"


def fact_lines(facts: ServerFacts, *, url: str, tokenizer: str, max_input_tokens: int) -> Iterator[str]:
    """One line per check that passes.

    Args:
        facts: What the server says of itself.
        url: Where it is.
        tokenizer: Where this side's tokenizer comes from: a directory or a Hugging Face name.
        max_input_tokens: The longest branch that is promised to clients, its output token included.

    Raises:
        StartupError: A check failed: says what was expected, what was found and how to change it.
    """
    frontend = f"{facts.frontend} front end" if facts.frontend else f"front end {NOT_REPORTED}"
    yield f"reachable: SGLang {facts.version or f'(version {NOT_REPORTED})'}, {frontend}, at {url}"
    yield f"model: {model_line(facts, tokenizer)}"
    yield f"prefix cache: {cache_line(facts)}"
    yield f"longest prompt: {longest_line(facts, max_input_tokens)}"


def model_line(facts: ServerFacts, tokenizer: str) -> str:
    """Whether the server's tokenizer is this side's."""
    theirs = facts.tokenizer_path or facts.model_path
    if theirs is None:
        return f"{NOT_REPORTED}; prompts are tokenized with {tokenizer}"
    if not same_tokenizer(theirs, tokenizer):
        raise StartupError(
            f"model: expected a server that runs {tokenizer!r}, found one that runs {theirs!r}; name its tokenizer "
            "with --model, or serve without this check by --skip-checks if they are the same under two names"
        )
    return f"{facts.model_path or theirs}, tokenized with {tokenizer}"


def same_tokenizer(one: str, other: str) -> bool:
    """Whether two sources hold one tokenizer, by their files where both can be read, else by their names."""
    alike = same_files(one, other)
    return last_part(one) == last_part(other) if alike is None else alike


def same_files(one: str, other: str) -> bool | None:
    """Whether two directories hold one tokenizer; ``None`` where they cannot both be read here."""
    files = [Path(source) / "tokenizer.json" for source in (one, other)]
    return files[0].read_bytes() == files[1].read_bytes() if all(file.is_file() for file in files) else None


def tokenizer_is_proven(facts: ServerFacts, tokenizer: str) -> bool:
    """Whether the server's tokenizer was compared with this side's file by file, and not by its name."""
    theirs = facts.tokenizer_path or facts.model_path
    return theirs is not None and bool(same_files(theirs, tokenizer))


def last_part(source: str) -> str:
    """``nvidia/Model`` and ``/models/Model/`` name the same model."""
    return source.rstrip("/").rsplit("/", 1)[-1].lower()


def cache_line(facts: ServerFacts) -> str:
    """Whether a warmed prefix is kept."""
    if facts.radix_cache is False:
        raise StartupError(
            "prefix cache: expected it on, found it off, so that every branch would compute the state anew; start "
            "SGLang without --disable-radix-cache"
        )
    state = NOT_REPORTED if facts.radix_cache is None else "on"
    return f"{state}, page size {facts.page_size or NOT_REPORTED}"


def longest_line(facts: ServerFacts, max_input_tokens: int) -> str:
    """Whether the longest branch that is promised fits."""
    needed = max_input_tokens - 1
    longest = facts.max_prompt_tokens
    if longest is None:
        return f"{NOT_REPORTED}; {needed} tokens are promised"
    if longest < needed:
        raise StartupError(
            f"longest prompt: expected {needed} tokens at least, which OPENJEV_MAX_INPUT_TOKENS of {max_input_tokens} "
            f"promises, found {longest}; start SGLang with --context-length {needed + PROMPT_SLACK}, or set "
            f"OPENJEV_MAX_INPUT_TOKENS to {longest + 1}"
        )
    return f"{longest} tokens, {needed} are promised"
