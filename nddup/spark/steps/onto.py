"""A run onto a finished run on Spark: the old records and shingles, which are not read again.

    a folder            --open_old-->       OldTables; --bring_old--> Old, of few records
    numbered records    --with_old-->       those of both runs, numbered
    records, documents  --list_given-->     GIVEN, for the next run
    lists of ids        --list_taken-->     the documents that leave
    documents, OLD      --write_documents--> DOCUMENTS of both
    documents, TOKENS   --save_shingles-->  SHINGLES of both runs: those of NEW are read
    both                --stored_tokens-->  TOKENS of their texts, for what compares them now and in the next run

What follows is made of the documents that `steps.changed` finds, by the steps of any other run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.embedded.old_run import Old
from nddup.embedded.settle_onto import prints_of
from nddup.errors import NddupError, OutputError, reason_of
from nddup.scanning.collection import Collection
from nddup.settings.plan import kind_of
from nddup.settings.schema import Config
from nddup.spark import schemas
from nddup.spark.heavy_keys import beside
from nddup.spark.pairing import collapse, confirm
from nddup.spark.session_tables import SparkFolder
from nddup.spark.steps.sound_tables import require_sound
from nddup.spark.steps.state import Job, OldTables
from nddup.stages.onto import WITHOUT_REVISITS, open_noted
from nddup.stages.run_engine import Saved
from nddup.storage.local_folder import LocalFolder
from nddup.tables import DOCUMENTS, GIVEN, REJECTS, SHINGLES, TAKEN_OUT

TAKEN_OVER = ("pairs", "clusters", "members", "keep", "false_components")
"""The tables of which rows are taken over."""

NUMBERED_OTHERWISE = "holds what nddup does not write: documents and given do not number the records, each once"

SMALL = 64 << 20
"""Bytes of tables that are compared in this process."""

UNMOVED = "unmoved"
"""Noted with documents among which those of the run before are as they were."""

PRINTED = ("sketch", "n_features", "token_fingerprint", "content_fingerprint", "n_tokens")
"""The columns of DOCUMENTS of which a fingerprint of the sketch is made."""

IS_REVISIT = "reason <=> 'revisit'"


class Joined(NamedTuple):
    """The records of a run beside those of the one that it goes on from."""

    records: Saved
    """As `collapse.number` gives."""
    silent: DataFrame
    """REJECTS of the earlier run that are not made anew of its records."""
    taken: DataFrame | None
    """The ids of the documents that are taken out."""
    is_beside: bool
    """Whether of the old records only those are here that the new ones concern."""


def open_old(job: Job, path: str) -> OldTables:
    """Open the tables of the finished run that a run goes on from. Two actions, of which one reads all of its tables.

    Raises:
        OutputError: if it is no finished run, or a table is damaged.
        ConfigError: if it kept nothing for a later run.
    """
    folder = SparkFolder(job.spark, path)
    kept = ("documents", "rejects", "given", "shingles")
    noted = open_noted(folder, kept)
    names = [*kept, *TAKEN_OVER, *(["candidates"] if folder.counted("candidates") else [])]
    tables = {name: folder.table(name) for name in names}
    records = _require_sound(folder, tables, len(job.config.keep.read))
    documents, rejects, given, shingles = (tables[name] for name in kept)
    read = (documents, rejects, given, shingles, tables.get("candidates"), tables.__getitem__)
    notes = (noted.documents, noted.reasons, noted.metrics)
    return OldTables(folder, *read, records.n, *notes, has_revisits=records.has_revisits)


class _Records(NamedTuple):
    """The records of a run: their number, and whether one is a revisit."""

    n: int
    has_revisits: bool


def _require_sound(folder: SparkFolder, tables: Mapping[str, DataFrame], values: int) -> _Records:
    """Count the records of a run; refuse tables that no run writes: the folder may be anyone's.

    Small tables that this process sees are read here, without a job.

    Raises:
        OutputError: one line, also where a table cannot be read.
    """
    here = LocalFolder(folder.path) if folder.is_here else None
    numbers = [
        tables[name].select("doc_key", F.lit(name).alias("of"), F.expr(revisit).alias("revisit"))
        for name, revisit in {"documents": "record_type <=> 'revisit'", "given": IS_REVISIT}.items()
    ]
    of_key = {"n": F.count("of"), "tables": F.count_distinct("of"), "revisit": F.bool_or("revisit"),
              "is_lost": F.expr("bool_and(revisit AND of = 'documents')")}  # fmt: skip
    each = numbers[0].unionByName(numbers[1]).groupBy("doc_key").agg(*(n.alias(name) for name, n in of_key.items()))
    counts = {"n": F.count("n"), "last": F.max("doc_key"), "twice": F.count_if(F.col("n") > F.col("tables")),
              "revisits": F.count_if("revisit"), "lost": F.count_if("is_lost")}  # fmt: skip
    try:
        if here is not None and sum(map(here.size_of, tables)) <= SMALL:
            for name in tables:
                here.read_sound(name, values)
        else:
            require_sound(tables, folder.path, values=values)
        row = each.agg(*(count.alias(name) for name, count in counts.items())).collect()[0]
    except NddupError:
        raise
    except Exception as error:
        raise OutputError(f"{folder.path}: its tables cannot be read ({reason_of(error)})") from error
    if row.twice or row.n != (-1 if row.last is None else row.last) + 1:
        raise OutputError(f"{folder.path}: {NUMBERED_OTHERWISE}")
    if row.lost:
        raise OutputError(f"--onto {folder.path}: {WITHOUT_REVISITS}")
    return _Records(int(row.n), row.revisits > 0)


def bring_old(old: OldTables) -> Old:
    """Return what new records are settled with, of a run of few records, at the driver. Three actions."""
    brought = {}
    for table in (DOCUMENTS, REJECTS, GIVEN):
        rows: DataFrame = getattr(old, table.name)
        brought[table.name] = rows.select(*table.names).toArrow().cast(table.arrow)
    stored = {**Old.nothing().stored, "given": brought["given"].sort_by("doc_key")}
    documents = brought["documents"].sort_by("doc_key")
    return replace(Old.nothing(), documents=documents, rejects=brought["rejects"], stored=stored, noted=old.noted)


def join_old(job: Job, old: OldTables, source: Collection, saved: Saved, read: DataFrame) -> Joined:
    """Join new records, as they were read, with those of the run before. One action, and those of `concerns_all`."""
    taken = list_taken(job, old)
    batches = {file.source.partition("/")[0] for file in source.listing.files}
    if taken is None and not concerns_all(old, job.config, saved.counts, batches):
        few = job.save("numbered", with_concerned(read, old, job.config, saved.rows))
        return Joined(few, old.rejects.select(*REJECTS.names), None, is_beside=True)
    has_revisits = old.has_revisits or saved.counts.get("revisits", 1) > 0
    both = with_old(read, old, job.config, has_revisits=has_revisits)
    whole = job.save("numbered", both)  # queries of joins would take minutes
    return Joined(whole, silent_of(old), taken, is_beside=False)


def with_old(numbered: DataFrame, old: OldTables, config: Config, *, has_revisits: bool) -> DataFrame:
    """Return the records of both runs; `has_revisits`: whether one of either is a revisit.

    Schema in:   as `collapse.number` gives, of NEW
    Schema out:  the same; columns that only reading needs are null in old ones
    Shuffles:  where old records gave another id than their document has, or became none, one by their numbers, unless
        these are few; where there are revisits, one more, and one by the contents that they may repeat.
    Actions:   none.
    """
    renamed = old.given.select(
        "doc_key", F.col("doc_id").alias("own_id"), F.col("parent").alias("own_parent"), F.lit(1).alias("is_given")
    )
    read = old.documents
    if has_revisits:
        read = read.join(old.given.where(IS_REVISIT).select("doc_key"), "doc_key", "left_anti")
    documents = read.withColumn("sketch_fingerprint", _prints_of(config)(*PRINTED)).join(renamed, "doc_key", "left")
    named = {
        "doc_id": F.when(F.col("is_given").isNull(), F.col("doc_id")).otherwise(F.col("own_id")),
        "parent": F.when(F.col("is_given").isNull(), F.col("parent")).otherwise(F.col("own_parent")),
    }
    others = old.given.join(read.select("doc_key"), "doc_key", "left_anti")
    if has_revisits:  # which may repeat a record that is no document, but of the content of one
        asked = others.where("reason IS NULL").select("content_fingerprint").distinct()
        same = old.documents.join(asked, "content_fingerprint", "left_semi").groupBy("content_fingerprint")
        sketches = same.agg(F.first("sketch").alias("sketch"), F.first("signature").alias("signature"))
        others = others.join(sketches, "content_fingerprint", "left")
    records = documents.withColumns(named).drop("own_id", "own_parent", "is_given", "group")
    records = records.unionByName(others, allowMissingColumns=True)
    is_made = F.col("reason").isNull() & F.col("doc_id").isNull()
    made = F.when(is_made, F.concat_ws("#", "source", "record")).otherwise(F.col("doc_id"))
    records = records.withColumns({"is_made": is_made, "doc_id": made})
    new = numbered.withColumn("doc_key", F.col("doc_key") + old.n_records)
    return new.unionByName(records, allowMissingColumns=True)


def with_concerned(numbered: DataFrame, old: OldTables, config: Config, rows: int) -> DataFrame:
    """Return the new records, and the old documents that have an id of theirs or name the group of their text.

    The others stay as they are (`nddup.embedded.settle_onto`).

    Schema in:   as `collapse.number` gives, of NEW
    Schema out:  the same; columns that only reading needs are null in old documents
    Shuffles:  none of old documents where `rows`, the records of NEW, are few enough to be broadcast.
    Actions:   none.
    """
    documents, many = old.documents, old.n_records
    ids = beside(numbered.select("doc_id").where("doc_id IS NOT NULL").distinct(), rows, many)
    texts = beside(numbered.select("token_fingerprint").distinct(), rows, many)
    keys = documents.join(ids, "doc_id", "left_semi").select("doc_key")
    named = documents.where("doc_id = group").join(texts, "token_fingerprint", "left_semi").select("doc_key")
    concerned = documents.join(beside(keys.union(named).distinct(), rows, many), "doc_key", "left_semi")
    concerned = concerned.withColumns({"sketch_fingerprint": _prints_of(config)(*PRINTED), "is_made": F.lit(False)})
    new = numbered.withColumn("doc_key", F.col("doc_key") + old.n_records)
    return new.unionByName(concerned.drop("group"), allowMissingColumns=True)


def concerns_all(old: OldTables, config: Config, counts: Mapping[str, int], batches: Iterable[str]) -> bool:
    """Return whether new records may change more of old ones than the groups of equal texts. At most one action.

    Args:
        counts: `RECORD_COUNTS` of NEW.
        batches: the names that its sources begin with.
    """
    if config.pairs.confirm == "none" or old.has_revisits or counts.get("revisits", 1) or counts.get("like_made_up", 1):
        return True
    is_named = [F.startswith("doc_id", F.lit(f"{name}/")) for name in batches]
    is_like = reduce(Column.__or__, is_named, F.lit(False))
    return bool(old.documents.where(is_like).take(1))


def write_documents(job: Job, old: OldTables, settled: DataFrame, rows: int) -> Saved:
    """Write DOCUMENTS of both runs, of those of the old one and those that were settled together, at most `rows`.

    Shuffles:  none where the settled are few enough to be broadcast.
    Actions:   two; three where files are linked (`Job.write_onto`). Where a new document names the group of an old one,
        all are written again.
    """
    new = settled.where(F.col("doc_key") >= old.n_records).select(*DOCUMENTS.names)
    moved = settled.where((F.col("doc_key") < old.n_records) & (F.col("group") != F.col("doc_id")))
    if not moved.take(1):
        written = job.write_onto("documents", new, old, collapse.SKETCH_COUNTS)
        return Saved(written.table, written.rows, written.counts, {UNMOVED: 1})
    moved = beside(moved.select(F.col("doc_id").alias("group"), F.col("group").alias("now")), rows, old.n_records)
    before = old.documents.join(moved, "group", "left").withColumn("group", F.coalesce("now", "group"))
    return job.write("documents", before.select(*DOCUMENTS.names).unionByName(new), collapse.SKETCH_COUNTS)


def _prints_of(config: Config) -> Callable[..., Column]:
    """Return a function that makes the fingerprint of each sketch, of the columns `PRINTED`."""

    def make(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        for columns in batches:
            rows = pa.table(dict(zip(PRINTED, columns, strict=True)))
            types = pa.schema([DOCUMENTS.arrow.field(name) for name in PRINTED])
            prints = prints_of(rows.cast(types), config)
            yield pa.array(prints.to_pylist(), pa.binary()) if isinstance(prints, pa.ChunkedArray) else prints

    made: Callable[..., Column] = F.arrow_udf(make, "binary")  # type: ignore[attr-defined]
    return made


def list_given(records: DataFrame, documents: DataFrame) -> DataFrame:
    """Return the records that are no documents as they were read, revisits too.

    Schema in:   as `collapse.number` gives, before revisits are copied; DOCUMENTS
    Schema out:  GIVEN
    Shuffles:  both by their numbers, without sketches.    Actions:  none.
    """
    made = {"made_id": "doc_id", "made_parent": "parent"}
    settled = documents.select(
        "doc_key", *(F.col(name).alias(alias) for alias, name in made.items()), F.lit(1).alias("is")
    )
    given_id = F.when(F.col("is_made"), F.lit(None)).otherwise(F.col("doc_id"))
    rows = records.withColumn("doc_id", given_id).select(*GIVEN.names).join(settled, "doc_key", "left")
    is_same: Column = F.col("doc_id").eqNullSafe(F.col("made_id")) & F.col("parent").eqNullSafe(F.col("made_parent"))
    return rows.where(F.col("is").isNull() | ~is_same | F.expr(IS_REVISIT)).select(*GIVEN.names)


def list_taken(job: Job, old: OldTables) -> DataFrame | None:
    """Return the ids of the documents taken out, now or by a run before, each once; None without any.

    Actions:  one for each way in which the list can be read, if there are several.
    """
    schema = schemas.table("doc_id string")
    lists = [schemas.local_table(job.spark, schema, [(one,) for one in set(ids)]) for ids in job.without]
    if len(lists) > 1:
        known = [old.documents.join(F.broadcast(one), "doc_id", "left_semi").count() for one in lists]
        lists = [lists[known.index(max(known))]]
    if TAKEN_OUT in old.reasons:
        lists.append(old.rejects.where(F.col("reason") == TAKEN_OUT).select("doc_id"))
    return lists[0].union(lists[-1]).distinct() if lists else None


def silent_of(old: OldTables) -> DataFrame:
    """Return the REJECTS of the old run that stand for whole files: the others are made anew of its records."""
    return old.rejects.join(old.given.select("source", "record"), ["source", "record"], "left_anti")


def stored_tokens(documents: DataFrame, shingles: DataFrame, config: Config) -> DataFrame:
    """Return TOKENS of the distinct texts of a run: its sketches, where they hold all shingles, and SHINGLES.

    Schema in:   DOCUMENTS, SHINGLES
    Schema out:  TOKENS, each once
    Shuffles:  one of SHINGLES by node, unless these are few.    Actions:  none.
    """
    nodes = documents.where((F.col("doc_id") == F.col("group")) & (F.size("sketch") > 0))
    named = documents.select(F.col("doc_key").alias("node"), "token_fingerprint")  # a stored node may be any of a group
    long = shingles.join(named, "node").select("token_fingerprint", F.col("shingles").alias("tokens"))
    whole = nodes.where(_is_whole(config)).select("token_fingerprint", F.col("sketch").alias("tokens"))
    return long.unionByName(whole)


def _is_whole(config: Config) -> Column:
    """Return whether a sketch holds all shingles of its text."""
    is_front = kind_of(config.sketch).estimate == "smallest"
    return (F.size("sketch") == F.col("n_features")) & F.lit(is_front)


def save_shingles(job: Job, documents: DataFrame, tokens: DataFrame) -> Saved:
    """Save SHINGLES of both runs.

    Args:
        documents: DOCUMENTS of both runs.
        tokens: TOKENS of NEW, which is read again for them.

    Shuffles:  the shingles of new texts twice; where documents are taken out, or revisits may have another text now,
        which name texts anew, all.
    Actions:   as `Job.write_onto`.
    """
    old, earlier = job.old, job.find("shingles")
    if earlier is not None:
        return earlier
    nodes = documents.where(F.col("doc_id") == F.col("group")).where((F.size("sketch") > 0) & ~_is_whole(job.config))
    nodes = nodes.select(F.col("doc_key").alias("node"))
    if old is not None and not (job.without or TAKEN_OUT in old.reasons or old.has_revisits):
        is_new, added = F.col("node") >= old.n_records, documents.where(F.col("doc_key") >= old.n_records)
        new = _named(confirm.list_texts(nodes.where(is_new), added, tokens))
        return job.seal("shingles", job.write_onto("shingles", new, old))
    stored = tokens if old is None else tokens.unionByName(stored_tokens(old.documents, old.shingles, job.config))
    return job.save("shingles", _named(confirm.list_texts(nodes, documents, stored)))


def _named(texts: DataFrame) -> DataFrame:
    return texts.withColumnRenamed("tokens", "shingles").select(*SHINGLES.names)
