"""Proofs that need no comparison of sketches: accounting, equal sketches, members, and the order of the policy.

    documents      --mark-->         marked     each document, the digest of its sketch, and whether the sketch is sound
    marked         --NODES-->        nodes      the distinct sketches, named by the smallest id of their documents
    marked, nodes  --name_nodes-->   docs       each document with its node
    documents, docs --SKETCHES-->    sketches   the distinct sketches themselves
    a keep policy  --rank_by-->      SQL        the rank of a document, by the definition and the engine's own sort

`group` of the run is not used before it is proved.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from nddup.checking.prove_pairs import Violations
from nddup.tables import working
from nddup.verifying.definitions import Form, Rows, damaged_sketches, level_due, sketch_rows

MOMENT = (
    "CASE WHEN d.date IS NULL THEN 4294967295"
    " ELSE greatest(0, least(4294967294, unix_timestamp(try_cast(d.date AS TIMESTAMP)))) END"
)
"""SQL for the second of a date since 1970, below 2^32 - 1, which stands for none."""

_ORDERS = {
    "longest": f"-CAST(d.n_tokens AS BIGINT) * 4294967296 + {MOMENT}",
    "first-id": "0",
    "first": "d.doc_key",
    "shortest-url": f"CAST(coalesce(length(d.url), 2147483647) AS BIGINT) * 4294967296 + {MOMENT}",
    "newest": f"coalesce(4294967294 - nullif({MOMENT}, 4294967295), 4294967295) * 2147483648 - d.n_tokens",
    "oldest": f"{MOMENT} * 2147483648 - d.n_tokens",
}
RANKS = {
    word: f"CASE WHEN d.record_type = 'revisit' THEN 9223372036854775807 ELSE {order} END"
    for word, order in _ORDERS.items()
}
"""SQL for the rank of a document under each named policy: of equals the older capture first, and revisits last."""

DERIVED = {"length": "d.n_tokens", "url_length": "length(d.url)", "id": "d.doc_id", "first": "d.doc_key"}
"""SQL for the policy columns that are not read from the record."""

IS_NUMBER = "regexp_like({0}, '^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{{1,6}})?$')"

Batches = Iterator[pa.RecordBatch]

HEAVY = 100_000
"""Minimum number of documents of a sketch whose node is broadcast: a shuffle would send all of them to one task."""

MARKED = working(
    "marked",
    "doc_id string, doc_key long, said string, content binary, rank long, same binary, size int, level long,"
    " weight long, is_damaged boolean, class int",
    "A document: `said` is its `group`, `same` is equal for equal sketches only, `weight` and `rank` order documents by"
    " the keep policy, the smaller first. `class`: -1 and 1 for a document that `keep.force` keeps or removes, else 0.",
)

FORCED = working("forced", "doc_id string, class int", "A document that `keep.force` keeps (-1) or removes (1).")

FORCED_WEIGHT = 1 << 60
"""Lies between the weights of documents that `keep.force` keeps, of others, and of those that it removes."""

NODES = "SELECT same, min(doc_id) AS node, count(*) AS n FROM marked GROUP BY same"
"""The distinct sketches: same binary, node string, n int64 (their documents)."""

SKETCHES = """
    SELECT k.node, k.n, k.size, k.level, d.sketch
    FROM documents AS d
    JOIN (SELECT * FROM docs WHERE doc_id = node) AS k ON d.doc_id = k.doc_id AND d.doc_key = k.doc_key
