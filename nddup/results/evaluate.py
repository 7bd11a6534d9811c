"""`nddup evaluate RUN --truth FILE`: a finished run against a list of duplicates, in the numbers of the papers.

What it leaves in the run's folder:

    evaluation.json                         every number, see `nddup.results.evaluation`
    evaluation/unique_to_reference.csv      pairs of the list that the run has not, with urls and estimated resemblance
    evaluation/unique_to_run.csv            pairs of the run that the list has not

Both lists are sets of pairs of different documents; the order within a pair does not matter. A star stands for all
pairs of its groups of equal sketches. Pairs with an id that is no document of the run are part of the reference: they
count as not found, and their number is stated, with the recall without them.

The pairs of groups are listed one by one while there are at most `LISTED`. More of them are counted exactly without
being listed; then there is no list of those unique to the reference.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from nddup.metrics import RunMetrics
from nddup.reading.reference_lists.layouts import Layout
from nddup.redaction import drop_login
from nddup.results.evaluation import FORMAT, Band, nice_step, numbers, resemblance_curve, score_curve
from nddup.results.reference_file import Reading, open_reference
from nddup.results.unique_pairs import UniquePairs
from nddup.settings.schema import Config
from nddup.spark import schemas
from nddup.spark.evaluating import compare_lists as stage
from nddup.spark.evaluating import list_tables as lists
from nddup.storage.files import Storage
from nddup.storage.spark_folder import SparkFolder
from nddup.storage.versions import versions
from nddup.verifying.pair_counts import Agreement

LISTED = 20_000_000
"""Pairs of groups that are listed one by one; more are counted without."""

WRITTEN = 1_000_000
"""Rows of each list of unique pairs."""

POINTS = 50
"""Points of the curve over the score, at most about twice as many."""


@dataclass(frozen=True)
class Options(Reading):
    """How the list is read, and how much of the lists is made.

    Attributes:
        written: rows of each list of unique pairs.
        listed: pairs of groups that are listed one by one.
    """

    written: int = WRITTEN
    listed: int = LISTED


DEFAULTS = Options()


class _Found(NamedTuple):
    """What the run has: pairs of documents, pairs in a common cluster, pairs by band of their resemblance."""

    pairs: int
    together: int
    bands: list[Band]


class _Entries(NamedTuple):
    """What was counted of the lines of the list: as `evaluation.json` says it; pairs that groups would give."""

    counts: dict[str, int]
    possible: int


def evaluate_run(spark: SparkSession, run: str, truth: str, options: Options = DEFAULTS) -> dict[str, Any]:
    """Compare a finished run with a reference list; leave `evaluation.json` and the lists of unique pairs in the run.

    Args:
        spark: the session.
        run: folder of the run.
        truth: the list's file, any path Hadoop knows, plain or compressed.
        options: how to read it.

    Returns:
        What `evaluation.json` holds.

    Raises:
        OutputError: if the folder is no finished run, or cannot be written.
        ConfigError: if the list is not there, or is none.

    Cost: some fifteen Spark actions; the pairs are shuffled three times, the list five times.
    """
    folder = SparkFolder(spark, run)
    metrics = RunMetrics.read(folder.open(), origin=f"{folder.path}/metrics.json")
    comparison = _Comparison(spark, folder, metrics, options)
    try:
        evaluation = comparison.compare(truth)
    finally:
        comparison.forget()
    folder.write_text("evaluation.json", json.dumps(evaluation, indent=2, ensure_ascii=False) + "\n")
    return evaluation


class _Comparison:
    """The tables of one comparison. Tables that are read more than once are kept until `forget`."""

    def __init__(self, spark: SparkSession, folder: SparkFolder, metrics: RunMetrics, options: Options) -> None:
        self._spark, self._folder, self._options = spark, folder, options
        self._persisted: list[DataFrame] = []
        self._documents, self._members = folder.table("documents"), folder.table("members")
        self._docs = self._keep(stage.list_documents(self._documents))
        self._unlisted = self._find_unlisted(is_led=metrics.stages.clusters.led_clusters > 0)
        self._edges = self._keep(stage.fold_edges(folder.table("pairs"), self._docs))
        config = Config.model_validate(metrics.settings)
        self._unique = UniquePairs(folder, self._documents, config, options.written)

    def compare(self, truth: str) -> dict[str, Any]:
        """Everything `nddup.results.evaluation.EVALUATION` names."""
        file = open_reference(Storage(self._spark), truth, self._options, self._are_documents)
        layout = file.layout
        lines = self._keep(
            lists.read_list(self._spark, file.path, layout, compression=file.compression, size=file.size)
        )
        entries = self._count_entries(lines)

        found = self._count_found()
        is_counted = layout.kind == "groups" and entries.possible > self._options.listed
        if is_counted:
            compared = self._compare_groups(lists.list_groups(lines), found)
        else:
            pairs = lists.list_pairs(lines) if layout.kind == "pairs" else lists.expand_groups(lines)
            compared = self._compare_pairs(pairs, found)

        said = {**_describe(layout), **entries.counts, **compared.pop("list"), "counted": is_counted}
        if layout.kind == "groups":
            said["repeated"] = None
        return {"format": FORMAT, "versions": versions(), "path": drop_login(truth), "list": said, **compared}

    def forget(self) -> None:
        """Free what was kept."""
        for table in self._persisted:
            table.unpersist()

    def _keep(self, table: DataFrame) -> DataFrame:
        self._persisted.append(table.persist(StorageLevel.DISK_ONLY))
        return table

    def _count_together(self, memberships: DataFrame) -> int:
        """Pairs of documents in a common set. One action."""
        row = stage.count_covered(memberships).first()
        return int(row["pairs"]) if row else 0

    def _find_unlisted(self, *, is_led: bool) -> DataFrame:
        if not is_led:
            return schemas.local_table(self._spark, schemas.table("node string, family string"))
        keep, clusters = self._folder.table("keep"), self._folder.table("clusters")
        return self._keep(stage.find_unlisted(self._docs, keep, clusters, self._members))

    def _are_documents(self, ids: Sequence[str]) -> bool:
        return self._docs.where(F.col("doc_id").isin(list(ids))).count() == len(ids)

    def _count_found(self) -> _Found:
        bands = _by_band(self._edges.where("pairs > 0"), "resemblance", 1 / stage.STEP, F.sum("pairs"))
        together = self._count_together(stage.number_clusters(self._members, self._docs))
        return _Found(sum(count for _, (count,) in bands), together, bands)

    def _count_entries(self, entries: DataFrame) -> _Entries:
        """Count lines, and the different ids in them by what the run knows of them. Two actions."""
        size = F.when(F.col("members").isNotNull(), F.size(F.array_distinct("members"))).cast("long")
        lines = entries.agg(
            F.count("*").alias("lines"),
            F.count_if(F.col("members").isNull()).alias("unreadable"),
            F.count_if(size == 1).alias("with_itself"),
            F.coalesce(F.sum(F.shiftright(size * (size - 1), 1)), F.lit(0)).alias("possible"),
        )

        ids = entries.select(F.explode("members").alias("doc_id")).distinct()
        documents = self._docs.select("doc_id", F.lit(True).alias("is_document"))
        rejects = self._folder.table("rejects").select("doc_id").distinct()
        rejects = rejects.select("doc_id", F.lit(True).alias("is_reject"))
        known = ids.join(documents, "doc_id", "left").join(rejects, "doc_id", "left")
        is_unknown = F.col("is_document").isNull()
        about = known.agg(
            F.count("*").alias("ids"),
            F.count_if(is_unknown).alias("unknown_ids"),
            F.count_if(is_unknown & F.col("is_reject").isNotNull()).alias("rejected_ids"),
        )

        counts = {
            name: int(count) for row in (*lines.collect(), *about.collect()) for name, count in row.asDict().items()
        }
        possible = counts.pop("possible")
        return _Entries(counts, possible)

    def _compare_pairs(self, reference: DataFrame, found: _Found) -> dict[str, Any]:
        """The numbers, curves and lists, from each pair of the list."""
        judged = self._keep(stage.judge(reference, self._docs, self._edges, self._members, self._unlisted))
        (row,) = judged.agg(*stage.count_judged()).collect()
        total, known, common = row["reference"], row["known"], row["found"]
        bands = _by_band(judged.where("found"), "resemblance", 1 / stage.STEP, F.count("*"))
        return {
            "list": {"repeated": row["times"] - total, "unknown_pairs": total - known},
            "pairs": numbers(Agreement(total, found.pairs, common), known),
            "clusters": numbers(Agreement(total, found.together, row["together"]), known),
            "unlisted": row["unlisted"],
            "curves": {
                "score": _curve_over_score(judged, row["low"], row["high"], found.pairs),
                "resemblance": resemblance_curve(found.bands, bands, steps=stage.STEP, reference=total),
            },
            "lists": {
                "unique_to_reference": self._unique.write_missed(judged, total - common),
                "unique_to_run": self._unique.write_unasked(judged, found.pairs - common),
            },
        }

    def _compare_groups(self, groups: DataFrame, found: _Found) -> dict[str, Any]:
        """The numbers of `_compare_pairs`, where the pairs are too many to be listed."""
        groups = self._keep(groups)
        numbered = self._keep(stage.number_groups(groups, self._docs))
        total, known = self._count_together(numbered), self._count_together(numbered.where("item >= 0"))

        (row,) = stage.count_common(groups, self._docs, self._edges, self._unlisted).collect()
        common = int(row["common"])

        # A pair lies in a common group and in a common cluster if it lies in a common set of both at once.
        ours = self._keep(stage.number_clusters(self._members, self._docs))
        both = ours.join(numbered.withColumnRenamed("set_id", "part"), "item")
        together = self._count_together(both)

        return {
            "list": {"unknown_pairs": total - known},
            "pairs": numbers(Agreement(total, found.pairs, common), known),
            "clusters": numbers(Agreement(total, found.together, together), known),
            "unlisted": self._count_unlisted(numbered) - int(row["removed"]),
            "curves": {"score": [], "resemblance": []},
            "lists": {
                "unique_to_reference": {"file": None, "rows": 0, "of": total - common},
                "unique_to_run": {"file": None, "rows": 0, "of": found.pairs - common},
            },
        }

    def _count_unlisted(self, numbered: DataFrame) -> int:
        """Pairs of a common group whose documents are both removed, in one family that was led. One action."""
        removed = self._docs.join(self._unlisted, "node").select(F.col("doc_key").alias("item"), "family")
        inside = numbered.join(removed, "item")
        families = inside.withColumn("part", F.dense_rank().over(Window.orderBy("family")).cast("long"))
        return self._count_together(families)


def _describe(layout: Layout) -> dict[str, Any]:
    """The layout as `evaluation.json` says it."""
    return {"kind": layout.kind, "delimiter": layout.delimiter, "header": list(layout.header),
            "score": layout.score_name}  # fmt: skip


def _by_band(rows: DataFrame, value: str, width: float, *counts: Any) -> list[Band]:  # noqa: ANN401
    """Counts by band of a value, the highest band first; rows without a value come last, under None."""
    named = [count.alias(f"c{i}") for i, count in enumerate(counts)]
    found = rows.groupBy(stage.band(value, width).alias("band")).agg(*named).collect()
    kept = [(row["band"], [int(row[f"c{i}"] or 0) for i in range(len(counts))]) for row in found]
    return sorted(kept, key=lambda entry: (entry[0] is None, -(entry[0] or 0)))


def _curve_over_score(judged: DataFrame, low: float | None, high: float | None, found: int) -> list[dict[str, Any]]:
    """The list cut at some of its scores; empty where it has none. One action."""
    if low is None or high is None:
        return []
    width = nice_step((high - low) / POINTS)
    counts = F.count("*"), F.count_if("found"), F.count_if("together")
    return score_curve(_by_band(judged.where("score is not null"), "score", width, *counts), width, found)
