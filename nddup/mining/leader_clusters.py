"""Stars: the documents that follow one kept document, cut into clusters around it.

In a star every document is a bitmap of the leader's sketch. The documents are ordered by these bitmaps, so that those
that lost the same features come together, and each goes into the first of the last `OPEN` clusters that it can join,
else begins a new one. A cluster stays valid at every step: its joint features number at least tau, and every pair in it
is a near-duplicate. For counts and shares the first says the second. For a resemblance t, joint features of
(1 + t) / 2 of the largest sketch say it too; with fewer, each pair is looked at, while there are `CHECKED` documents or
less.

A document is in one cluster of one star, so no cluster lies inside another.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled
from nddup.matching.compare import resemblance_parts
from nddup.mining.bitsets import ONE, Bits, count_all, count_common
from nddup.mining.found_sets import Found
from nddup.mining.itemsets import Itemsets, sort_canonically

OPEN = 64
CHECKED = 64


class Sketches(NamedTuple):
    """Sketches, and when a cluster of them is valid."""

    offsets: NDArray[np.int64]
    ids: NDArray[np.uint64]
    bounds: NDArray[np.int32]
    min_support: int
    size: int  # s of the sketches
    by_resemblance: bool
    numerator: int
    denominator: int


class Clusters(NamedTuple):
    """The open clusters of one star, at their number modulo OPEN."""

    joint: Bits  # shape (OPEN, words)
    tau: NDArray[np.int64]
    largest: NDArray[np.int64]  # the size of the largest sketch
    members: NDArray[np.int64]  # shape (OPEN, CHECKED), the first documents, as positions in the star
    counts: NDArray[np.int64]  # documents, the leader not among them


def cut_stars(
    sketches: Ragged,
    bounds: NDArray[np.int32],
    pairs: NDArray[np.int32],
    overlap: NDArray[np.int32],
    ranks: NDArray[np.int64],
    share: tuple[int, int] | None,
    size: int,
    min_support: int,
) -> Itemsets:
    """
    Make clusters of pairs (document, kept one).

    Args:
        sketches: n rows of ascending ids.
        bounds: shape (n,), alpha of each.
        pairs: shape (p, 2), by document, the kept one it resembles most first.
        overlap: shape (p,), of each pair.
        ranks: shape (n,), each document's place in the order of the policy.
        share: the resemblance a pair must reach, as numerator and denominator; None where the overlap alone decides.
        size: s of the sketches.
        min_support: least joint support.

    Returns:
        The clusters; coverage `documents`. Each document that has a pair of enough overlap is in one, and so is each
        kept one: if none follows it, with the first of its pairs in the order of the policy.

    Cost: for each document its sketch and the sketch of its leader, one sort, and up to OPEN bitmaps.
    """
    enough = overlap >= min_support
    pairs, overlap = pairs[enough], overlap[enough]
    first = np.flatnonzero(np.append(True, pairs[1:, 0] != pairs[:-1, 0])[: len(pairs)])
    by_leader = first[np.lexsort((pairs[first, 0], pairs[first, 1]))]
    leaders, documents = pairs[by_leader, 1].astype(np.int64), pairs[by_leader, 0].astype(np.int64)
    numerator, denominator = share or (0, 1)
    given = Sketches(
        sketches.offsets, sketches.values, bounds, min_support, size, share is not None, numerator, denominator
    )
    numbers, supports = fit_stars(given, leaders, documents)
    heads = np.empty(supports.size, np.int64)
    heads[numbers] = leaders
    lone = np.flatnonzero(~np.isin(pairs[:, 1], leaders))
    lone = lone[np.lexsort((ranks[pairs[lone, 0]], pairs[lone, 1]))]
    lone = lone[np.append(True, pairs[lone[1:], 1] != pairs[lone[:-1], 1])[: lone.size]]
    extra = supports.size + np.arange(lone.size)
    owners = np.concatenate((numbers, np.arange(supports.size), extra, extra))
    members = np.concatenate((documents, heads, pairs[lone, 0], pairs[lone, 1]))
    rows = members[np.lexsort((members, owners))].astype(np.int32)
    ends = np.cumsum(np.bincount(owners, minlength=supports.size + lone.size)).astype(np.int64)
    found = Found(ends, rows, np.append(supports, overlap[lone]), np.array([ends.size, rows.size, 0]))
    return sort_canonically(found, "documents")


@compiled
def fit_stars(
    sketches: Sketches, leaders: NDArray[np.int64], documents: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Cut every star; returns the cluster of each document, and the support of each cluster. Stars are runs."""
    numbers = np.empty(documents.size, np.int64)
    supports = np.empty(documents.size, np.int32)
    n_clusters = low = 0
    while low < documents.size:
        high = low
        while high < documents.size and leaders[high] == leaders[low]:
            high += 1
        n_clusters = fit_star(sketches, leaders[low], documents[low:high], numbers[low:high], supports, n_clusters)
        low = high
    return numbers, supports[:n_clusters].copy()


