"""Clusters around leaders: the followers of each, divided into clusters that include it.

    follow_leaders   sketches, Known pairs        -> Itemsets of coverage `documents`
    fit_all          Sketches, leaders, followers -> Fitted: the clusters of every leader, by first fit
    pick_lone        pairs, leaders, ranks        -> the pair of each leader that nothing follows

Guarantees: every document that has a near-duplicate is in a cluster. Every cluster holds a leader, all its pairs are
near-duplicates, and its joint support is enough. Clusters need not be maximal, and a pair of two documents that do not
lead need not be in one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.ground.kernels import Written, compiled
from nddup.matching.threshold import Rule, overlap_or_less, resemblance_parts
from nddup.mining.itemsets import Itemsets, sort_canonically
from nddup.mining.maximal_sets import FoundSets
from nddup.mining.neighbourhoods import FULL, ONE, Bits, count_all, count_common, list_neighbours

OPEN = 64
"""Clusters of one leader that a document may still join."""
CHECKED = 64
"""Maximum number of documents of a cluster that a new one is compared with, where the joint features do not suffice."""


class Known(NamedTuple):
    """The near-duplicate pairs of m documents, where they are given as a list."""

    edges: NDArray[np.int32]  # shape (e, 2), the lower index first
    ranks: NDArray[np.int32]  # shape (m,), each document's place in the order of the policy
    leads: NDArray[np.bool_]  # shape (m,), whether each leads
    is_whole: bool  # whether two documents that do not lead are near-duplicates only if they are in the list


class Sketches(NamedTuple):
    """Sketches, and when a cluster of them is valid."""

    rows: Ragged
    bounds: NDArray[np.int32]  # shape (n,), alpha of each
    min_support: int
    rule: Rule
    pairs: Ragged  # the neighbours of each, ascending, where the pairs are given as a list; else no rows


class Clusters(NamedTuple):
    """The open clusters of one leader; cluster c is at index c modulo OPEN."""

    joint: Written[np.uint64]  # shape (OPEN, words), the joint features
    tau: Written[np.int64]  # shape (OPEN,)
    largest: Written[np.int64]  # shape (OPEN,), the size of the largest sketch
    members: Written[np.int64]  # shape (OPEN, CHECKED), the first documents, as positions among the followers
    counts: Written[np.int64]  # shape (OPEN,), documents without the leader


class Fitted(NamedTuple):
    """The clusters that followers were divided into."""

    numbers: Written[np.int64]  # by document, its cluster
    supports: Written[np.int32]  # by cluster, its joint features


def follow_leaders(
    sketches: Ragged, bounds: NDArray[np.int32], known: Known, rule: Rule, *, min_support: int = 0
) -> Itemsets:
    """
    Divide the followers of each leader of a component into clusters.

    Every document with a near-duplicate leads, or is near a leader (`leaders`); it follows the leader that shares most
    features with it, ties by policy. A leader that nothing follows is in one cluster with the near-duplicate that the
    policy prefers. Two leaders may be near where both are forced to be kept. So a follower is in one cluster of one
    leader beside those, and no cluster lies inside another.

    Where texts confirm pairs (`Threshold.by_text`), two sketches alone do not show whether they are a pair: only pairs
    of the list are near-duplicates then.

    Args:
        sketches: m rows of ascending ids.
        bounds: shape (m,), alpha of each.
        known: the pairs, those with a leader at least, and which documents lead.
        rule: when two sketches are near-duplicates, or candidates.
        min_support: least joint support; 0 leaves it to the bounds.

    Returns:
        The clusters, each once, of coverage `documents`. A document is in none if all its pairs with leaders have less
        than `min_support`.

    Cost: linear in the pairs; for each document its sketch and the sketch of its leader, one sort, and up to OPEN
        bitmaps; where the list is whole, one search in its pairs for each document of up to 64 open clusters of at most
        64 documents.

    Example:
        Documents 0, 1 and 2 share at least two features; 1 leads 0 and 2.

        >>> ids = np.array([1, 2, 3, 1, 2, 3, 4, 2, 3, 4], np.uint64)
        >>> sketches, bounds = Ragged(np.array([0, 3, 7, 10]), ids), np.full(3, 2, np.int32)
        >>> edges, ranks = np.array([[0, 1], [1, 2]], np.int32), np.array([1, 0, 2], np.int32)
        >>> known = Known(edges, ranks, np.array([False, True, False]), is_whole=False)
        >>> found = follow_leaders(sketches, bounds, known, Rule(4, False, False, 0, 1, False, 0, 1))
        >>> found.members.tolist(), found.supports.tolist()
        ([0, 1, 2], [2])
    """
    edges = np.ascontiguousarray(known.edges, np.int32)
    ends = np.concatenate([edges, edges[:, ::-1]])
    ends = np.ascontiguousarray(ends[known.leads[ends[:, 1]]])
    overlap = count_shared(sketches, ends)
    order = np.flatnonzero(overlap >= min_support)
    order = order[np.lexsort((known.ranks[ends[order, 1]], -overlap[order], ends[order, 0]))]
    with_leader, overlap = ends[order], overlap[order]

    # A document follows the leader of its first pair. The followers of a leader become one run.
    follows = np.flatnonzero(~known.leads[with_leader[:, 0]])
    of_first = with_leader[follows, 0]
    first = follows[np.append(True, of_first[1:] != of_first[:-1])[: len(follows)]]
    by_leader = first[np.lexsort((with_leader[first, 0], with_leader[first, 1]))]
    documents, leaders = with_leader[by_leader].astype(np.int64).T.copy()
    listed = Ragged(np.zeros(1, np.int64), np.empty(0, np.uint64))
    if known.is_whole:
        offsets, neighbours = list_neighbours(len(bounds), edges)
        listed = Ragged(offsets, neighbours.astype(np.uint64))
    fitted = fit_all(Sketches(sketches, bounds, min_support, rule, listed), leaders, documents)
    heads = np.empty(fitted.supports.size, np.int64)
    heads[fitted.numbers] = leaders

    lone = pick_lone(with_leader, leaders, known.ranks)
    extra = heads.size + np.arange(lone.size)

    owners = np.concatenate((fitted.numbers, np.arange(heads.size), extra, extra))
    members = np.concatenate((documents, heads, with_leader[lone, 0], with_leader[lone, 1]))
    rows = members[np.lexsort((members, owners))].astype(np.int32)
    ends_of = np.cumsum(np.bincount(owners, minlength=heads.size + lone.size)).astype(np.int64)
    supports = np.append(fitted.supports, overlap[lone])
    return sort_canonically(FoundSets(ends_of, rows, supports, np.array([ends_of.size, rows.size, 0])), "documents")


def pick_lone(pairs: NDArray[np.int32], leaders: NDArray[np.int64], ranks: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return, for each leader that nothing follows, the position of the pair whose document the policy prefers.

    Two leaders may choose each other; their pair is then given once.
    """
    lone = np.flatnonzero(~np.isin(pairs[:, 1], leaders))
    lone = lone[np.lexsort((ranks[pairs[lone, 0]], pairs[lone, 1]))]
    is_first = np.append(True, pairs[lone[1:], 1] != pairs[lone[:-1], 1])[: lone.size]
    chosen = lone[is_first]
    _, once = np.unique(np.sort(pairs[chosen], axis=1), axis=0, return_index=True)
    return np.asarray(chosen[np.sort(once)])


