"""Proofs by definition: what `nddup check` recounts, with nothing of the job's own search.

    Probes.overlaps   sparse product of a batch of sketches with ALL probes: every overlap, no pruning, no prefixes
    compare, are_near the definition of a near-duplicate pair: one merge of two sketches, then exact integers
    find_near         both together: the near-duplicates of the probes in a batch
    damaged_sketches  sketches that are no ascending sets of at most s ids

The only shortcut: what shares no feature has overlap 0, and resemblance never exceeds overlap over the size of the
sample. Both are plain from the definitions.

Source:
    Broder 1997, On the resemblance and containment of documents, SEQUENCES '97 (MIN_s and its resemblance).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from nddup.algorithms.compiled import compiled

CELLS = 4_000_000
"""Overlaps held at once by `Probes.overlaps`: 50 MB of a task's memory."""


class Rows(NamedTuple):
    """Sketches one after another: sketch i is `ids[offsets[i]:offsets[i + 1]]`, ascending as unsigned."""

    offsets: NDArray[np.int64]  # (n + 1,)
    ids: NDArray[np.uint64]  # (offsets[-1],)

    def row(self, i: int) -> NDArray[np.uint64]:
        """Sketch i."""
        return self.ids[self.offsets[i] : self.offsets[i + 1]]


class Rule(NamedTuple):
    """When two sketches are near-duplicates: `numerator / denominator` is the threshold as it was written.

    `is_count`: the overlap must reach `numerator`. `is_resemblance`: the resemblance must reach the fraction. Neither:
    the overlap must reach that share of the larger sketch. `size` is s, for the resemblance.
    """

    numerator: int
    denominator: int
    is_count: bool
    is_resemblance: bool
    size: int


class Near(NamedTuple):
    """Near-duplicates: place in the batch, place among the probes, overlap, resemblance; each (k,)."""

    rows: NDArray[np.int64]
    probes: NDArray[np.int64]
    overlap: NDArray[np.int64]
    resemblance: NDArray[np.float64]


def gather(sketches: Sequence[NDArray[np.uint64]]) -> Rows:
    """Sketches as `Rows`; of none, no rows."""
    offsets = np.concatenate([[0], np.cumsum([len(sketch) for sketch in sketches])]).astype(np.int64)
    return Rows(offsets, np.concatenate([np.empty(0, np.uint64), *sketches]).astype(np.uint64))


