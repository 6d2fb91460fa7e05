"""Whether a server runs the model whose tokenizer is here, and takes prompts as long as are promised.

Each check is a line for a person; one that fails ends the start.
"""

from __future__ import annotations

from pathlib import Path

from openjev_core.errors import StartupError

NOT_REPORTED = "not reported"
BUSY_TIMEOUT = 30.0
"""Seconds for the first calls: a server that is busy takes its time."""

PLAIN = "A"
"""What a tokenizer puts around a text by itself counts here too, and cancels out."""
TRICKY = (
    "Hello, world!  'Tis 1984: -12345.678e9 \u20ac \u00bd.\r\n\n\t\tdef f(x):\n        return {'a': [1, None]}  \n"
    "\u00dcn\u00efc\u00f6de e\u0301 \u4e2d\u6587\u95ee\u9898 \u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4 "
    "\u09ac\u09be\u0982\u09b2\u09be \u0939\u093f\u0928\u094d\u0926\u0940 \u0627\u0644\u0639\u0631\u0628\u064a\u0629 "
    "\u05e2\u05d1\u05e8\u05d9\u05ea \u0e44\u0e17\u0e22 \U0001f642\U0001f469\u200d\U0001f467 "
    "antidisestablishmentarianism"
)
"""Scripts, digits, signs, white space and rare words: vocabularies divide these differently."""


def model_line(model: str | None, theirs: str | None, ours: str) -> str:
    """Whether the server's tokenizer is this side's, by their files where both can be read, else by their names.

    Args:
        model: The server's model, as it reports it: a directory or a Hugging Face name.
        theirs: Its tokenizer, likewise.
        ours: Where this side's tokenizer comes from.

    Raises:
        StartupError: It is another one.
    """
    if theirs is None:
        return f"model: {NOT_REPORTED}; prompts are tokenized with {ours}"
    alike = same_files(theirs, ours)
    if not (last_part(theirs) == last_part(ours) if alike is None else alike):
        raise StartupError(
            f"model: expected a server that runs {ours!r}, found one that runs {theirs!r}; name its tokenizer "
            "with --model, or serve without this check by --skip-checks if they are the same under two names"
        )
    return f"model: {model or theirs}, tokenized with {ours}"


def same_files(one: str, other: str) -> bool | None:
    """Whether two directories hold one tokenizer; ``None`` where they cannot both be read here."""
    files = [Path(source) / "tokenizer.json" for source in (one, other)]
    return files[0].read_bytes() == files[1].read_bytes() if all(file.is_file() for file in files) else None


def last_part(source: str) -> str:
    """``nvidia/Model`` and ``/models/Model/`` name the same model."""
    return source.rstrip("/").rsplit("/", 1)[-1].lower()


def longest_line(longest: int | None, max_input_tokens: int, wider: str) -> str:
    """Whether the longest branch that is promised fits.

    Args:
        longest: Tokens of the longest prompt that the server takes; ``None`` where it does not say.
        max_input_tokens: The longest branch that is promised to clients, its output token included.
        wider: How the server is started to take it.

    Raises:
        StartupError: It does not fit.
    """
    needed = max_input_tokens - 1
    if longest is None:
        return f"longest prompt: {NOT_REPORTED}; {needed} tokens are promised"
    if longest < needed:
        raise StartupError(
            f"longest prompt: expected {needed} tokens at least, which OPENJEV_MAX_INPUT_TOKENS of {max_input_tokens} "
            f"promises, found {longest}; start {wider}, or set OPENJEV_MAX_INPUT_TOKENS to {longest + 1}"
        )
    return f"longest prompt: {longest} tokens, {needed} are promised"
