"""`nddup sweep INPUT… --grid FILE --output DIR`: run the same collection under every combination of some settings.

    read_grid              YAML                      -> Points, the combinations
    Engines                inputs, output, settings  -> where runs are made and compared
    run_sweep              Engines, Points           -> the run of each, compared with a list if one is given
    results_of             metrics of a run          -> the numbers of a row
    table_of, markdown_of, spell_table    Points     -> CSV, Markdown, lines for the terminal

Runs are made one after another, each starting from the tables of the run before: tables whose inputs and settings are
unchanged (`nddup.stages.stage`) are reused. So combinations that read and sketch alike run next to each other, whatever
their order in the grid.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nddup.engines.choose import choose_engine
from nddup.errors import ConfigError, OutputError, OutputExistsError
from nddup.evaluating.evaluate import evaluate_run
from nddup.explaining.curves import table
from nddup.ground.json_text import load_object
from nddup.ground.metrics import RunMetrics
from nddup.ground.progress import say
from nddup.ground.shown import csv_line, hide_setting
from nddup.results.opening import is_read_here, open_here, open_on_spark
from nddup.settings.load import UNREADABLE, build_config, read_yaml, yaml_reason
from nddup.settings.schema import Config
from nddup.stages.stage import dependencies_of, settings_of
from nddup.storage.claim import Claim, FolderFiles
from nddup.storage.local_storage import LocalStorage, require_apart
from nddup.storage.run_folder import versions

if TYPE_CHECKING:
    from nddup.spark.session_files import SessionFiles

MOST = 1_000
"""Maximum number of combinations of a grid: each is a full run."""

COUNTS = ("documents", "pairs", "candidates", "clusters", "largest_component", "invented_pairs", "kept", "seconds")
RATIOS = ("precision", "recall", "f1")


@dataclass
class Point:
    """One combination: its settings by key, the configuration or why it was refused, and the results."""

    settings: dict[str, object]
    config: Config | None = None
    refused: str = ""
    results: dict[str, float | int | None] = field(default_factory=dict)
    metrics: RunMetrics | None = None


SAID, TABLE, MARKDOWN, ALL = "_SWEEP.json", "sweep.csv", "sweep.md", "sweep.json"


def read_grid(text: str, *, origin: str, base: Config) -> list[Point]:
    """Read the combinations of a grid, the last key changing fastest.

    Args:
        text: YAML: `section.key: [value, …]`, or sections with lists below; one value may stand without brackets.
        origin: name of the grid in messages.
        base: the settings that all combinations share.

    Raises:
        ConfigError: if the text is not such a mapping, has no key or too many combinations, or every combination is
            refused.
    """
    try:
        values = read_yaml(text)
    except UNREADABLE as error:
        raise ConfigError(f"{origin}: {yaml_reason(error)}") from error
    if not isinstance(values, dict) or not values:
        raise ConfigError(f"{origin}: expected lines such as `sketch.size: [100, 200]`")

    lists = {key: value if isinstance(value, list) else [value] for key, value in _flat(values, origin)}
    if not 0 < (count := prod(map(len, lists.values()))) <= MOST:
        raise ConfigError(f"{origin}: {count:,} combinations; expected 1 to {MOST:,}")
    points = [Point(dict(zip(lists, chosen, strict=True))) for chosen in product(*lists.values())]

    # A refused combination does not stop the others; its row says why.
    for point in points:
        try:
            point.config = build_config(_with(base, point.settings), origin=origin)
        except ConfigError as error:
            point.refused = str(error)
        point.settings = {key: hide_setting(key, value) for key, value in point.settings.items()}
    if not any(point.config for point in points):
        raise ConfigError(points[0].refused)
    return points


def results_of(metrics: RunMetrics, evaluation: Mapping[str, Any] | None) -> dict[str, float | int | None]:
    """Return the numbers of a row, from the metrics of a run and its evaluation."""
    rows, stages = metrics.rows, metrics.stages
    counts = {
        "documents": rows["documents"],
        "pairs": rows["pairs"],
        "candidates": stages.pairs.candidates,
        "clusters": rows["clusters"],
        "largest_component": stages.clusters.largest_component,
        "invented_pairs": stages.clusters.invented_pairs,
        "kept": stages.keep.kept,
        "seconds": round(metrics.seconds, 3),
    }
    ratios = {name: evaluation["pairs"][name] for name in RATIOS} if evaluation else {}
    return counts | ratios


def table_of(points: Sequence[Point]) -> str:
    """Return the points as CSV: settings, results, the stages that were reused, and the reason of a refusal."""
    keys = list(points[0].settings)
    names = _columns_of(points)
    lines = [csv_line([*keys, *names, "reused", "refused"])]
    for point in points:
        values = [point.settings[key] for key in keys]
        results = [point.results.get(name) for name in names]
        lines.append(csv_line([*values, *results, " ".join(stages_reused(point)) or None, point.refused or None]))
    return "".join(lines)


def markdown_of(points: Sequence[Point]) -> str:
    """Return the points as a Markdown table of the settings that vary and the results, then the refused ones."""
    headings, rows = _headings_and_rows(points)
    lines = [headings, ["---:"] * len(headings), *rows]
    refused = [f"\nrefused: {point.refused}" for point in points if point.refused]
    return "\n".join(
        [*("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines), *refused, ""]
    )


def stages_reused(point: Point) -> list[str]:
    """Return the stages whose tables were reused from the previous combination; their seconds are not counted again."""
    if point.metrics is None:
        return []
    stages = point.metrics.stages
    made = {"sketch": stages.sketch, "pairs": stages.pairs, "clusters": stages.clusters, "keep": stages.keep}
    return [name for name, stage in made.items() if stage.resumed]


def spell_table(points: Sequence[Point]) -> list[str]:
    """Return the points as lines of right-aligned columns, then the refused combinations with their reasons."""
    headings, rows = _headings_and_rows(points)
    refused = [f"  refused: {point.refused}" for point in points if point.refused]
    return [*table(headings, rows), *refused]


def _headings_and_rows(points: Sequence[Point]) -> tuple[list[str], list[list[str]]]:
    """Return the settings that vary and the results of the combinations that were run, spelled for people."""
    keys = [key for key in points[0].settings if len({repr(point.settings[key]) for point in points}) > 1]
    keys = keys or list(points[0].settings)
    names = _columns_of(points)
    rows = [
        [*(str(point.settings[key]) for key in keys), *(_spell_value(point.results[name]) for name in names)]
        for point in points if point.results
    ]  # fmt: skip
    return [*keys, *(name.replace("_", " ") for name in names)], rows


def _spell_value(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _columns_of(points: Sequence[Point]) -> tuple[str, ...]:
    """Return the columns of a table of results; the ratios only if runs were compared with a list."""
    return (*COUNTS, *(RATIOS if any("f1" in point.results for point in points) else ()))


def read_text(path: str) -> str:
    """Read the file of a grid.

    Raises:
        ConfigError: if it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--grid {path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"--grid {path}: {yaml_reason(error)}") from error


