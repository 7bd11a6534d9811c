"""A run in this process and its workers, without a JVM: the steps of `nddup.embedded.steps` as a run takes them.

A resumed run takes over the documents of an earlier attempt. All that follows from them was made in one go, so it is
taken over whole or not at all.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from nddup.compiling.install import compile_once
from nddup.embedded import outputs
from nddup.embedded import steps as engine
from nddup.embedded.memory import Memory
from nddup.embedded.processes import Processes
from nddup.embedded.read_records import take_saved
from nddup.embedded.workers import Workers
from nddup.engines.choose import memory_of
from nddup.engines.engine import EngineTable
from nddup.ground.metrics import JsonValue
from nddup.ground.progress import LocalProgress, LogFormat, Progress, Steps
from nddup.mining.keep_verdicts import Forced
from nddup.scanning.collection import Collection
from nddup.settings import plan
from nddup.settings.plan import record_limits, text_rule
from nddup.settings.schema import Config
from nddup.sketching.vocabulary import COUNTED
from nddup.stages import names
from nddup.stages.run import make_run
from nddup.stages.run_engine import Made, RunEngine, Saved
from nddup.stages.stage import dependencies_of, reads_contents
from nddup.storage.local_folder import LocalFolder, MemoryTables
from nddup.storage.local_storage import LocalStorage, local_path

if TYPE_CHECKING:
    from nddup.engines.duck import DuckEngine
    from nddup.engines.engine import FinishedRun

PAIRED = ("pairs", "clusters", "members", "false_components", "keep")
"""The tables that follow from the documents. They are made together, in memory."""


@dataclass
class LocalJob(RunEngine):
    """A run on the embedded engine."""

    config: Config
    store: LocalFolder | MemoryTables
    workers: Workers
    progress: Progress
    resumed: dict[str, None] = field(default_factory=dict)
    forced: Forced | None = None

    @property
    def folder(self) -> LocalFolder:
        """As `RunEngine.folder`."""
        return cast("LocalFolder", self.store)

    @property
    def files(self) -> LocalStorage:
        """The files of this machine."""
        return LocalStorage()

    def require_able(self, source: Collection) -> None:
        """As `RunEngine.require_able`."""
        del source
        words, saved = plan.words_of(self.config), self.config.lexicon.saved
        if saved is not None and words is not None:
            take_saved(saved, words)

    def prepare(self, steps: Steps) -> None:
        """Compile the kernels, once for an installation."""
        compile_once(steps)

    @contextmanager
    def attempt(self, source: Collection) -> Iterator[None]:
        """Remove what a killed attempt left in the folder of the worker processes."""
        del source
        if self.workers.spool is not None:
            shutil.rmtree(self.workers.spool, ignore_errors=True)
        yield

    @cached_property
    def _duck(self) -> "DuckEngine":
        from nddup.engines.duck import DuckEngine  # noqa: PLC0415 - not every run asks a question

        return DuckEngine("this run")

    def ask(self, **tables: pa.Table) -> "DuckEngine":
        """As `RunEngine.ask`."""
        for name, table in tables.items():
            self._duck.see(name, table)
        return self._duck

    def find(self, name: str) -> Saved | None:
        """As `RunEngine.find`; the table itself is not read."""
        noted = self._note(name)
        if noted is None:
            return None
        self.resumed[name] = None
        return Saved(None, noted["rows"], noted["counts"], noted["noted"])

    def _note(self, name: str) -> Mapping[str, Any] | None:
        return self.store.note(name, **dependencies_of(name, self.config))

    def put(self, name: str, table: pa.Table, **noted: JsonValue) -> Saved:
        """As `RunEngine.put`."""
        return self.save(name, table, **noted)

    def save(self, name: str, table: pa.Table, *, counts: Mapping[str, int] | None = None, **noted: JsonValue) -> Saved:
        """Write a table and seal it; a later attempt of either engine finds it with its counts and what is noted."""
        self.progress.describe(name)
        counts = counts or {}
        self.store.write(name, table, on_rows_written=partial(self.workers.report_progress, f"write {name}"))
        counted = {"rows": len(table), "counts": counts, "noted": noted}
        self.store.seal(name, **dependencies_of(name, self.config), counted=counted)
        return Saved(table, len(table), counts, noted)

    # The steps.

    def sketch(self, source: Collection | pa.Table) -> Made:
        """As `RunEngine.sketch`. Returns PARTS in `own`, if kept documents are to be read again.

        An earlier attempt's documents are taken if all tables of the step are there.
        """
        names = ["documents", "rejects"]
        names += ["parts"] if reads_contents(self.config) else []
        words = plan.words_of(self.config)
        names += ["lexicon"] if words is not None and words.needs_lexicon else []
        is_there = all(self._note(name) is not None for name in names)
        found = self._take(*names) if is_there else self._read(source)
        documents, rejects = found["documents"], found["rejects"]
        counts = {**documents.counts, **documents.noted, **rejects.noted}
        if (lexicon := found.get("lexicon")) is not None:
            counts["lexicon"] = {"terms": lexicon.rows, **lexicon.noted}
        parts = found["parts"].table if "parts" in found else None
        return _made({"documents": documents, "rejects": rejects}, counts, parts)

    def _read(self, source: Collection | pa.Table) -> dict[str, Saved]:
        sketched = engine.sketch(source, self.config, self.workers, renames=isinstance(source, Collection))
        self.workers.parts = sketched.parts
        counts: dict[str, Any] = sketched.counts
        saved: dict[str, Saved] = {}
        if sketched.lexicon is not None:
            words: dict[str, Any] = {name: counts[f"lexicon_{name}"] for name in COUNTED}
            saved["lexicon"] = self.save("lexicon", sketched.lexicon, **words)
        noted = {name: counts[name] for name in engine.NOTED if name in counts}
        again, sizes = sorted(self.workers.read_again), engine.count_sketches(sketched.documents)
        saved["documents"] = self.save(
            "documents", sketched.documents, counts=sizes, splitting={}, read_again=again, **noted
        )
        saved["rejects"] = self.save("rejects", sketched.rejects, reasons=sketched.reasons)
        if reads_contents(self.config):
            saved["parts"] = self.save("parts", sketched.parts)
        return saved

    def pair(self, sketched: Made, source: EngineTable, known: pa.Table | None = None) -> Made:
        """As `RunEngine.pair`. Returns the result of `engine.pair` in `own`, None if an earlier attempt has it all."""
        if self._counts_before:
            return _made(self._take("pairs"), self._counts_before["pairs"])
        documents = sketched.tables["documents"]
        sizes = sum(len(chunk.flatten()) for chunk in documents["sketch"].chunks)
        self.workers.memory.hold(len(documents), sizes, is_copied=sketched.rows.get("rejects", 0) > 0)
        found = engine.pair(documents, self.config, self.workers, source, known=known, forced=self.forced)
        return _made({"pairs": self.save("pairs", found.pairs)}, found.stage_counts, found)

    def cluster(self, sketched: Made, paired: Made) -> Made:
        """As `RunEngine.cluster`. Returns the result of `engine.cluster` in `own`, or None."""
        del sketched
        if paired.own is None:
            return _made(self._take("clusters", "members", "false_components"), self._counts_before["clusters"])
        found = engine.cluster(paired.own, self.config, self.workers)
        saved = {
            table: self.save(table, getattr(found, table), counts={name: found.counts[name] for name in counts})
            for table, counts in names.COUNTS.items()
        }
        return _made(saved, found.counts, found)

    def keep(self, sketched: Made, paired: Made, clustered: Made) -> Made:
        """As `RunEngine.keep`. Sealed last: its note means that all five tables are there, and holds their counts."""
        if paired.own is None:
            return _made(self._take("keep"), self._counts_before["keep"])
        found, documents = engine.keep(paired.own, clustered.own, self.config), sketched.tables["documents"]
        counts = engine.count_choices(documents, paired.own, clustered.own, found, self.config, self.forced)
        stages = {"pairs": paired.counts, "clusters": clustered.counts, "keep": counts}
        return _made({"keep": self.save("keep", found.keep, counts=found.counts, stages=stages)}, counts)

    @cached_property
    def _counts_before(self) -> Mapping[str, Mapping[str, Any]]:
        """The counts of pairs, clusters and keep by stage, if an earlier attempt left all their tables; else empty."""
        notes = {name: self._note(name) for name in PAIRED}
        last = notes["keep"]
        return {} if last is None or None in notes.values() else last["noted"].get("stages", {})

    def _take(self, *names: str) -> dict[str, Saved]:
        """Return these tables as an earlier attempt left them, all of which are there."""
        found = {name: saved for name in names if (saved := self.find(name)) is not None}
        return {name: replace(saved, table=self.store.read(name)) for name, saved in found.items()}

    # What is written beside the tables.

    def write_duplicates(self, clustered: Made) -> None:
        """As `RunEngine.write_duplicates`."""
        tables = clustered.tables
        self.folder.write_text("duplicates.txt", outputs.spell_clusters(tables["clusters"], tables["members"]))

    def write_context(self, sketched: Made) -> None:
        """As `RunEngine.write_context`."""
        self.folder.write_text("context.fimi", outputs.spell_features(sketched.tables["documents"]))

    def write_kept(self, source: Collection, sketched: Made, kept: Made) -> int:
        """As `RunEngine.write_kept`."""
        documents, keep = sketched.tables["documents"], kept.tables["keep"]
        ids = keep.filter(keep["kept"])["doc_id"]
        chosen = documents.filter(pc.is_in(documents["doc_id"], ids.combine_chunks()))
        read = self._reader(source).find_kept(chosen, sketched.own)
        return outputs.write_kept(read, Path(local_path(f"{self.folder.path}/kept")), self.config.output.kept)

    @contextmanager
    def hold(self, verdicts: pa.Table) -> Iterator[pa.Table]:
        """As `RunEngine.hold`: in memory, sorted by source and record."""
        from nddup.embedded.rewrite import in_order  # noqa: PLC0415 - most runs write no input again

        yield in_order(verdicts)

    def rewrite(self, source: Collection, verdicts: pa.Table, apart: str, *, is_tagging: bool) -> int:
        """As `RunEngine.rewrite`."""
        from nddup.embedded.rewrite import Rewriter  # noqa: PLC0415

        is_first, where = self.config.input.limit is not None, Path(local_path(apart))
        rewriter = Rewriter(source, verdicts, is_tagging, is_first, record_limits(self.config))
        try:
            return rewriter.write(where, self.workers).records
        except BaseException:
            shutil.rmtree(where, ignore_errors=True)  # nothing looks finished, and a full disk is freed
            raise

    def read_texts(self, source: Collection, sketched: Made, documents: Mapping[str, tuple[str, bytes]]) -> pa.Table:
        """As `RunEngine.read_texts`."""
        rows = sketched.tables["documents"].select(["doc_id", "doc_key"])
        keys = rows.filter(pc.is_in(rows["doc_id"], pa.array(list(documents), pa.string())))["doc_key"]
        return self._reader(source).find_texts(documents, places=outputs.places_of(keys, self.workers.parts))

    def _reader(self, source: Collection) -> outputs.Reader:
        return outputs.Reader(source, text_rule(self.config), record_limits(self.config), self.workers)

    def see_other(self, run: "FinishedRun") -> "FinishedRun":
        """As `RunEngine.see_other`."""
        return run

    def open_other(self, path: str) -> "FinishedRun":
        """As `RunEngine.open_other`."""
        from nddup.engines.duck import DuckRun  # noqa: PLC0415 - few runs read another

        return DuckRun(path)

    def open_finished(self) -> "FinishedRun":
        """As `RunEngine.open_finished`."""
        from nddup.engines.duck import DuckRun  # noqa: PLC0415 - a run without a report needs no DuckDB

        self.workers.end_processes()  # all is read
        return DuckRun(self.folder.path)


def _made(saved: Mapping[str, Saved], counts: Mapping[str, Any], own: EngineTable = None) -> Made:
    tables, rows = {name: one.table for name, one in saved.items()}, {name: one.rows for name, one in saved.items()}
    return Made(tables=tables, rows=rows, counts=counts, own=own)


def run_locally(
    inputs: list[str],
    output: str,
    config: Config,
    *,
    log_format: LogFormat = "text",
    processes: Processes | None = None,
    **how: JsonValue,
) -> dict[str, Any]:
    """Make a run on this machine, without Spark.

    Args:
        inputs: files and folders of this machine.
        output: the run's folder.
        config: all settings.
        log_format: of the line that each stage leaves in the log.
        processes: worker processes that were started already, if any; they end with the run.
        **how: `overwrite`, `resume`, `first_log_line` and `earlier`, as `nddup.stages.run.make_run` takes them.

    Returns:
        The metrics, as in `metrics.json`.

    Raises:
        NddupError: as `make_run`.

    Cost: all sketches, their postings and the pairs are in memory together (`nddup.embedded.memory`).
    """
    folder, progress = LocalFolder(output), LocalProgress(form=log_format)
    spool, memory = Path(local_path(folder.spool)), Memory(memory_of(config))
    with Workers(plan.processes_of(config), processes, spool, progress.step, memory) as workers:
        engine_of_run = LocalJob(config, folder, workers, progress)
        return make_run(engine_of_run, inputs, log_format=log_format, **how)
