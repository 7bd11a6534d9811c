"""The daily DAG, in Airflow itself: it parses without Spark, runs day after day on a cluster, and stops a bad day.

Each good day is added to a repository.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nddup.repository
from scripts.standalone import HOME, HOST, ROOT, SHORT_LIVED, Cluster

pytestmark = pytest.mark.airflow

DAG = ROOT / "jobs" / "dags" / "nddup_daily.py"
VENV = ROOT / "build" / "airflow" / "venv"
SAMPLE = ROOT / "samples" / "debdocs"
PATIENCE = 900
PROGRAM = """
import json, sys
from airflow.__main__ import main
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
print(bag.import_errors, sorted(bag.dags), [m for m in ("nddup", "pyspark") if m in sys.modules])
dag = bag.dags["nddup_daily"]
print(sorted(dag.params), {t.task_id: sorted(t.downstream_task_ids) for t in dag.tasks}, dag.max_active_runs)
print("ENDED 0", flush=True)
for line in sys.stdin:
    sys.argv[1:] = json.loads(line)
    try:
        status = main()
    except SystemExit as end:
        status = end.code
    except Exception as error:
        status = print(type(error).__name__, error) or 1
    print(f"\\nENDED {int(bool(status))}", flush=True)
"""
"""What Airflow reads of the DAG, then its commands, one a line: a process of its own for each takes 10 s to load."""


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    is_good: bool
    said: str


@dataclass
class Airflow:
    """An Airflow with an empty database, and the folders of its batches and runs."""

    folder: Path
    process: "subprocess.Popen[str]"
    read: str = ""
    """What it said of the DAG it had read."""

    @property
    def runs(self) -> Path:
        """Where the runs go."""
        return self.folder / "runs"

    @property
    def index(self) -> Path:
        """The repository to which each day is added."""
        return self.folder / "index"

    def run(self, *command: str) -> Ended:
        """Run a command of Airflow to its end."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.listen()

    def listen(self) -> Ended:
        """Wait for the end of what the process does; one that takes too long is ended."""
        assert self.process.stdout is not None
        said: list[str] = []
        limit = threading.Timer(PATIENCE, self.process.kill)
        limit.start()
        try:
            for line in self.process.stdout:
                if line.startswith("ENDED "):
                    return Ended(line == "ENDED 0\n", "".join(said))
                said.append(line)
        finally:
            limit.cancel()
        pytest.fail("Airflow ended, or was ended:\n" + "".join(said)[-4000:])

    def day(self, at: str, **params: object) -> Ended:
        """Run the DAG as it runs at the start of a day."""
        return self.run("dags", "test", "nddup_daily", at, "-c", json.dumps(params))


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Airflow in its own environment, connected to a standalone master with one worker; batches of two days."""
    subprocess.run([str(ROOT / "scripts" / "airflow.sh")], check=True)
    folder = tmp_path_factory.mktemp("airflow")
    for date, names in {"2026-01-04": ["debdocs.0.xml"], "2026-01-05": ["debdocs.1.xml", "debdocs.2.xml.gz"]}.items():
        (folder / "pages" / date).mkdir(parents=True)
        for name in names:
            shutil.copy(SAMPLE / name, folder / "pages" / date)
    nddup.repository.create(str(folder / "index"), local={"processes": 1})
    (folder / "settings.yaml").write_text("spark: {spark.executor.memory: 1g}\n")
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(
        f"spark.driver.host {HOST}\nspark.driver.bindAddress {HOST}\nspark.ui.enabled false\nspark.driver.memory 1g\n"
        f"spark.executorEnv.PYTHONPATH {ROOT}\nspark.sql.shuffle.partitions 2\n"
        f"spark.driver.extraJavaOptions {SHORT_LIVED}\nspark.executor.extraJavaOptions {SHORT_LIVED}\n"
        "spark.sql.adaptive.enabled false\nspark.sql.codegen.wholeStage false\n"
        "spark.sql.codegen.factoryMode NO_CODEGEN\n"
    )
    with Cluster(folder / "cluster", workers=1) as cluster:
        port = int(cluster.url.rpartition(":")[2])
        with subprocess.Popen(
            [str(VENV / "bin" / "python"), "-c", PROGRAM, str(DAG.parent)],
            env=environment(folder, port),
            cwd=folder,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            made = Airflow(folder, process)
            made.read = made.listen().said
            assert made.run("db", "migrate").is_good
            yield made
            process.kill()


def environment(folder: Path, port: int) -> dict[str, str]:
    """What docs/operations.md says to set, with nothing of Spark's that is set outside."""
    outer = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK", "AIRFLOW"))}
    return outer | {
        "AIRFLOW_HOME": str(folder / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAG.parent),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": f"spark://{HOST}", "port": port}),
        "PATH": f"{VENV}/bin:{HOME}/bin:{os.environ['PATH']}",
        "SPARK_HOME": str(HOME),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "NDDUP_INPUT": (folder / "pages").as_uri(),
        "NDDUP_OUTPUT": (folder / "runs").as_uri(),
        "NDDUP_CONFIG": str(folder / "settings.yaml"),
        "NDDUP_INDEX": str(folder / "index"),
    }


