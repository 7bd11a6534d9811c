"""Proof of the names of clusters and of `duplicates.txt`, from members that are read in order as a stream.

    members           --recount_members-->   recounted_members   each cluster's digest, size and first ids
    clusters          --WRONG_NAMES-->       violations          clusters that differ from their members
    duplicates.txt    --read_lines-->        lines               each line's digest, size and support
    clusters, lines   --WRONG_LINES-->       violations          lines without a cluster, clusters without a line

The text is read in parts, not in lines: a line may not fit into memory.
"""

import hashlib
import re
from collections.abc import Iterator
from functools import partial, reduce
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.checking.violations import Violations
from nddup.table_types import working

Batches = Iterator[pa.RecordBatch]

RECOUNTED_MEMBERS = working(
    "recounted_members",
    "cluster_id string, digest string, n long, listed array<string>",
    "A cluster recounted from its members: the digest of their ids in order, their number, the first of them.",
)
LINES = working("lines", "digest string, n long, support string", "The content of a line of `duplicates.txt`.")
LINES_PER_BATCH = 10_000

ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"), *(
    (chr(code), f"\\x{code:02x}") for code in (*range(32), *range(127, 160)) if code not in {9, 10, 13}
), *(
    (chr(code), f"\\u{code:04x}")
    for code in (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
))  # fmt: skip
"""The escapes of `duplicates.txt`: control characters, and those that end lines or set the direction of writing."""

UNESCAPED = {spelled: character for character, spelled in ESCAPES}
ESCAPED = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|.)", re.DOTALL)

IN_ORDER = ("cluster_id", "doc_id")
"""The order in which `recount_members` needs the rows of `ALL_MEMBERS`."""

ALL_MEMBERS = "SELECT cluster_id, doc_id FROM members"


class _Cluster:
    """A cluster whose rows are being read: its digest, its size, its first ids."""

    def __init__(self, cluster_id: str | None) -> None:
        self.cluster_id = cluster_id
        self.digest = hashlib.sha256()
        self.n = 0
        self.listed: list[str | None] = []


def recounter_of_members(max_listed: int) -> partial[Batches]:
    """Bind `recount_members` to `clusters.max_listed` of the run."""
    return partial(recount_members, max_listed=max_listed)


def recount_members(batches: Batches, *, max_listed: int) -> Batches:
    """Make RECOUNTED_MEMBERS of rows (cluster_id, doc_id) in order, as a stream; a cluster may span batches.

    Args:
        batches: the rows, sorted.
        max_listed: most ids of a cluster that are listed.
    """
    last: _Cluster | None = None
    for batch in batches:
        names, ids = batch.column("cluster_id").to_pylist(), batch.column("doc_id").to_pylist()
        done: list[_Cluster] = []
        for cluster_id, low, high in _runs(batch.column("cluster_id"), names):
            if last is None or last.cluster_id != cluster_id:
                done += [] if last is None else [last]
                last = _Cluster(cluster_id)
            mine = ids[low:high]
            last.digest.update("".join([f"{doc_id}\0" for doc_id in mine]).encode())
            last.listed += mine[: max(0, max_listed - last.n)]
            last.n += len(mine)
        yield _told(done)
    yield _told([] if last is None else [last])


def _told(clusters: list[_Cluster]) -> pa.RecordBatch:
    """Make RECOUNTED_MEMBERS of clusters whose rows have all been read."""
    rows = [(one.cluster_id, one.digest.hexdigest()[:16], one.n, one.listed) for one in clusters]
    columns = zip(*rows, strict=True) if rows else [[]] * len(RECOUNTED_MEMBERS.names)
    kinds = [field.type for field in RECOUNTED_MEMBERS.arrow]
    return RECOUNTED_MEMBERS.batch([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)])


def _runs(column: pa.Array, names: list[str | None]) -> Iterator[tuple[str | None, int, int]]:
    """Yield (value, first row, row after the last) for each run of equal values."""
    codes = pc.rank(column, tiebreaker="dense").to_numpy(zero_copy_only=False)
    starts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist()] if len(names) else []
    for low, high in zip(starts, [*starts[1:], len(names)], strict=True):
        yield names[low], low, high