def bounds_of(sizes: NDArray[np.int64], rule: Rule) -> NDArray[np.int64]:
    """Alpha of sketches of these sizes: the count, or the least integer o >= 1 with o / size >= threshold. (n,) int64.

    Example:
        >>> bounds_of(np.array([1, 100, 200]), Rule(55, 100, False, True, 200)).tolist()
        [1, 55, 110]
    """
    if rule.is_count:
        return np.full(len(sizes), rule.numerator, np.int64)
    return np.maximum(1, -(-rule.numerator * sizes.astype(np.int64) // rule.denominator))


@compiled
def compare(first: NDArray[np.uint64], second: NDArray[np.uint64], size: int) -> tuple[int, int, int]:
    """Merge two sketches: their overlap, and the resemblance as numerator and denominator.

    The resemblance is |MIN_s(A | B) & A & B| / |MIN_s(A | B)|; when both have fewer than s ids they are the whole
    documents and it is |A & B| / |A | B|. Two empty sketches give 0, 0, 0.

    Args:
        first: A, ascending, distinct.
        second: B, ascending, distinct.
        size: s.

    Cost: |A| + |B| steps.
    """
    is_whole = len(first) < size and len(second) < size
    i, j, overlap, seen, shared = 0, 0, 0, 0, 0
    while i < len(first) or j < len(second):
        is_first = j == len(second) or (i < len(first) and first[i] <= second[j])
        is_second = i == len(first) or (j < len(second) and second[j] <= first[i])
        i += is_first
        j += is_second
        is_inside = is_whole or seen < size
        seen += is_inside
        if is_first and is_second:
            overlap += 1
            shared += is_inside
    return overlap, shared, seen


@compiled
def compare_all(
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    rows: NDArray[np.int64],
    other_offsets: NDArray[np.int64],
    other_ids: NDArray[np.uint64],
    other_rows: NDArray[np.int64],
    size: int,
) -> NDArray[np.int64]:
    """`compare` for k pairs of places in two `Rows`: overlap, numerator, denominator; (k, 3)."""
    found = np.zeros((len(rows), 3), np.int64)
    for k in range(len(rows)):
        first = ids[offsets[rows[k]] : offsets[rows[k] + 1]]
        second = other_ids[other_offsets[other_rows[k]] : other_offsets[other_rows[k] + 1]]
        found[k] = compare(first, second, size)
    return found


def are_near(measured: NDArray[np.int64], larger: NDArray[np.int64], rule: Rule) -> NDArray[np.bool_]:
    """Whether pairs are near-duplicates, by definition, in exact integers. Nothing in common is never near.

    Args:
        measured: overlap, and resemblance as numerator and denominator, shape (k, 3).
        larger: max(|A|, |B|), shape (k,).
        rule: the definition.

    Example:
        >>> pair, larger = np.array([[8, 8, 10]]), np.array([10])  # ten ids, and eight of them
        >>> rules = [Rule(8, 10, False, True, 200), Rule(81, 100, False, True, 200), Rule(9, 1, True, False, 200)]
        >>> [are_near(pair, larger, rule).tolist() for rule in rules]
        [[True], [False], [False]]
    """
    overlap, shared, seen = measured.T
    if rule.is_count:
        enough = overlap >= rule.numerator
    elif rule.is_resemblance:
        enough = shared * rule.denominator >= rule.numerator * seen
    else:
        enough = overlap * rule.denominator >= rule.numerator * larger
    return np.asarray(enough & (overlap > 0), np.bool_)


def judge(
    batch: Rows, rows: NDArray[np.int64], others: Rows, places: NDArray[np.int64], rule: Rule
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Pairs of a sketch of `batch` and one of `others`: what `compare_all` measures, and whether they are near."""
    measured = compare_all(*batch, rows, *others, places, rule.size)
    larger = np.maximum(np.diff(batch.offsets)[rows], np.diff(others.offsets)[places])
    return measured, are_near(measured, larger, rule)


class Probes:
    """Sketches that all others are compared with, as a sparse matrix over their own features."""

    def __init__(self, sketches: Rows) -> None:
        """Index p sketches by feature; of none, nothing overlaps."""
        self.sketches = sketches
        self._features, columns = np.unique(sketches.ids, return_inverse=True)
        ones = np.ones(len(columns), np.int32)
        shape = (len(sketches.offsets) - 1, len(self._features))
        self._by_feature = csr_matrix((ones, columns.ravel(), sketches.offsets), shape=shape).T.tocsr()

    def overlaps(self, batch: Rows) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """|A & B| of every sketch of the batch with every probe where it is not 0: (rows, probes, overlaps) in blocks.

        Cost: one step for each feature of a batch's sketch and each probe that holds it; `CELLS` overlaps in memory.
        """
        if len(self._features) == 0 or len(batch.ids) == 0:
            return
        at = np.minimum(np.searchsorted(self._features, batch.ids), len(self._features) - 1)
        is_known = self._features[at] == batch.ids
        offsets = np.concatenate([[0], np.cumsum(is_known)])[batch.offsets]
        columns = at[is_known]
        whole = csr_matrix(
            (np.ones(len(columns), np.int32), columns, offsets), shape=(len(offsets) - 1, len(self._features))
        )
        step = max(1, CELLS // max(1, len(self.sketches.offsets) - 1))
        for low in range(0, len(offsets) - 1, step):
            block = (whole[low : low + step] @ self._by_feature).tocoo()
            yield block.row.astype(np.int64) + low, block.col.astype(np.int64), block.data.astype(np.int64)


def find_near(batch: Rows, probes: Probes, rule: Rule) -> Near:
    """Every near-duplicate of a probe in the batch; a sketch equal to the probe is one where the rule says so.

    Args:
        batch: n sketches.
        probes: p sketches.
        rule: the definition.

    Returns:
        Ordered by nothing in particular; empty where there is none.

    Cost: that of `Probes.overlaps`, and a merge for each pair whose overlap does not rule it out.
    """
    sizes = np.diff(batch.offsets), np.diff(probes.sketches.offsets)
    found: list[Near] = []
    for rows, places, overlaps in probes.overlaps(batch):
        larger = np.maximum(sizes[0][rows], sizes[1][places])
        least = bounds_of(np.minimum(larger, rule.size) if rule.is_resemblance else larger, rule)
        open_pairs = np.flatnonzero(overlaps >= least)
        left, right = rows[open_pairs], places[open_pairs]
        measured, near = judge(batch, left, probes.sketches, right, rule)
        overlap, shared, seen = measured[near].T
        found.append(Near(left[near], right[near], overlap, shared / seen))
    if not found:
        nothing = np.empty(0, np.int64)
        return Near(nothing, nothing, nothing, np.empty(0))
    return Near(*(np.concatenate(column) for column in zip(*found, strict=True)))


def damaged_sketches(batch: Rows, n_features: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Which sketches are no set of ids ascending as unsigned, hold more than `size`, or disagree with `n_features`.

    A document with fewer than `size` features keeps all of them, any other exactly `size`.

    Example:
        >>> rows = gather([np.array([1, 2], np.uint64), np.array([2, 1], np.uint64)])
        >>> damaged_sketches(rows, np.array([2, 2]), 200).tolist()
        [False, True]
    """
    lengths = np.diff(batch.offsets)
    is_damaged = lengths != np.minimum(n_features, size)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    falls = (batch.ids[1:] <= batch.ids[:-1]) & (owner[1:] == owner[:-1])
    is_damaged[owner[1:][falls]] = True
    return np.asarray(is_damaged, np.bool_)
