"""Leaders: kept documents and clusters of a family too large for all its pairs, or for its cover.

A family of 10^5 near-equal sketches has 5 * 10^9 pairs. Here each document is compared with kept ones only:

1. In the order of the keep policy, a document is kept, as a leader, unless it is a near-duplicate of one kept before
   it. These are the documents that `keep_first` keeps from the whole pair graph, found without that graph.
2. A second pass finds all kept near-duplicates, earlier and later, of each document that was not kept.
3. Each document that was not kept follows the kept one it resembles most; the followers of each leader are divided
   into clusters around it (`leader_clusters`).

Guarantees: `pairs` holds all near-duplicate pairs with a kept end. Every document that has a near-duplicate is in a
set. Every set holds a kept document, all its pairs are near-duplicates, its joint support is enough, and it does not
lie inside another. Sets need not be maximal, and a pair of two documents that were not kept need not be in a set.

Sources:
    Chaudhuri, Ganti, Kaushik 2006, A primitive operator for similarity joins in data cleaning (the prefix filter).
    Hartigan 1975, Clustering Algorithms (the leader algorithm: join a leader, else become one).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled, number_keys
from nddup.matching.overlap_join import Prefixes
from nddup.matching.threshold import Rule, Threshold, compare_sketches
from nddup.mining.itemsets import Itemsets
from nddup.mining.leader_clusters import Followers, divide_followers


@dataclass(frozen=True)
class ByLeaders:
    """The kept documents, pairs and clusters found around leaders among n documents.

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
    """The n documents as the kernels read them, and when two of them are near-duplicates."""

    sketches: Ragged
    prefixes: Prefixes
    bounds: NDArray[np.int32]  # shape (n,), alpha of each
    rule: Rule


class Pairs(NamedTuple):
    """The p near-duplicate pairs of a document that was not kept with a kept one, by document."""

    ends: NDArray[np.int32]  # shape (p, 2), (document, kept one), ascending
    overlap: NDArray[np.int32]  # shape (p,)
    resemblance: NDArray[np.float64]  # shape (p,)


class Index(NamedTuple):
    """The prefixes of the kept documents: for each feature a linked list of its holders, in the order of keeping."""

    heads: NDArray[np.int64]  # by rank of the feature, the first entry of its list, or -1
    tails: NDArray[np.int64]  # by rank, the last entry
    following: NDArray[np.int64]  # by entry, the next entry of its list, or -1
    holders: NDArray[np.int32]  # by entry, the document


def follow_leaders(
    sketches: Ragged, bounds: NDArray[np.int32], by_policy: NDArray[np.int64], threshold: Threshold, *,
    min_support: int = 0,
) -> ByLeaders:  # fmt: skip
    """
    Choose the kept documents of a family, find all pairs with a kept end, and make clusters around them.

    Args:
        sketches: the distinct sketches, n rows, ids ascending in each.
        bounds: shape (n,), alpha of each: `threshold.bounds` of the original sizes.
        by_policy: shape (n,), the documents in the order the keep policy prefers them.
        threshold: when two are near-duplicates; any measure but containment.
        min_support: least joint support of a cluster; 0 leaves it to the bounds. A document is in no set if all its
            pairs with kept ones have less.

    Returns:
        The kept documents, their pairs and the clusters. All documents are kept where no two are near-duplicates.

    Cost:
        n sorts of a sketch; for each document, twice, a walk along the lists of its prefix in the index of kept
        documents, and one comparison of sketches for every kept document met there. Near-linear while few documents
        are kept, and at worst n times their number. Memory: 60 bytes for every id of every sketch, 24 for every pair,
        and the bitmaps of the followers of one leader.

    Example:
        Documents 0, 1 and 2 share at least two features, 3 shares none. The policy prefers 1, which leads 0 and 2.

        >>> ids = np.array([1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 8, 9], np.uint64)
        >>> by_count = Threshold("overlap", 2, 1, is_count=True, size=4)
        >>> sketches, bounds = Ragged(np.array([0, 3, 7, 10, 12]), ids), np.full(4, 2, np.int32)
        >>> found = follow_leaders(sketches, bounds, np.array([1, 0, 2, 3]), by_count)
        >>> found.kept.tolist(), found.duplicate_of.tolist(), found.pairs.tolist()
        ([False, True, False, True], [1, -1, 1, -1], [[0, 1], [2, 1]])
        >>> found.itemsets.members.tolist(), found.itemsets.supports.tolist()
        ([0, 1, 2], [2])
    """
    family = rank_features(sketches, bounds, threshold)
    order = np.ascontiguousarray(by_policy, np.int64)
    kept, index = choose_kept(family, order)
    pairs = find_kept_pairs(family, kept, index)

    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    best = rank_pairs(pairs, ranks)
    first = pick_first(best.ends[:, 0])
    duplicate_of = np.full(order.size, -1, np.int32)
    duplicate_of[best.ends[first, 0]] = best.ends[first, 1]

    followers = Followers(best.ends, best.overlap, ranks)
    itemsets = divide_followers(sketches, bounds, followers, threshold.rule, min_support)
    return ByLeaders(kept, duplicate_of, pairs.ends, pairs.overlap, pairs.resemblance, itemsets)


def rank_pairs(pairs: Pairs, ranks: NDArray[np.int64]) -> Pairs:
    """Order the pairs by document, then by resemblance, highest first, then by the rank of the kept end."""
    order = np.lexsort((ranks[pairs.ends[:, 1]], -pairs.resemblance, pairs.ends[:, 0]))
    return Pairs(pairs.ends[order], pairs.overlap[order], pairs.resemblance[order])


