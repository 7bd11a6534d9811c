"""The queries of a report over a finished run: SELECT statements for both DuckDB and Spark.

A query names the tables of the run. `wanted` is a small table from the caller; Spark broadcasts it to every task where
the query has the hint.
"""

from nddup.report.content import LENGTHS

MOST_CLUSTERS = 100_000
"""Number of the largest clusters that are read; the others are counted in the histograms only."""

MOST_REJECTS = 100
MOST_COMPONENTS = 100

SIZES = "SELECT size, count(*) AS clusters FROM clusters GROUP BY size ORDER BY size"
"""Number of clusters of each size: size int32, clusters int64."""

RESEMBLANCES = """
    SELECT percent, count(*) AS pairs
    FROM (SELECT CASE WHEN resemblance >= 1 THEN 100 ELSE CAST(floor(resemblance * 100 + 1e-9) AS INT) END AS percent
          FROM pairs) AS rounded
    GROUP BY percent ORDER BY percent
"""
"""Pairs by whole percent of resemblance, rounded down: percent int32, pairs int64. Null, for pairs without an estimate,
comes first. 1e-9 is added because 0.29 is stored as a little less."""

LONGER = f"SELECT {', '.join(f'count(CASE WHEN n_tokens >= {low} THEN 1 END) AS from_{low}' for low in LENGTHS)} FROM documents"  # noqa: E501, S608
"""One row: the number of documents with at least so many tokens, for each of `LENGTHS`, int64."""

DESCRIBED = """
    SELECT /*+ BROADCAST(w) */ w.rank, w.place, d.doc_id, d.url, d.source, d.record, d.n_tokens, d.n_features,
           k.kept, k.duplicate_of, k.reason
    FROM documents AS d JOIN wanted AS w ON d.doc_id = w.doc_id JOIN keep AS k ON d.doc_id = k.doc_id
    ORDER BY w.rank, w.place
"""
"""Facts and outcome of the documents in wanted(rank, place, doc_id): rows of `shown.LISTED`."""

NEAR = """
    SELECT /*+ BROADCAST(w) */ w.rank, w.first, w.second, p.overlap, p.resemblance
    FROM pairs AS p JOIN wanted AS w ON p.doc_a = w.doc_a AND p.doc_b = w.doc_b
    ORDER BY w.rank, w.first, w.second
"""
"""Overlap and resemblance of the pairs in wanted(rank, first, second, doc_a, doc_b) that are near-duplicates: rows of
`shown.CELLS`."""

DOCUMENTS = """
    SELECT d.doc_id, d.url, d.source, d.record, d.n_tokens, d.n_features, k.kept, k.duplicate_of, k.reason,
           CAST(coalesce(s.stands, 0) AS BIGINT) AS stands, s.longest, CAST(coalesce(p.pairs, 0) AS BIGINT) AS pairs
    FROM documents AS d JOIN keep AS k ON d.doc_id = k.doc_id
    LEFT JOIN wanted AS w ON d.doc_id = w.doc_id
    LEFT JOIN (SELECT r.duplicate_of, count(*) AS stands, max(e.n_tokens) AS longest
               FROM keep AS r JOIN documents AS e ON r.doc_id = e.doc_id
               WHERE r.duplicate_of IS NOT NULL GROUP BY r.duplicate_of) AS s ON d.doc_id = s.duplicate_of
    LEFT JOIN (SELECT doc_id, count(*) AS pairs
               FROM (SELECT doc_a AS doc_id FROM pairs UNION ALL SELECT doc_b AS doc_id FROM pairs) AS ends
               GROUP BY doc_id) AS p ON d.doc_id = p.doc_id
    ORDER BY CASE WHEN w.doc_id IS NULL THEN 1 ELSE 0 END, d.doc_key
"""
"""Every document, those in wanted(doc_id) first, then in collection order: rows of `shown.DOCUMENTS`. `stands` counts
the documents removed in its favour, `longest` is the length of the longest of these in tokens, `pairs` counts its rows
in `pairs`."""

WITHIN = """
    SELECT /*+ BROADCAST(a), BROADCAST(b) */ a.part, a.place AS first, b.place AS second, p.resemblance
    FROM pairs AS p JOIN wanted AS a ON p.doc_a = a.doc_id JOIN wanted AS b ON p.doc_b = b.doc_id AND a.part = b.part
    ORDER BY part, first, second
"""
"""The near-duplicate pairs within each part of wanted(part, place, doc_id): part, first, second int32, resemblance."""

