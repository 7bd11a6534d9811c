"""One cluster of a run, with its members and the pairs among them."""

from dataclasses import dataclass

import pyarrow as pa

from nddup.api import html
from nddup.api.run_table import RunTable, table_of
from nddup.errors import ConfigError
from nddup.opened.finished_run import FinishedRun

ONE = """
    SELECT c.cluster_id, c.size, c.support, c.component, c.coverage
    FROM clusters AS c JOIN wanted AS w ON c.cluster_id = w.id
"""
MEMBERS = """
    SELECT m.doc_id, m.representative, d.url, d.source, d.n_tokens, k.kept, k.duplicate_of, k.reason
    FROM members AS m JOIN wanted AS w ON m.cluster_id = w.id
    LEFT JOIN documents AS d ON m.doc_id = d.doc_id LEFT JOIN keep AS k ON m.doc_id = k.doc_id
    ORDER BY m.representative DESC, m.doc_id
"""
PAIRS = """
    SELECT p.doc_a, p.doc_b, p.overlap, p.resemblance, p.star
    FROM pairs AS p
    JOIN (SELECT m.doc_id FROM members AS m JOIN wanted AS w ON m.cluster_id = w.id) AS a ON p.doc_a = a.doc_id
    JOIN (SELECT m.doc_id FROM members AS m JOIN wanted AS w ON m.cluster_id = w.id) AS b ON p.doc_b = b.doc_id
    ORDER BY p.resemblance, p.doc_a, p.doc_b
"""

MEANS = {
    "all": "a maximal set; all of its component are listed",
    "pairs": "a maximal set; those listed of its component hold every pair",
    "documents": "around a kept document, in a component given by leaders",
    "partition": "a kept document and its duplicates",
    "components": "a connected component: two of its members need not be near-duplicates",
}
"""Meaning of each value of the column `coverage`."""


IN_MATRIX = 24
"""Largest number of members for which the pairs are shown as a matrix."""


@dataclass(frozen=True)
class Cluster:
    """A cluster.

    Attributes:
        cluster_id: its id.
        size: number of members.
        support: number of features that all members have in common.
        component: smallest document id in the connected component of the cluster.
        coverage: as in the table `clusters`.
        members: a row per member, the representative first: doc_id, representative, url, source, n_tokens, kept,
            duplicate_of, reason.
        pairs: the rows of `pairs` among the members, weakest first: doc_a, doc_b, overlap, resemblance, star.
    """

    cluster_id: str
    size: int
    support: int
    component: str
    coverage: str
    members: RunTable
    pairs: RunTable

    def __repr__(self) -> str:
        """Return the id, size and number of common features."""
        return f"<cluster {self.cluster_id}: {self.size:,} documents, {self.support:,} features common to all>"

    def _repr_html_(self) -> str:
        """Show the cluster, its members and its pairs in a notebook."""
        values = {"documents": self.size, "features common to all": self.support, "component": self.component}
        title = html.facts(f"cluster {self.cluster_id}", values, sentence=MEANS.get(self.coverage, self.coverage))
        return title + self.members._repr_html_() + (self._matrix() if self.size <= IN_MATRIX else "")

    def _matrix(self) -> str:
        """Return the resemblance of every two members, in per cent; the list of pairs if one of them is a star."""
        names = [row["doc_id"] for row in self.members.to_pylist()]
        pairs = self.pairs.to_pylist()
        if any(row["star"] for row in pairs):
            return self.pairs._repr_html_()  # a star stands for pairs without a row of their own
        near = {frozenset((row["doc_a"], row["doc_b"])): row["resemblance"] for row in pairs}
        rows = [
            [name, *(_per_cent(near.get(frozenset((name, other)))) for other in names[:place])]
            for place, name in enumerate(names)
        ]
        said = "resemblance in per cent, rounded down; – where two are no pair of the table"
        return html.table(["", *names[:-1]], rows[1:], caption=said)


def _per_cent(resemblance: float | None) -> int | None:
    """Return a resemblance in per cent, rounded down; 1e-9 is added because 0.29 is stored as a little less."""
    return None if resemblance is None else int(resemblance * 100 + 1e-9)


def find_cluster(run: FinishedRun, cluster_id: str) -> Cluster:
    """Return one cluster of a run.

    Raises:
        ConfigError: if the run has no cluster of this id.

    Cost: a pass over the ids of `clusters`, `members`, `documents`, `keep` and `pairs`.
    """
    wanted = pa.table({"id": pa.array([cluster_id], pa.string())})
    found = run.sql(ONE, wanted=wanted).to_pylist()
    if not found:
        raise ConfigError(f"cluster {cluster_id!r}: there is none in {run.path}")
    return Cluster(
        **found[0],
        members=table_of("members", run.sql(MEMBERS, wanted=wanted)),
        pairs=table_of("pairs", run.sql(PAIRS, wanted=wanted)),
    )
