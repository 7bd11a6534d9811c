"""A run on Spark, from INPUT paths to a finished folder: the steps of `on_spark` as a run takes them."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from nddup.opened.duck import DuckRun
from nddup.opened.finished_run import FinishedRun
from nddup.opened.spark import SparkRun
from nddup.run.on_spark import outputs
from nddup.run.on_spark.clustering import keep_documents, mine_clusters
from nddup.run.on_spark.documents import sketch_documents
from nddup.run.on_spark.inputs import take_saved
from nddup.run.on_spark.pairing import find_pairs
from nddup.run.on_spark.state import Job, persisted
from nddup.run.session import few_tasks, set_to
from nddup.run.spark_progress import SparkProgress
from nddup.scanning.collection import Collection
from nddup.settings import plan
from nddup.settings.schema import Config
from nddup.spark.reading.rewritten_files import list_verdicts
from nddup.stages.progress import LogFormat
from nddup.stages.run import make_run
from nddup.storage.session_tables import SparkFolder


class SparkJob(Job):
    """A run on Spark, with every verb that `nddup.stages.run` asks for."""

    def require_able(self, source: Collection) -> None:
        """As `RunEngine.require_able`; pages cannot be written again (`outputs.require_no_pages`)."""
        outputs.require_no_pages(source, self.config)
        if self.config.lexicon.saved is not None:
            take_saved(self.spark, self.config.lexicon.saved, plan.words_of(self.config))

    @contextmanager
    def attempt(self, source: Collection) -> Iterator[None]:
        """Shuffle few files to few tasks."""
        size = sum(file.size for file in source.listing.files)
        with set_to(self.spark, few_tasks(self.spark, self.config.spark, size)):
            yield

    sketch = sketch_documents
    pair = find_pairs
    cluster = mine_clusters
    keep = keep_documents
    write_duplicates = outputs.write_duplicates
    write_context = outputs.write_context
    write_kept = outputs.write_kept_documents
    rewrite = outputs.rewrite_inputs
    read_texts = outputs.read_texts

    def judge(self, tables: Mapping[str, DataFrame]) -> AbstractContextManager[DataFrame]:
        """As `RunEngine.judge`."""
        return persisted(list_verdicts(*(tables[name] for name in ("documents", "rejects", "keep", "members"))))

    def open_finished(self) -> FinishedRun:
        """As `RunEngine.open_finished`: without Spark jobs where this process sees the folder."""
        folder = self.folder
        return DuckRun(folder.path) if folder.is_here else SparkRun(self.spark, folder.path)


def run_job(
    spark: SparkSession,
    inputs: list[str],
    output: str,
    config: Config,
    *,
    log_format: LogFormat = "text",
    **how: Any,  # noqa: ANN401 - as of `make_run`
) -> dict[str, Any]:
    """Make a run on Spark.

    Args:
        spark: the session.
        inputs: files and folders, any path Hadoop knows.
        output: the run's folder.
        config: all settings.
        log_format: of the line that each stage leaves in the log.
        **how: `overwrite`, `resume` and `says`, as `nddup.stages.run.make_run` takes them.

    Returns:
        The metrics, as in `metrics.json`.

    Raises:
        NddupError: as `make_run`.
    """
    engine = SparkJob(spark, config, SparkFolder(spark, output), SparkProgress(spark, form=log_format))
    return make_run(engine, inputs, log_format=log_format, **how)
