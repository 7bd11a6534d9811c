"""The steps of a run onto another on Spark: those of a job over what changed, and the rows that are taken over.

changed documents  --pair_changed-->     pairs, candidates
Night              --cluster_changed-->  clusters, members, false_components
Night              --keep_changed-->     keep
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.spark.schemas import frame_of_rows, schema_of
from nddup.spark.steps.changed import Changed
from nddup.spark.steps.documents import Sources
from nddup.spark.steps.one_task import Decided
from nddup.spark.steps.state import Job
from nddup.stages import names
from nddup.stages.keep import count_kept
from nddup.stages.run_engine import NO_COUNTS, Made, Saved
from nddup.stages.stage import Unpaired
from nddup.tables import CANDIDATES


@dataclass(frozen=True)
class Night:
    """What changed, and the job over it."""

    changed: Changed
    job: Job
    sketched: Made
    paired: Made


def save_candidates(job: Job, made: Made, before: DataFrame | None = None) -> None:
    """Save CANDIDATES, for a later run onto this one: those of the documents whose pairs were found, and others."""
    if isinstance(made.own, Decided):
        if (rows := made.own.tables.get("candidates")) is None or job.find("candidates"):
            return  # all was found
        if before is None:
            job.put_rows("candidates", rows, {})
            return
        candidates = frame_of_rows(job.spark, rows, schema_of(CANDIDATES))
    else:
        candidates = made.own.candidates
    job.save("candidates", candidates if before is None else candidates.unionByName(before))


def pair_changed(job: Job, inner: Job, changed: Changed, sketched: Made) -> Made:
    """As `RunEngine.pair`, of what changed. One action more than those of its pairs, for each table and its counts."""
    documents = changed.documents
    sketches = Made(
        tables={"documents": documents.table},
        rows={"documents": documents.rows},
        counts={},
        own=Sources(documents, None, None),
    )
    made = inner.pair(sketches, None)
    save_candidates(job, made, changed.taken_over("candidates"))
    pairs = _join(job, changed, "pairs", made)
    whole = sketched.own.documents
    counts = {name: whole.counts[name] for name in ("distinct_sketches", "postings")}
    counts |= _count_unpaired(job, whole.table)
    saved = {"pairs": pairs}
    return _made(saved, {**made.counts, **counts}, Night(changed, inner, sketches, made), made.notes)


def _count_unpaired(job: Job, documents: DataFrame) -> dict[str, int]:
    """Count the documents that pairing treats apart. One action."""
    node = F.when(F.col("doc_id") == F.col("group"), F.col("doc_key")).otherwise(F.lit(-1))
    nodes = documents.select("doc_key", node.alias("node"), F.size("sketch").alias("size"))
    counted = {name: F.expr(count) for name, count in Unpaired.counts(job.threshold.least_size).items()}
    row = nodes.agg(*(count.alias(name) for name, count in counted.items())).collect()[0].asDict()
    return {name: int(count or 0) for name, count in row.items()}


def cluster_changed(job: Job, night: Night) -> Made:
    """As `RunEngine.cluster`, of what changed. Four actions more, over the tables of both runs."""
    made = night.job.cluster(night.sketched, night.paired)
    saved = {name: _join(job, night.changed, name, made, counts) for name, counts in names.COUNTS.items()}
    tables = {name: one.table for name, one in saved.items()}
    asked = job.ask(**tables)
    counts = {key: n for one in saved.values() for key, n in one.counts.items()}
    for row in asked.sql(names.COMPONENTS).to_pylist():
        counts |= row
    before = night.changed.old.metrics["stages"]["clusters"]["largest_component"]
    counts["largest_component"] = max(before, made.counts["largest_component"])
    return _made(saved, {**made.counts, **counts}, made)


def keep_changed(job: Job, night: Night, sketched: Made, clustered: Made) -> Made:
    """As `RunEngine.keep`, of what changed. One action more."""
    made = night.job.keep(night.sketched, night.paired, clustered.own)
    saved = _join(job, night.changed, "keep", made, {"kept": "count_if(kept)"})
    kept, rows = saved.counts["kept"], sketched.rows["documents"]
    counts = {**made.counts, "kept": kept, "removed": rows - kept}
    asked = job.ask(documents=sketched.tables["documents"], keep=saved.table)
    return _made({"keep": saved}, {**counts, **count_kept(asked, job.config.keep.order, None, by_loss=False)}, made)


def _join(job: Job, changed: Changed, name: str, made: Made, counts: Mapping[str, str] = NO_COUNTS) -> Saved:
    """Save a table: the rows that were made anew, and those taken over."""
    before = changed.taken_over(name)
    return job.save(name, made.tables[name].select(*before.columns).unionByName(before), counts)


def _made(
    saved: Mapping[str, Saved], counts: Mapping[str, object], engine_state: object, notes: Sequence[str] = ()
) -> Made:
    tables, rows = {name: one.table for name, one in saved.items()}, {name: one.rows for name, one in saved.items()}
    return Made(tables=tables, rows=rows, counts=counts, own=engine_state, notes=notes)