@compiled
def fit_all(sketches: Sketches, leaders: NDArray[np.int64], documents: Written[np.int64]) -> Fitted:
    """Divide the followers of every leader, a run of equal `leaders`; reorders `documents` within each run.

    Every follower of a leader is a bitmap of the leader's sketch. The followers are ordered by these bitmaps, so that
    those that lack the same features come together. Each joins the first of the last `OPEN` clusters that it fits, else
    begins a new one (first fit).
    """
    fitted = Fitted(np.empty(documents.size, np.int64), np.empty(documents.size, np.int32))
    n_clusters = low = 0
    while low < documents.size:
        high = low
        while high < documents.size and leaders[high] == leaders[low]:
            high += 1

        of_leader = Fitted(fitted.numbers[low:high], fitted.supports)
        n_clusters = fit_followers(sketches, leaders[low], documents[low:high], of_leader, n_clusters)
        low = high
    return Fitted(fitted.numbers, fitted.supports[:n_clusters].copy())


@compiled
def draw_followers(sketches: Sketches, leader: int, documents: Written[np.int64]) -> Bits:
    """Return every follower as a bitmap of its leader's sketch, and sort `documents` by bitmap, then by name."""
    offsets, ids = sketches.rows
    start, end = offsets[leader], offsets[leader + 1]
    bits = np.zeros((documents.size, (end - start + 63) >> 6), np.uint64)
    for i in range(documents.size):
        a, b, b_end = start, offsets[documents[i]], offsets[documents[i] + 1]
        while a < end and b < b_end:
            x, y = ids[a], ids[b]
            if x == y:
                bits[i, (a - start) >> 6] |= ONE << np.uint64((a - start) & 63)
            a += x <= y
            b += y <= x

    # Stable sorts by each word, from the last to the first, order the rows as long numbers.
    order = np.arange(documents.size)
    for word in range(bits.shape[1] - 1, -1, -1):
        order = order[np.argsort(bits[order, word], kind="mergesort")]
    documents[:] = documents[order]
    return bits[order]


@compiled
def fit_followers(
    sketches: Sketches, leader: int, documents: Written[np.int64], fitted: Fitted, n_clusters: int
) -> int:
    """Put each follower into a cluster, reordering `documents`; return the number of all clusters so far.

    `fitted.numbers` covers these documents, `fitted.supports` all clusters.
    """
    bits = draw_followers(sketches, leader, documents)
    clusters = make_clusters(bits.shape[1])
    first = n_clusters
    for i in range(documents.size):
        number = max(first, n_clusters - OPEN)
        while number < n_clusters and not can_join(sketches, clusters, number % OPEN, bits, documents, i):
            number += 1

        at = number % OPEN
        if number == n_clusters:
            begin(sketches, clusters, at, leader)
            n_clusters += 1
        join(sketches, clusters, at, bits, documents, i)

        fitted.numbers[i] = number
        fitted.supports[number] = count_all(clusters.joint[at])
    return n_clusters


