"""The tables of docs/papers.md, made from the cells: our results beside those in the papers."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bench.papers import published
from bench.papers.cells import Cells, Values

COLLECTIONS = ("debdocs-dev", "debdocs-170", "mix-170", "ruweb", "given")
LONG = ("debdocs-170", "mix-170", "given")
"""The collections of the tables where k is a count of 100 or more: most of their pages have as many features."""
PRECISE = 3
KS = (100, 95, 90, 85, 80, 70, 60, 50)
METHODS = ("n smallest of a permutation", "smallest of n permutations")


class Table(NamedTuple):
    """A table of the experiments; cells are numbers, texts, or None where nothing was measured or published."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]

    def markdown(self, starts: Sequence[str] = ()) -> str:
        r"""Return the table in Markdown, the first column aligned left, the others right.

        Args:
            starts: only the rows whose first cells are one of these, with ` | ` between cells; all rows if empty.

        >>> Table(["k", "sets"], [[100, 1234], [95, None]]).markdown()
        '| k | sets |\n|---|---:|\n| 100 | 1,234 |\n| 95 | – |'
        >>> Table(["k", "sets"], [[100, 1234], [95, None]]).markdown(["95"])
        '| k | sets |\n|---|---:|\n| 95 | – |'
        """
        lines = [" | ".join([_spell(value, thousands=",") or "–" for value in row]) for row in self.rows]
        told = [line for line in lines if not starts or f"{line} |".startswith(tuple(f"{start} |" for start in starts))]
        rule = "|---" + "|---:" * (len(self.headings) - 1) + "|"
        return "\n".join([f"| {' | '.join(self.headings)} |", rule, *(f"| {line} |" for line in told)])

    def csv(self) -> str:
        r"""Return the table as CSV: numbers without separators of thousands, an empty field for None.

        >>> Table(["k", "sets"], [[100, 1234], [95, None]]).csv()
        'k,sets\n100,1234\n95,\n'
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([self.headings, *[[_spell(value) for value in row] for row in self.rows]])
        return text.getvalue()


def _spell(value: object, thousands: str = "") -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:{thousands}.0f}"  # noqa: PLR2004 - three digits are enough
    return f"{value:{thousands}}" if isinstance(value, int) else str(value)


def all_tables(cells: Cells) -> dict[str, Table]:
    """Return every table whose cells exist, by its name."""
    makers = {
        "summary-1997": _summary, "sizes-1997": _component_sizes, "shingles-1997": _shingles,
        "containment-1997": _containment, "super-1997": _super, "lists-2009": _lists, "images-2009": _images,
        "shapes-2005": _shapes, "pairs-2009": _pairs, "quality-100-2009": _quality_100, "mining-2009": _mining,
        "mining-150-2009": _mining_150, "quality-2009": _quality, "lengths-2009": _lengths, "lexical-2009": _lexical,
        "closure-2009": _closure, "sizes-2009": _set_sizes, "miners": _miners, "romip": _romip,
        "bisection": _bisection, "bands-2014": _bands, "time-2017": _time, "functions-2017": _functions,
        "curve-2017": _curve,
    }  # fmt: skip
    found = {name: make(cells) for name, make in makers.items()}
    return {name: table for name, table in found.items() if table.rows}


def best_by(rows: Sequence[Values], key: str) -> dict[Any, Values]:
    """Return the row with the best F1 for each value of a setting."""
    found: dict[Any, Values] = {}
    for row in rows:
        if row[key] not in found or (row["f1"] or 0) > (found[row[key]]["f1"] or 0):
            found[row[key]] = row
    return found


def _summary(cells: Cells) -> Table:
    rows = []
    for name, made in cells.of("1997", "collection", COLLECTIONS):
        same, counts = made["identical"], made["rows"]
        clustered = sum(row["size"] * row["clusters"] for row in made["sizes"])
        copies = [same["same_bytes"], same["same_sketch"]]
        numbers = [counts["documents"], *copies, counts["clusters"], clustered, made["kept"], made["empty"]]
        rows.append([name, *numbers, made["seconds"]])
    headings = ["collection", "documents", "same bytes as an earlier one", "same sketch", "clusters",
                "documents in clusters", "kept", "empty sketches", "seconds"]  # fmt: skip
    return Table(headings, rows)


def _component_sizes(cells: Cells) -> Table:
    return _sizes_of(cells, "1997")


def _set_sizes(cells: Cells) -> Table:
    return _sizes_of(cells, "sizes")


def _sizes_of(cells: Cells, table: str) -> Table:
    """Return a table of clusters by size, in classes that double."""
    classes = [(2, 2), (3, 3), (4, 7), (8, 15), (16, 31), (32, 63), (64, 127), (128, 1 << 40)]
    columns = []
    for name, made in cells.of(table, "collection", COLLECTIONS):
        sizes = made["sizes"] if "sizes" in made else made["rows"]
        counts = [sum(row["clusters"] for row in sizes if low <= row["size"] <= high) for low, high in classes]
        columns.append((name, counts))
    told = ["2", "3", *(f"{low}–{high}" for low, high in classes[2:-1]), "128 and more"]
    rows = [[text, *(counts[place] for _, counts in columns)] for place, text in enumerate(told)]
    return Table(["documents in a cluster", *(f"clusters of {name}" for name, _ in columns)], rows if columns else [])


def _shingles(cells: Cells) -> Table:
    columns = [(name, {row["documents"]: row["shingles"] for row in made["shingles"]})
               for name, made in cells.of("1997", "collection", COLLECTIONS)]  # fmt: skip
    starts = sorted({start for _, column in columns for start in column})
    rows = [[_class_of(start), *(column.get(start, 0) for _, column in columns)] for start in starts]
    return Table(["documents that hold the shingle", *(f"shingles of {name}" for name, _ in columns)], rows)


def _class_of(start: int) -> str:
    """Return a number up to three as it is, and a power of two above it as the range to the next."""
    return str(start) if start <= PRECISE else f"{start}–{2 * start - 1}"


def _containment(cells: Cells) -> Table:
    columns = [(name, made["rows"]) for name, made in cells.of("containment", "collection", COLLECTIONS)]
    kinds = ("resemblance", "containment")
    rows: list[list[object]] = []
    for place, row in enumerate(columns[0][1] if columns else []):
        rows.append([f"{row['at']:.1f}", *(table[place][kind] for _, table in columns for kind in kinds)])
    headings = [f"{name}, {kind}" for name, _ in columns for kind in kinds]
    return Table(["at least", *headings], rows)


def _super(cells: Cells) -> Table:
    rows: list[list[object]] = []
    for name, made in cells.of("super", "collection", COLLECTIONS):
        both = {row["at"]: row["pairs"] for row in made["both"]}
        for row in made["whole"]:
            found = both.get(row["at"], 0)
            rows.append([f"{name}, {row['at']:.1f}", row["pairs"], found, f"{found / max(row['pairs'], 1):.2f}"])
        rows.append([f"{name}, candidates", *made["candidates"], None])
        rows.append([f"{name}, seconds of pairs", *made["seconds"], None])
    return Table(["resemblance from", "whole sketches", "a super-shingle in common", "share"], rows)


def _lists(cells: Cells) -> Table:
    rows = [
        [name, made["compared"], made["pairs"], made["missed"], made["sampled"], made["seconds"]]
        for name, made in cells.of("reference list", "collection", COLLECTIONS)
    ]
    headings = ["collection", "candidates compared", "pairs in the list", "missed", "of the pairs of 50 documents",
                "seconds"]  # fmt: skip
    return Table(headings, rows)


def _images(cells: Cells) -> Table:
    rows: list[list[object]] = []
    for method in METHODS:
        for count, made in cells.of("images", "files", published.DOCUMENTS_2009, method=method):
            theirs = published.IMAGES_2009[method, count]
            rows.append([method, f"1–{count}", made["documents"], made["seconds"],
                         round(made["documents"] / made["seconds"]), theirs,
                         round(published.DOCUMENTS_2009[count] / theirs)])  # fmt: skip
    headings = ["method", "files", "documents", "seconds", "documents a second", "paper: seconds",
                "paper: documents a second"]  # fmt: skip
    return Table(headings, rows)


def _shapes(cells: Cells) -> Table:
    rows: list[list[object]] = []
    for (length, size), theirs in published.SHAPES_2005.items():
        for _, made in cells.of("images", "length", [length], size=size):
            rows.append([f"{length} words, {size} smallest", made["documents"], made["seconds"], theirs])
    return Table(["images", "documents", "seconds", "paper: seconds for 53,539"], rows)


def _pairs(cells: Cells) -> Table:
    """Return the numbers of pairs in the list, found, and common, by images and k, of a collection and the paper."""
    rows: list[list[object]] = []
    for name, listed in cells.of("reference list", "collection", LONG[1:]):
        for images, found in images_of(cells, name).items():
            by_k = {row["pairs.threshold"]: row for row in found}
            for k, theirs in list(published.PAIRS_2009[images].items())[::2]:
                row = by_k[k]
                common = round((row["precision"] or 0) * row["pairs"])
                rows.append([f"{name}, {images}", k, listed["pairs"], row["pairs"], common, *theirs])
    told = ["in the list", "found", "in both"]
    return Table(["images", "k", *told, *(f"paper: {name}" for name in told)], rows)


def images_of(cells: Cells, name: str) -> dict[str, list[Values]]:
    """Return the rows by k of the images of the papers' tables 2 and 6."""
    found: dict[str, list[Values]] = {}
    for size, length in ((100, 20), (150, 10)):
        for _, made in cells.of("quality", "collection", [name], size=size):
            found[f"{length} words, {size} smallest"] = [row for row in made["rows"] if row["shingle.length"] == length]
    for _, made in cells.of("permuted", "collection", [name]):
        found["20 words, 100 permutations"] = made["rows"]
    return found


