"""One document of a run: its facts, whether it is kept, and why."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.api import html
from nddup.api.run_table import RunTable, table_of
from nddup.errors import ConfigError
from nddup.opened.finished_run import FinishedRun

ONE = """
    SELECT d.doc_id, d.url, d.source, d.record, d.n_tokens, d.n_features, d.group, d.sketch, k.kept, k.duplicate_of,
           k.reason
    FROM documents AS d JOIN wanted AS w ON d.doc_id = w.id LEFT JOIN keep AS k ON d.doc_id = k.doc_id
"""
PAIRS = """
    SELECT other, overlap, resemblance, star
    FROM (SELECT p.doc_b AS other, p.overlap, p.resemblance, p.star FROM pairs AS p JOIN wanted AS w ON p.doc_a = w.id
          UNION ALL
          SELECT p.doc_a AS other, p.overlap, p.resemblance, p.star FROM pairs AS p JOIN wanted AS w ON p.doc_b = w.id
         ) AS near
    ORDER BY resemblance DESC, other
"""
CLUSTERS = """
    SELECT c.cluster_id, c.size, c.support, c.coverage, m.representative
    FROM clusters AS c JOIN members AS m ON c.cluster_id = m.cluster_id JOIN wanted AS w ON m.doc_id = w.id
    ORDER BY c.size DESC, c.cluster_id
"""
REMOVED_FOR = "SELECT count(*) AS n FROM keep AS k JOIN wanted AS w ON k.duplicate_of = w.id"
REJECTED = "SELECT r.reason, r.detail FROM rejects AS r JOIN wanted AS w ON r.doc_id = w.id"

REMOVED = {"exact": "its content is that of {}", "equal": "its sketch is that of {}", "near": "near-duplicate of {}"}


@dataclass(frozen=True)
class Document:
    """A document.

    Attributes:
        doc_id: its id.
        url: its address, or None.
        source: the file that it was read from.
        record: its ordinal in that file, from 1.
        n_tokens: number of tokens of its text.
        n_features: number of its distinct shingles or words.
        group: smallest id among the documents with the same sketch.
        sketch: the ids of its sketch, (n,) uint64, ascending.
        kept: whether it is kept.
        duplicate_of: the kept document in favour of which it is removed; None if it is kept.
        reason: `exact`, `equal` or `near`; None if it is kept.
        why: whether it is kept or removed and why, in a sentence.
        pairs: its near-duplicates, nearest first: other, overlap, resemblance, star.
        clusters: the clusters that contain it, largest first: cluster_id, size, support, coverage, representative.
    """

    doc_id: str
    url: str | None
    source: str
    record: int
    n_tokens: int
    n_features: int
    group: str
    sketch: NDArray[np.uint64]
    kept: bool
    duplicate_of: str | None
    reason: str | None
    why: str
    pairs: RunTable
    clusters: RunTable

    def __repr__(self) -> str:
        """Return the id and the outcome."""
        return f"<document {self.doc_id}: {self.why}>"

    def _repr_html_(self) -> str:
        """Show the outcome, facts, near-duplicates and clusters in a notebook."""
        values = {
            "url": self.url, "file": f"{self.source}#{self.record}", "tokens": self.n_tokens,
            "features": self.n_features, "ids in the sketch": len(self.sketch),
        }  # fmt: skip
        tables = [table._repr_html_() for table in (self.pairs, self.clusters) if len(table)]
        return html.facts(f"document {self.doc_id}", values, sentence=self.why) + "".join(tables)


def find_document(run: FinishedRun, doc_id: str, *, policy: str) -> Document:
    """Return one document of a run.

    Args:
        run: the run.
        doc_id: the document's id.
        policy: the run's `keep.policy`, for the sentence `why`.

    Raises:
        ConfigError: if the run has no such document; the message says whether a record of this id was rejected.

    Cost: a pass over the ids of `documents`, `pairs`, `members`, `clusters` and `keep`.
    """
    wanted = pa.table({"id": pa.array([doc_id], pa.string())})
    found = run.sql(ONE, wanted=wanted).to_pylist()
    if not found:
        rejects = run.sql(REJECTED, wanted=wanted).to_pylist()
        said = f"; a record of this id was rejected: {rejects[0]['reason']} ({rejects[0]['detail']})" if rejects else ""
        raise ConfigError(f"document {doc_id!r}: there is none in {run.path}{said}")

    row = found[0]
    pairs = run.sql(PAIRS, wanted=wanted)
    removed = int(run.sql(REMOVED_FOR, wanted=wanted)["n"][0].as_py())
    sketch = np.array(row.pop("sketch") or [], np.int64).view(np.uint64)
    row["record"], row["kept"] = int(row["record"]), bool(row["kept"])
    return Document(
        **row,
        sketch=sketch,
        why=_tell(row["duplicate_of"], row["reason"], pairs, removed=removed, policy=policy),
        pairs=table_of("near-duplicates", pairs),
        clusters=table_of("clusters", run.sql(CLUSTERS, wanted=wanted)),
    )


def _tell(kept_one: str | None, reason: str | None, pairs: pa.Table, *, removed: int, policy: str) -> str:
    """Say in a sentence whether a document is kept or removed, and why."""
    if kept_one is not None:
        nearest = dict(zip(pairs["other"].to_pylist(), pairs["resemblance"].to_pylist(), strict=True))
        resemblance = nearest.get(kept_one)
        near = f", resemblance {resemblance:.3f}" if reason == "near" and resemblance is not None else ""
        return f"removed: {REMOVED[reason or 'near'].format(kept_one)}, which is kept{near}"
    if not len(pairs):
        return "kept: it has no near-duplicate"
    stands = f"; {removed:,} removed in favour of it" if removed else ""
    return f"kept: no near-duplicate that policy `{policy}` prefers to it is kept{stands}"