def pick_first(documents: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the positions at which a run of equal documents begins."""
    return np.flatnonzero(np.append(True, documents[1:] != documents[:-1])[: documents.size])


def rank_features(sketches: Ragged, bounds: NDArray[np.int32], threshold: Threshold) -> Family:
    """Order the features of each document by one total order, rarest first, and cut its prefix."""
    numbers, count = number_keys(sketches.values)
    holders = np.bincount(numbers, minlength=count)
    ranks = np.empty(count, np.int32)
    ranks[np.argsort(holders, kind="stable")] = np.arange(count, dtype=np.int32)

    # Features held by only one document have the lowest ranks.
    n_alone = int(np.count_nonzero(holders == 1))
    offsets, prefixes = cut_prefixes(sketches.offsets, ranks[numbers], n_alone, bounds)
    return Family(sketches, Prefixes(offsets, prefixes, count), bounds, threshold.rule)


@compiled
def cut_prefixes(
    offsets: NDArray[np.int64], ranks: NDArray[np.int32], n_alone: int, bounds: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """
    Cut the prefixes: the first (features left) - alpha + 1 features, once those of a single document are dropped.

    Two documents with max(alpha) features in common have a feature common to both prefixes. A document with fewer than
    alpha features left is in no pair, and its prefix is empty.

    Args:
        offsets: shape (n+1,), rows of `ranks`.
        ranks: of the features of each document, in any order.
        n_alone: ranks below this belong to features that only one document holds.
        bounds: shape (n,), alpha of each document.

    Returns:
        Offsets, shape (n+1,), and the ranks of the prefixes, ascending in each.
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
    """Return the overlap and the two parts of the resemblance of two documents; -1 first if not near-duplicates."""
    need = max(family.bounds[a], family.bounds[b])
    return compare_sketches(family.sketches, a, b, need, family.rule)


@compiled
def enter(prefixes: Prefixes, index: Index, document: int, count: int) -> tuple[Index, int]:
    """Enter the prefix of a kept document into the index; return the index, maybe in new arrays, and its entries."""
    first, end = prefixes.offsets[document], prefixes.offsets[document + 1]
    index = make_room(index, count, end - first)
    for at in range(first, end):
        feature = prefixes.ranks[at]
        if index.heads[feature] < 0:
            index.heads[feature] = count
        else:
            index.following[index.tails[feature]] = count

        index.tails[feature] = count
        index.following[count] = -1
        index.holders[count] = document
        count += 1
    return index, count


@compiled
def make_room(index: Index, count: int, more: int) -> Index:
    """Return the same index with room for `more` entries after the first `count`; full arrays are at least doubled."""
    if count + more <= index.following.size:
        return index
    following, holders = np.empty(2 * (count + more), np.int64), np.empty(2 * (count + more), np.int32)
    following[:count] = index.following[:count]
    holders[:count] = index.holders[:count]
    return Index(index.heads, index.tails, following, holders)


@compiled
def find_first(family: Family, index: Index, document: int, met: NDArray[np.int32]) -> bool:
    """Tell whether a document has a near-duplicate in the index; `met` marks those it has been compared with."""
    prefixes = family.prefixes
    for at in range(prefixes.offsets[document], prefixes.offsets[document + 1]):
        entry = index.heads[prefixes.ranks[at]]
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
    """Keep every document without a near-duplicate kept before it; return whether each is kept, (n,), and the index."""
    n = by_policy.size
    heads, tails = np.full(family.prefixes.n_ranks, -1, np.int64), np.empty(family.prefixes.n_ranks, np.int64)
    index, count = Index(heads, tails, np.empty(1024, np.int64), np.empty(1024, np.int32)), 0

    kept, met = np.zeros(n, np.bool_), np.full(n, -1, np.int32)
    for document in by_policy:
        kept[document] = not find_first(family, index, document, met)
        if kept[document]:
            index, count = enter(family.prefixes, index, document, count)
    return kept, index


def find_kept_pairs(family: Family, kept: NDArray[np.bool_], index: Index) -> Pairs:
    """Find all kept near-duplicates of each document that was not kept."""
    rows = compare_with_kept(family, np.flatnonzero(~kept), index, np.full(kept.size, -1, np.int32))
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    resemblance = rows[:, 3] / np.maximum(rows[:, 4], 1)
    return Pairs(rows[:, :2], rows[:, 2], resemblance)


@compiled
def compare_with_kept(
    family: Family, documents: NDArray[np.int64], index: Index, met: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return rows of document, kept one, overlap, and the two parts of the resemblance, as they meet; shape (p, 5)."""
    prefixes = family.prefixes
    found, count = np.empty((64, 5), np.int32), 0
    for document in documents:
        for at in range(prefixes.offsets[document], prefixes.offsets[document + 1]):
            entry = index.heads[prefixes.ranks[at]]
            while entry >= 0:
                other = index.holders[entry]
                entry = index.following[entry]
                # The two may have several prefix features in common, but are compared once.
                if met[other] == document:
                    continue
                met[other] = document

                overlap, shared, united = compare(family, int(document), other)
                if overlap < 0:
                    continue
                if count == len(found):
                    found = np.concatenate((found, np.empty_like(found)))
                found[count, 0], found[count, 1], found[count, 2] = document, other, overlap
                found[count, 3], found[count, 4] = shared, united
                count += 1
    return found[:count].copy()
