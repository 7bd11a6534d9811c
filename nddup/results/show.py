"""Results in the terminal: the summary of a run, one cluster, one document."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError
from nddup.metrics import RunMetrics
from nddup.redaction import drop_login
from nddup.report.summary import headline, notes
from nddup.storage.spark_folder import SparkFolder

WIDTH = 76
"""Characters of a line of the summary."""

LARGEST = 10
"""Clusters listed below the summary."""

SHOWN_IDS = 20
"""Members of a cluster, or pairs and clusters of a document, that are listed."""


def summarise(metrics: RunMetrics, path: str, *, report: str | None = None) -> str:
    """The table at the end of a run: what was read, rejected, found and kept, and where the results are.

    Args:
        metrics: of the run.
        path: the run's folder.
        report: its page, if there is one.
    """
    body = "".join(f"  {line.name:<21}{line.number:>13,}   {line.note}\n" for line in headline(metrics))
    said = "".join(f"  note: {note}\n" for note in notes(metrics))
    rule = "─" * WIDTH + "\n"
    return f"{rule}{body}{rule}{said}  {metrics.seconds:.1f} s, results in {drop_login(path)}\n" + (
        f"  report: {drop_login(report)}\n" if report else ""
    )


def show_run(spark: SparkSession, path: str, *, cluster: str | None, doc: str | None) -> str:
    """The summary and the largest clusters of a finished run, or one cluster, or one document.

    Args:
        spark: the session.
        path: folder of the run.
        cluster: id of the cluster to show instead.
        doc: id of the document to show instead.

    Raises:
        ConfigError: if there is no such cluster or document.
        OutputError: if `path` is not a finished run.
    """
    folder = SparkFolder(spark, path)
    metrics = RunMetrics.read(folder.open(), origin=f"{folder.path}/metrics.json")
    if cluster is not None:
        return _show_cluster(folder, cluster)
    if doc is not None:
        return _show_document(folder, doc)

    top = folder.table("clusters").orderBy(F.desc("size"), "cluster_id").limit(LARGEST).collect()
    lines = [
        f"  {row['cluster_id']}  {row['size']:>7,}  {row['support']:>7,}  {_short(row['members'][0])}" for row in top
    ]
    heading = f"  {'cluster':<16}  {'size':>7}  {'support':>7}  first member\n" if lines else ""
    report = f"{folder.path}/report/index.html" if folder.holds("report/index.html") else None
    return summarise(metrics, path, report=report) + "\n" + heading + "\n".join(lines) + "\n"


def _show_cluster(folder: SparkFolder, cluster: str) -> str:
    row = folder.table("clusters").where(F.col("cluster_id") == cluster).first()
    if row is None:
        raise ConfigError(f"--cluster {cluster}: no such cluster in {folder.path}")

    # The row of a large cluster lists only its first members; the table `members` has all of them.
    members = folder.table("members").where(F.col("cluster_id") == cluster)
    chosen = {r["doc_id"] for r in members.where("representative").collect()}
    first = [r["doc_id"] for r in members.orderBy("doc_id").limit(SHOWN_IDS).collect()]
    described = _urls(folder, first)
    lines = [f"  {'*' if doc in chosen else ' '} {doc}  {described.get(doc) or ''}" for doc in first]
    more = [f"    … and {row['size'] - len(first):,} more"] if row["size"] > len(first) else []
    head = f"cluster {cluster}: {row['size']:,} documents, {row['support']:,} features common to all, {row['coverage']}"
    return "\n".join([head, *lines, *more, "  * preferred by the keep policy", ""])


def _show_document(folder: SparkFolder, doc: str) -> str:
    row = folder.table("documents").where(F.col("doc_id") == doc).first()
    if row is None:
        raise ConfigError(f"--doc {doc}: no such document in {folder.path}")

    (kept,) = folder.table("keep").where(F.col("doc_id") == doc).collect()
    lines = [
        f"document {doc}: {row['source']}#{row['record']}, {row['n_tokens']:,} tokens, {row['n_features']:,} features",
        f"  url       {row['url'] or ''}",
        "  kept" if kept["kept"] else f"  removed   {kept['reason']} of {kept['duplicate_of']}",
    ]

    pairs = _pairs_of(folder.table("pairs"), doc)
    lines += [f"  near      {r['resemblance']:.3f}  {r['overlap']:>6}  {r['other']}" for r in pairs[:SHOWN_IDS]]
    if len(pairs) > SHOWN_IDS:
        lines.append("            … and more")

    own = folder.table("members").where(F.col("doc_id") == doc).select("cluster_id")
    clusters = folder.table("clusters").join(own, "cluster_id").limit(SHOWN_IDS).collect()
    lines += [f"  cluster   {r['cluster_id']}  of {r['size']:,}, support {r['support']:,}" for r in clusters]
    return "\n".join([*lines, ""])


def _pairs_of(pairs: DataFrame, doc: str) -> list[Any]:
    other = F.when(F.col("doc_a") == doc, F.col("doc_b")).otherwise(F.col("doc_a"))
    own = pairs.where((F.col("doc_a") == doc) | (F.col("doc_b") == doc)).withColumn("other", other)
    return own.orderBy(F.desc("resemblance"), "other").limit(SHOWN_IDS + 1).collect()


def _urls(folder: SparkFolder, ids: list[str]) -> dict[str, str]:
    rows = folder.table("documents").where(F.col("doc_id").isin(ids)).select("doc_id", "url").collect()
    return {row["doc_id"]: row["url"] for row in rows}


def _short(text: str) -> str:
    return text if len(text) <= WIDTH // 2 else text[: WIDTH // 2 - 1] + "…"
