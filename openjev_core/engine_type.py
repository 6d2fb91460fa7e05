"""The engine contract: what an engine is, as a plugin gives it.

An engine opens something that reads readouts about a state: see :mod:`openjev_core.reader`, the seam. There are two
kinds. Engines for models that take tokens make a :class:`~openjev_core.LoadedModel`, a backend with a tokenizer and a
chat template, and have :func:`~openjev_core.prompt_model` write the prompts. All others implement the reader
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from attrs import field, frozen, validators

from openjev_core.question import NoSettings

if TYPE_CHECKING:
    from openjev_core.address import Address
    from openjev_core.reader import Model
    from openjev_core.settings import Settings

NAME_PATTERN = re.compile(r"[a-z][a-z0-9.-]{0,63}")

Progress = Callable[[str], None]
"""Takes a line for a person on what the start waits for or has found."""


@frozen(kw_only=True)
class EngineStart:
    """What an engine is opened with.

    Attributes:
        settings: The settings of the whole server or program.
        own: The engine's own settings, an instance of :attr:`EngineType.settings`.
        labels: The installed question types' own labels, which each have to be one token on a model that takes tokens.
        address: The server to connect to; ``None`` where the user named none. Entered until the engine is open.
        progress: Takes lines for a person.
    """

    settings: Settings
    own: Any
    labels: Sequence[str]
    address: Address | None
    progress: Progress


@frozen(kw_only=True)
class EngineType:
    """An engine: the whole of what a plugin gives.

    Attributes:
        name: What ``--engine`` takes: a lower-case slug of at most 64 characters, dots allowed.
        summary: One line for ``openjev plugins list``.
        api: The version of the contract that the engine was written for: the literal ``1``.
        open: Opens the engine: an async context manager whose value is a :class:`~openjev_core.Model` that is ready,
            and whose end closes it. It raises :class:`~openjev_core.StartupError` where it cannot, with what was
            expected, what was found and how to change it. It may take as long as ``OPENJEV_STARTUP_TIMEOUT`` says,
            and blocks nothing: what blocks belongs in a thread.
        settings: An attrs class of the engine's own settings, each field made by :func:`~openjev_core.setting`. The
            field ``x`` of an engine ``e`` is the variable ``OPENJEV_E_X`` and the flag ``--e-x``; a secret has no flag.
        recognise: Whether this engine can connect to what answers at an address: the page that says so, for a person
            (``"GET /props"``), or ``None``. An engine without it runs in this process, and has no address.
        fallback: True where other engines' servers may have the pages that this one is recognised by. Such an engine is
            asked after all others.
    """

    name: str = field(validator=validators.matches_re(NAME_PATTERN.pattern, func=re.fullmatch))
    summary: str = field(validator=validators.instance_of(str))
    api: int
    open: Callable[[EngineStart], AbstractAsyncContextManager[Model]]
    settings: type = NoSettings
    recognise: Callable[[Address], Awaitable[str | None]] | None = None
    fallback: bool = False
