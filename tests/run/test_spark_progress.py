"""The descriptions of a run's jobs in Spark's UI, and how they are removed afterwards."""

from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from nddup.spark.session_access import SAID
from nddup.spark.steps.state import SparkProgress


def test_jobs_and_stages_bear_what_they_are_for(spark: SparkSession) -> None:
    """Jobs and their stages are named after the step of the run, and the caller's names return even after a failure."""
    context = spark.sparkContext
    tracker, before = context.statusTracker(), {key: f"mine: {key}" for key in SAID}
    for key, text in {**before, "spark.jobGroup.id": "named"}.items():
        context.setLocalProperty(key, text)
    try:
        said = said_while_failing(spark)
        after = {key: context.getLocalProperty(key) for key in SAID}
    finally:
        for key in (*SAID, "spark.jobGroup.id"):
            context.setLocalProperty(key, None)  # type: ignore[arg-type] # unset

    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("named")]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    assert said == {"nddup pairs: find the near-duplicates"}
    assert {stage.name for stage in stages if stage is not None} == said
    assert after == before


def test_a_tag_of_spark_connect_is_taken_away() -> None:
    """In Spark Connect a stage adds one tag to the user's and removes it at its end, even after a failure."""
    tags = {"mine"}
    methods = {"addTag": lambda _, tag: tags.add(tag), "removeTag": lambda _, tag: tags.remove(tag)}
    session: Any = type("Session", (), {"__module__": "pyspark.sql.connect.session", **methods})()

    with suppress(ZeroDivisionError), SparkProgress(session, is_quiet=True).stage("keep"):
        first = set(tags)
        raise ZeroDivisionError

    assert len(first) == 2
    assert first > {"mine"}
    assert tags == {"mine"}


def said_while_failing(spark: SparkSession) -> set[str | None]:
    """Return the descriptions that Spark is given in a stage that runs a job and then fails."""
    said: set[str | None] = set()
    with suppress(ZeroDivisionError), SparkProgress(spark, is_quiet=True).stage("pairs"):
        spark.range(3).repartition(2).count()
        said = {spark.sparkContext.getLocalProperty(key) for key in SAID}
        raise ZeroDivisionError
    return said
