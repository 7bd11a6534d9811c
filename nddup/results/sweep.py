"""`nddup sweep INPUT… --grid FILE --output DIR`: run the same collection under every combination of some settings.

    Engines       where runs are made and compared
    run_sweep     makes the run of each combination, and compares it with a list if one is given

Files written to DIR: `sweep.csv`, one row per combination; `sweep.json`, the same with all metrics; `sweep.png`, if
matplotlib is installed; `_SWEEP.json`, the inputs and settings of the sweep, needed to resume it. A combination that
the configuration refuses gets a row with the reason.

Runs are made one after another, each starting from the tables of the run before: tables whose inputs and settings are
unchanged (`nddup.run.lineage`) are reused. So combinations that read and sketch alike run next to each other, whatever
their order in the grid.
"""

import json
import shutil
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nddup.errors import OutputError
from nddup.metrics import RunMetrics
from nddup.results.evaluate import evaluate_run
from nddup.results.opening import is_read_here, open_here, open_on_spark
from nddup.results.sweep_grid import Point, results_of, table_of
from nddup.run.engines import choose_engine
from nddup.run.lineage import made_of
from nddup.run.progress import say
from nddup.run.stage import settings_of
from nddup.settings.schema import Config
from nddup.storage.apart import require_apart
from nddup.storage.claim import Claim, FolderFiles
from nddup.storage.local_storage import LocalStorage
from nddup.storage.versions import versions

if TYPE_CHECKING:
    from nddup.storage.session_files import SessionFiles

SAID, TABLE, ALL = "_SWEEP.json", "sweep.csv", "sweep.json"


class Engines:
    """The place where runs are made and compared: this process, or one Spark session that starts when it is needed.

    Args:
        inputs: inputs of every run.
        output: folder of the sweep.
        base: the settings that all runs share.
        master: the Spark master that the user asked for, or None.
        truth: a list of duplicates to compare each run with, or None.
    """

    def __init__(self, inputs: list[str], output: str, base: Config, *, master: str | None, truth: str | None) -> None:
        self.inputs, self._base, self._master, self._truth = inputs, base, master, truth
        self.is_here = is_read_here(output, *([truth] if truth else []), master=master)
        self.output = output

    @cached_property
    def spark(self) -> Any:  # noqa: ANN401 - a SparkSession
        """The Spark session, started on first use."""
        from nddup.run.java import is_small  # noqa: PLC0415
        from nddup.run.session import start_session  # noqa: PLC0415 - most sweeps do without

        return start_session(master=self._master, settings=self._base.spark, is_small=is_small(self.inputs))

    @cached_property
    def storage(self) -> "LocalStorage | SessionFiles":
        """The file system of the output."""
        return LocalStorage() if self.is_here else self._hadoop

    @cached_property
    def _hadoop(self) -> "SessionFiles":
        from nddup.storage.session_files import files_of  # noqa: PLC0415

        return files_of(self.spark)

    def describe(self) -> dict[str, Any]:
        """Return versions, settings, inputs and list of the sweep, which must all be unchanged to resume it."""
        are_here = is_read_here(*self.inputs, master=self._master)  # they may lie elsewhere than the output
        files = (LocalStorage() if are_here else self._hadoop).list_inputs(self.inputs).files
        return {
            "versions": versions(),
            "settings": settings_of(self._base),
            "inputs": {file.source: [file.size, file.modified] for file in files},
            "truth": self._truth,
        }

    def run(self, folder: str, config: Config) -> RunMetrics:
        """Make one run, reusing tables in the folder from an earlier run; use Spark only if it is needed."""
        if choose_engine(self.inputs, folder, config, master=self._master).engine == "local":
            from nddup.run.local_job import run_locally  # noqa: PLC0415

            return RunMetrics.read(run_locally(self.inputs, folder, config, resume=True))

        from nddup.run.job import run_job  # noqa: PLC0415

        return RunMetrics.read(run_job(self.spark, self.inputs, folder, config, resume=True))

    def evaluate(self, folder: str) -> dict[str, Any] | None:
        """Compare one run with the list, if there is one."""
        if self._truth is None:
            return None
        return evaluate_run(open_here(folder) if self.is_here else open_on_spark(self.spark, folder), self._truth)


