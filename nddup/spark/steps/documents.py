"""The first stage on Spark: from files, or from given texts, to documents and rejects; and the nodes of the next stage.

    files, texts --sketch_documents-->  documents, rejects    each record read once; equal sketches collapsed
    documents    --name_nodes-->        nodes                 one a distinct sketch
    files        --find_lexicon-->      Lexicon               counted in the collection, or taken from another run

How Spark splits files depends on the number of cores. The settings that decide it are fixed while files are read, and
noted with the records, so that a later pass, even in a resumed run, finds each record in the same place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup import tables
from nddup.embedded import steps as embedded_steps
from nddup.embedded.old_run import Old
from nddup.embedded.read_records import missing_lexicon, read_note
from nddup.embedded.workers import Workers
from nddup.errors import ConfigError, NeedsSparkError
from nddup.ground.metrics import LexiconMetrics
from nddup.ground.shown import MOST_NAMED
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import DIVIDED, Reject
from nddup.scanning.collection import Collection
from nddup.scanning.found import Batches, Consumer, LocatedRecord, RecordLimits, SketchRule, TextRule
from nddup.scanning.read_again import CHARACTERS, Texts
from nddup.scanning.sketch_records import SketchRecords, WordCounter
from nddup.settings import plan
from nddup.settings.plan import record_limits, sketch_rule, text_rule, words_of
from nddup.sketching.vocabulary import COUNTED, MOST_TERMS, sort_ids
from nddup.sketching.word_sketches import WordRule
from nddup.spark import heavy_keys, scan, schemas
from nddup.spark.pairing import collapse
from nddup.spark.schemas import read_table
from nddup.spark.session import given_partitions, set_to, splitting
from nddup.spark.session_files import SessionFiles, files_of
from nddup.spark.steps import onto
from nddup.spark.steps.state import Job, OldTables, persisted
from nddup.stages.inputs_found import find_again
from nddup.stages.run_engine import NO_COUNTS, Made, New, Saved
from nddup.stages.settle import (
    COPIED,
    MADE_UP,
    READ,
    REJECTED,
    REPEATS,
    TAKEN,
    find_common,
    find_revisited,
    list_documents,
    settle,
)
from nddup.stages.stage import (
    Unpaired,
    reads_contents,
)
from nddup.storage.run_folder import RunFolder
from nddup.tables import DOCUMENTS, REJECTS


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

    def without_columns(self) -> "Inputs":
        """Return the same files, to be read again for their texts alone."""
        return replace(self, collection=self.collection.without_columns())

    def scan(self, consumer: Consumer) -> DataFrame:
        """Return the rows that a consumer makes of all records, lazily."""
        return scan.scan(self.spark, self.collection, consumer, files=files_of(self.spark), limits=self.limits)

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
        return scan.name_texts(these.scan(Texts(self.text, fingerprints, characters)), F.broadcast(named))


Narrow = Callable[[DataFrame], AbstractContextManager[DataFrame]]
"""Reduces the rows of a consumer; as a context, it frees what it persisted for that."""

BEYOND = "beyond"
"""The reason of a row that stands for all records after the first `FEW_RECORDS` of a task."""

IS_UNREAD = "reason IS NULL AND (unread_bytes > 0 OR unread_parts > 0)"

RECORD_COUNTS = {
    "undecodable_records": "count_if(n_replaced > 0)",
    "undecodable_places": "sum(n_replaced)",
    "unread_records": f"count_if({IS_UNREAD})",
    "unread_bytes": f"sum(CASE WHEN {IS_UNREAD} THEN unread_bytes ELSE 0 END)",
    "unread_parts": f"sum(CASE WHEN {IS_UNREAD} THEN unread_parts ELSE 0 END)",
    "nested_records": "count_if(parent IS NOT NULL)",
    "stripped_records": "count_if(n_stripped > 0)",
    "guessed_records": "count_if(n_guessed > 0)",
    "inside_records": "count_if(n_inside > 0)",
    "revisits": "count_if(reason = 'revisit')",
    "bad_records": "count_if(reason IS NOT NULL)",
    "made_up_ids": "count_if(reason IS NULL AND doc_id IS NULL)",
    "like_made_up": f"count_if(reason IS NULL AND doc_id RLIKE '{MADE_UP}')",
}
"""Counts of RECORDS, as aggregates: undecodable places, ids, and the records that have them."""

FEW = 1_000
"""Maximum number of records whose documents are one file, in their order, as the embedded engine writes them: a person
reads it."""

_SIZES = ("distinct_sketches", "most_features", "postings")
"""Counts of the documents that pairing needs."""

FEW_BYTES, FEW_RECORDS = 8 << 20, 20_000
"""Maximum numbers of stored bytes of files, and of records of a task, whose rows come to the driver."""


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
    """Return the lexicon of a run, counted in a pass of its own or taken; None if the kind of sketch needs none.

    It is saved with the run in either case:

        lexicon/        the terms, with how often they occur in the collection they were counted in
        lexicon.json    the settings and versions that made it, its counts, and the run it was taken from

    One made with other settings, or with other versions of the stemming libraries, is refused.
    """
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
        counted = scan.scan_texts(source, consumer)
    else:
        counted = scan.scan(job.spark, source, consumer, files=files_of(job.spark), limits=record_limits(job.config))
    terms = job.save(
        "terms", scan.sum_terms(counted), {"commonest": "max(occurrences)", "occurrences": "sum(occurrences)"}
    )

    least, most = words.lexicon.interval(terms.counts["commonest"])
    kept = job.write("lexicon", scan.choose_terms(terms.table, least=least, most=most))
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


def list_short(spark: SparkSession, seen: Iterable[scan.BytesSeen]) -> set[str]:
    """Return the files of which Spark skipped bytes. An action for each group whose bytes are too few."""
    short = (scan.sources_cut_short(spark, one.group, max_record=one.max_record) for one in seen if one.is_short)
    return {row["source"] for files in short for row in files.collect()}


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
            records, seen = scan.scan_counting(self.spark, source, consumer, files=self.storage, limits=limits)
            with narrow(records) as left:
                rows = left.toArrow()
            short = list_short(self.spark, seen)
            if "reason" in rows.column_names:
                short |= set(rows.filter(pc.equal(rows["reason"], DIVIDED))["source"].to_pylist())
            if short:
                self.read_again |= short
                again = source.read_whole(short)
                with narrow(scan.scan(self.spark, again, consumer, files=self.storage, limits=limits)) as left:
                    rows = left.toArrow()
        return rows.cast(consumer.table.arrow)


@dataclass(frozen=True)
class _FirstRows:
    """A consumer that stops, with a row that says so, where a task has too many records."""

    rows: SketchRecords
    most: int
    table = tables.RECORDS

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield the rows of one task."""
        yield from self.rows.batches(self._first(lists), head)

    def _first(self, lists: Iterable[Sequence[LocatedRecord]]) -> Iterator[Sequence[LocatedRecord]]:
        seen = 0
        for records in lists:
            seen += len(records)
            if seen > self.most:
                yield [records[0]._replace(record=Reject(BEYOND, "", ""))]
                return
            yield records


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