def _flat(values: Mapping[str, Any], origin: str) -> list[tuple[str, Any]]:
    """Return the keys of a grid as `section.key`, with those nested below a section."""
    settings: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            settings += [(f"{key}.{name}", below) for name, below in value.items()]
        elif "." in str(key):
            settings.append((str(key), value))
        else:
            raise ConfigError(f"{origin}: {key}: expected section.key, such as sketch.size")
    return settings


def _with(base: Config, settings: Mapping[str, object]) -> dict[str, Any]:
    """Return the shared settings, updated with those of one combination, as nested sections."""
    values = base.model_dump(exclude_unset=True)  # a default may be another for another kind or measure
    for key, value in settings.items():
        section, _, name = key.partition(".")
        below = values.get(section)
        values[section] = {**(below if isinstance(below, dict) else {}), (key if section == "spark" else name): value}
    return values


class Engines:
    """The place where runs are made and compared: this process, or one Spark session that starts when it is needed.

    Args:
        truth: a list of duplicates to compare each run with, or None.
    """

    def __init__(self, inputs: list[str], output: str, base: Config, *, master: str | None, truth: str | None) -> None:
        self.inputs, self._base, self._master, self._truth = inputs, base, master, truth
        self.is_here = is_read_here(output, *([truth] if truth else []), master=master)
        self.output = output

    @cached_property
    def spark(self) -> Any:  # noqa: ANN401 - a SparkSession
        """The Spark session, started on first use."""
        from nddup.spark.java import is_small  # noqa: PLC0415
        from nddup.spark.session import start_session  # noqa: PLC0415 - most sweeps do without

        return start_session(master=self._master, settings=self._base.spark, is_small=is_small(self.inputs))

    @cached_property
    def storage(self) -> "LocalStorage | SessionFiles":
        """The file system of the output."""
        return LocalStorage() if self.is_here else self._hadoop

    @cached_property
    def _hadoop(self) -> "SessionFiles":
        from nddup.spark.session_files import files_of  # noqa: PLC0415

        return files_of(self.spark)

    def describe(self) -> dict[str, Any]:
        """Return versions, settings, inputs and list of the sweep, which must all be unchanged to resume it."""
        are_here = is_read_here(*self.inputs, master=self._master)  # they may lie elsewhere than the output
        files = (LocalStorage() if are_here else self._hadoop).list_inputs(self.inputs).files
        return {
            "versions": versions(),
            "settings": settings_of(self._base),
            "inputs": {file.source: file.state for file in files},
            "truth": self._truth,
        }

    def run(self, folder: str, config: Config) -> RunMetrics:
        """Make one run, reusing tables in the folder from an earlier run; use Spark only if it is needed."""
        if choose_engine(self.inputs, folder, config, master=self._master).engine == "local":
            from nddup.embedded.run import run_locally  # noqa: PLC0415

            return RunMetrics.read(run_locally(self.inputs, folder, config, resume=True))

        from nddup.spark.run import run_job  # noqa: PLC0415

        return RunMetrics.read(run_job(self.spark, self.inputs, folder, config, resume=True))

    def evaluate(self, folder: str) -> dict[str, Any] | None:
        """Compare one run with the list, if there is one."""
        if self._truth is None:
            return None
        return evaluate_run(open_here(folder) if self.is_here else open_on_spark(self.spark, folder), self._truth)


