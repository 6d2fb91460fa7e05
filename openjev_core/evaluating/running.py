"""Answering the rows of a data set, a few at a time, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

from openjev_core.errors import StartupError
from openjev_core.evaluating.run_file import RunFile

R = TypeVar("R")


async def run_rows(
    rows: Sequence[R],
    number_of: Callable[[R], int],
    answer: Callable[[R], Awaitable[dict[str, Any]]],
    run: RunFile,
    *,
    concurrency: int,
    answered: Callable[[], None],
) -> None:
    """Answer the rows that the run has no record of.

    Args:
        rows: All rows.
        number_of: A row's number.
        answer: Makes a row's record.
        run: Takes the records, each as soon as it is there.
        concurrency: Rows in flight at once.
        answered: Called after each.

    Raises:
        OpenJevError: What ``answer`` raised first; the others in flight are cancelled, and what was recorded stays.
    """
    waiting = iter([row for row in rows if number_of(row) not in run.done])

    async def work(queue: Iterator[R]) -> None:
        for row in queue:
            record = await answer(row)
            _check_model(run, record)
            run.add(record)
            answered()

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(concurrency):
                tasks.create_task(work(waiting))
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


def _check_model(run: RunFile, record: dict[str, Any]) -> None:
    """Hold a run to one model: a server may be restarted with another while it goes on."""
    before = next((r["model"] for r in run.done.values() if r.get("model")), None)
    if before is not None and record.get("model") not in (None, before):
        raise StartupError(
            f"row {record['row']} was answered by {record['model']!r}, and this run was begun with {before!r}; "
            "use another file for another model"
        )