WEAKEST = """
    SELECT /*+ BROADCAST(a), BROADCAST(b) */ a.part AS rank, count(*) AS pairs, count(p.resemblance) AS estimated,
           min(p.resemblance) AS least
    FROM pairs AS p JOIN wanted AS a ON p.doc_a = a.doc_id JOIN wanted AS b ON p.doc_b = b.doc_id AND a.part = b.part
    GROUP BY a.part ORDER BY rank
"""
"""The lowest resemblance within each part of wanted(part, doc_id): rows of `shown.WEAKEST`."""

PLACES = """
    SELECT /*+ BROADCAST(w) */ d.doc_id, d.source, d.content_fingerprint
    FROM documents AS d JOIN wanted AS w ON d.doc_id = w.doc_id
"""
"""Source and content fingerprint of the documents in wanted(doc_id)."""

TEXTS = "SELECT doc_id, text FROM texts ORDER BY doc_id"
"""The texts stored with the run. The table exists only if the run read files."""

REJECTS = f"""
    SELECT source, record, doc_id, reason, detail, excerpt
    FROM rejects ORDER BY source, record LIMIT {MOST_REJECTS}
"""  # noqa: S608
"""The first rejects."""

COMPONENTS = f"""
    SELECT component, size, pairs, invented, exact
    FROM false_components WHERE invented > 0 ORDER BY invented DESC, component LIMIT {MOST_COMPONENTS}
"""  # noqa: S608
"""The components with most pairs that are not near-duplicates. Runs of early versions have no such table."""


def largest_clusters(listed_each: int) -> str:
    """Return the query for the largest clusters, with up to `listed_each` members each: `shown.CLUSTERS`, in order."""
    return f"""
        SELECT c.cluster_id, c.support, c.size, c.component, c.coverage, r.doc_id AS representative,
               slice(c.members, 1, {listed_each:d}) AS members
        FROM (SELECT * FROM clusters ORDER BY size DESC, cluster_id LIMIT {MOST_CLUSTERS}) AS c
        LEFT JOIN (SELECT cluster_id, min(doc_id) AS doc_id FROM members WHERE representative GROUP BY cluster_id) AS r
        ON c.cluster_id = r.cluster_id
        ORDER BY c.size DESC, c.cluster_id
    """  # noqa: S608 - a number


def nearest(each: int) -> str:
    """Return the query for up to `each` nearest documents of each in wanted(doc_id): `shown.NEAREST`, in order."""
    return f"""
        SELECT doc_id, other, overlap, resemblance
        FROM (SELECT n.doc_id, n.other, n.overlap, n.resemblance,
                     row_number() OVER (PARTITION BY n.doc_id
                                        ORDER BY coalesce(n.resemblance, -1) DESC, n.overlap DESC, n.other) AS place
              FROM (SELECT doc_a AS doc_id, doc_b AS other, overlap, resemblance FROM pairs
                    UNION ALL SELECT doc_b AS doc_id, doc_a AS other, overlap, resemblance FROM pairs) AS n
              JOIN wanted AS w ON n.doc_id = w.doc_id) AS placed
        WHERE place <= {each:d} ORDER BY doc_id, place
    """  # noqa: S608 - a number


def memberships(each: int) -> str:
    """Return the query for the clusters in ranked(cluster_id, rank) that contain the documents in wanted(doc_id).

    Its rows are `shown.MEMBERSHIPS`: for each document, the first `each` clusters by rank; `clusters` counts all.
    """
    return f"""
        SELECT doc_id, rank, clusters
        FROM (SELECT m.doc_id, r.rank, count(*) OVER (PARTITION BY m.doc_id) AS clusters,
                     row_number() OVER (PARTITION BY m.doc_id ORDER BY r.rank) AS place
              FROM members AS m JOIN ranked AS r ON m.cluster_id = r.cluster_id
              JOIN wanted AS w ON m.doc_id = w.doc_id) AS placed
        WHERE place <= {each:d} ORDER BY doc_id, rank
    """  # noqa: S608 - a number
