"""The stages of a run on one machine: what each makes, saves, and takes from an earlier attempt.

A resumed run takes over the documents of an earlier attempt. All that follows from them was made in one go, so it is
taken over whole or not at all.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nddup.local import engine
from nddup.local.reading.workers import Workers
from nddup.metrics import ClustersMetrics, EditMetrics, KeepMetrics, LexiconMetrics, PairsMetrics, SketchMetrics
from nddup.mining.keep_verdicts import Forced
from nddup.scanning.collection import Collection
from nddup.settings import plan
from nddup.settings.schema import Config
from nddup.stages import false_components, names
from nddup.stages.keep import count_kept
from nddup.stages.losses import REPEATED, UNREADABLE, list_silent_files, require_few_rejects, require_readable
from nddup.stages.progress import Progress
from nddup.stages.stage import (
    M,
    Stage,
    Unpaired,
    count_renamed,
    made_of,
    measure_files,
    measured,
    name_counted,
    name_unread,
    reads_contents,
)
from nddup.storage.local_folder import LocalFolder, MemoryTables

PAIRED = ("pairs", "clusters", "members", "false_components", "keep")
"""The tables that follow from the documents. They are made together, in memory."""


@dataclass
class LocalJob:
    """State shared by the steps of one run."""

    config: Config
    folder: LocalFolder | MemoryTables
    workers: Workers
    progress: Progress
    resumed: dict[str, None] = field(default_factory=dict)
    forced: Forced | None = None
    """The documents of `keep.force`."""

    def stage(self, name: str, counts: type[M]) -> AbstractContextManager[Stage[M]]:
        """Run a stage: show it and measure its seconds."""
        return measured(self.progress, name, counts, resumed=self.resumed)

    def find(self, name: str) -> Mapping[str, Any] | None:
        """Return the note on a table left by an earlier attempt, if its inputs and settings are unchanged."""
        noted = self.folder.note(name, **made_of(name, self.config))
        if noted is not None:
            self.resumed[name] = None
        return noted

    def save(self, name: str, table: pa.Table, **noted: Any) -> None:  # noqa: ANN401 - JSON values
        """Write a table and seal it; a later attempt finds it with its counts and the values in `noted`."""
        self.progress.describe(name)
        counts = noted.pop("counts", {})
        self.folder.write(name, table, on_rows_written=partial(self.workers.tell, f"write {name}"))
        counted = {"rows": len(table), "counts": counts, "noted": noted}
        self.folder.seal(name, **made_of(name, self.config), counted=counted)


@dataclass(frozen=True)
class Sketched:
    """The result of the first stage: the documents, PARTS if they are to be read again, and the counts."""

    documents: pa.Table
    parts: pa.Table | None
    metrics: SketchMetrics


@dataclass(frozen=True)
class Found:
    """The result of the other stages."""

    clusters: pa.Table
    members: pa.Table
    keep: pa.Table
    stages: tuple[PairsMetrics, ClustersMetrics, KeepMetrics]
    unpaired: Unpaired


def sketch_documents(job: LocalJob, source: Collection | pa.Table) -> Sketched:
    """Read and sketch every record of the files, or of TEXTS, unless an earlier attempt has done so."""
    with job.stage("sketch", SketchMetrics) as stage:
        metrics = _find_sketched(job, source)
        if metrics is not None:
            documents = job.folder.read("documents")
            parts = job.folder.read("parts") if reads_contents(job.config) else None
        else:
            documents, parts, metrics = _read(job, source)
        metrics = _require_few_rejects(job, source, documents, metrics)
        rows = metrics.rows_out
        stage.done(metrics, f"{rows['documents']:,} documents", f"{rows['rejects']:,} rejects")
    return Sketched(documents, parts, stage.metrics)


def _find_sketched(job: LocalJob, source: Collection | pa.Table) -> SketchMetrics | None:
    """Return the counts of an earlier attempt's first stage; None if it did not finish that stage."""
    names = ["documents", "rejects"]
    names += ["parts"] if reads_contents(job.config) else []
    names += ["lexicon"] if _has_lexicon(job.config) else []
    noted = {name: job.find(name) for name in names}
    if None in noted.values():
        for name in names:
            job.resumed.pop(name, None)
        return None

    found = {name: note for name, note in noted.items() if note is not None}
    documents, rejects = found["documents"], found["rejects"]
    lexicon = found.get("lexicon")
    counted = documents["noted"]
    return _sketch_metrics(
        source,
        documents["rows"],
        rejects["rows"],
        reasons=rejects["noted"]["reasons"],
        counts=counted | {"files_read_again": len(counted["read_again"])},
        lexicon=LexiconMetrics(terms=lexicon["rows"], **lexicon["noted"]) if lexicon else None,
    )


