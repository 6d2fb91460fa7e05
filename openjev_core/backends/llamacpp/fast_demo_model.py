"""The demo model in a format that llama.cpp computes faster: made at the first start, and kept.

It is shipped with weights of 4 bits in the format Q4_1, for which llama.cpp has no routine that multiplies several
tokens at once. With the same weights in 8 bits, Q8_0, it reads 1.6 times as many tokens a second (600 in 1.26 s
instead of 2.0 on two cores), from a file of 145 MB instead of 98. Models of the user's own are taken as they are: what
to trade for speed is for whoever chose them to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from openjev_core.backends.llamacpp.requantizing import requantize

NAME = "SmolLM2-135M-Instruct.Q8_0.gguf"
SIZE = 144_811_072
SHA256 = "4a197789e71f16d2a0c228684e98def3218e2e324488a5414d46605bf849023d"

WAIT = 120.0
"""Seconds for another process that is making the file, which takes some four."""


def fast_demo_model(shipped: Path, progress: Callable[[str], None]) -> Path:
    """The demo model's fast form, made where it is not there yet. Blocks, for some seconds the first time.

    Args:
        shipped: The demo model as it comes, verified.
        progress: Takes lines for a person.

    Returns:
        ``shipped`` itself where the fast form cannot be made or kept; ``progress`` is told why. Probabilities then
        differ by some hundredths.
    """
    try:
        kept = kept_at()
        if not is_fast_demo_model(kept):
            make(shipped, kept, progress)
    except ImportError as error:
        reason = f"{error}; install openjev[embedded], or with pip: pip install 'gguf>=0.19,<0.20'"
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error)
    else:
        return kept
    progress(
        f"the demo model is read as it is shipped, at 1.6 times the time and with numbers that differ by some "
        f"hundredths, because its faster form cannot be had: {reason}"
    )
    return shipped


def kept_at() -> Path:
    """Where the fast form is kept: the user's cache directory, or that of ``XDG_CACHE_HOME``.

    Raises:
        OSError: The user has none.
    """
    kept = user_cache_path("openjev", appauthor=False) / NAME
    if not kept.is_absolute():
        raise OSError(f"there is no home directory for a cache (found {str(kept.parent)!r}); set XDG_CACHE_HOME")
    return kept


def is_fast_demo_model(path: Path) -> bool:
    """Whether a file is the fast form, byte for byte; takes 0.1 s where its size fits.

    Raises:
        OSError: It cannot be read.
    """
    if not path.is_file() or path.stat().st_size != SIZE:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256


def make(shipped: Path, kept: Path, progress: Callable[[str], None]) -> None:
    """Write the fast form, once also where several processes start together.

    Raises:
        ImportError: The ``gguf`` package is not installed.
        OSError: The file cannot be written, or another process takes too long with it.
        ValueError: It did not come out as it should.
    """
    kept.parent.mkdir(parents=True, exist_ok=True)
    # One name for what is half written: a start that was killed leaves a file that the next one overwrites.
    partial = kept.with_name(f"{NAME}.partial")
    with FileLock(kept.with_name(f"{NAME}.lock"), timeout=WAIT):
        if is_fast_demo_model(kept):
            return
        progress(f"writing the demo model in a faster format, once: {kept} ({SIZE / 1e6:.0f} MB)")
        try:
            requantize(shipped, partial)
            if not is_fast_demo_model(partial):
                raise ValueError("the package gguf wrote other bytes than it should")
            partial.replace(kept)
        finally:
            partial.unlink(missing_ok=True)
