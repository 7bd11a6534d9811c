"""What is written for other programs: documents as ROMIP XML, clusters as lines, the inverted table of the sketches.

kept       --as_xml-->           lines     each partition a file that is whole XML
clusters   --spell_clusters-->   lines     `duplicates.txt`: one cluster a line
           --number_clusters, spell_members-->  pieces  the same where a cluster has more members than its row lists
documents  --invert_sketches-->  pieces    `context.fimi`: one feature a line, the `doc_key`s that hold it

A line may be longer than a row can be. So the text of a partition is cut into pieces, one a row, at a character `end`
of one byte that the text contains anyway. The writer puts `end` after each row. If `end` is not a line end, the file
has one `end` too many, which is its last byte.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.spark.schemas import CLUSTERS, DOCUMENTS, MEMBERS, require
from nddup.spelling import ESCAPES, FIRST, LAST, spell_document

Batches = Iterator[pa.RecordBatch]


def as_xml(kept: DataFrame) -> DataFrame:
    """Documents as ROMIP XML, one partition a file; a partition without documents gives no line.

    The content is base64 of UTF-8 with a byte order mark, which wins over whatever charset its markup declares.

    Schema in:   doc_id string, url string, content string, …
    Schema out:  value string: the prolog, a line a document, and the end
    Shuffles:  none.    Actions:  none.
    """
    return kept.select("doc_id", "url", "content").mapInArrow(_xml_lines, "value string")


def spell_clusters(clusters: DataFrame) -> DataFrame:
    """One cluster a line: member ids separated by tabs, and last the number of common features.

    Schema in:   CLUSTERS, all of whose rows list all members
    Schema out:  value string, in the order of the members
    Shuffles:  the clusters, for their order.    Actions:  Spark samples the range.
    """
    require(clusters, CLUSTERS, stage="output")
    return clusters.orderBy("members", "cluster_id").select(_line().alias("value"))


def number_clusters(clusters: DataFrame) -> DataFrame:
    """The clusters in the order of the lines, by their listed members, then by id.

    Schema in:   CLUSTERS
    Schema out:  CLUSTERS, line long
    Shuffles:  the clusters, for their order.    Actions:  Spark samples the range.
    """
    require(clusters, CLUSTERS, stage="output")
    return clusters.orderBy("members", "cluster_id").withColumn("line", F.monotonically_increasing_id())


def spell_members(numbered: DataFrame, members: DataFrame) -> DataFrame:
    """The lines of `spell_clusters` for clusters with any number of members, as pieces that are cut at tabs.

    Schema in:   as `number_clusters` gives, and the same at each evaluation; MEMBERS
    Schema out:  value string
    Shuffles:  the lines, and the members of the clusters that do not list them, by range.
    Actions:   Spark samples the range.
    """
    require(members, MEMBERS, stage="output")
    no_id = F.lit(None).cast("string").alias("doc_id")
    is_cut = F.col("size") > F.size("members")
    whole = numbered.where(~is_cut).select("line", no_id, F.concat(_line(), F.lit("\n")).alias("text"))

    # A cluster that does not list all its members: a text a member, and at the end the support.
    cut = numbered.where(is_cut)
    ids = members.join(F.broadcast(cut.select("cluster_id", "line")), "cluster_id")
    spelled = ids.select("line", "doc_id", F.concat(_escaped(F.col("doc_id")), F.lit("\t")).alias("text"))
    ends = cut.select("line", no_id, F.concat("support", F.lit("\n")).alias("text"))

    parts = whole.unionByName(spelled).unionByName(ends).repartitionByRange("line")
    in_order = parts.sortWithinPartitions("line", F.col("doc_id").asc_nulls_last())
    return in_order.select("text").mapInArrow(partial(_cut_texts, end="\t"), "value string")


def invert_sketches(documents: DataFrame, *, end: str = "\n") -> DataFrame:
    """The inverted table, in the form frequent-itemset programs read: an item is a `doc_key`, a line is a feature.

    Schema in:   DOCUMENTS
    Schema out:  value string: keys ascending, blanks between; lines in the order of the features as signed numbers;
        cut at `end`: a line's end, or a blank where a feature may be in millions of documents
    Shuffles:  every feature of every sketch once, by range.    Actions:  Spark samples the range.
    """
    require(documents, DOCUMENTS, stage="output")
    postings = documents.select(F.explode("sketch").alias("feature"), "doc_key")
    in_order = postings.repartitionByRange("feature").sortWithinPartitions("feature", "doc_key")
    return in_order.mapInArrow(partial(_spell_postings, end=end), "value string")


def _line() -> Column:
    """Of CLUSTERS: the listed members and the support, separated by tabs."""
    return F.concat_ws("\t", F.transform("members", _escaped), F.col("support").cast("string"))


def _escaped(doc_id: Column) -> Column:
    """An id with its `ESCAPES`."""
    for character, spelled in ESCAPES:
        doc_id = F.replace(doc_id, F.lit(character), F.lit(spelled))
    return doc_id


def _cut_texts(batches: Batches, *, end: str) -> Batches:
    yield from _cut(("".join(batch.column(0).to_pylist()) for batch in batches), end)


def _spell_postings(batches: Batches, *, end: str) -> Batches:
    yield from _cut(_join_postings(batches), end)


def _join_postings(batches: Batches) -> Iterator[str]:
    """The lines of the postings, in texts of a batch each."""
    last = None
    for batch in batches:
        features = np.asarray(batch.column("feature"))
        if not len(features):
            continue

        # What stands before each key: a blank within a feature, a line end where another begins.
        is_same = np.append(features[0] == last, features[1:] == features[:-1])
        between = np.where(is_same, " ", "\n").tolist()
        between[0] = "" if last is None else between[0]
        last = features[-1]
        yield "".join(f"{mark}{key}" for mark, key in zip(between, batch.column("doc_key").to_pylist(), strict=True))
    if last is not None:
        yield "\n"


def _cut(texts: Iterable[str], end: str) -> Batches:
    """The text cut at `end` into rows; the `end` after each row is left out, for the writer puts it there."""
    rest = ""
    for text in texts:
        row, found, rest = (rest + text).rpartition(end)
        if found:
            yield _values([row])
    if rest:
        yield _values([rest])


def _xml_lines(batches: Batches) -> Batches:
    """The lines of one file; the first batch with documents brings the prolog."""
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
