"""A whole run on one machine, without a JVM: the same folder as `nddup.run.job` leaves."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nddup.errors import NddupError
from nddup.local import engine, outputs
from nddup.local.term_counts import take_saved
from nddup.local.workers import Workers
from nddup.metrics import (
    ClustersMetrics,
    KeepMetrics,
    LexiconMetrics,
    PairsMetrics,
    SketchMetrics,
    StageMetrics,
    Stages,
    TextsMetrics,
)
from nddup.opened.duck import DuckRun
from nddup.report.folder import report_run
from nddup.run.lexicon_note import NOTE, note_of
from nddup.run.limits import UNREADABLE, require_few_rejects, require_readable
from nddup.run.lineage import made_of
from nddup.run.measures import Unpaired, metrics_of, skipped_files
from nddup.run.progress import LogFormat, Progress, say
from nddup.run.stage import M, Stage, measured, settings_of
from nddup.scanning.collection import Collection, find_files
from nddup.scanning.text_choice import Choice, choose_documents
from nddup.settings import derive
from nddup.settings.scan_rules import limits_of, text_rule
from nddup.settings.schema import Config
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import LocalStorage, local_path

PAIRED = ("pairs", "clusters", "members", "false_components", "keep")
"""The tables that follow from the documents. They are made together, in memory."""


@dataclass
class LocalJob:
    """What the steps of one run share."""

    config: Config
    folder: LocalFolder
    workers: Workers
    progress: Progress
    resumed: dict[str, None] = field(default_factory=dict)

    def stage(self, name: str, counts: type[M]) -> AbstractContextManager[Stage[M]]:
        """Run a stage: show it and measure its seconds."""
        return measured(self.progress, name, counts, resumed=self.resumed)

    def find(self, name: str) -> Mapping[str, Any] | None:
        """What was noted of a table that an earlier attempt left, if this one would make the same."""
        noted = self.folder.note(name, **made_of(name, self.config))
        if noted is not None:
            self.resumed[name] = None
        return noted

    def save(self, name: str, table: pa.Table, **noted: Any) -> None:  # noqa: ANN401 - JSON values
        """Write a table and seal it; a later attempt finds it with its counts and with what is noted here."""
        self.progress.describe(name)
        counts = noted.pop("counts", {})
        self.folder.write(name, table)
        counted = {"rows": len(table), "counts": counts, "noted": noted}
        self.folder.seal(name, **made_of(name, self.config), counted=counted)


@dataclass(frozen=True)
class _Sketched:
    """What the first stage leaves: the documents, how to read them again, and what was counted."""

    documents: pa.Table
    reader: outputs.Reader
    parts: pa.Table | None
    metrics: SketchMetrics


@dataclass(frozen=True)
class _Found:
    """What the other stages leave."""

    clusters: pa.Table
    members: pa.Table
    keep: pa.Table
    stages: tuple[PairsMetrics, ClustersMetrics, KeepMetrics]
    unpaired: Unpaired


def run_locally(  # noqa: PLR0913 - what the command line takes
    inputs: list[str],
    output: str,
    config: Config,
    *,
    overwrite: bool = False,
    resume: bool = False,
    log_format: LogFormat = "text",
    says: str = "",
) -> dict[str, Any]:
    """As `nddup.run.job.run_job`, without Spark: arguments, what is left and errors are the same.

    Cost: all sketches, their postings and the pairs are in memory together.
    """
    storage, folder = LocalStorage(), LocalFolder(output)
    source = find_files(storage, inputs, config.input)

    # What can be refused is refused before anything is written.
    require_readable(source.unread, config.input.max_unreadable)
    paths = [storage.full_path(path) for path in inputs]
    words = derive.words_of(config)
    if config.lexicon.saved is not None and words is not None:
        take_saved(config.lexicon.saved, words)
        paths.append(storage.full_path(config.lexicon.saved))

    files = {file.source: [file.size, file.modified] for file in source.listing.files}
    begin: dict[str, Any] = {"settings": settings_of(config), "inputs": {"paths": paths, "files": files}}
    with folder, Workers(derive.processes_of(config)) as workers:
        said = partial(say, form=log_format)
        if folder.start(**begin, overwrite=overwrite, resume=resume, say=said):
            return folder.open()
        if says:
            said(says)
        return _make_all(LocalJob(config, folder, workers, Progress(form=log_format)), source)


def _make_all(job: LocalJob, source: Collection) -> dict[str, Any]:
    """Every table and file of a run in its folder; the metrics."""
    sketched = _sketch(job, source)
    found = _find_clusters(job, sketched)

    job.folder.write_text("duplicates.txt", outputs.spell_clusters(found.clusters, found.members))
    if job.config.output.context:
        job.folder.write_text("context.fimi", outputs.spell_features(sketched.documents))
    _write_kept_once(job, sketched, found)
    with job.stage("texts", TextsMetrics) as stage:
        texts = _store_texts(job, source, sketched, found)
        stage.done(texts, f"{texts.rows_out['texts']:,} texts for the report")

    if sketched.metrics.lexicon is not None:
        job.folder.write_text(NOTE, note_of(job.config, sketched.metrics.lexicon))

    pairs, clusters, keep = found.stages
    stages = Stages(sketch=sketched.metrics, pairs=pairs, clusters=clusters, keep=keep, texts=stage.metrics)
    metrics = metrics_of(job.config, stages, found.unpaired).dump()
    job.folder.finish(metrics)
    if job.config.output.report:
        with job.stage("report", StageMetrics) as report:
            report.notes.append(report_run(DuckRun(job.folder.path), job.folder))
    return metrics


def _sketch(job: LocalJob, source: Collection) -> _Sketched:
    """Read and sketch every record, unless an earlier attempt did."""
    with job.stage("sketch", SketchMetrics) as stage:
        reader = outputs.Reader(source, text_rule(job.config), limits_of(job.config), job.workers)
        metrics = _find_sketched(job, source)
        if metrics is not None:
            documents = job.folder.read("documents")
            parts = job.folder.read("parts") if job.config.output.kept != "none" else None
        else:
            documents, parts, metrics = _read(job, source)
        rows = metrics.rows_out
        stage.done(metrics, f"{rows['documents']:,} documents", f"{rows['rejects']:,} rejects")
    return _Sketched(documents, reader, parts, stage.metrics)


def _find_sketched(job: LocalJob, source: Collection) -> SketchMetrics | None:
    """What an earlier attempt counted while it read; None if it did not come to the end of it."""
    names = ["documents", "rejects"]
    names += ["parts"] if job.config.output.kept != "none" else []
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
    words = derive.words_of(config)
    return words is not None and words.needs_lexicon


def _read(job: LocalJob, source: Collection) -> tuple[pa.Table, pa.Table, SketchMetrics]:
    """Documents, parts, and what was counted; all tables of the stage are saved."""
    sketched = engine.sketch(source, job.config, job.workers)
    documents, rejects, reasons = sketched.documents, sketched.rejects, sketched.reasons
    if UNREADABLE in reasons:
        names = ("source", "reason", "detail")
        rows = zip(*(rejects[name].to_pylist() for name in names), strict=True)
        require_readable(sorted(rows), job.config.input.max_unreadable)
    records = len(documents) + len(rejects)
    require_few_rejects(records, len(rejects), reasons, job.config.input.max_rejects)

    counts, lexicon = sketched.counts, sketched.lexicon
    metrics = _sketch_metrics(source, len(documents), len(rejects), reasons=reasons, counts=counts, lexicon=None)
    if lexicon is not None:
        words = {name: counts[f"lexicon_{name}"] for name in ("counted", "occurrences", "commonest")}
        metrics = metrics.model_copy(update={"lexicon": LexiconMetrics(terms=len(lexicon), **words)})
        job.save("lexicon", lexicon, **words)

    noted = {name: counts[name] for name in ("undecodable_records", "undecodable_places", "left_out_shingles")}
    sizes = engine.count_sketches(documents)
    job.save("documents", documents, counts=sizes, splitting={}, read_again=[], **noted)
    job.save("rejects", rejects, reasons=reasons)
    if job.config.output.kept != "none":
        job.save("parts", sketched.parts)
    return documents, sketched.parts, metrics


def _sketch_metrics(  # noqa: PLR0913 - what the file says
    source: Collection,
    documents: int,
    rejects: int,
    *,
    reasons: Mapping[str, int],
    counts: Mapping[str, Any],
    lexicon: LexiconMetrics | None,
) -> SketchMetrics:
    names = ("files_read_again", "undecodable_records", "undecodable_places", "left_out_shingles")
    return SketchMetrics(
        rows_in={"records": documents + rejects},
        rows_out={"documents": documents, "rejects": rejects},
        bytes=sum(file.size for file in source.listing.files),
        files=len(source.listing.files),
        skipped_files=skipped_files(source.listing),
        rejected=dict(reasons),
        lexicon=lexicon,
        **{name: counts[name] for name in names},
    )


def _find_clusters(job: LocalJob, sketched: _Sketched) -> _Found:
    """Pairs, clusters and keep-list: taken from an earlier attempt if all are there, else made anew."""
    noted = {name: job.find(name) for name in PAIRED}
    last = noted["keep"]
    if last is not None and None not in noted.values() and "stages" in last["noted"]:
        return _take_found(job, last["noted"])
    for name in PAIRED:
        job.resumed.pop(name, None)

    rows = sketched.metrics.rows_out["documents"]
    with job.stage("pairs", PairsMetrics) as pairing:
        paired = engine.pair(sketched.documents, job.config, job.workers)
        job.save("pairs", paired.pairs)
        pairing.done(
            PairsMetrics(
                rows_in={"documents": rows},
                rows_out={"pairs": len(paired.pairs)},
                pruned_to=paired.pruned_to,
                **{name: paired.counts[name] for name in _PAIR_COUNTS},
            ),
            f"{len(paired.pairs):,} pairs",
            f"{paired.counts['candidates']:,} candidates",
        )

    with job.stage("clusters", ClustersMetrics) as clustering:
        clustered = engine.cluster(paired, job.config, job.workers)
        tables = {name: getattr(clustered, name) for name in ("clusters", "members", "false_components")}
        for name, table in tables.items():
            job.save(name, table)
        counted = ClustersMetrics(
            rows_in={"pairs": len(paired.pairs)},
            rows_out={name: len(table) for name, table in tables.items()},
            **{name: clustered.counts[name] for name in _CLUSTER_COUNTS},
        )
        clustering.done(counted, f"{len(clustered.clusters):,} clusters")

    unpaired = Unpaired(*(paired.counts[name] for name in Unpaired._fields))
    with job.stage("keep", KeepMetrics) as keeping:
        kept = engine.keep(paired, clustered, job.config)
        number = kept.counts["kept"]
        keeping.done(
            KeepMetrics(
                rows_in={"documents": rows}, rows_out={"keep": len(kept.keep)}, kept=number, removed=rows - number
            ),
            f"{number:,} kept",
        )
        stages = (pairing.metrics, clustering.metrics, keeping.metrics)
        dumped = [stage.model_dump(exclude=_MEASURED) for stage in stages]
        job.save("keep", kept.keep, stages=dumped, unpaired=list(unpaired))
    stages = (pairing.metrics, clustering.metrics, keeping.metrics)
    return _Found(clustered.clusters, clustered.members, kept.keep, stages, unpaired)


_MEASURED = {"seconds", "shuffle_bytes", "resumed"}
_PAIR_COUNTS = ("distinct_sketches", "postings", "candidates", "crowd", "cut_features", "cut_postings")
_CLUSTER_COUNTS = (
    "components", "largest_component", "fpgrowth_components", "fpgrowth_fits", "covered_components",
    "covered_clusters", "led_components", "led_clusters", "invented_pairs", "most_invented", "bounded_components",
    "spread_components", "shares", "pairs_below_support",
)  # fmt: skip


def _take_found(job: LocalJob, noted: Mapping[str, Any]) -> _Found:
    """The tables of an earlier attempt, and what it counted."""
    tables = [job.folder.read(name) for name in ("clusters", "members", "keep")]
    pairs, clusters, keep = noted["stages"]
    with job.stage("keep", KeepMetrics) as stage:
        stage.done(KeepMetrics(**keep), "taken from an earlier attempt")
    stages = (PairsMetrics(**pairs), ClustersMetrics(**clusters), stage.metrics)
    return _Found(tables[0], tables[1], tables[2], stages, Unpaired(*noted["unpaired"]))


def _write_kept_once(job: LocalJob, sketched: _Sketched, found: _Found) -> None:
    """The kept documents, where they are asked for and no earlier attempt has written them to the end."""
    form, made = job.config.output.kept, made_of("kept", job.config)
    if form == "none" or sketched.parts is None:
        job.folder.clear("kept")
        return
    if job.folder.has("kept", **made):
        return

    with job.stage("output", StageMetrics) as stage:
        job.folder.clear("kept")
        ids = found.keep.filter(found.keep["kept"])["doc_id"]
        chosen = sketched.documents.filter(pc.is_in(sketched.documents["doc_id"], ids.combine_chunks()))
        read = sketched.reader.find_kept(chosen, sketched.parts)
        written = outputs.write_kept(read, Path(local_path(f"{job.folder.path}/kept")), form)
        if written != len(chosen):
            raise NddupError(f"{written} of {len(chosen)} kept documents were found again: the input changed meanwhile")
        job.folder.seal("kept", **made, counted={})
        stage.notes.append(f"kept documents as {form}")


def _store_texts(job: LocalJob, source: Collection, sketched: _Sketched, found: _Found) -> TextsMetrics:
    """Leave the table `texts`: the files of the documents that are chosen are read again."""
    noted = job.find("texts")
    if noted is None:
        options, choice = job.config.output, Choice({}, [], 0)
        if options.texts:
            sizes = {file.source: file.size for file in source.listing.files}
            sampled = options.texts // 2
            rows = outputs.list_shown(found.clusters, found.members, sketched.documents, sampled=sampled)
            choice = choose_documents(rows, sizes, most=options.texts, most_bytes=int(options.texts_read))
        texts = sketched.reader.find_texts(choice.documents)
        counted = {"clusters": len(choice.clusters), "beyond_files": choice.beyond_files}
        job.save("texts", texts, **counted)
        noted = {"rows": len(texts), "noted": counted}
    return TextsMetrics(rows_in={"clusters": len(found.clusters)}, rows_out={"texts": noted["rows"]}, **noted["noted"])
