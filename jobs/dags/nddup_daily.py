"""A batch a day: find its near-duplicates, prove the result, and fail the day if it is not good enough.

    INPUT/DATE  --dedup-->  OUTPUT/DATE  --quality-->  success, or a failed run
                                         --repository-->  REPO, one version a day, if NDDUP_INDEX names one

All tasks may be repeated at any time. `dedup` resumes: it begins a run, finishes what an earlier try left, or finds the
result of the same batch and does nothing. `quality` only reads. `repository` adds only new documents: a live document
with the same content stays as it is, and a writer that was killed left no version behind. If another writer committed
meanwhile, it fails with one line, and its next try succeeds. docs/operations.md says how to connect it.

Neither pyspark nor nddup is imported here: the scheduler needs only Airflow and its Spark provider.
"""

import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Param

HOME = os.environ.get("NDDUP_HOME", str(Path(__file__).resolve().parents[2]))
INDEX = os.environ.get("NDDUP_INDEX")  # a repository: a folder that the driver sees, or s3://…; None: no third task
CONNECTION = os.environ.get("NDDUP_SPARK_CONNECTION", "spark_default")

# The environment of spark-submit. Without these it would use the Spark and Python of Airflow's own environment.
SUBMITTING = {
    name: os.environ[name]
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_LOCAL_IP", "JAVA_HOME")
    if name in os.environ
}

# The day before the run, unless a date is given: a daily run starts after the end of the day whose batch it processes.
DATE = "{{ params.date or macros.ds_add((dag_run.logical_date or dag_run.run_after) | ds, -1) }}"
INPUT, OUTPUT = f"{{{{ params.input }}}}/{DATE}", f"{{{{ params.output }}}}/{DATE}"

with DAG(
    dag_id="nddup_daily",
    description="Near-duplicates of each day's documents",
    doc_md=__doc__,
    schedule="@daily",
    start_date=datetime(2026, 1, 1),  # noqa: DTZ001 - Airflow applies its own time zone
    catchup=False,
    max_active_runs=1,
    params={
        "input": Param(
            os.environ.get("NDDUP_INPUT", "hdfs:///pages"),
            type="string",
            minLength=1,
            description="folder of the batches, each in a folder named by its date; any path Hadoop knows",
        ),
        "output": Param(
            os.environ.get("NDDUP_OUTPUT", "hdfs:///nddup"),
            type="string",
            minLength=1,
            description="folder of the runs",
        ),
        "config": Param(
            os.environ.get("NDDUP_CONFIG", f"{HOME}/conf/cluster.yaml"),
            type="string",
            minLength=1,
            description="file of settings, as this machine sees it",
        ),
        "date": Param(
            None, type=["null", "string"], format="date", description="the batch; empty: the day before the run"
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
    dedup = SparkSubmitOperator(
        task_id="dedup",
        name="nddup " + DATE,
        application=f"{HOME}/jobs/dedup.py",
        application_args=[
            INPUT, "--output", OUTPUT, "--config", "{{ params.config }}", "--resume", "--log-format", "json",
        ],
        retries=2,
    )  # fmt: skip
    quality = SparkSubmitOperator(
        task_id="quality",
        name="nddup check " + DATE,
        application=f"{HOME}/jobs/check.py",
        application_args=[OUTPUT, "--max-rejects", "{{ params.max_rejects }}", "--require-inputs"],
        retries=0,  # another try would not change the result
    )
    dedup >> quality

    if INDEX:
        repository = SparkSubmitOperator(
            task_id="repository",
            name="nddup index " + DATE,
            application=f"{HOME}/jobs/index.py",
            # The date makes generated ids unique. No --replace: repeating an old day must not undo later changes.
            application_args=["add", INDEX, INPUT, "--id-prefix", DATE + "/"],
            retries=2,
        )
        quality >> repository
