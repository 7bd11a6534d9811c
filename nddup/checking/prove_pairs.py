"""Proof of `pairs`: near-duplicates recounted by comparing probes with every distinct sketch.

    sketches           --recount-->       recounted   the near-duplicates of each probe
    pairs, docs        --FOLDED-->        folded      the rows of `pairs` by pair of nodes
    recounted          --expect_rows-->   expected    the rows and stars that each pair of nodes must have
    expected, folded   --WRONG_PAIRS-->   Violations  pairs that are missing, invented or have wrong numbers

A node is a distinct sketch, named by the smallest id of its documents. Nodes are compared, not documents, so 10,000
equal documents cost one comparison. The probes are all nodes or a sample of them, and all sketches are streamed past
them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.tables import working
from nddup.verifying.definitions import Definition, Rows, sketch_rows
from nddup.verifying.near_pairs import Near, Probes, find_near


class Violations(NamedTuple):
    """A SELECT each of whose rows breaks a promise; no row means that the promise holds.

    Attributes:
        text: the SELECT. Its first column is an id, and its rows are ordered by all columns.
        says: the message for a row, with column names in braces; or one for each value of the column `what`.
    """

    text: str
    says: str | Mapping[str, str]

    def describe(self, row: Mapping[str, Any]) -> str:
        """Return the message for a row. A null is written `null`.

        Example:
            >>> Violations("", "{doc_id}: group {said}").describe({"doc_id": "a", "said": None})
            'a: group null'
        """
        form = self.says if isinstance(self.says, str) else self.says[row["what"]]
        return form.format_map({name: "null" if value is None else value for name, value in row.items()})


Batches = Iterator[pa.RecordBatch]

RECOUNTED = working(
    "recounted",
    "probe string, other string, overlap long, resemblance double, within double, around double, likeness double,"
    " covers boolean, edit double",
    "A near-duplicate of a probe; two probes are in both directions. `within` is the containment of the probe in the"
    " other, `around` that of the other in the probe, null where sketches show none. `likeness` decides between several"
    " near-duplicates; `covers`: a kept `other` removes a later probe. `edit`: of their texts, where texts confirm"
    " pairs.",
)

FOUND_NEAR = replace(RECOUNTED, name="found_near")
"""RECOUNTED before the texts are compared, of the probes and of the first nodes of the chosen clusters."""

OF_PROBES = "SELECT f.* FROM found_near AS f SEMI JOIN probes AS p ON f.probe = p.node"

TOLERANCE = "1e-12"
"""Maximum difference of a resemblance in `pairs` from the recounted quotient."""

UNLEVELLED = "SELECT node, sketch, level FROM sketches WHERE size > 0"
"""The rows that `recount` reads."""

DISORDERED = (
    Violations(
        "SELECT doc_a, doc_b FROM pairs WHERE (doc_a < doc_b) IS NOT TRUE", "{doc_a} / {doc_b}: not in ascending order"
    ),
    Violations(
        "SELECT doc_a, doc_b, count(*) AS n FROM pairs GROUP BY doc_a, doc_b HAVING count(*) > 1",
        "{doc_a} / {doc_b}: {n} rows",
    ),
)
"""Rows of `pairs` whose ids are not ascending as bytes, or that occur twice."""

FOLDED = """
    SELECT node_a, node_b, count(*) AS found, count_if(star) AS stars, count_if(is_hub) AS hubs,
           count(resemblance) AS estimates, min(overlap) AS low, max(overlap) AS high,
           min(resemblance) AS least, max(resemblance) AS most, min(of_a) AS least_of_a, max(of_a) AS most_of_a,
           min(of_b) AS least_of_b, max(of_b) AS most_of_b, min(edit) AS least_edit, max(edit) AS most_edit,
           min(common) AS common, min(doc_a || ' / ' || doc_b) AS sample
    FROM (
        SELECT p.doc_a, p.doc_b, p.overlap, p.resemblance, p.star, p.edit, p.common,
               CASE WHEN a.node IS NOT NULL AND b.node IS NOT NULL THEN least(a.node, b.node) END AS node_a,
               CASE WHEN a.node IS NOT NULL AND b.node IS NOT NULL THEN greatest(a.node, b.node) END AS node_b,
               CASE WHEN a.node > b.node THEN p.containment_b ELSE p.containment_a END AS of_a,
               CASE WHEN a.node > b.node THEN p.containment_a ELSE p.containment_b END AS of_b,
               p.doc_a = a.node AND (a.node = b.node OR p.doc_b = b.node) AS is_hub
        FROM pairs AS p LEFT JOIN docs AS a ON p.doc_a = a.doc_id LEFT JOIN docs AS b ON p.doc_b = b.doc_id
    ) AS named GROUP BY node_a, node_b
