"""The documents that a run onto another changes, on Spark, the steps of a job over them, and the rows it takes over.

    documents, OLD     --find_changed-->     Changed: those of components, of candidates, with a new or changed document
    table of OLD       --taken_over-->       its rows about all others
    their pairs        --join_pairs-->       Night: pairs, candidates
    Night              --cluster-->          NightClusters: clusters, members, false_components
    NightClusters      --keep-->             keep

What follows from the changed documents is made by a job of its own, over them alone, which may find that one task is
enough. `nddup.embedded.onto` says why the result is that of a run over all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.ground.columns import list_column
from nddup.matching.reach import Keys, Reach, marks_of, words_for
from nddup.settings.plan import finder_of
from nddup.spark import schemas
from nddup.spark.heavy_keys import beside
from nddup.spark.pairing import collapse
from nddup.spark.steps import onto
from nddup.spark.steps.clustering import Rounds
from nddup.spark.steps.one_task import is_few
from nddup.spark.steps.state import Job, OldTables, PairedOnSpark, persisted
from nddup.stages import names
from nddup.stages.keep import count_kept
from nddup.stages.onto import IN_ROWS, NAMED_BY, count_untold
from nddup.stages.run_engine import NO_COUNTS, ClusteredRun, Made, PairedRun, Saved
from nddup.stages.stage import Unpaired

IS_NODE = "doc_id = group AND size(sketch) > 0"

MARKS = schemas.table("word long, bits long")

NODE = schemas.table("node long")

MOST_ROUNDS = 100
"""Rounds in which components are followed, a candidate a round; in longer chains all documents count as changed."""

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Changed:
    """What a run onto another makes anew, and whose rows it does not take over."""

    documents: Saved
    """CHANGED."""
    stale: Saved
    """STALE."""
    old: OldTables

    def taken_over(self, name: str) -> DataFrame:
        """Return the rows of a table of the earlier run that still hold, lazily.

        Shuffles:  none where the stale documents are few enough to be broadcast.
        """
        table, stale = self.old.table(name), beside(self.stale.table, self.stale.rows, self.documents.rows)
        if name == "candidates":
            return table.join(stale.select(F.col("doc_key").alias("node_a")), "node_a", "left_anti")
        if name in NAMED_BY:
            return table.join(stale.select(F.col("doc_id").alias(NAMED_BY[name])), NAMED_BY[name], "left_anti")
        gone = self.old.table("members").join(stale, "doc_id", "left_semi").select("cluster_id").distinct()
        return table.join(gone, "cluster_id", "left_anti")


def find_changed(job: Job, documents: Saved) -> Changed | None:
    """Return what a run onto another changes; None where it makes all anew.

    It does where one task takes all documents, which costs less than to find out what changed; where documents are
    forced; where OLD kept nothing.

    Shuffles:  narrow rows of all documents, twice, where old ones may have changed; the ids of new sketches.
    Actions:   seven, and one for each round of `_follow`.
    """
    old = job.old
    if old is None or old.candidates is None or old.is_forced or job.forced is not None or is_few(job, documents):
        return None
    if old.metrics["stages"]["pairs"]["crowd"]:  # which families heavy sketches join depends on all documents
        return None
    kept, stale = job.find("changed"), job.find("stale")
    if kept is not None and stale is not None:
        return Changed(kept, stale, old)

    now, before = _marked(documents.table), _marked(old.documents)
    if documents.noted.get(onto.UNMOVED):
        new, lost = now.where(F.col("doc_key") >= old.n_records), before.limit(0)
    else:
        new = now.join(before, ["doc_key", "mark"], "left_anti")
        lost = before.join(now, ["doc_key", "mark"], "left_anti")
    with persisted(new) as new, persisted(lost) as lost:
        n_new = new.count()
        few = beside(new.select("doc_key"), n_new, documents.rows)
        seeds = _find_reached(job, documents, few)
        seeds = seeds.unionByName(_named(now, new).join(few, F.col("node") == F.col("doc_key"), "left_anti"))
        seeds = seeds.unionByName(_named(before, lost)).unionByName(_nodes(lost)).distinct()
        rounds = Rounds(job)
        touched = _follow(rounds, seeds, old.candidates)
        if touched is None:
            return None
        names = before.join(touched, F.col("doc_key") == F.col("node"), "left_semi").select("group")
        stale = job.save("stale", before.join(names, "group", "left_semi").select("doc_key", "doc_id"))
        keys = stale.table.select("doc_key").unionByName(new.select("doc_key"))
        keys = beside(keys, stale.rows + n_new, documents.rows)
        rows = documents.table.join(keys, "doc_key", "left_semi")
        changed = job.save("changed", rows, collapse.SKETCH_COUNTS)
        rounds.drop("changed")
    return Changed(changed, stale, old)


def _marked(documents: DataFrame) -> DataFrame:
    """Return the ids and groups of documents, with a digest of what another batch may change of them."""
    parts: list[Column] = [F.coalesce(F.col(name), F.lit("").cast("binary")) for name in IN_ROWS]
    return documents.select("doc_key", "doc_id", "group", F.xxhash64(*parts, F.isnull("parent")).alias("mark"))


def _nodes(rows: DataFrame) -> DataFrame:
    return rows.where("doc_id = group").select(F.col("doc_key").alias("node"))


def _named(rows: DataFrame, others: DataFrame) -> DataFrame:
    groups = others.where("doc_id <> group").select(F.col("group").alias("doc_id"))
    return _nodes(rows.join(groups, "doc_id", "left_semi"))


def _find_reached(job: Job, documents: Saved, new: DataFrame) -> DataFrame:
    """Return the other nodes that may be near to a new one (`nddup.matching.reach`), lazily. Two actions.

    The driver holds the filter, at most 64 MB, twice, and the different lengths of the new documents.
    """
    nodes, threshold, finder = documents.table.where(IS_NODE), job.threshold, finder_of(job.config)
    keys = None if finder is None else finder.keys
    ours = nodes.join(new, "doc_key", "left_semi")
    lengths = ours.groupBy(F.size("sketch").alias("size"), "n_features").count().toArrow()
    sizes, n_features, counts = (column.to_numpy() for column in lengths.columns)
    words = np.zeros(words_for(int((sizes.astype(np.int64) * counts).sum())), np.uint64)
    marks = ours.select("sketch").mapInArrow(partial(_mark, words=len(words), keys=keys), MARKS)
    gathered = marks.groupBy("word").agg(F.bit_or("bits").alias("bits")).toArrow()
    words[gathered["word"].to_numpy()] = gathered["bits"].to_numpy().view(np.uint64)

    totals = np.unique(threshold.totals(sizes.astype(np.int32), n_features.astype(np.int32)))
    reach = Reach(words, totals, threshold, keys)
    reached: DataFrame = nodes.select("doc_key", "sketch", "n_features").mapInArrow(partial(_find, reach=reach), NODE)
    return reached.join(new, F.col("node") == F.col("doc_key"), "left_anti")


def _mark(batches: Batches, *, words: int, keys: Keys | None) -> Batches:
    for batch in batches:
        places, bits = marks_of(list_column(batch["sketch"]), words, keys)
        yield pa.record_batch({"word": pa.array(places), "bits": pa.array(bits.view(np.int64))})


def _find(batches: Batches, *, reach: Reach) -> Batches:
    for batch in batches:
        sketches, n_features = list_column(batch["sketch"]), batch["n_features"].to_numpy()
        totals = reach.threshold.totals(np.diff(sketches.offsets).astype(np.int32), n_features)
        is_reached = reach.find(sketches, totals)
        yield pa.record_batch({"node": batch["doc_key"].filter(pa.array(is_reached))})


def _follow(rounds: Rounds, seeds: DataFrame, candidates: DataFrame) -> DataFrame | None:
    """Return the nodes of the components of the seeds; None where chains are too long to follow. One action a round."""
    turned = candidates.select(F.col("node_b").alias("node_a"), F.col("node_a").alias("node_b"))
    both = candidates.unionByName(turned)
    front = rounds.save("touched-0", seeds)
    touched: DataFrame = front.table
    for number in range(1, MOST_ROUNDS):
        if not front.rows:
            return touched
        near = both.join(front.table, F.col("node_a") == F.col("node"), "left_semi").select(
            F.col("node_b").alias("node")
        )
        front = rounds.save(f"touched-{number}", near.distinct().join(touched, "node", "left_anti"))
        touched = touched.unionByName(front.table)
    return None


@dataclass(frozen=True)
class Night:
    """A `PairedRun` onto another, of which only what changed is made anew."""

    job: Job
    made: Made
    changed: Changed
    inner: PairedRun
    """The pairs among the changed documents."""
    documents: Saved

    def cluster(self) -> "NightClusters":
        """As `PairedRun.cluster`, of what changed. Four actions more, over the tables of both runs."""
        job, changed, inner = self.job, self.changed, self.inner.cluster()
        saved = {name: _join(job, changed, name, inner.made, counts) for name, counts in names.COUNTS.items()}
        asked = job.ask(**{name: one.table for name, one in saved.items()})
        counts = {key: n for one in saved.values() for key, n in one.counts.items()}
        for row in asked.sql(names.COMPONENTS).to_pylist():
            counts |= row
        counts |= count_untold("clusters", changed.old.metrics, inner.made.counts, job.config)
        return NightClusters(self, Made(saved=saved, counts={**inner.made.counts, **counts}), inner)


@dataclass(frozen=True)
class NightClusters:
    """The `ClusteredRun` of a `Night`."""

    night: Night
    made: Made
    inner: ClusteredRun

    def keep(self) -> Made:
        """As `ClusteredRun.keep`, of what changed. One action more."""
        job, documents, inner = self.night.job, self.night.documents, self.inner.keep()
        saved = _join(job, self.night.changed, "keep", inner, {"kept": "count_if(kept)"})
        kept = saved.counts["kept"]
        asked = job.ask(documents=documents.table, keep=saved.table)
        counts = {**inner.counts, "kept": kept, "removed": documents.rows - kept}
        counts |= count_kept(asked, job.config.keep.order, None, by_loss=False)
        return Made(saved={"keep": saved}, counts=counts)


def join_pairs(job: Job, inner: PairedOnSpark, changed: Changed, documents: Saved) -> Night:
    """Save the pairs of the changed documents with those taken over. Three actions.

    Args:
        inner: the pairs among the changed documents.
        documents: of this run, all.
    """
    inner.save_candidates(job, changed.taken_over("candidates"))
    pairs, made = _join(job, changed, "pairs", inner.made), inner.made
    counts = {name: documents.counts[name] for name in ("distinct_sketches", "postings")}
    counts |= _count_unpaired(job, documents.table)
    counts |= count_untold("pairs", changed.old.metrics, made.counts, job.config)
    paired = Made(saved={"pairs": pairs}, counts={**made.counts, **counts}, notes=made.notes)
    return Night(job, paired, changed, inner, documents)


def _count_unpaired(job: Job, documents: DataFrame) -> dict[str, int]:
    """Count the documents that pairing treats apart. One action."""
    node = F.when(F.col("doc_id") == F.col("group"), F.col("doc_key")).otherwise(F.lit(-1))
    nodes = documents.select("doc_key", node.alias("node"), F.size("sketch").alias("size"))
    counted = {name: F.expr(count) for name, count in Unpaired.counts(job.threshold.least_size).items()}
    row = nodes.agg(*(count.alias(name) for name, count in counted.items())).collect()[0].asDict()
    return {name: int(count or 0) for name, count in row.items()}


def _join(job: Job, changed: Changed, name: str, made: Made, counts: Mapping[str, str] = NO_COUNTS) -> Saved:
    """Save a table: the rows that were made anew, and those taken over."""
    before = changed.taken_over(name)
    return job.save(name, made.tables[name].select(*before.columns).unionByName(before), counts)
