"""The edit similarity of texts, of candidate pairs or of a sample of documents with all others.

    candidates, texts   --measure_pairs-->     measured   the pairs that are similar enough
    texts               --compare_sampled-->   measured   the same for a sample of documents, without candidates

The similarity is that of `nddup.verifying.edit_similarity`.
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.spark.schemas import require, table
from nddup.tables import STORED_TEXTS
from nddup.verifying import edit_similarity

Batches = Iterator[pa.RecordBatch]

MEASURED = table("doc_a string, doc_b string, similarity double")
"""A pair of documents, doc_a < doc_b."""

SPELLED = table("doc_id string, text string, n int, cut boolean")
"""A text as `nddup.verifying.edit_similarity` compares it, its length in characters, and whether it was cut off."""


def spell_out(texts: DataFrame) -> DataFrame:
    """Return the texts as they are compared, with their lengths in characters.

    Schema in:   STORED_TEXTS
    Schema out:  SPELLED
    Shuffles:  none.    Actions:  none.
    """
    require(texts, STORED_TEXTS, stage="truth")
    return texts.select("doc_id", "text").mapInArrow(_spell, SPELLED)


def measure_pairs(pairs: DataFrame, texts: DataFrame, *, similarity: float) -> DataFrame:
    """Return the candidates whose texts reach this similarity.

    Schema in:   doc_a, doc_b; as `spell_out` gives
    Schema out:  MEASURED
    Shuffles:  the pairs and the texts on each of the two ids; a text is copied for each of its pairs.
    Actions:   none.
    """
    first = texts.select(F.col("doc_id").alias("doc_a"), F.col("text").alias("text_a"), F.col("n").alias("n_a"))
    second = texts.select(F.col("doc_id").alias("doc_b"), F.col("text").alias("text_b"), F.col("n").alias("n_b"))

    # The lengths alone rule out many pairs, so the texts of the second documents are joined only to the remaining ones.
    long_enough = pairs.select("doc_a", "doc_b").join(first, "doc_a").join(second.drop("text_b"), "doc_b")
    near = long_enough.where(_can_reach(similarity)).drop("n_a", "n_b")
    met = near.join(second.drop("n_b"), "doc_b").select("doc_a", "doc_b", "text_a", "text_b")
    return met.mapInArrow(partial(_measure, similarity=similarity), MEASURED)


def compare_sampled(texts: DataFrame, *, number: int, similarity: float) -> DataFrame:
    """Compare a sample of documents with all others, without candidates; return the pairs that reach this similarity.

    The sample consists of the `number` documents with the smallest SHA-256 of their id.

    Schema in:   as `spell_out` gives
    Schema out:  MEASURED, with a pair of two sampled documents twice
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
    """Whether texts of these lengths can reach the similarity, as `edit_similarity.can_reach`."""
    shorter, longer = F.least("n_a", "n_b"), F.greatest("n_a", "n_b")
    return (shorter > 0) & (shorter >= longer * F.lit(similarity) - 1)


def _spell(batches: Batches) -> Batches:
    for batch in batches:
        spelled = edit_similarity.spell_out(batch.column("text"))
        yield pa.RecordBatch.from_arrays([batch.column("doc_id"), *spelled], names=SPELLED.fieldNames())


def _measure(batches: Batches, *, similarity: float) -> Batches:
    """Return the rows whose texts reach the similarity; the computation stops once a pair cannot reach it."""
    for batch in batches:
        texts = (batch.column(name).to_pylist() for name in ("text_a", "text_b"))
        found = edit_similarity.measure(*texts, similarity=similarity)
        rows = pa.table({"doc_a": batch.column("doc_a"), "doc_b": batch.column("doc_b"), "similarity": found})
        yield from rows.filter(pa.array(found >= similarity)).to_batches()
