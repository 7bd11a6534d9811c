"""The daily DAG in Airflow itself: it loads without Spark, submits jobs day after day, and stops at a bad day.

Each good day is added to a repository. The jobs run in their drivers: `test_cluster` has one on a cluster.
"""

import ast
import json
import os
import re
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
from nddup.embedded.run import run_locally
from nddup.ground.array_files import crc_of
from nddup.settings.load import load_config
from nddup.spark.java import join_options
from nddup.spark.session import SMALL
from nddup.stages.onto import settings_onto
from nddup.storage.local_folder import LocalFolder
from scripts.standalone import HOME, HOST, QUIET, ROOT, for_java
from tests.finished_runs import write_texts
from tests.samples_by_night import by_day_if_changed

pytestmark = pytest.mark.airflow

DAG = ROOT / "jobs" / "dags" / "nddup_daily.py"
VENV = ROOT / "build" / "airflow" / "venv"
BATCHES, DOCUMENTS = ("2026-01-04", "2026-01-05"), 20
PATIENCE = 900
PROGRAM = """
import json, os, sys
from airflow.__main__ import main
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
print(bag.import_errors, sorted(bag.dags), [m for m in ("nddup", "pyspark") if m in sys.modules])
dag = bag.dags["nddup_daily"]
print(sorted({" ".join(t._get_hook()._build_spark_submit_command("job.py")[:3]) for t in dag.tasks}))
print(sorted(dag.params), {t.task_id: sorted(t.downstream_task_ids) for t in dag.tasks}, dag.max_active_runs)
print("ENDED 0", flush=True)
for line in sys.stdin:
    sys.argv[1:] = json.loads(line)
    os.environ["AIRFLOW_CONN_SPARK_DEFAULT"] = json.dumps({"conn_type": "spark", "host": "local[1]"})
    try:
        status = main()
    except SystemExit as end:
        status = end.code
    except Exception as error:
        status = print(type(error).__name__, error) or 1
    print(f"\\nENDED {int(bool(status))}", flush=True)
"""
"""Prints what Airflow reads of the DAG and how it submits to a cluster, then runs commands from standard input, a list
in JSON per line. One process runs them all, because loading Airflow takes 10 s."""


SUBMIT = f"""#!/bin/sh
printf '%s\\0' "$@" >>"$NDDUP_TOLD" && echo >>"$NDDUP_TOLD"
case "$*" in
*check.py*{BATCHES[1]}*) exec {HOME}/bin/spark-submit "$@" ;;
esac
while [ "${{1%.py}}" = "$1" ]; do shift; done
exec "$PYSPARK_PYTHON" "$@"
"""
"""Starts Spark for one job, the check of the bad day, and notes the arguments of each. The others, which it submits in
the same way, run without it: each start of Spark takes 12 s of CPU time, and `test_cluster` submits `dedup.py`."""


class Ended(NamedTuple):
    """Whether a command succeeded, and what it printed."""

    is_good: bool
    said: str


@dataclass
class Airflow:
    """An Airflow process with an empty database, and the folder of its batches, runs and repository."""

    folder: Path
    process: "subprocess.Popen[str]"
    read: str = ""
    """What it printed about the DAG when it had read it."""

    @property
    def runs(self) -> Path:
        """The folder of the runs."""
        return self.folder / "runs"

    @property
    def index(self) -> Path:
        """The folder of the repository to which each day is added."""
        return self.folder / "index"

    def run(self, *command: str) -> Ended:
        """Run an Airflow command to its end."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.listen()

    def listen(self) -> Ended:
        """Wait until the process ends its command; kill the process after `PATIENCE` seconds."""
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
        """Run the DAG as Airflow runs it at the start of a day."""
        return self.run("dags", "test", "nddup_daily", at, "-c", json.dumps(params))


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Airflow in its own environment, with batches of two days."""
    subprocess.run([str(ROOT / "scripts" / "airflow.sh")], check=True)
    folder = tmp_path_factory.mktemp("airflow")
    for date in BATCHES:
        (folder / "pages" / date).mkdir(parents=True)
        texts = {f"{date}-{number}": f"text {number // 2} of {date} " * 9 for number in range(DOCUMENTS)}
        write_texts(folder / "pages" / date / "pages.jsonl", texts)
    nddup.repository.create(str(folder / "index"), local={"processes": 1})
    submit = folder / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(SUBMIT)
    submit.chmod(0o755)
    settings = "clusters: {mode: none}\noutput: {texts: 0, report: false}\n"
    (folder / "settings.yaml").write_text(settings)
    with subprocess.Popen(
        [str(VENV / "bin" / "python"), "-c", PROGRAM, str(DAG.parent)],
        env=environment(folder),
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


def environment(folder: Path) -> dict[str, str]:
    """Return the variables that docs/operations.md says to set, without the Spark and Airflow variables set outside."""
    outer = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK", "AIRFLOW"))}
    return outer | {
        "AIRFLOW_HOME": str(folder / "home"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "spark://master", "port": 7077}),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAG.parent),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "PATH": f"{folder}/bin:{VENV}/bin:{os.environ['PATH']}",
        "SPARK_HOME": str(HOME),
        "SPARK_SUBMIT_OPTS": options_of_submit(),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "NDDUP_INPUT": (folder / "pages").as_uri(),
        "NDDUP_OUTPUT": (folder / "runs").as_uri(),
        "NDDUP_CONFIG": str(folder / "settings.yaml"),
        "NDDUP_INDEX": str(folder / "index"),
        "NDDUP_START": BATCHES[0],
        "NDDUP_TIMEZONE": "Asia/Tokyo",
        "NDDUP_TOLD": str(folder / "told"),
    }


