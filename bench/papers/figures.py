"""The figures of docs/papers.md, as SVG that is readable on a light and on a dark page.

Those of 2009: quality-100 (its figure 1), lengths (2), quality (3), bisection (4), mining (5), mining-permutations (6)
and miners (7); of 2017: seconds (4) and bands (5). Lines with marks are measured, dashed ones published.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.papers import published, tables
from bench.papers.cells import Cells, Values

INK, COLOURS = "#808890", ("#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6")
INCHES = (4.4, 3.6)
"""Width and height of a panel."""
DASHED = "--"
RATIOS = {"precision": "P", "recall": "R", "f1": "F1"}


class Line(NamedTuple):
    """A line of a panel: measured, with marks, or dashed."""

    label: str
    xs: Sequence[float]
    ys: Sequence[float]
    colour: str
    style: str = "o-"


Panels = dict[str, list[Line]]
"""The lines of each panel, by its title."""


def draw(cells: Cells, folder: Path) -> None:
    """Write the figures whose cells exist."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.rcParams["svg.hashsalt"] = "nddup"
    share = {"ylabel": "share", "ylim": (0, 1.02)}
    seconds = {"ylabel": "seconds", "yscale": "log"}
    _plot(folder / "quality-100.svg", _quality(cells, "20 words, 100 smallest", published.QUALITY_100_2009),
          xlabel="k of 100 common features", **share)  # fmt: skip
    _plot(folder / "lengths.svg", _lengths(cells), xlabel="words of a shingle", ylabel="best F1")
    _plot(folder / "quality.svg", _quality(cells, "10 words, 150 smallest", published.QUALITY_2009),
          xlabel="k of 150 common features", **share)  # fmt: skip
    _plot(folder / "bisection.svg", _bisection(cells), xlabel="clusters, of 6,941 documents", **share)
    for name, method in zip(("mining", "mining-permutations"), tables.METHODS, strict=True):
        _plot(folder / f"{name}.svg", _mining(cells, method), xlabel="k of 100 common features", **seconds)
    _plot(folder / "miners.svg", _miners(cells), xlabel="k of 100 common features", **seconds)
    _plot(folder / "seconds.svg", _seconds(cells), xlabel="documents", ylabel="seconds")
    _plot(folder / "bands.svg", _bands(cells), xlabel="exact resemblance", **(share | {"ylabel": "made candidates"}))


def _quality(cells: Cells, images: str, theirs: Mapping[int, tuple[float, float, float]]) -> Panels:
    """Return precision, recall and F1 by k, a panel for each collection."""
    panels = {}
    for name in tables.LONG:
        if rows := tables.images_of(cells, name).get(images):
            panels[name] = _ratios([row for row in rows if row["pairs.threshold"] in theirs], "pairs.threshold", theirs)
    return panels


def _ratios(rows: Sequence[Values], x: str, theirs: Mapping[int, tuple[float, float, float]]) -> list[Line]:
    lines = []
    for place, ((name, label), colour) in enumerate(zip(RATIOS.items(), COLOURS, strict=False)):
        lines.append(_line(label, rows, x, name, colour))
        lines.append(
            Line(f"paper {label}", list(theirs), [ratios[place] for ratios in theirs.values()], colour, DASHED)
        )
    return lines


def _line(label: str, rows: Iterable[Values], x: str, y: str, colour: str) -> Line:
    points = [(row[x], row[y]) for row in rows if row[y] is not None]
    return Line(label, [x for x, _ in points], [y for _, y in points], colour)


def _lengths(cells: Cells) -> Panels:
    lines: list[Line] = []
    for name in tables.LONG:
        for size in (100, 150):
            for _, made in cells.of("quality", "collection", [name], size=size):
                best = tables.best_by(made["rows"], "shingle.length")
                colour = COLOURS[len(lines)]
                lines.append(_line(f"{name}, {size}", best.values(), "shingle.length", "f1", colour))
    return {"images of 100 and 150": lines} if lines else {}


