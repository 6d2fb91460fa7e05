"""A bulk run on a Ray cluster: Ray Data reads the files, brings rows of one state together, and runs the actors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from typing import Any

from attrs import frozen

from openjev_core.datasets.ray_partitions import Answering, Job, facts_of, rows_of, write_partition
from openjev_core.errors import RequestError, SettingsError, StartupError
from openjev_core.json_document import compact, parse_document

OBJECT_STORES = ("s3://", "gs://", "gcs://", "file://")
NEEDED = "Runs on Ray need {0}; install it on every node with: pip install 'openjev[ray]'"


@frozen(kw_only=True)
class Pool:
    """The actors of a run.

    Attributes:
        address: The cluster's, as ``ray.init`` takes it.
        least, most: How many actors there are; Ray adds some up to ``most`` while partitions wait.
        cpus, gpus: What each actor reserves.
    """

    address: str
    least: int
    most: int
    cpus: float
    gpus: float


def place(path: str) -> tuple[Any, str]:
    """A file system, and a path in it. Local paths and the URLs of S3 and Google Cloud Storage are accepted.

    Raises:
        SettingsError: It is no such URL.
        StartupError: Ray's libraries are missing.
    """
    from pathlib import Path  # noqa: PLC0415

    try:
        from pyarrow import ArrowException, fs  # noqa: PLC0415
    except ImportError as error:
        raise StartupError(NEEDED.format(error.name)) from None
    if not path.startswith(OBJECT_STORES):
        if "://" in path:
            raise SettingsError(f"{path}: expected a local path, or a URL that begins with {', '.join(OBJECT_STORES)}")
        return fs.LocalFileSystem(), str(Path(path).absolute())
    try:
        filesystem, inside = fs.FileSystem.from_uri(path)
    except (ArrowException, OSError) as error:
        raise SettingsError(f"{path}: {error}") from None
    return filesystem, inside


def files_of(path: str) -> tuple[Any, list[str]]:
    """The files that a path names: one file, or those that match a pattern with ``*`` in its last part.

    Raises:
        RequestError: There is no such file.
        StartupError: The folder or bucket cannot be read.
    """
    from pyarrow import fs  # noqa: PLC0415

    filesystem, inside = place(path)
    folder, _, name = inside.rpartition("/")
    try:
        if not any(sign in name for sign in "*?["):
            found = [inside] if filesystem.get_file_info(inside).type == fs.FileType.File else []
        else:
            infos = filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))
            found = sorted(info.path for info in infos if info.is_file and fnmatch(info.base_name, name))
    except OSError as error:
        raise StartupError(f"{path}: cannot be read: {error}; check the rights of this machine's account") from None
    if not found:
        raise RequestError.at((), f"{path}: there is no such file; a pattern stands in the last part: 'folder/*.jsonl'")
    return filesystem, found


def open_folder(job: Job, header: Mapping[str, Any]) -> None:
    """Begin a run in its folder, or go on with the same one.

    Raises:
        StartupError: The folder holds something else, or cannot be written.
    """
    from pyarrow import fs  # noqa: PLC0415

    path = f"{job.folder}/_openjev.json"
    try:
        job.filesystem.create_dir(job.folder, recursive=True)
        if job.filesystem.get_file_info(path).type == fs.FileType.NotFound:
            if job.filesystem.get_file_info(fs.FileSelector(job.folder)):
                raise StartupError(f"{job.folder}: holds files that are of no run; give an empty folder as --out")
            with job.filesystem.open_output_stream(path) as file:
                file.write(compact(header).encode())
            return
        with job.filesystem.open_input_stream(path) as file:
            before = parse_document(file.read(), path)
    except OSError as error:
        raise StartupError(f"{job.folder}: cannot be written: {error}") from None
    if differing := [name for name in {**before, **header} if before.get(name) != header.get(name)]:
        name = differing[0]
        msg = f"holds another run: {name} was {compact(before.get(name))} and is {compact(header.get(name))}"
        raise StartupError(f"{job.folder}: {msg}; give another --out, or the same command as then")


def run_on_ray(data: str, job: Job, pool: Pool, complain: Callable[[str], None]) -> list[dict[str, Any]]:
    """Answer the rows of some files on a cluster.

    Every row is read and checked before the first is answered. What is there afterwards is whole partitions only, and
    ``_SUCCESS`` beside them when they are all there.

    Args:
        data: The files, as :func:`files_of` takes them.
        job: What the workers are told.
        pool: The actors.
        complain: Takes lines on what happens.

    Returns:
        One line a partition, as :class:`Answering` returns them.

    Raises:
        RequestError: A row is not valid, or the files have different columns.
        StartupError: The cluster cannot be reached or has too few GPUs, or partitions were left unwritten.
    """
    ray = _connected(pool)
    try:
        filesystem, files = files_of(data)
        read = ray.data.read_binary_files(files, filesystem=filesystem, include_paths=True)
        rows = read.flat_map(partial(rows_of, job=job)).materialize()
        _check_files(rows)
        complain(f"{rows.count()} rows of {len(files)} files are read and checked")
        grouped = rows.groupby("partition", num_partitions=job.partitions)
        answered = grouped.map_groups(
            Answering,
            fn_constructor_args=(job,),
            batch_format="numpy",
            concurrency=(pool.least, pool.most),
            num_cpus=pool.cpus,
            num_gpus=pool.gpus or None,
        )
        lines: list[dict[str, Any]] = sorted(answered.take_all(), key=lambda line: int(line["partition"]))
    except ray.exceptions.RayError as error:
        raise StartupError(
            f"the cluster did not finish: {getattr(error, 'cause', None) or error}; the same command again goes on"
        ) from error
    finally:
        ray.shutdown()
    if failed := [line for line in lines if line["problem"]]:
        first = f"partition {failed[0]['partition']}: {failed[0]['problem']}"
        done = f"{len(lines) - len(failed)} of {len(lines)} partitions are finished and kept"
        raise StartupError(f"{first}; {done}, and the same command again goes on with the others")
    _finish(job, [int(line["partition"]) for line in lines])
    return lines


def _connected(pool: Pool) -> Any:
    """Ray, connected to the cluster.

    Raises:
        StartupError: It is not installed, the cluster cannot be reached, or no node has the GPUs of an actor.
    """
    try:
        ray: Any = import_module("ray")
        import_module("ray.data")
    except ImportError as error:
        raise StartupError(NEEDED.format(error.name)) from None
    try:
        ray.init(pool.address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        msg = f"--ray {pool.address}: the cluster cannot be reached: {error}"
        raise StartupError(f"{msg}; `ray status` on its head node says whether it runs") from None
    for name, wanted in (("GPU", pool.gpus), ("CPU", pool.cpus)):
        most = max((node["Resources"].get(name, 0) for node in ray.nodes() if node["Alive"]), default=0)
        if most < wanted:
            ray.shutdown()
            raise StartupError(f"an actor wants {wanted:g} {name}s, and the largest node of the cluster has {most:g}")
    return ray


def _check_files(rows: Any) -> None:
    """Refuse files whose rows are not valid, and files of different columns.

    Raises:
        RequestError: Names the files.
    """
    names = ["path", "fields", "problem"]
    found = rows.select_columns(names).groupby(names, num_partitions=1).count().take_all()
    found.sort(key=lambda one: one["path"])
    if problems := [one["problem"] for one in found if one["problem"]]:
        raise RequestError.at((), "; ".join(problems[:10]))
    first, *others = found
    for other in others:
        if other["fields"] != first["fields"]:
            msg = f"{other['path']} has the columns {other['fields']}, and {first['path']} has {first['fields']}"
            raise RequestError.at((), f"{msg}; all files must have the same")


def _finish(job: Job, partitions: Sequence[int]) -> None:
    """Give all partitions the same columns, and mark the run as whole.

    Raises:
        StartupError: A partition is not there, or two were answered by different models.
    """
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    facts = {number: facts_of(job, number) for number in partitions}
    if missing := [number for number, one in facts.items() if one is None]:
        msg = f"{job.file(missing[0])} is not to be seen from here; the nodes and this machine must share the folder"
        raise StartupError(msg)
    sources = {compact(one["source"]): number for number, one in facts.items() if one is not None}
    if len(sources) > 1:
        told = " and ".join(f"partition {number} by {source}" for source, number in list(sources.items())[:2])
        raise StartupError(f"{job.folder}: answered by different models: {told}; remove one's files and run again")
    schemas = {number: parquet.read_schema(job.file(number), filesystem=job.filesystem) for number in partitions}
    names = list(dict.fromkeys(name for schema in schemas.values() for name in schema.names))
    kinds: dict[str, Any] = {}
    for name in names:
        types = {schema.field(name).type for schema in schemas.values() if name in schema.names} - {pa.null()}
        mixed = pa.float64() if types == {pa.int64(), pa.float64()} else pa.large_string()
        kinds[name] = types.pop() if len(types) == 1 else mixed if types else pa.null()
    for number, schema in schemas.items():
        if schema.names == names and all(schema.field(name).type == kind for name, kind in kinds.items()):
            continue
        cells = parquet.read_table(job.file(number), filesystem=job.filesystem).to_pylist()
        write_partition(job, number, cells, facts[number] or {}, kinds)
    with job.filesystem.open_output_stream(f"{job.folder}/_SUCCESS"):
        pass
