"""What a report shows, gathered from the tables of a finished run: bounded, whatever the size of the run.

Counts are made by Spark over all rows. Of the clusters at most `MOST_CLUSTERS` come here, of their documents
`MOST_LISTED`, of the pairs among these `MOST_CELLS`; what was left out is in `Shown.bounds`, and the page says it.
"""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError, NddupError
from nddup.metrics import RunMetrics
from nddup.redaction import drop_login
from nddup.report.shown import (
    CELLS,
    CLUSTERS,
    LENGTHS,
    LISTED,
    LISTED_EACH,
    MATRIX_EACH,
    TEXTS,
    Shown,
    list_cells,
    list_documents,
)
from nddup.storage.inputs import reopen_inputs
from nddup.storage.spark_folder import SparkFolder

MOST_CLUSTERS = 100_000
"""The largest; the others are counted in the histograms only."""

MOST_LISTED = 500_000
"""Documents listed, of all clusters together."""

MOST_CELLS = 600_000
"""Pairs in matrices, together."""

EVALUATION, COMPONENTS = "evaluation.json", "false_components"
"""Shown where the run has them."""

MOST_REJECTS = 100
MOST_COMPONENTS = 100


def gather(spark: SparkSession, folder: SparkFolder, metrics: RunMetrics, asked: Iterable[str] = ()) -> Shown:
    """Read what the report shows.

    Args:
        spark: the session.
        folder: of a finished run.
        metrics: its metrics.
        asked: clusters whose texts are read again from the inputs, where they are not stored.

    Raises:
        ConfigError: if there is no such cluster, or an input is gone.
        NddupError: if inputs changed since the run, and must be read again.

    Cost: a pass over `clusters`, `pairs` and `documents` each; the driver holds what is shown, some 100 MB at most.
    """
    sizes = _counts(folder.table("clusters").groupBy("size").count())
    listed_each, matrix_each = _share_out(sizes)
    clusters = _clusters(folder, listed_each)
    names = list_documents(clusters)
    listed = _describe(spark, folder, names)
    texts = _texts(folder)
    missing = _asked_documents(folder, clusters, names, texts, list(asked))
    if missing:
        texts = pa.concat_tables([texts, _read_again(spark, folder, missing)])
    return Shown(
        path=drop_login(folder.path),
        metrics=metrics,
        clusters=clusters,
        listed=listed,
        cells=_cells(spark, folder, names, matrix_each),
        texts=texts,
        sizes=sizes,
        resemblances=_resemblances(folder.table("pairs")),
        lengths=_lengths(folder.table("documents")),
        rejects=_rejects(folder) if metrics.rows["rejects"] else [],
        components=_components(spark, folder),
        evaluation=json.loads(folder.read_text(EVALUATION)) if folder.holds(EVALUATION) else None,
        matrix_each=matrix_each,
        listed_each=listed_each,
    )