@dataclass(frozen=True)
class Documents:
    """The documents of a run, their nodes, and the counts that pairing needs."""

    table: DataFrame
    nodes: DataFrame
    rows: int
    distinct_sketches: int
    most_features: int
    postings: int
    """(feature, sketch) rows of the distinct sketches."""
    unpaired: Unpaired


@dataclass(frozen=True)
class Sketched:
    """The documents of a run, or of another, and where they were read."""

    made: Made
    """As of `SketchedRun`."""
    inputs: Inputs | None = None
    """None if texts were given, or are not read again."""
    offsets: Saved | None = None
    """How many records come before each split of a file; None if nothing reads them."""
    new: New | None = None
    """As of `SketchedRun`."""

    @property
    def documents(self) -> Saved:
        """The documents, with their counts."""
        return self.made.saved["documents"]


@dataclass(frozen=True)
class _Records:
    """RECORDS, and how they were read."""

    saved: Saved
    inputs: Inputs | None

    @property
    def noted(self) -> Mapping[str, Any]:
        """What the note of the documents takes over: the counts of the records, and how the files were split."""
        return {**self.saved.counts, **self.saved.noted}


class _Made(NamedTuple):
    """Documents and rejects, and what is needed to read the inputs again."""

    documents: Saved
    rejects: Saved
    inputs: Inputs | None
    offsets: Saved | None


def sketch_documents(job: Job, source: Collection | DataFrame) -> Sketched:
    """Read and sketch all records once; documents with equal sketches become one node."""
    lexicon = find_lexicon(job, source)
    rule = sketch_rule(job.config, lexicon=lexicon.ids if lexicon else b"")
    if job.onto is not None:
        job.old = onto.open_old(job, job.onto)

    made = _find_documents(job, source) or _make_few(job, source) or _make_documents(job, source, rule)
    job.drop("records", made=["documents", "rejects", "offsets"])  # as large as the documents
    documents, rejects = made.documents, made.rejects
    counts = {**documents.counts, **documents.noted, **rejects.noted}
    if lexicon:
        counts["lexicon"] = lexicon.metrics
    return Sketched(
        Made(saved={"documents": documents, "rejects": rejects}, counts=counts),
        made.inputs and made.inputs.without_columns(),
        made.offsets,
        None if job.old is None else _count_new(made, job.old),
    )


