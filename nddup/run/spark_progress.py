"""Progress of a run on Spark: tasks done, and the description of each job in Spark's UI."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from nddup.spark.reach import reach
from nddup.stages.progress import LogFormat, Progress, StageNotes, doing
from nddup.steps import bar


class SparkProgress(Progress):
    """Shows the tasks of the running Spark stages, and names the jobs in Spark's UI."""

    def __init__(
        self, spark: SparkSession, *, is_quiet: bool = False, form: LogFormat = "text", is_brief: bool = False
    ) -> None:
        super().__init__(is_quiet=is_quiet, form=form, is_brief=is_brief)
        self._reach = reach(spark)
        self._stage = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[StageNotes]:
        """As `Progress.stage`; afterwards Spark's job description is restored."""
        self._stage = name
        with self._reach.describing(), super().stage(name) as shown:
            yield shown

    def describe(self, name: str) -> None:
        """Tell Spark's UI what the jobs that follow are for."""
        self._reach.describe(self._spell(name))

    def far(self) -> str:
        """Return how many tasks of the running Spark stages are done."""
        finished, total = self._reach.tasks()
        return f"{bar(finished, total)} {finished}/{total} tasks"

    def _spell(self, name: str) -> str:
        of_stage = "" if name == self._stage else f" {self._stage}:"
        return f"nddup{of_stage} {name}: {doing(name)}"
