"""The pairs that bands and rows, or a number of common ids, find and miss; and the size of the pairs stage.

    explain_bands      bands x rows           -> the S-curve, its threshold, false candidates and missed pairs
    explain_support    k common ids of n      -> which resemblances are found
    explain_capacity   settings, documents    -> tasks, bytes, blocks, core hours of the pairs stage on Spark
    draw_curves        Curves                 -> a figure, by matplotlib: an optional package, loaded only for a figure
    draw_sweep         the results of `nddup sweep`, likewise

Explanations are lines for the terminal, and curves. `nddup.explaining.effects` explains the settings of a run.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nddup.errors import ConfigError, OutputError, OutputExistsError
from nddup.ground.shown import counted
from nddup.matching.task_sizes import (
    MOST_TASKS,
    Volume,
    ample_memory,
    block_bytes,
    blocks_sent,
    say_small,
    tasks_needed,
    volume_of,
)
from nddup.settings.plan import confirm_rule_of, one_graph_rules, threshold_of
from nddup.settings.schema import Config
from nddup.sketching.accuracy import expected_overlap, overlap_probability
from nddup.sketching.minhash import candidate_probability, curve_threshold, expected_errors

OfMatplotlib: TypeAlias = Any
"""An object of matplotlib, which may not be installed."""

GRID = (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
"""Resemblances shown in every table; the user may add others."""

DRAWN = np.linspace(0, 1, 201)
"""Resemblances at which the curves of a figure are computed."""

ID_BYTES = 8
SHUFFLED_BYTES, SHUFFLED_BELOW = (0.2, 21), (0.405, 34)
"""Bytes shuffled for an id of a distinct sketch in the pairs stage on Spark, by all exchanges together, where prefixes
are at most these shares of a sketch: at 0.8 on generated sketches in 2,000 tasks, and at 0.595 on real texts in 1,000,
where generated ones take 25 (`python -m bench exchanges`)."""

MILLION = 1_000_000
PAGE = 1_000
"""Number of words of the example page."""


@dataclass(frozen=True)
class Curve:
    """The probability of an event at each resemblance in `DRAWN`; `label` names the event."""

    label: str
    chances: tuple[float, ...]


@dataclass(frozen=True)
class Explanation:
    """An explanation to print and to draw.

    Attributes:
        lines: text on which pairs are found and missed.
        curves: the curves of these chances.
        mark: the resemblance to mark in a figure: the threshold.
        ids: the most ids of a sketch, from which the space of a million sketches follows; 0 if a sketch has no limit.
        more: lines that follow the lines on space.
    """

    lines: tuple[str, ...]
    curves: tuple[Curve, ...]
    mark: float
    ids: int
    more: tuple[str, ...] = ()

    def text(self) -> str:
        """Return all lines, each with a line end."""
        space = _space(self.ids) if self.ids else ()
        return "\n".join([*self.lines, "", *space, *self.more]) + "\n"


STORED_BYTES = 16
"""Bytes of local disk per id for what lies between exchanges: sketches and postings."""

DISTINCT = 85
"""Distinct sketches for every hundred documents: the other documents have the sketch of an earlier one."""

NANOSECONDS_OF_ID = 450
"""Core time for an id, in the kernels of all tasks."""

NANOSECONDS_OF_BYTE = 9.3
"""Core time for a byte that goes from Python through a shuffle to Python, beside that of its block."""

EXCHANGES = 7

SHINGLES = 400
"""Distinct shingles of a text of 2.8 kB, for which the exact decisions are counted."""

WANTED, SHINGLE_BYTES = 30, 24
"""Texts of a hundred that are in a candidate, as in generated collections, and the bytes shuffled for each shingle of
theirs: to its text, to the pairs of that, and to their tasks (41,460 real texts 20; generated ones of 400 words 26)."""

MICROSECONDS_OF_TEXT = 47
"""Core time to read a text of `SHINGLES` shingles: the second time, of every text, where all shingles decide."""

NANOSECONDS_SPOOLED = 2
"""Core time for a shingle that is written to a task's spool file and read from it: 8 bytes at 4 GB/s."""

