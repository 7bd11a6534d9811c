"""Proof of the names of clusters and families, of `duplicates.txt`, of components and of `false_components`.

members                --recount_members-->   recounted_members   each cluster's digest, size and first ids
clusters               --WRONG_NAMES-->       violations   clusters that differ from their members
duplicates.txt         --read_lines-->        lines        each line's digest, size and support
clusters, lines        --WRONG_LINES-->       violations   lines without a cluster, clusters without a line
placed                 --STRAYING-->          violations   nodes of two components, wrong names of components
placed (driver)        --split_components-->  problems     components that clusters do not connect
pairs (driver)         --misnamed_parts-->    problems     nodes whose component is not what pairs connect
placed, folded, docs   --WRONG_FALSE-->       violations   wrong counts of invented pairs
placed, keeping        --inexact-->           violations   bounds of them said to be exact
names, keep            --WRONG_FAMILIES-->    violations   families without a name, names of no family
"""

import hashlib
import re
from collections.abc import Iterator
from functools import reduce
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.checking.prove_pairs import Violations
from nddup.tables import working
from nddup.verifying.cluster_proofs import label_parts

Batches = Iterator[pa.RecordBatch]

RECOUNTED_MEMBERS = working(
    "recounted_members",
    "cluster_id string, digest string, n long, listed array<string>",
    "A cluster recounted from its members: the digest of their ids in order, their number, the first of them.",
)
LINES = working("lines", "digest string, n long, support string", "The content of a line of `duplicates.txt`.")
LINES_PER_BATCH = 10_000
"""Lines whose digests are returned together; the text is read in parts, since a line may not fit into memory."""

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


WRONG_FAMILIES = (
    Violations(
        """
        SELECT * FROM (
            SELECT coalesce(n.name, f.head) AS name, n.documents, coalesce(f.n, 0) AS due,
                   CASE WHEN n.name IS NULL THEN 'nameless' WHEN n.doc_id IS NOT NULL AND f.head IS NULL THEN 'strange'
                        WHEN n.documents IS DISTINCT FROM coalesce(f.n, 0) THEN 'documents' END AS what
            FROM names AS n FULL JOIN (
                SELECT coalesce(duplicate_of, doc_id) AS head, count(*) AS n FROM keep
                WHERE kept OR duplicate_of IS NOT NULL GROUP BY coalesce(duplicate_of, doc_id)
            ) AS f ON n.doc_id = f.head
        ) AS compared WHERE what IS NOT NULL
        """,
        {
            "nameless": "{name}: kept, and its family has no name",
            "strange": "{name}: the name of a document that is not kept",
            "documents": "{name}: a family of {documents} documents, counted {due}",
        },
    ),
    Violations("SELECT name FROM names GROUP BY name HAVING count(*) > 1", "{name}: the name of two families"),
    Violations(
        "SELECT doc_id FROM names WHERE doc_id IS NOT NULL GROUP BY doc_id HAVING count(*) > 1",
        "{doc_id}: its family has two names",
    ),
)
"""Names of `names` that are not of one family each. Whether it is the earlier run's, only that run can tell."""


class _Cluster:
    """A cluster whose rows are being read: its digest, its size, its first ids."""

    def __init__(self, cluster_id: str | None) -> None:
        self.cluster_id = cluster_id
        self.digest = hashlib.sha256()
        self.n = 0
        self.listed: list[str | None] = []


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