def _has_lexicon(config: Config) -> bool:
    words = plan.words_of(config)
    return words is not None and words.needs_lexicon


def _read(job: LocalJob, source: Collection | pa.Table) -> tuple[pa.Table, pa.Table, SketchMetrics]:
    """Return documents, parts and counts; all tables of the stage are saved."""
    sketched = engine.sketch(source, job.config, job.workers, renames=isinstance(source, Collection))
    documents, rejects, reasons = sketched.documents, sketched.rejects, sketched.reasons
    counts, lexicon = sketched.counts, sketched.lexicon
    metrics = _sketch_metrics(source, len(documents), len(rejects), reasons=reasons, counts=counts, lexicon=None)
    if lexicon is not None:
        words = {name: counts[f"lexicon_{name}"] for name in ("counted", "occurrences", "commonest")}
        metrics = metrics.model_copy(update={"lexicon": LexiconMetrics(terms=len(lexicon), **words)})
        job.save("lexicon", lexicon, **words)

    noted = {name: counts[name] for name in _NOTED if name in counts}
    sizes = engine.count_sketches(documents)
    job.save("documents", documents, counts=sizes, splitting={}, read_again=sorted(job.workers.read_again), **noted)
    job.save("rejects", rejects, reasons=reasons)
    if reads_contents(job.config):
        job.save("parts", sketched.parts)
    return documents, sketched.parts, metrics


def _require_few_rejects(
    job: LocalJob, source: Collection | pa.Table, documents: pa.Table, metrics: SketchMetrics
) -> SketchMetrics:
    """Stop if more was lost than the run allows; return the metrics with the files that gave no document."""
    reasons, limits = dict(metrics.rejected), job.config.input
    if not reasons:
        return metrics
    rejects = job.folder.read("rejects").select(["source", "reason", "detail"])
    if UNREADABLE in reasons:
        rows = rejects.filter(pc.equal(rejects["reason"], UNREADABLE)).to_pylist()
        require_readable(sorted(tuple(row.values()) for row in rows), limits.max_unreadable)
    reasons.pop(REPEATED, None)
    if not isinstance(source, Collection):
        require_few_rejects(len(documents), reasons, limits.max_rejects)
        return metrics
    silent = list_silent_files(documents["source"], rejects)
    require_few_rejects(len(documents), reasons, limits.max_rejects, silent=silent, source=source)
    return metrics.model_copy(update={"unread_files": name_unread(silent)})


def _sketch_metrics(  # noqa: PLR0913 - what the file says
    source: Collection | pa.Table,
    documents: int,
    rejects: int,
    *,
    reasons: Mapping[str, int],
    counts: Mapping[str, Any],
    lexicon: LexiconMetrics | None,
) -> SketchMetrics:
    names = (
        "files_read_again",
        "median_tokens",
        "undecodable_records",
        "undecodable_places",
        "stripped_records",
        "guessed_records",
        "made_up_ids",
        "left_out_shingles",
    )
    return SketchMetrics(
        rows_in={"records": documents + rejects},
        rows_out={"documents": documents, "rejects": rejects},
        **measure_files(source),
        rejected=dict(reasons),
        renamed_ids=count_renamed(counts, reasons),
        lexicon=lexicon,
        **name_counted(counts),
        **{name: counts[name] for name in names if name in counts},
    )


_NOTED = (
    "median_tokens", "undecodable_records", "undecodable_places", "stripped_records", "stripped_files",
    "guessed_records", "guessed_files", "made_up_ids", "left_out_shingles", "later_ids",
)  # fmt: skip
"""Counts in the note of `documents`."""