def options_of_submit() -> str:
    """Return Java options for every spark-submit; a folder of settings on the class path would rule out the archive."""
    settings = {
        "log4j2.configurationFile": QUIET.as_uri(),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.ui.enabled": "false",
        "spark.python.daemon.module": "nddup.spark.daemon",
        **SMALL,
    }
    return f"{for_java()} {join_options(f'-D{key}={value}' for key, value in settings.items())}"


def test_the_dag_imports_neither_spark_nor_nddup() -> None:
    """The DAG file, which the scheduler reads every half minute, imports only the standard library and Airflow."""
    found = set()
    for node in ast.walk(ast.parse(DAG.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).split(".")[0])

    assert found - {"airflow"} <= sys.stdlib_module_names


@by_day_if_changed("jobs", "scripts")
def test_airflow_reads_the_dag(airflow: Airflow) -> None:
    """Airflow reads the DAG without error, with its parameters and task order, and without loading nddup or Spark.

    Each task is submitted to the cluster of the connection.
    """
    said = [line for line in airflow.read.splitlines() if not re.match(r"\d{4}-", line)]
    assert said[-3:] == [
        "{} ['nddup_daily'] []",
        "['spark-submit --master spark://master:7077']",
        (
            "['config', 'date', 'driver_memory', 'input', 'max_rejects', 'onto', 'output'] {'dedup': ['quality'],"
            " 'quality': ['diff', 'repository'], 'diff': [], 'repository': []} 1"
        ),
    ]


@by_day_if_changed("jobs")
def test_two_days_run_and_a_bad_one_fails(airflow: Airflow) -> None:
    """
    A good day is run, checked and added as a version of the repository; the next day, whose result is bad, fails.

    Each run goes onto that of the day before. The run of the next day exists already, as an earlier try may have left
    it, with a row of a table missing. The DAG resumes it, `nddup check` finds the damage, and the day is not added. A
    parameter out of range is refused.

    Each job is submitted alike, but for its name. `test_daily_repository` proves what the task adds day after day, and
    that adding a day again changes nothing.
    """
    first, second = (airflow.runs / date for date in BATCHES)
    good = airflow.day("2026-01-05", onto=True)
    pages, before = airflow.folder / "pages" / second.name, first.as_uri()
    config = load_config(str(airflow.folder / "settings.yaml"), [f"output.names_from={before}"])
    config = settings_onto(config, LocalFolder(str(first)))
    run_locally([pages.as_uri()], str(second), config, batch=second.name, onto=before)
    written = (second / "metrics.json").stat().st_mtime_ns
    drop_a_row(second)
    broken = airflow.day("2026-01-06", onto=True)
    is_resumed = (second / "metrics.json").stat().st_mtime_ns == written
    refused = airflow.day("2026-01-20", date="2026-01-04", max_rejects=2)

    assert good.is_good, good.said[-4000:]
    assert json.loads((first / "metrics.json").read_text())["records"] == DOCUMENTS
    assert not broken.is_good
    assert "BROKEN" in broken.said
    assert is_resumed
    assert not refused.is_good
    assert "max_rejects" in refused.said
    jobs = [line.split("\0")[:-1] for line in (airflow.folder / "told").read_text().splitlines()]
    at = [next(place for place, word in enumerate(job) if word.endswith(".py")) for job in jobs]
    assert [Path(job[place]).name for job, place in zip(jobs, at, strict=True)] == [
        "dedup.py", "check.py", "index.py", "dedup.py", "check.py",
    ]  # fmt: skip
    assert {job[job.index("--name") + 1] for job in jobs} == {
        f"nddup {what}{date}"
        for what in ("", "check ", "index ")
        for date in BATCHES
        if what != "index " or date == BATCHES[0]
    }
    options = [job[:place] for job, place in zip(jobs, at, strict=True)]
    for job in options:
        job.pop(job.index("--name") + 1)
    assert all(job == options[-1] for job in options)
    index = nddup.repository.open(str(airflow.index))
    assert index.version == 2
    assert sorted(index.tables()["documents"]["doc_id"].to_pylist()) == sorted(
        f"{BATCHES[0]}-{number}" for number in range(DOCUMENTS)
    )


def drop_a_row(run: Path) -> None:
    """Remove one document from the keep-list, and adjust the noted size and digest of the file to match."""
    folder, note = run / "keep", run / "_stages" / "keep.json"
    part = max(folder.glob("part-*"), key=lambda path: path.stat().st_size)
    table = pq.read_table(part)
    pq.write_table(pa.Table.from_batches(table.slice(1).to_batches(), table.schema), part)
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()
    said = json.loads(note.read_text())
    said["files"][part.name] = part.stat().st_size
    said["crc32"][part.name] = crc_of(part)
    del said["digest"]
    (note.parent / f".{note.name}.crc").unlink(missing_ok=True)
    note.write_text(json.dumps(said))
