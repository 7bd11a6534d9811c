"""The content of a report: Arrow tables and some counts. `gather` makes it from a run; tests make it by hand.

Families are connected components with several, overlapping clusters, which the report shows together:

    a family      the clusters of one component, if the report shows two or more of them
    drawn         the documents in its graph, those of its largest clusters first
    nearest set   for each cluster except the first, the earlier cluster that shares most documents with it
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.ground.metrics import RunMetrics
from nddup.tables.declared import arrow_of

MATRIX_EACH = 24
"""Maximum number of documents in the matrix of a cluster."""

LISTED_EACH = 200
"""Maximum number of documents listed for a cluster."""

LENGTHS = (0, 1, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
"""Lower ends of the histogram of lengths, in tokens."""

CLUSTERS = arrow_of(
    "cluster_id string, support int, size int, component string, coverage string, representative string,"
    " members array<string>"
)
DESCRIBED = (
    "doc_id string, url string, source string, record long, n_tokens int, n_features int, kept boolean,"
    " duplicate_of string, reason string"
)
"""Columns of a document wherever one is shown."""

LISTED = arrow_of(f"rank int, place int, {DESCRIBED}")
CELLS = arrow_of("rank int, first int, second int, overlap int, resemblance double")
UNREAD = "parent string, unread_bytes long, unread_parts int"
"""What a record is part of, and what of it is not in its text; an earlier version did not count it: 0."""

DOCUMENTS = arrow_of(
    f"{DESCRIBED}, {UNREAD}, resemblance double, lost double, leader boolean, stands long, longest int, pairs long"
)
STANDS = arrow_of("document int, other string, reason string, resemblance double, lost double")
NEAREST = arrow_of("document int, other string, overlap int, resemblance double")
MEMBERSHIPS = arrow_of("document int, rank int, clusters long")
WEAKEST = arrow_of("rank int, pairs long, estimated long, least double")
EDGES = arrow_of("part int, first int, second int, resemblance double")
TEXTS = arrow_of("doc_id string, text string")


class AboutDocuments(NamedTuple):
    """What a report shows of documents outside their clusters.

    documents: DOCUMENTS, by id as UTF-8 bytes: all, or as many as a report holds, including those listed. Elsewhere
        `document` is the row of one here, and the rows are sorted by it.
    nearest: NEAREST of these documents, nearest first; None if the run has too many pairs to search.
    memberships: MEMBERSHIPS of these documents, by rank.
    stands: STANDS of these documents: the first removed documents of each kept one.
    families: how many documents of the run, here or not, stand for removed ones.
    """

    documents: pa.Table = DOCUMENTS.empty_table()
    nearest: pa.Table | None = NEAREST.empty_table()
    memberships: pa.Table = MEMBERSHIPS.empty_table()
    stands: pa.Table = STANDS.empty_table()
    families: int = 0


@dataclass(frozen=True)
class Content:
    """The whole content of a report.

    Attributes:
        path: path of the run, without a login.
        clusters: CLUSTERS, largest first. A cluster's `rank` is its row here.
        listed: LISTED, by rank and place. Places count the listed documents of a cluster from 0, its representative
            first.
        cells: CELLS, by rank and place of the first document; `first` and `second` are places.
        texts: TEXTS, stored ones and those read again.
        about: returns the rest about the documents, which may still be asked for.
        weakest: WEAKEST of clusters larger than a matrix, by rank.
        edges: EDGES of the graphs of `families.find_families(clusters)`: `part` is the place of the family, `first` and
            `second` are places of its documents.
        sizes: (size, clusters of that size), ascending, of all clusters.
        resemblances: (whole percent or None for no estimate, pairs), of all pairs.
        lengths: (lower end of `LENGTHS`, documents), of all documents.
        rejects: the first rows of `rejects`.
        components: the first rows of `false_components`; None if the run has no such table.
        evaluation: content of `evaluation.json`; None if there is none.
        check: content of `check.json`, what `nddup check` said; None if it has not been run.
        losses: how many documents are removed, of how many it is known what they lose, how many lose nothing, and
            the `worst`: document, kept one, share lost.
        risky: removals to be judged, rows of `risky.COLUMNS`.
        news: what became of the families of an earlier run; None where names are not taken from one.
        disagreements: the families that differ in each column of `keep.ledger`; None where it names none.
        matrix_each: most documents in the matrix of a cluster.
        listed_each: most documents listed of a cluster.
    """

    path: str
    metrics: RunMetrics
    clusters: pa.Table
    listed: pa.Table
    cells: pa.Table
    texts: pa.Table
    sizes: list[tuple[int, int]]
    resemblances: list[tuple[int | None, int]]
    lengths: list[tuple[int, int]]
    rejects: list[dict[str, Any]] = field(default_factory=list)
    components: list[dict[str, Any]] | None = None
    evaluation: Mapping[str, Any] | None = None
    check: Mapping[str, Any] | None = None
    losses: Mapping[str, Any] = field(default_factory=lambda: {"removed": 0, "known": 0, "nothing": 0, "worst": []})
    risky: Sequence[Mapping[str, Any]] = ()
    news: Mapping[str, Any] | None = None
    disagreements: list[dict[str, Any]] | None = None
    about: Callable[[], AboutDocuments] = AboutDocuments
    weakest: pa.Table = field(default_factory=WEAKEST.empty_table)
    edges: pa.Table = field(default_factory=EDGES.empty_table)
    matrix_each: int = MATRIX_EACH
    listed_each: int = LISTED_EACH


DRAWN_EACH = 200
"""Maximum number of documents in the graph of a family: a larger graph is not readable."""

MOST_EDGES = 1_000_000
"""Maximum number of pairs that the graphs of all families may have together."""

MOST_COUNTED = 5_000_000
"""Maximum number of steps spent on counting the documents that clusters share."""


def list_documents(clusters: pa.Table) -> pa.Table:
    """Return the documents of each cluster in the order of display: the representative, then by id.

    Args:
        clusters: CLUSTERS; `members` may be truncated and may lack the representative.

    Returns:
        rank int32, place int32, doc_id; as many documents of a cluster as it has `members`.
    """
    ranks: list[int] = []
    places: list[int] = []
    names: list[str] = []
    members, first = clusters["members"].to_pylist(), clusters["representative"].to_pylist()
    for rank, (ids, chosen) in enumerate(zip(members, first, strict=True)):
        ordered = [chosen, *[one for one in ids if one != chosen]][: len(ids)] if chosen is not None else ids
        ranks += [rank] * len(ordered)
        places += range(len(ordered))
        names += ordered
    arrays = [pa.array(ranks, pa.int32()), pa.array(places, pa.int32()), pa.array(names, pa.string())]
    return pa.Table.from_arrays(arrays, ["rank", "place", "doc_id"])


def list_cells(names: pa.Table, matrix_each: int) -> pa.Table:
    """Return the pairs of the first `matrix_each` documents of each cluster: rank, first, second int32, doc_a < doc_b.

    Ids are compared by their UTF-8 bytes, as in the table `pairs`.
    """
    few = names.filter(pc.less(names["place"], matrix_each))
    rank = few["rank"].to_numpy()
    starts = np.flatnonzero(np.diff(rank, prepend=-1))
    sizes = np.diff(starts, append=len(rank))
    counts = sizes * (sizes - 1) // 2
    ranks = np.repeat(rank[starts], counts).astype(np.int32)

    # The places of a cluster's pairs are the upper triangle of its matrix, the same for all clusters of one size.
    corners = {size: np.triu_indices(size, 1) for size in {0, *sizes.tolist()}}
    first = np.concatenate([corners[0][0], *(corners[size][0] for size in sizes.tolist())])
    second = np.concatenate([corners[0][1], *(corners[size][1] for size in sizes.tolist())])

    at = np.repeat(starts, counts)
    one, other = (few["doc_id"].take(pa.array(at + place)) for place in (first, second))
    is_before = pc.less(one, other)
    ends = pc.if_else(is_before, one, other), pc.if_else(is_before, other, one)
    arrays = [pa.array(ranks), pa.array(first.astype(np.int32)), pa.array(second.astype(np.int32)), *ends]
    return pa.Table.from_arrays(arrays, ["rank", "first", "second", "doc_a", "doc_b"])


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
        clusters: `CLUSTERS`; a cluster's rank is its row.

    Cost: linear in the members listed.
    """
    ranks_of: dict[str, list[int]] = {}
    for rank, component in enumerate(clusters["component"].to_pylist()):
        ranks_of.setdefault(component, []).append(rank)

    members = clusters["members"].to_pylist()
    families, left = [], MOST_EDGES
    for component, ranks in ranks_of.items():
        if len(ranks) < 2:  # noqa: PLR2004 - one cluster is no family
            continue
        ids = list(dict.fromkeys(doc for rank in ranks for doc in members[rank]))
        drawn = ids[:DRAWN_EACH]
        most_edges = len(drawn) * (len(drawn) - 1) // 2
        if most_edges > left:
            drawn, most_edges = [], 0
        left -= most_edges
        families.append(Family(component, ranks, len(ids), drawn))
    return families