def _count_new(made: _Made, old: OldTables) -> New:
    documents = made.documents.table.where(F.col("doc_key") >= old.n_records).count()
    reasons = {reason: n - old.reasons.get(reason, 0) for reason, n in made.rejects.noted["reasons"].items()}
    return New(documents, {reason: n for reason, n in reasons.items() if n > 0})


def name_nodes(job: Job, documents: Saved) -> Documents:
    """Return the documents with their nodes: one a distinct sketch, in the order of the keep policy. One action."""
    asked, forced, many = job.config.keep, job.forced, documents.rows
    named = collapse.name_nodes(
        documents.table, order=asked.order, levels=job.levels, many=many, forced=forced, same=asked.same_places
    )
    nodes = job.save("nodes", named, Unpaired.counts(job.threshold.least_size))
    sizes, unpaired = {name: documents.counts[name] for name in _SIZES}, Unpaired(**nodes.counts)
    return Documents(documents.table, nodes.table, documents.rows, **sizes, unpaired=unpaired)


def _find_documents(job: Job, source: Collection | DataFrame) -> _Made | None:
    """Return the documents and rejects of an earlier attempt on either engine; None if anything is missing."""
    documents, rejects = job.find("documents"), job.find("rejects")
    offsets = job.find("offsets") if reads_contents(job.config) else None
    if documents is None or rejects is None or (offsets is None and reads_contents(job.config)):
        return None
    if job.config.output.onto and job.find("given") is None:
        return None

    inputs = None
    if isinstance(source, Collection):
        again = source.read_whole(set(documents.noted["read_again"]))
        inputs = _inputs(job, again, offsets.noted["splitting"] if offsets else {})
    return _Made(documents, rejects, inputs, offsets)


class _Numbered(NamedTuple):
    """The records of a run, and of the one that it goes on from, numbered."""

    read: DataFrame
    """As they were read."""
    rows: DataFrame
    """The same, with revisits as copies of what they repeat."""
    silent: DataFrame
    """REJECTS of whole files."""
    records: int
    counts: Mapping[str, int]
    """`RECORD_COUNTS`."""
    noted: Mapping[str, Any]
    """What the note of the documents takes over."""
    joined: onto.Joined | None
    inputs: Inputs | None
    offsets: Saved


def _number_records(job: Job, source: Collection | DataFrame, rule: SketchRule) -> _Numbered:
    """Read the records and number them. The actions of reading; one more onto another run, whose records it copies."""
    if isinstance(source, Collection):
        records = _read_files(job, source, rule)
        silent = files_without_records(job.spark, source, records.saved.table)
    else:
        records = _read_texts(job, source, rule)
        silent = schemas.local_table(job.spark, schemas.schema_of(REJECTS))

    # The offsets count by the splits of these records: another engine, or other cores, would split elsewhere.
    offsets = job.find("offsets")
    if offsets is None:
        counted = job.write("offsets", collapse.split_offsets(records.saved.table))
        offsets = job.seal("offsets", counted, splitting=records.saved.noted["splitting"])
    saved, old, joined = records.saved, job.old, None
    read = collapse.number(saved.table, offsets.table, offsets.rows, saved.rows)
    counts, noted, n_records = saved.counts, {**records.noted, **_count_by_file(records)}, saved.rows
    if old is not None and isinstance(source, Collection):
        joined = onto.join_old(job, old, source, saved, read)
        read, silent = joined.records.table, silent.unionByName(joined.silent)
        counts = {name: n + old.noted.get(name, 1) for name, n in counts.items()}  # not every engine notes all
        noted |= {**counts, **embedded_steps.add_noted(old.noted, noted)}
        n_records += old.n_records
    rows = read
    if isinstance(source, Collection) and counts.get("revisits"):
        job.engine.see("captures", read.select(*READ))
        rows = collapse.copy_revisits(read, find_revisited(job.engine), COPIED)
    return _Numbered(read, rows, silent, n_records, counts, noted, joined, records.inputs, offsets)


