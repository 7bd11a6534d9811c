"""Counts of pairs that are too many to list, and how well two lists of pairs agree.

count_pairs            memberships in sets -> how many pairs lie in a common set, each counted once
count_pairs_of_kinds   the same, from kinds of items: a kind is all items that lie in the same sets
Agreement              three counts of pairs -> precision, recall, F1
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import compiled


class Agreement(NamedTuple):
    """Numbers of pairs in a reference, in a result, and in both.

    A ratio that would divide by zero is None: precision if nothing was found, recall if the reference is empty.
    """

    reference: int
    reported: int
    common: int

    @property
    def precision(self) -> float | None:
        """Share of the pairs found that are in the reference."""
        return self.common / self.reported if self.reported else None

    @property
    def recall(self) -> float | None:
        """Share of the reference's pairs that were found."""
        return self.common / self.reference if self.reference else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall: twice the common pairs over the pairs of both lists.

        Example:
            >>> Agreement(reference=4, reported=6, common=3).f1
            0.6
        """
        whole = self.reference + self.reported
        return 2 * self.common / whole if whole else None


def count_pairs(sets: NDArray[np.int64], items: NDArray[np.int64]) -> int:
    """Count the pairs of different items that lie in at least one common set.

    Args:
        sets: (m,), the set of each membership; any numbers.
        items: (m,), its item; any numbers. A membership may be repeated.

    Returns:
        The exact number of distinct pairs.

    Items that lie in the same sets are one *kind* and are counted together, so disjoint sets of any size cost nothing.
    Each kind then meets each later kind once for every set that holds both.

    Cost: a sort of the memberships; then the sum over the sets of the square of their number of kinds of items, in
    steps of about a nanosecond. Some 60 bytes per membership.

    Example:
        >>> sets, items = np.array([1, 1, 1, 2, 2, 2]), np.array([10, 11, 12, 11, 12, 13])
        >>> count_pairs(sets, items)  # 11 and 12 lie in both
        5
    """
    if len(sets) == 0:
        return 0

    # Sort each item's sets, drop repeated memberships, and renumber the sets from 0.
    by_item = np.lexsort((sets, items))
    sets, items = sets[by_item], items[by_item]
    is_new = np.append(True, (sets[1:] != sets[:-1]) | (items[1:] != items[:-1]))
    sets, items = np.unique(sets[is_new], return_inverse=True)[1], items[is_new]
    starts = np.append(np.flatnonzero(np.append(True, items[1:] != items[:-1])), len(items)).astype(np.int64)

    # One item represents each kind. `kind_sets` lists the sets of the first kind, then of the second, …
    kinds, weights = _group_equal(starts, sets.astype(np.int64))
    lengths = np.diff(starts)[kinds]
    rows = np.repeat(starts[kinds] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    kind_sets = sets[rows].astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    return count_pairs_of_kinds(offsets, kind_sets, weights)


def count_pairs_of_kinds(offsets: NDArray[np.int64], kind_sets: NDArray[np.int64], weights: NDArray[np.int64]) -> int:
    """Count the pairs of different items that lie in at least one common set, from kinds of items.

    Args:
        offsets: (k + 1,), kind i lies in the sets `held[offsets[i]:offsets[i + 1]]`, each once, at least one.
        kind_sets: (offsets[-1],), numbers of sets from 0.
        weights: (k,), number of items of each kind.

    Cost: as for `count_pairs`, without its sort by items.

    Example:
        >>> count_pairs_of_kinds(np.array([0, 1, 3, 4]), np.array([0, 0, 1, 1]), np.array([1, 2, 1]))
        5
    """
    if len(weights) == 0:
        return 0

    # The inverse: the kinds of each set, ascending.
    lengths = np.diff(offsets)
    order = np.argsort(kind_sets, kind="stable")
    holders = np.repeat(np.arange(len(weights)), lengths)[order].astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(kind_sets))]).astype(np.int64)

    within = int((weights * (weights - 1) // 2).sum())
    return within + int(_count_between(offsets, kind_sets, bounds, holders, weights))


def _group_equal(starts: NDArray[np.int64], sets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return one item of each kind (items in the same sets), and the number of items of that kind.

    Items are sorted by a sum of random numbers, one for each of their sets, and neighbours are compared in full. If two
    kinds had the same sum, items of one might stay apart; that costs time and changes no count.
    """
    names = np.random.default_rng(1).integers(0, 1 << 63, int(sets.max()) + 1, dtype=np.int64)
    sums = np.add.reduceat(names[sets], starts[:-1])  # wraps around
    order = np.lexsort((np.diff(starts), sums))
    is_first = _starts_kind(starts, sets, order)
    first = np.flatnonzero(is_first)
    return order[first], np.diff(np.append(first, len(order))).astype(np.int64)


@compiled
def _starts_kind(starts: NDArray[np.int64], sets: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask, (n,), of the items, in this order, that do not lie in the same sets as the item before."""
    is_first = np.ones(len(order), np.bool_)
    for k in range(1, len(order)):
        a, b = order[k - 1], order[k]
        length = starts[b + 1] - starts[b]
        if starts[a + 1] - starts[a] != length:
            continue

        same = True
        for i in range(length):
            if sets[starts[a] + i] != sets[starts[b] + i]:
                same = False
                break
        is_first[k] = not same
    return is_first


@compiled
def _count_between(
    offsets: NDArray[np.int64],
    sets: NDArray[np.int64],
    bounds: NDArray[np.int64],
    holders: NDArray[np.int64],
    weights: NDArray[np.int64],
) -> int:
    """Count pairs of items of different kinds: each kind marks each later kind in any of its sets once."""
    total = 0
    marked = np.full(len(weights), -1, np.int64)
    for kind in range(len(weights)):
        for i in range(offsets[kind], offsets[kind + 1]):
            for j in range(bounds[sets[i] + 1] - 1, bounds[sets[i]] - 1, -1):  # holders ascend: stop at this kind
                other = holders[j]
                if other <= kind:
                    break
                if marked[other] != kind:
                    marked[other] = kind
                    total += weights[kind] * weights[other]
    return total