def find_nearest_sets(families: Iterable[Family], members: Sequence[Sequence[str]]) -> dict[int, tuple[int, int]]:
    """Find for each cluster the earlier cluster of its family that shares most documents with it, and how many.

    Args:
        members: documents listed of each cluster, by rank.

    Returns:
        rank -> (rank of the other, documents in both), ties by rank; without clusters that share nothing with an
        earlier one, and without families that would exceed `MOST_COUNTED` steps.

    Example:
        >>> find_nearest_sets([Family("a", [0, 1, 2], 4, [])], [["a", "b", "c"], ["b", "d"], ["c", "d"]])
        {1: (0, 1), 2: (0, 1)}
    """
    nearest: dict[int, tuple[int, int]] = {}
    left = MOST_COUNTED
    for family in families:
        # A document in n clusters takes n (n + 1) / 2 steps.
        memberships = Counter(doc for rank in family.ranks for doc in members[rank])
        steps = sum(count * (count + 1) // 2 for count in memberships.values())
        if steps > left:
            continue
        left -= steps

        earlier: dict[str, list[int]] = {}
        for rank in family.ranks:
            shared = Counter(other for doc in members[rank] for other in earlier.get(doc, ()))
            if shared:
                nearest[rank] = max(shared.items(), key=lambda item: (item[1], -item[0]))
            for doc in members[rank]:
                earlier.setdefault(doc, []).append(rank)
    return nearest
