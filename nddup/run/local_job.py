"""A whole run on one machine, without a JVM: it leaves the same folder as `nddup.run.job`."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nddup.errors import NddupError
from nddup.local import outputs
from nddup.local.memory import Memory
from nddup.local.reading.processes import Processes
from nddup.local.reading.read_records import take_saved
from nddup.local.reading.workers import Workers
from nddup.local.rewritten_files import Judged, Rewriter, list_verdicts
from nddup.metrics import (
    StageMetrics,
    Stages,
    TextsMetrics,
)
from nddup.mining.keep_verdicts import FORCED_NOTE, Forced
from nddup.report.borderline import SHOWN, decisive_of, find_closest
from nddup.run.compiling import compile_once
from nddup.run.engines import memory_of
from nddup.run.local_stages import Found, LocalJob, Sketched, find_clusters, sketch_documents
from nddup.scanning.collection import Collection
from nddup.scanning.first_records import note_ids
from nddup.scanning.read_again import TextChoice, add_pairs, choose_documents
from nddup.settings import plan
from nddup.settings.plan import record_limits, text_rule
from nddup.settings.schema import Config
from nddup.stages.inputs_found import find_inputs, note_changes, read_forced
from nddup.stages.losses import require_readable
from nddup.stages.progress import LocalProgress, LogFormat, say
from nddup.stages.stage import (
    AS_INPUT,
    NOTE,
    made_of,
    metrics_of,
    missing_outputs,
    name_forced,
    note_of,
    require_taggable,
    settings_of,
)
from nddup.steps import Steps
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import LocalStorage, local_path
from nddup.tables import PAIRS


def run_locally(  # noqa: PLR0913 - what the command line takes
    inputs: list[str],
    output: str,
    config: Config,
    *,
    overwrite: bool = False,
    resume: bool = False,
    log_format: LogFormat = "text",
    says: str = "",
    processes: Processes | None = None,
) -> dict[str, Any]:
    """Do the same as `nddup.run.job.run_job` without Spark: leave the same folder and raise the same errors.

    Args:
        inputs: files and folders of this machine.
        output: the run's folder.
        config: all settings.
        overwrite: replace an existing run.
        resume: finish an existing run, even one begun on Spark.
        log_format: of the line that each stage leaves in the log.
        says: the first line of the log.
        processes: worker processes that were started already, if any; they end with the run.

    Returns:
        The metrics, as in `metrics.json`.

    Raises:
        NeedsSparkError: if a step would need more than `local.memory`; the tables saved before it stay.

    Cost: all sketches, their postings and the pairs are in memory together (`nddup.local.memory`).
    """
    folder, progress, said = LocalFolder(output), LocalProgress(form=log_format), partial(say, form=log_format)
    spool, memory = Path(local_path(folder.spool)), Memory(memory_of(config))
    with Workers(plan.processes_of(config), processes, spool, progress.step, memory) as workers:
        with Steps("run", 2, is_quiet=log_format == "json") as steps:
            steps.begin("find the files and their formats")
            source = find_inputs(LocalStorage(), inputs, config)
            forced = read_forced(LocalStorage(), config.keep.force)
            begin = _begin(inputs, source, config, forced)
            compile_once(steps)
        job = LocalJob(config, folder, workers, progress, forced=forced)
        with folder:
            if folder.start(**begin, overwrite=overwrite, resume=resume, say=said):
                metrics = folder.open()
                _report(job, folder)
                return metrics
            shutil.rmtree(spool, ignore_errors=True)  # left by a killed attempt
            for line in (says, note_ids(LocalStorage(), source.files)):
                if line:
                    said(line)
            return _make_all(job, folder, source, inputs)


def _begin(inputs: list[str], source: Collection, config: Config, forced: Forced | None) -> dict[str, Any]:
    """Return what the folder notes about settings and inputs, after refusing all that can be refused beforehand."""
    require_readable(source.unread, config.input.max_unreadable)
    require_taggable(source, config)
    paths = [LocalStorage().full_path(path) for path in inputs]
    words = plan.words_of(config)
    if config.lexicon.saved is not None and words is not None:
        take_saved(config.lexicon.saved, words)
        paths.append(LocalStorage().full_path(config.lexicon.saved))

    files = {file.source: [file.size, file.modified] for file in source.listing.files}
    return {"settings": settings_of(config), "inputs": {"paths": paths, "files": files, **name_forced(forced)}}


def _make_all(job: LocalJob, folder: LocalFolder, source: Collection, inputs: list[str]) -> dict[str, Any]:
    """Make every table and file of a run in its folder; return the metrics."""
    sketched = sketch_documents(job, source)
    found = find_clusters(job, sketched, source)

    if job.forced is not None:
        folder.write_text(FORCED_NOTE, job.forced.dump())
    folder.write_text("duplicates.txt", outputs.spell_clusters(found.clusters, found.members))
    if job.config.output.context:
        folder.write_text("context.fimi", outputs.spell_features(sketched.documents))
    reader = outputs.Reader(source, text_rule(job.config), record_limits(job.config), job.workers)
    _write_kept_once(job, folder, reader, sketched, found)
    _write_again_once(job, folder, source, sketched, found)
    with job.stage("texts", TextsMetrics) as stage:
        texts = _store_texts(job, folder, reader, sketched, found)
        stage.done(texts, f"{texts.rows_out['texts']:,} texts for the report")

    if sketched.metrics.lexicon is not None:
        folder.write_text(NOTE, note_of(job.config, sketched.metrics.lexicon))

    pairs, clusters, keep = found.stages
    sketch = note_changes(sketched.metrics, LocalStorage(), inputs, source)
    stages = Stages(sketch=sketch, pairs=pairs, clusters=clusters, keep=keep, texts=stage.metrics)
    metrics = metrics_of(job.config, stages, found.unpaired).dump()
    folder.finish(metrics)
    _report(job, folder)
    return metrics


def _report(job: LocalJob, folder: LocalFolder) -> None:
    """Write the report of a finished run, unless it is there: the run may have been killed before its end."""
    if not job.config.output.report:
        return
    from nddup.opened.duck import DuckRun  # noqa: PLC0415 - a run without a report needs no DuckDB
    from nddup.report.write import is_reported, report_run  # noqa: PLC0415

    if not is_reported(folder):
        with job.stage("report", StageMetrics) as reporting:
            reporting.notes.append(report_run(DuckRun(folder.path), folder))


def _write_kept_once(
    job: LocalJob, folder: LocalFolder, reader: outputs.Reader, sketched: Sketched, found: Found
) -> None:
    """Write the kept documents, if they are asked for and no earlier attempt has finished them."""
    form, made = job.config.output.kept, made_of("kept", job.config)
    if form == AS_INPUT:
        return
    if form == "none" or sketched.parts is None:
        folder.clear("kept")
        return
    if folder.has("kept", **made):
        return

    with job.stage("output", StageMetrics) as stage:
        folder.clear("kept")
        ids = found.keep.filter(found.keep["kept"])["doc_id"]
        chosen = sketched.documents.filter(pc.is_in(sketched.documents["doc_id"], ids.combine_chunks()))
        read = reader.find_kept(chosen, sketched.parts)
        written = outputs.write_kept(read, Path(local_path(f"{folder.path}/kept")), form)
        if written != len(chosen):
            raise NddupError(f"{written} of {len(chosen)} kept documents were found again: the input changed meanwhile")
        folder.seal("kept", **made, counted={})
        stage.notes.append(f"kept documents as {form}")


def _write_again_once(job: LocalJob, folder: LocalFolder, source: Collection, sketched: Sketched, found: Found) -> None:
    """Write the inputs without the removed documents, or with tags, as asked for and not yet written."""
    waiting = missing_outputs(job.config, folder)
    if not waiting:
        return

    with job.stage("output", StageMetrics) as stage:
        judged = Judged(sketched.documents, folder.read("rejects"), found.keep, found.members)
        verdicts = list_verdicts(judged)
        is_first = job.config.input.limit is not None
        for name in waiting:
            job.progress.describe(name)
            rewriter = Rewriter(source, verdicts, name == "tagged", is_first, record_limits(job.config))
            apart = Path(local_path(folder.begin_apart(name)))
            try:
                written = rewriter.write(apart, job.workers).records
            except BaseException:
                shutil.rmtree(apart, ignore_errors=True)  # nothing looks finished, and a full disk is freed
                raise
            folder.put(name)
            folder.seal(name, **made_of(name, job.config), counted={})
            stage.notes.append(f"{name}/: {written:,} records as they came")


def _store_texts(
    job: LocalJob, folder: LocalFolder, reader: outputs.Reader, sketched: Sketched, found: Found
) -> TextsMetrics:
    """Save the table `texts`, unless it is there: the files of the chosen documents are read again."""
    noted = job.find("texts")
    if noted is None:
        options, choice = job.config.output, TextChoice({}, [], 0)
        if most := plan.stored_texts(job.config):
            sizes = {file.source: file.size for file in reader.collection.listing.files}
            sampled = most // 2
            rows = outputs.list_shown(found.clusters, found.members, sketched.documents, sampled=sampled)
            choice = choose_documents(rows, sizes, most=most, most_bytes=int(options.texts_read))
            nearest = _list_borderline(folder, sketched.documents, job.config)
            choice = add_pairs(choice, nearest, sizes, most_bytes=int(options.texts_read))
        texts = reader.find_texts(choice.documents)
        counted = {"clusters": len(choice.clusters), "beyond_files": choice.beyond_files}
        job.save("texts", texts, **counted)
        noted = {"rows": len(texts), "noted": counted}
    return TextsMetrics(rows_in={"clusters": len(found.clusters)}, rows_out={"texts": noted["rows"]}, **noted["noted"])


def _list_borderline(folder: LocalFolder, documents: pa.Table, config: Config) -> Iterator[dict[str, Any]]:
    """Yield the pairs nearest to the threshold, as `add_pairs` takes them."""
    from nddup.engines.embedded import DuckEngine  # noqa: PLC0415 - a run without texts and report needs no DuckDB

    decisive = decisive_of(settings_of(config))
    if decisive is None:
        return
    engine = DuckEngine(folder.path)
    engine.see("documents", documents)
    engine.see("pairs", folder.read("pairs", columns=PAIRS.names))
    for one in find_closest(engine, decisive, SHOWN):
        yield one._asdict()