def _quality_100(cells: Cells) -> Table:
    return _quality_of(cells, "20 words, 100 smallest", published.QUALITY_100_2009)


def _mining(cells: Cells) -> Table:
    rows: list[list[object]] = []
    for method in METHODS:
        for count, made in cells.of("mining", "files", [24], method=method):
            theirs = {
                k: seconds
                for files in (12, count)
                for k, seconds in published.MINING_2009.get((method, files), {}).items()
            }
            for row in made["rows"]:
                k = row["pairs.threshold"]
                rows.append([method, k, row["pairs"], row["clusters"], row["pairs_s"], row["mine_s"],
                             theirs.get(k)])  # fmt: skip
    headings = ["method", "k", "pairs", "maximal sets", "seconds of pairs", "seconds of sets", "paper: seconds"]
    return Table(headings, rows)


def _mining_150(cells: Cells) -> Table:
    rows = [[name, row["pairs.threshold"], row["pairs"], row["clusters"], row["pairs_s"], row["mine_s"],
             published.SECONDS_2009[row["pairs.threshold"]]]
            for name, made in cells.of("mining 150", "collection", LONG) for row in made["rows"][::2]]  # fmt: skip
    return Table(
        ["collection", "k", "pairs", "maximal sets", "seconds of pairs", "seconds of sets", "paper: seconds"], rows
    )


