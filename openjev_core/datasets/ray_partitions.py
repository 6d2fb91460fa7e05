"""Partitions of a bulk run, as the workers of a Ray cluster read, answer and write them."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from attrs import frozen

from openjev_core.datasets.askers import Asker, EngineAsker, open_http
from openjev_core.datasets.checked_rows import check_questions
from openjev_core.datasets.exports import cells_of, check_clashes, column_of, scalar
from openjev_core.datasets.records import answer_record
from openjev_core.datasets.rows import Columns, Row, read_rows
from openjev_core.datasets.tables import needs_extra
from openjev_core.engine import opening
from openjev_core.errors import OpenJevError
from openjev_core.json_document import compact
from openjev_core.orders import Orders
from openjev_core.plugins.registry import Registry, load_registry
from openjev_core.plugins.structuring import QuestionConverter
from openjev_core.settings import Settings

METADATA = b"openjev"
"""The key under which a partition's file says what it is."""


@frozen(kw_only=True)
class Job:
    """What every worker of a run needs to know.

    Attributes:
        folder: Where partitions are written, a path of ``filesystem``.
        filesystem: A ``pyarrow.fs.FileSystem``.
        columns: What the rows hold.
        settings: Of the engine.
        url: The server that is asked; ``None`` where each actor has an engine.
        orders, model: What a server is asked for; ``None`` leaves it to the server.
        concurrency: Different states that an actor asks about at once.
        partitions: How many partitions there are.
    """

    folder: str
    filesystem: Any
    columns: Columns
    settings: Settings
    url: str | None
    orders: Orders | None
    model: str | None
    concurrency: int
    partitions: int

    def registry(self) -> Registry:
        """The types that are installed on a worker."""
        return load_registry(self.settings.disable_plugins, self.settings.plugins).configured(self.settings)

    def file(self, partition: int) -> str:
        """The file of a partition."""
        return f"{self.folder}/part-{partition:05}.parquet"


def rows_of(file: Mapping[str, Any], job: Job) -> Iterator[dict[str, Any]]:
    """The rows of one input file, checked as ``openjev batch`` checks them.

    Args:
        file: ``path`` and ``bytes``, as Ray Data reads them.
        job: The run.

    Yields:
        The row with its partition, or one ``problem`` in place of all rows. Rows that share a state share a partition.
    """
    columns = ("partition", "state", "row", "fields", "path", "problem")
    with TemporaryDirectory(prefix="openjev-") as folder:
        path = Path(folder) / Path(file["path"]).name
        path.write_bytes(file["bytes"])
        try:
            rows = read_rows(path, job.columns)
            # A server may have types that are not installed here, and itself refuses questions that are not valid.
            registry = job.registry()
            known = None if job.url is None else frozenset(registry.types)
            check_clashes(rows, check_questions(rows, QuestionConverter(registry), known=known))
        except OpenJevError as error:
            yield dict(zip(columns, (0, "", b"", "", file["path"], str(error)), strict=True))
            return
    for row in rows:
        partition = int(row.state_digest, 16) % job.partitions
        fields = compact(sorted(row.fields))
        yield dict(
            zip(columns, (partition, row.state_digest, pickle.dumps(row), fields, file["path"], ""), strict=True)
        )


