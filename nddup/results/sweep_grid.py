"""The combinations of `nddup sweep`: reading a grid, and showing the results as a table.

read_grid     YAML -> the combinations
results_of    metrics of a run -> the numbers of a row
table_of      rows -> CSV
spell_table   rows -> lines for the terminal
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from nddup.errors import ConfigError
from nddup.explaining.curves import table
from nddup.metrics import RunMetrics
from nddup.redaction import hide_setting
from nddup.settings.load import build_config, yaml_reason
from nddup.settings.schema import Config
from nddup.shown import csv_line

MOST = 1_000
"""Most combinations of a grid: each is a full run."""

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
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin}: not YAML: {yaml_reason(error)}") from error
    if not isinstance(values, dict) or not values:
        raise ConfigError(f"{origin}: expected lines such as `sketch.size: [100, 200]`")

    lists = {key: value if isinstance(value, list) else [value] for key, value in _flat(values, origin)}
    points = [Point(dict(zip(lists, chosen, strict=True))) for chosen in product(*lists.values())]
    if not 0 < len(points) <= MOST:
        raise ConfigError(f"{origin}: {len(points):,} combinations; expected 1 to {MOST:,}")

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


def stages_reused(point: Point) -> list[str]:
    """Return the stages whose tables were reused from the previous combination; their seconds are not counted again."""
    if point.metrics is None:
        return []
    stages = point.metrics.stages
    made = {"sketch": stages.sketch, "pairs": stages.pairs, "clusters": stages.clusters, "keep": stages.keep}
    return [name for name, stage in made.items() if stage.resumed]


def spell_table(points: Sequence[Point]) -> list[str]:
    """Return the points as lines of right-aligned columns, then the refused combinations with their reasons."""
    keys = [key for key in points[0].settings if len({repr(point.settings[key]) for point in points}) > 1]
    keys = keys or list(points[0].settings)
    names = _columns_of(points)
    rows = [
        [*(str(point.settings[key]) for key in keys), *(_spell(point.results[name]) for name in names)]
        for point in points if point.results
    ]  # fmt: skip
    headings = [*keys, *(name.replace("_", " ") for name in names)]
    refused = [f"  refused: {point.refused}" for point in points if point.refused]
    return [*table(headings, rows), *refused]


def _spell(value: float | None) -> str:
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
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--grid {path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error


def _flat(values: Mapping[str, Any], origin: str) -> list[tuple[str, Any]]:
    """Return the keys of a grid as `section.key`, with those nested below a section."""
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
    """Return the shared settings, updated with those of one combination, as nested sections."""
    values = base.model_dump()
    for key, value in settings.items():
        section, _, name = key.partition(".")
        below = values.get(section)
        values[section] = {**(below if isinstance(below, dict) else {}), (key if section == "spark" else name): value}
    return values