WRONG_NAMES = (
    Violations(
        """
        SELECT cluster_id, digest FROM named WHERE cluster_id IS DISTINCT FROM digest
        """,
        "{cluster_id}: id should be {digest}",
    ),
    Violations(
        "SELECT cluster_id, n FROM named WHERE size IS DISTINCT FROM n",
        "{cluster_id}: size is not that of its members, {n}",
    ),
    Violations(
        "SELECT cluster_id FROM named WHERE members IS DISTINCT FROM listed",
        "{cluster_id}: members are not the first ids, sorted",
    ),
    Violations("SELECT cluster_id FROM named WHERE n < 2", "{cluster_id}: fewer than two members"),
    Violations(
        "SELECT cluster_id, count(*) AS n FROM clusters GROUP BY cluster_id HAVING count(*) > 1",
        "{cluster_id}: {n} clusters of this id",
    ),
)
"""Clusters whose id, size or listed ids differ from their members, with fewer than two members, or that occur twice."""

NAMED = """
    SELECT c.cluster_id, c.size, c.members, r.digest, coalesce(r.n, 0) AS n, r.listed
    FROM clusters AS c LEFT JOIN recounted_members AS r ON c.cluster_id = r.cluster_id
"""
"""The clusters, joined with RECOUNTED_MEMBERS."""

WRONG_LINES = Violations(
    """
    SELECT digest, n, support, CASE WHEN sum(times) > 0 THEN 'missing' ELSE 'strange' END AS what
    FROM (SELECT cluster_id AS digest, CAST(size AS BIGINT) AS n, CAST(support AS STRING) AS support, 1 AS times
          FROM clusters
          UNION ALL SELECT digest, n, support, -1 AS times FROM lines) AS counted
    GROUP BY digest, n, support HAVING sum(times) <> 0
    """,
    {
        "missing": "{digest}, {n} ids, support {support}: is missing",
        "strange": "{digest}, {n} ids, support {support}: is no cluster",
    },
)
"""Lines of `duplicates.txt` that do not match the clusters one to one. A line is identified by its length, its support,
and the digest of its ids in their order, which is the name of its cluster."""


def read_lines(parts: Iterator[str]) -> Batches:
    """Make LINES of a text that comes in parts."""
    lines = judge_lines(parts)
    kinds = [field.type for field in LINES.arrow]
    while some := list(islice(lines, LINES_PER_BATCH)):
        columns = zip(*some, strict=True)
        yield LINES.batch([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)])


def judge_lines(parts: Iterator[str]) -> Iterator[tuple[str, int, str]]:
    r"""Yield for each line the digest of its ids, their number, and the last field, which is the support.

    A line may be longer than a part, so no line need be in memory whole.

    Args:
        parts: of the text, cut anywhere.

    Example:
        >>> [line[1:] for line in judge_lines(iter(["a\tb\t", "7\nc\t9\n"]))]
        [(2, '7'), (1, '9')]
    """
    digest, n, held = hashlib.sha256(), 0, ""
    for part in parts:
        *ended, held = (held + part).split("\n")
        for line in ended:
            ids, _, last = line.rpartition("\t")
            n += _add_ids(digest, ids) if ids or line != last else 0
            yield digest.hexdigest()[:16], n, last
            digest, n = hashlib.sha256(), 0

        # The complete ids of an unfinished line are counted already.
        ids, tab, held = held.rpartition("\t")
        n += _add_ids(digest, ids) if tab else 0
    if held or n:
        yield digest.hexdigest()[:16], n, held


def _add_ids(digest: "hashlib._Hash", ids: str) -> int:
    """Add the ids between tabs to a digest, each followed by a zero byte; return their number."""
    if "\\" in ids or "\0" in ids or "\r" in ids:
        digest.update("".join([f"{_read_id(spelled)}\0" for spelled in ids.split("\t")]).encode())
    else:
        digest.update((ids.replace("\t", "\0") + "\0").encode())
    return ids.count("\t") + 1


def _read_id(spelled: str) -> str:
    """Return the id that is escaped so; where no id is, a text that is not an id."""
    doc_id = ESCAPED.sub(lambda found: UNESCAPED.get(found[0], found[0]), spelled)
    again = reduce(lambda one, pair: one.replace(*pair), ESCAPES, doc_id)
    return doc_id if again == spelled else f"\0{spelled}"
