"""The pairs that only the reference list or only the run has, written as CSV into the run's folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.results.evaluation import csv_line
from nddup.settings.derive import kind_of
from nddup.settings.schema import Config
from nddup.spark.evaluating import compare_lists as stage
from nddup.storage.spark_folder import SparkFolder
from nddup.verifying.definitions import Sample


@dataclass(frozen=True)
class UniquePairs:
    """Writes both lists of one comparison.

    Attributes:
        folder: of the run.
        documents: DOCUMENTS of the run.
        config: its settings.
        most: rows of each list.
    """

    folder: SparkFolder
    documents: DataFrame
    config: Config
    most: int

    def write_missed(self, judged: DataFrame, of: int) -> dict[str, Any]:
        """Write `evaluation/unique_to_reference.csv`: pairs of the list that the run has not, highest score first.

        Args:
            judged: as `compare_lists.judge` gives it.
            of: how many such pairs there are.

        Returns:
            The entry of `lists` in `evaluation.json`: file, rows written, rows there are.
        """
        order = (F.desc_nulls_last("score"), "doc_a", "doc_b")
        missed = judged.where("not found").select("doc_a", "doc_b", "score", "known", "together", "unlisted")
        some = missed.orderBy(*order).limit(self.most)

        why = F.when(~F.col("known"), "unknown id").when(F.col("unlisted"), "unlisted").otherwise("below threshold")
        rows = self._estimate(some).withColumn("why", why).orderBy(*order)
        columns = ["doc_a", "doc_b", "score", "estimate", "together", "why", "url_a", "url_b"]
        return self._write("unique_to_reference", rows.select(*columns), of)

    def write_unasked(self, judged: DataFrame, of: int) -> dict[str, Any]:
        """Write `evaluation/unique_to_run.csv`: rows of `pairs` that the list has not, highest resemblance first.

        Args:
            judged: as `compare_lists.judge` gives it.
            of: how many pairs the run has and the list has not; a star stands for several.

        Returns:
            As `write_missed`.
        """
        order = (F.desc_nulls_last("resemblance"), "doc_a", "doc_b")
        pairs = self.folder.table("pairs").select("doc_a", "doc_b", "overlap", "resemblance", "star")
        found = judged.where("found").select("doc_a", "doc_b")
        some = pairs.join(found, ["doc_a", "doc_b"], "left_anti").orderBy(*order).limit(self.most)

        urls = self.documents.select("doc_id", "url")
        for end in "ab":
            some = some.join(urls.toDF(f"doc_{end}", f"url_{end}"), f"doc_{end}", "left")
        columns = ["doc_a", "doc_b", "overlap", "resemblance", "star", "url_a", "url_b"]
        return self._write("unique_to_run", some.select(*columns).orderBy(*order), of)

    def _estimate(self, pairs: DataFrame) -> DataFrame:
        sketch = self.config.sketch
        kind = kind_of(sketch)
        levels = sketch.size if kind.estimate == "levels" else 0
        sample = Sample(kind.sample(sketch.size), kind.by_slots)
        return stage.estimate(pairs, self.documents, sample=sample, levels=levels)

    def _write(self, name: str, rows: DataFrame, of: int) -> dict[str, Any]:
        """One CSV in UTF-8, streamed through the driver a partition at a time."""
        written = 0

        def lines() -> Iterator[str]:
            nonlocal written
            yield csv_line(rows.columns)
            for row in rows.toLocalIterator(prefetchPartitions=True):
                written += 1
                yield csv_line(list(row))

        file = f"evaluation/{name}.csv"
        self.folder.write_text(file, lines())
        return {"file": file, "rows": written, "of": of}
