"""Exports for other programs: documents as ROMIP XML, clusters as lines, the inverted table of the sketches.

kept       --as_xml-->           lines     each partition is a file of complete XML
clusters   --spell_clusters-->   lines     `duplicates.txt`: one cluster per line
           --number_clusters, spell_members-->  pieces  the same if a cluster has more members than its row lists
documents  --invert_sketches-->  pieces    `context.fimi`: one line per feature, the `doc_key`s that have it

A line may be longer than a row can be. So the text of a partition is cut into pieces, one per row, at occurrences of a
one-byte character `end`. The writer puts `end` after each row. If `end` is not a line end, the file has one `end` too
many, its last byte.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.spark.schemas import require
from nddup.spelling import ESCAPED, ESCAPES, FIRST, LAST, spell_document
from nddup.tables import CLUSTERS, DOCUMENTS, MEMBERS

Batches = Iterator[pa.RecordBatch]


def as_xml(kept: DataFrame) -> DataFrame:
    """Write documents as ROMIP XML, one file per partition; a partition without documents gives no line.

    The content is base64 of UTF-8 with a byte order mark, which overrides any charset that the markup declares.

    Schema in:   doc_id string, url string, content string, …
    Schema out:  value string: the prolog, one line per document, and the end
    Shuffles:  none.    Actions:  none.
    """
    return kept.select("doc_id", "url", "content").mapInArrow(_xml_lines, "value string")


def spell_clusters(clusters: DataFrame) -> DataFrame:
    """Write one cluster per line: the member ids and then the support, separated by tabs.

    Schema in:   CLUSTERS, every row of which lists all members
    Schema out:  value string, in the order of the members
    Shuffles:  the clusters, to sort them.    Actions:  Spark samples the range.
    """
    require(clusters, CLUSTERS, stage="output")
    return clusters.orderBy("members", "cluster_id").select(_line().alias("value"))


def number_clusters(clusters: DataFrame) -> DataFrame:
    """Number the clusters in the order of their lines: by listed members, then by id.

    Schema in:   CLUSTERS
    Schema out:  CLUSTERS, line long: ascending, with gaps
    Shuffles:  the clusters, to sort them.    Actions:  Spark samples the range.
    """
    require(clusters, CLUSTERS, stage="output")
    return clusters.orderBy("members", "cluster_id").withColumn("line", F.monotonically_increasing_id())


def spell_members(numbered: DataFrame, members: DataFrame) -> DataFrame:
    """Write the lines of `spell_clusters` for clusters with any number of members, in pieces cut at tabs.

    Schema in:   as `number_clusters` gives, the same at each evaluation; MEMBERS
    Schema out:  value string
    Shuffles:  the lines, and the members of the clusters that do not list them, by range.
    Actions:   Spark samples the range.
    """
    require(members, MEMBERS, stage="output")
    no_id = F.lit(None).cast("string").alias("doc_id")
    is_cut = F.col("size") > F.size("members")
    whole = numbered.where(~is_cut).select("line", no_id, F.concat(_line(), F.lit("\n")).alias("text"))

    # A cluster that does not list all its members: one text per member, then the support.
    cut = numbered.where(is_cut)
    ids = members.join(F.broadcast(cut.select("cluster_id", "line")), "cluster_id")
    spelled = ids.select("line", "doc_id", F.concat(_escaped(F.col("doc_id")), F.lit("\t")).alias("text"))
    ends = cut.select("line", no_id, F.concat("support", F.lit("\n")).alias("text"))

    parts = whole.unionByName(spelled).unionByName(ends).repartitionByRange("line")
    in_order = parts.sortWithinPartitions("line", F.col("doc_id").asc_nulls_last())
    return in_order.select("text").mapInArrow(partial(_cut_texts, end="\t"), "value string")


def invert_sketches(documents: DataFrame, *, end: str = "\n") -> DataFrame:
    """Write the inverted table in the form that frequent-itemset programs read: one line per feature, of `doc_key`s.

    Schema in:   DOCUMENTS
    Schema out:  value string: ascending keys, separated by blanks; lines in the order of the features as signed
        numbers; cut at `end`: a line end, or a blank if a feature may be in millions of documents
    Shuffles:  every feature of every sketch once, by range.    Actions:  Spark samples the range.
    """
    require(documents, DOCUMENTS, stage="output")
    postings = documents.select(F.explode("sketch").alias("feature"), "doc_key")
    in_order = postings.repartitionByRange("feature").sortWithinPartitions("feature", "doc_key")
    return in_order.mapInArrow(partial(_spell_postings, end=end), "value string")


def _line() -> Column:
    """Return the line of a row of CLUSTERS: the listed members and the support, separated by tabs."""
    return F.concat_ws("\t", F.transform("members", _escaped), F.col("support").cast("string"))


def _escaped(doc_id: Column) -> Column:
    """Return an id with the characters of `ESCAPES` replaced.

    Folded over a list: a hundred nested calls are deeper than a message of Spark Connect may be.
    """
    each = F.array(*(F.array(F.lit(character), F.lit(escape)) for character, escape in ESCAPES))
    spelled = F.reduce(each, doc_id, lambda text, one: F.replace(text, one[0], one[1]))
    return F.when(doc_id.rlike(ESCAPED), spelled).otherwise(doc_id)


def _cut_texts(batches: Batches, *, end: str) -> Batches:
    yield from _cut(("".join(batch.column(0).to_pylist()) for batch in batches), end)


def _spell_postings(batches: Batches, *, end: str) -> Batches:
    yield from _cut(_join_postings(batches), end)


def _join_postings(batches: Batches) -> Iterator[str]:
    """Return the lines of the postings, one text per batch."""
    last = None
    for batch in batches:
        features = np.asarray(batch.column("feature"))
        if not len(features):
            continue

        # The separator before each key: a blank within a feature, a line end where the next feature begins.
        is_same = np.append(features[0] == last, features[1:] == features[:-1])
        between = np.where(is_same, " ", "\n").tolist()
        between[0] = "" if last is None else between[0]
        last = features[-1]
        yield "".join(f"{mark}{key}" for mark, key in zip(between, batch.column("doc_key").to_pylist(), strict=True))
    if last is not None:
        yield "\n"


def _cut(texts: Iterable[str], end: str) -> Batches:
    """Cut the text at `end` into rows, without the `end` after each row, which the writer adds."""
    rest = ""
    for text in texts:
        row, found, rest = (rest + text).rpartition(end)
        if found:
            yield _values([row])
    if rest:
        yield _values([rest])


def _xml_lines(batches: Batches) -> Batches:
    """Return the lines of one file; the prolog comes with the first batch that has documents."""
    has_any = False
    for batch in batches:
        rows = zip(*(batch.column(name).to_pylist() for name in ("doc_id", "url", "content")), strict=True)
        lines = [spell_document(doc_id, url, content) for doc_id, url, content in rows]
        if lines:
            yield _values(lines if has_any else [FIRST, *lines])
            has_any = True
    if has_any:
        yield _values([LAST])


def _values(lines: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(lines, pa.string())})
