"""Figures, drawn by matplotlib: an optional package, loaded only here and only when a figure is requested."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nddup.errors import ConfigError, OutputError
from nddup.explaining.curves import DRAWN, Curve

INCHES = (7.0, 4.5)
DOTS = 120

MEASURES = ("pairs", "clusters", "kept", "precision", "recall", "f1", "seconds")
"""The results of a sweep that have a panel, if any combination has them."""

COLUMNS, PANEL = 2, (5.0, 2.8)
"""Panels side by side, and the inches of one."""

SMALL, APART = 7, 0.07
"""Points of the name of a line, and the least distance of two names as a share of the panel's height."""

NAME, AROUND = 0.125, 0.65
"""Inches of height that a name takes, and a panel's title and axis."""

COLOURS, STYLES = 10, ("-", "--", ":")
"""Colours of lines; when all are used up, the next style begins."""


def draw_curves(curves: Sequence[Curve], mark: float, path: str) -> None:
    """Draw probabilities over the resemblance, one line per curve, and write the figure as PNG.

    Args:
        curves: what to draw.
        mark: the resemblance at which to draw a dotted line.
        path: file to write; it must not exist, and its name must end in .png.

    Raises:
        ConfigError: if matplotlib is not installed, or the name does not end in .png.
        OutputError: if the file exists or cannot be written.
    """
    if not path.lower().endswith(".png"):
        raise ConfigError(f"--png {path}: expected a name that ends in .png")
    if Path(path).exists():
        raise OutputError(f"--png {path}: exists already; give another name")

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


Results = Sequence[tuple[Mapping[str, object], Mapping[str, Any]]]
"""The settings of each combination of a sweep, and its results."""


def axis_of(settings: Sequence[Mapping[str, object]], asked: str | None) -> str:
    """Return the setting that a sweep is drawn over: the one asked for, else the first that varies and is a number.

    Args:
        settings: of each combination.
        asked: a key, or None.

    Raises:
        ConfigError: if the key asked for does not vary in the grid, or none is asked for and no number varies.
    """
    varied = _varied(settings)
    if asked is not None:
        if asked not in varied:
            raise ConfigError(f"--x {asked}: expected a setting that varies in the grid: {', '.join(varied) or 'none'}")
        return asked
    found = next((key for key in varied if all(_is_number(one[key]) for one in settings)), None)
    if found is None:
        raise ConfigError("no setting of the grid is a number that changes: --x names one to draw over")
    return found


def draw_sweep(points: Results, over: str, folder: str) -> None:
    """Draw the results of a sweep: a panel for each measure, in it a line for each combination of the other settings.

    The name of a line stands at its right end. Combinations without a value of a measure leave a gap in its panel.

    Args:
        points: what to draw.
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


def _name_lines(axes: Any, ends: Sequence[tuple[str, str, tuple[float, float]]]) -> None:  # noqa: ANN401 - of matplotlib
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


def _save(figure: Any, folder: Path) -> None:  # noqa: ANN401 - matplotlib's Figure
    from matplotlib import rc_context  # noqa: PLC0415

    try:
        with rc_context({"svg.hashsalt": "nddup"}):
            figure.savefig(folder / "sweep.svg", metadata={"Date": None})
        figure.savefig(folder / "sweep.png", dpi=DOTS)
    except OSError as error:
        raise OutputError(f"{error.filename}: cannot be written ({error.strerror})") from error


def _figure() -> Any:  # noqa: ANN401 - matplotlib's Figure, which may not be installed
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("a figure needs matplotlib, which is not installed: pip install 'nddup[figures]'") from error
    return Figure(figsize=INCHES, layout="constrained")
