"""A whole run: from INPUT paths to a finished folder, or from a DataFrame to tables in the session."""

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError, NddupError
from nddup.run.collection import Collection, find_files
from nddup.run.lexicons import NOTE, note_of, take_saved
from nddup.run.listings import write_context, write_duplicates
from nddup.run.measuring import Metrics
from nddup.run.pipeline import read_kept, require_readable, run_stages
from nddup.run.progress import LogFormat, Progress, say
from nddup.run.report_texts import store_texts
from nddup.run.session import set_to, settings_for
from nddup.run.state import Job, settings_of
from nddup.settings import derive
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.spark.exports import as_xml
from nddup.spark.reading.splits import number_texts
from nddup.spark.schemas import TEXTS
from nddup.storage.checkpoint import CheckpointStore
from nddup.storage.files import Storage
from nddup.storage.run_folder import RunFolder
from nddup.storage.session_tables import MemoryStore, Store
from nddup.storage.versions import versions
from nddup.tables import RESULTS


@dataclass(frozen=True)
class Tables:
    """What `find_duplicates` gives: the tables of a run, and what was counted."""

    documents: DataFrame
    rejects: DataFrame
    pairs: DataFrame
    clusters: DataFrame
    members: DataFrame
    keep: DataFrame
    false_components: DataFrame
    metrics: dict[str, Any]


def run_job(  # noqa: PLR0913 - what the command line takes
    spark: SparkSession,
    inputs: list[str],
    output: str,
    config: Config,
    *,
    overwrite: bool = False,
    resume: bool = False,
    log_format: LogFormat = "text",
) -> dict[str, Any]:
    """Find the near-duplicates of a collection and leave a finished run in `output`.

    Args:
        spark: the session.
        inputs: files and folders, any path Hadoop knows.
        output: the run's folder.
        config: everything else.
        overwrite: replace a run that is there.
        resume: finish a run that is there: tables that it would make again the same are taken as they are. Where
            nothing is there a run begins; where its result is there, nothing is done.
        log_format: of the line that each stage leaves in the log.

    Returns:
        The metrics, as in `metrics.json`.

    Raises:
        ConfigError: for an input that is missing or cannot be understood.
        OutputError: if `output` exists (and is not to be overwritten), is no run, cannot be written, or another run
            works there.
        NddupError: if the rejects pass `input.max_rejects`, files that cannot be read `input.max_unreadable`, or
            anything a stated limit. The folder then has no `_COMPLETE`.
    """
    storage = Storage(spark)
    source = find_files(storage, inputs, config)
    require_readable(source.unread, config.input.max_unreadable)  # before anything is written
    folder = RunFolder(spark, output)
    described: dict[str, Any] = {
        "paths": [storage.full_path(path) for path in inputs],
        "files": {file.source: [file.size, file.modified] for file in source.listing.files},
    }
    if config.lexicon.saved is not None:
        take_saved(spark, config.lexicon.saved, derive.words_of(config))  # before anything is written
        described["paths"].append(storage.full_path(config.lexicon.saved))
    begin: dict[str, Any] = {"settings": settings_of(config), "inputs": described, "say": partial(say, form=log_format)}
    with folder:  # no other run works there meanwhile
        if folder.start(**begin, overwrite=overwrite, resume=resume):
            return folder.open()
        counted = Metrics(spark)
        progress = Progress(spark, form=log_format, facts=counted.facts)
        return _make_all(Job(spark, config, folder, progress, counted), folder, source)


def _make_all(job: Job, folder: RunFolder, source: Collection) -> dict[str, Any]:
    """Every table and file of a run in its folder; the metrics."""
    config, files = job.config, source.listing.files
    run_stages(job, source)
    write_duplicates(job, folder)
    if config.output.context:
        write_context(job, folder)
    _write_kept_once(job, folder)
    with job.progress.stage("texts") as notes, job.metrics.stage("texts"):
        store_texts(job)
        notes.append(f"{job.metrics.rows['texts']:,} texts for the report")
    if "lexicon" in job.tables:
        folder.write_text(NOTE, note_of(config, job.metrics.lexicon()))
    skipped = [{"path": path, "why": why} for path, why in source.listing.skipped]
    skipped += [{"path": path, "why": "given twice"} for path in source.listing.repeated]
    report = job.metrics.report(bytes_in=sum(file.size for file in files), files=len(files), skipped=skipped)
    metrics = {**report, "settings": settings_of(config), "recipe": job.rule.recipe.key, "versions": versions()}
    folder.finish(metrics)
    folder.drop("records")
    return metrics


