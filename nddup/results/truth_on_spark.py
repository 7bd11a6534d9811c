"""Find the pairs of `nddup truth` on Spark."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.results.truth import Asked, Made, Truth, settings_of_candidates
from nddup.run.job import SparkJob
from nddup.run.on_spark.documents import take_documents
from nddup.run.on_spark.inputs import reopen_inputs
from nddup.run.on_spark.pairing import find_pairs
from nddup.run.on_spark.state import SparkProgress, persisted
from nddup.scanning.read_again import Texts
from nddup.spark.evaluating import edit_pairs as stage
from nddup.spark.reading.scan import name_texts
from nddup.stages.inputs_found import config_of
from nddup.steps import Steps
from nddup.storage.session_tables import MemoryStore, SparkFolder


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
    job = SparkJob(spark, config, MemoryStore(), SparkProgress(spark, is_quiet=True))
    paired = find_pairs(job, take_documents(job, documents))

    texts_read = stage.spell_out(
        name_texts(inputs.scan(Texts(inputs.text)), documents.select("doc_id", "source", "content_fingerprint"))
    )
    with ExitStack() as held:
        pairs, texts = held.enter_context(persisted(paired.tables["pairs"])), held.enter_context(persisted(texts_read))
        found = held.enter_context(persisted(stage.measure_pairs(pairs, texts, similarity=asked.similarity)))

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
            sample = stage.compare_sampled(texts, number=asked.sampled, similarity=asked.similarity).distinct()
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
