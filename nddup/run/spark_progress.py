"""Progress of a run on Spark: tasks done, and what Spark's UI says of each job."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from nddup.run.progress import LogFormat, Progress, StageNotes, doing
from nddup.steps import bar

DESCRIPTION = "spark.job.description"


class SparkProgress(Progress):
    """Shows the tasks of the Spark stage that runs, and names the jobs in Spark's UI."""

    def __init__(self, spark: SparkSession, *, is_quiet: bool = False, form: LogFormat = "text") -> None:
        super().__init__(is_quiet=is_quiet, form=form)
        self._spark = spark
        self._stage = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[StageNotes]:
        """As `Progress.stage`; afterwards the previous job description is restored."""
        context = self._spark.sparkContext
        outside, self._stage = context.getLocalProperty(DESCRIPTION), name
        try:
            with super().stage(name) as shown:
                yield shown
        finally:
            context.setLocalProperty(DESCRIPTION, outside)  # type: ignore[arg-type] # None: unset

    def describe(self, name: str) -> None:
        """Tell Spark's UI what the jobs that follow are for."""
        of_stage = "" if name == self._stage else f" {self._stage}:"
        self._spark.sparkContext.setJobDescription(f"nddup{of_stage} {name}: {doing(name)}")

    def far(self) -> str:
        """The tasks done of those of the Spark stages that run."""
        tracker = self._spark.sparkContext.statusTracker()
        running = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        total = sum(info.numTasks for info in running if info is not None)
        finished = sum(info.numCompletedTasks for info in running if info is not None)
        return f"{bar(finished, total)} {finished}/{total} tasks"