def _bisection(cells: Cells) -> Panels:
    clusters = {name: int(name.split()[0].replace(",", "")) for name in published.BISECTION_2009}
    made = [{**values, "clusters": clusters[name]} for name, values in cells.of("bisection", "clusters", clusters)
            if values["seconds"] is not None]  # fmt: skip
    theirs = {clusters[name]: ratios for name, (_, *ratios) in published.BISECTION_2009.items()}
    return (
        {"repeated bisection": _ratios(made, "clusters", {at: (p, r, f) for at, (p, r, f) in theirs.items()})}
        if made
        else {}
    )


def _mining(cells: Cells, method: str) -> Panels:
    """Return the seconds of pairs and sets by k, a line for each number of files."""
    lines = []
    for (count, made), colour in zip(
        cells.of("mining", "files", published.DOCUMENTS_2009, method=method), COLOURS, strict=False
    ):
        rows = [{**row, "seconds": row["pairs_s"] + row["mine_s"]} for row in made["rows"]]
        lines.append(_line(f"files 1–{count}", rows, "pairs.threshold", "seconds", colour))
        if theirs := published.MINING_2009.get((method, count)):
            lines.append(Line(f"paper, 1–{count}", list(theirs), list(theirs.values()), colour, DASHED))
    return {method: lines} if lines else {}


def _miners(cells: Cells) -> Panels:
    panels = {}
    for method in tables.METHODS:
        rows = [{"k": k, **made} for k, made in cells.of("miners", "k", tables.KS, method=method)]
        mllib = [{"k": k, **made} for k, made in cells.of("mllib", "k", tables.KS, method=method)]
        told = {"nddup": "nddup_s", "FP-growth in C": "fpgrowth_s"}
        lines = [
            _line(label, rows, "k", name, colour) for (label, name), colour in zip(told.items(), COLOURS, strict=False)
        ]
        if rows:
            panels[method] = [*lines, _line("FP-Growth of MLlib", mllib, "k", "seconds", COLOURS[3])]
    return panels


def _seconds(cells: Cells) -> Panels:
    made = list(cells.of("2017 time", "documents", published.TIME_2017))
    if not made:
        return {}
    lines = [Line(name, [count for count, _ in made], [values[name] for _, values in made], colour)
             for name, colour in zip(("k = 4", "k = 10"), COLOURS, strict=False)]  # fmt: skip
    theirs = published.TIME_2017
    return {"": [*lines, Line("paper, at most", list(theirs), [most for _, most in theirs.values()], INK, DASHED)]}


def _bands(cells: Cells) -> Panels:
    """Return the share of pairs that become candidates, with the formula."""
    for _, made in cells.of("2017 curve", None, [None]):
        rows = [row for row in made["rows"] if row["pairs"]]
        middles = [row["from"] + 0.05 for row in rows]
        return {"": [
            Line("measured", middles, [row["candidates"] / row["pairs"] for row in rows], COLOURS[0]),
            Line("1-(1-s^r)^b", middles, [row["expected"] / row["pairs"] for row in rows], INK, DASHED),
        ]}  # fmt: skip
    return {}


def _plot(path: Path, panels: Panels, **axes: Any) -> None:  # noqa: ANN401 - of matplotlib
    """Plot panels, if any, side by side with a legend beside them; equal numbers give an identical file."""
    if not panels:
        return
    figure = Figure(figsize=(INCHES[0] * len(panels) + 1.6, INCHES[1]), layout="constrained")
    for plot, (title, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for label, xs, ys, colour, style in lines:
            plot.plot(xs, ys, style, linewidth=1.6, markersize=4, color=colour, label=label)
        plot.set(title=title, **axes)
        plot.grid(visible=True, color=INK, alpha=0.25)
        plot.tick_params(which="both", colors=INK)
        for spine in plot.spines.values():
            spine.set_color(INK)
        for text in (plot.xaxis.label, plot.yaxis.label, plot.title):
            text.set_color(INK)
    handles, labels = plot.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize="small", labelcolor=INK)
    figure.savefig(path, format="svg", transparent=True, metadata={"Date": None})
