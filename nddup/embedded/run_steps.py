"""The steps of a run on one machine, over the tables of one `Job`, as `nddup.stages.run` takes them.

    sketch_run     files or texts  -->  SketchedHere     documents, rejects
    SketchedHere.pair              -->  PairedHere       pairs; `PairedBefore` where an earlier attempt left all tables
    PairedHere.cluster             -->  ClusteredHere    clusters, members, false_components
    ClusteredHere.keep             -->                   keep

A resumed run takes over the documents of an earlier attempt. All that follows from them was made in one go, so it is
taken over whole or not at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded import outputs, steps
from nddup.embedded.old_run import Old
from nddup.embedded.onto import Onto
from nddup.embedded.state import Job
from nddup.engines.engine import EngineTable
from nddup.ground.columns import one_chunk, take
from nddup.scanning.collection import Collection
from nddup.settings import plan
from nddup.settings.plan import record_limits, text_rule
from nddup.sketching.vocabulary import COUNTED
from nddup.stages import names
from nddup.stages.onto import count_untold
from nddup.stages.run_engine import Made, New, Saved
from nddup.stages.stage import reads_contents
from nddup.stages.written_records import KeptFiles, added_fields, with_added
from nddup.storage.local_storage import local_path
from nddup.tables import CHOSEN


def sketch_run(job: Job, source: Collection | pa.Table) -> "SketchedHere":
    """As `RunEngine.sketch`. An earlier attempt's documents are taken if all tables of the step are there."""
    wanted = ["documents", "rejects"]
    wanted += ["parts"] if reads_contents(job.config) else []
    words = plan.words_of(job.config)
    wanted += ["lexicon"] if words is not None and words.needs_lexicon else []
    wanted += ["given"] if job.config.output.onto else []
    is_there = all(job.note(name) is not None for name in wanted)
    saved = job.take(*wanted) if is_there else _read(job, source)
    documents, rejects = saved["documents"], saved["rejects"]
    counts = {**documents.counts, **documents.noted, **rejects.noted}
    if (lexicon := saved.get("lexicon")) is not None:
        counts["lexicon"] = {"terms": lexicon.rows, **lexicon.noted}
    parts = saved["parts"].table if "parts" in saved else None
    made = Made(saved={"documents": documents, "rejects": rejects}, counts=counts)
    new = None if job.onto is None else _count_new(job, made)
    return SketchedHere(job, made, parts, new, job.counts_before() if is_there else {})


def _count_new(job: Job, made: Made) -> New:
    old = Old.nothing() if job.old is None else job.old
    documents = int(np.count_nonzero(made.tables["documents"]["doc_key"].to_numpy() >= old.n_records))
    counted = pc.value_counts(one_chunk(old.rejects["reason"]))
    before = dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
    reasons = {reason: n - before.get(reason, 0) for reason, n in made.counts["reasons"].items()}
    return New(documents, {reason: n for reason, n in reasons.items() if n > 0})


def _read(job: Job, source: Collection | pa.Table) -> dict[str, Saved]:
    is_files = isinstance(source, Collection)
    sketched = steps.sketch(source, job.config, job.workers, renames=is_files, old=job.old if is_files else None)
    job.workers.parts = sketched.parts
    counts: dict[str, Any] = sketched.counts
    saved: dict[str, Saved] = {}
    if sketched.lexicon is not None:
        words: dict[str, Any] = {name: counts[f"lexicon_{name}"] for name in COUNTED}
        saved["lexicon"] = job.save("lexicon", sketched.lexicon, **words)
    noted = {name: counts[name] for name in steps.NOTED if name in counts}
    again, sizes = sorted(job.workers.read_again), steps.count_sketches(sketched.documents)
    changed = _regrouped(job, sketched)
    saved["rejects"] = job.save("rejects", sketched.rejects, reasons=sketched.reasons)
    if reads_contents(job.config):
        saved["parts"] = job.save("parts", sketched.parts)
    if sketched.settled is not None:
        same = None if changed is None else np.empty(0, np.int64)
        saved["given"] = job.save("given", sketched.settled.given, changed=same)
    noted |= {"splitting": {}, "read_again": again}
    saved["documents"] = job.save(
        "documents", sketched.documents, counts=sizes, changed=changed, is_behind=True, **noted
    )
    return saved


