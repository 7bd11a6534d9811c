"""The order of a run, on either engine. Each line of `find_clusters` makes the tables named beside it, or finds them.

    begin      find the files, refuse what can be refused, claim the folder
    sketch     documents, rejects          files read once
    pairs      pairs                       near-duplicate sketches, then documents
    clusters   clusters, members, false_components
    keep       keep
    output     duplicates.txt, context.fimi, kept/, tagged/
    texts      texts                       those that the report shows
    finish     metrics.json, _COMPLETE, report/

The steps are those of `nddup.stages.run_engine`; their counts become the metrics of their stage.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from nddup.engines.engine import Engine, EngineTable, FinishedRun
from nddup.errors import NddupError
from nddup.ground.metrics import (
    ClustersMetrics,
    KeepMetrics,
    PairsMetrics,
    SketchMetrics,
    StageMetrics,
    Stages,
    TextsMetrics,
)
from nddup.ground.progress import LogFormat, Steps, say
from nddup.ground.shown import MOST_NAMED, counted, name_some
from nddup.mining.keep_verdicts import FORCED_NOTE
from nddup.reading.id_lists import require_known
from nddup.scanning.collection import NOTHING, Batch, Collection, paths_of_batches
from nddup.scanning.first_records import note_ids, note_others
from nddup.scanning.read_again import TextChoice
from nddup.settings.load import read_stored
from nddup.settings.plan import stored_texts
from nddup.stages.families import list_families, names_after, require_other, require_other_place
from nddup.stages.framed_hosts import has_frames, list_framed
from nddup.stages.inputs_found import find_inputs, know_forced, note_changes, read_forced, read_ids_of
from nddup.stages.keep import find_idle_globs, find_idle_values
from nddup.stages.losses import SilentFile, require_few_losses, require_readable
from nddup.stages.onto import Chain, open_chain, require_name, whole_of
from nddup.stages.run_engine import Made, New, RunEngine, Saved, SketchedRun
from nddup.stages.stage import (
    AS_INPUT,
    NOTE,
    M,
    Unpaired,
    count_renamed,
    dependencies_of,
    measure_files,
    metrics_of,
    missing_outputs,
    name_counted,
    name_forced,
    name_unread,
    note_of,
    require_rewritable,
    settings_of,
)
from nddup.stages.written_records import choose_kept, judge_records
from nddup.storage.delta_log import DELTA, commit_table, require_delta
from nddup.storage.run_folder import digest
from nddup.tables import REPEATED


@dataclass(frozen=True)
class RunTables:
    """What the steps of a run made, and the counts and measures of their stages."""

    sketched: SketchedRun
    paired: Made
    clustered: Made
    kept: Made
    stages: Stages

    @property
    def tables(self) -> Mapping[str, Any]:
        """The tables by name, without the texts of the report."""
        return {**self.sketched.made.tables, **self.paired.tables, **self.clustered.tables, **self.kept.tables}

    @property
    def unpaired(self) -> Unpaired:
        """The documents that pairing treats apart."""
        return Unpaired(*(self.paired.counts[name] for name in Unpaired._fields))


def make_run(  # noqa: PLR0913 - what the command line takes
    engine: RunEngine,
    inputs: list[str],
    *,
    overwrite: bool = False,
    resume: bool = False,
    log_format: LogFormat = "text",
    first_log_line: str = "",
    earlier: FinishedRun | None = None,
    onto: str | None = None,
    batch: str | None = None,
    without: str | None = None,
) -> dict[str, Any]:
    """Find the near-duplicates of a collection and leave a finished run in a folder.

    Args:
        inputs: files and folders, any path of the engine.
        resume: finish an existing run, even one begun on the other engine: reuse tables whose inputs and settings are
            unchanged. Starts a run where there is none; does nothing where the run is already finished.
        first_log_line: written once nothing more can be refused.
        earlier: the run in memory that `output.names_from` names, if it is no folder: a version of a repository.
        onto: the folder of a finished run that this one goes on from; `inputs` are then what is new.
        batch: the name of the inputs: their sources are `NAME/…`.
        without: a list of ids: these documents leave the collection of a run onto another.

    Returns:
        The metrics, as in `metrics.json`.

    Raises:
        ConfigError: for an input that is missing or cannot be understood.
        OutputError: if the folder exists and may not be replaced, is not a run, cannot be written, or another run
            works there.
        NeedsSparkError: if the embedded engine would need more than `local.memory`; the tables saved before it stay.
        NddupError: if rejects exceed `input.max_rejects`, unreadable files exceed `input.max_unreadable`, or any
            other stated limit is passed. The folder then has no `_COMPLETE`.
    """
    folder, log = engine.folder, partial(say, form=log_format)
    with Steps("run", 2, is_quiet=log_format == "json") as steps:
        steps.begin("find the files and their formats")
        require_name(batch)
        source = NOTHING
        if inputs or onto is None:
            named = [Batch(batch or "", tuple(inputs))]
            source = find_inputs(engine.files, inputs, engine.config, batches=named, is_added=onto is not None)
        engine.forced = read_forced(engine.files, engine.config.keep.force)
        engine.earlier, engine.onto = earlier, onto
        engine.without = [] if without is None else read_ids_of(engine.files, without, "--without")
        chain = None if onto is None else open_chain(engine.folder_at(onto))
        if onto is not None:
            require_other_place(engine, onto, "--onto:")
        batches = [Batch(batch or "", tuple(map(engine.files.full_path, inputs)))]
        noted = _begin(engine, batches, source, chain)
        whole = source if chain is None else _whole(engine, source, chain)
        engine.prepare(steps, source)

    with folder:  # no other run works there meanwhile
        if folder.start(**noted, overwrite=overwrite, resume=resume, say=log):
            metrics = folder.open()
            read_stored(metrics["settings"], origin=f"{folder.path}/metrics.json")  # the summary is computed from them
        else:
            for line in (first_log_line, note_ids(engine.files, source.files), note_others(engine.files, source.files)):
                if line:
                    log(line)
            with engine.attempt(source):
                metrics = _make_all(engine, source, inputs, whole)
        _report(engine)
    return metrics


def _begin(engine: RunEngine, batches: list[Batch], source: Collection, chain: Chain | None) -> dict[str, Any]:
    """Return what the folder notes of settings and inputs, after refusing all that can be refused beforehand."""
    config = engine.config
    require_readable(source.unread, config.input.max_unreadable)
    require_rewritable(source, config)
    engine.require_able(source)
    require_delta(config.output.kept, is_on_spark=engine.is_on_spark)
    if config.output.names_from is not None:
        require_other(engine, config.output.names_from)
    if config.lexicon.saved is not None:
        require_other_place(engine, config.lexicon.saved, "lexicon.saved:")

    files = {file.source: file.state for file in source.listing.files}
    inputs: dict[str, Any] = name_forced(engine.forced)
    if chain is not None:
        chain.require_later(batches[0].name or None, source)
        batches, files = [*chain.batches, *(batches if files else [])], {**chain.files, **files}
        inputs["onto"] = {**chain.noted, "without": digest(engine.without)}
    saved = [] if config.lexicon.saved is None else [engine.files.full_path(config.lexicon.saved)]
    inputs |= {"paths": [*paths_of_batches(batches), *saved], "files": files}
    if any(batch.name for batch in batches):
        inputs["batches"] = [[name, list(paths)] for name, paths in batches]
    return {"settings": settings_of(config), "inputs": inputs}


def _whole(engine: RunEngine, source: Collection, chain: Chain) -> Collection:
    """Return the files of a run onto another and those behind it, if any text is read again for what it writes."""
    output = engine.config.output
    whys = {"output.texts": stored_texts(engine.config) > 0}
    whys |= {f"output.{name}": getattr(output, name) != "none" for name in ("kept", "tagged")}
    why = next((name for name, is_asked in whys.items() if is_asked), None)
    return source if why is None else whole_of(source, chain, engine.files, why)


def _make_all(engine: RunEngine, source: Collection, inputs: list[str], whole: Collection) -> dict[str, Any]:
    tables = find_clusters(engine, source)
    whole = whole.without_columns()

    _write_lists(engine, tables)
    _write_kept(engine, whole, tables)
    _rewrite(engine, whole, tables)
    if engine.config.output.names_from is not None:
        _name_families(engine, tables, engine.config.output.names_from)
    texts = _store_texts(engine, whole, tables)

    sketch = note_changes(tables.stages.sketch, engine.files, inputs, source)
    stages = tables.stages.model_copy(update={"sketch": sketch, "texts": texts})
    metrics = metrics_of(engine.config, stages, tables.unpaired, is_on_spark=engine.is_on_spark).dump()
    engine.folder.finish(metrics)
    return metrics


def find_clusters(engine: RunEngine, source: EngineTable) -> RunTables:
    """Make every table of a run, from its files or from TEXTS, in the store of the engine."""
    with engine.stage("sketch", SketchMetrics) as stage:
        sketched = engine.sketch(source)
        made, rows = sketched.made, sketched.made.rows
        lost = {reason: n for reason, n in made.counts["reasons"].items() if reason != REPEATED}
        ask, limits = partial(engine.ask, **made.tables), engine.config.input
        new = sketched.new or New(rows["documents"], lost)
        lost = {reason: n for reason, n in new.reasons.items() if reason != REPEATED}
        silent = require_few_losses(ask, new.documents, lost, limits, source)
        is_asked = has_frames(engine.config) and made.counts.get("addresses") and not sketched.new
        framed = list_framed(ask()) if is_asked else []
        metrics = _sketch_metrics(source, made, silent).model_copy(update={"framed_hosts": framed})
        if sketched.new:
            metrics = metrics.model_copy(update={"new_records": new.documents + sum(new.reasons.values())})
        notes = [counted(rows["documents"], "document"), counted(rows["rejects"], "reject")]
        notes += [f"{new.documents:,} of the documents new"] if sketched.new else []
        stage.done(metrics, *notes, *_note_taken(engine, made))
    again = source.without_columns() if isinstance(source, Collection) else source
    return decide(engine, sketched, stage.metrics, again)


def _note_taken(engine: RunEngine, sketched: Made) -> list[str]:
    """Return the notes on the documents taken out; unknown ids are refused as `require_known` says."""
    if not engine.without:
        return []
    named = [sorted(set(ids)) for ids in engine.without]
    text = "SELECT doc_id FROM rejects WHERE reason = 'taken out'"
    gone = set(engine.ask(**sketched.tables).sql(text)["doc_id"].to_pylist())
    unknown, ids = min((([one for one in ids if one not in gone], ids) for ids in named), key=lambda one: len(one[0]))
    require_known("--without", unknown[:MOST_NAMED], len(unknown), len(ids), all_known=engine.config.keep.all_known)
    notes = [f"{len(ids) - len(unknown):,} taken out"]
    return [*notes, f"unknown in --without: {name_some(unknown, len(unknown))}"] if unknown else notes


def decide(
    engine: RunEngine,
    sketched: SketchedRun,
    sketch: SketchMetrics,
    source: EngineTable,
    known: EngineTable = None,
) -> RunTables:
    """Make what follows from the documents: pairs, clusters and keep-list.

    Args:
        sketched: the documents of this run, or of another.
        sketch: the counts of their stage.
        source: as `SketchedRun.pair` takes it, and `known`.
        known: PAIRS of the same documents at a lower threshold.
    """
    documents, rows = sketched.made, {"documents": sketched.made.rows["documents"]}
    of_documents = partial(engine.ask, **documents.tables)
    engine.forced, unknown = know_forced(of_documents, engine.forced, all_known=engine.config.keep.all_known)
    idle = find_idle_globs(of_documents, engine.config.keep.prefer)
    idle_values = find_idle_values(of_documents, engine.config.keep.order.read)

    with engine.stage("pairs", PairsMetrics) as pairing:
        paired = sketched.pair(source, known)
        made = paired.made
        pairs = _counted(PairsMetrics, rows, made)
        pairing.done(pairs, counted(made.rows["pairs"], "pair"), counted(pairs.candidates, "candidate"), *made.notes)

    with engine.stage("clusters", ClustersMetrics) as clustering:
        clustered = paired.cluster()
        clusters = _counted(ClustersMetrics, {"pairs": paired.made.rows["pairs"]}, clustered.made)
        clustering.done(clusters, counted(clustered.made.rows["clusters"], "cluster"))

    with engine.stage("keep", KeepMetrics) as keeping:
        kept = _with_families(engine, documents, clustered.keep())
        named = {"forced_unknown": len(unknown), "forced_unknown_ids": unknown[:MOST_NAMED], "prefer_idle": idle}
        named |= {"listed_idle": idle_values}
        keep = _counted(KeepMetrics, rows, replace(kept, counts={**kept.counts, **named}))
        keeping.done(keep, f"{keep.kept:,} kept")

    stages = Stages(sketch=sketch, pairs=pairing.metrics, clusters=clustering.metrics, keep=keeping.metrics)
    return RunTables(sketched, paired.made, clustered.made, kept, stages)


def _with_families(engine: RunEngine, sketched: Made, kept: Made) -> Made:
    asked = engine.config.keep
    if asked.ledger is None:
        return kept
    saved = engine.find("families")
    if saved is None:
        tables = engine.ask(documents=sketched.tables["documents"], keep=kept.tables["keep"])
        saved = engine.put("families", list_families(tables, asked.ledger, asked.ledger_places))
        tables.forget()
    return replace(kept, saved={**kept.saved, "families": saved})


def _counted(kind: type[M], rows_in: Mapping[str, int], made: Made) -> M:
    """Return the metrics of a stage: the counts of its step that have a field there."""
    counts = {name: count for name, count in made.counts.items() if name in kind.model_fields}
    return kind.model_validate({"rows_in": rows_in, "rows_out": made.rows, **counts})


def _sketch_metrics(source: EngineTable, made: Made, silent: Sequence[SilentFile]) -> SketchMetrics:
    """Return the metrics of reading; an earlier version did not note all of the counts."""
    noted, rows = made.counts, made.rows
    counts = {
        **noted,
        **measure_files(source),
        **name_counted(noted),
        "unread_files": name_unread(silent),
        "rejected": dict(noted["reasons"]),
        "files_read_again": len(noted["read_again"]),
        "renamed_ids": count_renamed(noted, noted["reasons"]),
    }
    if not rows["documents"]:
        counts["median_tokens"] = None
    return _counted(SketchMetrics, {"records": sum(rows.values())}, replace(made, counts=counts))


def _write_lists(engine: RunEngine, run_tables: RunTables) -> None:
    folder = engine.folder
    if engine.forced is not None:
        folder.write_text(FORCED_NOTE, engine.forced.dump())
    engine.write_duplicates(run_tables.clustered)
    if engine.config.output.context:
        engine.write_context(run_tables.sketched.made)
    lexicon = run_tables.stages.sketch.lexicon
    if lexicon is not None:
        folder.write_text(NOTE, note_of(engine.config, lexicon))


def _write_kept(engine: RunEngine, source: Collection, run_tables: RunTables) -> None:
    """Write the kept documents, if they are requested and no earlier attempt has finished them."""
    folder, form, made = engine.folder, engine.config.output.kept, dependencies_of("kept", engine.config)
    if form == "none":
        folder.clear("kept")
    if form in ("none", AS_INPUT) or folder.has("kept", **made):
        return

    with engine.stage("output", StageMetrics) as stage:
        engine.progress.describe("kept")
        folder.clear("kept")
        chosen = choose_kept(_ask(engine, run_tables, "keep", "families"), engine.config)
        written, expected = run_tables.sketched.write_kept(source, chosen), run_tables.stages.keep.kept
        if written != expected:
            raise NddupError(f"{written} of {expected} kept documents were found again: the input changed meanwhile")
        if form == DELTA:
            commit_table(f"{folder.path}/kept")
        folder.seal("kept", **made, counted={})
        stage.notes.append(f"kept documents as {form}")


def _rewrite(engine: RunEngine, source: Collection, run_tables: RunTables) -> None:
    """Write the inputs without the removed documents, or with tags, as requested and not yet written."""
    folder = engine.folder
    waiting = missing_outputs(engine.config, folder)
    if not waiting:
        return

    asked = _ask(engine, run_tables, "documents", "rejects", "keep", "members", "families")
    judged = judge_records(asked, engine.config)
    with engine.stage("output", StageMetrics) as stage, engine.hold(judged) as verdicts:
        for name in waiting:
            engine.progress.describe(name)
            apart = folder.stage_output(name)
            written = engine.rewrite(source, verdicts, apart, is_tagging=name == "tagged")
            folder.publish(name)
            folder.seal(name, **dependencies_of(name, engine.config), counted={})
            stage.notes.append(f"{name}/: {counted(written, 'record')} as they came")


def _ask(engine: RunEngine, run_tables: RunTables, *names: str) -> Engine:
    return engine.ask(**{name: run_tables.tables[name] for name in names if name in run_tables.tables})


def _name_families(engine: RunEngine, run_tables: RunTables, path: str) -> None:
    """Save the table `names`, unless an earlier attempt took it from the same run."""
    with engine.stage("output", StageMetrics) as stage:
        earlier = engine.open_earlier(path)
        made_of = earlier.read_text("metrics.json") if engine.earlier is None else path  # a version never changes
        made_of = hashlib.sha256(made_of.encode()).hexdigest()[:32]
        saved = engine.find("names")
        if saved is None or saved.noted.get("made_of") != made_of:
            asked = engine.ask(documents=run_tables.tables["documents"], keep=run_tables.tables["keep"])
            saved = engine.put("names", asked.answer(names_after(earlier, asked)), made_of=made_of)
            asked.forget()
        stage.notes.append(f"{counted(saved.rows, 'name')} of families, by those of {path}")


def _store_texts(engine: RunEngine, source: Collection, run_tables: RunTables) -> TextsMetrics:
    """Save the table `texts`, unless it is there: the files of the chosen documents are read again."""
    with engine.stage("texts", TextsMetrics) as stage:
        texts = engine.find("texts") or _read_chosen(engine, source, run_tables)
        rows_in = {"clusters": run_tables.clustered.rows["clusters"]}
        metrics = TextsMetrics(rows_in=rows_in, rows_out={"texts": texts.rows}, **texts.noted)
        stage.done(metrics, f"{counted(texts.rows, 'text')} for the report")
    return stage.metrics


def _read_chosen(engine: RunEngine, source: Collection, run_tables: RunTables) -> Saved:
    """Choose the documents that the report shows, and save their texts."""
    choice = TextChoice({}, [], 0)
    if stored_texts(engine.config):
        from nddup.stages.report_texts import choose_texts  # noqa: PLC0415 - not every run has a report

        tables = {name: run_tables.tables[name] for name in ("clusters", "members", "documents", "pairs")}
        sizes = {file.source: file.size for file in source.listing.files}
        choice = choose_texts(engine.look(**tables), engine.config, sizes)
    texts = run_tables.sketched.read_texts(source, choice.documents)
    return engine.put("texts", texts, clusters=len(choice.clusters), beyond_files=choice.beyond_files)


def _report(engine: RunEngine) -> None:
    """Write the report of a finished run, unless it is there: the run may have been killed before its end."""
    if not engine.config.output.report:
        return
    from nddup.report.gather import is_reported, report_run  # noqa: PLC0415 - a run without a report needs no DuckDB

    if not is_reported(engine.folder):
        with engine.stage("report", StageMetrics) as reporting:
            reporting.notes.append(report_run(engine.open_finished(), engine.folder))
