"""The four stages of a run on Spark, in order.

INPUT files --sketch--> documents, rejects    `nddup.run.on_spark.documents`
documents   --pairs---> pairs                 `nddup.run.on_spark.pairing`
pairs       --clusters-> clusters, members    `nddup.run.on_spark.clustering`
pairs       --keep----> keep                  `nddup.stages.keep`
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.metrics import ClustersMetrics, KeepMetrics, PairsMetrics, SketchMetrics, Stages
from nddup.run.on_spark.clustering import Clustered, mine_clusters
from nddup.run.on_spark.documents import Sketched, sketch_documents
from nddup.run.on_spark.pairing import Paired, find_pairs
from nddup.run.on_spark.state import Job
from nddup.scanning.collection import Collection
from nddup.stages.keep import count_kept, list_kept


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
        by_sets = job.config.pairs.confirm == "resemblance"
        listed = list_kept(job.engine, least_size=job.threshold.least_size, by_sets=by_sets)
        keep = job.save("keep", listed, kept=F.count_if("kept"))
        asked = job.config.keep
        kept, documents = keep.counts["kept"], rows["documents"]
        for name, table in (("documents", sketched.documents.table), ("pairs", paired.pairs), ("keep", keep.table)):
            job.engine.see(name, table)
        counted = KeepMetrics(
            rows_in={"documents": documents},
            rows_out={"keep": keep.rows},
            kept=kept,
            removed=documents - kept,
            **count_kept(job.engine, asked.order, job.forced, by_loss=asked.max_lost is not None),
        )
        keeping.done(counted, f"{kept:,} kept")

    stages = Stages(sketch=sketching.metrics, pairs=pairing.metrics, clusters=clustering.metrics, keep=keeping.metrics)
    return Found(sketched, paired, clustered, keep.table, stages)
