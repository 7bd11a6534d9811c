"""A run in this process and its workers, without a JVM: the steps of `nddup.embedded.steps` as a run takes them.

A resumed run takes over the documents of an earlier attempt. All that follows from them was made in one go, so it is
taken over whole or not at all.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.compiling.install import PARTS, USUAL, compile_once
from nddup.embedded import outputs
from nddup.embedded import steps as engine
from nddup.embedded.memory import Memory
from nddup.embedded.old_run import Old
from nddup.embedded.onto import Onto
from nddup.embedded.processes import Processes
from nddup.embedded.read_records import read_documents, take_saved
from nddup.embedded.workers import Workers
from nddup.engines.choose import memory_of
from nddup.engines.engine import EngineTable
from nddup.ground.columns import one_chunk, take
from nddup.ground.progress import LocalProgress, LogFormat, Progress, Steps
from nddup.ground.shown import JsonValue
from nddup.mining.keep_verdicts import Forced
from nddup.scanning.collection import Collection
from nddup.settings import plan
from nddup.settings.plan import record_limits, text_rule
from nddup.settings.schema import Config
from nddup.sketching.vocabulary import COUNTED
from nddup.stages import names
from nddup.stages.onto import count_untold
from nddup.stages.run import make_run
from nddup.stages.run_engine import Made, New, RunEngine, Saved
from nddup.stages.stage import dependencies_of, reads_contents
from nddup.stages.written_records import KeptFiles, added_fields, with_added
from nddup.storage.local_folder import Before, LocalFolder, MemoryTables
from nddup.storage.local_storage import LocalStorage, local_path
from nddup.tables import CHOSEN, ONTO, VERDICTS

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
    onto: str | None = None
    without: Sequence[Sequence[str]] = ()
    _onto: Onto | None = None
    """The search for pairs, where a later run may go on from this one."""

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
        compile_once(steps, USUAL if plan.is_usual(self.config) and not self.onto else PARTS)

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
        """As `RunEngine.ask`; one that an earlier attempt left is read."""
        for name, table in tables.items():
            self._duck.see(name, self.store.read(name) if table is None else table)
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

    def save(
        self,
        name: str,
        table: pa.Table,
        *,
        counts: Mapping[str, int] | None = None,
        changed: NDArray[np.int64] | None = None,
        absent: int = 0,
        **noted: JsonValue,
    ) -> Saved:
        """Write a table and seal it; a later attempt of either engine finds it with its counts and what is noted.

        Where `changed` is given, the table begins with the rows of the run that this one goes on from, in which only
        those places have changed; as many as `absent` are not in `table`.
        """
        self.progress.describe(name)
        counts, on_rows = counts or {}, partial(self.workers.report_progress, f"write {name}")
        if changed is None:
            self.store.write(name, table, on_rows_written=on_rows)
        else:
            old = None if self.onto is None else LocalFolder(self.onto)
            self.folder.write_onto(name, table, Before(old, changed, absent), on_rows_written=on_rows)
        counted = {"rows": absent + len(table), "counts": counts, "noted": noted}
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
        names += ["given"] if self.config.output.onto else []
        is_there = all(self._note(name) is not None for name in names)
        found = self._take(*names) if is_there else self._read(source)
        documents, rejects = found["documents"], found["rejects"]
        counts = {**documents.counts, **documents.noted, **rejects.noted}
        if (lexicon := found.get("lexicon")) is not None:
            counts["lexicon"] = {"terms": lexicon.rows, **lexicon.noted}
        parts = found["parts"].table if "parts" in found else None
        made = Made(saved={"documents": documents, "rejects": rejects}, counts=counts, own=parts)
        return made if self.onto is None else replace(made, new=self._count_new(made))

    @cached_property
    def _old(self) -> Old | None:
        if self.onto is not None:
            return Old.open(self.onto, len(self.config.keep.read)).without(self.without)
        return Old.nothing() if self.config.output.onto else None

    def _count_new(self, made: Made) -> New:
        old = Old.nothing() if self._old is None else self._old
        documents = int(np.count_nonzero(made.tables["documents"]["doc_key"].to_numpy() >= old.n_records))
        before = dict(zip(*_counted(old.rejects), strict=True))
        reasons = {reason: n - before.get(reason, 0) for reason, n in made.counts["reasons"].items()}
        return New(documents, {reason: n for reason, n in reasons.items() if n > 0})

    def _read(self, source: Collection | pa.Table) -> dict[str, Saved]:
        is_files = isinstance(source, Collection)
        sketched = engine.sketch(
            source, self.config, self.workers, renames=is_files, old=self._old if is_files else None
        )
        self.workers.parts = sketched.parts
        counts: dict[str, Any] = sketched.counts
        saved: dict[str, Saved] = {}
        if sketched.lexicon is not None:
            words: dict[str, Any] = {name: counts[f"lexicon_{name}"] for name in COUNTED}
            saved["lexicon"] = self.save("lexicon", sketched.lexicon, **words)
        noted = {name: counts[name] for name in engine.NOTED if name in counts}
        again, sizes = sorted(self.workers.read_again), engine.count_sketches(sketched.documents)
        changed = self._regrouped(sketched)
        saved["documents"] = self.save(
            "documents", sketched.documents, counts=sizes, changed=changed, splitting={}, read_again=again, **noted
        )
        saved["rejects"] = self.save("rejects", sketched.rejects, reasons=sketched.reasons)
        if reads_contents(self.config):
            saved["parts"] = self.save("parts", sketched.parts)
        if sketched.settled is not None:
            same = None if changed is None else np.empty(0, np.int64)
            saved["given"] = self.save("given", sketched.settled.given, changed=same)
        return saved

    def _regrouped(self, sketched: engine.Sketched) -> NDArray[np.int64] | None:
        """Return the places of OLD's documents that changed; None where no file of theirs can be taken over."""
        if sketched.settled is None or (self._old is not None and not self._old.is_in_order):
            return None
        return np.empty(0, np.int64) if self.onto is None else sketched.settled.regrouped

    def pair(self, sketched: Made, source: EngineTable, known: pa.Table | None = None) -> Made:
        """As `RunEngine.pair`. Returns the result of `engine.pair` in `own`, None if an earlier attempt has it all."""
        if self._counts_before:
            return Made(saved=self._take("pairs"), counts=self._counts_before["pairs"])
        documents = sketched.tables["documents"]
        sizes = sum(len(chunk.flatten()) for chunk in documents["sketch"].chunks)
        self.workers.memory.hold(len(documents), sizes, is_copied=self._old is not None)
        if self._old is not None and isinstance(source, Collection):
            return self._pair_onto(self._old, documents, source)
        found = engine.pair(documents, self.config, self.workers, source, known=known, forced=self.forced)
        saved = self.save("pairs", found.pairs)
        found = replace(found, pairs=self.store.release("pairs", found.pairs))
        return Made(saved={"pairs": replace(saved, table=found.pairs)}, counts=found.stage_counts, own=found)

    def _pair_onto(self, old: Old, documents: pa.Table, source: Collection) -> Made:
        is_whole = self.forced is not None or old.is_forced or old.is_crowded
        self._onto = onto = Onto(old, documents, old.n_records, self.config, source, self.workers, is_whole)
        paired = engine.pair(onto.changed_documents, self.config, self.workers, read=onto.read, forced=self.forced)
        for name, table in onto.keep().items():
            is_longer = name == "shingles" and not len(old.taken)
            changed, absent = (np.empty(0, np.int64), len(old.shingles.nodes)) if is_longer else (None, 0)
            self.save(name, table, changed=changed, absent=absent)
        self.workers.parts = None  # the places of OLD's records are not known
        pairs = onto.take_over("pairs", paired.pairs).sort_by([("doc_a", "ascending"), ("doc_b", "ascending")])
        counts = {**paired.stage_counts, **onto.counts()}
        if onto.changed is not None:
            counts |= count_untold("pairs", old.metrics, counts, self.config)
        return Made(saved={"pairs": self.save("pairs", pairs)}, counts=counts, own=paired)

    def cluster(self, sketched: Made, paired: Made) -> Made:
        """As `RunEngine.cluster`. Returns the result of `engine.cluster` in `own`, or None."""
        del sketched
        if paired.own is None:
            return Made(saved=self._take(*names.COUNTS), counts=self._counts_before["clusters"])
        found = engine.cluster(paired.own, self.config, self.workers)
        tables, counts = {name: getattr(found, name) for name in names.COUNTS}, found.counts
        if self._onto is not None and self._onto.changed is not None:
            tables = {name: engine.in_order(name, self._onto.take_over(name, tables[name])) for name in tables}
            counts = counts | self._count_clusters(tables)
            counts |= count_untold("clusters", self._onto.old.metrics, found.counts, self.config)
        saved = {
            name: self.save(name, tables[name], counts={key: counts[key] for key in keys})
            for name, keys in names.COUNTS.items()
        }
        return Made(saved=saved, counts=counts, own=found)

    def _count_clusters(self, tables: Mapping[str, pa.Table]) -> dict[str, int]:
        asked = self.ask(**tables)
        counts = {key: n for name, keys in names.COUNTS.items() if keys for key, n in asked.count(name, keys).items()}
        for table in asked.sql(names.COMPONENTS).to_pylist():
            counts |= table
        asked.forget()
        return counts

    def keep(self, sketched: Made, paired: Made, clustered: Made) -> Made:
        """As `RunEngine.keep`. Sealed last: its note means that all five tables are there, and holds their counts."""
        if paired.own is None:
            return Made(saved=self._take("keep"), counts=self._counts_before["keep"])
        found, documents = engine.keep(paired.own, clustered.own, self.config), sketched.tables["documents"]
        pairs: engine.Paired = paired.own
        if self._onto is not None and self._onto.changed is not None:
            found = engine.in_place(self._onto.take_over("keep", found.keep), documents["doc_id"])
            pairs = replace(pairs, pairs=paired.tables["pairs"])
        counts = engine.count_choices(documents, pairs, clustered.own, found, self.config, self.forced)
        stages = {"pairs": paired.counts, "clusters": clustered.counts, "keep": counts}
        kept = self.save("keep", found.keep, counts=found.counts, stages=stages)
        return Made(saved={"keep": kept}, counts=counts)

    @cached_property
    def _counts_before(self) -> Mapping[str, Mapping[str, Any]]:
        """The counts of pairs, clusters and keep by stage, if an earlier attempt left all their tables; else empty."""
        notes = {name: self._note(name) for name in (*PAIRED, *(ONTO if self.config.output.onto else ()))}
        last = notes["keep"]
        return {} if last is None or None in notes.values() else last["noted"].get("stages", {})

    def _take(self, *names: str) -> dict[str, Saved]:
        found = {name: saved for name in names if (saved := self.find(name)) is not None}
        return {name: replace(saved, table=self._read_table(name)) for name, saved in found.items()}

    def _read_table(self, name: str) -> pa.Table:
        return read_documents(self.folder, self.workers) if name == "documents" else self.store.read(name)

    # What is written beside the tables.

    def write_duplicates(self, clustered: Made) -> None:
        """As `RunEngine.write_duplicates`."""
        tables = clustered.tables
        self.folder.write_text("duplicates.txt", outputs.spell_clusters(tables["clusters"], tables["members"]))

    def write_context(self, sketched: Made) -> None:
        """As `RunEngine.write_context`."""
        self.folder.write_text("context.fimi", outputs.spell_features(sketched.tables["documents"]))

    def write_kept(self, source: Collection, sketched: Made, chosen: pa.Table) -> int:
        """As `RunEngine.write_kept`."""
        table, documents = with_added(CHOSEN, self.config), sketched.tables["documents"]
        chosen = chosen.select(table.names).cast(table.arrow)
        at = pc.index_in(documents["doc_id"], chosen["doc_id"].combine_chunks())
        places = np.flatnonzero(np.asarray(pc.is_valid(at)))
        holders = take(documents["doc_key"], outputs.holders_of(documents, places))
        rows = documents.select(outputs.KEPT_COLUMNS).take(pa.array(places)).set_column(0, "doc_key", holders)
        for name in table.names[1:]:
            rows = rows.append_column(table.arrow.field(name), chosen[name].take(at.drop_null()))
        read = self._reader(source).find_kept(rows, sketched.own, self.config.output.kept)
        where = Path(local_path(f"{self.folder.path}/kept"))
        files = KeptFiles.of(source, sum(sketched.rows.values()), self.config.output.kept)
        return outputs.write_kept(read, where, files, added_fields(self.config))

    @contextmanager
    def hold(self, verdicts: pa.Table) -> Iterator[pa.Table]:
        """As `RunEngine.hold`: in memory, sorted by source and record."""
        from nddup.embedded.rewrite import in_order  # noqa: PLC0415 - most runs write no input again

        yield in_order(verdicts, with_added(VERDICTS, self.config))

    def rewrite(self, source: Collection, verdicts: pa.Table, apart: str, *, is_tagging: bool) -> int:
        """As `RunEngine.rewrite`."""
        from nddup.embedded.rewrite import Rewriter  # noqa: PLC0415

        is_first, where = self.config.input.limit is not None, Path(local_path(apart))
        added = added_fields(self.config)
        rewriter = Rewriter(source, verdicts, is_tagging, is_first, record_limits(self.config), added=added)
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

    def folder_at(self, path: str) -> LocalFolder:
        """As `RunEngine.folder_at`."""
        return LocalFolder(path)

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


def _counted(rejects: pa.Table) -> tuple[list[str], list[int]]:
    counted = pc.value_counts(one_chunk(rejects["reason"]))
    return counted.field("values").to_pylist(), counted.field("counts").to_pylist()


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
