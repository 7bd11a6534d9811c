"""A whole run on Spark, from INPUT paths to a finished folder with its report."""

from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from nddup.metrics import StageMetrics, TextsMetrics
from nddup.mining.keep_verdicts import FORCED_NOTE
from nddup.opened.duck import DuckRun
from nddup.opened.finished_run import FinishedRun
from nddup.opened.spark import SparkRun
from nddup.report.write import is_reported, report_run
from nddup.run.on_spark.inputs import take_saved
from nddup.run.on_spark.outputs import (
    require_no_pages,
    store_texts,
    write_again_once,
    write_context,
    write_duplicates,
    write_kept_once,
)
from nddup.run.on_spark.pipeline import find_clusters
from nddup.run.on_spark.state import Job
from nddup.run.session import few_tasks, set_to
from nddup.run.spark_progress import SparkProgress
from nddup.scanning.collection import Collection
from nddup.scanning.first_records import note_ids
from nddup.settings import plan
from nddup.settings.schema import Config
from nddup.stages.inputs_found import find_inputs, note_changes, read_forced
from nddup.stages.losses import require_readable
from nddup.stages.progress import LogFormat, say
from nddup.stages.stage import NOTE, metrics_of, name_forced, note_of, require_taggable, settings_of
from nddup.steps import Steps
from nddup.storage.session_files import files_of
from nddup.storage.session_tables import SparkFolder


def run_job(  # noqa: PLR0913 - what the command line takes
    spark: SparkSession,
    inputs: list[str],
    output: str,
    config: Config,
    *,
    overwrite: bool = False,
    resume: bool = False,
    log_format: LogFormat = "text",
    says: str = "",
) -> dict[str, Any]:
    """Find the near-duplicates of a collection and leave a finished run in `output`.

    Args:
        spark: the session.
        inputs: files and folders, any path Hadoop knows.
        output: the run's folder.
        config: all settings.
        overwrite: replace an existing run.
        resume: finish an existing run: reuse tables whose inputs and settings are unchanged. Starts a run where there
            is none; does nothing where the run is already finished.
        log_format: of the line that each stage leaves in the log.
        says: the first line of the log, written once nothing more can be refused.

    Returns:
        The metrics, as in `metrics.json`.

    Raises:
        ConfigError: for an input that is missing or cannot be understood.
        OutputError: if `output` exists and may not be replaced, is not a run, cannot be written, or another run
            works there.
        NddupError: if rejects exceed `input.max_rejects`, unreadable files exceed `input.max_unreadable`, or any
            other stated limit is passed. The folder then has no `_COMPLETE`.
    """
    storage, folder = files_of(spark), SparkFolder(spark, output)
    with Steps("run", 1, is_quiet=log_format == "json") as steps:
        steps.begin("find the files and their formats")
        source = find_inputs(storage, inputs, config)

    # All that can be refused beforehand is refused before anything is written.
    require_readable(source.unread, config.input.max_unreadable)
    require_taggable(source, config)
    require_no_pages(source, config)
    paths = [storage.full_path(path) for path in inputs]
    if config.lexicon.saved is not None:
        take_saved(spark, config.lexicon.saved, plan.words_of(config))
        paths.append(storage.full_path(config.lexicon.saved))

    files = {file.source: [file.size, file.modified] for file in source.listing.files}
    forced = read_forced(storage, config.keep.force)
    read = {"paths": paths, "files": files, **name_forced(forced)}
    begin: dict[str, Any] = {"settings": settings_of(config), "inputs": read}
    job = Job(spark, config, folder, SparkProgress(spark, form=log_format), forced=forced)
    with folder:  # no other run works there meanwhile
        said = partial(say, form=log_format)
        if folder.start(**begin, overwrite=overwrite, resume=resume, say=said):
            metrics = folder.open()
            _report(job, folder)
            return metrics
        for line in (says, note_ids(storage, source.files)):
            if line:
                said(line)
        size = sum(file.size for file in source.listing.files)
        with set_to(spark, few_tasks(spark, config.spark, size)):
            return _make_all(job, folder, source, inputs)


def _make_all(job: Job, folder: SparkFolder, source: Collection, inputs: list[str]) -> dict[str, Any]:
    """Make every table and file of a run in its folder; return the metrics."""
    found = find_clusters(job, source)

    if job.forced is not None:
        folder.write_text(FORCED_NOTE, job.forced.dump())
    write_duplicates(folder, found.clustered)
    if job.config.output.context:
        write_context(folder, found.sketched.documents)
    write_kept_once(job, folder, found)
    write_again_once(job, folder, source, found)
    with job.stage("texts", TextsMetrics) as stage:
        texts = store_texts(job, found)
        stage.done(texts, f"{texts.rows_out['texts']:,} texts for the report")
    lexicon = found.sketched.metrics.lexicon
    if lexicon is not None:
        folder.write_text(NOTE, note_of(job.config, lexicon))

    sketch = note_changes(found.stages.sketch, files_of(job.spark), inputs, source)
    stages = found.stages.model_copy(update={"sketch": sketch, "texts": stage.metrics})
    metrics = metrics_of(job.config, stages, found.sketched.documents.unpaired).dump()
    folder.finish(metrics)
    _report(job, folder)
    return metrics


def _report(job: Job, folder: SparkFolder) -> None:
    """Write the report of a finished run, unless it is there: the run may have been killed before its end."""
    if job.config.output.report and not is_reported(folder):
        with job.stage("report", StageMetrics) as reporting:
            reporting.notes.append(report_run(_opened(job.spark, folder), folder))


def _opened(spark: SparkSession, folder: SparkFolder) -> FinishedRun:
    """Open the finished run for its report: without Spark jobs where this process sees the folder."""
    if folder.is_here:
        return DuckRun(folder.path)
    return SparkRun(spark, folder.path)