"""
"""The rows of `pairs` by pair of nodes (null for the id of no document). The ids of a row ascend, but the names of
their nodes may descend; then the containments swap ends. A hub row is one that a star would have: between the first
documents of both nodes, or between the first document of a node and another of the same node."""

_OFF = " OR ".join(
    [
        *(f"{name} IS DISTINCT FROM overlap" for name in ("low", "high")),
        "estimates <> found",
        *(f"coalesce(abs({name} - resemblance) > {TOLERANCE}, true)" for name in ("least", "most")),
        *(
            f"({name} IS NOT NULL AND coalesce(abs({end}_{name} - {name}) > {TOLERANCE}, true))"
            for name in ("of_a", "of_b", "edit")
            for end in ("least", "most")
        ),
    ]
)

WRONG_PAIRS = Violations(
    f"""
    SELECT * FROM (
        SELECT coalesce(node_a, sample) AS node_a, node_b, sample, overlap, resemblance, low, high, least, most, found,
               stars, due, due_stars,
               CASE WHEN node_a IS NULL THEN 'unknown' WHEN found IS NULL THEN 'missing'
                    WHEN due IS NULL THEN 'invented'
                    WHEN {_OFF} THEN 'off'
                    WHEN found <> due OR stars <> due_stars OR hubs <> due_hubs THEN 'shape' END AS what
        FROM expected AS e
        FULL JOIN (
            SELECT * FROM folded AS f
            WHERE node_a IS NULL OR node_a IN (SELECT node FROM probes) OR node_b IN (SELECT node FROM probes)
        ) AS f USING (node_a, node_b)
    ) AS met WHERE what IS NOT NULL
    """,  # noqa: S608 - the text above
    {
        "unknown": "{sample}: ids that are not documents",
        "missing": "{node_a} / {node_b}: missing, overlap {overlap} and {resemblance}",
        "invented": "{sample}: not near-duplicates",
        "off": "{sample}: {low} to {high} and {least} to {most}; recounted {overlap} and {resemblance}",
        "shape": "{node_a} / {node_b}: {found} rows, {stars} stars, due {due}/{due_stars}",
    },
)
"""Differences between `pairs` and the recounted pairs. Rows without a probe at either end are not checked."""

ENDS = "SELECT r.*, least(r.probe, r.other) AS node_a, greatest(r.probe, r.other) AS node_b FROM recounted AS r"

LOST = f"SELECT * FROM ({ENDS}) AS named ANTI JOIN folded USING (node_a, node_b)"  # noqa: S608 - the text above
"""The recounted pairs of nodes for which `pairs` has no row."""

OPTIONAL = """
    SELECT * FROM lost WHERE probe IN (SELECT node FROM led_nodes) AND other IN (SELECT node FROM led_nodes)
"""
"""The lost pairs that the run need not list: both ends follow a leader."""

PROMISED = "SELECT r.* FROM recounted AS r ANTI JOIN allowed_missing AS x ON r.probe = x.probe AND r.other = x.other"
"""The recounted pairs without those that may be missing, which the run had not promised."""

COUNT_ALLOWED = "SELECT count(*) AS n FROM (SELECT DISTINCT node_a, node_b FROM allowed_missing) AS each"
"""The number of pairs that may be missing, each once: two probes are in both directions."""

COUNT_BESIDE_LOW = """
    SELECT count(DISTINCT (least(r.probe, r.other), greatest(r.probe, r.other))) AS n
    FROM recounted AS r SEMI JOIN low_probes AS l ON r.probe = l.node