LEAST_MEMORY = 2 << 30
"""Memory of the Python worker of a task, by default: more where blocks would be small."""

INCHES = (7.0, 4.5)

DOTS = 120

MEASURES = ("pairs", "clusters", "kept", "precision", "recall", "f1", "seconds")
"""The results of a sweep that have a panel, if any combination has them."""

Results = Sequence[tuple[Mapping[str, object], Mapping[str, Any]]]
"""The settings of each combination of a sweep, and its results."""

MICROSECONDS_OF_BLOCK, MILLISECONDS_OF_TASK = 65, 10
"""Core time for a block and for a task, whatever they hold: 10^7 sketches of 64 ids took 120 s more in 452 tasks than
in 52 (`docs/sizing.md`)."""

EXECUTOR_CORES, HEAP_GIGABYTES, DRIVER_GIGABYTES = 4, 8, 4
"""Cores and heap of an executor, and the heap of the driver, whose work does not grow with the documents."""

COLUMNS, PANEL = 2, (5.0, 2.8)
"""Panels side by side, and the inches of one."""

SMALL, APART = 7, 0.07
"""Points of the name of a line, and the least distance of two names as a share of the panel's height."""

NAME, AROUND = 0.125, 0.65
"""Inches of height that a name takes, and a panel's title and axis."""

COLOURS, STYLES = 10, ("-", "--", ":")
"""Colours of lines; when all are used up, the next style begins."""


def explain_bands(bands: int, rows: int, *, asked: Sequence[float] = ()) -> Explanation:
    """Explain the S-curve of `bands` bands of `rows` slots; see `nddup.sketching.minhash`."""
    threshold = curve_threshold(bands=bands, rows=rows)
    wrong = expected_errors(bands=bands, rows=rows, threshold=threshold)

    def chance(resemblance: float) -> float:
        return float(candidate_probability(resemblance, bands=bands, rows=rows))

    cells = [[f"{r:g}", percent(chance(r)), percent(1 - chance(r))] for r in grid(asked, least=0.1)]
    lines = (
        f"{bands} bands of {rows} rows: {bands * rows:,} slots a signature",
        "",
        f"A pair of resemblance s becomes a candidate with probability 1 - (1 - s^{rows})^{bands}:",
        *table(("resemblance", "candidate", "missed"), cells),
        "",
        f"threshold (1/b)^(1/r) = {threshold:.4f}, near the steepest point; {percent(chance(threshold))} pass there",
        f"  below it, {percent(wrong.false_positives)} of the pairs pass: false positives, which a comparison of the",
        "  signatures removes",
        f"  above it, {percent(wrong.false_negatives)} do not pass: false negatives, which are lost",
        "  (for pairs spread evenly over all resemblances)",
        "More bands give more true and more false candidates, more rows fewer of both; more bands and more rows",
        "together give a steeper curve.",
    )
    buckets = f"  {2 * ID_BYTES * bands * MILLION / 1e9:.2f} GB of buckets, {bands:,} per document"
    curve = curve_of(f"candidate: {bands} bands of {rows}", chance)
    return Explanation(lines, (curve,), threshold, bands * rows, (buckets,))


def explain_support(support: int, size: int, *, asked: Sequence[float] = ()) -> Explanation:
    """Explain a count: two min-s sketches of `size` ids must share at least `support` of them."""
    explanation = explain_overlap(support, size, asked=asked)
    short = f"Documents of fewer than {support} shingles are in no pair, not even with their own copies."
    return replace(explanation, lines=(*explanation.lines, short))


