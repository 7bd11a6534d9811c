"""Manaa, Abdulameer 2017: shingles, MinHash signatures and bands.

time        their table 6: seconds for 100 to 1,000 documents and shingles of 4 to 10 words, from texts to verified
            pairs: signatures, bands, candidates, comparison
functions   their table 7: seconds for 10, 20 and 30 hash functions, and 100, in bands of five rows
curve       their table 8: the share of pairs of each resemblance that the bands make candidates, beside
            1-(1-s^r)^b; below the threshold a candidate is a false positive, above it the rest are false negatives
"""

import time
from collections.abc import Sequence
from functools import partial
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.debdocs import shingles_of
from bench.papers.cells import Cells, Values
from nddup.ground.arrays import Ragged
from nddup.settings.load import load_config
from nddup.settings.plan import bands_of, finder_of, recipe_of
from nddup.settings.schema import Config
from nddup.sketching.minhash import candidate_probability
from nddup.sketching.recipe import make_sketches

PROFILE = "kshingle2017"
DOCUMENTS, LENGTHS, FUNCTIONS = range(100, 1001, 100), range(4, 11), (10, 20, 30, 100)
FEW = (33, 66)
"""Documents of table 7, besides 100."""
CURVE_DOCUMENTS = 3_000


def measure(cells: Cells, texts: list[str]) -> None:
    """Measure all tables of the paper; a table by numbers of documents stops where there are no more texts."""
    texts = texts[:CURVE_DOCUMENTS]
    if not texts:
        print("  no document is long enough")
        return
    find_pairs(texts[:10], load_config(PROFILE))  # compile
    for count in (count for count in (*FEW, *DOCUMENTS) if count <= len(texts)):
        if count in DOCUMENTS:
            cells.get("2017 time", {"documents": count}, partial(_time, texts[:count]))
        cells.get("2017 functions", {"documents": count}, partial(_functions, texts[:count]))
    cells.get("2017 curve", {}, partial(_curve, texts))


def candidates_of(texts: Sequence[str], config: Config) -> list[tuple[int, int]]:
    """Return the pairs that a profile compares: those with a band in common."""
    return sorted(_signatures(texts, config)[1])


def find_pairs(texts: Sequence[str], config: Config) -> tuple[int, list[tuple[int, int]]]:
    """Run a profile on texts in memory; return the number of candidates, and the pairs that reach the threshold."""
    rows, candidates = _signatures(texts, config)
    need = config.pairs.share * config.sketch.size
    equal = {(a, b): len(np.intersect1d(rows[a], rows[b], assume_unique=True)) for a, b in candidates}
    return len(candidates), sorted(pair for pair, slots in equal.items() if slots >= need)


def _signatures(texts: Sequence[str], config: Config) -> tuple[list[NDArray[np.uint64]], set[tuple[int, int]]]:
    """Return the signature of each text, and the pairs with a band in common."""
    made = make_sketches(*as_arrow(texts), recipe_of(config))
    sketches = Ragged(made.offsets, made.ids)
    finder = finder_of(config)
    keys = finder.keys(sketches) if finder else sketches

    holders: dict[int, list[int]] = {}
    for document, (low, high) in enumerate(pairwise(keys.offsets.tolist())):
        for key in keys.values[low:high].tolist():
            holders.setdefault(key, []).append(document)
    candidates = {pair for held in holders.values() for pair in combinations(held, 2)}
    return np.split(made.ids, made.offsets[1:-1]), candidates


def as_arrow(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of texts, one after another, and where each begins."""
    data = [text.encode() for text in texts]
    return np.frombuffer(b"".join(data), np.uint8), np.cumsum([0, *map(len, data)], dtype=np.int64)


def _time(texts: list[str]) -> Values:
    return {f"k = {length}": _seconds(texts, f"shingle.length={length}") for length in LENGTHS}


def _functions(texts: list[str]) -> Values:
    """Time signatures of n functions in n / 5 bands of five rows."""
    settings = {count: (f"sketch.size={count}", f"sketch.bands={count // 5}") for count in FUNCTIONS}
    return {f"{count} functions": _seconds(texts, *settings[count]) for count in FUNCTIONS}


def _seconds(texts: list[str], *settings: str) -> float:
    config = load_config(PROFILE, list(settings))
    started = time.perf_counter()
    find_pairs(texts, config)
    return round(time.perf_counter() - started, 3)


def _curve(texts: list[str]) -> Values:
    """Count, by tenths of exact resemblance, the pairs, their candidates, and the candidates expected by formula."""
    config = load_config(PROFILE)
    bands, rows = bands_of(config)
    exact = _resemblances(texts, config.shingle.length)
    candidates = set(candidates_of(texts, config))

    table = []
    for tenth in range(1, 11):
        inside = [pair for pair, value in exact.items() if min(int(value * 10), 9) == tenth - 1]
        expected = sum(float(candidate_probability(exact[pair], bands=bands, rows=rows)) for pair in inside)
        table.append({"from": (tenth - 1) / 10, "pairs": len(inside), "expected": round(expected, 1),
                      "candidates": sum(pair in candidates for pair in inside)})  # fmt: skip
    return {"documents": len(texts), "candidates": len(candidates), "rows": table}


def _resemblances(texts: list[str], length: int) -> dict[tuple[int, int], float]:
    """Return the exact resemblance of every pair with a common shingle, by the incidence matrix and its transpose."""
    shingles = shingles_of(texts, length)
    sizes = np.array([len(row) for row in shingles])
    numbers = np.unique(np.concatenate(shingles), return_inverse=True)[1]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    held = sparse.csr_matrix((np.ones(len(numbers), np.int32), numbers, offsets))
    common = sparse.triu(held @ held.T, k=1).tocoo()
    share = common.data / (sizes[common.row] + sizes[common.col] - common.data)
    return dict(zip(zip(common.row.tolist(), common.col.tolist(), strict=True), share.tolist(), strict=True))
