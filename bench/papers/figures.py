"""The figures of docs/papers.md, as SVG that is readable on a light and on a dark page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.papers import published, tables
from bench.papers.cells import Cells

INK, COLOURS = "#808890", ("#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6")
INCHES = (7.0, 3.8)

Line = tuple[str, Sequence[float], Sequence[float]]


def draw(cells: Cells, folder: Path) -> None:
    """Write the figures whose cells exist."""
    folder.mkdir(parents=True, exist_ok=True)
    _quality(cells, folder / "quality.svg")
    _mining(cells, folder / "mining.svg")
    _bands(cells, folder / "bands.svg")


def _quality(cells: Cells, path: Path) -> None:
    """Plot F1 over k by shingle length, for images of 150, with the paper's line for length 10."""
    for _, made in list(cells.of("quality", "collection", tables.LONG, size=150))[:1]:
        lines: list[Line] = []
        for length in (5, 10, 15, 20):
            rows = [row for row in made["rows"] if row["shingle.length"] == length]
            lines.append((f"{length} words", [row["pairs.threshold"] for row in rows], [row["f1"] for row in rows]))
        theirs = published.QUALITY_2009
        paper = ("paper, 10 words", list(theirs), [f1 for _, _, f1 in theirs.values()])
        _plot(path, lines, axes={"xlabel": "k of 150 common features", "ylabel": "F1", "ylim": (0, 1)}, dashed=paper)


def _mining(cells: Cells, path: Path) -> None:
    """Plot the seconds of pairs and sets over k by method, for all files."""
    lines = []
    for method in ("n smallest of a permutation", "smallest of n permutations"):
        for _, made in cells.of("mining", "files", [24], method=method):
            rows = made["rows"]
            lines.append((method, [row["pairs.threshold"] for row in rows],
                          [row["pairs_s"] + row["mine_s"] for row in rows]))  # fmt: skip
    theirs: Mapping[int, float] = published.MINING_2009["n smallest of a permutation", 24]
    paper = ("paper, n smallest of a permutation", list(theirs), list(theirs.values()))
    if lines:
        _plot(
            path, lines, axes={"xlabel": "k of 100 common features", "ylabel": "seconds", "yscale": "log"}, dashed=paper
        )


def _bands(cells: Cells, path: Path) -> None:
    """Plot the share of pairs that become candidates, with the formula."""
    for _, made in cells.of("2017 curve", None, [None]):
        rows = [row for row in made["rows"] if row["pairs"]]
        middles = [row["from"] + 0.05 for row in rows]
        found = ("measured", middles, [row["candidates"] / row["pairs"] for row in rows])
        formula = ("1-(1-s^r)^b", middles, [row["expected"] / row["pairs"] for row in rows])
        _plot(path, [found], axes={"xlabel": "exact resemblance", "ylabel": "share made candidates"}, dashed=formula)


def _plot(path: Path, lines: Sequence[Line], *, axes: Mapping[str, Any], dashed: Line) -> None:
    """Plot lines with marks, and one dashed; equal numbers give an identical file."""
    mpl.rcParams["svg.hashsalt"] = "nddup"
    figure = Figure(figsize=INCHES, layout="constrained")
    plot = figure.add_subplot()
    for (label, xs, ys), colour in zip(lines, COLOURS, strict=False):
        plot.plot(xs, ys, marker="o", markersize=4, linewidth=1.8, color=colour, label=label)
    label, xs, ys = dashed
    plot.plot(xs, ys, linestyle="--", linewidth=1.5, color=INK, label=label)

    plot.set(**axes)
    plot.grid(visible=True, color=INK, alpha=0.25)
    plot.tick_params(colors=INK)
    for spine in plot.spines.values():
        spine.set_color(INK)
    for text in (plot.xaxis.label, plot.yaxis.label):
        text.set_color(INK)
    plot.legend(frameon=False, fontsize="small", labelcolor=INK)
    figure.savefig(path, format="svg", transparent=True, metadata={"Date": None})
