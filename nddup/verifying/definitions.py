"""Proofs by definition: what `nddup check` recounts, with nothing of the job's own search.

    Probes.overlaps   sparse product of a batch of sketches with ALL probes: every overlap, no pruning, no prefixes
    compare, are_near the definition of a near-duplicate pair: one merge of two sketches, then exact integers
    find_near         both together: the near-duplicates of the probes in a batch

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

from nddup.arrays import compiled

CELLS = 4_000_000
"""Overlaps held at once by `Probes.overlaps`: 50 MB of a task's memory."""


class Rows(NamedTuple):
    """Sketches one after another: sketch i is `ids[offsets[i]:offsets[i + 1]]`, ascending as unsigned.

    With `levels`, sketch i holds the ids that 2**levels[i] divides, and two are compared at the higher level.
    """

    offsets: NDArray[np.int64]  # (n + 1,)
    ids: NDArray[np.uint64]  # (offsets[-1],)
    levels: NDArray[np.int64] | None = None  # (n,)

    def row(self, i: int) -> NDArray[np.uint64]:
        """Sketch i."""
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def at_levels(self, levels: NDArray[np.int64]) -> "Rows":
        """The same sketches at these levels, (n,)."""
        return self._replace(levels=levels if levels.any() else None)

    def masks(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """2**level - 1 of these sketches."""
        if self.levels is None:
            return np.zeros(len(rows), np.uint64)
        return (np.uint64(1) << self.levels[rows].astype(np.uint64)) - np.uint64(1)


class Rule(NamedTuple):
    """When two sketches are near-duplicates: `numerator / denominator` is the threshold as it was written.

    `is_count`: the overlap must reach `numerator`. `is_resemblance`: the resemblance must reach the fraction. Neither:
    the overlap must reach that share of the larger sketch; with `is_containment`, of the smaller one. `size` is s, for
    the resemblance; minus the number of slots, where sketches are signatures; above any size, where they are plain
    sets. With `bands`, two signatures that agree in all `rows` slots of a band are near, whatever they share.
    """

    numerator: int
    denominator: int
    is_count: bool
    is_resemblance: bool
    size: int
    is_containment: bool = False
    shows_containment: bool = False
    bands: int = 0
    rows: int = 0


class Near(NamedTuple):
    """Near-duplicates: place in the batch, place among the probes, overlap, resemblance, and the containment of the
    one of the batch in the probe and of the probe in it; each (k,).
    """

    rows: NDArray[np.int64]
    probes: NDArray[np.int64]
    overlap: NDArray[np.int64]
    resemblance: NDArray[np.float64]
    within: NDArray[np.float64]
    around: NDArray[np.float64]

    def cut(self, low: int, high: int) -> "Near":
        """Some of them."""
        return Near(
            self.rows[low:high],
            self.probes[low:high],
            self.overlap[low:high],
            self.resemblance[low:high],
            self.within[low:high],
            self.around[low:high],
        )


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
def compare(
    first: NDArray[np.uint64], second: NDArray[np.uint64], size: int, mask: np.uint64
) -> tuple[int, int, int, int, int]:
    """Merge two sketches: their overlap, the resemblance as numerator and denominator, |A| and |B|.

    The resemblance is |MIN_s(A | B) & A & B| / |MIN_s(A | B)|; when both have fewer than s ids they are the whole
    documents and it is |A & B| / |A | B|. Two empty sketches give 0, 0, 0. Of so many slots, minus `size`, it is
    |A & B| / slots.

    Args:
        first: A, ascending, distinct.
        second: B, ascending, distinct.
        size: s, or minus the number of slots.
        mask: ids with any of these bits do not count.

    Cost: |A| + |B| steps.
    """
    is_whole = len(first) < size and len(second) < size
    i, j, overlap, seen, shared, n_first, n_second = 0, 0, 0, 0, 0, 0, 0
    while i < len(first) or j < len(second):
        is_first = j == len(second) or (i < len(first) and first[i] <= second[j])
        is_second = i == len(first) or (j < len(second) and second[j] <= first[i])
        value = first[i] if is_first else second[j]
        i += is_first
        j += is_second
        if value & mask:
            continue
        n_first += is_first
        n_second += is_second
        is_inside = is_whole or seen < size
        seen += is_inside
        if is_first and is_second:
            overlap += 1
            shared += is_inside
    if size < 0:
        shared, seen = overlap, -size
    return overlap, shared, seen, n_first, n_second


@compiled
def compare_all(
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    rows: NDArray[np.int64],
    other_offsets: NDArray[np.int64],
    other_ids: NDArray[np.uint64],
    other_rows: NDArray[np.int64],
    size: int,
    masks: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """`compare` for k pairs of places in two `Rows`: (k, 5)."""
    found = np.zeros((len(rows), 5), np.int64)
    for k in range(len(rows)):
        first = ids[offsets[rows[k]] : offsets[rows[k] + 1]]
        second = other_ids[other_offsets[other_rows[k]] : other_offsets[other_rows[k] + 1]]
        found[k] = compare(first, second, size, masks[k])
    return found


@compiled
def share_bands(
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    rows: NDArray[np.int64],
    other_offsets: NDArray[np.int64],
    other_ids: NDArray[np.uint64],
    other_rows: NDArray[np.int64],
    bands: int,
    band_rows: int,
) -> NDArray[np.bool_]:
    """Whether k pairs of signatures agree in all slots of a band; the low 17 bits of an id are its slot. (k,)"""
    near = np.zeros(len(rows), np.bool_)
    equal = np.zeros(bands * band_rows, np.bool_)
    for k in range(len(rows)):
        equal[:] = False
        for at in range(offsets[rows[k]], offsets[rows[k] + 1]):
            for other in range(other_offsets[other_rows[k]], other_offsets[other_rows[k] + 1]):
                if ids[at] == other_ids[other]:
                    slot = np.int64(ids[at] & np.uint64(0x1FFFF))
                    if slot < len(equal):
                        equal[slot] = True
        for band in range(bands):
            if equal[band * band_rows : (band + 1) * band_rows].all():
                near[k] = True
    return near


def are_near(measured: NDArray[np.int64], rule: Rule) -> NDArray[np.bool_]:
    """Whether pairs are near-duplicates, by definition, in exact integers. Nothing in common is never near.

    Args:
        measured: overlap, resemblance as numerator and denominator, |A|, |B|; shape (k, 5).
        rule: the definition.

    Example:
        >>> pair = np.array([[8, 8, 10, 10, 8]])  # ten ids, and eight of them
        >>> rules = [Rule(8, 10, False, True, 200), Rule(81, 100, False, True, 200), Rule(9, 1, True, False, 200)]
        >>> [are_near(pair, rule).tolist() for rule in [*rules, Rule(1, 1, False, False, 200, is_containment=True)]]
        [[True], [False], [False], [True]]
    """
    overlap, shared, seen, first, second = measured.T
    if rule.is_count:
        enough = overlap >= rule.numerator
    elif rule.is_resemblance:
        enough = shared * rule.denominator >= rule.numerator * seen
    elif rule.is_containment:
        enough = overlap * rule.denominator >= rule.numerator * np.minimum(first, second)
    else:
        enough = overlap * rule.denominator >= rule.numerator * np.maximum(first, second)
    return np.asarray(enough & (overlap > 0), np.bool_)


def judge(
    batch: Rows, rows: NDArray[np.int64], others: Rows, places: NDArray[np.int64], rule: Rule
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Pairs of a sketch of `batch` and one of `others`: what `compare_all` measures, and whether they are near."""
    masks = batch.masks(rows) | others.masks(places)
    measured = compare_all(batch.offsets, batch.ids, rows, others.offsets, others.ids, places, rule.size, masks)
    if rule.bands:
        near = share_bands(batch.offsets, batch.ids, rows, others.offsets, others.ids, places, rule.bands, rule.rows)
        return measured, near
    return measured, are_near(measured, rule)


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
    is_levelled = batch.levels is not None or probes.sketches.levels is not None
    is_plain = not is_levelled and not rule.is_containment and not rule.bands
    found: list[Near] = []
    for rows, places, overlaps in probes.overlaps(batch):
        larger = np.maximum(sizes[0][rows], sizes[1][places]) if is_plain else np.ones(len(rows), np.int64)
        least = bounds_of(np.minimum(larger, abs(rule.size)) if rule.is_resemblance else larger, rule)
        open_pairs = np.flatnonzero(overlaps >= least)
        left, right = rows[open_pairs], places[open_pairs]
        measured, near = judge(batch, left, probes.sketches, right, rule)
        overlap, shared, seen, first, second = measured[near].T
        found.append(Near(left[near], right[near], overlap, shared / seen, overlap / first, overlap / second))
    if not found:
        nothing, none = np.empty(0, np.int64), np.empty(0)
        return Near(nothing, nothing, nothing, none, none, none)
    return Near(*(np.concatenate(column) for column in zip(*found, strict=True)))