"""
"""The distinct sketches, including empty ones: node, n, size, level, sketch."""

MISNUMBERED = Violations(
    """
    SELECT * FROM (
        SELECT source, count(*) AS n, count(DISTINCT record) AS ordinals, min(record) AS low, max(record) AS high
        FROM (SELECT source, record FROM documents UNION ALL SELECT source, record FROM rejects) AS records
        GROUP BY source
    ) AS counted WHERE (low = 1 AND high = n AND ordinals = n) IS NOT TRUE
    """,
    "{source}: {n} records, {ordinals} ordinals, {low} to {high}",
)
"""Sources whose record ordinals, of documents and rejects together, are not exactly 1 to n."""

REPEATED = Violations(
    "SELECT doc_id, count(*) AS n FROM documents GROUP BY doc_id HAVING count(*) > 1 OR doc_id IS NULL",
    "{doc_id}: the id of {n} documents",
)
"""Ids that are null, or belong to more than one document."""

ORPHANED = Violations(
    """
    WITH named AS (
        SELECT doc_id AS parent, source, record AS before FROM documents
        UNION ALL SELECT doc_id, source, record FROM rejects
    )
    SELECT d.doc_id AS doc_id, d.parent AS parent FROM documents AS d
    ANTI JOIN named AS n ON n.parent = d.parent AND n.source = d.source AND n.before < d.record
    WHERE d.parent IS NOT NULL
    """,
    "{doc_id}: no record before it in its file has the id of its parent, {parent}",
)
"""Documents whose parent is neither a document nor a reject that comes before them in their file."""

MISPLACED = Violations(
    """
    SELECT source, doc_key, before FROM (
        SELECT source, doc_key, lag(doc_key) OVER (PARTITION BY source ORDER BY record) AS before FROM documents
        UNION ALL
        SELECT source, low AS doc_key, lag(high) OVER (ORDER BY source) AS before
        FROM (SELECT source, min(doc_key) AS low, max(doc_key) AS high FROM documents GROUP BY source) AS files
    ) AS steps WHERE doc_key IS NULL OR doc_key <= before
    """,
    "{source}: doc_key {doc_key} after {before}",
)
"""Documents whose doc_key does not increase with (source, record), within a source or from one source to the next."""

REPEATED_KEYS = Violations(
    "SELECT doc_key, count(*) AS n FROM documents GROUP BY doc_key HAVING count(*) > 1 OR doc_key IS NULL",
    "doc_key {doc_key}: {n} documents",
)
"""Keys of documents that are null, or belong to more than one.

