"""The four stages of a run on Spark, in order.

INPUT files --sketch--> documents, rejects    `nddup.run.on_spark.documents`
documents   --pairs---> pairs                 `nddup.run.on_spark.pairing`
pairs       --clusters-> clusters, members    `nddup.run.on_spark.clustering`
pairs       --keep----> keep                  `nddup.spark.clustering.keep_list`
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.matching.preference import NUMBERS
from nddup.metrics import ClustersMetrics, KeepMetrics, PairsMetrics, SketchMetrics, Stages
from nddup.run.on_spark.clustering import Clustered, mine_clusters
from nddup.run.on_spark.documents import Sketched, sketch_documents
from nddup.run.on_spark.pairing import Paired, find_pairs
from nddup.run.on_spark.state import Job
from nddup.scanning.collection import Collection
from nddup.spark.clustering import keep_list


@dataclass(frozen=True)
class Found:
    """The tables of a run, and the counts and measures of each stage."""

    sketched: Sketched
    paired: Paired
    clustered: Clustered
    keep: DataFrame
    stages: Stages

    @property
    def tables(self) -> dict[str, DataFrame]:
        """The tables by name, without the texts of the report."""
        return {
            "documents": self.sketched.documents.table,
            "rejects": self.sketched.rejects,
            "pairs": self.paired.pairs,
            "clusters": self.clustered.clusters,
            "members": self.clustered.members,
            "keep": self.keep,
            "false_components": self.clustered.false_components,
        }

    @property
    def kept(self) -> int:
        """The number of kept documents."""
        return self.stages.keep.kept


def find_clusters(job: Job, source: Collection | DataFrame) -> Found:
    """Make every table of a run, from its files or from TEXTS, in the store of the job."""
    with job.stage("sketch", SketchMetrics) as sketching:
        sketched = sketch_documents(job, source)
        rows = sketched.metrics.rows_out
        sketching.done(sketched.metrics, f"{rows['documents']:,} documents", f"{rows['rejects']:,} rejects")

    with job.stage("pairs", PairsMetrics) as pairing:
        again = sketched.inputs if isinstance(source, Collection) else source
        paired = find_pairs(job, sketched.documents, again)
        pairs = paired.metrics.rows_out["pairs"]
        pairing.done(paired.metrics, f"{pairs:,} pairs", f"{paired.metrics.candidates:,} candidates")

    with job.stage("clusters", ClustersMetrics) as clustering:
        clustered = mine_clusters(job, sketched.documents, paired)
        clustering.done(clustered.metrics, f"{clustered.metrics.rows_out['clusters']:,} clusters")

    with job.stage("keep", KeepMetrics) as keeping:
        listed = keep_list.list_kept(
            sketched.documents.nodes, clustered.graph, paired.edges, least_size=job.threshold.least_size,
            by_sets=job.config.pairs.confirm == "resemblance",
        )  # fmt: skip
        keep = job.save("keep", listed, kept=F.count_if("kept"))
        kept, documents = keep.counts["kept"], rows["documents"]
        counted = KeepMetrics(
            rows_in={"documents": documents},
            rows_out={"keep": keep.rows},
            kept=kept,
            removed=documents - kept,
            **_count_unplaced(job, sketched.documents.table),
            **_count_forced(job, sketched.documents.nodes, paired.pairs, keep.table),
        )
        keeping.done(counted, f"{kept:,} kept")

    stages = Stages(sketch=sketching.metrics, pairs=pairing.metrics, clusters=clustering.metrics, keep=keeping.metrics)
    return Found(sketched, paired, clustered, keep.table, stages)


def _count_forced(job: Job, nodes: DataFrame, pairs: DataFrame, keep: DataFrame) -> dict[str, int]:
    """Count the documents that `keep.force` names, and the pairs that it or `keep.max_lost` leaves. Two actions."""
    if job.forced is None and job.config.keep.max_lost is None:
        return {}
    classes = keep_list.class_of("weight")
    counted = nodes.agg(F.count_if(classes < 0).alias("kept"), F.count_if(classes > 0).alias("removed")).collect()[0]
    kept = keep.where("kept").select("doc_id")
    both = pairs.join(kept.toDF("doc_a"), "doc_a", "left_semi").join(kept.toDF("doc_b"), "doc_b", "left_semi")
    named = 0 if job.forced is None else len(job.forced.kept) + len(job.forced.removed)
    return {
        "forced_kept": counted["kept"],
        "forced_removed": counted["removed"],
        "forced_unknown": named - counted["kept"] - counted["removed"],
        "kept_pairs": both.count(),
    }


def _count_unplaced(job: Job, documents: DataFrame) -> dict[str, dict[str, int]]:
    """Count, by column of the keep policy, documents without a value or with one of the wrong type. One action."""
    columns = job.config.keep.order.read
    if not columns:
        return {}
    counts = []
    for at, column in enumerate(columns):
        value = F.col("policy")[at]
        is_there = F.coalesce(value.rlike(r"\S"), F.lit(False))
        counts.append(F.count_if(~is_there).alias(f"without_value {column.path}"))
        if column.type == "number":
            counts.append(F.count_if(is_there & ~value.rlike(NUMBERS)).alias(f"unparsable {column.path}"))
    found: dict[str, dict[str, int]] = {"without_value": {}, "unparsable": {}}
    for name, count in documents.agg(*counts).collect()[0].asDict().items():
        kind, _, path = name.partition(" ")
        found[kind] |= {path: int(count)} if count else {}
    return found
