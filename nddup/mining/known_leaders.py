"""Clusters around kept documents where a list of pairs, not the sketches, decides which are near-duplicates.

Where texts confirm pairs (`Threshold.by_text`), two sketches alone do not show whether they are a pair. The kept
documents are known too: `independent_set` chose them from the same list. Where all pairs of a component are known, the
result is that of `leaders`; the clusters are divided in the same way (`leader_clusters`).
"""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled
from nddup.matching.compare import overlap_or_less
from nddup.matching.threshold import Rule
from nddup.mining.itemsets import Itemsets
from nddup.mining.leader_clusters import Followers, Known, divide_followers
from nddup.mining.packed_component import list_neighbours


def follow_known(
    sketches: Ragged, bounds: NDArray[np.int32], known: Known, rule: Rule, *, min_support: int = 0
) -> Itemsets:
    """
    Make clusters around the kept documents of a component.

    Args:
        sketches: m rows of ascending ids, uint64.
        bounds: (m,), alpha of each.
        known: the pairs, and the leader of each document.
        rule: when two sketches are candidates.
        min_support: least joint support; 0 leaves it to the bounds.

    Returns:
        Sets as from `leader_clusters.divide_followers`; every pair of a set is in the list.

    Cost: linear in the pairs, and for each follower one search in its pairs for each document of up to 64 open
        clusters of at most 64 documents.
    """
    edges = np.ascontiguousarray(known.edges, np.int32)
    ends = np.concatenate([edges, edges[:, ::-1]])
    is_kept = known.leaders == np.arange(len(bounds))
    ends = ends[~is_kept[ends[:, 0]] & is_kept[ends[:, 1]]]

    # The leader of a document comes first, then its other kept near-duplicates in the order of the policy.
    order = np.lexsort((known.ranks[ends[:, 1]], known.leaders[ends[:, 0]] != ends[:, 1], ends[:, 0]))
    ends = np.ascontiguousarray(ends[order])
    overlap = count_shared(sketches, ends)
    followers = Followers(ends, overlap, known.ranks.astype(np.int64))
    offsets, neighbours = list_neighbours(len(bounds), edges)
    pairs = Ragged(offsets, neighbours.astype(np.uint64))
    return divide_followers(sketches, bounds, followers, rule, min_support, pairs)


@compiled
def count_shared(sketches: Ragged, ends: NDArray[np.int32]) -> NDArray[np.int32]:
    """Count the features that the two sketches of each pair share, (p,)."""
    offsets, ids = sketches
    counts = np.empty(len(ends), np.int32)
    for i in range(len(ends)):
        a, b = ends[i, 0], ends[i, 1]
        counts[i] = overlap_or_less(ids, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], 0)
    return counts