def find_clusters(
    job: LocalJob,
    sketched: Sketched,
    source: Collection | pa.Table | None = None,
    *,
    known: pa.Table | None = None,
) -> Found:
    """Find pairs, clusters and keep-list: reuse those of an earlier attempt if all are there, else make all of them.

    Args:
        job: the run.
        sketched: its documents.
        source: read again where texts confirm pairs.
        known: PAIRS at a lower threshold, which hold what texts would say; the source is then not read.
    """
    noted = {name: job.find(name) for name in PAIRED}
    last = noted["keep"]
    if last is not None and None not in noted.values() and "stages" in last["noted"]:
        return _take_found(job, last["noted"])
    for name in PAIRED:
        job.resumed.pop(name, None)

    rows = sketched.metrics.rows_out["documents"]
    job.workers.memory.hold(rows, sum(len(chunk.flatten()) for chunk in sketched.documents["sketch"].chunks))
    paired, pairs = _pair(job, sketched.documents, source, known)
    clustered, clusters = _cluster(job, paired)
    unpaired = Unpaired(*(paired.counts[name] for name in Unpaired._fields))
    with job.stage("keep", KeepMetrics) as stage:
        kept, asked = engine.keep(paired, clustered, job.config), job.config.keep
        number = kept.counts["kept"]
        for name, table in (("documents", sketched.documents), ("pairs", paired.pairs), ("keep", kept.keep)):
            clustered.engine.see(name, table)
        told = count_kept(clustered.engine, asked.order, job.forced, by_loss=asked.max_lost is not None)
        tables = {"rows_in": {"documents": rows}, "rows_out": {"keep": len(kept.keep)}}
        stage.done(KeepMetrics(**tables, kept=number, removed=rows - number, **told), f"{number:,} kept")

        # Sealed last: its note means that all five tables are there, and holds the counts of their stages.
        counted = [one.model_dump(exclude=_MEASURED) for one in (pairs, clusters, stage.metrics)]
        job.save("keep", kept.keep, counts={"kept": number}, stages=counted, unpaired=list(unpaired))
    return Found(clustered.clusters, clustered.members, kept.keep, (pairs, clusters, stage.metrics), unpaired)


def _pair(
    job: LocalJob, documents: pa.Table, source: Collection | pa.Table | None, known: pa.Table | None
) -> tuple[engine.Paired, PairsMetrics]:
    """Find the pairs and save them."""
    with job.stage("pairs", PairsMetrics) as stage:
        paired = engine.pair(documents, job.config, job.workers, source, known=known, forced=job.forced)
        job.save("pairs", paired.pairs)
        counted = PairsMetrics(
            rows_in={"documents": len(documents)},
            rows_out={"pairs": len(paired.pairs)},
            pruned_to=paired.pruned_to,
            edits=EditMetrics(**paired.edits) if paired.edits is not None else None,
            **{name: paired.counts[name] for name in _PAIR_COUNTS},
        )
        stage.done(counted, f"{len(paired.pairs):,} pairs", f"{counted.candidates:,} candidates")
    return paired, stage.metrics


def _cluster(job: LocalJob, paired: engine.Paired) -> tuple[engine.Clustered, ClustersMetrics]:
    """Find the clusters, their members and the false components, and save them."""
    with job.stage("clusters", ClustersMetrics) as stage:
        clustered = engine.cluster(paired, job.config, job.workers)
        counts = clustered.counts
        tables = {name: getattr(clustered, name) for name in ("clusters", "members", "false_components")}
        invented = {name: counts[name] for name in false_components.COUNTS}
        job.save("false_components", tables["false_components"], counts=invented)
        job.save(
            "clusters",
            tables["clusters"],
            counts={name: counts[name] for name in names.COUNTS},
            covered_components=counts["covered_components"],
        )
        job.save("members", tables["members"])
        counted = ClustersMetrics(
            rows_in={"pairs": len(paired.pairs)},
            rows_out={name: len(table) for name, table in tables.items()},
            **{name: counts[name] for name in _CLUSTER_COUNTS},
        )
        stage.done(counted, f"{len(clustered.clusters):,} clusters")
    return clustered, stage.metrics


_MEASURED = {"seconds", "shuffle_bytes", "resumed"}
_PAIR_COUNTS = ("distinct_sketches", "postings", "candidates", "crowd")
_CLUSTER_COUNTS = (
    "components", "largest_component", "fpgrowth_components", "fpgrowth_fits", "covered_components",
    "covered_clusters", "led_components", "led_clusters", "invented_pairs", "most_invented", "bounded_components",
    "spread_components", "shares", "pairs_below_support",
)  # fmt: skip


def _take_found(job: LocalJob, noted: Mapping[str, Any]) -> Found:
    """Return the tables and counts of an earlier attempt."""
    tables = [job.folder.read(name) for name in ("clusters", "members", "keep")]
    pairs, clusters, keep = noted["stages"]
    with job.stage("keep", KeepMetrics) as stage:
        stage.done(KeepMetrics(**keep), "taken from an earlier attempt")
    stages = (PairsMetrics(**pairs), ClustersMetrics(**clusters), stage.metrics)
    return Found(tables[0], tables[1], tables[2], stages, Unpaired(*noted["unpaired"]))
