"""A run over the rows of a data set: each row is answered once, a few at a time, and recorded in a file.

The file's first line says what the run is. Every further line is the record of one row, written in one piece and
flushed to the disk before the next. After a crash the file holds whole lines and at most one incomplete line at its
end, which is cut off when the run goes on.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from openjev_core.datasets.places import file_error, in_row
from openjev_core.datasets.rows import Row
from openjev_core.errors import RequestError, StartupError
from openjev_core.json_document import compact, parse_document

FORMAT = 1

BEGINNING = b'{"openjev_run":'
"""What the first line of every run begins with."""


class RunFile:
    """An open run.

    Attributes:
        done: Row number to record, for the rows that have been answered.
    """

    def __init__(self, path: Path, descriptor: int, done: dict[int, dict[str, Any]]) -> None:
        self._path = path
        self._descriptor = descriptor
        self.done = done

    def add(self, record: Mapping[str, Any]) -> None:
        """Write a row's record, and return when it is on the disk.

        Raises:
            StartupError: The row has a record already, or the record cannot be written.
        """
        number = record["row"]
        if number in self.done:
            raise StartupError(f"{self._path}: row {number} was answered twice")
        _append(self._path, self._descriptor, record)
        self.done[number] = dict(record)


@contextmanager
def open_run(path: Path, header: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[RunFile]:
    """Begin a run, or go on with one that was interrupted.

    Args:
        path: The run's file; a lock file stands beside it while the run goes on.
        header: What the run is. An existing file must have been begun with the same header.
        rows: The rows of the data set, by which records of an existing file are recognised.

    Raises:
        RequestError: The file is no run, or a run over other rows.
        StartupError: Another process is writing the file, it was begun differently, or it cannot be written.
    """
    lock = FileLock(f"{path}.lock", timeout=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise StartupError(f"{path}: another process is writing this run; wait for it, or use another file") from None
    except OSError as error:
        raise _unwritable(path, error) from error
    with ExitStack() as stack:
        stack.callback(lock.release)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
            stack.callback(os.close, descriptor)
            run = _resumed(path, descriptor, {"openjev_run": FORMAT, **header}, rows)
        except OSError as error:
            raise _unwritable(path, error) from error
        yield run


def read_run(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header and the records of a run, finished or not.

    Raises:
        RequestError: The file cannot be read, or is no run.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise file_error(path, f"cannot be read: {error.strerror or error}") from None
    lines = list(_whole_lines(path, content))
    if not lines:
        raise file_error(path, "is no run of this program: it has no first line that says what it is")
    return lines[0], lines[1:]


def _resumed(path: Path, descriptor: int, expected: dict[str, Any], rows: Sequence[Row]) -> RunFile:
    content = path.read_bytes()
    lines = list(_whole_lines(path, content))
    if not lines:
        if content[: len(BEGINNING)] != BEGINNING[: len(content)]:
            # Without a line's end all of it would pass for a line that was torn off, and be lost.
            raise file_error(path, "this is no run of this program; use another file")
        os.ftruncate(descriptor, 0)
        _append(path, descriptor, expected)
        _flush_folder(path)
        return RunFile(path, descriptor, {})
    found, records = lines[0], lines[1:]
    if differing := [key for key in {**expected, **found} if expected.get(key) != found.get(key)]:
        key = differing[0]
        raise StartupError(
            f"{path}: this run was begun with {key} {compact(found.get(key))}, and now it is "
            f"{compact(expected.get(key))}; use another file, or delete this one to start anew"
        )
    done = _recognised(path, records, rows)
    # What follows the last whole line was being written when the process was killed: its row counts as not answered.
    os.ftruncate(descriptor, content.rfind(b"\n") + 1)
    return RunFile(path, descriptor, done)


def _recognised(path: Path, records: Sequence[dict[str, Any]], rows: Sequence[Row]) -> dict[int, dict[str, Any]]:
    by_number = {row.number: row for row in rows}
    done: dict[int, dict[str, Any]] = {}
    for line, record in enumerate(records, start=2):
        place = f"{path.name} line {line}"
        number = record.get("row")
        row = by_number.get(number) if isinstance(number, int) else None
        if row is None or record.get("digest") != row.digest:
            msg = (
                f"answers row {number} of other data ({'there is no such row' if row is None else row.place}: its "
                "state, questions or labels are not those that were answered); use another file"
            )
            raise in_row(place, RequestError.at((), msg))
        if row.number in done:
            raise in_row(place, RequestError.at((), f"answers row {number} a second time"))
        done[row.number] = record
    return done


def _whole_lines(path: Path, content: bytes) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        place = f"{path.name} line {number}"
        try:
            value = parse_document(line, "the line")
        except RequestError as error:
            raise in_row(place, error) from None
        if not isinstance(value, dict) or (number == 1 and value.get("openjev_run") != FORMAT):
            raise in_row(place, RequestError.at((), "this is no run of this program, or one of another version"))
        if number > 1 and not (isinstance(value.get("row"), int) and {"id", "digest"} <= value.keys()):
            raise in_row(place, RequestError.at((), "this is no record of a row: it has no row, id and digest"))
        yield value


def _append(path: Path, descriptor: int, record: Mapping[str, Any]) -> None:
    line = compact(record).encode("utf-8", "surrogatepass") + b"\n"
    try:
        while line:
            # A full disk takes a part first and refuses the next.
            line = line[os.write(descriptor, line) :]
        os.fsync(descriptor)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> StartupError:
    return StartupError(f"{path}: cannot be written: {error.strerror or error}; what it holds is kept")


def _flush_folder(path: Path) -> None:
    """Make a new file's name survive a power cut, where the system can."""
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError:
        return  # Windows does not open folders
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


async def run_rows(
    rows: Sequence[Row],
    record: Callable[[Row], Awaitable[dict[str, Any]]],
    run: RunFile,
    *,
    concurrency: int,
    answered: Callable[[], None],
) -> None:
    """Answer the rows that the run has no record of.

    Args:
        rows: All rows.
        record: Answers a row and makes its record.
        run: Receives each record as soon as it exists.
        concurrency: Rows in flight at once.
        answered: Called after each row.

    Raises:
        OpenJevError: The first error that ``record`` raised. The other rows in flight are cancelled, and what was
            recorded stays.
    """
    waiting = iter([row for row in rows if row.number not in run.done])

    async def work() -> None:
        for row in waiting:
            found = await record(row)
            _check_model(run, found)
            run.add(found)
            answered()

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(concurrency):
                tasks.create_task(work())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


def _check_model(run: RunFile, record: dict[str, Any]) -> None:
    """Refuse a second model within a run: a server may be restarted with another one meanwhile."""
    before = next((r["model"] for r in run.done.values() if r.get("model")), None)
    if before is not None and record.get("model") not in (None, before):
        raise StartupError(
            f"row {record['row']} was answered by {record['model']!r}, and this run was begun with {before!r}; "
            "use another file for another model"
        )