That is all a repository promises of them: its sources come in several batches, and documents leave it."""

UNACCOUNTED = Violations(
    """
    SELECT doc_id, CAST(sum(is_document) AS BIGINT) AS documents, CAST(sum(in_keep) AS BIGINT) AS kept
    FROM (SELECT doc_id, 1 AS is_document, 0 AS in_keep FROM documents
          UNION ALL SELECT doc_id, 0 AS is_document, 1 AS in_keep FROM keep) AS rows_of_both
    GROUP BY doc_id HAVING sum(is_document) <> 1 OR sum(in_keep) <> 1
    """,
    "{doc_id}: {documents} documents, {kept} rows of keep",
)
"""Documents that are not in `keep` exactly once, and ids of `keep` that are not those of documents."""

DAMAGED = Violations(
    "SELECT doc_id FROM docs WHERE is_damaged", "{doc_id}: not the ascending ids that its n_features require"
)
"""Documents whose sketch does not have the form that the kind requires, see `verifying.definitions`."""

WRONG_GROUPS = Violations(
    "SELECT doc_id, said, node FROM docs WHERE said IS DISTINCT FROM node", "{doc_id}: group {said}, recounted {node}"
)
"""Documents whose group is not the smallest id of the documents with the same sketch."""

WRONG_MEMBERS = (
    Violations(
        """
        SELECT cluster_id, c.size, m.n
        FROM clusters AS c FULL JOIN (SELECT cluster_id, count(*) AS n FROM members GROUP BY cluster_id) AS m
        USING (cluster_id)
        WHERE c.size IS DISTINCT FROM m.n
        """,
        "{cluster_id}: size {size}, {n} rows in members",
    ),
    Violations(
        "SELECT cluster_id, doc_id, count(*) AS n FROM members GROUP BY cluster_id, doc_id HAVING count(*) > 1",
        "{cluster_id} {doc_id}: {n} times in members",
    ),
    Violations(
        """
        SELECT cluster_id, doc_id FROM (SELECT cluster_id, explode(members) AS doc_id FROM clusters) AS listed
        ANTI JOIN members USING (cluster_id, doc_id)
        """,
        "{cluster_id} {doc_id}: listed, not in members",
    ),
)
"""Clusters whose rows in `members` differ in number from their size, are repeated, or lack an id the cluster lists."""

UNREPRESENTED = Violations(
    """
    SELECT cluster_id, count(CASE WHEN representative THEN 1 END) AS n FROM members
    GROUP BY cluster_id HAVING count(CASE WHEN representative THEN 1 END) <> 1
    """,
    "{cluster_id}: {n} representatives",
)
"""Clusters without exactly one representative."""

WRONG_REPRESENTATIVES = Violations(
    """
    SELECT * FROM (
        SELECT m.cluster_id, count(CASE WHEN m.representative THEN 1 END) AS n,
               min(CASE WHEN m.representative THEN m.doc_id END) AS chosen,
               min_by(d.doc_id, (coalesce(d.weight, 4611686018427387904), d.rank, d.doc_id)) AS preferred
        FROM members AS m LEFT JOIN docs AS d ON m.doc_id = d.doc_id GROUP BY m.cluster_id
    ) AS found WHERE (n = 1 AND chosen = preferred) IS NOT TRUE
    """,
    "{cluster_id}: {n} representatives, {chosen}; first is {preferred}",
)
"""Clusters without exactly one representative, the first of their members by policy: in a partition the kept one."""


def rank_by(policy: str | Sequence[str], prefer: Sequence[str]) -> str:
    """Return SQL for the rank of a document by preferred sources, then by a policy; ties have equal ranks.

    Args:
        policy: a word, or columns, each an optional sign, a name and an optional type, or a name and listed values.
        prefer: globs of sources, without characters that are special in SQL.
    """
    cases = " ".join(f"WHEN {_matches(glob)} THEN {place}" for place, glob in enumerate(prefer))
    terms = ["CASE WHEN d.record_type = 'revisit' THEN 1 ELSE 0 END"]
    terms += [f"CASE {cases} ELSE {len(prefer)} END"] if prefer else []
    if isinstance(policy, str):
        terms.append(RANKS[policy])
    else:
        places: dict[str, int] = {}
        for column in policy:
            if "=" in column:
                name, _, listed = column.partition("=")
                place = places.setdefault(name.strip(), len(places) + 1)
                terms += _listed_terms(f"nullif(trim(element_at(d.policy, {place})), '')", listed)
                continue
            name, _, kind = column.strip().removeprefix("-").strip().rpartition(":")
            name, kind = (name, kind) if kind in ("number", "text") and name else (column.strip().removeprefix("-"), "")
            name = name.strip()
            place = 0 if name in DERIVED else places.setdefault(name, len(places) + 1)
            value = DERIVED.get(name) or f"element_at(d.policy, {place})"
            terms += _terms(f"nullif(trim(CAST({value} AS STRING)), '')", kind, is_falling=column.strip()[0] == "-")
        terms.append(MOMENT)
    return f"rank() OVER (ORDER BY {', '.join(terms)})"


def _listed_terms(value: str, listed: str) -> list[str]:
    """Return the sort term of listed values, as digests: no value is written into a query."""
    digests = [hashlib.sha256(one.strip().encode()).hexdigest() for one in listed.split(",")]
    cases = " ".join(f"WHEN sha2({value}, 256) = '{digest}' THEN {place}" for place, digest in enumerate(digests))
    return [f"CASE WHEN {value} IS NULL THEN {len(digests) + 1} {cases} ELSE {len(digests)} END"]


def _terms(value: str, kind: str, *, is_falling: bool) -> list[str]:
    """Return a column's sort terms: numbers, then texts, both in its direction, then missing or mistyped values."""
    is_number = "false" if kind == "text" else IS_NUMBER.format(value)
    place = f"CASE WHEN {value} IS NULL THEN 3 WHEN {is_number} THEN 1 ELSE {3 if kind == 'number' else 2} END"
    number, text = f"CASE WHEN {is_number} THEN {value} END", f"CASE WHEN NOT {is_number} THEN {value} END"
    way = "DESC" if is_falling else "ASC"
    ordered = [f"try_cast({number} AS DOUBLE)", f"try_cast({number} AS DECIMAL(38, 9))"]
    return [place, *(f"{one} {way}" for one in (ordered if kind == "number" else [*ordered, text]))]


def _matches(glob: str) -> str:
    """Return the SQL condition that a source matches a glob: `*` any characters, `?` one, `[ab]` one of these."""
    signs = {"*": ".*", "?": "."}
    spelled: list[str] = []
    is_inside = False
    for sign in glob:
        is_inside = sign == "[" or (is_inside and sign != "]")
        if is_inside or sign == "]":
            spelled.append("^" if sign == "!" and spelled[-1] == "[" else sign)
        else:
            spelled.append(signs.get(sign) or (f"[{sign}]" if sign in ".+(){}|$" else sign))
    return f"regexp_like(d.source, '^(?s:{''.join(spelled)})$')"