@compiled
def size_of(sketches: Sketches, document: int) -> int:
    """Return the size of a sketch."""
    return int(sketches.rows.offsets[document + 1] - sketches.rows.offsets[document])


@compiled
def make_clusters(n_words: int) -> Clusters:
    """Make room for the open clusters of a leader whose bitmaps have `n_words` words."""
    return Clusters(
        np.empty((OPEN, n_words), np.uint64),
        np.empty(OPEN, np.int64),
        np.empty(OPEN, np.int64),
        np.empty((OPEN, CHECKED), np.int64),
        np.zeros(OPEN, np.int64),
    )


@compiled
def begin(sketches: Sketches, clusters: Clusters, at: int, leader: int) -> None:
    """Begin a cluster with the leader alone."""
    for word in range(clusters.joint.shape[1]):
        clusters.joint[at, word] = FULL
    clusters.tau[at] = max(sketches.min_support, sketches.bounds[leader])
    clusters.largest[at] = size_of(sketches, leader)
    clusters.counts[at] = 0


@compiled
def can_join(sketches: Sketches, clusters: Clusters, at: int, bits: Bits, documents: NDArray[np.int64], i: int) -> bool:
    """Tell whether a cluster stays valid when the i-th follower is added.

    A cluster is valid at every step: its joint features number at least tau, and every pair in it is a near-duplicate.
    For counts and shares the first implies the second. For a resemblance t it does so where the joint features are at
    least (1 + t) / 2 of the largest sketch, because then |A ∩ B| / |A ∪ B| >= t; with fewer, each pair is compared,
    while the cluster has at most `CHECKED` documents.
    """
    joint = count_common(clusters.joint[at], bits[i])
    if joint < max(clusters.tau[at], sketches.bounds[documents[i]]):
        return False

    if sketches.pairs.offsets.size > 1:
        return is_listed_with_all(sketches.pairs, clusters, at, documents, i)

    # Enough joint features make every pair of the cluster a near-duplicate.
    largest = max(clusters.largest[at], size_of(sketches, documents[i]))
    if not sketches.rule.by_resemblance or is_surely_near(sketches.rule, joint, largest):
        return True

    if clusters.counts[at] > CHECKED:
        return False
    n_near = 0
    while n_near < clusters.counts[at] and is_near(sketches, bits, documents, i, clusters.members[at, n_near]):
        n_near += 1
    return bool(n_near == clusters.counts[at])


@compiled
def is_listed_with_all(pairs: Ragged, clusters: Clusters, at: int, documents: NDArray[np.int64], i: int) -> bool:
    """Tell whether the list has the i-th follower as a near-duplicate of every follower in a cluster."""
    if clusters.counts[at] > CHECKED:
        return False
    partners = pairs.values[pairs.offsets[documents[i]] : pairs.offsets[documents[i] + 1]]
    for n in range(clusters.counts[at]):
        other = np.uint64(documents[clusters.members[at, n]])
        place = np.searchsorted(partners, other)
        if place == partners.size or partners[place] != other:
            return False
    return True


@compiled
def join(sketches: Sketches, clusters: Clusters, at: int, bits: Bits, documents: NDArray[np.int64], i: int) -> None:
    """Add the i-th follower to a cluster."""
    for word in range(bits.shape[1]):
        clusters.joint[at, word] &= bits[i, word]
    clusters.tau[at] = max(clusters.tau[at], sketches.bounds[documents[i]])
    clusters.largest[at] = max(clusters.largest[at], size_of(sketches, documents[i]))

    if clusters.counts[at] < CHECKED:
        clusters.members[at, clusters.counts[at]] = i
    clusters.counts[at] += 1


@compiled
def is_surely_near(rule: Rule, common: int, largest: int) -> bool:
    """Tell whether `common` features are enough to make any two sketches of at most `largest` near-duplicates."""
    return bool(2 * rule.denominator * common >= (rule.denominator + rule.numerator) * largest)


@compiled
def is_near(sketches: Sketches, bits: Bits, documents: NDArray[np.int64], i: int, j: int) -> bool:
    """Tell whether two followers resemble each other enough; their overlap is known to be enough."""
    a, b, rule = documents[i], documents[j], sketches.rule
    common = count_common(bits[i], bits[j])
    if is_surely_near(rule, common, max(size_of(sketches, a), size_of(sketches, b))):
        return True

    offsets, ids = sketches.rows
    shared, united = resemblance_parts(ids, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], rule)
    return bool(shared * rule.denominator >= rule.numerator * united)


@compiled
def count_shared(sketches: Ragged, ends: NDArray[np.int32]) -> NDArray[np.int32]:
    """Count the features that the two sketches of each pair share, (p,)."""
    offsets, ids = sketches
    counts = np.empty(len(ends), np.int32)
    for i in range(len(ends)):
        a, b = ends[i, 0], ends[i, 1]
        counts[i] = overlap_or_less(ids, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], 0)
    return counts
