"""Bulk runs on Ray. What needs a cluster is marked; the rest needs pyarrow, which the extra `ray` brings."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openjev_core.datasets.ray_partitions import Answering, Job, rows_of
from openjev_core.datasets.rows import Columns
from openjev_core.errors import RequestError, SettingsError, StartupError
from openjev_core.settings import Settings

pytest.importorskip("pyarrow", reason="the extra ray is not installed")

from openjev_core.datasets.ray_runs import _finish, files_of, open_folder, place

QUESTIONS = {"q": {"type": "noul", "instructions": "Is it a refund?"}}


def job_in(folder, partitions=3, url=None):
    folder.mkdir(exist_ok=True)
    filesystem, inside = place(str(folder))
    return Job(
        folder=inside,
        filesystem=filesystem,
        columns=Columns(),
        settings=Settings(),
        url=url,
        orders=None,
        model=None,
        concurrency=2,
        partitions=partitions,
    )


def file_of(*states):
    lines = (json.dumps({"id": f"r{n}", "state": s, "questions": QUESTIONS}) for n, s in enumerate(states))
    return {"path": "bucket/rows.jsonl", "bytes": "\n".join(lines).encode()}


def test_rows_of_one_state_share_a_partition(tmp_path):
    rows = list(rows_of(file_of("a", "b", "a", "c", "b"), job_in(tmp_path)))
    assert rows[0]["partition"] == rows[2]["partition"]
    assert rows[1]["partition"] == rows[4]["partition"]
    assert ["", "", "", "", ""] == [row["problem"] for row in rows]


def test_a_row_that_is_not_valid_is_one_problem_in_place_of_all_rows(tmp_path):
    rows = list(rows_of(file_of("a", 5), job_in(tmp_path)))
    assert 1 == len(rows)
    assert "rows.jsonl line 2" in rows[0]["problem"]


def test_a_folder_of_another_run_is_refused(tmp_path):
    job = job_in(tmp_path / "out")
    open_folder(job, {"partitions": 3})
    open_folder(job, {"partitions": 3})
    with pytest.raises(StartupError, match="holds another run: partitions was 3 and is 4"):
        open_folder(job, {"partitions": 4})


def test_a_folder_that_holds_other_files_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StartupError, match="holds files that are of no run"):
        open_folder(job_in(tmp_path), {})


def test_a_pattern_names_the_files_that_match_it(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "c.csv"):
        (tmp_path / name).touch()
    assert [f"{tmp_path}/a.jsonl", f"{tmp_path}/b.jsonl"] == files_of(f"{tmp_path}/*.jsonl")[1]
    with pytest.raises(RequestError, match="there is no such file"):
        files_of(f"{tmp_path}/*.tsv")


def test_a_url_of_another_kind_is_refused():
    with pytest.raises(SettingsError, match="expected a local path"):
        place("ftp://host/rows.jsonl")


def grouped(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_an_engine_that_does_not_open_leaves_the_partition_unwritten_and_says_why(tmp_path):
    job = job_in(tmp_path / "out", partitions=1, url="ftp://nowhere")
    line = Answering(job)(grouped(list(rows_of(file_of("a"), job))))
    assert "ftp://nowhere" in line["problem"][0]
    assert [] == list((tmp_path / "out").iterdir())
    with pytest.raises(StartupError, match="is not to be seen from here"):
        _finish(job, [0])


CLUSTER = """
import sys
from ray.cluster_utils import Cluster
small = {"object_store_memory": 80 * 2**20}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False, **small})
cluster.add_node(num_cpus=1, **small)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture
def cluster():
    environment = {**os.environ, "RAY_raylet_start_wait_time_s": "200", "RAY_USAGE_STATS_ENABLED": "0"}
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield process.stdout.readline().strip()
        process.stdin.close()


@pytest.mark.ray
def test_a_cluster_answers_what_one_process_answers(tmp_path, cluster):
    import polars as pl  # noqa: PLC0415

    (tmp_path / "rows.jsonl").write_bytes(file_of("a refund", "a hello", "a refund ")["bytes"])
    openjev = [str(Path(sys.executable).with_name("openjev"))]
    plain = [*openjev, "batch", "rows.jsonl", "--out", "plain.parquet"]
    ray = [*openjev, "batch-ray", "rows.jsonl", "--ray", cluster, "--out", "out", "--partitions", "2"]
    for command in (plain, ray, ray):
        subprocess.run(command, cwd=tmp_path, check=True, timeout=500)
    frames = [pl.read_parquet(tmp_path / name).sort("id") for name in ("plain.parquet", "out/*.parquet")]
    assert frames[0].columns == frames[1].columns
    assert frames[0].rows() == frames[1].rows()
    assert (tmp_path / "out" / "_SUCCESS").exists()
