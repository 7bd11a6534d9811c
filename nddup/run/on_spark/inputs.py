"""The inputs of a run on Spark, kept so that later passes find the same records; and its lexicon.

    lexicon/        the terms, with how often they occur in the collection they were counted in
    lexicon.json    the settings and versions that made it, its counts, and the run it was taken from

A lexicon is counted in the collection or taken from another run, and saved with the run in either case. One made with
other settings, or with other versions of the stemming libraries, is refused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup import tables
from nddup.errors import ConfigError, NeedsSparkError
from nddup.local.read_records import missing_lexicon, read_note
from nddup.local.workers import Workers
from nddup.metrics import LexiconMetrics
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import DIVIDED, Reject
from nddup.run.on_spark.state import Job
from nddup.run.session import set_to, splitting
from nddup.scanning.collection import Collection
from nddup.scanning.found import Batches, Consumer, LocatedRecord, RecordLimits, TextRule
from nddup.scanning.read_again import CHARACTERS, Texts
from nddup.scanning.sketch_records import SketchRecords, WordCounter
from nddup.settings import plan
from nddup.settings.plan import record_limits, text_rule
from nddup.sketching.vocabulary import COUNTED, MOST_TERMS, sort_ids
from nddup.sketching.word_sketches import WordRule
from nddup.spark import schemas
from nddup.spark.reading.scan import (
    choose_terms,
    name_texts,
    scan,
    scan_counting,
    scan_texts,
    sources_cut_short,
    sum_terms,
)
from nddup.spark.schemas import read_table
from nddup.stages.inputs_found import find_again
from nddup.stages.run_engine import Saved
from nddup.storage.run_folder import RunFolder
from nddup.storage.session_files import SessionFiles, files_of


@dataclass(frozen=True)
class Inputs:
    """The files that were read, how their records become texts, and the settings under which Spark split them."""

    spark: SparkSession
    collection: Collection
    text: TextRule
    limits: RecordLimits
    splitting: Mapping[str, str]

    @property
    def sizes(self) -> dict[str, int]:
        """Stored bytes of each source."""
        return {file.source: file.size for file in self.collection.listing.files}

    def scan(self, consumer: Consumer) -> DataFrame:
        """Return the rows that a consumer makes of all records, lazily."""
        return scan(self.spark, self.collection, consumer, files=files_of(self.spark), limits=self.limits)

    def find_texts(self, documents: Mapping[str, tuple[str, bytes]], characters: int | None = CHARACTERS) -> DataFrame:
        """Return STORED_TEXTS of these documents (doc_id -> source, fingerprint), lazily: only their files are read.

        A document that is no longer in its file has no row.
        """
        if not documents:
            return schemas.local_table(self.spark, schemas.schema_of(tables.STORED_TEXTS))

        schema = schemas.table("doc_id string, source string, content_fingerprint binary")
        rows = [(doc, *place) for doc, place in sorted(documents.items())]
        named = schemas.local_table(self.spark, schema, rows)
        sources = {source for source, _ in documents.values()}
        fingerprints = frozenset(fingerprint for _, fingerprint in documents.values())
        these = replace(self, collection=self.collection.only(sources))
        return name_texts(these.scan(Texts(self.text, fingerprints, characters)), F.broadcast(named))


def reopen_inputs(spark: SparkSession, folder: RunFolder) -> Inputs:
    """Open the inputs of a finished run, to read documents again.

    Raises:
        ConfigError: if an input is missing.
        NddupError: if a file was changed, added or removed since the run.
    """
    collection, config = find_again(folder, files_of(spark))
    return Inputs(spark, collection, text_rule(config), record_limits(config), splitting={})


@dataclass(frozen=True)
class Lexicon:
    """The terms that may describe a document: their ids, as bytes of ascending uint64, and the counts."""

    ids: bytes
    metrics: LexiconMetrics


def find_lexicon(job: Job, source: Collection | DataFrame) -> Lexicon | None:
    """Return the lexicon of a run, counted in a pass of its own or taken; None if the kind of sketch needs none."""
    words, saved = plan.words_of(job.config), job.config.lexicon.saved
    if words is None or not words.needs_lexicon:
        return None

    kept = job.find("lexicon")
    if kept is None and saved is not None:
        terms, note = take_saved(job.spark, saved, words)
        kept = job.seal("lexicon", job.write("lexicon", terms), **{name: int(note[name] or 0) for name in COUNTED})
    elif kept is None:
        kept = _count_lexicon(job, source, words)
    return Lexicon(ids_of(kept.table), LexiconMetrics(terms=kept.rows, **kept.noted))


def _count_lexicon(job: Job, source: Collection | DataFrame, words: WordRule) -> Saved:
    """Make LEXICON from the collection itself: its terms that are neither too rare nor too frequent in it."""
    consumer = WordCounter(words.lexicon, text_rule(job.config), job.config.input.min_tokens)
    if isinstance(source, DataFrame):
        counted = scan_texts(source, consumer)
    else:
        counted = scan(job.spark, source, consumer, files=files_of(job.spark), limits=record_limits(job.config))
    terms = job.save("terms", sum_terms(counted), {"commonest": "max(occurrences)", "occurrences": "sum(occurrences)"})

    least, most = words.lexicon.interval(terms.counts["commonest"])
    kept = job.write("lexicon", choose_terms(terms.table, least=least, most=most))
    sealed = job.seal("lexicon", kept, counted=terms.rows, **terms.counts)
    job.drop("terms", made=["lexicon"])
    return sealed


def ids_of(kept: DataFrame) -> bytes:
    """Return the ids of a lexicon, as bytes of ascending uint64, for the tasks that sketch. One action, over its rows.

    Raises:
        CapacityError: if there are too many ids.
    """
    return sort_ids(kept.select("feature").limit(MOST_TERMS + 1).toArrow().column("feature").to_numpy())


def take_saved(spark: SparkSession, path: str, words: WordRule | None) -> tuple[DataFrame, dict[str, Any]]:
    """Return the lexicon of another run, and its note.

    Raises:
        ConfigError: if there is none, or if it was made with other settings: the message names both.
    """
    files = files_of(spark)
    note, folder = read_note(files, path, words)
    try:
        return read_table(spark, files.spelled(folder), schemas.schema_of(tables.LEXICON)), note
    except AnalysisException as error:
        raise ConfigError(missing_lexicon(path)) from error


Narrow = Callable[[DataFrame], AbstractContextManager[DataFrame]]
"""Reduces the rows of a consumer; as a context, it frees what it kept for that."""


@dataclass(kw_only=True)
class WorkersOnSpark(Workers):
    """As `Workers`, but Spark reads the files, from any storage it can reach, and makes the rows of a consumer."""

    spark: SparkSession
    storage: SessionFiles = field(init=False)

    def __post_init__(self) -> None:
        """Find the file system of the session; start no job."""
        super().__post_init__()
        self.storage = files_of(self.spark)

    def scan(self, source: Collection | pa.Table, consumer: Consumer, limits: RecordLimits) -> pa.Table:
        """Return the rows that a consumer makes of files; given texts are read here, without Spark.

        Spark silently skips a record longer than its buffer. So the bytes read are compared with the sizes of the
        files; if bytes of a file are missing, or it was divided inside a record (`DIVIDED`), all is read once more,
        that file from its start.

        Cost: one pass over the files by Spark's tasks, two if one did not suffice. The driver holds the rows, so
        `spark.driver.maxResultSize` bounds them.
        """
        if not isinstance(source, Collection):
            return super().scan(source, consumer, limits)
        return self.scan_narrowed(source, consumer, limits, nullcontext)

    def scan_narrowed(self, source: Collection, consumer: Consumer, limits: RecordLimits, narrow: Narrow) -> pa.Table:
        """As `scan`, for files; only the rows left by `narrow` come to the driver."""
        with set_to(self.spark, splitting(self.spark)):
            found, seen = scan_counting(self.spark, source, consumer, files=self.storage, limits=limits)
            with narrow(found) as left:
                rows = left.toArrow()
            short = {
                row["source"]
                for count in seen
                if count.is_short
                for row in sources_cut_short(self.spark, count.group, max_record=limits.max_record).collect()
            }
            if "reason" in rows.column_names:
                short |= set(rows.filter(pc.equal(rows["reason"], DIVIDED))["source"].to_pylist())
            if short:
                self.read_again |= short
                again = source.read_whole(short)
                with narrow(scan(self.spark, again, consumer, files=self.storage, limits=limits)) as left:
                    rows = left.toArrow()
        return rows.cast(consumer.table.arrow)


FEW_BYTES, FEW_RECORDS = 8 << 20, 20_000
"""Most stored bytes of the files, and most records of a task, whose rows come to the driver."""

BEYOND = "beyond"
"""The reason of a row that stands for all records after the first `FEW_RECORDS` of a task."""


@dataclass(frozen=True)
class _FirstRows:
    """A consumer that stops, with a row that says so, where a task has too many records."""

    rows: SketchRecords
    most: int
    table = tables.RECORDS

    def batches(self, found: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield the rows of one task."""
        yield from self.rows.batches(self._first(found), head)

    def _first(self, found: Iterable[Sequence[LocatedRecord]]) -> Iterator[Sequence[LocatedRecord]]:
        seen = 0
        for some in found:
            seen += len(some)
            if seen > self.most:
                yield [some[0]._replace(record=Reject(BEYOND, "", ""))]
                return
            yield some


@dataclass(kw_only=True)
class FewOnSpark(WorkersOnSpark):
    """As `WorkersOnSpark`, of few records: `NeedsSparkError` where they are more."""

    def scan(self, source: Collection | pa.Table, consumer: Consumer, limits: RecordLimits) -> pa.Table:
        """Return RECORDS of few files."""
        if not isinstance(consumer, SketchRecords):
            return super().scan(source, consumer, limits)
        rows = super().scan(source, _FirstRows(consumer, FEW_RECORDS), limits)
        if pc.any(pc.equal(rows["reason"], BEYOND)).as_py():
            raise NeedsSparkError("too many records for the driver")
        return rows
