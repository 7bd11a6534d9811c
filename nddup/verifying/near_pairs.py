"""The near-duplicates of some sketches among many, found without the job's own search.

    Probes.overlaps   sparse product of a batch of sketches with ALL probes: every overlap, no pruning, no prefixes
    find_near         the pairs of these that are near-duplicates by definition

The only shortcut: sketches that share no feature have overlap 0, and resemblance never exceeds overlap over the size of
the sample. Both follow from the definitions.

Source:
    Broder 1997, On the resemblance and containment of documents, SEQUENCES '97 (MIN_s and its resemblance).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from nddup.verifying.definitions import Rows, Rule, bounds_of, judge

CELLS = 4_000_000
"""Overlaps held at once by `Probes.overlaps`: 50 MB of a task's memory."""


class Near(NamedTuple):
    """Near-duplicate pairs of a sketch of a batch and a probe, one array for each number; each (k,)."""

    rows: NDArray[np.int64]
    """Place in the batch."""

    probes: NDArray[np.int64]
    """Place among the probes."""

    overlap: NDArray[np.int64]
    resemblance: NDArray[np.float64]
    within: NDArray[np.float64]
    """Containment of the sketch of the batch in the probe."""

    around: NDArray[np.float64]
    """Containment of the probe in the sketch of the batch."""

    def cut(self, low: int, high: int) -> "Near":
        """The pairs from place `low` to before `high`."""
        return Near(
            self.rows[low:high],
            self.probes[low:high],
            self.overlap[low:high],
            self.resemblance[low:high],
            self.within[low:high],
            self.around[low:high],
        )


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

        # Ids of the batch that no probe holds are left out: they add to no overlap.
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
        In no order; empty if there is none.

    Cost: that of `Probes.overlaps`, and a merge for each pair whose overlap does not rule it out.
    """
    # A pair is left unmeasured only if its overlap is too small for its sizes. At a common modulus, for containment and
    # for bands the sizes do not bound the overlap so simply: there every overlap is measured.
    sizes = np.diff(batch.offsets), np.diff(probes.sketches.offsets)
    is_levelled = batch.levels is not None or probes.sketches.levels is not None
    is_plain = not is_levelled and not rule.is_containment and not rule.bands

    found: list[Near] = []
    for rows, places, overlaps in probes.overlaps(batch):
        larger = np.maximum(sizes[0][rows], sizes[1][places]) if is_plain else np.ones(len(rows), np.int64)
        least = bounds_of(np.minimum(larger, rule.sample.size) if rule.is_resemblance else larger, rule)

        open_pairs = np.flatnonzero(overlaps >= least)
        left, right = rows[open_pairs], places[open_pairs]
        measured, near = judge(batch, left, probes.sketches, right, rule)
        overlap, shared, seen, first, second = measured[near].T
        found.append(Near(left[near], right[near], overlap, shared / seen, overlap / first, overlap / second))

    if not found:
        nothing, none = np.empty(0, np.int64), np.empty(0)
        return Near(nothing, nothing, nothing, none, none, none)
    return Near(*(np.concatenate(column) for column in zip(*found, strict=True)))