def _quality(cells: Cells) -> Table:
    return _quality_of(cells, "10 words, 150 smallest", published.QUALITY_2009)


def _quality_of(cells: Cells, images: str, theirs: Mapping[int, tuple[float, float, float]]) -> Table:
    """Return precision, recall and F1 by k, of the collections and the paper."""
    columns = {}
    for name in LONG:
        if rows := images_of(cells, name).get(images):
            columns[name] = {row["pairs.threshold"]: row for row in rows}
    table = []
    for k, ratios in theirs.items():
        ours = [value for column in columns.values() for value in _ratios(column.get(k, {}))]
        table.append([k, *ours, *(f"{ratio:.2f}" for ratio in ratios)])
    headings = [f"{name} {ratio}" for name in columns for ratio in ("P", "R", "F1")]
    return Table(["k", *headings, "paper P", "paper R", "paper F1"], table if columns else [])


def _ratios(row: Values) -> list[str | None]:
    return [f"{row[name]:.2f}" if row.get(name) is not None else None for name in ("precision", "recall", "f1")]


def _lengths(cells: Cells) -> Table:
    """Return the best F1 of each shingle length, with its k."""
    rows: list[list[object]] = []
    for size in (100, 150):
        for name, made in cells.of("quality", "collection", LONG, size=size):
            for length, row in best_by(made["rows"], "shingle.length").items():
                rows.append([f"{name}, images of {size}", length, row["pairs.threshold"], *_ratios(row)])
    return Table(["collection", "shingle length", "best k", "P", "R", "F1"], rows)


def _lexical(cells: Cells) -> Table:
    """Return, for each collection, the share of common words with the best F1."""
    rows: list[list[object]] = []
    for name, made in cells.of("lexical", "collection", COLLECTIONS):
        row = max(made["rows"], key=lambda row: row["f1"] or 0)
        rows.append([name, f"{row['pairs.threshold']:.2f}", row["pairs"], row["clusters"], *_ratios(row)])
    return Table(["collection", "best share", "pairs", "maximal sets", "P", "R", "F1"], rows)


def _closure(cells: Cells) -> Table:
    rows: list[list[object]] = []
    for name, made in cells.of("closure", "collection", COLLECTIONS):
        by_mode = {(row["k"], row["mode"]): row for row in made["rows"]}
        for k in sorted({row["k"] for row in made["rows"]}, reverse=True)[::2]:
            joined, sets = by_mode[k, "components"], by_mode[k, "all"]
            rows.append([name, k, joined["largest"], joined["invented"], *_ratios(joined), *_ratios(sets)])
    headings = ["collection", "k", "largest component", "invented pairs", "closure P", "closure R", "closure F1",
                "maximal sets P", "maximal sets R", "maximal sets F1"]  # fmt: skip
    return Table(headings, rows)


