"""`nddup explain`: what a choice means before anything runs. Texts and curves, no Spark.

    explain_bands      bands x rows: the S-curve, its threshold, what comes in vain and what is missed
    explain_support    k common ids of sketches of n: which resemblances that finds

The settings of a run are explained by kind in `nddup.explaining.effects`. Each gives an `Explanation`: lines for the
terminal, and the curves that `nddup.explaining.figures` can draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nddup.sketching.accuracy import (
    candidate_probability,
    curve_threshold,
    expected_errors,
    expected_overlap,
    overlap_probability,
)

GRID = (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
"""Resemblances of the tables; those asked for come in between."""

DRAWN = np.linspace(0, 1, 201)
"""Resemblances of the figures."""

ID_BYTES = 8
FIRST_POSTING_BYTES = 20
"""Feature, sketch and bound: what one id of one sketch is in the first shuffle of the pairs stage."""

LATER_POSTING_BYTES = 24
"""The same with its number of holders, in the shuffles after it."""

MILLION = 1_000_000
PAGE = 1_000
"""Words of the page in the examples."""


@dataclass(frozen=True)
class Curve:
    """A chance for each resemblance in `DRAWN`, and what it is the chance of."""

    label: str
    chances: tuple[float, ...]


@dataclass(frozen=True)
class Explanation:
    """What to print and what to draw.

    Attributes:
        lines: what is found and missed.
        curves: the same to be drawn.
        mark: the resemblance where the curve matters.
        ids: of a sketch, at the most, for what a million of them take; 0: as many as the documents have.
        more: lines beside it.
    """

    lines: tuple[str, ...]
    curves: tuple[Curve, ...]
    mark: float
    ids: int
    more: tuple[str, ...] = ()

    def text(self) -> str:
        """All lines, each ended."""
        memory = _memory(self.ids) if self.ids else ()
        return "\n".join([*self.lines, "", *memory, *self.more]) + "\n"


def explain_bands(bands: int, rows: int, *, asked: Sequence[float] = ()) -> Explanation:
    """The S-curve of `bands` bands of `rows` slots; see `nddup.sketching.accuracy`."""
    threshold = curve_threshold(bands=bands, rows=rows)
    wrong = expected_errors(bands=bands, rows=rows, threshold=threshold)

    def chance(resemblance: float) -> float:
        return float(candidate_probability(resemblance, bands=bands, rows=rows))

    rows_of = [[f"{r:g}", percent(chance(r)), percent(1 - chance(r))] for r in grid(asked, least=0.1)]
    lines = (
        f"{bands} bands of {rows} rows: {bands * rows:,} slots a signature",
        "",
        f"A pair of resemblance s becomes a candidate with probability 1 - (1 - s^{rows})^{bands}:",
        *table(("resemblance", "candidate", "missed"), rows_of),
        "",
        f"threshold (1/b)^(1/r) = {threshold:.4f}: about its steepest place; {percent(chance(threshold))} pass",
        f"  below it {percent(wrong.false_positives)} of the pairs pass all the same: false positives, which a",
        "  comparison of the signatures sorts out again",
        f"  above it {percent(wrong.false_negatives)} do not pass: false negatives, which nothing brings back",
        "  (of pairs spread evenly over all resemblances)",
        "More bands find more of both; more rows fewer of both; more of both together, a steeper curve.",
    )
    buckets = f"  {bands:,} buckets a document: {2 * ID_BYTES * bands * MILLION / 1e9:.2f} GB of bucket and document"
    curve = Curve(f"candidate: {bands} bands of {rows}", tuple(chance(r) for r in DRAWN.tolist()))
    return Explanation(lines, (curve,), threshold, bands * rows, (buckets,))


def explain_support(support: int, size: int, *, asked: Sequence[float] = ()) -> Explanation:
    """What it means that two min-s sketches of `size` ids share at least `support` of them."""
    found = explain_overlap(support, size, asked=asked)
    short = f"Documents of fewer than {support} shingles are in no pair, not even with their own copies."
    return replace(found, lines=(*found.lines, short))


def explain_overlap(support: int, size: int, *, asked: Sequence[float]) -> Explanation:
    """What `support` common ids of `size` say of a resemblance, and who shares as many."""

    def chance(resemblance: float) -> float:
        return overlap_probability(resemblance, size=size, support=support)

    least, usual = max(0.0, 2 * support / size - 1), support / (2 * size - support)
    rows_of = [[f"{r:g}", f"{expected_overlap(r, size=size):.1f}", percent(chance(r))] for r in grid(asked)]
    lines = (
        f"at least {support} of {size} ids in common: {percent(support / size)} of a full sketch",
        "",
        f"Two sketches with {support} ids in common estimate a resemblance from {least:.3f} to {support / size:.3f},",
        f"by the order of the others; {usual:.3f} in the middle, k / (2n - k).",
        *table(("resemblance", "common ids", "found"), rows_of),
        "  (two documents of about one length, with many more shingles than ids; common ids in the mean)",
        "",
    )
    curve = Curve(f"at least {support} of {size} ids", tuple(chance(r) for r in DRAWN.tolist()))
    return Explanation(lines, (curve,), usual, size)


def _memory(ids: int) -> tuple[str, ...]:
    """What a million documents with so many ids each take, at the most."""
    millions = ids * MILLION / 1e9
    return (
        "per million documents, at the most (equal sketches are shuffled once):",
        f"  {ID_BYTES * millions:.2f} GB of sketches, {ID_BYTES} bytes an id",
        f"  {FIRST_POSTING_BYTES * millions:.2f} GB in the first shuffle, {FIRST_POSTING_BYTES} bytes an id",
        f"  {LATER_POSTING_BYTES * millions:.2f} GB in each later one, {LATER_POSTING_BYTES} bytes an id that two hold",
    )


def grid(asked: Sequence[float], *, least: float = GRID[0]) -> list[float]:
    """The resemblances of a table, ascending: the usual ones and those asked for."""
    lower = [r / 10 for r in range(round(10 * least), round(10 * GRID[0]))]
    return sorted({*lower, *GRID, *asked})


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells in columns, each to the right, a line a row."""
    widths = [max(len(row[i]) for row in (headings, *rows)) for i in range(len(headings))]
    return [
        "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (headings, *rows)
    ]


def percent(share: float) -> str:
    """A share in percent, with as many digits as tell it from none and from all."""
    percent = 100 * share
    digits = next((n for n in (1, 2, 3) if round(percent, n) not in {0.0, 100.0}), 0)
    return f"{percent:.{digits}f} %"
