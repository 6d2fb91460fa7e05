"""Libraries that only some commands need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from openjev_core.errors import StartupError


def needs_extra(module: str, what: str) -> Any:
    """Import a library of the ``eval`` extra.

    Args:
        module: Its import name.
        what: What needs it, for the message.

    Raises:
        StartupError: It is not installed. Says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise StartupError(f"{what} need {library} ({error}); install it with: pip install 'openjev[eval]'") from None
