"""Proof of the names of clusters and of `duplicates.txt`, from members that are read in order as a stream.

    members           --recount-->          each cluster's digest, size and first ids
    clusters          --wrong_names-->      those that say otherwise
    duplicates.txt    --read_lines-->       each line's digest, size and support
    clusters, lines   --wrong_lines-->      lines that are no cluster, clusters without a line

The lines are read cut at tabs, not at their ends: a line may be longer than a row.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import partial, reduce
from itertools import groupby, islice

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.spark.checking.prove_documents import problem, text

Batches = Iterator[pa.RecordBatch]

RECOUNTED = "cluster_id string, digest string, n long, listed array<string>"
LINES = "digest string, n long, support string"
LINES_PER_BATCH = 10_000

ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))

UNESCAPED = {spelled: character for character, spelled in ESCAPES}
ESCAPED = re.compile(r"\\.")

WHOLE_FILES = dict.fromkeys(("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"), str(1 << 40))
"""Settings under which Spark gives each file to one task, in its order."""


def recount(members: DataFrame, *, max_listed: int) -> DataFrame:
    """What the rows of each cluster say of it, in the order of their ids.

    Schema in:   MEMBERS
    Schema out:  cluster_id string, digest string, n long, listed array<string> (at most `max_listed`)
    Shuffles:  the members on their cluster.    Actions:  none.
    """
    rows = members.select("cluster_id", "doc_id").repartition("cluster_id").sortWithinPartitions("cluster_id", "doc_id")
    return rows.mapInArrow(partial(_recount, max_listed=max_listed), RECOUNTED)


def wrong_names(clusters: DataFrame, recounted: DataFrame) -> DataFrame:
    """Clusters whose id, size or listed ids are not what their members say, or that occur twice.

    Schema in:   CLUSTERS; as `recount` gives
    Schema out:  problem string
    Shuffles:  the clusters on their id, twice.    Actions:  none.
    """
    met = clusters.join(recounted, "cluster_id", "left").withColumn("n", F.coalesce("n", F.lit(0)))
    wrong = {
        "id should be ": (F.col("cluster_id") != F.col("digest"), F.col("digest")),
        "size is not that of its members, ": (F.col("size") != F.col("n"), F.col("n")),
        "members are not the first ids, sorted": (~F.col("members").eqNullSafe(F.col("listed")), F.lit("")),
        "fewer than two members": (F.col("n") < 2, F.lit("")),  # noqa: PLR2004
    }
    said = [F.when(is_so, F.concat(F.lit(what), F.coalesce(about.cast("string"), F.lit("null"))))
            for what, (is_so, about) in wrong.items()]  # fmt: skip

    named = met.select("cluster_id", F.explode(F.array_compact(F.array(*said))).alias("what"))
    repeated = clusters.groupBy("cluster_id").count().where("count > 1")
    return named.select(problem("cluster_id", text(": "), "what")).unionAll(
        repeated.select(problem("cluster_id", text(": "), "count", text(" clusters of this id")))
    )


def read_lines(pieces: DataFrame) -> DataFrame:
    """What each line of `duplicates.txt` says.

    Schema in:   value string: the text cut at tabs, each file in one partition and in its order
    Schema out:  digest string, n long, support string
    Shuffles:  none.    Actions:  none.
    """
    return pieces.select("value").mapInArrow(_read_lines, LINES)


def wrong_lines(clusters: DataFrame, lines: DataFrame) -> DataFrame:
    """Lines of `duplicates.txt` that are not those of the clusters, each as often.

    A line is known by the digest of its ids in their order, which is the name of its cluster, its length and support.

    Schema in:   CLUSTERS; as `read_lines` gives
    Schema out:  problem string
    Shuffles:  one on (digest, n, support).    Actions:  none.
    """
    expected = clusters.select(
        F.col("cluster_id").alias("digest"), F.col("size").cast("long").alias("n"),
        F.col("support").cast("string"), F.lit(1).alias("times"),
    )  # fmt: skip
    counted = expected.unionAll(lines.select("digest", "n", "support", F.lit(-1)))
    found = counted.groupBy("digest", "n", "support").agg(F.sum("times").alias("times")).where("times <> 0")
    why = F.when(F.col("times") > 0, F.lit(": is missing")).otherwise(F.lit(": is no cluster"))
    return found.select(problem("digest", text(", "), "n", text(" ids, support "), "support", why))


def _recount(batches: Batches, *, max_listed: int) -> Batches:
    """Fold the sorted rows of each cluster as a stream; a cluster may span batches."""
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for cluster_id, members in groupby(rows, key=lambda row: row[0]):
        digest, listed, n = hashlib.sha256(), [], 0
        for _, doc_id in members:
            digest.update(str(doc_id).encode() + b"\0")
            n += 1
            if n <= max_listed:
                listed.append(doc_id)
        columns = [[cluster_id], [digest.hexdigest()[:16]], [n], [listed]]
        kinds = (pa.string(), pa.string(), pa.int64(), pa.list_(pa.string()))
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=["cluster_id", "digest", "n", "listed"])


def _read_lines(batches: Batches) -> Batches:
    """`judge_lines` over the pieces of a partition."""
    lines = judge_lines(piece for batch in batches for piece in batch.column(0).to_pylist())
    kinds = (pa.string(), pa.int64(), pa.string())
    while some := list(islice(lines, LINES_PER_BATCH)):
        arrays = [pa.array(column, kind) for column, kind in zip(zip(*some, strict=True), kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=["digest", "n", "support"])


def judge_lines(pieces: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    r"""The digest of the ids of each line, their number, and what stands last in the line.

    Args:
        pieces: a text cut at its tabs.

    Example:
        >>> [line[1:] for line in judge_lines(["a", "b", "7\nc", "9\n"])]
        [(2, '7'), (1, '9')]
    """
    digest, n, held = hashlib.sha256(), 0, None
    for piece in pieces:
        if held is not None:  # a tab followed it: it was an id
            digest.update(_read_id(held).encode() + b"\0")
            n += 1
        *ended, held = piece.split("\n")
        for last in ended:
            yield digest.hexdigest()[:16], n, last
            digest, n = hashlib.sha256(), 0
    if held:
        yield digest.hexdigest()[:16], n, held


def _read_id(spelled: str) -> str:
    """The id that is spelled so; where none is, something that is no id."""
    doc_id = ESCAPED.sub(lambda found: UNESCAPED.get(found[0], found[0]), spelled)
    again = reduce(lambda one, pair: one.replace(*pair), ESCAPES, doc_id)
    return doc_id if again == spelled else f"\0{spelled}"
