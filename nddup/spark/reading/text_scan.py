"""The texts that a person is shown: which documents, and their text read again by what they hold.

clusters, members, documents  --list_shown-->  SHOWN        the documents of some clusters
chunks, files                 --chunk_texts, file_texts-->  FOUND_TEXTS

A record is known again by its source and the fingerprint of its content, not by its place: so it does not matter how
files are split the second time, and a file that changed gives no text instead of a wrong one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from nddup.reading.formats import FileHead
from nddup.reading.records import Record, content_fingerprint, read_text
from nddup.spark.reading.sketch_scan import Found, Rule, parse_chunks
from nddup.spark.reading.unsplit_files import read_batches
from nddup.spark.schemas import CHUNKS, CLUSTERS, DOCUMENTS, FILES, FOUND_TEXTS, MEMBERS, SHOWN, STORED_TEXTS, require

Batches = Iterator[pa.RecordBatch]

LARGEST = 100
"""Largest clusters whose texts come before those of the sample."""

EACH = 8
"""Documents of a cluster whose text is stored."""


@dataclass(frozen=True)
class Wanted:
    """Which texts to take, and how much of each; both None take everything."""

    fingerprints: frozenset[bytes] | None = None
    characters: int | None = None


def list_shown(
    clusters: DataFrame, members: DataFrame, documents: DataFrame, *, sampled: int, each: int = EACH
) -> DataFrame:
    """The documents of the largest clusters (turn 0) and of a sample of all (turn 1), a few of each cluster.

    The sample takes the lowest cluster ids: digests, so they favour nothing, and are the same for every partitioning.

    Args:
        clusters: CLUSTERS.
        members: MEMBERS.
        documents: DOCUMENTS.
        sampled: clusters of turn 1.
        each: documents of a cluster, the preferred ones first, then by id.

    Schema out:  SHOWN; at most (LARGEST + sampled) * each rows
    Shuffles:  one of `members` narrowed by a broadcast, one of the rows that come out.    Actions:  none.
    """
    require(clusters, CLUSTERS, stage="texts")
    require(members, MEMBERS, stage="texts")
    require(documents, DOCUMENTS, stage="texts")
    narrow = clusters.select("cluster_id", "size")
    first = narrow.orderBy(F.desc("size"), "cluster_id").limit(LARGEST).withColumn("turn", F.lit(0))
    sample = narrow.orderBy("cluster_id").limit(sampled).withColumn("turn", F.lit(1))
    chosen = first.unionByName(sample).groupBy("cluster_id", "size").agg(F.min("turn").alias("turn"))
    order = Window.partitionBy("cluster_id").orderBy(F.desc("representative"), "doc_id")
    few = (
        members.join(F.broadcast(chosen), "cluster_id")
        .withColumn("place", F.row_number().over(order))
        .where(F.col("place") <= each)
    )
    narrow_documents = documents.select("doc_id", "source", "content_fingerprint")
    return narrow_documents.join(F.broadcast(few), "doc_id").select(*SHOWN.fieldNames())


def name_texts(found: DataFrame, documents: DataFrame) -> DataFrame:
    """The texts under the ids of their documents.

    Schema in:   FOUND_TEXTS; doc_id string, source string, content_fingerprint binary
    Schema out:  STORED_TEXTS, each document once
    Shuffles:  one of the texts; `documents` is broadcast where it is small.    Actions:  none.
    """
    require(found, FOUND_TEXTS, stage="texts")
    joined = found.join(documents, ["source", "content_fingerprint"])
    return joined.groupBy("doc_id").agg(F.min("text").alias("text")).select(*STORED_TEXTS.fieldNames())


def chunk_texts(chunks: DataFrame, *, head: FileHead, rule: Rule, wanted: Wanted) -> DataFrame:
    """FOUND_TEXTS of files that Spark cuts. Schema in: CHUNKS. No shuffle, no action."""
    require(chunks, CHUNKS, stage="texts")
    return chunks.mapInArrow(partial(_chunk_texts, head=head, rule=rule, wanted=wanted), FOUND_TEXTS)


def file_texts(files: DataFrame, *, head: FileHead, rule: Rule, wanted: Wanted) -> DataFrame:
    """FOUND_TEXTS of files read from their start. Schema in: FILES. No shuffle, no action."""
    require(files, FILES, stage="texts")
    return files.mapInArrow(partial(_file_texts, head=head, rule=rule, wanted=wanted), FOUND_TEXTS)


def texts_of(parsed: Iterable[list[Found]], rule: Rule, wanted: Wanted) -> Batches:
    """FOUND_TEXTS of records that were read; of those not wanted only the fingerprint is made."""
    for found in parsed:
        rows = []
        for place, record, _ in found:
            if not isinstance(record, Record):
                continue
            fingerprint = content_fingerprint(record)
            if wanted.fingerprints is None or fingerprint in wanted.fingerprints:
                text = read_text(record, rule.charset, rule.markup, rule.part).text
                rows.append((place[0], fingerprint, text[: wanted.characters]))
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        kinds = (pa.string(), pa.binary(), pa.string())
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, FOUND_TEXTS.fieldNames())


def _chunk_texts(batches: Batches, *, head: FileHead, rule: Rule, wanted: Wanted) -> Batches:
    yield from texts_of(parse_chunks(batches, head=head, max_record=rule.max_record), rule, wanted)


def _file_texts(batches: Batches, *, head: FileHead, rule: Rule, wanted: Wanted) -> Batches:
    yield from texts_of(read_batches(batches, head, rule.max_record), rule, wanted)
