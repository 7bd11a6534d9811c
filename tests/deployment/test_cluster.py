"""A standalone cluster gives the embedded engine's tables with packed code, on any Hadoop path, as machines die."""

import json
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from isal import igzip

from nddup.embedded.run import run_locally
from nddup.settings.load import load_config
from nddup.spark.session import SMALL
from scripts.standalone import ROOT, Cluster
from tests.finished_runs import sorted_tables
from tests.samples_by_night import STARTS, by_day_if_changed, first

pytestmark = pytest.mark.cluster

SAMPLE = ROOT / "samples" / "debdocs"
PATIENCE = 900
"""Seconds that a run may take on a busy machine."""

NO_REPORT = "output.report=false"
"""A report is made by the driver alone, so it shows nothing about a cluster."""

MOUNT = "fs.viewfs.mounttable.lake.link."
VIEW = "org.apache.hadoop.fs.viewfs"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master and two workers; the test kills one of them."""
    with Cluster(tmp_path, workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample: two plain files, of many tasks each, and a compressed one."""
    folder = tmp_path_factory.mktemp("data") / "pages"
    folder.mkdir()
    for path in SAMPLE.glob("debdocs.*"):
        shutil.copy(path, folder)
    return folder


def rows(output: Path) -> dict[str, list[str]]:
    """Return the sorted tables of a finished run and the lines of its duplicates.txt."""
    lines = (output / "duplicates.txt").read_text(encoding="utf-8").splitlines()
    return sorted_tables(output) | {"duplicates": lines}


@pytest.fixture(scope="module")
def local(sample: Path) -> dict[str, list[str]]:
    """The tables and lines that the embedded engine gives."""
    output = sample.parent / "local"
    run_locally([str(sample)], str(output), load_config(None, [NO_REPORT]))
    return rows(output)


def finish(cluster: Cluster, job: "subprocess.Popen[bytes]") -> None:
    """Wait for spark-submit and assert that it succeeded."""
    try:
        status = job.wait(PATIENCE)
    finally:
        job.kill()
    assert status == 0, cluster.log()[-4000:]


def wait_until(job: "subprocess.Popen[bytes]", is_so: Callable[[], bool]) -> None:
    """Wait until a condition holds while the job is running."""
    limit = time.monotonic() + PATIENCE
    while not is_so():
        assert job.poll() is None, "the job ended before"
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.fixture(scope="module")
def packed() -> Path:
    """The archive that `make package` makes."""
    subprocess.run([str(ROOT / "scripts" / "package.sh")], check=True)
    return ROOT / "dist" / "nddup-deps.tar.gz"


@pytest.mark.nightly
def test_the_package_holds_all_but_spark(packed: Path) -> None:
    """The package holds nddup, its compiled kernels and the libraries they import, but not Spark nor scipy."""
    unpacked = igzip.open(packed)  # type: ignore[no-untyped-call] # isal has no types
    with unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
        names = {entry.name.removeprefix("./") for entry in archive}

    assert {"nddup/scanning/sketch_records.py", "nddup/spark/log4j2.properties"} <= names
    assert any(name.startswith("nddup/sketching/__pycache__/") and name.endswith(".nbi") for name in names)
    assert {name.split("/")[0] for name in names} >= {"numpy", "pyarrow", "numba", "lxml", "pydantic", "yaml"}
    assert not any(name.split("/")[0] in {"pyspark", "py4j", "scipy"} for name in names)


@by_day_if_changed(*STARTS, "Dockerfile", "docker-compose.yml", "conf", "jobs/dedup.py")
@pytest.mark.parametrize("code", first(1, ["of this folder", "packed"]))
def test_a_cluster_of_dying_machines_gives_the_tables_of_the_embedded_engine(
    cluster: Cluster, sample: Path, local: dict[str, list[str]], code: str, request: pytest.FixtureRequest
) -> None:
    """
    Executors, also with nothing but the archive, on `s3a://` paths, give the embedded engine's tables as machines die.

    The file system is Hadoop's view of a folder: it proves that no path is taken for a local one, not how S3 behaves.
    One whole worker is killed when the documents are written; its executor and the files that this held die with it.
    """
    events, root, output = sample.parent / f"events {code}", sample.parent, code.replace(" ", "-")
    notes = root / output / "_stages"
    events.mkdir()
    conf = {"spark.executorEnv.PYTHONPATH": str(ROOT)}
    if code == "packed":
        archive = request.getfixturevalue("packed")
        conf = {"spark.archives": f"{archive}#deps", "spark.executorEnv.PYTHONPATH": "./deps"}
    job = cluster.submit(
        [str(ROOT / "jobs" / "dedup.py"), "s3a://lake/data/pages", "--output", f"s3a://lake/data/{output}",
         "--log-format", "json", "--set", NO_REPORT, "--set", "spark.sql.shuffle.partitions=2"],  # given: many tasks
        conf={
            **SMALL,
            **conf,
            "spark.hadoop.fs.s3a.impl": f"{VIEW}.ViewFileSystemOverloadScheme",
            "spark.hadoop.fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
            f"spark.hadoop.{MOUNT}/data": root.as_uri(),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
        },
        extra={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        wait_until(job, lambda: (notes / "documents.json").exists() and len(cluster.executors()) == 2)
        cluster.kill_worker()
    finally:
        finish(cluster, job)

    assert rows(root / output) == local
    assert cluster.alive() == 1
    assert "near-duplicate pairs" in cluster.log()  # the summary of the script for spark-submit
    assert_stages_are_logged(cluster.log())
    assert_jobs_are_described(next(events.glob("app-*")))
    packages = "deps/nddup" if code == "packed" else "stderr"
    assert len(list(cluster.folder.glob(f"work/*/app-*/*/{packages}"))) >= 2  # of two executors


def assert_stages_are_logged(log: str) -> None:
    """Assert that the log has one JSON object per stage, with its rows."""
    said = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    lines = [line for line in said if line["event"] == "stage"]
    assert said[0]["event"] == "notice"  # the engine and the reason for it
    assert [(line["event"], line["stage"], line["status"]) for line in lines][:4] == [
        ("stage", name, "done") for name in ("sketch", "pairs", "clusters", "keep")
    ]
    assert lines[0]["rows_out"]["documents"] == 580
    assert all(line["seconds"] > 0 and line["time"] for line in lines)


def assert_jobs_are_described(events: Path) -> None:
    """Assert that the descriptions of the Spark jobs include one from each stage."""
    found: list[dict[str, Any]] = [json.loads(line) for line in events.read_text().split("\n") if line]
    jobs = [event for event in found if event["Event"] == "SparkListenerJobStart"]
    said = {job["Properties"].get("spark.job.description") for job in jobs}
    assert {
        "nddup sketch: records: read, parse, strip and sketch every record",
        "nddup pairs: compared: compare sketches that share a rare feature",
        "nddup clusters: sets: mine maximal sets of each component",
        "nddup keep: choose the documents that stay",
    } <= said