def _make_documents(job: Job, source: Collection | DataFrame, rule: SketchRule) -> _Made:
    """Make documents and rejects from the records. Two actions, and those of the records."""
    numbered = _number_records(job, source, rule)
    rows, n_records, counts = numbered.rows, numbered.records, numbered.counts
    taken = None if numbered.joined is None else numbered.joined.taken
    engine, renames = job.ask(good=rows.where(F.col("reason").isNull())), isinstance(source, Collection)
    like = counts.get("like_made_up", 1) if renames else 0  # an earlier version did not count them
    with persisted(engine.answer(REPEATS)) as repeats:
        engine.see("repeats", repeats)
        if like:
            engine.see("taken", heavy_keys.beside(engine.answer(TAKEN), like))
        if taken is not None:
            engine.see("taken_out", taken)
        settle(engine, renames=renames, many=n_records, like=like, without=taken is not None)
        documents, rejects = job.find("documents"), job.find("rejects")
        if documents is None:
            later = engine.count("repeats", {"later_ids": "sum(n - 1)"})
            nested = counts.get("nested_records", 0)
            named = {"final_id": "doc_id", "first_id": "group", **({"final_parent": "parent"} if nested else {})}
            listed = list_documents(engine, many=n_records, nested=nested)
            settled = listed.drop(*named.values()).withColumnsRenamed(named).select(*DOCUMENTS.names)
            documents = _write_documents(job, numbered, settled, later)
        if rejects is None and job.old is None and _are_all_documents(source, documents):
            rejects = job.put_rows("rejects", REJECTS.arrow.empty_table(), NO_COUNTS, reasons={})
        elif rejects is None:
            bad = rows.where(F.col("reason").isNotNull()).select(*REJECTS.names)
            written = job.write("rejects", bad.unionByName(engine.answer(REJECTED)).unionByName(numbered.silent))
            rejects = job.seal("rejects", written, reasons=_count_reasons(written))
    if job.config.output.onto and isinstance(source, Collection):
        _save_given(job, numbered, documents)
        job.drop("numbered", made=["documents", "rejects", "given"])
    return _Made(documents, rejects, numbered.inputs, numbered.offsets)


def _write_documents(job: Job, numbered: _Numbered, settled: DataFrame, later: Mapping[str, int]) -> Saved:
    """Write and seal the documents; beside an earlier run's those settled together. One action, or `onto`'s."""
    old, joined = job.old, numbered.joined
    if old is not None and joined is not None and joined.is_beside:
        later = {name: n + old.noted.get(name, 0) for name, n in later.items()}
        with persisted(settled) as few:
            written = onto.write_documents(job, old, few, joined.records.rows)
    else:
        if numbered.records <= FEW:
            settled = settled.coalesce(1).sortWithinPartitions("doc_key")
        written = job.write("documents", settled, collapse.SKETCH_COUNTS)
    return job.seal("documents", written, **numbered.noted, **later, **written.noted)


def _save_given(job: Job, numbered: _Numbered, documents: Saved) -> None:
    """Save GIVEN; beside an earlier run's, that of the records settled now. One action, or two (`Job.write_onto`)."""
    old, joined = job.old, numbered.joined
    if old is None or joined is None or not joined.is_beside:
        job.save("given", onto.list_given(numbered.read, documents.table))
    elif job.find("given") is None:
        is_new = F.col("doc_key") >= old.n_records  # the others are as they were
        given = onto.list_given(numbered.read.where(is_new), documents.table.where(is_new))
        job.seal("given", job.write_onto("given", given, old))


def _make_few(job: Job, source: Collection | DataFrame) -> _Made | None:
    """Return the documents and rejects of few records, which come to the driver; None of more. One action.

    The embedded engine numbers and collapses them here: as tables of Spark they take six jobs, onto another run forty.
    """
    words = words_of(job.config)
    is_needed = reads_contents(job.config) or (words is not None and words.needs_lexicon)
    if not isinstance(source, Collection) or is_needed or given_partitions(job.config.spark):
        return None
    if sum(file.size for file in source.listing.files) > FEW_BYTES or (job.old and job.old.n_records > FEW_RECORDS):
        return None
    job.progress.describe("records")
    with FewOnSpark(1, spark=job.spark) as workers, suppress(NeedsSparkError):
        before = Old.nothing() if job.config.output.onto else None
        before = onto.bring_old(job.old).without(job.without) if job.old else before
        sketched = embedded_steps.sketch(source, job.config, workers, renames=True, old=before)
        split = splitting(job.spark)
        noted = {name: sketched.counts[name] for name in embedded_steps.NOTED if name in sketched.counts}
        again = {"splitting": split, "read_again": sorted(workers.read_again)}
        counts = embedded_steps.count_sketches(sketched.documents)
        documents = job.put_rows("documents", sketched.documents, counts, **again, **noted)
        rejects = job.put_rows("rejects", sketched.rejects, NO_COUNTS, reasons=sketched.reasons)
        if sketched.settled is not None:
            job.put_rows("given", sketched.settled.given, NO_COUNTS)
        return _Made(documents, rejects, _inputs(job, source.read_whole(workers.read_again), split), None)
    return None