def list_documents(
    policy: str | Sequence[str], prefer: Sequence[str] = (), *, by_text: bool = False, is_forced: bool = False
) -> str:
    """Return the SELECT of the rows that `mark` reads.

    Args:
        policy: `keep.policy`, a word or columns.
        by_text: whether texts confirm pairs: then `sequence` is equal for equal texts only; else it is null.
        is_forced: whether there is a table FORCED.
    """
    rank = RANKS[policy] if isinstance(policy, str) and not prefer else rank_by(policy, prefer)
    sequence = "d.token_fingerprint" if by_text else "CAST(NULL AS BINARY)"
    return f"""
        SELECT d.doc_id, d.doc_key, d.group AS said, d.content_fingerprint AS content,
               CAST({rank} AS BIGINT) AS rank, coalesce(d.n_features, -1) AS n_features, d.sketch,
               {sequence} AS sequence, coalesce(d.n_tokens, -1) AS n_tokens,
               {"coalesce(f.class, 0)" if is_forced else "0"} AS class
        FROM documents AS d {"LEFT JOIN forced AS f ON d.doc_id = f.doc_id" if is_forced else ""}
    """  # noqa: S608 - of `RANKS`, or made here


def mark(batches: Batches, *, form: Form, levels: int, is_contained: bool) -> Batches:
    """Make MARKED of the documents of `list_documents`.

    Equal sketches are found by SHA-256 over all their ids; empty ones are equal if their contents and numbers of tokens
    are. Where the modulus follows the number of features, equal sketches must have equal moduli. A `sequence`, where
    given, is used instead of the digest: equal texts have equal sketches.

    Args:
        form: the form that a sketch must have.
        levels: `sketch.size` where the modulus follows the number of features; else 0.
        is_contained: whether documents that may contain more come first, before the policy applies.
    """
    for batch in batches:
        rows = sketch_rows(batch.column("sketch"))
        counts = batch.column("n_features").to_numpy().astype(np.int64)
        level = np.zeros(len(counts), np.int64)
        if levels:
            level = np.array([level_due(n, levels) for n in counts.tolist()], np.int64)
        size = np.diff(rows.offsets)
        forced = batch.column("class").to_numpy().astype(np.int64)
        weight = forced * FORCED_WEIGHT - (size << level if is_contained else 0)
        contents = zip(batch.column("content").to_pylist(), batch.column("n_tokens").to_pylist(), strict=True)
        empty = [b"=%d " % tokens + content for content, tokens in contents]
        same = _digest(rows, level, empty, batch.column("sequence").to_pylist())
        columns = [size.astype(np.int32), level, weight, damaged_sketches(rows, counts, form), forced.astype(np.int32)]
        yield MARKED.batch([*batch.columns[:5], pa.array(same, pa.binary()), *map(pa.array, columns)])


def marker(form: Form, *, levels: int, is_contained: bool) -> partial[Batches]:
    """Bind `mark` to the form and settings of a run."""
    return partial(mark, form=form, levels=levels, is_contained=is_contained)


def _digest(rows: Rows, levels: np.ndarray, empty: list[bytes], sequences: list[bytes | None]) -> list[bytes]:
    """Return what only equal sketches share: of an empty one its text's, else the sequence, or a digest of the ids.

    The three differ in length, so they cannot be confused.
    """
    data, ends = rows.ids.view(np.uint8), (8 * rows.offsets).tolist()
    digests = []
    parts = zip(ends[:-1], ends[1:], levels.tolist(), empty, sequences, strict=True)
    for low, high, level, content, sequence in parts:
        if high == low:
            digests.append(content)
        elif sequence:
            digests.append(sequence)
        else:
            digests.append(hashlib.sha256(bytes([level]) + data[low:high].data).digest())
    return digests


def name_nodes(heavy: int) -> str:
    """Return the SELECT of every document with its node: MARKED, node string, n int64.

    Nodes of at least `heavy` documents are few, and are broadcast to every task.
    """
    return f"""
        SELECT /*+ BROADCAST(k) */ m.*, k.node, k.n
        FROM marked AS m JOIN (SELECT * FROM nodes WHERE n >= {heavy:d}) AS k ON m.same = k.same
        UNION ALL
        SELECT m.*, k.node, k.n
        FROM (SELECT /*+ BROADCAST(k) */ m.*
              FROM marked AS m ANTI JOIN (SELECT same FROM nodes WHERE n >= {heavy:d}) AS k ON m.same = k.same) AS m
        JOIN (SELECT * FROM nodes WHERE n < {heavy:d}) AS k ON m.same = k.same
    """  # noqa: S608 - a number
