"""`nddup truth RUN --similarity S --output FILE`: a reference list by edit similarity, as ROMIP's was made.

The texts are read again from the inputs of the run. All pairs cannot be compared by edit distance, so candidates come
first: pairs whose sketches have at least a low resemblance. What they miss is measured: the pairs of some
documents are also looked for among all documents, without candidates, and how many of them were candidates is said.
"""

import csv
import io
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError, OutputError
from nddup.run.on_spark.documents import take_documents
from nddup.run.on_spark.inputs import config_of, reopen_inputs
from nddup.run.on_spark.pairing import find_pairs
from nddup.run.on_spark.state import Job, persisted
from nddup.run.spark_progress import SparkProgress
from nddup.scanning.read_again import Texts
from nddup.settings.derive import found_exactly
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.spark.evaluating import edit_pairs as stage
from nddup.spark.reading.shown_texts import name_texts
from nddup.storage.files import Storage
from nddup.storage.session_tables import MemoryStore
from nddup.storage.spark_folder import SparkFolder

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
    folder = SparkFolder(spark, run)
    folder.open()
    inputs = reopen_inputs(spark, folder)
    documents = folder.table("documents")
    config = settings_of_candidates(config_of(folder), least)
    job = Job(spark, config, MemoryStore(), SparkProgress(spark, is_quiet=True))
    paired = find_pairs(job, take_documents(job, documents))

    texts_read = stage.spell_out(
        name_texts(inputs.scan(Texts(inputs.text)), documents.select("doc_id", "source", "content_fingerprint"))
    )
    with ExitStack() as held:
        pairs, texts = held.enter_context(persisted(paired.pairs)), held.enter_context(persisted(texts_read))
        found = held.enter_context(persisted(stage.measure_pairs(pairs, texts, similarity=similarity)))

        candidates, stars = _count(pairs, "star")
        large = paired.matches.large.count() if paired.matches.large is not None else 0
        n_texts, cut_texts = _count(texts, "cut")
        sample = stage.compare_sampled(texts, number=sampled, similarity=similarity).distinct() if sampled else found
        listed = found.select("doc_a", "doc_b", F.lit(True).alias("is_found"))
        sampled_pairs, sampled_found = _count(sample.join(listed, ["doc_a", "doc_b"], "left"), "is_found")
        made = Truth(
            similarity=similarity,
            measure=config.pairs.measure,
            least=least,
            documents=n_texts,
            cut_texts=cut_texts,
            candidates=candidates,
            unlisted=stars + large + paired.metrics.cut_postings,
            pairs=found.count(),
            sampled=min(sampled, n_texts),
            sampled_pairs=sampled_pairs,
            sampled_found=sampled_found,
        )
        storage.write_text(output, _lines(found.orderBy("doc_a", "doc_b"), made))
    return made


def _count(table: DataFrame, condition: str) -> tuple[int, int]:
    """The rows of a table, and those that fulfil a condition. One action."""
    row = table.agg(F.count("*").alias("rows"), F.count_if(condition).alias("those")).collect()[0]
    return row["rows"], row["those"]


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
        **{name: getattr(config.pairs, name) for name in ("max_postings", "max_edges", "max_comparisons")},
    }
    return build_config({**config.model_dump(), "sketch": sketch.model_dump(), "pairs": pairs}, origin="--candidates")


def _lines(found: DataFrame, made: Truth) -> Iterator[str]:
    yield from (f"# {line}\n" for line in made.lines())
    yield "id_a,id_b,similarity\n"
    for row in found.toLocalIterator(prefetchPartitions=True):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow([row["doc_a"], row["doc_b"], round(row["similarity"], 6)])
        yield text.getvalue()
