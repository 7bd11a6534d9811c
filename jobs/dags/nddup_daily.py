"""A batch a day: find its near-duplicates, prove the result, and fail the day if it is not good enough.

    INPUT/DATE  --dedup-->  OUTPUT/DATE  --quality-->  success, or a failed run
                                         --repository-->  REPO, one version a day, if NDDUP_INDEX names one
                                         --diff-->        what differs from the night before, if runs are onto runs

The day is one of the time zone NDDUP_TIMEZONE (UTC), whatever that of Airflow: a run begins at midnight there and takes
the batch of the day that ended. NDDUP_START is the date of the first batch. Every night since is run, one after the
other, also those missed while Airflow was down or the DAG paused; a night that failed stays a failed run of its date.
Without NDDUP_START nothing runs by itself. By hand, the parameter `date` names any batch, old or new.

All tasks may be repeated at any time. `dedup` resumes: it begins a run, finishes what an earlier try left, or finds the
result of the same batch and does nothing. `quality` only reads; it tries again after a failure of the cluster, and not
where the result is bad or cannot be proved. `repository` adds only new documents: a live document with the same content
stays as it is, and a writer that was killed left no version behind. If another writer committed meanwhile, it fails
with one line, and its next try succeeds. docs/operations.md says how to connect it.

With NDDUP_ONTO=true, or the parameter `onto`, each run goes onto that of the night before, from NDDUP_START on. It
reads its batch alone, and has the tables of one run over all batches so far; its report begins with what is new. A
night then waits until the one before has succeeded, and settings stay those of the first.

Neither pyspark nor nddup is imported here: the scheduler needs only Airflow and its Spark provider.
"""

import os
import re
from datetime import date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Context, Param
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

# A variable that is empty, as Compose passes one that is not set, counts as not set.
HOME = os.environ.get("NDDUP_HOME") or str(Path(__file__).resolve().parents[2])
INDEX = os.environ.get("NDDUP_INDEX")  # a repository: a folder that the driver sees, or s3://…; None: no third task
ZONE = ZoneInfo(os.environ.get("NDDUP_TIMEZONE") or "UTC")
START = os.environ.get("NDDUP_START")  # the date of the first batch; None: no run by itself
IS_ONTO = os.environ.get("NDDUP_ONTO", "").lower() in {"1", "true", "yes"}
CONNECTION = os.environ.get("NDDUP_SPARK_CONNECTION") or "spark_default"

# The environment of spark-submit. Without these it would use the Spark and Python of Airflow's own environment.
SUBMITTING = {
    name: os.environ[name]
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_LOCAL_IP", "JAVA_HOME")
    if name in os.environ
}

DATE = "{{ params.date or batch_before(dag_run.logical_date or dag_run.run_after) }}"
INPUT, OUTPUT = f"{{{{ params.input }}}}/{DATE}", f"{{{{ params.output }}}}/{DATE}"
DRIVER = {"spark.driver.memory": "{{ heap(params.driver_memory) }}"}


def batch_before(moment: datetime) -> str:
    """Return the date of the batch that is whole at a moment: the day before, in `ZONE`."""
    return (moment.astimezone(ZONE).date() - timedelta(days=1)).isoformat()


def heap(size: str) -> str:
    """Return a size as a JVM takes it: without a letter B after the unit."""
    return size.rstrip("bB")


def noon_of(batch: str) -> datetime:
    """Return noon of a date in `ZONE`: Airflow can miss a first run at a midnight beside one that summer time skips."""
    return datetime.combine(date.fromisoformat(batch), time(12), ZONE)


def night_before(output: str) -> str | None:
    """Return the run that one at OUTPUT/DATE goes onto; None for the first, or without a date of the first."""
    folder, _, batch = output.rpartition("/")
    if not START or batch <= START:
        return None
    return f"{folder}/{(date.fromisoformat(batch) - timedelta(days=1)).isoformat()}"


class Dedup(SparkSubmitOperator):  # type: ignore[misc] # Airflow has an environment of its own
    """`nddup run`, onto the run of the night before where that is asked for."""

    def execute(self, context: Context) -> object:
        """Submit the job."""
        if context["params"]["onto"]:
            output = self.application_args[2]
            self.application_args += ["--as", output.rpartition("/")[2], "--set", "output.onto=true"]
            if before := night_before(output):
                self.application_args += ["--onto", before, "--names-from", before]
        return super().execute(context)