WRONG_FALSE = Violations(
    """
    SELECT component, f.size, d.due_size, f.pairs, d.due_pairs, f.invented, d.due
    FROM false_components AS f
    FULL JOIN (
        SELECT component, due_size, due_pairs, shiftright(due_size * (due_size - 1), 1) - due_pairs AS due
        FROM (SELECT component, CAST(sum(n) AS BIGINT) AS due_size
              FROM (SELECT DISTINCT component, node, n FROM placed WHERE node IS NOT NULL) AS k
              GROUP BY component) AS sizes
        JOIN (
            SELECT a.component, CAST(sum(CASE WHEN e.node_a = e.node_b THEN shiftright(a.n * (a.n - 1), 1)
                                              ELSE a.n * b.n END) AS BIGINT) AS due_pairs
            FROM folded AS e
            JOIN (SELECT DISTINCT component, node, n FROM placed WHERE node IS NOT NULL) AS a ON e.node_a = a.node
            JOIN (SELECT DISTINCT node, n FROM placed WHERE node IS NOT NULL) AS b ON e.node_b = b.node
            GROUP BY a.component
        ) AS edges USING (component)
        WHERE shiftright(due_size * (due_size - 1), 1) > due_pairs
    ) AS d USING (component)
    WHERE f.size IS DISTINCT FROM d.due_size OR f.pairs IS DISTINCT FROM d.due_pairs
          OR f.invented IS DISTINCT FROM d.due
    """,
    "{component}: size {size} due {due_size} pairs {pairs} due {due_pairs} invented {invented} due {due}",
)
"""Rows of `false_components` that differ from the documents and pairs of their component, and missing rows.

The invented pairs of a component are all pairs of its documents except near-duplicates; only components that have some
are in the table. A pair of nodes stands for all pairs between their documents, a node with itself for the pairs among
its documents."""


STRAYING = (
    Violations(
        """
        SELECT node, count(DISTINCT component) AS n FROM placed WHERE node IS NOT NULL
        GROUP BY node HAVING count(DISTINCT component) <> 1
        """,
        "{node}: in {n} components",
    ),
    Violations(
        """
        SELECT component, min(node) AS low FROM placed WHERE node IS NOT NULL
        GROUP BY component HAVING component IS DISTINCT FROM min(node)
        """,
        "{component}: smallest id of the component is {low}",
    ),
)
"""Nodes that are in clusters of two components, and components not named by the smallest of their nodes. A node is
named by the smallest id of its documents."""

COUNT_PLACED = "SELECT count(*) AS n FROM placed WHERE node IS NOT NULL"

COUNT_ENDS = "SELECT count(*) AS n FROM folded WHERE node_a <> node_b"

ENDS_OF_PAIRS = "SELECT node_a, node_b FROM folded WHERE node_a <> node_b"

SAID = "SELECT DISTINCT node, component FROM placed WHERE node IS NOT NULL"


def inexact(*, is_exact: bool) -> Violations:
    """Return the rows of `false_components` whose `exact` is wrong: that of a component given by leaders is false.

    Args:
        is_exact: whether every near-duplicate pair outside these components is found.
    """
    text = f"""
        SELECT f.component, f.exact, {"l.component IS NULL" if is_exact else "false"} AS due
        FROM false_components AS f LEFT JOIN (
            SELECT DISTINCT p.component FROM placed AS p JOIN keeping AS k ON p.node = k.node WHERE k.leader
        ) AS l ON f.component = l.component
        WHERE f.exact IS DISTINCT FROM {"(l.component IS NULL)" if is_exact else "false"}
    """  # noqa: S608 - the words above
    return Violations(text, "{component}: exact is {exact}, due {due}")


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


def read_lines(parts: Iterator[str]) -> Batches:
    """Make LINES of a text that comes in parts."""
    lines = judge_lines(parts)
    kinds = [field.type for field in LINES.arrow]
    while chunk := list(islice(lines, LINES_PER_BATCH)):
        columns = zip(*chunk, strict=True)
        yield LINES.batch([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)])


def judge_lines(parts: Iterator[str]) -> Iterator[tuple[str, int, str]]:
    r"""Yield for each line the digest of its ids, their number, and the last field, which is the support.

    A line may be longer than a part, so no line need be in memory whole.

    Example:
        >>> [line[1:] for line in judge_lines(iter(["a\tb\t", "7\nc\t9\n"]))]
        [(2, '7'), (1, '9')]
    """
    digest, n, rest = hashlib.sha256(), 0, ""
    for part in parts:
        *ended, rest = (rest + part).split("\n")
        for line in ended:
            ids, _, last = line.rpartition("\t")
            n += _add_ids(digest, ids) if ids or line != last else 0
            yield digest.hexdigest()[:16], n, last
            digest, n = hashlib.sha256(), 0

        # The complete ids of an unfinished line are counted already.
        ids, tab, rest = rest.rpartition("\t")
        n += _add_ids(digest, ids) if tab else 0
    if rest or n:
        yield digest.hexdigest()[:16], n, rest


