"""`nddup truth RUN --similarity S --output FILE`: a reference list by edit similarity, as ROMIP's was made.

The texts are read again from the inputs of the run. All pairs cannot be compared by edit distance, so candidates come
first: pairs whose sketches have at least a low resemblance. What they miss is measured: the pairs of some
documents are also looked for among all documents, without candidates, and how many of them were candidates is said.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError, OutputError
from nddup.run.pairing import save_pairs, take_documents
from nddup.run.report_texts import reopen_inputs
from nddup.run.state import Job
from nddup.scanning.read_again import Texts
from nddup.settings.derive import found_exactly
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.spark.evaluating import edit_pairs as stage
from nddup.spark.reading.scan import scan
from nddup.spark.reading.shown_texts import name_texts
from nddup.storage.files import Storage
from nddup.storage.run_folder import RunFolder

CANDIDATES = 0.4
"""Least resemblance of the sketches of a candidate."""

SAMPLE = 50
"""Documents that are compared with all others."""


@dataclass(frozen=True)
class Truth:
    """What a reference list was made of, and what was found."""

    similarity: float
    measure: str
    least: float
    documents: int
    cut_texts: int
    candidates: int
    unlisted: int
    pairs: int
    sampled: int
    sampled_pairs: int
    sampled_found: int

    def lines(self) -> list[str]:
        """In words, a line each."""
        measure = "a resemblance" if self.measure == "resemblance" else "an overlap"
        said = [
            f"edit similarity at least {self.similarity}: {self.pairs:,} pairs of {self.documents:,} documents",
            f"compared: {self.candidates:,} pairs whose sketches have {measure} of at least {self.least}",
        ]
        if self.sampled:
            said.append(
                f"missed by that: of the pairs of {self.sampled:,} documents, compared with all others,"
                f" {self.sampled_pairs - self.sampled_found:,} of {self.sampled_pairs:,} are not in this list"
            )
        if self.unlisted:
            said.append(f"{self.unlisted:,} groups of pairs were too many to be compared: the list is not complete")
        if self.cut_texts:
            said.append(f"{self.cut_texts:,} texts were compared by their first {stage.CHARACTERS:,} characters")
        return said


def make_truth(  # noqa: PLR0913 - the options of the command
    spark: SparkSession, run: str, output: str, *, similarity: float, least: float = CANDIDATES, sampled: int = SAMPLE
) -> Truth:
    """Write the pairs of a run's documents whose texts are alike by edit distance.

    Args:
        spark: the session.
        run: folder of a finished run over files.
        output: CSV to write: comments, then `id_a,id_b,similarity`, a pair a line, in the order of the ids.
        similarity: least similarity, in (0, 1].
        least: least resemblance of the sketches of the pairs that are compared, in (0, 1].
        sampled: documents that are compared with all, to say what the candidates miss; 0: none.

    Returns:
        What was done and found.

    Raises:
        ConfigError: if a number is out of its range.
        OutputError: if `output` exists or cannot be written, or the folder is no finished run.
        NddupError: if the inputs changed since the run.

    Cost: the inputs are read once; a text is shuffled once for each of its candidates; an edit distance takes the
    product of two lengths / 64 steps at worst, less where texts differ soon. The sample costs `sampled` distances a
    document.
    """
    for name, value in (("--similarity", similarity), ("--candidates", least)):
        if not 0 < value <= 1:
            raise ConfigError(f"{name} {value}: expected a number in (0, 1]")
    storage = Storage(spark)
    if storage.exists(output):
        raise OutputError(f"--output {output}: exists already; give another file")
    folder = RunFolder(spark, run)
    folder.open()
    job = reopen_inputs(spark, folder)
    documents = folder.table("documents")
    job.config = settings_of_candidates(job.config, least)
    take_documents(job, documents)
    pairs = save_pairs(job).persist(StorageLevel.DISK_ONLY)
    texts = _read_texts(job, documents).persist(StorageLevel.DISK_ONLY)
    found = stage.measure_pairs(pairs, texts, similarity=similarity).persist(StorageLevel.DISK_ONLY)
    try:
        counted = pairs.agg(F.count("*").alias("n"), F.count_if("star").alias("stars")).first()
        about = texts.agg(F.count("*").alias("n"), F.count_if("cut").alias("cut")).first()
        sample = stage.compare_sampled(texts, number=sampled, similarity=similarity).distinct() if sampled else found
        known = sample.join(found.select("doc_a", "doc_b", F.lit(True).alias("is_found")), ["doc_a", "doc_b"], "left")
        seen = known.agg(F.count("*").alias("n"), F.count_if("is_found").alias("found")).first()
        if counted is None or about is None or seen is None:
            raise AssertionError  # an aggregate without groups has one row
        made = Truth(
            similarity=similarity,
            measure=job.config.pairs.measure,
            least=least,
            documents=about["n"],
            cut_texts=about["cut"],
            candidates=counted["n"],
            unlisted=counted["stars"] + job.metrics.counts["crowd"] + job.metrics.counts["cut_postings"],
            pairs=found.count(),
            sampled=min(sampled, about["n"]),
            sampled_pairs=seen["n"],
            sampled_found=seen["found"],
        )
        storage.write_text(output, _lines(found.orderBy("doc_a", "doc_b"), made))
    finally:
        for kept in (pairs, texts, found):
            kept.unpersist()
    return made


def settings_of_candidates(config: Config, least: float) -> Config:
    """The settings of a run, changed so that its sketches give every pair with at least this resemblance.

    Sketches whose size follows the length show no resemblance: of these it is the share of the larger one.

    Raises:
        ConfigError: if `least` is no share.
    """
    sketch = found_exactly(config.sketch)
    pairs = {
        "measure": "resemblance" if sketch.growth == "fixed" else "overlap",
        "threshold": float(least),
        "max_postings": config.pairs.max_postings,
    }
    return build_config({**config.model_dump(), "sketch": sketch.model_dump(), "pairs": pairs}, origin="--candidates")


def _read_texts(job: Job, documents: DataFrame) -> DataFrame:
    if job.collection is None:
        raise ValueError("documents of a DataFrame are not read again")
    found = scan(job.spark, job.collection, Texts(job.rule.text), files=Storage(job.spark), limits=job.limits)
    return stage.spell_out(name_texts(found, documents.select("doc_id", "source", "content_fingerprint")))


def _lines(found: DataFrame, made: Truth) -> Iterator[str]:
    yield from (f"# {line}\n" for line in made.lines())
    yield "id_a,id_b,similarity\n"
    for row in found.toLocalIterator(prefetchPartitions=True):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow([row["doc_a"], row["doc_b"], round(row["similarity"], 6)])
        yield text.getvalue()
