"""Leaders of a family too large for all its pairs, or for its cover, and the pairs that have one.

    choose_leaders      Family, policy, forced ones -> which documents lead, and the Index of the leaders
    find_leader_pairs   Family, leaders             -> Rows: all near-duplicate pairs with a leader, earlier or later
    rank_features, cut_prefixes                     -> the prefixes by which documents meet

A family of 10^5 near-equal sketches has 5 * 10^9 pairs; here each document is compared with leaders only. Every
document that has a near-duplicate has one that leads, or leads. Where nothing is forced and no loss is limited, the
leaders are the documents that `keep_first` keeps from the whole pair graph, found without that graph.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, number_keys
from nddup.ground.kernels import Written, compiled
from nddup.matching.overlap_join import Prefixes
from nddup.matching.threshold import Rule, Threshold, common_needed, compare_sketches


class Family(NamedTuple):
    """The n documents as the kernels read them, and when two of them are near-duplicates."""

    sketches: Ragged
    prefixes: Prefixes
    totals: NDArray[np.int32]  # shape (n,), what bounds the overlap of each (`Threshold.totals`)
    bounds: NDArray[np.int32]  # shape (n,), the least overlap of each with a candidate (`Threshold.needs`)
    rule: Rule


class Index(NamedTuple):
    """The prefixes of some documents: for each feature a linked list of its holders, in the order of their entry."""

    heads: Written[np.int64]  # by rank of the feature, the first entry of its list, or -1
    tails: Written[np.int64]  # by rank, the last entry
    following: Written[np.int64]  # by entry, the next entry of its list, or -1
    holders: Written[np.int32]  # by entry, the document


def rank_features(sketches: Ragged, totals: NDArray[np.int32], threshold: Threshold) -> Family:
    """Order the features of each document by one total order, rarest first, and cut its prefix."""
    bounds = threshold.needs(totals, totals)
    numbers, count = number_keys(sketches.values)
    holders = np.bincount(numbers, minlength=count)
    ranks = np.empty(count, np.int32)
    ranks[np.argsort(holders, kind="stable")] = np.arange(count, dtype=np.int32)

    # Features held by only one document have the lowest ranks.
    n_alone = int(np.count_nonzero(holders == 1))
    offsets, prefixes = cut_prefixes(sketches.offsets, ranks[numbers], n_alone, bounds)
    return Family(sketches, Prefixes(offsets, prefixes, count), totals, bounds, threshold.rule)


@compiled
def cut_prefixes(
    offsets: NDArray[np.int64], ranks: NDArray[np.int32], n_alone: int, bounds: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """
    Cut the prefixes: the first (features left) - (least overlap) + 1 features, without those of a single document.

    Source: Chaudhuri, Ganti, Kaushik 2006, A primitive operator for similarity joins in data cleaning.

    Two documents with as many features in common as both need have one that is in both prefixes. A document with fewer
    left than it needs is in no pair, and its prefix is empty.

    Args:
        offsets: shape (n+1,), rows of `ranks`.
        ranks: of the features of each document, in any order.
        n_alone: ranks below this belong to features that only one document holds.
        bounds: shape (n,), least overlap of each document with a candidate.

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
    need = max(family.bounds[a], family.bounds[b], common_needed(family.totals[a], family.totals[b], family.rule))
    return compare_sketches(family.sketches, a, b, need, family.rule)


@compiled
def enter(prefixes: Prefixes, index: Index, document: int, count: int) -> tuple[Index, int]:
    """Enter the prefix of a document into the index; return the index, maybe in new arrays, and its entries."""
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
def find_first(family: Family, index: Index, document: int, met: Written[np.int32]) -> bool:
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
def begin_index(n_ranks: int) -> Index:
    """Return an index without documents, for features of so many ranks."""
    heads, tails = np.full(n_ranks, -1, np.int64), np.empty(n_ranks, np.int64)
    return Index(heads, tails, np.empty(1024, np.int64), np.empty(1024, np.int32))


@compiled
def choose_leaders(
    family: Family, by_policy: NDArray[np.int64], always: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], Index]:
    """
    Let every document lead that has no near-duplicate among the leaders before it.

    In the order of the keep policy, a document leads unless it is a near-duplicate of a leader before it. Documents
    that `keep.force` keeps always lead. What a document would lose for another decides nothing here.

    Source: Hartigan 1975, Clustering Algorithms (the leader algorithm: join a leader, else become one).

    Args:
        family: the n documents.
        by_policy: shape (n,), the documents in the order of the keep policy.
        always: shape (n,), the documents that lead whatever is near them.

    Returns:
        Whether each document leads, (n,), and the index of the leaders.

    Cost:
        For each document a walk along the lists of its prefix in the index, and one comparison of sketches for every
        leader met there, up to the first that is near. Near-linear while few documents lead.
    """
    n = by_policy.size
    index, count = begin_index(family.prefixes.n_ranks), 0
    leads, met = np.zeros(n, np.bool_), np.full(n, -1, np.int32)
    for document in by_policy:
        leads[document] = always[document] or not find_first(family, index, document, met)
        if leads[document]:
            index, count = enter(family.prefixes, index, document, count)
    return leads, index


class Rows(NamedTuple):
    """Some pairs of near-duplicate sketches, p of them."""

    ends: NDArray[np.int32]  # shape (p, 2)
    overlap: NDArray[np.int32]  # shape (p,)
    resemblance: NDArray[np.float64]  # shape (p,)


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Return the pairs of all parts."""
    ends, overlap, resemblance = zip(*parts, strict=True)
    return Rows(np.concatenate(ends), np.concatenate(overlap), np.concatenate(resemblance))


def find_leader_pairs(family: Family, leads: NDArray[np.bool_], index: Index, always: NDArray[np.bool_]) -> Rows:
    """Find all pairs of near-duplicates of which one leads; two leaders are near only where both lead always.

    Args:
        family: the n documents.
        leads: shape (n,), whether each leads.
        index: of the leaders.
        always: shape (n,), the leaders that lead whatever is near them.

    Returns:
        The pairs, (document, leader), ascending; of two leaders the lower document first.

    Cost: that of `choose_leaders`, without its early stops.
    """
    rows = compare_with(family, np.flatnonzero(~leads | always), index, np.full(leads.size, -1, np.int32))
    rows = rows[~leads[rows[:, 0]] | (rows[:, 0] < rows[:, 1])]
    return as_pairs(rows[np.lexsort((rows[:, 1], rows[:, 0]))])


def as_pairs(rows: NDArray[np.int32]) -> Rows:
    """Return rows of `compare_with` as pairs."""
    return Rows(rows[:, :2], rows[:, 2], rows[:, 3] / np.maximum(rows[:, 4], 1))


@compiled
def compare_with(
    family: Family, documents: NDArray[np.int64], index: Index, met: Written[np.int32]
) -> NDArray[np.int32]:
    """Compare documents with those of an index but themselves; `met` marks those that the latest was compared with.

    Returns rows of document, other one, overlap, and the two parts of the resemblance, as they meet; shape (p, 5).
    """
    prefixes = family.prefixes
    pairs, count = np.empty((64, 5), np.int32), 0
    for document in documents:
        met[document] = document
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
                if count == len(pairs):
                    pairs = np.concatenate((pairs, np.empty_like(pairs)))
                pairs[count, 0], pairs[count, 1], pairs[count, 2] = document, other, overlap
                pairs[count, 3], pairs[count, 4] = shared, united
                count += 1
    return pairs[:count].copy()