def run_sweep(engines: Engines, points: Sequence[Point], *, keeps_runs: bool = False, resume: bool = False) -> None:
    """Run every combination, one after another, and write the tables after each.

    Args:
        engines: where the runs are made, with inputs and output folder.
        points: the combinations; their results are filled in.
        keeps_runs: keep the runs in `output/runs`, one folder each; otherwise each replaces the one before.
        resume: take over the results of an earlier sweep in the folder; if there is none, start a new sweep.

    Raises:
        OutputError: if the folder overlaps an input, exists and `resume` is not set, is of another sweep, or cannot be
            written.
        NddupError: if a run fails.
    """
    storage, output = engines.storage, engines.output
    said = {**engines.describe(), "grid": [point.settings for point in points]}
    require_apart(storage, engines.inputs, output)
    is_there = storage.exists(output)
    if is_there and not resume:
        raise OutputError(f"--output {output}: exists already; give another folder, or --resume to finish a sweep")

    claim = Claim(storage, output)
    if is_there:
        _take_results(storage, output, said, points)
    claim.take(say)
    try:
        storage.write_text(f"{output}/{SAID}", _spell(said))
        _make_missing(engines, points, keeps_runs=keeps_runs)
        _write_tables(storage, output, points)
        if not keeps_runs:
            storage.remove(f"{output}/runs")
    finally:
        claim.release()


def _make_missing(engines: Engines, points: Sequence[Point], *, keeps_runs: bool) -> None:
    """Run the combinations that have no result yet, and write the tables after each."""
    runs, last = [point for point in points if point.config is not None], None
    for number, point in _in_order(points):
        if point.config is None or point.metrics is not None:
            continue
        done = sum(other.metrics is not None for other in runs)
        values = ", ".join(f"{key}={value}" for key, value in point.settings.items())
        say(f"run {done + 1:,} of {len(runs):,}: {values}")

        folder = f"{engines.output}/runs/{number:04}" if keeps_runs else f"{engines.output}/runs/last"
        if keeps_runs:
            _begin_with(engines, last, folder)
        point.metrics = engines.run(folder, point.config)
        point.results = results_of(point.metrics, engines.evaluate(folder))
        last = folder
        _write_tables(engines.storage, engines.output, points)


def _in_order(points: Sequence[Point]) -> list[tuple[int, Point]]:
    """Number the combinations from 1 and group them: those with equal documents, and within these, equal pairs."""
    first: dict[str, int] = {}

    def place(point: Point) -> tuple[int, int]:
        if point.config is None:
            return (0, 0)
        keys = [_spell([name, made_of(name, point.config)]) for name in ("documents", "pairs")]
        return first.setdefault(keys[0], len(first)), first.setdefault(keys[1], len(first))

    return sorted(enumerate(points, 1), key=lambda numbered: place(numbered[1]))


def _begin_with(engines: Engines, last: str | None, folder: str) -> None:
    """Clear a folder of what a killed sweep left there, and copy the previous run into it if it is on this machine."""
    engines.storage.remove(folder)
    if last is not None and engines.is_here:
        shutil.copytree(last, folder)


def _take_results(storage: FolderFiles, output: str, said: dict[str, Any], points: Sequence[Point]) -> None:
    """Fill in the results of the sweep in the folder; raise OutputError if there is none, or it is a different one."""
    try:
        there = json.loads(storage.read_text(f"{output}/{SAID}"))
    except (OutputError, ValueError) as error:
        raise OutputError(f"--output {output}: holds no sweep that can be resumed ({SAID} is missing)") from error
    changed = [name for name, value in json.loads(_spell(said)).items() if there.get(name) != value]
    if changed:
        raise OutputError(f"--output {output}: was made with other {', '.join(changed)}; give another folder")

    rows = json.loads(storage.read_text(f"{output}/{ALL}")) if storage.exists(f"{output}/{ALL}") else []
    for point, row in zip(points, rows, strict=False):
        if row["metrics"] is not None:
            point.metrics, point.results = RunMetrics.read(row["metrics"]), row["results"]


def _write_tables(storage: FolderFiles, output: str, points: Sequence[Point]) -> None:
    """Write both tables, with the results so far."""
    storage.write_text(f"{output}/{ALL}", json.dumps([_as_json(point) for point in points], indent=2) + "\n")
    storage.write_text(f"{output}/{TABLE}", table_of(points))


def _as_json(point: Point) -> dict[str, Any]:
    return {"settings": point.settings, "results": point.results, "refused": point.refused or None,
            "metrics": point.metrics.dump() if point.metrics else None}  # fmt: skip


def _spell(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True, default=str) + "\n"
