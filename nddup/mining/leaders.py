"""Leaders: kept documents and clusters of a family too large for its pairs, or for its cover.

A family of 10^5 near-equal sketches has 5 * 10^9 pairs. Here documents meet kept ones only: taken in the order of the
keep policy, a document is kept unless it is a near-duplicate of one kept before it, which is what the first maximal
independent set of the whole pair graph says, without that graph. A second pass finds all kept near-duplicates, earlier
and later, of each document that was not kept. Then every document that was not kept joins the star of the kept one it
resembles most, and each star is cut into clusters (`stars`).

What is promised: `pairs` are all near-duplicate pairs with a kept end. Every document that has a near-duplicate is in a
set; every set holds a kept document, all its pairs are near-duplicates, its joint support is met, and none lies inside
another. Sets need not be maximal, and pairs of two documents that were not kept need not be in one.

Source:
    The prefix filter of `overlap`, against an index of kept documents only.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled, number_keys
from nddup.matching.compare import overlap_or_less, resemblance_parts
from nddup.matching.threshold import Threshold
from nddup.mining.itemsets import Itemsets
from nddup.mining.leader_clusters import cut_stars


@dataclass(frozen=True)
class Led:
    """What leaders find among n documents.

    Attributes:
        kept: shape (n,), bool.
        duplicate_of: shape (n,), int32, the kept near-duplicate of highest resemblance, ties by policy; -1 iff kept.
        pairs: shape (p, 2), int32, (document, kept one), ascending.
        overlap: shape (p,), int32, of each pair.
        resemblance: shape (p,), of each pair.
        itemsets: the clusters; their coverage is `documents`.
    """

    kept: NDArray[np.bool_]
    duplicate_of: NDArray[np.int32]
    pairs: NDArray[np.int32]
    overlap: NDArray[np.int32]
    resemblance: NDArray[np.float64]
    itemsets: Itemsets


class Family(NamedTuple):
    """The documents as kernels see them: sketches, prefixes, and when two are near-duplicates."""

    offsets: NDArray[np.int64]
    ids: NDArray[np.uint64]
    prefix_offsets: NDArray[np.int64]
    prefixes: NDArray[np.int32]
    n_ranks: int
    bounds: NDArray[np.int32]
    size: int
    by_resemblance: bool
    numerator: int
    denominator: int


class Index(NamedTuple):
    """The prefixes of the kept documents, as one chain for each feature, in the order they were kept."""

    heads: NDArray[np.int64]  # by rank of the feature, the first entry of its chain, or -1
    tails: NDArray[np.int64]
    following: NDArray[np.int64]  # by entry, the next of its chain, or -1
    holders: NDArray[np.int32]  # by entry


def follow_leaders(
    sketches: Ragged, bounds: NDArray[np.int32], by_policy: NDArray[np.int64], threshold: Threshold, *,
    min_support: int = 0,
) -> Led:  # fmt: skip
    """
    Choose the kept documents of a family, find all pairs with a kept end, and make clusters around them.

    Args:
        sketches: the distinct sketches, n rows, ids ascending in each.
        bounds: shape (n,), alpha of each: `threshold.bounds` of the original sizes.
        by_policy: shape (n,), the documents in the order the keep policy prefers them.
        threshold: when two are near-duplicates; not of containment.
        min_support: least joint support of a cluster; 0 leaves it to the bounds. A document whose pairs with kept ones
            all have less is in no set.

    Returns:
        The kept documents, their pairs and the clusters. All of them are kept where no two are near-duplicates.

    Cost:
        n sorts of a sketch, and for each document the chains of its prefix in the index of kept documents, twice;
        one comparison of sketches for every kept document met there. Near-linear while kept documents are few, and
        at worst n times their number. Memory: 60 bytes for every id of every sketch, 24 for every pair, and the bitmaps
        of the largest star.

    Example:
        Documents 0, 1 and 2 share two features or more, 3 none. Kept first, 1 leads 0 and 2.

        >>> ids = np.array([1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 8, 9], np.uint64)
        >>> by_count = Threshold("overlap", 2, 1, is_count=True, size=4)
        >>> sketches, bounds = Ragged(np.array([0, 3, 7, 10, 12]), ids), np.full(4, 2, np.int32)
        >>> led = follow_leaders(sketches, bounds, np.array([1, 0, 2, 3]), by_count)
        >>> led.kept.tolist(), led.duplicate_of.tolist(), led.pairs.tolist()
        ([False, True, False, True], [1, -1, 1, -1], [[0, 1], [2, 1]])
        >>> led.itemsets.members.tolist(), led.itemsets.supports.tolist()
        ([0, 1, 2], [2])
    """
    family = rank_features(sketches, bounds, threshold)
    order = np.ascontiguousarray(by_policy, np.int64)
    kept, index = choose_kept(family, order)
    found, parts = find_kept_pairs(family, kept, index)
    found_order = np.lexsort((found[:, 1], found[:, 0]))
    pairs, overlap = found[found_order, :2], found[found_order, 2]
    resemblance = parts[found_order, 0] / np.maximum(parts[found_order, 1], 1)
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    best = np.lexsort((ranks[pairs[:, 1]], -resemblance, pairs[:, 0]))
    duplicate_of = np.full(order.size, -1, np.int32)
    first = pick_first(pairs[best, 0])
    duplicate_of[pairs[best[first], 0]] = pairs[best[first], 1]
    share = threshold.share
    itemsets = cut_stars(sketches, bounds, pairs[best], overlap[best], ranks, share, threshold.size, min_support)
    return Led(kept, duplicate_of, pairs, overlap, resemblance, itemsets)


def pick_first(documents: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the positions at which a run of equal documents begins."""
    return np.flatnonzero(np.append(True, documents[1:] != documents[:-1])[: documents.size])