@compiled
def draw_star(sketches: Sketches, leader: int, documents: NDArray[np.int64]) -> Bits:
    """Draw every document of a star as a bitmap of its leader's sketch, and order `documents` by them, then by name."""
    start, end = sketches.offsets[leader], sketches.offsets[leader + 1]
    bits = np.zeros((documents.size, (end - start + 63) >> 6), np.uint64)
    for i in range(documents.size):
        a, b, b_end = start, sketches.offsets[documents[i]], sketches.offsets[documents[i] + 1]
        while a < end and b < b_end:
            if sketches.ids[a] == sketches.ids[b]:
                bits[i, (a - start) >> 6] |= ONE << np.uint64((a - start) & 63)
            x, y = sketches.ids[a], sketches.ids[b]
            a += x <= y
            b += y <= x
    order = np.arange(documents.size)
    for word in range(bits.shape[1] - 1, -1, -1):
        order = order[np.argsort(bits[order, word], kind="mergesort")]
    documents[:] = documents[order]
    return bits[order]


@compiled
def fit_star(
    sketches: Sketches,
    leader: int,
    documents: NDArray[np.int64],
    numbers: NDArray[np.int64],
    supports: NDArray[np.int32],
    n_clusters: int,
) -> int:
    """First-fit the documents of a star, which are reordered; returns how many clusters there are now."""
    bits = draw_star(sketches, leader, documents)
    clusters = Clusters(
        np.empty((OPEN, bits.shape[1]), np.uint64),
        np.empty(OPEN, np.int64),
        np.empty(OPEN, np.int64),
        np.empty((OPEN, CHECKED), np.int64),
        np.zeros(OPEN, np.int64),
    )
    first = n_clusters
    for i in range(documents.size):
        number = max(first, n_clusters - OPEN)
        while number < n_clusters and not can_join(sketches, clusters, number % OPEN, bits, documents, i):
            number += 1
        at = number % OPEN
        if number == n_clusters:
            begin(sketches, clusters, at, leader)
            n_clusters += 1
        for word in range(bits.shape[1]):
            clusters.joint[at, word] &= bits[i, word]
        clusters.tau[at] = max(clusters.tau[at], sketches.bounds[documents[i]])
        clusters.largest[at] = max(clusters.largest[at], size_of(sketches, documents[i]))
        if clusters.counts[at] < CHECKED:
            clusters.members[at, clusters.counts[at]] = i
        clusters.counts[at] += 1
        numbers[i] = number
        supports[number] = count_all(clusters.joint[at])
    return n_clusters


@compiled
def size_of(sketches: Sketches, document: int) -> int:
    """Return the size of a sketch."""
    return int(sketches.offsets[document + 1] - sketches.offsets[document])


@compiled
def begin(sketches: Sketches, clusters: Clusters, at: int, leader: int) -> None:
    """Begin a cluster with the leader alone."""
    for word in range(clusters.joint.shape[1]):
        clusters.joint[at, word] = ~np.uint64(0)
    clusters.tau[at] = max(sketches.min_support, sketches.bounds[leader])
    clusters.largest[at] = size_of(sketches, leader)
    clusters.counts[at] = 0


@compiled
def can_join(sketches: Sketches, clusters: Clusters, at: int, bits: Bits, documents: NDArray[np.int64], i: int) -> bool:
    """Tell whether a cluster stays valid with one more document."""
    joint = count_common(clusters.joint[at], bits[i])
    if joint < max(clusters.tau[at], sketches.bounds[documents[i]]):
        return False
    largest = max(clusters.largest[at], size_of(sketches, documents[i]))
    if not sketches.by_resemblance or is_surely_near(sketches, joint, largest):
        return True
    if clusters.counts[at] > CHECKED:
        return False
    n_near = 0
    while n_near < clusters.counts[at] and is_near(sketches, bits, documents, i, clusters.members[at, n_near]):
        n_near += 1
    return bool(n_near == clusters.counts[at])


@compiled
def is_surely_near(sketches: Sketches, common: int, largest: int) -> bool:
    """Tell whether so many common features make two sketches of at most `largest` resemble each other enough."""
    return bool(2 * sketches.denominator * common >= (sketches.denominator + sketches.numerator) * largest)


@compiled
def is_near(sketches: Sketches, bits: Bits, documents: NDArray[np.int64], i: int, j: int) -> bool:
    """Tell whether two documents of a star resemble each other enough; that their overlap is enough is known."""
    a, b = documents[i], documents[j]
    if is_surely_near(sketches, count_common(bits[i], bits[j]), max(size_of(sketches, a), size_of(sketches, b))):
        return True
    offsets = sketches.offsets
    shared, united = resemblance_parts(
        sketches.ids, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], sketches.size
    )
    return bool(shared * sketches.denominator >= sketches.numerator * united)