class Answering:
    """An actor that answers and writes partitions, one after another. Its engine opens with the first that needs it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._threads, self._stack = ExitStack(), AsyncExitStack()
        self._portal: BlockingPortal | None = None
        self._asker: Asker | None = None
        self._places = job.concurrency

    def __call__(self, group: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Answer and write one partition, where that was not done before.

        Args:
            group: Columns of the partition's rows, as :func:`rows_of` yields them.

        Returns:
            One line: the partition, its rows, how many were refused, whether it was there before, and a problem that
            left it unwritten (empty where there is none).
        """
        partition = int(group["partition"][0])
        paired = zip(group["path"], group["row"], strict=True)
        # The order is the same in every attempt; rows of one state are neighbours.
        rows = [row for _, _, _, row in sorted(map(_keyed, paired), key=lambda keyed: keyed[:3])]
        digest = compact([row.digest for row in rows])
        line = {"partition": partition, "rows": len(rows), "refused": 0, "kept": False, "problem": ""}
        try:
            before = facts_of(self._job, partition)
            if before is not None and before["rows"] != digest:
                msg = f"{self._job.file(partition)} holds answers to other rows; give another --out"
                line["problem"] = msg
            elif before is not None:
                line.update(refused=before["refused"], kept=True)
            else:
                line["refused"] = self._answer(partition, rows, digest)
        except (OpenJevError, OSError) as error:
            line["problem"] = str(error) or type(error).__name__
        return {name: [value] for name, value in line.items()}

    def _answer(self, partition: int, rows: Sequence[Row], digest: str) -> int:
        if self._portal is None:
            # For the actor's life: it ends with the actor's process.
            self._portal = self._threads.enter_context(start_blocking_portal("asyncio"))
        records, source = self._portal.call(self._records, rows)
        refused = sum("error" in record for record in records)
        facts = {"rows": digest, "refused": refused, "source": source}
        write_partition(self._job, partition, map(cells_of, rows, records), facts)
        return refused

    async def _records(self, rows: Sequence[Row]) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
        asker = self._asker or await self._open()
        places = asyncio.Semaphore(self._places)

        async def of_state(alike: Sequence[Row]) -> list[dict[str, Any]]:
            # One after another: the first reads the state, the others find it in the engine's prefix cache.
            async with places:
                return [await answer_record(asker, row) for row in alike]

        try:
            async with asyncio.TaskGroup() as tasks:
                groups = [list(alike) for _, alike in groupby(rows, key=lambda row: row.state_digest)]
                running = [tasks.create_task(of_state(alike)) for alike in groups]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [record for task in running for record in task.result()], dict(asker.source)

    async def _open(self) -> Asker:
        job = self._job
        if job.url is None:
            opened = opening.open_engine(job.settings, registry=job.registry())
            engine = await self._stack.enter_async_context(opened)
            if engine.model.one_at_a_time:
                self._places = 1
            self._asker = EngineAsker(engine)
        else:
            asker = open_http(
                job.url,
                orders=job.orders,
                api_key=job.settings.api_key[0] if job.settings.api_key else None,
                seconds=job.settings.request_timeout,
                concurrency=job.concurrency,
                model=job.model,
            )
            self._asker = await self._stack.enter_async_context(asker)
        return self._asker


def write_partition(
    job: Job,
    partition: int,
    rows: Iterable[Mapping[str, Any]],
    facts: Mapping[str, Any],
    kinds: Mapping[str, Any] | None = None,
) -> None:
    """Write a partition's file in one step: it is there whole, or not at all.

    Args:
        job: The run.
        partition: Its number.
        rows: Column to value of each row.
        facts: What the file says about itself.
        kinds: Arrow types of all the run's columns, once they are known.
    """
    parquet, polars = needs_extra("pyarrow.parquet", "Runs on Ray"), needs_extra("polars", "Parquet files")
    cells = list(rows)
    if kinds is None:
        names = dict.fromkeys(name for one in cells for name in one)
        columns = {name: column_of([scalar(one.get(name)) for one in cells]) for name in names}
        table = polars.DataFrame(columns, strict=True).to_arrow()
    else:
        table = _of_kinds(cells, kinds)
    table = table.replace_schema_metadata({METADATA: compact(facts).encode()})
    path = job.file(partition)
    # An object store shows an object when it is whole; a folder shows a file as it grows, so it is renamed.
    local = job.filesystem.type_name == "local"
    written = f"{job.folder}/.{partition:05}.{id(table):x}.incomplete" if local else path
    parquet.write_table(table, written, filesystem=job.filesystem)
    if local:
        job.filesystem.move(written, path)


def _of_kinds(cells: Sequence[Mapping[str, Any]], kinds: Mapping[str, Any]) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    def of_kind(value: Any, kind: Any) -> Any:
        text = kind == pa.large_string() and value is not None and not isinstance(value, str)
        return compact(value) if text else value

    schema = pa.schema(list(kinds.items()))
    return pa.Table.from_pylist(
        [{name: of_kind(one.get(name), kind) for name, kind in kinds.items()} for one in cells], schema=schema
    )


def facts_of(job: Job, partition: int) -> dict[str, Any] | None:
    """What the file of a partition says about itself; ``None`` where there is no such file."""
    import orjson  # noqa: PLC0415

    parquet = needs_extra("pyarrow.parquet", "Runs on Ray")
    try:
        metadata = parquet.read_schema(job.file(partition), filesystem=job.filesystem).metadata or {}
    except FileNotFoundError:
        return None
    facts: dict[str, Any] = orjson.loads(metadata.get(METADATA, b'{"rows": null}'))
    return facts


def _keyed(paired: tuple[str, bytes]) -> tuple[str, str, int, Row]:
    path, pickled = paired
    row: Row = pickle.loads(pickled)  # noqa: S301 - rows_of pickled it
    return row.state_digest, str(path), row.number, row
