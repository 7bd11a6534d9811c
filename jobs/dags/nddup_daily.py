"""A batch a day: find its near-duplicates, prove the result, and stop the day where it is not good enough.

    INPUT/DATE  --dedup-->  OUTPUT/DATE  --quality-->  success, or a failed run
                                         --repository-->  REPO, one version a day, if NDDUP_INDEX names one

All tasks may be repeated at any time. `dedup` resumes: it begins, finishes what an earlier try left, or finds the
result of the same batch and does nothing. `quality` reads only. `repository` adds what is not there yet: a document
that lives with the same content changes nothing, and a writer that was killed left nothing that counts. Where another
writer committed meanwhile it fails in one line, and its next try goes through. docs/operations.md says how to connect
it.

Neither pyspark nor nddup is imported here: the scheduler needs only Airflow and its Spark provider.
"""

import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Param

HOME = os.environ.get("NDDUP_HOME", str(Path(__file__).resolve().parents[2]))
INDEX = os.environ.get("NDDUP_INDEX")  # a repository, in a folder that the driver sees or s3://…; none: no third task
CONNECTION = os.environ.get("NDDUP_SPARK_CONNECTION", "spark_default")

# What spark-submit is started with. Without these it would take the Spark and Python of Airflow's own environment.
SUBMITTING = {
    name: os.environ[name]
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_LOCAL_IP", "JAVA_HOME")
    if name in os.environ
}

# The day before the run, unless a date is given: a daily run starts when the day it is about has ended.
DATE = "{{ params.date or macros.ds_add((dag_run.logical_date or dag_run.run_after) | ds, -1) }}"
INPUT, OUTPUT = f"{{{{ params.input }}}}/{DATE}", f"{{{{ params.output }}}}/{DATE}"

with DAG(
    dag_id="nddup_daily",
    description="Near-duplicates of each day's documents",
    doc_md=__doc__,
    schedule="@daily",
    start_date=datetime(2026, 1, 1),  # noqa: DTZ001 - Airflow reads it in its own time zone
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
        application_args=[OUTPUT, "--max-rejects", "{{ params.max_rejects }}"],
        retries=0,  # what is wrong with a result stays wrong
    )
    dedup >> quality

    if INDEX:
        repository = SparkSubmitOperator(
            task_id="repository",
            name="nddup index " + DATE,
            application=f"{HOME}/jobs/index.py",
            # A made-up id is unique with the date before it; no --replace, so that an old day again takes nothing back.
            application_args=["add", INDEX, INPUT, "--id-prefix", DATE + "/"],
            retries=2,
        )
        quality >> repository