def rank_features(sketches: Ragged, bounds: NDArray[np.int32], threshold: Threshold) -> Family:
    """Order the features of each document by one total order, rarest first, and cut its prefix."""
    numbers, count = number_keys(sketches.values)
    holders = np.bincount(numbers, minlength=count)
    ranks = np.empty(count, np.int32)
    ranks[np.argsort(holders, kind="stable")] = np.arange(count, dtype=np.int32)
    n_alone = int(np.count_nonzero(holders == 1))
    offsets, prefixes = cut_prefixes(sketches.offsets, ranks[numbers], n_alone, bounds)
    numerator, denominator = threshold.share or (0, 1)
    return Family(
        sketches.offsets, sketches.values, offsets, prefixes, count, bounds, threshold.size,
        threshold.share is not None, numerator, denominator,
    )  # fmt: skip


@compiled
def cut_prefixes(
    offsets: NDArray[np.int64], ranks: NDArray[np.int32], n_alone: int, bounds: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """
    Cut the first (features left) - alpha + 1 features of each document; what one document holds alone is dropped first.

    Two documents with max(alpha) features in common share one of both prefixes. A document with fewer than alpha left
    is in no pair, and its prefix is empty.
    """
    starts = np.zeros(offsets.size, np.int64)
    prefixes = np.empty(ranks.size, np.int32)
    at = 0
    for i in range(offsets.size - 1):
        row = np.sort(ranks[offsets[i] : offsets[i + 1]])
        alone = np.searchsorted(row, n_alone)
        for j in range(alone, row.size - bounds[i] + 1):
            prefixes[at] = row[j]
            at += 1
        starts[i + 1] = at
    return starts, prefixes[:at].copy()


@compiled
def compare(family: Family, a: int, b: int) -> tuple[int, int, int]:
    """Return overlap and the parts of the resemblance of two near-duplicates; -1 first where they are none."""
    low, high, start, end = family.offsets[a], family.offsets[a + 1], family.offsets[b], family.offsets[b + 1]
    need = max(family.bounds[a], family.bounds[b])
    if min(high - low, end - start) < need:
        return -1, 0, 1
    overlap = overlap_or_less(family.ids, low, high, start, end, need)
    if overlap < 0:
        return -1, 0, 1
    shared, united = resemblance_parts(family.ids, low, high, start, end, family.size)
    if family.by_resemblance and shared * family.denominator < family.numerator * united:
        return -1, 0, 1
    return overlap, shared, united


@compiled
def enter(family: Family, index: Index, document: int, count: int) -> tuple[Index, int]:
    """Enter the prefix of a kept document into the index, which holds `count` entries."""
    heads, tails, following, holders = index
    for at in range(family.prefix_offsets[document], family.prefix_offsets[document + 1]):
        feature = family.prefixes[at]
        if count == following.size:
            longer, more_holders = np.empty(2 * count, np.int64), np.empty(2 * count, np.int32)
            longer[:count] = following
            more_holders[:count] = holders
            following, holders = longer, more_holders
        if heads[feature] < 0:
            heads[feature] = count
        else:
            following[tails[feature]] = count
        tails[feature] = count
        following[count] = -1
        holders[count] = document
        count += 1
    return Index(heads, tails, following, holders), count


@compiled
def find_first(family: Family, index: Index, document: int, met: NDArray[np.int32]) -> bool:
    """Tell whether a document has a near-duplicate in the index; `met` remembers who was compared with it."""
    for at in range(family.prefix_offsets[document], family.prefix_offsets[document + 1]):
        entry = index.heads[family.prefixes[at]]
        while entry >= 0:
            other = index.holders[entry]
            if met[other] != document:
                met[other] = document
                if compare(family, document, other)[0] >= 0:
                    return True
            entry = index.following[entry]
    return False


@compiled
def choose_kept(family: Family, by_policy: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Index]:
    """Keep every document without a near-duplicate among those kept before it."""
    n = by_policy.size
    kept, met = np.zeros(n, np.bool_), np.full(n, -1, np.int32)
    heads, tails = np.full(family.n_ranks, -1, np.int64), np.empty(family.n_ranks, np.int64)
    index, count = Index(heads, tails, np.empty(1024, np.int64), np.empty(1024, np.int32)), 0
    for document in by_policy:
        kept[document] = not find_first(family, index, document, met)
        if kept[document]:
            index, count = enter(family, index, document, count)
    return kept, index


@compiled
def find_kept_pairs(
    family: Family, kept: NDArray[np.bool_], index: Index
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Find all kept near-duplicates of the others: rows of document, kept one, overlap; and parts of resemblance."""
    met = np.full(kept.size, -1, np.int32)
    pairs, parts, count = np.empty((1024, 3), np.int32), np.empty((1024, 2), np.int32), 0
    for document in np.flatnonzero(~kept):
        for at in range(family.prefix_offsets[document], family.prefix_offsets[document + 1]):
            entry = index.heads[family.prefixes[at]]
            while entry >= 0:
                other = index.holders[entry]
                entry = index.following[entry]
                if met[other] == document:
                    continue
                met[other] = document
                overlap, shared, united = compare(family, int(document), other)
                if overlap < 0:
                    continue
                if count == len(pairs):
                    more_pairs, more_parts = np.empty((2 * count, 3), np.int32), np.empty((2 * count, 2), np.int32)
                    more_pairs[:count] = pairs
                    more_parts[:count] = parts
                    pairs, parts = more_pairs, more_parts
                pairs[count, 0], pairs[count, 1], pairs[count, 2] = document, other, overlap
                parts[count, 0], parts[count, 1] = shared, united
                count += 1
    return pairs[:count].copy(), parts[:count].copy()
