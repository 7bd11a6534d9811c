"""`nddup sweep INPUT… --grid FILE --output DIR`: the same collection under every combination of some settings.

    read_grid     YAML -> the combinations
    run_sweep     makes a full run of each combination, and compares it with a list if one is given

Files written to DIR: `sweep.csv`, one row a combination; `sweep.json`, the same with all metrics; `sweep.png`, if
matplotlib is installed. A combination that the configuration refuses is a row with the reason.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from nddup.errors import ConfigError, OutputError
from nddup.metrics import RunMetrics
from nddup.redaction import hide_setting
from nddup.results.evaluate import evaluate_run
from nddup.results.evaluation import csv_line
from nddup.results.opening import is_read_here, open_here, open_on_spark
from nddup.run.engines import choose_engine
from nddup.run.progress import say
from nddup.settings.load import build_config, yaml_reason
from nddup.settings.schema import Config
from nddup.storage.claim import Claim, FolderFiles
from nddup.storage.local_storage import LocalStorage

MOST = 1_000
"""Combinations of a grid: each is a full run."""

COUNTS = ("documents", "pairs", "candidates", "clusters", "largest_component", "invented_pairs", "kept", "seconds")
RATIOS = ("precision", "recall", "f1")


@dataclass
class Point:
    """One combination: its settings by key, the configuration or why there is none, and what came out."""

    settings: dict[str, object]
    config: Config | None = None
    refused: str = ""
    results: dict[str, float | int | None] = field(default_factory=dict)
    metrics: RunMetrics | None = None


def read_grid(text: str, *, origin: str, base: Config) -> list[Point]:
    """Read the combinations of a grid, the last key changing fastest.

    Args:
        text: YAML: `section.key: [value, …]`, or sections with lists below; one value may stand without brackets.
        origin: what to call it in messages.
        base: the settings that all share.

    Raises:
        ConfigError: if it is no such mapping, has no key or too many combinations, or every combination is refused.
    """
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin}: not YAML: {yaml_reason(error)}") from error
    if not isinstance(values, dict) or not values:
        raise ConfigError(f"{origin}: expected lines such as `sketch.size: [100, 200]`")

    lists = {key: value if isinstance(value, list) else [value] for key, value in _flat(values, origin)}
    points = [Point(dict(zip(lists, chosen, strict=True))) for chosen in product(*lists.values())]
    if not 0 < len(points) <= MOST:
        raise ConfigError(f"{origin}: {len(points):,} combinations; expected 1 to {MOST:,}")

    # One combination that is refused does not stop the others; its row says why.
    for point in points:
        try:
            point.config = build_config(_with(base, point.settings), origin=origin)
        except ConfigError as error:
            point.refused = str(error)
        point.settings = {key: hide_setting(key, value) for key, value in point.settings.items()}
    if not any(point.config for point in points):
        raise ConfigError(points[0].refused)
    return points


class Engines:
    """Where runs are made and compared: in this process, or on one Spark session that is started when it is needed.

    Args:
        inputs: of every run.
        output: folder of the sweep.
        base: the settings that all runs share.
        master: the Spark master that was asked for.
        truth: a list of duplicates to compare each run with.
    """

    def __init__(self, inputs: list[str], output: str, base: Config, *, master: str | None, truth: str | None) -> None:
        self._inputs, self._base, self._master, self._truth = inputs, base, master, truth
        self._is_here = is_read_here(output, *([truth] if truth else []), master=master)
        self.output = output

    @cached_property
    def spark(self) -> Any:  # noqa: ANN401 - a SparkSession
        """The session."""
        from nddup.run.java.options import is_small  # noqa: PLC0415
        from nddup.run.session import start_session  # noqa: PLC0415 - most sweeps do without

        return start_session(master=self._master, settings=self._base.spark, is_small=is_small(self._inputs))

    @cached_property
    def storage(self) -> FolderFiles:
        """The file system of the output."""
        if self._is_here:
            return LocalStorage()
        from nddup.storage.files import Storage  # noqa: PLC0415

        return Storage(self.spark)

    def run(self, folder: str, config: Config) -> RunMetrics:
        """Make one run, without Spark where it can do without."""
        if choose_engine(self._inputs, folder, config, master=self._master).engine == "local":
            from nddup.run.local_job import run_locally  # noqa: PLC0415

            return RunMetrics.read(run_locally(self._inputs, folder, config))

        from nddup.run.job import run_job  # noqa: PLC0415

        return RunMetrics.read(run_job(self.spark, self._inputs, folder, config))

    def evaluate(self, folder: str) -> dict[str, Any] | None:
        """Compare one run with the list, if there is one."""
        if self._truth is None:
            return None
        return evaluate_run(open_here(folder) if self._is_here else open_on_spark(self.spark, folder), self._truth)


def run_sweep(engines: Engines, points: Sequence[Point], *, keeps_runs: bool = False) -> None:
    """Run every combination, one after another, and write the tables after each.

    Args:
        engines: where, of what, and into which folder, which must not exist.
        points: the combinations; their results are filled in.
        keeps_runs: leave the runs in `output/runs`; else each is removed once it was counted.

    Raises:
        OutputError: if the folder exists or cannot be written.
        NddupError: as a run.
    """
    storage, output = engines.storage, engines.output
    if storage.exists(output):
        raise OutputError(f"--output {output}: exists already; give another folder")
    claim = Claim(storage, output)
    claim.take(say)
    try:
        for number, point in enumerate(points, 1):
            if point.config is not None:
                folder = f"{output}/runs/{number:04}"
                say(f"run {number:,} of {len(points):,}: {', '.join(f'{k}={v}' for k, v in point.settings.items())}")
                point.metrics = engines.run(folder, point.config)
                point.results = results_of(point.metrics, engines.evaluate(folder))
                if not keeps_runs:
                    storage.remove(folder)
            storage.write_text(f"{output}/sweep.csv", table_of(points[:number]))
            made = json.dumps([_as_json(p) for p in points[:number]], indent=2) + "\n"
            storage.write_text(f"{output}/sweep.json", made)
        if not keeps_runs:
            storage.remove(f"{output}/runs")
    finally:
        claim.release()


def results_of(metrics: RunMetrics, evaluation: Mapping[str, Any] | None) -> dict[str, float | int | None]:
    """The numbers of a row, from the metrics of a run and its evaluation."""
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
    """The points as CSV: settings, results, and the reason where one was refused."""
    keys = list(points[0].settings)
    names = [*COUNTS, *(RATIOS if any("f1" in point.results for point in points) else ())]
    lines = [csv_line([*keys, *names, "refused"])]
    for point in points:
        values = [point.settings[key] for key in keys]
        lines.append(csv_line([*values, *(point.results.get(name) for name in names), point.refused or None]))
    return "".join(lines)


def read_text(path: str) -> str:
    """Read the file of a grid.

    Raises:
        ConfigError: if it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--grid {path}: cannot be read ({error})") from error


def _flat(values: Mapping[str, Any], origin: str) -> list[tuple[str, Any]]:
    """The keys of a grid as `section.key`, also those that stand below a section."""
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += [(f"{key}.{name}", below) for name, below in value.items()]
        elif "." in str(key):
            found.append((str(key), value))
        else:
            raise ConfigError(f"{origin}: {key}: expected section.key, such as sketch.size")
    return found


def _with(base: Config, settings: Mapping[str, object]) -> dict[str, Any]:
    """The shared settings with those of one combination, as nested sections."""
    values = base.model_dump()
    for key, value in settings.items():
        section, _, name = key.partition(".")
        below = values.get(section)
        values[section] = {**(below if isinstance(below, dict) else {}), (key if section == "spark" else name): value}
    return values


def _as_json(point: Point) -> dict[str, Any]:
    return {"settings": point.settings, "results": point.results, "refused": point.refused or None,
            "metrics": point.metrics.dump() if point.metrics else None}  # fmt: skip
