"""Find the pairs of `nddup truth` on Spark."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.progress import Steps
from nddup.results.truth import Asked, Made, Truth, settings_of_candidates
from nddup.run.job import SparkJob
from nddup.run.on_spark.documents import reopen_inputs, take_documents
from nddup.run.on_spark.pairing import find_pairs
from nddup.run.on_spark.state import SparkProgress, persisted
from nddup.scanning.read_again import Texts
from nddup.spark.scan import name_texts
from nddup.spark.schemas import require, table
from nddup.stages.inputs_found import config_of
from nddup.storage.session_tables import MemoryStore, SparkFolder
from nddup.tables import STORED_TEXTS
from nddup.verifying.edit_similarity import can_reach, measure, spell_out

Batches = Iterator[pa.RecordBatch]

MEASURED = table("doc_a string, doc_b string, similarity double")
"""A pair of documents, doc_a < doc_b."""

SPELLED = table("doc_id string, text string, n int, cut boolean")
"""A text as `nddup.verifying.edit_similarity` compares it, its length in characters, and whether it was cut off."""


def spell_texts(texts: DataFrame) -> DataFrame:
    """Return the texts as they are compared, with their lengths in characters.

    Schema in:   STORED_TEXTS
    Schema out:  SPELLED
    Shuffles:  none.    Actions:  none.
    """
    require(texts, STORED_TEXTS, stage="truth")
    return texts.select("doc_id", "text").mapInArrow(_spell, SPELLED)


def measure_pairs(pairs: DataFrame, texts: DataFrame, *, similarity: float) -> DataFrame:
    """Return the candidates whose texts reach this similarity.

    Schema in:   doc_a, doc_b; as `spell_texts` gives
    Schema out:  MEASURED
    Shuffles:  the pairs and the texts on each of the two ids; a text is copied for each of its pairs.
    Actions:   none.
    """
    first = texts.select(F.col("doc_id").alias("doc_a"), F.col("text").alias("text_a"), F.col("n").alias("n_a"))
    second = texts.select(F.col("doc_id").alias("doc_b"), F.col("text").alias("text_b"), F.col("n").alias("n_b"))

    # The lengths alone rule out many pairs, so the texts of the second documents are joined only to the remaining ones.
    long_enough = pairs.select("doc_a", "doc_b").join(first, "doc_a").join(second.drop("text_b"), "doc_b")
    near = long_enough.where(can_reach(F.col("n_a"), F.col("n_b"), similarity)).drop("n_a", "n_b")
    met = near.join(second.drop("n_b"), "doc_b").select("doc_a", "doc_b", "text_a", "text_b")
    return met.mapInArrow(partial(_measure, similarity=similarity), MEASURED)


def compare_sampled(texts: DataFrame, *, number: int, similarity: float) -> DataFrame:
    """Compare a sample of documents with all others, without candidates; return the pairs that reach this similarity.

    The sample consists of the `number` documents with the smallest SHA-256 of their id.

    Schema in:   as `spell_texts` gives
    Schema out:  MEASURED, with a pair of two sampled documents twice
    Shuffles:  none; the sampled texts are broadcast.    Actions:  none.
    """
    chosen = texts.orderBy(F.sha2("doc_id", 256)).limit(number)
    first = chosen.select(F.col("doc_id").alias("doc_a"), F.col("text").alias("text_a"), F.col("n").alias("n_a"))
    second = texts.select(F.col("doc_id").alias("doc_b"), F.col("text").alias("text_b"), F.col("n").alias("n_b"))
    near = can_reach(F.col("n_a"), F.col("n_b"), similarity)
    met = second.join(F.broadcast(first), near & (F.col("doc_a") != F.col("doc_b")))
    columns = met.select("doc_a", "doc_b", "text_a", "text_b")
    found = columns.mapInArrow(partial(_measure, similarity=similarity), MEASURED)
    return found.select(
        F.least("doc_a", "doc_b").alias("doc_a"), F.greatest("doc_a", "doc_b").alias("doc_b"), "similarity"
    )


def _spell(batches: Batches) -> Batches:
    for batch in batches:
        spelled = spell_out(batch.column("text"))
        yield pa.RecordBatch.from_arrays([batch.column("doc_id"), *spelled], names=SPELLED.fieldNames())


def _measure(batches: Batches, *, similarity: float) -> Batches:
    """Return the rows whose texts reach the similarity; the computation stops once a pair cannot reach it."""
    for batch in batches:
        texts = (batch.column(name).to_pylist() for name in ("text_a", "text_b"))
        found = measure(*texts, similarity=similarity)
        rows = pa.table({"doc_a": batch.column("doc_a"), "doc_b": batch.column("doc_b"), "similarity": found})
        yield from rows.filter(pa.array(found >= similarity)).to_batches()


@contextmanager
def find_on_spark(spark: SparkSession, path: str, asked: Asked, steps: Steps) -> Iterator[Made]:
    """Find the pairs of a run that Spark opens, as `nddup.results.truth.Maker`.

    Args:
        spark: the session.
        path: the run's folder.
        asked: the requested content of the list.
        steps: progress.

    Cost: a text is shuffled once for each of its candidates.
    """
    folder = SparkFolder(spark, path)
    folder.open()
    inputs = reopen_inputs(spark, folder)
    documents = folder.table("documents")
    config = settings_of_candidates(config_of(folder), asked.least)

    steps.begin("find the candidates")
    texts_read = spell_texts(
        name_texts(inputs.scan(Texts(inputs.text)), documents.select("doc_id", "source", "content_fingerprint"))
    )
    with ExitStack() as held:
        store = held.enter_context(MemoryStore(spark).opened(kept=()))
        job = held.enter_context(closing(SparkJob(spark, config, store, SparkProgress(spark, is_quiet=True))))
        paired = find_pairs(job, take_documents(documents))
        pairs, texts = held.enter_context(persisted(paired.tables["pairs"])), held.enter_context(persisted(texts_read))
        found = held.enter_context(persisted(measure_pairs(pairs, texts, similarity=asked.similarity)))

        steps.begin("read the texts")
        candidates, stars = _count(pairs, "star")
        matches = paired.own.matches
        large = matches.large.count() if matches.large is not None else 0
        n_texts, cut_texts = _count(texts, "cut")
        steps.begin("measure the candidates")
        n_pairs = found.count()

        steps.begin("measure a sample against all")
        sample = found
        if asked.sampled > 0:
            sample = compare_sampled(texts, number=asked.sampled, similarity=asked.similarity).distinct()
        listed = found.select("doc_a", "doc_b", F.lit(True).alias("is_found"))
        sampled_pairs, sampled_found = _count(sample.join(listed, ["doc_a", "doc_b"], "left"), "is_found")
        made = Truth(
            similarity=asked.similarity,
            measure=config.pairs.measure,
            least=asked.least,
            documents=n_texts,
            cut_texts=cut_texts,
            candidates=candidates,
            unlisted=stars + large,
            pairs=n_pairs,
            sampled=min(asked.sampled, n_texts),
            sampled_pairs=sampled_pairs,
            sampled_found=sampled_found,
        )
        steps.begin("write the list")
        rows = found.orderBy("doc_a", "doc_b").toLocalIterator(prefetchPartitions=True)
        yield Made(made, (tuple(row) for row in rows))


def _count(table: DataFrame, condition: str) -> tuple[int, int]:
    """Count the rows of a table, and those that fulfil a condition, in one action."""
    row = table.agg(F.count("*").alias("rows"), F.count_if(condition).alias("those")).collect()[0]
    return row["rows"], row["those"]
