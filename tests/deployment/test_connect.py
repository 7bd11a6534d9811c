"""Spark Connect: a session whose JVM Python cannot reach gives the same tables as any other.

PySpark chooses the functions of Connect or of classic Spark for a whole process, so each client is a process of its
own.
"""

import base64
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from lxml import etree

import nddup
from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from nddup.tables import RESULTS
from scripts.connect_server import ConnectServer
from scripts.standalone import environment
from tests.places import ROOT
from tests.samples_by_night import STARTS, by_day_if_changed

pytestmark = pytest.mark.cluster

SAMPLE = ROOT / "samples" / "debdocs"
LIMIT = 900
CLIENT = """
import gc, sys, nddup, pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from nddup.tables import RESULTS

server, texts, output, later = sys.argv[1:]
spark = SparkSession.builder.remote(server).getOrCreate()
run = nddup.find_duplicates(spark.createDataFrame(pq.read_table(texts)), progress=False)
for name in RESULTS:
    if name != "texts":
        pq.write_table(getattr(run, name).toArrow(), f"{output}/{name}.parquet")
few = run
if int(later):
    few = nddup.find_duplicates(spark.createDataFrame(pq.read_table(texts).slice(int(later))), progress=False)
pq.write_table(run.diff(few).changes.to_table(), f"{output}/changes.parquet")
pq.write_table(run.split({"train": 0.8, "test": 0.2}).to_table(), f"{output}/split.parquet")
pairs = run.sql("SELECT count(*) AS n FROM pairs").toArrow()["n"][0]
try:
    nddup.find_duplicates(spark.sql("SELECT id, if(id > 2, raise_error('no such'), 'a b') AS text FROM range(9)"))
except PySparkException:
    few.close(), run.close()
    del few, run
    gc.collect()
    print(spark.sql("SHOW VIEWS").count(), pairs)
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A Spark Connect server."""
    with ConnectServer(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def server(started: ConnectServer) -> str:
    """Return the address of the server."""
    return started.url


def held_by(server: ConnectServer) -> list[str]:
    """Return the files of tables and shuffles that a server still holds after the patience of this test."""
    limit = time.monotonic() + 60
    while True:
        held = sorted(path.name for path in (server.folder / "local").rglob("*_*") if path.is_file())
        if not held or time.monotonic() > limit:
            return held
        time.sleep(0.5)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an embedded engine's run over the sample."""
    folder = tmp_path_factory.mktemp("here") / "run"
    run_locally([str(SAMPLE)], str(folder), build_config({}, origin="test"))
    return folder


def start(arguments: Sequence[str], folder: Path) -> "subprocess.Popen[str]":
    """Start a client process; its output goes to `client.log` in the folder."""
    with (folder / "client.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, *arguments],
            env={**environment(), "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
            text=True,
        )


def finish(arguments: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run a client to its end; returns its exit status and output."""
    status = start(arguments, folder).wait(LIMIT)
    return status, (folder / "client.log").read_text()


def pages_of(folder: Path) -> pa.Table:
    """Return the id and text of each page of the sample, with the markup as on disk."""
    ids, texts = [], []
    for path in sorted(folder.glob("*.xml*")):
        stored = path.read_bytes()
        for document in etree.fromstring(gzip.decompress(stored) if path.suffix == ".gz" else stored).iter("document"):
            ids.append(document.findtext("docID"))
            texts.append(base64.b64decode(document.findtext("content") or "").decode("latin-1"))
    return pa.table({"id": ids, "text": texts})


def rows_of(table: pa.Table, name: str) -> list[str]:
    """Return the sorted rows of a table as text, with the columns in declared order."""
    return sorted(map(repr, table.select(RESULTS[name].arrow.names).to_pylist()))


def tables_of(folder: Path) -> dict[str, list[str]]:
    """Return the sorted rows of every table of a run."""
    return {name: rows_of(ds.dataset(folder / name, format="parquet").to_table(), name) for name in RESULTS}


@pytest.mark.nightly
@pytest.mark.parametrize("later", [0, 40])
def test_a_table_of_a_remote_session(started: ConnectServer, tmp_path: Path, later: int) -> None:
    """`find_duplicates` of a remote session, and its diff and split, give the tables of the embedded engine.

    It differs from itself, or from a run over all texts but the first ones.

    The server then holds nothing of them, nor of a call that failed, though the session is there.
    """
    texts = pages_of(SAMPLE)
    pq.write_table(texts, tmp_path / "texts.parquet")
    local = nddup.find_duplicates(texts)

    given = [started.url, str(tmp_path / "texts.parquet"), str(tmp_path), str(later)]
    status, said = finish(["-c", CLIENT, *given], tmp_path)

    assert status == 0, said
    for name in sorted(set(RESULTS) - {"texts"}):
        made = pq.read_table(tmp_path / f"{name}.parquet")
        assert rows_of(made, name) == rows_of(getattr(local, name), name), name
    made = {name: pq.read_table(tmp_path / f"{name}.parquet").to_pylist() for name in ("changes", "split")}
    few = nddup.find_duplicates(texts.slice(later)) if later else local
    assert made["changes"] == local.diff(few).changes.to_table().to_pylist()
    assert made["split"] == local.split({"train": 0.8, "test": 0.2}).to_table().to_pylist()
    assert len(texts) == 580
    assert said.split()[-2:] == ["0", str(len(local.pairs))] != ["0", "0"]
    assert held_by(started) == []


@by_day_if_changed(*STARTS, "jobs/dedup.py")
def test_a_job_is_killed_and_resumed(started: ConnectServer, here: Path, tmp_path: Path) -> None:
    """`jobs/dedup.py`, killed once documents are written and then resumed, writes the embedded engine's tables.

    The server holds nothing of the one that was killed, nor of the other.
    """
    server = started.url
    output = tmp_path / "run"
    command = [str(ROOT / "jobs" / "dedup.py"), str(SAMPLE), f"--output={output}", f"--master={server}"]
    client = start(command, tmp_path)
    limit = time.monotonic() + LIMIT
    while not (output / "_stages" / "documents.json").exists() and client.poll() is None and time.monotonic() < limit:
        time.sleep(0.1)
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    assert not (output / "_COMPLETE").exists(), (tmp_path / "client.log").read_text()

    status, said = finish([*command, "--resume"], tmp_path)

    assert status == 0, said
    assert tables_of(output) == tables_of(here)
    assert (output / "duplicates.txt").read_bytes() == (here / "duplicates.txt").read_bytes()
    assert "documents" in _metrics(output)["stages"]["sketch"]["resumed"]
    assert _metrics(output)["rows"] == _metrics(here)["rows"]
    assert not list((output / "_stages").glob("attempt-*"))
    assert held_by(started) == []


@by_day_if_changed("nddup/spark", "nddup/commands", "nddup/storage", "jobs/dedup.py")
@pytest.mark.parametrize("at", ["INPUT", "--output"])
def test_files_that_the_two_do_not_share_are_refused(server: str, tmp_path: Path, at: str) -> None:
    """Remote paths are refused in one line before anything is written: the client has no JVM to reach them."""
    paths = {"INPUT": str(SAMPLE), "--output": str(tmp_path / "run"), at: "s3a://bucket/there"}
    command = [str(ROOT / "jobs" / "dedup.py"), paths["INPUT"], f"--output={paths['--output']}", f"--master={server}"]

    status, said = finish(command, tmp_path)

    assert status == 2
    assert "s3a://bucket/there: over Spark Connect files lie where" in said.splitlines()[-1]
    assert not (tmp_path / "run").exists()


def _metrics(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return found