def _add_ids(digest: "hashlib._Hash", ids: str) -> int:
    """Add the ids between tabs to a digest, each followed by a zero byte; return their number."""
    if "\\" in ids or "\0" in ids or "\r" in ids:
        digest.update("".join([f"{_read_id(spelled)}\0" for spelled in ids.split("\t")]).encode())
    else:
        digest.update((ids.replace("\t", "\0") + "\0").encode())
    return ids.count("\t") + 1


def _read_id(spelled: str) -> str:
    """Return the id that is escaped so; where no id is, a text that is not an id."""
    doc_id = ESCAPED.sub(lambda match: UNESCAPED.get(match[0], match[0]), spelled)
    again = reduce(lambda one, pair: one.replace(*pair), ESCAPES, doc_id)
    return doc_id if again == spelled else f"\0{spelled}"


def some_components(parts: int) -> str:
    """Return the SELECT of all rows of about one component in `parts`, chosen by the hash of its name.

    Columns: cluster_id, node, component.
    """
    bound = f"{min((1 << 32) // parts, (1 << 32) - 1):08x}"
    chosen = "" if parts == 1 else f"AND substr(sha2(component, 256), 1, 8) < '{bound}'"
    return f"SELECT cluster_id, node, component FROM placed WHERE node IS NOT NULL {chosen}"  # noqa: S608 - digits


def split_components(rows: pa.Table) -> list[str]:
    """Find components whose nodes are not connected through clusters.

    Each cluster is a set of near-duplicates, and each pair of near-duplicates is in a cluster, so documents are
    connected through clusters exactly when they are connected through pairs.

    Returns:
        A problem for each component with more than one connected part.
    """
    clusters, nodes, components = (_number(rows[name]) for name in ("cluster_id", "node", "component"))
    if not len(rows):
        return []

    # A graph between clusters and their nodes; the nodes are numbered after the clusters.
    first = int(clusters.max()) + 1
    parts = label_parts(clusters, nodes + first, first + int(nodes.max()) + 1)[clusters]

    both = np.unique(np.stack([components, parts]), axis=1)[0]
    torn, counts = np.unique(both, return_counts=True)
    names = pc.unique(rows["component"]).to_pylist()
    counted = zip(torn.tolist(), counts.tolist(), strict=True)
    return sorted(f"{names[place]}: falls into {count} parts" for place, count in counted if count > 1)


def misnamed_parts(pairs: pa.Table, stored: pa.Table) -> list[str]:
    """Find nodes whose component is not the smallest node of their connected part.

    Args:
        pairs: node_a, node_b of each pair of nodes.
        stored: node, component of nodes in clusters; a node without a pair is a part by itself.

    Returns:
        A problem for each such node.
    """
    columns = [pairs["node_a"], pairs["node_b"], stored["node"]]
    names = pc.unique(pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())).sort()
    first, second, nodes = (pc.index_in(column, names).to_numpy().astype(np.int64) for column in columns)

    # Names ascend, so the smallest node of a part is its smallest name.
    due = names.take(pa.array(label_parts(first, second, len(names))[nodes]))
    rows = zip(stored["node"].to_pylist(), stored["component"].to_pylist(), due.to_pylist(), strict=True)
    return [f"{node}: component {has}, smallest connected id {low}" for node, has, low in rows if has != low]


def _number(column: pa.ChunkedArray) -> np.ndarray:
    """Number the distinct values in order of first appearance; return the number of each value, (n,) int64."""
    whole = column.combine_chunks() if column.num_chunks else pa.array([], column.type)
    encoded = whole.dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
