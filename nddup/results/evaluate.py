"""`nddup evaluate RUN --truth FILE`: a finished run against a list of duplicates, in the numbers of the papers.

What it leaves in the run's folder:

    evaluation.json                         every number, see `nddup.results.evaluation`
    evaluation/unique_to_reference.csv      pairs of the list that the run has not, with urls and estimated resemblance
    evaluation/unique_to_run.csv            pairs of the run that the list has not

Both lists are sets of pairs of different documents, the order within a pair is nothing. A star stands for all pairs
of its groups of equal sketches. Pairs with an id that is no document of the run are part of the reference: they count
as not found, and their number is said, with the recall without them.

Groups are counted by their pairs. As long as these are at most `LISTED`, they are listed as pairs are; more are counted
exactly without being listed, and then there is no list of those unique to the reference.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from nddup.errors import ConfigError
from nddup.metrics import RunMetrics
from nddup.reading.reference_lists import Kind, Layout, LayoutError, first_lines, guess_layout
from nddup.reading.streams import compression_of, expand_head
from nddup.redaction import drop_login
from nddup.results.evaluation import FORMAT, Band, csv_line, nice_step, numbers, resemblance_curve, score_curve
from nddup.scanning.input_files import InputFile
from nddup.settings.derive import kind_of
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

HEAD_BYTES = 1 << 18


@dataclass(frozen=True)
class Options:
    """How the list is to be read, each None for what its first lines tell; and how much of the lists is written."""

    kind: Kind | None = None
    delimiter: str | None = None
    header: bool | None = None
    score: str | None = None
    written: int = WRITTEN
    listed: int = LISTED


DEFAULTS = Options()


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
    """The tables of one comparison; what is used twice is kept until `forget`."""

    def __init__(self, spark: SparkSession, folder: SparkFolder, metrics: RunMetrics, options: Options) -> None:
        self._spark, self._folder, self._options = spark, folder, options
        self._metrics = metrics
        self._persisted: list[DataFrame] = []
        self._possible = 0
        """Pairs that the groups of the list would give, each group for itself."""
        self._documents = folder.table("documents")
        self._docs = self._keep(stage.list_documents(self._documents))
        self._members = folder.table("members")
        self._unlisted = self._find_unlisted()
        self._edges = self._keep(stage.fold_edges(folder.table("pairs"), self._docs))

    def compare(self, truth: str) -> dict[str, Any]:
        """Everything `nddup.results.evaluation.EVALUATION` names."""
        file, compression, layout = self._look_at(truth)
        entries = self._keep(lists.read_list(self._spark, file.path, layout, compression=compression, size=file.size))
        said = {"kind": layout.kind, "delimiter": layout.delimiter, "header": list(layout.header),
                "score": layout.score_name, **self._count_entries(entries, layout)}  # fmt: skip
        is_counted = self._possible > self._options.listed
        by_resemblance = _by_band(self._edges.where("pairs > 0"), "resemblance", 1 / stage.STEP, F.sum("pairs"))
        found = sum(count for _, (count,) in by_resemblance)
        found_together = self._count(stage.number_clusters(self._members, self._docs))
        if is_counted:
            compared = self._compare_groups(lists.list_groups(entries), found, found_together)
        else:
            pairs = lists.list_pairs(entries) if layout.kind == "pairs" else lists.expand_groups(entries)
            compared = self._compare_pairs(pairs, found, found_together, by_resemblance)
        said |= compared.pop("list") | {"counted": is_counted}
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

    def _count(self, memberships: DataFrame) -> int:
        row = stage.count_covered(memberships).first()
        return int(row["pairs"]) if row else 0

    def _find_unlisted(self) -> DataFrame:
        if not self._metrics.stages.clusters.led_clusters:
            return schemas.local_table(self._spark, schemas.table("node string, family string"))
        keep, clusters = self._folder.table("keep"), self._folder.table("clusters")
        return self._keep(stage.find_unlisted(self._docs, keep, clusters, self._members))

    def _look_at(self, truth: str) -> tuple[InputFile, str, Layout]:
        """The list's file, its compression and its layout."""
        storage = Storage(self._spark)
        if not storage.exists(truth):
            raise ConfigError(f"--truth {truth}: no such file")
        files = storage.list_inputs([truth]).files
        if len(files) != 1:
            raise ConfigError(f"--truth {truth}: expected one file, got a folder of {len(files)}")
        raw = storage.read_head(files[0].path, 4 * HEAD_BYTES)
        compression = compression_of(raw)
        text = expand_head(raw, HEAD_BYTES)
        lines = first_lines(text, is_whole=len(text) < HEAD_BYTES)
        given = {"kind": self._options.kind, "delimiter": self._options.delimiter, "score": self._options.score}
        try:
            layout = guess_layout(lines, header=self._options.header, **given)  # type: ignore[arg-type]
            if self._options.header is None and self._are_documents(layout.header[:2]):
                layout = guess_layout(lines, header=False, **given)  # type: ignore[arg-type]
        except LayoutError as error:
            raise ConfigError(f"--truth {truth}: {error}") from error
        return files[0], compression, layout

    def _are_documents(self, ids: Sequence[str]) -> bool:
        return bool(ids) and self._docs.where(F.col("doc_id").isin(list(ids))).count() == len(ids)

    def _count_entries(self, entries: DataFrame, layout: Layout) -> dict[str, int]:
        size = F.when(F.col("members").isNotNull(), F.size(F.array_distinct("members"))).cast("long")
        row = entries.agg(
            F.count("*").alias("lines"),
            F.count_if(F.col("members").isNull()).alias("unreadable"),
            F.count_if(size == 1).alias("with_itself"),
            F.coalesce(F.sum(F.shiftright(size * (size - 1), 1)), F.lit(0)).alias("possible"),
        ).first()
        ids = entries.select(F.explode("members").alias("doc_id")).distinct()
        is_document, is_reject = F.lit(True).alias("is_document"), F.lit(True).alias("is_reject")
        rejects = self._folder.table("rejects").select("doc_id").distinct().select("doc_id", is_reject)
        known = ids.join(self._docs.select("doc_id", is_document), "doc_id", "left").join(rejects, "doc_id", "left")
        unknown = F.col("is_document").isNull()
        about = known.agg(
            F.count("*").alias("ids"),
            F.count_if(unknown).alias("unknown_ids"),
            F.count_if(unknown & F.col("is_reject").isNotNull()).alias("rejected_ids"),
        ).first()
        counts = {**(row.asDict() if row else {}), **(about.asDict() if about else {})}
        possible = int(counts.pop("possible"))
        self._possible = possible if layout.kind == "groups" else 0
        return {name: int(count) for name, count in counts.items()}

    def _compare_pairs(
        self, reference: DataFrame, found: int, found_together: int, by_resemblance: list[Band]
    ) -> dict[str, Any]:
        judged = self._keep(stage.judge(reference, self._docs, self._edges, self._members, self._unlisted))
        row = judged.agg(*stage.count_judged()).first()
        counts: dict[str, Any] = row.asDict() if row else {}
        total, known = counts["reference"], counts["known"]
        common = _by_band(judged.where("found"), "resemblance", 1 / stage.STEP, F.count("*"))
        return {
            "list": {"repeated": counts["times"] - total, "unknown_pairs": total - known},
            "pairs": numbers(Agreement(total, found, counts["found"]), known),
            "clusters": numbers(Agreement(total, found_together, counts["together"]), known),
            "unlisted": counts["unlisted"],
            "curves": {
                "score": _curve_over_score(judged, counts["low"], counts["high"], found),
                "resemblance": resemblance_curve(by_resemblance, common, steps=stage.STEP, reference=total),
            },
            "lists": {
                "unique_to_reference": self._write_missed(judged, total - counts["found"]),
                "unique_to_run": self._write_unasked(judged, found - counts["found"]),
            },
        }

    def _compare_groups(self, groups: DataFrame, found: int, found_together: int) -> dict[str, Any]:
        """As `_compare_pairs`, where the pairs are too many to be listed."""
        groups = self._keep(groups)
        numbered = self._keep(stage.number_groups(groups, self._docs))
        ours = self._keep(stage.number_clusters(self._members, self._docs))
        total, known = self._count(numbered), self._count(numbered.where("item >= 0"))
        both = ours.join(numbered.withColumnRenamed("set_id", "part"), "item")
        row = stage.count_common(groups, self._docs, self._edges, self._unlisted).first()
        common, removed = (int(row["common"]), int(row["removed"])) if row else (0, 0)
        nodes = self._docs.join(self._unlisted, "node").select("doc_id", "family")
        inside = numbered.join(self._docs.select("doc_id", F.col("doc_key").alias("item")), "item").join(
            nodes, "doc_id"
        )
        families = inside.withColumn("part", F.dense_rank().over(Window.orderBy("family")).cast("long"))
        return {
            "list": {"unknown_pairs": total - known},
            "pairs": numbers(Agreement(total, found, common), known),
            "clusters": numbers(Agreement(total, found_together, self._count(both)), known),
            "unlisted": self._count(families) - removed,
            "curves": {"score": [], "resemblance": []},
            "lists": {
                "unique_to_reference": {"file": None, "rows": 0, "of": total - common},
                "unique_to_run": {"file": None, "rows": 0, "of": found - common},
            },
        }

    def _write_missed(self, judged: DataFrame, of: int) -> dict[str, Any]:
        missed = judged.where("not found").select("doc_a", "doc_b", "score", "known", "together", "unlisted")
        some = missed.orderBy(F.desc_nulls_last("score"), "doc_a", "doc_b").limit(self._options.written)
        why = F.when(~F.col("known"), "unknown id").when(F.col("unlisted"), "unlisted").otherwise("below threshold")
        order = (F.desc_nulls_last("score"), "doc_a", "doc_b")
        rows = self._estimated(some).withColumn("why", why).orderBy(*order)
        columns = ["doc_a", "doc_b", "score", "estimate", "together", "why", "url_a", "url_b"]
        return self._write("unique_to_reference", rows.select(*columns), of)

    def _write_unasked(self, judged: DataFrame, of: int) -> dict[str, Any]:
        pairs = self._folder.table("pairs").select("doc_a", "doc_b", "overlap", "resemblance", "star")
        rest = pairs.join(judged.where("found").select("doc_a", "doc_b"), ["doc_a", "doc_b"], "left_anti")
        some = rest.orderBy(F.desc_nulls_last("resemblance"), "doc_a", "doc_b").limit(self._options.written)
        urls = self._documents.select("doc_id", "url")
        for end in "ab":
            named = urls.toDF(f"doc_{end}", f"url_{end}")
            some = some.join(named, f"doc_{end}", "left")
        columns = ["doc_a", "doc_b", "overlap", "resemblance", "star", "url_a", "url_b"]
        return self._write(
            "unique_to_run", some.select(*columns).orderBy(F.desc_nulls_last("resemblance"), "doc_a", "doc_b"), of
        )

    def _estimated(self, pairs: DataFrame) -> DataFrame:
        sketch = Config.model_validate(self._metrics.settings).sketch
        kind = kind_of(sketch)
        levels = sketch.size if kind.estimate == "levels" else 0
        return stage.estimate(pairs, self._documents, sample=kind.sample(sketch.size), levels=levels)

    def _write(self, name: str, rows: DataFrame, of: int) -> dict[str, Any]:
        """One CSV, in UTF-8, and how much it holds."""
        written = 0

        def lines() -> Iterator[str]:
            nonlocal written
            yield csv_line(rows.columns)
            for row in rows.toLocalIterator(prefetchPartitions=True):
                written += 1
                yield csv_line(list(row))

        file = f"evaluation/{name}.csv"
        self._folder.write_text(file, lines())
        return {"file": file, "rows": written, "of": of}


def _by_band(rows: DataFrame, value: str, width: float, *counts: Any) -> list[Band]:  # noqa: ANN401
    """Counts by band of a value, the highest band first; rows without a value come last, under None."""
    named = [count.alias(f"c{i}") for i, count in enumerate(counts)]
    found = rows.groupBy(stage.band(value, width).alias("band")).agg(*named).collect()
    kept = [(row["band"], [int(row[f"c{i}"] or 0) for i in range(len(counts))]) for row in found]
    return sorted(kept, key=lambda entry: (entry[0] is None, -(entry[0] or 0)))


def _curve_over_score(judged: DataFrame, low: float | None, high: float | None, found: int) -> list[dict[str, Any]]:
    if low is None or high is None:
        return []
    width = nice_step((high - low) / POINTS)
    counts = F.count("*"), F.count_if("found"), F.count_if("together")
    return score_curve(_by_band(judged.where("score is not null"), "score", width, *counts), width, found)