def _share_out(sizes: list[tuple[int, int]]) -> tuple[int, int]:
    """How many documents of a cluster are listed, and how many are in a matrix, for both to stay in their bounds."""
    size, count = np.array(sizes or [(0, 0)], np.int64)[::-1].T
    shown = np.clip(MOST_CLUSTERS - (np.cumsum(count) - count), 0, count)

    def listed(each: int) -> int:
        return int((np.minimum(size, each) * shown).sum())

    def paired(each: int) -> int:
        held = np.minimum(size, each)
        return int((held * (held - 1) // 2 * shown).sum())

    listed_each = next((each for each in range(LISTED_EACH, 2, -1) if listed(each) <= MOST_LISTED), 2)
    matrix_each = next((each for each in range(MATRIX_EACH, 2, -1) if paired(each) <= MOST_CELLS), 2)
    return listed_each, min(listed_each, matrix_each)


def _clusters(folder: SparkFolder, listed_each: int) -> pa.Table:
    largest = folder.table("clusters").orderBy(F.desc("size"), "cluster_id").limit(MOST_CLUSTERS)
    preferred = (
        folder.table("members").where("representative").groupBy("cluster_id").agg(F.min("doc_id").alias("first"))
    )
    joined = largest.join(preferred, "cluster_id", "left").select(
        "cluster_id",
        "support",
        "size",
        "component",
        "coverage",
        F.col("first").alias("representative"),
        F.slice("members", 1, listed_each).alias("members"),
    )
    order = [("size", "descending"), ("cluster_id", "ascending")]
    return joined.toArrow().sort_by(order).cast(CLUSTERS)


def _describe(spark: SparkSession, folder: SparkFolder, names: pa.Table) -> pa.Table:
    """LISTED: what the run says of these documents."""
    about = folder.table("documents").select("doc_id", "url", "source", "record", "n_tokens", "n_features")
    ids = spark.createDataFrame(names.select(["doc_id"]).group_by("doc_id").aggregate([]))
    found = about.join(F.broadcast(ids), "doc_id").join(folder.table("keep"), "doc_id").toArrow()
    order = [("rank", "ascending"), ("place", "ascending")]
    return names.join(found, "doc_id").select(LISTED.names).sort_by(order).cast(LISTED)


def _cells(spark: SparkSession, folder: SparkFolder, names: pa.Table, matrix_each: int) -> pa.Table:
    """CELLS: what the run says of the pairs of these documents; those not listed in `pairs` have no row."""
    wanted = list_cells(names, matrix_each)
    ends = spark.createDataFrame(wanted.select(["doc_a", "doc_b"]).group_by(["doc_a", "doc_b"]).aggregate([]))
    pairs = (
        folder.table("pairs")
        .select("doc_a", "doc_b", "overlap", "resemblance")
        .join(F.broadcast(ends), ["doc_a", "doc_b"])
    )
    order = [("rank", "ascending"), ("first", "ascending"), ("second", "ascending")]
    return (
        wanted.join(pairs.toArrow(), ["doc_a", "doc_b"], join_type="inner")
        .select(CELLS.names)
        .sort_by(order)
        .cast(CELLS)
    )


def _texts(folder: SparkFolder) -> pa.Table:
    return folder.table("texts").sort("doc_id").toArrow().cast(TEXTS) if folder.holds("texts") else TEXTS.empty_table()


def _asked_documents(
    folder: SparkFolder, clusters: pa.Table, names: pa.Table, texts: pa.Table, asked: list[str]
) -> dict[str, tuple[str, bytes]]:
    """Source and fingerprint of the documents in a matrix of clusters that were asked for, and have no text."""
    if not asked:
        return {}
    ranks = {cluster: rank for rank, cluster in enumerate(clusters["cluster_id"].to_pylist())}
    for cluster in asked:
        if cluster not in ranks:
            raise ConfigError(f"--cluster {cluster}: no such cluster in the report of {folder.path}")
    chosen = pa.array([ranks[cluster] for cluster in asked], pa.int32())
    few = names.filter(pc.and_(pc.is_in(names["rank"], chosen), pc.less(names["place"], MATRIX_EACH)))
    ids = sorted(set(few["doc_id"].to_pylist()) - set(texts["doc_id"].to_pylist()))
    columns = ("doc_id", "source", "content_fingerprint")
    rows = folder.table("documents").where(F.col("doc_id").isin(ids)).select(*columns).collect()
    return {row["doc_id"]: (row["source"], bytes(row["content_fingerprint"])) for row in rows}


def _read_again(spark: SparkSession, folder: SparkFolder, missing: dict[str, tuple[str, bytes]]) -> pa.Table:
    found = reopen_inputs(spark, folder).find_texts(missing).sort("doc_id").toArrow().cast(TEXTS)
    if len(found) < len(missing):
        lost = sorted(missing.keys() - set(found["doc_id"].to_pylist()))
        raise NddupError(f"the inputs of {folder.path} no longer hold document {lost[0]}; run the job again")
    return found


def _counts(grouped: DataFrame) -> list[tuple[int, int]]:
    return sorted((int(row[0]), int(row[1])) for row in grouped.collect())


def _resemblances(pairs: DataFrame) -> list[tuple[int | None, int]]:
    """(whole percent, rounded down; pairs), None where the run estimates none."""
    percent = F.least(F.floor(F.col("resemblance") * 100 + 1e-9), F.lit(100))
    rows = pairs.groupBy(percent.alias("percent")).count().collect()
    found = [(None if row["percent"] is None else int(row["percent"]), int(row["count"])) for row in rows]
    return sorted(found, key=lambda one: -1 if one[0] is None else one[0])


def _lengths(documents: DataFrame) -> list[tuple[int, int]]:
    """(lower end of `LENGTHS` in tokens, documents)."""
    counts = [F.count_if(F.col("n_tokens") >= low).alias(str(low)) for low in LENGTHS]
    row = documents.agg(*counts).collect()[0]
    at_least = [int(row[str(low)]) for low in LENGTHS] + [0]
    return [(low, at_least[place] - at_least[place + 1]) for place, low in enumerate(LENGTHS)]


def _rejects(folder: SparkFolder) -> list[dict[str, Any]]:
    """The first rejects by source and record."""
    rows = folder.table("rejects").orderBy("source", "record").limit(MOST_REJECTS).collect()
    return [row.asDict() for row in rows]


def _components(spark: SparkSession, folder: SparkFolder) -> list[dict[str, Any]] | None:
    """The components that hold most pairs which are no near-duplicates; None where the run has no such table."""
    if not folder.holds(COMPONENTS):
        return None
    table = spark.read.parquet(f"{folder.path}/{COMPONENTS}")
    return [
        row.asDict()
        for row in table.where("invented > 0").orderBy(F.desc("invented"), "component").limit(MOST_COMPONENTS).collect()
    ]