def _regrouped(job: Job, sketched: steps.Sketched) -> NDArray[np.int64] | None:
    """Return the places of OLD's documents that changed; None where no file of theirs can be taken over."""
    if sketched.settled is None or (job.old is not None and not job.old.is_in_order):
        return None
    return np.empty(0, np.int64) if job.onto is None else sketched.settled.regrouped


@dataclass(frozen=True)
class SketchedHere:
    """A `SketchedRun`."""

    job: Job
    made: Made
    parts: pa.Table | None = None
    """PARTS, if kept documents are to be read again."""
    new: New | None = None
    before: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The counts of the stages that follow, if an earlier attempt left all their tables."""

    def pair(self, source: EngineTable, known: EngineTable = None) -> "PairedHere | PairedBefore":
        """As `SketchedRun.pair`."""
        job, documents = self.job, self.made.tables["documents"]
        if self.before:
            return PairedBefore(job, Made(saved=job.take("pairs"), counts=self.before["pairs"]), self.before)
        sizes = sum(len(chunk.flatten()) for chunk in documents["sketch"].chunks)
        job.workers.memory.hold(len(documents), sizes, is_copied=job.old is not None)
        if job.old is not None and isinstance(source, Collection):
            return _pair_onto(job, job.old, documents, source)
        paired = steps.pair(documents, job.config, job.workers, source, known=known, forced=job.forced)
        saved = job.save("pairs", paired.pairs)
        paired = replace(paired, pairs=job.store.release("pairs", paired.pairs))
        made = Made(saved={"pairs": replace(saved, table=paired.pairs)}, counts=paired.stage_counts)
        return PairedHere(job, documents, paired, made)

    def write_kept(self, source: Collection, chosen: pa.Table) -> int:
        """As `SketchedRun.write_kept`."""
        config, documents = self.job.config, self.made.tables["documents"]
        table = with_added(CHOSEN, config)
        chosen = chosen.select(table.names).cast(table.arrow)
        at = pc.index_in(documents["doc_id"], chosen["doc_id"].combine_chunks())
        places = np.flatnonzero(np.asarray(pc.is_valid(at)))
        holders = take(documents["doc_key"], outputs.holders_of(documents, places))
        rows = documents.select(outputs.KEPT_COLUMNS).take(pa.array(places)).set_column(0, "doc_key", holders)
        for name in table.names[1:]:
            rows = rows.append_column(table.arrow.field(name), chosen[name].take(at.drop_null()))
        read = self._reader(source).find_kept(rows, self.parts, config.output.kept)
        where = Path(local_path(f"{self.job.folder.path}/kept"))
        files = KeptFiles.of(source, sum(self.made.rows.values()), config.output.kept)
        return outputs.write_kept(read, where, files, added_fields(config))

    def read_texts(self, source: Collection, documents: Mapping[str, tuple[str, bytes]]) -> pa.Table:
        """As `SketchedRun.read_texts`."""
        rows = self.made.tables["documents"].select(["doc_id", "doc_key"])
        keys = rows.filter(pc.is_in(rows["doc_id"], pa.array(list(documents), pa.string())))["doc_key"]
        places = outputs.places_of(keys, self.job.workers.parts)
        return self._reader(source).find_texts(documents, places=places)

    def _reader(self, source: Collection) -> outputs.Reader:
        config = self.job.config
        return outputs.Reader(source, text_rule(config), record_limits(config), self.job.workers)


def _pair_onto(job: Job, old: Old, documents: pa.Table, source: Collection) -> "PairedHere":
    is_whole = job.forced is not None or old.is_forced or old.is_crowded
    onto = Onto(old, documents, old.n_records, job.config, source, job.workers, is_whole)
    paired = steps.pair(onto.changed_documents, job.config, job.workers, read=onto.read, forced=job.forced)
    for name, table in onto.keep().items():
        is_longer = name == "shingles" and not len(old.taken)
        changed, absent = (np.empty(0, np.int64), len(old.shingles.nodes)) if is_longer else (None, 0)
        job.save(name, table, changed=changed, absent=absent)
    job.workers.parts = None  # the places of OLD's records are not known
    pairs = onto.take_over("pairs", paired.pairs).sort_by([("doc_a", "ascending"), ("doc_b", "ascending")])
    counts = {**paired.stage_counts, **onto.counts()}
    if onto.changed is not None:
        counts |= count_untold("pairs", old.metrics, counts, job.config)
    made = Made(saved={"pairs": job.save("pairs", pairs)}, counts=counts)
    return PairedHere(job, documents, paired, made, onto if onto.changed is not None else None)


@dataclass(frozen=True)
class PairedHere:
    """A `PairedRun`, of all documents or of those that a run onto another changes."""

    job: Job
    documents: pa.Table
    paired: steps.Paired
    made: Made
    onto: Onto | None = None
    """What takes over the rows about all other documents; None where `paired` is about all."""

    def cluster(self) -> "ClusteredHere":
        """As `PairedRun.cluster`."""
        job, onto = self.job, self.onto
        clustered = steps.cluster(self.paired, job.config, job.workers)
        tables, counts = {name: getattr(clustered, name) for name in names.COUNTS}, clustered.counts
        if onto is not None:
            tables = {name: steps.in_order(name, onto.take_over(name, tables[name])) for name in tables}
            counts = counts | _count_clusters(job, tables)
            counts |= count_untold("clusters", onto.old.metrics, clustered.counts, job.config)
        saved = {
            name: job.save(name, tables[name], counts={key: counts[key] for key in keys})
            for name, keys in names.COUNTS.items()
        }
        return ClusteredHere(self, clustered, Made(saved=saved, counts=counts))


def _count_clusters(job: Job, tables: Mapping[str, pa.Table]) -> dict[str, int]:
    asked = job.ask(**tables)
    counts = {key: n for name, keys in names.COUNTS.items() if keys for key, n in asked.count(name, keys).items()}
    for table in asked.sql(names.COMPONENTS).to_pylist():
        counts |= table
    asked.forget()
    return counts


@dataclass(frozen=True)
class ClusteredHere:
    """A `ClusteredRun`."""

    of: PairedHere
    clustered: steps.Clustered
    made: Made

    def keep(self) -> Made:
        """As `ClusteredRun.keep`. Sealed last: its note means that all five tables are there, and has their counts."""
        job, paired, documents = self.of.job, self.of.paired, self.of.documents
        kept = steps.keep(paired, self.clustered, job.config)
        if self.of.onto is not None:
            kept = steps.in_place(self.of.onto.take_over("keep", kept.keep), documents["doc_id"])
            paired = replace(paired, pairs=self.of.made.tables["pairs"])
        counts = steps.count_choices(documents, paired, self.clustered, kept, job.config, job.forced)
        stages = {"pairs": self.of.made.counts, "clusters": self.made.counts, "keep": counts}
        return Made(saved={"keep": job.save("keep", kept.keep, counts=kept.counts, stages=stages)}, counts=counts)


@dataclass(frozen=True)
class PairedBefore:
    """A `PairedRun` and a `ClusteredRun` whose tables an earlier attempt left."""

    job: Job
    made: Made
    counts: Mapping[str, Mapping[str, Any]]
    """Of each stage."""

    def cluster(self) -> "PairedBefore":
        """As `PairedRun.cluster`."""
        return replace(self, made=Made(saved=self.job.take(*names.COUNTS), counts=self.counts["clusters"]))

    def keep(self) -> Made:
        """As `ClusteredRun.keep`."""
        return Made(saved=self.job.take("keep"), counts=self.counts["keep"])
