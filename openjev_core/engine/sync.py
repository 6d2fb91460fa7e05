"""The engine without ``await``, for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from openjev_core.engine.engine import Engine
from openjev_core.engine.evaluation import Evaluation
from openjev_core.engine.opening import open_engine
from openjev_core.engine.request import ALIAS
from openjev_core.engine_type import Progress
from openjev_core.limits import Limits
from openjev_core.orders import Orders
from openjev_core.plugins.registry import Registry
from openjev_core.settings import Settings


class SyncEngine:
    """An engine whose methods block. It is open inside a ``with`` block and runs on an event loop in its own thread.

    Calls may come from several threads at once; they are evaluated concurrently.

    Args:
        settings: What to run with; the defaults, and so the embedded demo model, when ``None``.
        registry: The question types; the installed ones when ``None``.
        progress: Takes lines on what a start is waiting for; called from the engine's thread.

    Raises:
        StartupError: On entering the block: as :func:`openjev_core.open_engine`.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        registry: Registry | None = None,
        progress: Progress = lambda _: None,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._progress = progress
        self._stack = ExitStack()
        self._opened: tuple[BlockingPortal, Engine] | None = None

    def __enter__(self) -> Self:
        opening = open_engine(self._settings, registry=self._registry, progress=self._progress)
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal("asyncio"))
            engine = stack.enter_context(portal.wrap_async_context_manager(opening))
            self._stack = stack.pop_all()
        self._opened = portal, engine
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened = None
        self._stack.__exit__(kind, error, trace)

    @property
    def engine(self) -> Engine:
        """The engine itself. Its coroutines belong on its own loop; its attributes may be read from anywhere.

        Raises:
            RuntimeError: It is not open.
        """
        return self._open()[1]

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self.engine.limits

    def evaluate(
        self,
        *,
        state: Any,
        questions: Mapping[str, Any],
        model: str = ALIAS,
        orders: Orders | None = None,
        partial: bool = False,
        detail: bool = False,
    ) -> Evaluation:
        """Answer questions about a state: see :meth:`openjev_core.Engine.evaluate`.

        Raises:
            RequestError: The request is wrong; nothing was inferred.
            OpenJevError: See :mod:`openjev_core.errors`.
            RuntimeError: The engine is not open.
        """
        portal, engine = self._open()

        async def run() -> Evaluation:
            return await engine.evaluate(
                state=state, questions=questions, model=model, orders=orders, partial=partial, detail=detail
            )

        return portal.call(run)

    def _open(self) -> tuple[BlockingPortal, Engine]:
        if self._opened is None:
            raise RuntimeError("the engine is not open: use it inside `with SyncEngine(...) as engine:`")
        return self._opened