def _write_kept_once(job: Job, folder: RunFolder) -> None:
    """The kept documents, where they are asked for and no earlier attempt has written them to the end."""
    form = job.config.output.kept
    made_of: dict[str, Any] = {"settings": {"kept": form}, "reads": ("documents", "keep")}
    if form == "none":
        folder.clear("kept")
    elif not folder.has("kept", **made_of):
        with job.progress.stage("output") as notes:
            job.progress.describe("kept")
            folder.clear("kept")
            _write_all_kept(job, f"{folder.path}/kept", form)
            folder.seal("kept", **made_of, counted={})
            notes.append(f"kept documents as {form}")


def find_duplicates(
    df: DataFrame,
    id: str = "id",  # noqa: A002 - the caller's word
    text: str = "text",
    *,
    checkpoint: str | None = None,
    **settings: Any,  # noqa: ANN401
) -> Tables:
    """Find the near-duplicates among the rows of a DataFrame.

    Args:
        df: one document a row.
        id: its column of ids; compared and returned as strings. Null and repeated ids go to `rejects`.
        text: its column of texts; null goes to `rejects`.
        checkpoint: a folder that every executor sees, `hdfs:///tmp/x`. The tables are kept there as Parquet, in a new
            folder of each call, and outlive executors and the session; removing it is the caller's.
        **settings: sections of the configuration, `pairs={"threshold": 0.9}`, or keys `**{"pairs.threshold": 0.9}`.

    Returns:
        The tables of a run. `record` is the rank of the id. Without `checkpoint` they lie on the executors' disks until
        the session ends: an executor that is lost takes its share along, and the call, or a later reading, fails.
        The settings of the session are as they were, also after a failure; meanwhile they are those of the run.

    Raises:
        ConfigError: for an unknown column or a wrong setting.
        OutputError: if the folder `checkpoint` cannot be made.

    Example:
        tables = nddup.find_duplicates(pages, id="url", text="body", pairs={"threshold": 0.9})
        tables.keep.where("kept").join(pages, F.col("doc_id") == F.col("url"))
    """
    for column in (id, text):
        if column not in df.columns:
            raise ConfigError(f"find_duplicates: no column {column!r}; there are {', '.join(df.columns)}")
    config = build_config(_nested(settings), origin="find_duplicates")
    spark = df.sparkSession
    with ExitStack() as meanwhile:
        meanwhile.enter_context(set_to(spark, settings_for(config.spark)))
        store: Store = MemoryStore()
        if checkpoint is not None:
            store = meanwhile.enter_context(CheckpointStore(spark, checkpoint).opened(kept=list(RESULTS)))
        job = Job(spark, config, store, Progress(spark, is_quiet=True), Metrics(spark))
        run_stages(job, number_texts(df, id=id, text=text).select(*TEXTS.fieldNames()))
    report = job.metrics.report(bytes_in=0, files=0, skipped=[])
    kept = {name: job.tables[name] for name in job.metrics.tables()}
    return Tables(**kept, metrics={**report, "settings": settings_of(config), "versions": versions()})


def _write_all_kept(job: Job, path: str, form: str) -> None:
    """Write them, split as when they were sketched, and see that all came."""
    seen, expected = Observation("written"), job.metrics.counts["kept"]
    with set_to(job.spark, job.metrics.splitting):
        write_kept(read_kept(job).observe(seen, F.count(F.lit(1)).alias("rows")), path, form)
    if (written := int(seen.get["rows"] or 0)) != expected:
        raise NddupError(f"{written} of {expected} kept documents were found again: the input changed meanwhile")


def write_kept(kept: DataFrame, path: str, form: str) -> None:
    """Write the kept documents to a folder: Parquet, JSON lines, or ROMIP XML.

    A document that was read from JSON lines is written to JSON lines as the line it came in, all its fields with it;
    any other as `doc_id`, `url`, `source`, `record` and `content` (decoded, its markup left in).
    """
    columns = ["doc_id", "url", "source", "record", "content"]
    if form == "parquet":
        kept.select(*columns).write.parquet(path)
    elif form == "xml":
        as_xml(kept).write.text(path)
    else:
        line = F.coalesce("line", F.to_json(F.struct(*columns)))
        kept.select(line.alias("value")).write.text(path)


def _nested(settings: dict[str, Any]) -> dict[str, Any]:
    """Keys with a point as sections."""
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        if not name and not isinstance(value, dict):
            raise ConfigError(
                f"find_duplicates: {section}: expected a section such as {section}={{...}}, got {value!r}"
            )
        given = ({key: value} if section == "spark" else {name: value}) if name else value
        nested[section] = {**nested.get(section, {}), **given}
    return nested
