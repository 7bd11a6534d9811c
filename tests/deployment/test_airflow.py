"""The daily DAG, in Airflow itself: it parses without Spark, runs day after day on a cluster, and stops a bad day."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scripts.standalone import HOME, HOST, ROOT, SHORT_LIVED, Cluster

pytestmark = pytest.mark.airflow

DAG = ROOT / "jobs" / "dags" / "nddup_daily.py"
SAMPLE = ROOT / "samples" / "debdocs"
PATIENCE = 900
LOOK = """
import sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
print(bag.import_errors, sorted(bag.dags), [m for m in ("nddup", "pyspark") if m in sys.modules])
dag = bag.dags["nddup_daily"]
print(sorted(dag.params), {t.task_id: sorted(t.downstream_task_ids) for t in dag.tasks}, dag.max_active_runs)
"""


@dataclass
class Airflow:
    """An Airflow with an empty database, and the folders of its batches and runs."""

    folder: Path
    environment: dict[str, str]

    @property
    def runs(self) -> Path:
        """Where the runs go."""
        return self.folder / "runs"

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of Airflow's environment to its end."""
        return subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def day(self, at: str, **params: object) -> subprocess.CompletedProcess[str]:
        """Run the DAG as it runs at the start of a day."""
        return self.run("airflow", "dags", "test", "nddup_daily", at, "-c", json.dumps(params))


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Airflow in its own environment, connected to a standalone master with one worker; batches of two days."""
    subprocess.run([str(ROOT / "scripts" / "airflow.sh")], check=True)
    folder = tmp_path_factory.mktemp("airflow")
    for date, names in {"2026-01-04": ["debdocs.0.xml"], "2026-01-05": ["debdocs.1.xml", "debdocs.2.xml.gz"]}.items():
        (folder / "pages" / date).mkdir(parents=True)
        for name in names:
            shutil.copy(SAMPLE / name, folder / "pages" / date)
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
        made = Airflow(folder, environment(folder, port))
        assert made.run("airflow", "db", "migrate").returncode == 0
        yield made


def environment(folder: Path, port: int) -> dict[str, str]:
    """What docs/operations.md says to set, with nothing of Spark's that is set outside."""
    outer = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK", "AIRFLOW"))}
    return outer | {
        "AIRFLOW_HOME": str(folder / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAG.parent),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": f"spark://{HOST}", "port": port}),
        "PATH": f"{ROOT}/build/airflow/venv/bin:{HOME}/bin:{os.environ['PATH']}",
        "SPARK_HOME": str(HOME),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "NDDUP_INPUT": (folder / "pages").as_uri(),
        "NDDUP_OUTPUT": (folder / "runs").as_uri(),
        "NDDUP_CONFIG": str(folder / "settings.yaml"),
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
    done = airflow.run("python", "-c", LOOK, str(DAG.parent))

    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().splitlines()[-2:] == [
        "{} ['nddup_daily'] []",
        "['config', 'date', 'input', 'max_rejects', 'output'] {'dedup': ['quality'], 'quality': []} 1",
    ]


def test_two_days_run_and_a_bad_one_fails(airflow: Airflow) -> None:
    """
    Two days in a row give a run each, of the day before; a day again does nothing; a bad result fails its run.

    Bad is a table that was changed: `nddup check` finds it. A parameter out of its range is refused.
    """
    days = {"2026-01-04": airflow.day("2026-01-05"), "2026-01-05": airflow.day("2026-01-06")}
    for date, done in days.items():
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        assert (airflow.runs / date / "_COMPLETE").exists()
    found = {date: json.loads((airflow.runs / date / "metrics.json").read_text())["records"] for date in days}
    written = (airflow.runs / "2026-01-05" / "metrics.json").stat().st_mtime_ns
    drop_a_row(airflow.runs / "2026-01-05")
    broken = airflow.day("2026-01-20", date="2026-01-05")
    refused = airflow.day("2026-01-20", date="2026-01-04", max_rejects=2)

    assert sum(found.values()) == 580
    assert broken.returncode != 0
    assert "BROKEN" in broken.stdout + broken.stderr
    assert (airflow.runs / "2026-01-05" / "metrics.json").stat().st_mtime_ns == written
    assert refused.returncode != 0


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
