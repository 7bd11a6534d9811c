"""Read what a report shows of documents, large clusters and families, bounded whatever the size of the run."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.opened.finished_run import FinishedRun
from nddup.report import questions
from nddup.report.content import DOCUMENTS, EDGES, MEMBERSHIPS, NEAREST, WEAKEST
from nddup.report.families import find_families

MOST_DOCUMENTS = 300_000
"""Most documents that have a page and can be searched; those listed in clusters come first."""

MOST_PAIRS = 5_000_000
"""Most pairs of a run for which the nearest documents are found: the query sorts both ends of all pairs."""

MOST_NEAR, NEAREST_EACH = 1_000_000, 8
"""Most nearest documents, of all documents together and of each."""

CLUSTERS_EACH = 20
"""Most clusters named on the page of a document."""

MOST_WEAKEST = 20_000_000
"""Most pairs of members, over all clusters too large for a matrix, that are searched for the weakest pair."""


class AboutDocuments(NamedTuple):
    """The content of the report about documents, as tables of `content`."""

    documents: pa.Table
    nearest: pa.Table | None
    memberships: pa.Table


def ask_about_documents(run: FinishedRun, clusters: pa.Table, names: pa.Table) -> AboutDocuments:
    """Read facts, outcome, nearest documents and clusters of each document.

    Args:
        run: the run.
        clusters: `shown.CLUSTERS`; a cluster's rank is its row.
        names: the documents listed of these clusters: doc_id.

    Returns:
        Tables as in `shown.Content`, of at most `MOST_DOCUMENTS` documents: the listed ones, then others in collection
        order.

    Cost: a pass over each of `documents`, `keep`, `pairs` and `members`; both ends of the pairs are sorted.
    """
    listed = pa.table({"doc_id": pc.unique(names["doc_id"].combine_chunks())})
    text = f"{questions.DOCUMENTS} LIMIT {MOST_DOCUMENTS}"
    documents = run.sql(text, wanted=listed).cast(DOCUMENTS).sort_by("doc_id")
    wanted = documents.select(["doc_id"])

    nearest = None
    if run.metrics.rows["pairs"] <= MOST_PAIRS:
        each = max(1, min(NEAREST_EACH, MOST_NEAR // max(1, len(documents))))
        nearest = run.sql(questions.nearest(each), wanted=wanted).cast(NEAREST)

    ranked = pa.table({"cluster_id": clusters["cluster_id"], "rank": pa.array(np.arange(len(clusters)), pa.int32())})
    memberships = run.sql(questions.memberships(CLUSTERS_EACH), wanted=wanted, ranked=ranked).cast(MEMBERSHIPS)
    return AboutDocuments(documents, nearest, memberships)


def ask_weakest(run: FinishedRun, clusters: pa.Table, names: pa.Table, matrix_each: int) -> pa.Table:
    """Find the lowest resemblance in each cluster that is too large for a matrix but has all its documents listed.

    Args:
        run: the run.
        clusters: `shown.CLUSTERS`.
        names: rank int32, place int32, doc_id of the documents listed, by rank.
        matrix_each: most documents in a matrix.

    Returns:
        `shown.WEAKEST`. Clusters are taken smallest first, up to `MOST_WEAKEST` pairs of members in all.
    """
    size = clusters["size"].to_numpy()
    listed = np.bincount(names["rank"].to_numpy(), minlength=len(clusters))[: len(clusters)]
    large = np.flatnonzero((size > matrix_each) & (size == listed))[::-1]
    pairs = size[large].astype(np.int64) * (size[large] - 1) // 2
    chosen = pa.array(large[np.cumsum(pairs) <= MOST_WEAKEST].astype(np.int32))
    wanted = names.filter(pc.is_in(names["rank"], chosen)).select(["rank", "doc_id"]).rename_columns(["part", "doc_id"])
    return run.sql(questions.WEAKEST, wanted=wanted).cast(WEAKEST) if len(wanted) else WEAKEST.empty_table()


def ask_edges(run: FinishedRun, clusters: pa.Table) -> pa.Table:
    """Return the near-duplicate pairs among the documents in the graph of each family: `shown.EDGES`."""
    drawn = [family.drawn for family in find_families(clusters)]
    wanted = pa.table(
        {
            "part": pa.array([part for part, ids in enumerate(drawn) for _ in ids], pa.int32()),
            "place": pa.array([place for ids in drawn for place in range(len(ids))], pa.int32()),
            "doc_id": pa.array([doc for ids in drawn for doc in ids], pa.string()),
        }
    )
    return run.sql(questions.WITHIN, wanted=wanted).cast(EDGES) if len(wanted) else EDGES.empty_table()
