"""The demo model in a format that llama.cpp computes faster: made at the first start, and kept.

It is shipped with weights of 4 bits in the format Q4_1, for which llama.cpp has no routine that multiplies several
tokens at once. With the same weights in 8 bits, Q8_0, it reads a text 1.6 times as fast (600 tokens in 1.26 s instead
of 2.0 on two cores) and answers 8 questions about it 1.4 times as fast, from a file of 145 MB instead of 98. Models of
the user's own are taken as they are: what to trade for speed is for whoever chose them to say.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from openjev_core.backends.llamacpp import requantizing
from openjev_core.backends.llamacpp.demo_model import demo_model_path, verify_demo_model
from openjev_core.errors import StartupError

NAME = "SmolLM2-135M-Instruct.Q8_0.gguf"
SIZE = 144_811_072
SHA256 = "4a197789e71f16d2a0c228684e98def3218e2e324488a5414d46605bf849023d"

WRITER = "gguf>=0.18,<0.20"
"""What is known to write these bytes."""

PATIENCE = 20.0
"""Seconds for another start that is making the file, which takes some five."""
LIMIT = 60.0
"""Seconds for making it: less than a supervisor waits for a start."""
INTERRUPTED = (-signal.SIGINT, 0xC000013A)
"""What a process ends with by Ctrl-C, which a terminal sends to all of them: elsewhere, and on Windows."""

log = logging.getLogger(__name__)


class CannotBeMade(Exception):
    """Why there is no fast form; the text is for a person."""


def find_demo_model(progress: Callable[[str], None]) -> Path:
    """The demo model's file: its fast form, made where it is not there yet. Blocks, for some seconds the first time.

    Where the fast form cannot be made or kept, a warning is logged and it is the file as it is shipped: reading takes
    longer, and probabilities differ by some hundredths.

    Args:
        progress: Takes lines for a person.

    Raises:
        StartupError: There is no fast form yet, and the demo model is not installed or damaged; or Ctrl-C.
    """
    try:
        kept = kept_at()
        if is_fast_demo_model(kept):
            return kept
        shipped = verified()
        make(shipped, kept, progress)
    except (CannotBeMade, OSError, RuntimeError, ValueError) as error:  # the last two: of locks, and of a broken gguf
        log.warning(
            "the faster copy of the demo model cannot be made (%s); reading the model as it is shipped: slower, and "
            "probabilities differ by some hundredths. XDG_CACHE_HOME can name another folder for the copy",
            error,
        )
        return verified()
    return kept


def verified() -> Path:
    """The demo model's file as it is shipped.

    Raises:
        StartupError: It is not installed, or damaged.
    """
    shipped = demo_model_path()
    verify_demo_model(shipped)
    return shipped


def kept_at() -> Path:
    """Where the fast form is kept: in the user's cache directory.

    Raises:
        CannotBeMade: The user has none.
    """
    try:
        folder = user_cache_path("openjev", appauthor=False)
    except RuntimeError as error:
        raise CannotBeMade(f"there is no home directory for a cache ({error}); set XDG_CACHE_HOME") from error
    if not folder.is_absolute():
        raise CannotBeMade(f"there is no home directory for a cache (found {str(folder)!r}); set XDG_CACHE_HOME")
    return folder / NAME


def is_fast_demo_model(path: Path) -> bool:
    """Whether a file is the fast form, byte for byte, and can be read; takes 0.1 s where its size fits."""
    try:
        if not path.is_file() or path.stat().st_size != SIZE:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    except OSError:
        return False


def make(shipped: Path, kept: Path, progress: Callable[[str], None]) -> None:
    """Write the fast form, once also where several processes start together.

    Raises:
        CannotBeMade: The ``gguf`` package or room on the disk is missing, it did not come out as it should, or another
            process takes too long with it.
        OSError: Its folder or a file in it cannot be written.
        RuntimeError: Files cannot be locked there.
    """
    if importlib.util.find_spec("gguf") is None:
        raise CannotBeMade(f'the package gguf is not installed; install openjev[embedded], or pip install "{WRITER}"')
    if not sys.executable or getattr(sys, "frozen", False):
        raise CannotBeMade("it is written by a process of its own, and this one does not know its Python")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with alone(kept, progress):
        if is_fast_demo_model(kept):
            return
        # One name for what is half written: a start that was killed leaves a file that the next one removes.
        partial = kept.with_name(f"{NAME}.partial")
        partial.unlink(missing_ok=True)
        free = shutil.disk_usage(kept.parent).free
        if free < SIZE:
            raise CannotBeMade(f"{kept.parent} has room for {free / 1e6:.0f} MB, and it takes {SIZE / 1e6:.0f}")
        progress(f"writing the demo model in a faster format, once: {kept} ({SIZE / 1e6:.0f} MB)")
        try:
            write(shipped, partial)
            partial.replace(kept)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def alone(kept: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold off other starts that would write this file.

    Raises:
        CannotBeMade: One that is at it does not come to an end.
    """
    lock = FileLock(kept.with_name(f"{NAME}.lock"))
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress(f"waiting for another start that writes {kept}")
            lock.acquire(timeout=PATIENCE)
    except Timeout:
        raise CannotBeMade(f"another process has held {lock.lock_file} for {PATIENCE:g} s") from None
    try:
        yield
    finally:
        lock.release()


def write(shipped: Path, path: Path) -> None:
    """Write the fast form to ``path``, in a process of its own, and check it.

    Raises:
        CannotBeMade: It did not come out as it should.
        StartupError: Ctrl-C ended that process, as it will this start.
        OSError: The process does not start.
    """
    # -P: this project has a module of the name gguf in the script's folder.
    command = [sys.executable, "-P", requantizing.__file__, str(shipped), str(path)]
    stdin, held = os.pipe()
    try:
        done = subprocess.run(  # noqa: S603 - this Python and a script of this package
            command, stdin=stdin, capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise CannotBeMade(f"writing {path} took longer than {LIMIT:g} s") from None
    finally:
        # Held for as long as the file is wanted: however this process ends, the other one then ends, too.
        os.close(held)
        os.close(stdin)
    if done.returncode in INTERRUPTED:
        raise StartupError("interrupted while the demo model was being written in a faster format")
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"its process ended with {done.returncode}"]
        raise CannotBeMade(f'writing {path}: {said[-1]} (it is known to work with "{WRITER}")')
    if not is_fast_demo_model(path):
        raise CannotBeMade(f'other bytes came out than should; it is known to work with "{WRITER}"')