def explain_overlap(support: int, size: int, *, asked: Sequence[float]) -> Explanation:
    """Explain which resemblances `support` common ids out of `size` imply, and which pairs have as many."""

    def chance(resemblance: float) -> float:
        return overlap_probability(resemblance, size=size, support=support)

    least, usual = max(0.0, 2 * support / size - 1), support / (2 * size - support)
    cells = [[f"{r:g}", f"{expected_overlap(r, size=size):.1f}", percent(chance(r))] for r in grid(asked)]
    lines = (
        f"at least {support} of {size} ids in common: {percent(support / size)} of a full sketch",
        "",
        f"Two sketches with {support} ids in common estimate a resemblance from {least:.3f} to {support / size:.3f},",
        f"depending on the order of the other ids; {usual:.3f} is typical, k / (2n - k).",
        *table(("resemblance", "common ids", "found"), cells),
        "  (two documents of about equal length, with many more shingles than ids; mean number of common ids)",
        "",
    )
    return Explanation(lines, (curve_of(f"at least {support} of {size} ids", chance),), usual, size)


def curve_of(label: str, chance: Callable[[float], float]) -> Curve:
    """Return the curve of a probability that depends on the resemblance."""
    return Curve(label, tuple(chance(resemblance) for resemblance in DRAWN.tolist()))


def shuffled_bytes(prefix_share: float) -> float:
    """Return the bytes shuffled for an id: the power of the prefix through both measurements, at least the id itself.

    Example:
        >>> [round(shuffled_bytes(share)) for share in (0.1, 0.2, 0.405)]
        [13, 21, 34]
    """
    (share, fewer), (longer, more) = SHUFFLED_BYTES, SHUFFLED_BELOW
    power = math.log(more / fewer) / math.log(longer / share)
    return max(float(ID_BYTES), fewer * math.pow(prefix_share / share, power))


def _space(ids: int) -> tuple[str, ...]:
    billions, moved = ids * MILLION / 1e9, SHUFFLED_BYTES[1]
    return (
        "space per million documents, at most (equal sketches are shuffled once):",
        f"  {ID_BYTES * billions:.2f} GB of sketches, {ID_BYTES} bytes per id",
        f"  {moved * billions:.2f} GB shuffled for the pairs on Spark, {moved} bytes per id at 0.8",
    )