class Diff(SparkSubmitOperator):  # type: ignore[misc] # as above
    """`nddup diff` of a run and the one that it went onto; its log says what differs."""

    def execute(self, context: Context) -> object:
        """Submit the job; AirflowSkipException where a run went onto none."""
        before = night_before(self.application_args[0])
        if not context["params"]["onto"] or before is None:
            raise AirflowSkipException("this run went onto no other")
        self.application_args.insert(0, before)
        return super().execute(context)


def is_final(failure: str) -> bool:
    """Whether another try of `nddup check` would fail too: a broken promise, wrong use, or inputs that are gone."""
    return "promises BROKEN" in failure or re.search(r"Error code is: [23]\b", failure) is not None


class Check(SparkSubmitOperator):  # type: ignore[misc] # as above
    """`nddup check`, tried again unless the result itself is bad."""

    def execute(self, context: Context) -> object:
        """Submit the job; AirflowFailException, after which Airflow does not try again, if `is_final`."""
        try:
            return super().execute(context)
        except AirflowException as failure:
            if is_final(str(failure)):
                raise AirflowFailException(str(failure)) from failure
            raise


with DAG(
    dag_id="nddup_daily",
    description="Near-duplicates of each day's documents",
    doc_md=__doc__,
    schedule="@daily" if START else None,
    start_date=noon_of(START or "2026-01-01"),  # its time zone is that of the schedule
    catchup=True,
    user_defined_macros={"batch_before": batch_before, "heap": heap},
    max_active_runs=1,
    params={
        "input": Param(
            os.environ.get("NDDUP_INPUT") or "hdfs:///pages",
            type="string",
            minLength=1,
            description="folder of the batches, each in a folder named by its date; any path Hadoop knows",
        ),
        "output": Param(
            os.environ.get("NDDUP_OUTPUT") or "hdfs:///nddup",
            type="string",
            minLength=1,
            description="folder of the runs",
        ),
        "config": Param(
            os.environ.get("NDDUP_CONFIG") or f"{HOME}/conf/cluster.yaml",
            type="string",
            minLength=1,
            description="file of settings, as this machine sees it",
        ),
        "date": Param(
            None, type=["null", "string"], format="date", description="the batch; empty: the day before the run"
        ),
        "onto": Param(IS_ONTO, type="boolean", description="go onto the run of the night before"),
        "driver_memory": Param(
            os.environ.get("NDDUP_DRIVER_MEMORY") or "2g",
            type="string",
            pattern="^[1-9][0-9]*[kmgtKMGT][bB]?$",
            description="heap of the driver, such as 4g or 1536MB",
        ),
        "max_rejects": Param(
            0.05, type="number", minimum=0, maximum=1, description="share of the records above which the run fails"
        ),
    },
    default_args={
        "conn_id": CONNECTION,
        "env_vars": SUBMITTING,
        "retry_delay": timedelta(minutes=5),
        "execution_timeout": timedelta(hours=12),
    },
) as dag:
    dedup = Dedup(
        task_id="dedup",
        name="nddup " + DATE,
        application=f"{HOME}/jobs/dedup.py",
        application_args=[
            INPUT, "--output", OUTPUT, "--config", "{{ params.config }}", "--resume", "--log-format", "json",
        ],
        conf=DRIVER,
        depends_on_past=IS_ONTO,
        wait_for_downstream=IS_ONTO,
        retries=2,
    )  # fmt: skip
    quality = Check(
        task_id="quality",
        name="nddup check " + DATE,
        application=f"{HOME}/jobs/check.py",
        application_args=[OUTPUT, "--max-rejects", "{{ params.max_rejects }}", "--require-inputs"],
        conf=DRIVER,
        retries=2,
    )
    diff = Diff(
        task_id="diff",
        name="nddup diff " + DATE,
        application=f"{HOME}/jobs/diff.py",
        application_args=[OUTPUT],
        conf=DRIVER,
        retries=2,
    )
    dedup >> quality >> diff

    if INDEX:
        repository = SparkSubmitOperator(
            task_id="repository",
            name="nddup index " + DATE,
            application=f"{HOME}/jobs/index.py",
            # The date makes generated ids unique. No --replace: repeating an old day must not undo later changes.
            application_args=["add", INDEX, INPUT, "--id-prefix", DATE + "/"],
            conf=DRIVER,
            retries=2,
        )
        quality >> repository