def _are_all_documents(source: Collection | DataFrame, documents: Saved) -> bool:
    """Whether the counts rule out rejects, without a job."""
    bad = documents.noted.get("bad_records", 1) + documents.noted["later_ids"]
    return not bad and not (isinstance(source, Collection) and source.rejects_of_files)


def _count_by_file(records: _Records) -> dict[str, list[list[Any]]]:
    """Return the first files with each kind of counted records, and how many; one action for each if there are any."""
    return {
        f"{name}_files": [list(row) for row in collapse.count_by_file(records.saved.table, name).take(MOST_NAMED)]
        for name in ("stripped", "guessed", "inside")
        if records.saved.counts.get(f"{name}_records")
    }


def _read_texts(job: Job, texts: DataFrame, rule: SketchRule) -> _Records:
    """Return RECORDS of given texts; if some shingles are too common, read the texts again without them."""
    saved = job.find("records")
    if saved is None:
        saved = job.write("records", scan.scan_texts(texts, SketchRecords(rule)), RECORD_COUNTS)
        left_out = find_common(job.ask(records=saved.table), job.config)
        if left_out:
            thinned = scan.scan_texts(texts, SketchRecords(replace(rule, left_out=left_out)))
            saved = job.write("records", thinned, RECORD_COUNTS)
        saved = job.seal("records", saved, splitting={}, read_again=[], left_out_shingles=len(left_out) // 8)
    return _Records(saved, None)


def _read_files(job: Job, collection: Collection, rule: SketchRule) -> _Records:
    """Return RECORDS of all files. One action; one more for each reason to read again.

    Spark silently skips a record longer than its buffer. So the bytes read are compared with the sizes of the files,
    and a file of which bytes are missing is read again from its start, by one task. So is a file that was divided
    inside a record.
    """
    saved = job.find("records")
    if saved is not None:
        again = collection.read_whole(set(saved.noted["read_again"]))
        return _Records(saved, _inputs(job, again, saved.noted["splitting"]))

    split = splitting(job.spark)
    limits, files = record_limits(job.config), files_of(job.spark)
    with set_to(job.spark, split):
        records, seen = scan.scan_counting(job.spark, collection, SketchRecords(rule), files=files, limits=limits)
        is_divided = f"reason = '{DIVIDED}'"
        saved = job.write("records", records, RECORD_COUNTS | {"divided": f"count_if({is_divided})"})
        short = list_short(job.spark, seen)
        if saved.counts["divided"]:
            divided = saved.table.where(is_divided).select("source").distinct()
            short |= {row["source"] for row in divided.collect()}
        inputs = _inputs(job, collection.read_whole(short), split)
        if short:
            saved = job.write("records", inputs.scan(SketchRecords(rule)), RECORD_COUNTS)

        left_out = find_common(job.ask(records=saved.table), job.config)
        if left_out:
            thinned = inputs.scan(SketchRecords(replace(rule, left_out=left_out)))
            saved = job.write("records", thinned, RECORD_COUNTS)

    noted = {"splitting": split, "read_again": sorted(short), "left_out_shingles": len(left_out) // 8}
    return _Records(job.seal("records", saved, **noted), inputs)


def _inputs(job: Job, collection: Collection, split: Mapping[str, str]) -> Inputs:
    return Inputs(job.spark, collection, text_rule(job.config), record_limits(job.config), split)


def _count_reasons(rejects: Saved) -> dict[str, int]:
    if not rejects.rows:
        return {}
    return {row["reason"]: row["count"] for row in rejects.table.groupBy("reason").count().collect()}


def files_without_records(spark: SparkSession, collection: Collection, records: DataFrame) -> DataFrame:
    """Return REJECTS of whole files: those that could not be opened or recognised, and those without any record."""
    schema = schemas.table("source string, reason string, detail string")
    files = schemas.local_table(spark, schema, collection.rejects_of_files)
    return files.join(records.select("source").distinct(), "source", "left_anti").select(
        "source",
        F.lit(1).cast("long").alias("record"),
        F.lit(None).cast("string").alias("doc_id"),
        "reason",
        "detail",
        F.lit("").alias("excerpt"),
    )