def grid(asked: Sequence[float], *, least: float = GRID[0]) -> list[float]:
    """Return the resemblances of a table, ascending: the usual ones from `least` on, and those asked for."""
    lower = [r / 10 for r in range(round(10 * least), round(10 * GRID[0]))]
    return sorted({*lower, *GRID, *asked})


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the headings and rows as lines with right-aligned columns."""
    widths = [max(len(row[i]) for row in (headings, *rows)) for i in range(len(headings))]
    return [
        "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (headings, *rows)
    ]


def percent(share: float) -> str:
    """Write a share in percent, with enough digits to differ from 0 % and 100 %."""
    value = 100 * share
    digits = next((n for n in (1, 2, 3) if round(value, n) not in {0.0, 100.0}), 0)
    return f"{value:.{digits}f} %"


class _Term(NamedTuple):
    """What a part of the work takes on all cores together."""

    name: str
    moved: float
    """Bytes that are shuffled."""
    hours: float
    """Of one core."""


def _terms(volume: Volume, documents: int, tasks: int, memory: int, *, is_exact: bool) -> list[_Term]:
    """Return the parts of the pairs stage: of ids, bytes, blocks and tasks, and of the exact decisions."""
    moved, blocks = volume.ids * shuffled_bytes(volume.prefix_share), blocks_sent(volume.ids, tasks, memory)
    terms = [
        _Term(f"{volume.ids:,} ids", 0, volume.ids * NANOSECONDS_OF_ID / 3.6e12),
        _Term("their exchanges", moved, moved * NANOSECONDS_OF_BYTE / 3.6e12),
        _Term(f"{EXCHANGES * blocks:,} blocks", 0, EXCHANGES * blocks * MICROSECONDS_OF_BLOCK / 3.6e9),
        _Term(f"{EXCHANGES * tasks:,} tasks", 0, EXCHANGES * tasks * MILLISECONDS_OF_TASK / 3.6e6),
    ]
    if is_exact:
        shingles = documents * WANTED // 100 * SHINGLES
        sent, each = shingles * SHINGLE_BYTES, SHINGLE_BYTES * NANOSECONDS_OF_BYTE + NANOSECONDS_SPOOLED
        hours = (documents * MICROSECONDS_OF_TEXT * 1e3 + shingles * each) / 3.6e12
        terms.append(_Term(f"exact decisions, all texts again ({SHINGLES} shingles of {WANTED} %)", sent, hours))
    return terms


def _cluster_lines(ids: int, tasks: int, memory: int, bill: _Term) -> tuple[str, ...]:
    """Return lines on a cluster that takes about an hour for the pairs stage, and the settings that request it."""
    executors = max(1, min(-(-tasks // EXECUTOR_CORES), math.ceil(bill.hours / EXECUTOR_CORES)))
    python, disk = EXECUTOR_CORES * memory >> 20, (bill.moved + ids * STORED_BYTES) / executors
    asked = (
        f"--driver-memory {DRIVER_GIGABYTES}g --executor-cores {EXECUTOR_CORES} --executor-memory {HEAP_GIGABYTES}g"
        f" --total-executor-cores {executors * EXECUTOR_CORES} --conf spark.executor.instances={executors}"
        f" --conf spark.executor.pyspark.memory={python}m"
    )
    machine = HEAP_GIGABYTES * 1.1 + python / 1024
    return (
        (
            f"  an hour with {counted(executors, 'executor')} of {EXECUTOR_CORES} cores: {HEAP_GIGABYTES} GB of heap,"
            f" {python:,} MB for Python and {machine:,.1f} GB in all for each, with {disk / 1e9:,.1f} GB of local disk"
        ),
        f"  spark-submit --master MASTER {asked} jobs/dedup.py INPUT --output OUTPUT",
    )


def _one_graph_lines(config: Config, sketches: int, memory: int) -> Iterator[str]:
    """Yield a line where the run would be refused: one task must hold the whole graph, and cannot."""
    from nddup.mining.pair_graph import GRAPH_BITS, memory_of_nodes, most_nodes  # noqa: PLC0415 - for few settings

    rules = one_graph_rules(config)
    if rules and sketches > (most := most_nodes(memory, GRAPH_BITS)):
        enough = -(-memory_of_nodes(sketches, GRAPH_BITS) >> 20)
        named = ", ".join(rules)
        yield f"  {named}: one task takes at most {most:,} distinct sketches; for these it needs {enough:,} MB"


def explain_capacity(config: Config, *, documents: int, memory: int | None, ids_of_sketch: int) -> tuple[str, ...]:
    """Return lines on the tasks, bytes and hours of the pairs stage.

    The number of tasks is that of a run (`nddup.matching.task_sizes`). The rest is extrapolated from measured
    collections, with its assumptions stated.

    Args:
        memory: of the Python worker of one task, in bytes; None: as much as large blocks take, at least `LEAST_MEMORY`.
        ids_of_sketch: ids of a usual sketch; 0 if sketches have no usual size.

    Raises:
        ConfigError: if sketches of the kind have no usual size.
    """
    if not ids_of_sketch:
        raise ConfigError(f"--documents: sketches of the kind {config.sketch.kind} have no usual size to count with")

    sketches = -(-documents * DISTINCT // 100)
    ids = sketches * ids_of_sketch
    volume = volume_of(ids, sketches, threshold_of(config))
    memory = memory or max(LEAST_MEMORY, ample_memory(volume))
    tasks = tasks_needed(volume, memory)
    terms = _terms(volume, documents, tasks, memory, is_exact=confirm_rule_of(config) is not None)
    bill = _Term("in all", sum(term.moved for term in terms), sum(term.hours for term in terms))
    cells = [(term.name, f"{term.moved / 1e9:,.1f}", f"{term.hours:,.1f}") for term in (*terms, bill)]
    blocks = say_small(volume, memory) or f"blocks of {block_bytes(ids, tasks, memory) / 1024:,.1f} kB"
    lines = (
        f"The pairs stage on Spark, for {documents:,} documents and {memory >> 20:,} MB for the worker of a task:",
        f"  {sketches:,} distinct sketches ({DISTINCT} % of the documents), {ids:,} ids",
        f"  {tasks:,} tasks in each of {EXCHANGES} exchanges; more where there are more cores",
        f"  in the exchange of elements {blocks}; that of their classes takes half a byte an id",
        "  extrapolated, without reading and sketching:",
        *(f"  {line}" for line in table(("", "GB shuffled", "core hours"), cells)),
        *_cluster_lines(ids, tasks, memory, bill),
        *_one_graph_lines(config, sketches, memory),
    )
    if tasks <= MOST_TASKS:
        return lines
    return (*lines, f"  more than the {MOST_TASKS:,} tasks there can be: give workers more memory")


def draw_curves(curves: Sequence[Curve], mark: float, path: str) -> None:
    """Draw probabilities over the resemblance, one line per curve, and write the figure as PNG.

    Args:
        mark: the resemblance at which to draw a dotted line.
        path: file to write; it must not exist, and its name must end in .png.

    Raises:
        ConfigError: if matplotlib is not installed, or the name does not end in .png.
        OutputError: if the file exists or cannot be written.
    """
    if not path.lower().endswith(".png"):
        raise ConfigError(f"--png {path}: expected a name that ends in .png")
    if Path(path).exists():
        raise OutputExistsError(f"--png {path}: exists already; give another name")

    figure = _figure()
    axes = figure.add_subplot()
    for curve in curves:
        axes.plot(DRAWN, curve.chances, linewidth=2, label=curve.label)
    axes.axvline(mark, linestyle=":", color="gray")
    axes.annotate(f"{mark:.3f}", (mark, 0.02), textcoords="offset points", xytext=(4, 0), color="gray")
    axes.set(xlabel="resemblance", ylabel="probability", xlim=(0, 1), ylim=(-0.02, 1.02))
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="upper left", frameon=False)

    try:
        figure.savefig(path, dpi=DOTS)
    except OSError as error:
        raise OutputError(f"--png {path}: cannot be written ({error.strerror})") from error


def axis_of(settings: Sequence[Mapping[str, object]], asked: str | None) -> str:
    """Return the setting that a sweep is drawn over: the one asked for, else the first that varies and is a number.

    Raises:
        ConfigError: if the key asked for does not vary in the grid, or none is asked for and no number varies.
    """
    varied = _varied(settings)
    if asked is not None:
        if asked not in varied:
            raise ConfigError(f"--x {asked}: expected a setting that varies in the grid: {', '.join(varied) or 'none'}")
        return asked
    name = next((key for key in varied if all(_is_number(one[key]) for one in settings)), None)
    if name is None:
        raise ConfigError("no setting of the grid is a number that changes: --x names one to draw over")
    return name


def draw_sweep(points: Results, over: str, folder: str) -> None:
    """Draw the results of a sweep: a panel for each measure, in it a line for each combination of the other settings.

    The name of a line stands at its right end. Combinations without a value of a measure leave a gap in its panel.

    Args:
        over: the setting of the horizontal axis; values that are no numbers stand side by side in their order.
        folder: where `sweep.svg` and `sweep.png` are written; equal points give equal SVG files.

    Raises:
        ConfigError: if matplotlib is not installed.
        OutputError: if a file cannot be written.
    """
    names = [name for name in MEASURES if any(results.get(name) is not None for _, results in points)]
    places = _places([settings[over] for settings, _ in points])
    others = [key for key in _varied([settings for settings, _ in points]) if key != over]
    lines: dict[str, list[tuple[float, Mapping[str, Any]]]] = {}
    for settings, results in points:
        label = ", ".join(f"{key.rpartition('.')[2]}={settings[key]}" for key in others)
        lines.setdefault(label, []).append((places[repr(settings[over])], results))

    figure = _figure()
    rows = -(-len(names) // COLUMNS)
    figure.set_size_inches(PANEL[0] * COLUMNS, max(PANEL[1], NAME * len(lines) + AROUND) * rows)
    panels = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        ends = []
        for number, (label, line) in enumerate(lines.items()):
            drawn = sorted((x, results[name]) for x, results in line if results.get(name) is not None)
            if drawn:
                style = {"color": f"C{number % COLOURS}", "linestyle": STYLES[number // COLOURS % len(STYLES)]}
                (plotted,) = axes.plot(*zip(*drawn, strict=True), marker="o", markersize=3, **style)
                ends.append((label, plotted.get_color(), drawn[-1]))
        axes.set(xlabel=over, title=name.replace("_", " "))
        axes.grid(visible=True, alpha=0.3)
        if any(not _is_number(settings[over]) for settings, _ in points):
            axes.set_xticks(list(places.values()), [spelled.strip("'") for spelled in places])
        if others:
            _name_lines(axes, ends)
    for axes in panels[len(names) :]:
        axes.remove()
    _save(figure, Path(folder))


def _varied(settings: Sequence[Mapping[str, object]]) -> list[str]:
    return [key for key in settings[0] if len({repr(one[key]) for one in settings}) > 1]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _places(values: Sequence[object]) -> dict[str, float]:
    """Return where each value stands: numbers at themselves; if one is none, all side by side as they first come."""
    if all(_is_number(value) for value in values):
        return {repr(value): float(str(value)) for value in values}
    return {spelled: float(place) for place, spelled in enumerate(dict.fromkeys(map(repr, values)))}


def _name_lines(axes: OfMatplotlib, ends: Sequence[tuple[str, str, tuple[float, float]]]) -> None:
    """Write the name of each line beside its last point, as near to it as names below and above let it stand."""
    low, high = axes.get_ylim()
    wanted = sorted(((y - low) / (high - low), label, colour, (x, y)) for label, colour, (x, y) in ends)
    heights = spread([height for height, *_ in wanted], min(APART, 1 / max(len(wanted) - 1, 1)))
    for height, (_, label, colour, end) in zip(heights, wanted, strict=True):
        axes.annotate(
            label, end, xytext=(1.04, height), textcoords="axes fraction", color=colour, fontsize=SMALL, va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.6, "relpos": (0, 0.5)},
        )  # fmt: skip


def spread(heights: Sequence[float], apart: float) -> list[float]:
    """Move ascending heights apart, within 0 to 1, as little as it takes from below and then from above.

    Example:
        >>> spread([0.25, 0.25, 1.0, 1.0], 0.125)
        [0.25, 0.375, 0.875, 1.0]
    """
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + apart) if moved else height)
    ceiling = 1.0
    for place in range(len(moved) - 1, -1, -1):
        moved[place] = min(moved[place], ceiling)
        ceiling = moved[place] - apart
    return moved


def _save(figure: OfMatplotlib, folder: Path) -> None:
    from matplotlib import rc_context  # noqa: PLC0415

    try:
        with rc_context({"svg.hashsalt": "nddup"}):
            figure.savefig(folder / "sweep.svg", metadata={"Date": None})
        figure.savefig(folder / "sweep.png", dpi=DOTS)
    except OSError as error:
        raise OutputError(f"{error.filename}: cannot be written ({error.strerror})") from error


def _figure() -> OfMatplotlib:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("a figure needs matplotlib, which is not installed: pip install 'nddup[figures]'") from error
    return Figure(figsize=INCHES, layout="constrained")