def test_the_dag_imports_neither_spark_nor_nddup() -> None:
    """What the scheduler reads every half minute needs the standard library and Airflow alone."""
    found = set()
    for node in ast.walk(ast.parse(DAG.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).split(".")[0])

    assert found - {"airflow"} <= sys.stdlib_module_names


def test_airflow_reads_the_dag(airflow: Airflow) -> None:
    """No error; its parameters and the order of its tasks; nddup and Spark were not loaded for it."""
    assert airflow.read.strip().splitlines()[-2:] == [
        "{} ['nddup_daily'] []",
        (
            "['config', 'date', 'input', 'max_rejects', 'output'] {'dedup': ['quality'], 'quality': ['repository'],"
            " 'repository': []} 1"
        ),
    ]


def test_two_days_run_and_a_bad_one_fails(airflow: Airflow) -> None:
    """
    Two days in a row give a run each, of the day before, and a version each of the repository.

    Adding a day again changes nothing. A bad result fails its run. Bad is a table that was changed: `nddup check` finds
    it. A parameter out of its range is refused. Neither is added.
    """
    days = {"2026-01-04": airflow.day("2026-01-05"), "2026-01-05": airflow.day("2026-01-06")}
    for date, done in days.items():
        assert done.is_good, done.said[-4000:]
        assert (airflow.runs / date / "_COMPLETE").exists()
    found = {date: json.loads((airflow.runs / date / "metrics.json").read_text())["records"] for date in days}
    written = (airflow.runs / "2026-01-05" / "metrics.json").stat().st_mtime_ns
    drop_a_row(airflow.runs / "2026-01-05")
    broken = airflow.day("2026-01-20", date="2026-01-05")
    refused = airflow.day("2026-01-20", date="2026-01-04", max_rejects=2)
    again = airflow.run(
        "tasks", "test", "nddup_daily", "repository", "2026-01-05"
    )  # last: no run follows it in one process

    assert sum(found.values()) == 580
    assert again.is_good, again.said[-4000:]
    assert "nothing changed" in again.said
    repository = nddup.repository.open(str(airflow.index))
    assert repository.version == 3
    assert len(repository.tables()["documents"]) == 580
    assert not broken.is_good
    assert "BROKEN" in broken.said
    assert (airflow.runs / "2026-01-05" / "metrics.json").stat().st_mtime_ns == written
    assert not refused.is_good
    assert "max_rejects" in refused.said


def drop_a_row(run: Path) -> None:
    """Take one document out of the keep-list, so that the file sizes are those noted."""
    folder, note = run / "keep", run / "_stages" / "keep.json"
    part = max(folder.glob("part-*"), key=lambda path: path.stat().st_size)
    table = pq.read_table(part)
    pq.write_table(pa.Table.from_batches(table.slice(1).to_batches(), table.schema), part)
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()
    said = json.loads(note.read_text())
    said["files"][part.name] = part.stat().st_size
    (note.parent / f".{note.name}.crc").unlink()
    note.write_text(json.dumps(said))
