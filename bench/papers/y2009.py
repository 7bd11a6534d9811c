"""Kuznetsov, Ignatov, Obiedkov, Samokhin 2005, and Ignatov, Kuznetsov 2009: clusters as maximal frequent sets.

images       seconds to read and sketch, by method and number of files, and by shingle length and image size
mining       seconds of pairs and clusters, and maximal sets, by the least number k of common features
quality      precision, recall and F1 against the list of pairs with edit similarity 0.85, by length, size and k
permuted     the same for images of n permutations, of 100 shingles of 20 words
lexical      the same for lexical images, by the share of common words
closure      the same for connected components beside maximal sets, and the pairs that the closure invents
sizes        number of clusters of each size
"""

import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import nddup as api
from bench.papers.cells import Cells, Values
from bench.papers.collections import SUBSETS, first
from bench.papers.runs import compare, make_run, nddup, sweep, values_of

PROFILE, PERMUTATIONS, LEXICON = "romip2005", "romip2005-min-perm", "romip2005-lexicon"
METHODS = {"n smallest of a permutation": PROFILE, "smallest of n permutations": PERMUTATIONS}
SUPPORTS_100 = (100, 95, 90, 85, 80, 70, 60, 50)
SUPPORTS_150 = (150, 145, 140, 135, 130, 125, 120, 115, 110, 105, 100)
LENGTHS = (5, 10, 15, 20)
SHAPES = ((5, 100), (10, 100), (15, 100), (20, 100), (10, 120), (10, 150), (10, 180), (10, 200))
"""Shingle lengths and image sizes of the table of 2005, for files 1-6."""
SHAPE_FILES = 6
SIMILARITY = 0.85
SHARES = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
Grid = Mapping[str, Sequence[object]]
BEST = ("shingle.length=10", "sketch.size=150")
UNSEEN = ("debdocs-dev", "ruweb")
"""Collections that show nothing where k is a count of 100 or more: short pages, and a list of 14 pairs."""
_TOLD = re.compile(
    r"at least [\d.]+: (?P<pairs>[\d,]+) pairs.*compared: (?P<compared>[\d,]+) pairs"
    r".*all others, (?P<missed>[\d,]+) of (?P<sampled>[\d,]+) are not in",
    re.DOTALL,
)


def measure(cells: Cells, folder: Path, files: dict[str, list[Path]]) -> None:
    """Measure all tables of both papers."""
    pages = next(iter(files.values()))
    for method, profile in METHODS.items():
        for count in SUBSETS:
            key = {"method": method, "files": count}
            cells.get("images", key, partial(_image, folder, first(pages, count), profile))
            grid: Grid = {"pairs.threshold": SUPPORTS_100[:5]}
            cells.get("mining", key, partial(_sweep, folder, first(pages, count), profile, grid))
    for length, size in SHAPES:
        settings = (f"shingle.length={length}", f"sketch.size={size}")
        make = partial(_image, folder, first(pages, SHAPE_FILES), PROFILE, *settings)
        cells.get("images", {"length": length, "size": size}, make)
    long: Grid = {"shingle.length": [10], "sketch.size": [150], "pairs.threshold": SUPPORTS_150}
    for name, parts in files.items():
        inputs = first(parts, len(parts))
        truth = folder / f"truth.{name}.csv"
        cells.get("reference list", {"collection": name}, partial(make_truth, folder, inputs, truth))
        key = {"collection": name}
        lexical: Grid = {"pairs.threshold": SHARES}
        cells.get("lexical", key, partial(_sweep, folder, inputs, LEXICON, lexical, truth))
        if name in UNSEEN:
            continue
        cells.get("mining 150", key, partial(_sweep, folder, inputs, PROFILE, long))
        for size, supports in ((100, SUPPORTS_100), (150, SUPPORTS_150)):
            by_length: Grid = {"shingle.length": LENGTHS, "sketch.size": [size], "pairs.threshold": supports}
            cells.get("quality", {**key, "size": size}, partial(_sweep, folder, inputs, PROFILE, by_length, truth))
        permuted: Grid = {"pairs.threshold": SUPPORTS_100[:5]}
        cells.get("permuted", key, partial(_sweep, folder, inputs, PERMUTATIONS, permuted, truth))
        cells.get("closure", key, partial(_closure, folder, inputs, truth))
        cells.get("sizes", key, partial(_sizes, folder, inputs))


def make_truth(folder: Path, inputs: list[str], truth: Path) -> Values:
    """Make the reference list of a collection, by edit similarity; return its seconds and counts."""
    run = folder / "truth-run"
    make_run(run, inputs, None, "clusters.mode=none")
    truth.unlink(missing_ok=True)
    started = time.monotonic()
    told = nddup("truth", str(run), "--similarity", str(SIMILARITY), "--output", str(truth))
    seconds = round(time.monotonic() - started, 1)
    found = _TOLD.search(told)
    if not found:
        raise ValueError(f"nddup truth: expected the counts of the list, found {told!r}")
    return {"seconds": seconds, **{name: int(number.replace(",", "")) for name, number in found.groupdict().items()}}


def _image(folder: Path, inputs: list[str], profile: str, *settings: str) -> Values:
    metrics = make_run(folder / "images", inputs, profile, "clusters.mode=none", *settings)
    sketch = metrics.stages.sketch
    return {
        "documents": metrics.rows["documents"],
        "megabytes": round(sketch.bytes / 1e6, 1),
        "seconds": sketch.seconds,
    }


def _sweep(folder: Path, inputs: list[str], profile: str, grid: Grid, truth: Path | None = None) -> Values:
    return {"rows": [values_of(point) for point in sweep(folder / "sweep", inputs, profile, grid, truth)]}


def _closure(folder: Path, inputs: list[str], truth: Path) -> Values:
    """Compare, by k, the pairs that share a connected component, and those that share a maximal set, with the list."""
    rows = []
    for support in SUPPORTS_150:
        for mode in ("components", "all"):
            settings = (*BEST, f"pairs.threshold={support}", f"clusters.mode={mode}")
            metrics = make_run(folder / "closure", inputs, PROFILE, *settings, reuse=True)
            clusters = metrics.stages.clusters
            together = compare(folder / "closure", truth)["clusters"]
            rows.append({"k": support, "mode": mode, "largest": clusters.largest_component,
                         "invented": clusters.invented_pairs, **together})  # fmt: skip
    return {"rows": rows}


def _sizes(folder: Path, inputs: list[str]) -> Values:
    """Count maximal sets by size, at the settings with the best F1 of the 2009 paper."""
    make_run(folder / "sizes", inputs, PROFILE, *BEST, "pairs.threshold=125")
    run = api.open(str(folder / "sizes"))
    rows = run.sql("select size, count(*) as clusters from clusters group by size order by size").to_pylist()
    return {"rows": rows}
