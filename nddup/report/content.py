"""The content of a report: Arrow tables and some counts. `gather` makes it from a run; tests make it by hand.

Families are connected components with several, overlapping clusters, which the report shows together:

    a family      the clusters of one component, if the report shows two or more of them
    drawn         the documents in its graph, those of its largest clusters first
    nearest set   for each cluster except the first, the earlier cluster that shares most documents with it
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
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
LISTED = arrow_of("rank int, place int, document int")
CELLS = arrow_of("rank int, first int, second int, overlap int, resemblance double")
UNREAD = "parent string, unread_bytes long, unread_parts int"
"""What a record is part of, and what of it is not in its text; an earlier version did not count it: 0."""

DOCUMENTS = arrow_of(
    "doc_id string, url string, source string, record long, n_tokens int, n_features int, kept boolean,"
    f" duplicate_of string, reason string, {UNREAD}, resemblance double, lost double, leader boolean, stands long,"
    " longest int, pairs long"
)
STANDS = arrow_of("document int, other string, reason string, resemblance double, lost double")
NEAREST = arrow_of("document int, other string, overlap int, resemblance double")
MEMBERSHIPS = arrow_of("document int, rank int, clusters long")
WEAKEST = arrow_of("rank int, pairs long, estimated long, least double")
EDGES = arrow_of("part int, first int, second int, resemblance double")
TEXTS = arrow_of("doc_id string, text string")


class AboutDocuments(NamedTuple):
    """What a report shows of documents outside their clusters; the rows are sorted by `document`.

    nearest: NEAREST of the documents, nearest first; None if the run has too many pairs to search.
    memberships: MEMBERSHIPS of the documents, by rank.
    stands: STANDS of the documents: the first removed documents of each kept one.
    families: how many documents of the run, here or not, stand for removed ones.
    """

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
        documents: DOCUMENTS, by id as UTF-8 bytes: all, or as many as a report holds, including those listed. Elsewhere
            `document` is the row of one here.
        listed: LISTED, by rank and place. Places count the listed documents of a cluster from 0, its representative
            first.
        families: those of `find_families`.
        cells: CELLS, by rank and place of the first document; `first` and `second` are places.
        texts: TEXTS, stored ones and those read again.
        about: returns the rest about the documents, which may still be asked for.
        weakest: WEAKEST of clusters larger than a matrix, by rank.
        edges: EDGES of the graphs of the families: `part` is the place of the family, `first` and `second` are places
            of its documents.
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
    documents: pa.Table
    listed: pa.Table
    families: "Sequence[Family]"
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
    members, first = (clusters[name].combine_chunks() for name in ("members", "representative"))
    sizes = np.asarray(pc.list_value_length(members))
    ranks, ends = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), np.cumsum(sizes)
    ids, of_cluster = members.flatten(), first.take(pa.array(ranks))
    is_first = np.array(pc.fill_null(pc.equal(ids, of_cluster), fill_value=False))

    # A representative that is not among the members listed takes the place of the last of them.
    lacks = np.asarray(first.is_valid()) & (np.bincount(ranks[is_first], minlength=len(sizes)) == 0) & (sizes > 0)
    is_first[ends[lacks] - 1] = True
    order = np.lexsort((~is_first, ranks))
    places = np.arange(len(ranks)) - np.repeat(ends - sizes, sizes)
    names = pc.if_else(pa.array(is_first), of_cluster, ids).take(pa.array(order))
    arrays = [pa.array(ranks), pa.array(places.astype(np.int32)), names]
    return pa.Table.from_arrays(arrays, ["rank", "place", "doc_id"])


def list_cells(listed: pa.Table, matrix_each: int) -> pa.Table:
    """Return the pairs of the first `matrix_each` documents of each cluster.

    Returns:
        rank, first, second, document_a, document_b int32. The order of the documents is that of their ids, so a pair
        with document_a < document_b may be a row of `pairs`.
    """
    few = listed.filter(pc.less(listed["place"], matrix_each))
    rank, document = few["rank"].to_numpy(), few["document"].to_numpy()
    starts = np.flatnonzero(np.diff(rank, prepend=-1))
    sizes = np.diff(starts, append=len(rank))
    counts = sizes * (sizes - 1) // 2
    ranks = np.repeat(rank[starts], counts).astype(np.int32)

    # The places of a cluster's pairs are the upper triangle of its matrix, the same for all clusters of one size.
    corners = {size: np.triu_indices(size, 1) for size in {0, *sizes.tolist()}}
    first = np.concatenate([corners[0][0], *(corners[size][0] for size in sizes.tolist())])
    second = np.concatenate([corners[0][1], *(corners[size][1] for size in sizes.tolist())])

    at = np.repeat(starts, counts)
    one, other = document[at + first], document[at + second]
    columns = {
        "rank": ranks,
        "first": first.astype(np.int32),
        "second": second.astype(np.int32),
        "document_a": np.minimum(one, other),
        "document_b": np.maximum(one, other),
    }
    return pa.table({name: pa.array(column) for name, column in columns.items()})


@dataclass(frozen=True)
class Family:
    """The clusters of one component.

    Attributes:
        component: smallest document id of the component.
        ranks: ranks of its clusters, largest cluster first.
        documents: number of distinct documents listed of its clusters.
        drawn: the documents in its graph; empty if the graphs of earlier families leave too little of
            `MOST_EDGES`.
    """

    component: str
    ranks: Sequence[int]
    documents: int
    drawn: Sequence[int]


def find_families(clusters: pa.Table, listed: pa.Table) -> list[Family]:
    """Find the families of a report, that of the largest cluster first.

    Args:
        clusters: `CLUSTERS`; a cluster's rank is its row.
        listed: `LISTED` of these clusters.

    Cost: sorts of the documents listed.
    """
    components = (
        clusters["component"].combine_chunks().dictionary_encode()
    )  # numbered in the order of their largest clusters
    numbers = np.asarray(components.indices)
    is_family = np.bincount(numbers) > 1
    rank, document = listed["rank"].to_numpy(), listed["document"].to_numpy()
    rank, document = (values[is_family[numbers[rank]]] for values in (rank, document))

    # Each document of a family once, where it first comes: by rank, then by id.
    order = np.lexsort((document, rank, numbers[rank]))
    family, document = numbers[rank][order].astype(np.int64), document[order]
    first = np.sort(np.unique(family * (document.max(initial=0) + 1) + document, return_index=True)[1])
    several, starts = np.unique(family[first], return_index=True)
    documents_of = np.split(document[first], starts[1:])
    ranks = np.argsort(numbers, kind="stable")
    ranks_of = np.split(ranks[np.isin(numbers[ranks], several)], np.cumsum(np.bincount(numbers)[several])[:-1])

    names, families, left = components.dictionary.take(pa.array(several)).to_pylist(), [], MOST_EDGES
    for name, its_ranks, documents in zip(names, ranks_of, documents_of, strict=False):  # without families, one of none
        drawn = documents[:DRAWN_EACH].tolist()
        most_edges = len(drawn) * (len(drawn) - 1) // 2
        if most_edges > left:
            drawn, most_edges = [], 0
        left -= most_edges
        families.append(Family(name, its_ranks.tolist(), len(documents), drawn))
    return families


def find_nearest_sets(families: Iterable[Family], members: Sequence[Sequence[int]]) -> dict[int, tuple[int, int]]:
    """Find for each cluster the earlier cluster of its family that shares most documents with it, and how many.

    Args:
        members: documents listed of each cluster, by rank.

    Returns:
        rank -> (rank of the other, documents in both), ties by rank; without clusters that share nothing with an
        earlier one, and without families that would exceed `MOST_COUNTED` steps.

    Example:
        >>> find_nearest_sets([Family("a", [0, 1, 2], 4, [])], [[0, 1, 2], [1, 3], [2, 3]])
        {1: (0, 1), 2: (0, 1)}
    """
    nearest: dict[int, tuple[int, int]] = {}
    left = MOST_COUNTED
    for family in families:
        # A document in n clusters takes n (n + 1) / 2 steps.
        memberships = Counter(chain.from_iterable(members[rank] for rank in family.ranks))
        steps = sum(count * (count + 1) // 2 for count in memberships.values())
        if steps > left:
            continue
        left -= steps

        earlier: dict[int, list[int]] = {}
        for rank in family.ranks:
            shared = Counter(other for doc in members[rank] for other in earlier.get(doc, ()))
            if shared:
                nearest[rank] = max(shared.items(), key=lambda item: (item[1], -item[0]))
            for doc in members[rank]:
                earlier.setdefault(doc, []).append(rank)
    return nearest
