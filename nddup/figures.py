"""Figures, drawn by matplotlib: an optional package, loaded only here and only when a figure is asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nddup.errors import ConfigError, OutputError
from nddup.explain import DRAWN, Curve

INCHES = (7.0, 4.5)
DOTS = 120


def draw_curves(curves: Sequence[Curve], mark: float, path: str) -> None:
    """Draw chances over the resemblance, a line a curve, and write them as PNG.

    Args:
        curves: what to draw.
        mark: a resemblance that gets a dotted line.
        path: file to write; it must not exist, and its name must end in .png.

    Raises:
        ConfigError: if matplotlib is not installed, or the name is no PNG's.
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


def _figure() -> Any:  # noqa: ANN401 - matplotlib's Figure, which may not be installed
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("--png needs matplotlib, which is not installed: pip install 'nddup[figures]'") from error
    return Figure(figsize=INCHES, layout="constrained")
