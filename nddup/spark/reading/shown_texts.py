"""The documents whose text is shown to a reader, and the texts found for them.

    clusters, members, documents  --list_shown-->  SHOWN           the documents of some clusters
    FOUND_TEXTS, documents        --name_texts-->  STORED_TEXTS    one text per document

In between, the files are scanned with `nddup.scanning.read_again.Texts`, which explains why a record is recognised by
its source and its content.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from nddup.scanning.text_choice import EACH, LARGEST
from nddup.spark.schemas import CLUSTERS, DOCUMENTS, FOUND_TEXTS, MEMBERS, SHOWN, STORED_TEXTS, require


def list_shown(
    clusters: DataFrame, members: DataFrame, documents: DataFrame, *, sampled: int, each: int = EACH
) -> DataFrame:
    """List a few documents of each of the largest clusters (turn 0) and of each in a sample of all clusters (turn 1).

    The sample takes the lowest cluster ids: these are digests, so the choice is unbiased, and the same for every
    partitioning.

    Args:
        clusters: CLUSTERS.
        members: MEMBERS.
        documents: DOCUMENTS.
        sampled: number of clusters in the sample.
        each: most documents per cluster: the representative first, then by id.

    Schema out:  SHOWN; at most (LARGEST + sampled) * each rows
    Shuffles:  one of `members`, narrowed by a broadcast, one of the resulting rows.    Actions:  none.
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
    """Return the texts with the ids of their documents.

    Schema in:   FOUND_TEXTS; doc_id string, source string, content_fingerprint binary
    Schema out:  STORED_TEXTS, each document once
    Shuffles:  one of the texts; `documents` is broadcast if it is small.    Actions:  none.
    """
    require(found, FOUND_TEXTS, stage="texts")
    joined = found.join(documents, ["source", "content_fingerprint"])
    return joined.groupBy("doc_id").agg(F.min("text").alias("text")).select(*STORED_TEXTS.fieldNames())