def run_sweep(engines: Engines, points: Sequence[Point], *, keeps_runs: bool = False, resume: bool = False) -> None:
    """Run every combination, one after another, and write the tables after each.

    Files written to the output: `sweep.csv` and `sweep.md`, one row per combination; `sweep.json`, the same with all
    metrics; `sweep.svg` and `sweep.png`, if matplotlib is installed; `_SWEEP.json`, the inputs and settings of the
    sweep, needed to resume it. A combination that the configuration refuses gets a row with the reason.

    Args:
        points: the combinations; their results are filled in.
        keeps_runs: keep the runs in `output/runs`, one folder each; otherwise each replaces the one before.
        resume: take over the results of an earlier sweep in the folder; if there is none, start a new sweep.

    Raises:
        OutputError: if the folder overlaps an input, exists and `resume` is not set, is of another sweep, or cannot be
            written.
        NddupError: if a run fails.
    """
    storage, output = engines.storage, engines.output
    header = {**engines.describe(), "grid": [point.settings for point in points]}
    require_apart(storage, engines.inputs, output)
    is_there = storage.exists(output)
    if is_there and not resume:
        raise OutputExistsError(
            f"--output {output}: exists already; give another folder, or --resume to finish a sweep"
        )

    claim = Claim(storage, output)
    if is_there:
        _take_results(storage, output, header, points)
    claim.take(say)
    try:
        storage.write_text(f"{output}/{SAID}", _spell(header))
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
        keys = [_spell([name, dependencies_of(name, point.config)]) for name in ("documents", "pairs")]
        return first.setdefault(keys[0], len(first)), first.setdefault(keys[1], len(first))

    return sorted(enumerate(points, 1), key=lambda numbered: place(numbered[1]))


def _begin_with(engines: Engines, last: str | None, folder: str) -> None:
    """Clear a folder of what a killed sweep left there, and copy the previous run into it if it is on this machine."""
    engines.storage.remove(folder)
    if last is not None and engines.is_here:
        shutil.copytree(last, folder)


def _take_results(storage: FolderFiles, output: str, header: dict[str, Any], points: Sequence[Point]) -> None:
    """Fill in the results of the sweep in the folder; raise OutputError if there is none, or it is a different one."""
    try:
        there = load_object(storage.read_text(f"{output}/{SAID}"))
    except (OutputError, ValueError) as error:
        raise OutputError(f"--output {output}: holds no sweep that can be resumed ({SAID} is missing)") from error
    changed = [name for name, value in json.loads(_spell(header)).items() if there.get(name) != value]
    if changed:
        raise OutputError(f"--output {output}: was made with other {', '.join(changed)}; give another folder")

    rows = json.loads(storage.read_text(f"{output}/{ALL}")) if storage.exists(f"{output}/{ALL}") else []
    for point, row in zip(points, rows, strict=False):
        if row["metrics"] is not None:
            point.metrics, point.results = RunMetrics.read(row["metrics"]), row["results"]


def _write_tables(storage: FolderFiles, output: str, points: Sequence[Point]) -> None:
    storage.write_text(f"{output}/{ALL}", json.dumps([_as_json(point) for point in points], indent=2) + "\n")
    storage.write_text(f"{output}/{TABLE}", table_of(points))
    storage.write_text(f"{output}/{MARKDOWN}", markdown_of(points))


def _as_json(point: Point) -> dict[str, Any]:
    return {"settings": point.settings, "results": point.results, "refused": point.refused or None,
            "metrics": point.metrics.dump() if point.metrics else None}  # fmt: skip


def _spell(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True, default=str) + "\n"