"""
"""The number of recounted pairs of the probes that were also compared with what is less like than a candidate."""

ROWS, FOUND = 200, 4_000
"""Sketches compared at once, and matches returned at once: a batch of similar sketches has millions."""


def is_before(one: str, other: str) -> str:
    """Return the SQL condition that one document comes before another under the keep policy; null counts as false.

    Args:
        one: a row with `weight`, `rank` and `doc_id`.
    """
    return (
        f"({one}.weight < {other}.weight OR ({one}.weight = {other}.weight AND ({one}.rank < {other}.rank"
        f" OR ({one}.rank = {other}.rank AND {one}.doc_id < {other}.doc_id))))"
    )


def least_size(rule: Definition) -> int:
    """Return the least size at which equal sketches are near-duplicates: the overlap is their size, shares are 1."""
    return rule.numerator if rule.is_count else 1


class Search(NamedTuple):
    """Sketches that all others are compared with."""

    names: list[str]
    """The node of each probe."""

    probes: Probes
    rule: Definition
    below: float = math.inf
    """Pairs that are as like as this are not returned."""


def recount(batches: Batches, *, searches: Sequence[Search]) -> Batches:
    """Make RECOUNTED of distinct sketches (node, sketch, level): compare each with every probe but itself.

    Cost: that of `near_pairs.find_near` for each sketch and search.
    """
    known = [
        (search, pa.array(search.names, pa.string()), {name: place for place, name in enumerate(search.names)})
        for search in searches
    ]
    for batch in batches:
        for low in range(0, len(batch), ROWS):
            part = batch.slice(low, ROWS)
            rows = sketch_rows(part.column("sketch")).at_levels(part.column("level").to_numpy())
            nodes = part.column("node")
            for search, named, place_of in known:
                places = np.array([place_of.get(node, -1) for node in nodes.to_pylist()], np.int64)
                near = find_near(rows, search.probes, search.rule, places)
                near = near.take(np.flatnonzero(near.resemblance < search.below))
                yield from _tell_both(near, named, nodes, places, search.rule)


def _tell_both(near: Near, named: pa.Array, nodes: pa.Array, places: NDArray[np.int64], rule: Definition) -> Batches:
    """Yield the rows of pairs. A pair of two probes is found once; this adds its other direction."""
    for low in range(0, len(near.rows), FOUND):
        few = near.take(np.arange(low, min(low + FOUND, len(near.rows))))
        ends = named.take(pa.array(few.probes)), nodes.take(pa.array(few.rows))
        yield _tell(few, ends, rule)

        other = few._replace(within=few.around, around=few.within)
        yield _tell(other, ends[::-1], rule).filter(pa.array(places[few.rows] >= 0))


def _tell(near: Near, ends: tuple[pa.Array, pa.Array], rule: Definition) -> pa.RecordBatch:
    likeness = near.around if rule.is_containment else near.resemblance
    nothing = pa.nulls(len(near.rows), pa.float64())
    within, around = (near.around, near.within) if rule.shows_containment else (nothing, nothing)
    covers = likeness >= (rule.numerator / rule.denominator if rule.is_containment else 0.0)
    columns = [near.overlap, near.resemblance, within, around, likeness, covers, nothing]
    return RECOUNTED.batch([*ends, *(pa.array(column) for column in columns)])


def gather_probes(table: pa.Table) -> tuple[list[str], Rows]:
    """Return the names and sketches of a table of node, sketch, level."""
    whole = table.combine_chunks()
    column = whole["sketch"]
    sketches = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return whole["node"].to_pylist(), sketch_rows(sketches).at_levels(whole["level"].to_numpy())


def wrong_claims(rule: Definition) -> Violations:
    """Return the rows of `pairs` with a containment that the kind does not show, or without one that it shows."""
    is_right = "IS NOT NULL" if rule.shows_containment else "IS NULL"
    what = "no containment" if rule.shows_containment else "a containment that the kind does not show"
    text = f"SELECT doc_a, doc_b FROM pairs WHERE NOT (containment_a {is_right} AND containment_b {is_right})"  # noqa: S608
    return Violations(text, f"{{doc_a}} / {{doc_b}}: {what}")


def wrong_shingles(confirm: str) -> Violations:
    """Return the rows of `pairs` whose counts of shingles contradict their documents or the resemblance."""
    counts = ("common", "shingles_a", "shingles_b")
    wrong = " OR ".join(f"p.{name} IS NOT NULL" for name in counts)
    if confirm == "resemblance":
        wrong = (
            "p.shingles_a IS DISTINCT FROM a.n_features OR p.shingles_b IS DISTINCT FROM b.n_features"
            " OR coalesce(abs(p.resemblance - p.common / (p.shingles_a + p.shingles_b - p.common))"
            f" > {TOLERANCE}, true)"
        )
    wrong = f"({wrong}) OR p.edit IS {'' if confirm == 'edit' else 'NOT '}NULL"
    wrong += "" if confirm == "edit" else " OR p.edit IS NOT NULL"
    text = f"""
        SELECT p.doc_a, p.doc_b, p.common, p.shingles_a, p.shingles_b
        FROM pairs AS p JOIN documents AS a ON p.doc_a = a.doc_id JOIN documents AS b ON p.doc_b = b.doc_id
        WHERE {wrong}
    """  # noqa: S608 - the text above
    return Violations(text, "{doc_a} / {doc_b}: {common} shingles in common of {shingles_a} and {shingles_b}")


def expect_rows(rule: Definition, *, limit: int, confirm: str = "none") -> str:
    """Return the SELECT of the rows that `pairs` must have for each pair of nodes with a probe.

    Where the documents of two nodes, or of one with itself, would give more than `limit` rows, there are stars: each
    document of either node is paired with its node's first document, and both first documents with each other.

    Args:
        limit: `pairs.expand_limit` of the run.
        confirm: `pairs.confirm`: equal texts have the edit similarity 1.

    Returns:
        A SELECT from truth, sketches and probes: node_a, node_b, due (rows), due_stars, due_hubs, overlap, resemblance,
        of_a, of_b, edit.
    """
    equal = "CAST(1 AS DOUBLE)" if confirm == "edit" else "CAST(NULL AS DOUBLE)"
    between = """
        SELECT t.*, a.n * b.n AS product
        FROM truth AS t JOIN sketches AS a ON t.probe = a.node JOIN sketches AS b ON t.other = b.node
    """
    whole = "CAST(1 AS DOUBLE)" if rule.shows_containment else "CAST(NULL AS DOUBLE)"
    return f"""
        SELECT DISTINCT least(probe, other) AS node_a, greatest(probe, other) AS node_b,
               CASE WHEN product > {limit:d} THEN 1 ELSE product END AS due,
               CASE WHEN product > {limit:d} THEN 1 ELSE 0 END AS due_stars, 1 AS due_hubs, overlap, resemblance,
               CASE WHEN probe < other THEN within ELSE around END AS of_a,
               CASE WHEN probe < other THEN around ELSE within END AS of_b, edit
        FROM ({between}) AS across
        UNION ALL
        SELECT k.node AS node_a, k.node AS node_b,
               CASE WHEN k.inside > {limit:d} THEN k.n - 1 ELSE k.inside END AS due,
               CASE WHEN k.inside > {limit:d} OR h.node IS NOT NULL THEN k.n - 1 ELSE 0 END AS due_stars,
               k.n - 1 AS due_hubs, CAST(k.size AS BIGINT) AS overlap, CAST(1 AS DOUBLE) AS resemblance,
               {whole} AS of_a, {whole} AS of_b, {equal} AS edit
        FROM (SELECT node, n, size, shiftright(n * (n - 1), 1) AS inside
              FROM sketches SEMI JOIN probes USING (node) WHERE n > 1 AND size >= {least_size(rule):d}) AS k
        LEFT JOIN (SELECT DISTINCT probe AS node FROM ({between}) AS across WHERE product > {limit:d}) AS h
        ON k.node = h.node
    """  # noqa: S608 - numbers
