"""A run in this process and its workers, without a JVM: its steps, and what is written beside the tables."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nddup.compiling.install import OF_JSON, PARTS, USUAL, compile_once
from nddup.embedded import outputs
from nddup.embedded.memory import Memory
from nddup.embedded.processes import Processes
from nddup.embedded.read_records import take_saved
from nddup.embedded.run_steps import SketchedHere, sketch_run
from nddup.embedded.state import Job
from nddup.embedded.workers import Workers
from nddup.engines.choose import memory_of
from nddup.ground.progress import LocalProgress, LogFormat, Steps
from nddup.ground.shown import JsonValue
from nddup.scanning.collection import Collection
from nddup.settings import plan
from nddup.settings.plan import record_limits
from nddup.settings.schema import Config
from nddup.stages.run import make_run
from nddup.stages.run_engine import Made
from nddup.stages.written_records import added_fields, with_added
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import local_path
from nddup.tables import VERDICTS

if TYPE_CHECKING:
    from nddup.engines.engine import FinishedRun


class LocalJob(Job):
    """A run on the embedded engine."""

    def require_able(self, source: Collection) -> None:
        """As `RunEngine.require_able`."""
        del source
        words, saved = plan.words_of(self.config), self.config.lexicon.saved
        if saved is not None and words is not None:
            take_saved(saved, words)

    def prepare(self, steps: Steps, source: Collection) -> None:
        """Compile the kernels, once for an installation."""
        usual = (*USUAL, *OF_JSON) if "jsonl" in source.kinds else USUAL
        compile_once(steps, usual if plan.is_usual(self.config) and not self.onto else PARTS)

    @contextmanager
    def attempt(self, source: Collection) -> Iterator[None]:
        """Remove what a killed attempt left in the folder of the worker processes; at the end all tables are sealed."""
        del source
        if self.workers.spool is not None:
            shutil.rmtree(self.workers.spool, ignore_errors=True)
        try:
            yield
        finally:
            self.end_writing()

    def sketch(self, source: Collection | pa.Table) -> SketchedHere:
        """As `RunEngine.sketch`."""
        return sketch_run(self, source)

    def write_duplicates(self, clustered: Made) -> None:
        """As `RunEngine.write_duplicates`."""
        tables = clustered.tables
        self.folder.write_text("duplicates.txt", outputs.spell_clusters(tables["clusters"], tables["members"]))

    def write_context(self, sketched: Made) -> None:
        """As `RunEngine.write_context`."""
        self.folder.write_text("context.fimi", outputs.spell_features(sketched.tables["documents"]))

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
        return DuckRun(self.folder.path, is_ours=True)


def run_locally(
    inputs: list[str],
    output: str,
    config: Config,
    *,
    log_format: LogFormat = "text",
    processes: Processes | None = None,
    **arguments: JsonValue,
) -> dict[str, Any]:
    """Make a run on this machine, without Spark.

    Args:
        inputs: files and folders of this machine.
        processes: worker processes that were started already, if any; they end with the run.
        **arguments: `overwrite`, `resume`, `first_log_line` and `earlier`, as `nddup.stages.run.make_run` takes them.

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
        return make_run(engine_of_run, inputs, log_format=log_format, **arguments)
