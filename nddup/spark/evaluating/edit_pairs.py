"""The edit similarity of texts: that of candidate pairs, and that of a few documents with all others.

    candidates, texts   --measure_pairs-->     measured   the pairs that are similar enough
    texts               --compare_sampled-->   measured   the same for a few documents, without candidates

The similarity of two texts is 1 − d / n: d is the Levenshtein distance (characters inserted, deleted or replaced), n
the length of the longer one. Runs of blanks count as one.
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from rapidfuzz.distance import Levenshtein

from nddup.spark.schemas import STORED_TEXTS, require, table

Batches = Iterator[pa.RecordBatch]

MEASURED = table("doc_a string, doc_b string, similarity double")
"""A pair of documents, doc_a < doc_b."""

CHARACTERS = 200_000
"""Of a text; what follows is not compared: a comparison of two such texts takes about a second at worst."""


def spell_out(texts: DataFrame) -> DataFrame:
    """The texts as they are compared: runs of blanks as one, cut at `CHARACTERS`, with their length.

    Schema in:   STORED_TEXTS
    Schema out:  doc_id string, text string, n int (characters), cut boolean
    Shuffles:  none.    Actions:  none.
    """
    require(texts, STORED_TEXTS, stage="truth")
    plain = F.trim(F.regexp_replace("text", r"\s+", " "))
    whole = texts.select("doc_id", plain.alias("whole"))
    return whole.select(
        "doc_id",
        F.substring("whole", 1, CHARACTERS).alias("text"),
        F.least(F.length("whole"), F.lit(CHARACTERS)).alias("n"),
        (F.length("whole") > CHARACTERS).alias("cut"),
    )


def measure_pairs(pairs: DataFrame, texts: DataFrame, *, similarity: float) -> DataFrame:
    """The candidates whose texts reach this similarity.

    Schema in:   doc_a, doc_b; as `spell_out`
    Schema out:  MEASURED
    Shuffles:  the pairs and the texts on either id; a text is copied for each of its pairs.    Actions:  none.
    """
    first = texts.select(F.col("doc_id").alias("doc_a"), F.col("text").alias("text_a"), F.col("n").alias("n_a"))
    second = texts.select(F.col("doc_id").alias("doc_b"), F.col("text").alias("text_b"), F.col("n").alias("n_b"))

    # The lengths alone rule out many pairs, so the texts of the second documents are joined to the others only.
    long_enough = pairs.select("doc_a", "doc_b").join(first, "doc_a").join(second.drop("text_b"), "doc_b")
    near = long_enough.where(_can_reach(similarity)).drop("n_a", "n_b")
    met = near.join(second.drop("n_b"), "doc_b").select("doc_a", "doc_b", "text_a", "text_b")
    return met.mapInArrow(partial(_measure, similarity=similarity), MEASURED)


def compare_sampled(texts: DataFrame, *, number: int, similarity: float) -> DataFrame:
    """The pairs of some documents with all others that reach this similarity, found without candidates.

    The documents are those with the smallest SHA-256 of their id.

    Schema in:   as `spell_out`
    Schema out:  MEASURED, a pair of two sampled documents twice
    Shuffles:  none; the sampled texts are broadcast.    Actions:  none.
    """
    chosen = texts.orderBy(F.sha2("doc_id", 256)).limit(number)
    first = chosen.select(F.col("doc_id").alias("doc_a"), F.col("text").alias("text_a"), F.col("n").alias("n_a"))
    second = texts.select(F.col("doc_id").alias("doc_b"), F.col("text").alias("text_b"), F.col("n").alias("n_b"))
    met = second.join(F.broadcast(first), _can_reach(similarity) & (F.col("doc_a") != F.col("doc_b")))
    columns = met.select("doc_a", "doc_b", "text_a", "text_b")
    found = columns.mapInArrow(partial(_measure, similarity=similarity), MEASURED)
    return found.select(
        F.least("doc_a", "doc_b").alias("doc_a"), F.greatest("doc_a", "doc_b").alias("doc_b"), "similarity"
    )


def _can_reach(similarity: float) -> Column:
    """Whether the lengths allow this similarity: a distance is at least their difference. Empty texts have no pair."""
    shorter, longer = F.least("n_a", "n_b"), F.greatest("n_a", "n_b")
    return (shorter > 0) & (shorter >= longer * F.lit(similarity) - 1)


def _measure(batches: Batches, *, similarity: float) -> Batches:
    """The rows of a batch whose texts reach the similarity; a distance beyond it is not computed to its end."""
    for batch in batches:
        texts = zip(batch.column("text_a").to_pylist(), batch.column("text_b").to_pylist(), strict=True)
        found = [Levenshtein.normalized_similarity(a, b, score_cutoff=similarity) for a, b in texts]
        rows = pa.table({"doc_a": batch.column("doc_a"), "doc_b": batch.column("doc_b"),
                         "similarity": pa.array(found, pa.float64())})  # fmt: skip
        yield from rows.filter(pa.array([value >= similarity for value in found], pa.bool_())).to_batches()
