"""`nddup passages` and `nddup against` on Spark: collections of any size on any file system.

The steps of passages are the same as on one machine, by the shuffles of `nddup.spark.passages`; what acts, keeps and
writes is here. Of `against`, A is read in one pass whatever the size of B:

    files of A      --a filter of B's shingles, broadcast-->  documents with possible shingles
    their hashes    --joined with those of B-->               documents with a hash of B
    these           --collected, compared character by character with each part of B-->  SHARED

Only documents with a hash of B come to the driver. The remaining steps are those of the embedded engine.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.against.against_inputs import Items, Side
from nddup.against.compare_collections import ADVICE, Engine, Share, Start, report_to
from nddup.against.share_records import FilteredShingles, ShareRecords, verify_filter_hits
from nddup.against.shingle_table import add_keys, empty_filter
from nddup.embedded.memory import Memory
from nddup.engines.choose import memory_of, task_memory
from nddup.errors import ConfigError
from nddup.ground.progress import Steps
from nddup.matching.task_sizes import free_memory
from nddup.passages.find_passages import Source, find_collection, find_kept, require_word
from nddup.passages.passages_output import (
    FILE_RECORDS,
    HEADER,
    SHOWN,
    TEXTS,
    Told,
    cutting_of,
    name_texts,
    only_cut,
    say_kept,
    say_tagged,
    spell_header,
    uncut_sources,
    write_report,
)
from nddup.passages.show_passages import see_tables
from nddup.passages.tabulate import HashRecords
from nddup.reading.outcomes import DIVIDED
from nddup.rewriting.verdicts import NAMES, SPANS
from nddup.settings.plan import processes_of, record_limits, text_rule
from nddup.settings.schema import Config
from nddup.spark import passages
from nddup.spark.engine import SparkEngine
from nddup.spark.heavy_keys import beside
from nddup.spark.pairing import collapse
from nddup.spark.scan import Rewriting, scan, scan_counting
from nddup.spark.schemas import WHOLE, local_table, table
from nddup.spark.session import few_tasks, set_to, splitting
from nddup.spark.session_access import access_of
from nddup.spark.session_files import files_at, files_of
from nddup.spark.session_tables import UNMARKED, SparkFolder
from nddup.spark.steps.documents import WorkersOnSpark, files_without_records, list_short
from nddup.spark.steps.outputs import place_parts, rewrite_files
from nddup.spark.steps.pairing import tasks_of
from nddup.spark.steps.state import persisted
from nddup.stages.losses import require_few_losses
from nddup.stages.settle import MADE_UP, REPEATS, TAKEN, settle
from nddup.stages.stage import AS_INPUT, require_rewritable
from nddup.storage.local_storage import LocalStorage, require_new
from nddup.tables import REJECTS
from nddup.tables.features import CUTS, OCCURRENCES, PASSAGES, REPEATING

OF_TOKEN = 100
"""Bytes of memory of a task for each token of its documents, where much is repeated."""

OBSERVED = {"spark.sql.adaptive.enabled": "false"}
"""For the action that reads all records: an adaptive plan leaves out what is found empty, and what it observes."""

FILE_ROWS = 1_000_000
"""Rows of a table for each file that is written."""


class _Read(NamedTuple):
    """The documents, numbered, with what was counted of them and of rejects; `others` can be read and do not count."""

    numbered: DataFrame
    others: DataFrame | None
    rejects: DataFrame
    documents: int
    tokens: int
    like_made_up: int
    last: int
    """The greatest `doc_key` of the documents."""


FILTER_BYTES = 1 << 27
"""Largest broadcast filter, 128 MB: 16 bits for each of up to 64 million shingles of B, fewer bits each beyond."""

PLACE = ["source", "split", "seq"]


def find_on_spark(
    spark: SparkSession, inputs: Sequence[str], config: Config, output: str, steps: Steps
) -> tuple[Told, list[str]]:
    """Find the passages, write their tables and the requested outputs.

    Args:
        inputs: INPUT paths, or the folder of a run.
        output: folder of the tables, which does not exist.

    Returns:
        The facts of the summary, and a line about each output.

    Raises:
        ConfigError, NddupError, OutputError: as `find_passages.find_source` and `find_passages.find_passages`; never
            for the size of the collection.

    Cost: one pass over the files, and five shuffles: the texts, compressed, and some 3 bytes a token besides. Memory: a
        task holds its part of the documents, `OF_TOKEN` bytes a token; there are so many tasks that it fits. The driver
        holds counts, what the report shows and the number of records of each file.
    """
    require_word(config.keep.order)
    storage = files_at(spark, output)
    require_new(storage, inputs, output)
    before, reached = access_of(spark).shuffled_bytes(), access_of(spark)
    with reached.describing():
        steps.begin("find the files and their formats")
        source = _find_source(spark, inputs, config)
        require_rewritable(source.collection, config)
        sizes = sum(file.size for file in source.collection.listing.files)
        with set_to(spark, few_tasks(spark, config.spark, sizes)):
            steps.begin("read the documents")
            reached.describe("nddup passages: read the documents")
            with _read(spark, source) as read:
                summary, whole, lines = _find(spark, source, read, output, steps)
    summary = summary._replace(shuffled=reached.shuffled_bytes() - before)
    storage.write_text(f"{output}/{HEADER}", spell_header(inputs, source.config, summary, whole=whole))
    return summary, lines


def _find_source(spark: SparkSession, inputs: Sequence[str], config: Config) -> Source:
    files = files_of(spark)
    if len(inputs) != 1 or not files_at(spark, inputs[0]).exists(f"{inputs[0]}/_RUN.json"):
        return find_collection(inputs, config, files)
    folder = SparkFolder(spark, inputs[0])
    folder.open()
    kept = folder.table("keep").where("kept").select("doc_id")
    named = folder.table("documents").select("doc_id", "source", "record").join(kept, "doc_id")
    return find_kept(folder, named, config, files)


@contextmanager
def _read(spark: SparkSession, source: Source) -> Iterator[_Read]:
    """Read the records once, or twice if Spark skipped a record or cut one in two; errors as of `find_on_spark`."""
    collection, config = source.collection, source.config
    consumer = HashRecords(text_rule(config), config.tokens.ignored, hashes=False)
    limits, files = record_limits(config), files_of(spark)
    with set_to(spark, splitting(spark)):
        records, seen = scan_counting(spark, collection, consumer, files=files, limits=limits)
        with persisted(records) as rows:
            divided = F.collect_set(F.when(F.col("reason") == DIVIDED, F.col("source")))
            with set_to(spark, OBSERVED):
                again = set(rows.agg(divided).collect()[0][0])
            again |= list_short(spark, seen)
            if not again:
                with _numbered(spark, source, rows) as read:
                    yield read
                return
        whole = scan(spark, collection.read_whole(again), consumer, files=files, limits=limits)
        with persisted(whole) as rows, _numbered(spark, source, rows) as read:
            yield read


@contextmanager
def _numbered(spark: SparkSession, source: Source, rows: DataFrame) -> Iterator[_Read]:
    with persisted(collapse.split_offsets(rows)) as offsets:
        numbered = collapse.number(rows, offsets, offsets.count())
        good = numbered.where(F.col("reason").isNull())
        others = None
        if source.kept is not None:
            kept = source.kept.withColumnRenamed("doc_id", "named")
            few = beside(kept, kept.count())
            others = good.join(few, ["source", "record"], "left_anti")
            good = good.join(few, ["source", "record"]).withColumn("doc_id", F.col("named"))
            good = good.withColumn("is_made", F.lit(False)).drop("named")
        elif source.config.input.limit is not None:
            first = good.select("doc_key").orderBy("doc_key").limit(source.config.input.limit)
            last = first.agg(F.max("doc_key")).collect()[0][0] or 0
            good, others = good.where(F.col("doc_key") <= last), good.where(F.col("doc_key") > last)
        silent = files_without_records(spark, source.collection, rows)
        rejects = numbered.where(F.col("reason").isNotNull()).select(*REJECTS.names).unionByName(silent)
        like = F.count_if(F.col("doc_id").rlike(MADE_UP) & ~F.col("is_made"))
        counted = good.agg(F.count(F.lit(1)), F.sum("n_tokens"), like, F.max("doc_key")).collect()[0]
        read = _Read(good, others, rejects, *(int(count or 0) for count in counted))
        _require_documents(source, read)
        yield read


def _require_documents(source: Source, read: _Read) -> None:
    """Stop if there is no document, or more was lost than the settings allow."""
    if not read.documents:
        row = next(iter(read.rejects.orderBy("source", "record").limit(1).collect()), None)
        why = f": {row['source']}: {row['reason']} ({row['detail']})" if row else ""
        raise ConfigError(f"no document can be read{why}")
    if source.kept is None:
        reasons = {row["reason"]: row["count"] for row in read.rejects.groupBy("reason").count().collect()}
        seen = {"documents": read.numbered, "rejects": read.rejects}
        ask = partial(SparkEngine.over, read.numbered.sparkSession, **seen)
        require_few_losses(ask, read.documents, reasons, source.config.input, source.collection)


def _name(read: _Read) -> DataFrame:
    """Return the documents with final ids: one that a record lacks, or an earlier one has, becomes `source#record`."""
    narrow = read.numbered.select("doc_id", "doc_key", "source", "record", "url", "n_tokens", "is_made", "reason")
    rows = narrow.withColumn("content_fingerprint", F.col("doc_key").cast("string").cast("binary"))
    engine = SparkEngine.over(rows.sparkSession, good=rows)
    engine.see("repeats", engine.answer(REPEATS))
    if read.like_made_up:
        engine.see("taken", beside(engine.answer(TAKEN), read.like_made_up))
    settle(engine, renames=True, many=read.documents, like=read.like_made_up)
    return engine.answer("SELECT * FROM settled").drop("doc_id").withColumnRenamed("final_id", "doc_id")


def _find(spark: SparkSession, source: Source, read: _Read, output: str, steps: Steps) -> tuple[Told, int, list[str]]:
    """Return also how many records could not be cut, and a line about each output."""
    settings, config = source.config.passages, source.config
    memory = task_memory(access_of(spark).settings())
    needed = max(1, math.ceil(OF_TOKEN * read.tokens / free_memory(memory)))
    partitions = tasks_of(spark, config, needed, memory, f"{read.tokens:,} tokens")
    rule = passages.PassageRule(settings.min_tokens, settings.within, partitions, config.tokens.ignored)
    wanted = passages.Wanted(
        settings.min_left,
        settings.whole_sentences,
        settings.replace,
        is_judged=AS_INPUT in (config.output.kept, config.output.tagged),
    )
    ranked = _with_form(spark, source, passages.rank_documents(_name(read), config.keep.order))
    placed = passages.place_documents(read.numbered, ranked, partitions=partitions, documents=read.documents)

    steps.begin("find what is repeated")
    access_of(spark).describe("nddup passages: find what is repeated")
    with persisted(placed) as homes, persisted(passages.post(homes, rule)) as posts:
        tables = passages.find(passages.Shuffled(homes, posts), rule, wanted)
        with persisted(tables) as rows:
            summary = _tell(source, read, rows)
            steps.begin("write the tables")
            access_of(spark).describe("nddup passages: write the tables")
            written = _Written(files_at(spark, output), output, source, read, rows)
            _write(written, summary)
            whole, lines = _write_outputs(written)
            if config.output.report:
                _write_report(written, summary)
    return summary, whole, lines


def _with_form(spark: SparkSession, source: Source, ranked: DataFrame) -> DataFrame:
    """Add `as_text`: whether a document, if it is kept, is written as a line of JSON."""
    form, uncut = source.config.output.kept, uncut_sources(source.collection)
    if form != AS_INPUT or not uncut:
        return ranked.withColumn("as_text", F.lit(form == "jsonl"))
    named = local_table(spark, table("source string, as_text boolean"), [(one, True) for one in uncut])
    joined = ranked.join(beside(named, len(uncut)), "source", "left")
    return joined.withColumn("as_text", F.coalesce("as_text", F.lit(False)))


def _tell(source: Source, read: _Read, rows: DataFrame) -> Told:
    """Count what was found, in one action, and list the first passages and the first reject, in one each."""
    summed = ("second_copies", "allowed", "repeated", "cut")
    counts = {row["what"]: row for row in rows.groupBy("what").agg(
        F.count(F.lit(1)).alias("rows"), *(F.sum(name).alias(name) for name in summed),
        F.count_if("dropped").alias("dropped"), F.count_if(F.col("tokens") == F.col("cut")).alias("emptied"),
    ).collect()}  # fmt: skip
    repeating = counts.get("repeating")
    listed = _in_order(rows.where(F.col("what") == "passages")).limit(SHOWN).collect()
    rejects = read.rejects.count()
    first = read.rejects.orderBy("source", "record").limit(1).collect() if rejects else []
    return Told(
        documents=read.documents,
        tokens=read.tokens,
        passages=_rows_of(counts, "passages"),
        occurrences=_rows_of(counts, "occurrences"),
        repeating=_rows_of(counts, "repeating"),
        covered=int(repeating["repeated"]) if repeating else 0,
        cut=int(repeating["cut"]) if repeating else 0,
        dropped=int(repeating["dropped"]) if repeating else 0,
        allowed=int(counts["counts"]["allowed"]),
        second_copies=int(counts["counts"]["second_copies"]),
        rejects=rejects,
        first_reject=first[0].asDict() if first else None,
        shown=[row.asDict() for row in listed],
        of_run=source.kept is not None,
        emptied=int(repeating["emptied"]) if repeating else 0,
    )


def _rows_of(counts: dict[str, Any], what: str) -> int:
    return int(counts[what]["rows"]) if what in counts else 0


def _in_order(unordered: DataFrame) -> DataFrame:
    rows = unordered.select(*PASSAGES.names)
    return rows.orderBy(F.desc("occurrences"), F.desc("tokens"), "passage_id")


class _Written(NamedTuple):
    """Where the results are written, and what is: `rows` are FOUND."""

    storage: Any  # of the session, or of this machine
    folder: str
    source: Source
    read: _Read
    rows: DataFrame

    def of(self, what: str) -> DataFrame:
        """Return the rows of a table."""
        return self.rows.where(F.col("what") == what)


def _write(written: _Written, summary: Told) -> None:
    storage, output = written.storage, written.folder
    storage.make_folder(output)
    counts = {"passages": summary.passages, "occurrences": summary.occurrences, "repeating": summary.repeating}
    tables = {one.name: written.of(one.name).select(*one.names) for one in (OCCURRENCES, CUTS, REPEATING)}
    tables["passages"] = _in_order(written.of("passages"))
    tables["rejects"] = written.read.rejects
    for name, rows in tables.items():
        files = max(1, counts.get(name, summary.occurrences) // FILE_ROWS)
        few = rows if name == "passages" else rows.coalesce(files)
        few.write.options(compression="zstd", **UNMARKED).parquet(storage.spelled(f"{output}/{name}"))


def _write_outputs(written: _Written) -> tuple[int, list[str]]:
    """Write the kept and tagged collections as requested; return how many records could not be cut, and lines."""
    config, collection, folder = written.source.config, written.source.collection, written.folder
    form, whole, lines = config.output.kept, 0, list[str]()
    if form == "jsonl" or (form == AS_INPUT and uncut_sources(collection)):
        name = "kept" if form == "jsonl" else TEXTS
        _write_texts(written, f"{folder}/{name}")
    if AS_INPUT not in (form, config.output.tagged):
        return whole, lines
    spark, limit, cutting = written.rows.sparkSession, config.input.limit is not None, cutting_of(config)
    with persisted(_judge_all(written)) as verdicts:
        if form == AS_INPUT:
            kept = Rewriting(is_tagging=False, may_go_on=limit, limits=record_limits(config), cutting=cutting)
            cut = rewrite_files(spark, only_cut(collection), verdicts, f"{folder}/kept", kept)
            whole = cut.whole
            lines += say_kept(cut, collection)
        if config.output.tagged == AS_INPUT:
            tagging = Rewriting(is_tagging=True, may_go_on=limit, limits=record_limits(config), cutting=cutting)
            lines.append(say_tagged(rewrite_files(spark, collection, verdicts, f"{folder}/tagged", tagging)))
    return whole, lines


def _judge_all(written: _Written) -> DataFrame:
    read = written.read
    judged = written.of("verdicts").select("source", "record", NAMES[0], *SPANS.names)
    verdicts = judged.unionByName(read.rejects.select("source", "record", "reason"), allowMissingColumns=True)
    if read.others is None:
        return verdicts
    others = read.others.select("source", "record", F.lit(False).alias(NAMES[0]))
    return verdicts.unionByName(others, allowMissingColumns=True)


def _write_report(written: _Written, summary: Told) -> None:
    """Write the page; without Spark but for the texts where this process sees the folder."""
    folder, storage, spark = written.folder, written.storage, written.rows.sparkSession

    def read_texts(documents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        ids = {(row["source"], row["record"]): row["doc_id"] for row in documents}
        wanted = F.broadcast(local_table(spark, table("source string, record long"), list(ids)))
        rows = written.read.numbered.join(wanted, ["source", "record"]).select("source", "record", "text").collect()
        return {ids[row["source"], row["record"]]: row["text"] for row in rows}

    def put(name: str, text: str) -> None:
        storage.write_text(f"{folder}/{name}", text)

    with see_tables(folder, None if isinstance(storage, LocalStorage) else spark) as engine:
        storage.make_folder(f"{folder}/report")
        write_report(engine, summary, written.source.config, read_texts, put)


def _write_texts(written: _Written, folder: str) -> None:
    """Write lines of kept documents as the embedded engine does, each file by one task."""
    number, work = F.floor(F.col("doc_key") / FILE_RECORDS).cast("int"), f"{folder}.written"
    placed = written.of("kept").repartitionById(written.read.last // FILE_RECORDS + 1, number)
    lines = placed.sortWithinPartitions("doc_key").select("text")
    lines.write.options(**UNMARKED, **WHOLE).text(written.storage.spelled(work))
    place_parts(written.storage, work, folder, name_texts)


def engine_on_spark(spark: SparkSession) -> Start:
    """Return a starter of the Spark engine for `compare`."""

    @contextmanager
    def start(config: Config, spool: Path, steps: Steps) -> Iterator[Engine]:
        memory = Memory(memory_of(config), advice=ADVICE)
        workers = WorkersOnSpark(
            processes_of(config), spool=spool / "rows", progress=report_to(steps), memory=memory, spark=spark
        )
        with workers:
            yield Engine(workers.storage, workers, share_on_spark(workers))

    return start


def share_on_spark(workers: WorkersOnSpark) -> Share:
    """Make a `Share` with one pass over the files, with a filter of the shingles of all parts of B."""

    def share(side: Side, items: Items, counts: bool) -> list[pa.Table]:  # noqa: FBT001 - as `Share`
        words = empty_filter(sum(len(known.keys) for known in items.tables), most_bytes=FILTER_BYTES)
        for known in items.tables:
            add_keys(known.keys, words)
        shingles = FilteredShingles(words.tobytes(), items.tables[0].length, items.tables[0].ignored)
        consumer = ShareRecords(shingles, text_rule(side.config), counts)
        keys = pa.table({"key": np.concatenate([known.keys for known in items.tables]).view(np.int64)})
        rows = workers.scan_narrowed(
            side.collection, consumer, record_limits(side.config), _keep_known(workers.spark.createDataFrame(keys))
        )
        is_document = pc.equal(rows["what"], "document")
        others, possible = rows.filter(pc.invert(is_document)), rows.filter(is_document)
        return [pa.concat_tables([others, verify_filter_hits(possible, known)]) for known in items.tables]

    return share


def _keep_known(keys: DataFrame) -> Callable[[DataFrame], AbstractContextManager[DataFrame]]:
    """Return a filter that keeps the documents of SHARED with one of the fingerprints in `keys`, and all other rows.

    Shuffles:  the possible fingerprints once, and the documents that have any once.
    """

    @contextmanager
    def narrow(shared: DataFrame) -> Iterator[DataFrame]:
        with persisted(shared) as rows:
            documents = rows.where(F.col("what") == "document")
            possible = documents.select(*PLACE, F.explode("keys").alias("key"))
            places = possible.join(keys, "key", "left_semi").select(*PLACE).distinct()
            known = documents.join(places, PLACE, "left_semi").select(*rows.columns)  # a join puts its keys first
            yield known.union(rows.where(F.col("what") != "document"))

    return narrow