def _miners(cells: Cells) -> Table:
    rows: list[list[object]] = []
    for method in METHODS:
        mllib = dict(cells.of("mllib", "k", KS, method=method))
        for k, made in cells.of("miners", "k", KS, method=method):
            theirs = mllib.get(k, {})
            rows.append([method, k, made["sets"], made["nddup_s"], made.get("fpgrowth_s"),
                         theirs.get("sets"), theirs.get("seconds")])  # fmt: skip
    headings = ["images", "k", "maximal sets", "nddup, s", "FP-growth in C, s", "all frequent sets",
                "FP-Growth of MLlib, s"]  # fmt: skip
    return Table(headings, rows)


def _bisection(cells: Cells) -> Table:
    rows: list[list[object]] = []
    for name, made in cells.of("bisection", "clusters", published.BISECTION_2009):
        seconds, *_, f1 = published.BISECTION_2009[name]
        rows.append([f"bisection, {made['clusters']:,} clusters", made["seconds"], made.get("precision"),
                     made.get("recall"), made.get("f1"), seconds, f"{f1:.2f}"])  # fmt: skip
    for _, made in cells.of("baseline sets", None, [None]):
        for row in made["rows"][::2]:
            k = row["pairs.threshold"]
            theirs = [str(published.SECONDS_2009[k]), f"{published.QUALITY_2009[k][2]:.2f}"]
            rows.append([f"maximal sets, k = {k}", row["pairs_s"] + row["mine_s"], row["precision"], row["recall"],
                         row["f1"], *theirs])  # fmt: skip
    return Table(["clustering", "seconds", "P", "R", "F1", "paper: seconds", "paper: F1"], rows)


def _romip(cells: Cells) -> Table:
    """Return the seconds of the generated pages, with the paper's for its files 1-24 (1-12 with n permutations)."""
    rows: list[list[object]] = []
    for method, files in (("n smallest of a permutation", 24), ("smallest of n permutations", 12)):
        images, theirs = published.IMAGES_2009[method, files], published.MINING_2009[method, files]
        for (pages, name), made in cells.all("romip", "pages", "method"):
            seconds = made["rows"][0]["image_s"]
            for row in made["rows"] if name == method else []:
                k = row["k"]
                rows.append([f"{method}, {pages:,} pages", k, row["pairs"], row["sets"], round(seconds),
                             row["pairs_s"], row["mine_s"], images, theirs.get(k)])  # fmt: skip
    headings = ["images of 100", "k", "pairs", "maximal sets", "seconds of images", "seconds of pairs",
                "seconds of sets", "paper: seconds of images", "paper: seconds of sets"]  # fmt: skip
    return Table(headings, rows)


def _bands(cells: Cells) -> Table:
    """Return the pages of each band of each page; of the lowest, how many there are."""
    for _, made in cells.of("2014", None, [None]):
        rows = [[*row[:2], len(row[2].split()), *row[3:]] for row in made["rows"]]
        return Table(made["headings"], rows)
    return Table([], [])


def _time(cells: Cells) -> Table:
    rows, names = [], []
    for count, made in cells.of("2017 time", "documents", published.TIME_2017):
        names = list(made)
        low, high = published.TIME_2017[count]
        rows.append([count, *made.values(), f"{low}" if low == high else f"{low}–{high}"])
    return Table(["documents", *names, "paper"], rows)


def _functions(cells: Cells) -> Table:
    rows, names = [], []
    for count, made in cells.of("2017 functions", "documents", sorted(published.FUNCTIONS_2017 | published.TIME_2017)):
        names = list(made)
        rows.append([count, *made.values(), published.FUNCTIONS_2017.get(count)])
    return Table(["documents", *names, "paper"], rows)


def _curve(cells: Cells) -> Table:
    rows: list[list[object]] = []
    for _, made in cells.of("2017 curve", None, [None]):
        for row in made["rows"]:
            share = f"{row['candidates'] / row['pairs']:.3f}" if row["pairs"] else None
            tenth = f"{row['from']:.1f}–{row['from'] + 0.1:.1f}"
            theirs = published.CURVE_2017.get(row["from"])
            rows.append([tenth, row["pairs"], row["candidates"], row["expected"], share, theirs and f"{theirs:.3f}"])
    headings = ["exact resemblance", "pairs", "candidates", "expected by the formula", "share",
                "paper, from the first"]  # fmt: skip
    return Table(headings, rows)
