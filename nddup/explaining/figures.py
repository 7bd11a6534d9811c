"""Figures, drawn by matplotlib: an optional package, loaded only here and only when a figure is requested."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nddup.errors import ConfigError, OutputError
from nddup.explaining.curves import DRAWN, Curve

INCHES = (7.0, 4.5)
DOTS = 120


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


def draw_sweep(points: Sequence[tuple[dict[str, object], dict[str, Any]]], path: str) -> None:
    """Draw the results of a sweep as PNG: one panel per result, over the first numeric setting that varies.

    Args:
        points: the settings of each combination, and its results.
        path: file to write.

    Raises:
        ConfigError: if matplotlib is not installed, or no numeric setting varies.
    """
    keys = [key for key in points[0][0] if len({repr(settings[key]) for settings, _ in points}) > 1]
    over = next((key for key in keys if all(isinstance(settings[key], int | float) for settings, _ in points)), None)
    if over is None:
        raise ConfigError("no setting of the grid is a number that changes: there is nothing to draw over")

    # One line for each combination of the other settings.
    names = [name for name in ("pairs", "clusters", "kept", "f1", "precision", "recall", "seconds")
             if all(results.get(name) is not None for _, results in points)]  # fmt: skip
    lines: dict[str, list[tuple[dict[str, object], dict[str, Any]]]] = {}
    for settings, results in points:
        label = ", ".join(f"{key}={settings[key]}" for key in keys if key != over)
        lines.setdefault(label, []).append((settings, results))

    figure = _figure()
    figure.set_size_inches(INCHES[0], 2.5 * len(names))
    for axes, name in zip(figure.subplots(len(names), squeeze=False)[:, 0], names, strict=True):
        for label, line in lines.items():
            ordered = sorted((settings[over], results[name]) for settings, results in line)
            axes.plot(*zip(*ordered, strict=True), marker="o", label=label or None)
        axes.set(xlabel=over, ylabel=name)
        axes.grid(visible=True, alpha=0.3)
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=DOTS)


def _figure() -> Any:  # noqa: ANN401 - matplotlib's Figure, which may not be installed
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("--png needs matplotlib, which is not installed: pip install 'nddup[figures]'") from error
    return Figure(figsize=INCHES, layout="constrained")
