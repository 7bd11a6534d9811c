"""Families: connected components with several, overlapping clusters, which the report shows together.

a family      the clusters of one component, if the report shows two or more of them
drawn         the documents in its graph, those of its largest clusters first
nearest set   for each cluster except the first, the earlier cluster that shares most documents with it
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

DRAWN_EACH = 200
"""Most documents in the graph of a family: a larger graph is not readable."""

MOST_EDGES = 1_000_000
"""Most pairs that the graphs of all families may have together."""

MOST_COUNTED = 5_000_000
"""Most steps spent on counting the documents that clusters share."""


@dataclass(frozen=True)
class Family:
    """The clusters of one component.

    Attributes:
        component: smallest document id of the component.
        ranks: ranks of its clusters, largest cluster first.
        documents: number of distinct documents listed of its clusters.
        drawn: ids of the documents in its graph; empty if the graphs of earlier families leave too little of
            `MOST_EDGES`.
    """

    component: str
    ranks: Sequence[int]
    documents: int
    drawn: Sequence[str]


def find_families(clusters: pa.Table) -> list[Family]:
    """Find the families of a report, that of the largest cluster first.

    Args:
        clusters: `shown.CLUSTERS`; a cluster's rank is its row.

    Cost: linear in the members listed.
    """
    ranks_of: dict[str, list[int]] = {}
    for rank, component in enumerate(clusters["component"].to_pylist()):
        ranks_of.setdefault(component, []).append(rank)

    members = clusters["members"].to_pylist()
    found, left = [], MOST_EDGES
    for component, ranks in ranks_of.items():
        if len(ranks) < 2:  # noqa: PLR2004 - one cluster is no family
            continue
        ids = list(dict.fromkeys(doc for rank in ranks for doc in members[rank]))
        drawn = ids[:DRAWN_EACH]
        most_edges = len(drawn) * (len(drawn) - 1) // 2
        if most_edges > left:
            drawn, most_edges = [], 0
        left -= most_edges
        found.append(Family(component, ranks, len(ids), drawn))
    return found


def find_nearest_sets(families: Iterable[Family], members: Sequence[Sequence[str]]) -> dict[int, tuple[int, int]]:
    """Find for each cluster the earlier cluster of its family that shares most documents with it, and how many.

    Args:
        families: families of `find_families`.
        members: documents listed of each cluster, by rank.

    Returns:
        rank -> (rank of the other, documents in both), ties by rank; without clusters that share nothing with an
        earlier one, and without families that would exceed `MOST_COUNTED` steps.

    Example:
        >>> find_nearest_sets([Family("a", [0, 1, 2], 4, [])], [["a", "b", "c"], ["b", "d"], ["c", "d"]])
        {1: (0, 1), 2: (0, 1)}
    """
    found: dict[int, tuple[int, int]] = {}
    left = MOST_COUNTED
    for family in families:
        # A document in n clusters takes n (n + 1) / 2 steps.
        held = Counter(doc for rank in family.ranks for doc in members[rank])
        steps = sum(count * (count + 1) // 2 for count in held.values())
        if steps > left:
            continue
        left -= steps

        earlier: dict[str, list[int]] = {}
        for rank in family.ranks:
            shared = Counter(other for doc in members[rank] for other in earlier.get(doc, ()))
            if shared:
                found[rank] = max(shared.items(), key=lambda item: (item[1], -item[0]))
            for doc in members[rank]:
                earlier.setdefault(doc, []).append(rank)
    return found
