"""The split of a run on either engine: its units, the part of each, and the tables SPLIT and SHARES.

    pairs, documents   --label_units-->     LABELS      each document with a smaller one that is like it, or equal
    labels, sketches   --join_led-->        LABELS      components given by leaders, joined as their sketches are
    units, strata      --assign_batches-->  ASSIGNED    the part of each unit
    assigned           --SELECT-->          SPLIT, SHARES

A unit is a component of the found pairs and the groups of equal texts; a document like no other is one by itself. Of a
component with more than `pairs.max_edges` pairs only those around leaders are stored, which may leave it in pieces. The
sketches join such pieces again: all that are connected by candidates, where texts confirmed pairs, so a unit may then
hold more than one component, and never less.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.engines.engine import Batches, Engine, Kernel
from nddup.ground.arrays import Ragged
from nddup.ground.columns import one_chunk, ragged_of
from nddup.matching.threshold import Threshold
from nddup.mining.family_pairs import connect_sketches
from nddup.mining.pair_graph import Edges, label_components
from nddup.splitting.assign_units import FREE, Units, assign_units
from nddup.splitting.parts import Parts
from nddup.tables import Table, working
from nddup.tables.features import SHARES, SPLIT

_LABELS = "node long, root long"
LABELS = working("labels", _LABELS, "Nodes with an edge, each with the smallest of its component.")
LED_LABELS = working("led_labels", _LABELS, "LABELS of the sketches of components given by leaders.")
WHOLE_LABELS = working("whole_labels", _LABELS, "LABELS of both.")
ASSIGNED = working("assigned", "unit string, part string, is_beyond boolean", "The part of each unit.")

EDGES = """
    SELECT 0 AS one, a.doc_key AS node_a, b.doc_key AS node_b
    FROM pairs AS p JOIN documents AS a ON p.doc_a = a.doc_id JOIN documents AS b ON p.doc_b = b.doc_id
    UNION ALL
    SELECT 0 AS one, d.doc_key AS node_a, g.doc_key AS node_b
    FROM documents AS d JOIN documents AS g ON d.group = g.doc_id WHERE d.doc_id <> g.doc_id
"""
"""Found pairs, and documents of equal text, or without any token and of equal bytes."""

LED = """
    SELECT DISTINCT coalesce(j.root, d.doc_key) AS root
    FROM keep AS k JOIN documents AS d ON k.doc_id = d.doc_id LEFT JOIN labels AS j ON d.doc_key = j.node
    WHERE k.leader
"""
"""The pieces of components given by leaders: each has a leader."""

LED_SKETCHES = """
    SELECT 0 AS one, d.doc_key AS node, d.sketch
    FROM documents AS d JOIN labels AS j ON d.doc_key = j.node JOIN led AS l ON j.root = l.root
    WHERE d.doc_id = d.group
"""

BOTH = """
    SELECT 0 AS one, node AS node_a, root AS node_b FROM labels
    UNION ALL SELECT 0 AS one, node AS node_a, root AS node_b FROM led_labels
"""

ROOTED = """
    SELECT d.doc_id, d.source, d.record, coalesce(j.root, d.doc_key) AS root, f.part AS fixed, e.part AS earlier
    FROM documents AS d LEFT JOIN {labels} AS j ON d.doc_key = j.node
    LEFT JOIN fixed AS f ON d.doc_id = f.doc_id LEFT JOIN earlier AS e ON d.doc_id = e.doc_id
"""

UNITS = """
    WITH votes AS (
        SELECT r.root, p.place, count(*) AS n FROM rooted AS r JOIN parts AS p ON r.earlier = p.part
        GROUP BY r.root, p.place
    ),
    most AS (
        SELECT root, place, row_number() OVER (PARTITION BY root ORDER BY n DESC, place) AS turn FROM votes
    ),
    gathered AS (
        SELECT r.root, min(r.doc_id) AS unit, count(*) AS documents, min(p.place) AS fixed
        FROM rooted AS r LEFT JOIN parts AS p ON r.fixed = p.part GROUP BY r.root
    )
    SELECT g.root, g.unit, g.documents, g.fixed, m.place AS earlier, f.part AS fixed_part
    FROM gathered AS g LEFT JOIN most AS m ON g.root = m.root AND m.turn = 1
    LEFT JOIN parts AS f ON g.fixed = f.place
"""
"""Of several fixed parts the first in order counts, of earlier ones that of most documents."""

PLACED = """
    SELECT r.doc_id, u.unit FROM rooted AS r JOIN units AS u ON r.root = u.root
    WHERE r.fixed IS NULL OR r.fixed = u.fixed_part
"""
"""The documents that are not left out."""

COUNTED = """
    SELECT 0 AS one, u.unit, '' AS stratum, coalesce(u.fixed, u.earlier, {free}) AS given, count(*) AS n
    FROM units AS u JOIN placed AS p ON u.unit = p.unit GROUP BY u.unit, u.fixed, u.earlier
    UNION ALL
    SELECT 0 AS one, p.unit, {stratum} AS stratum, {free} AS given, count(*) AS n
    FROM placed AS p JOIN strata AS s ON p.doc_id = s.doc_id GROUP BY p.unit, {stratum}
"""
"""What the kernel reads: of each unit first a row with all its documents, then one for each stratum."""

STRATUM = "concat(CAST(s.place AS STRING), CASE WHEN s.value IS NULL THEN '' ELSE '=' END, coalesce(s.value, ''))"

JUDGED = """
    SELECT r.doc_id, CASE WHEN r.fixed IS NULL OR r.fixed = a.part THEN a.part END AS part, u.unit, u.documents,
           CASE WHEN u.fixed IS NOT NULL THEN 'fixed' WHEN u.earlier IS NOT NULL THEN 'earlier'
                WHEN a.is_beyond THEN 'largest' ELSE 'size' END AS decided_by,
           coalesce(r.fixed, r.earlier) AS given
    FROM rooted AS r JOIN units AS u ON r.root = u.root JOIN assigned AS a ON u.unit = a.unit
"""

SHARED = """
    WITH valued AS (
        SELECT doc_id, CAST(NULL AS STRING) AS name, CAST(NULL AS STRING) AS value FROM split WHERE part IS NOT NULL
        UNION ALL
        SELECT s.doc_id, c.name, s.value FROM strata AS s JOIN by_columns AS c ON s.place = c.place
    ),
    met AS (
        SELECT v.name, v.value, p.part, count(*) AS n FROM valued AS v JOIN split AS p ON v.doc_id = p.doc_id
        WHERE p.part IS NOT NULL GROUP BY v.name, v.value, p.part
    ),
    whole AS (SELECT name, value, CAST(sum(n) AS BIGINT) AS n FROM met GROUP BY name, value)
    SELECT w.name, w.value, p.part, coalesce(m.n, 0) AS documents, p.share * w.n AS asked
    FROM whole AS w CROSS JOIN parts AS p
    LEFT JOIN met AS m ON m.part = p.part AND coalesce(m.name, '') = coalesce(w.name, '')
        AND (m.value = w.value OR (m.value IS NULL AND w.value IS NULL))
"""

COUNTS = {
    "documents": "count(*)",
    "units": "count(DISTINCT unit)",
    "largest": "max(documents)",
    "left_out": "count_if(part IS NULL)",
    "moved": "count_if(given <> part)",
    "beyond": "count(DISTINCT CASE WHEN decided_by = 'largest' THEN unit END)",
}
"""What is counted of SPLIT."""


class SplitRule(NamedTuple):
    """How a run is split."""

    parts: Parts

    seed: int

    threshold: Threshold
    """Of the run: when two sketches are near-duplicates, or candidates."""


def split_units(engine: Engine, rule: SplitRule) -> dict[str, int]:
    """Make SPLIT and SHARES.

    Args:
        engine: with `documents`, `pairs` and `keep` of a run; `fixed` and `earlier` (doc_id, part), of any documents
            and with parts of the rule only; `strata` (doc_id, place, value), for each document a row for each column
            of --by; and `by_columns` (place, name). It gets `split` and `shares`.
        rule: how it is split.

    Returns:
        The `COUNTS` of SPLIT.

    Cost: joins of narrow rows with `documents`, and two calls that hold all edges, and all units: 40 bytes an edge,
        some 200 a unit. On Spark each is one task, with a shuffle for each join. Where several pieces of components
        given by leaders were found, one more call holds their sketches, 60 bytes an id.
    """
    parts = rule.parts
    numbered = {"place": pa.array(range(len(parts.names)), pa.int64()), "part": pa.array(parts.names, pa.string())}
    engine.put("parts", pa.table({**numbered, "share": pa.array(map(float, parts.shares), pa.float64())}))

    _make(engine, LABELS, EDGES, partial(label_batches, names=LABELS), by=("one",))
    engine.keep("led", LED)
    labels = LABELS.name
    if engine.count("led", {"n": "count(*)"})["n"] > 1:
        _make(engine, LED_LABELS, LED_SKETCHES, partial(join_led, threshold=rule.threshold), by=("one", "node"))
        _make(engine, WHOLE_LABELS, BOTH, partial(label_batches, names=WHOLE_LABELS), by=("one",))
        labels = WHOLE_LABELS.name

    engine.keep("rooted", ROOTED.format(labels=labels))
    engine.keep("units", UNITS)
    engine.keep("placed", PLACED)
    kernel = partial(assign_batches, names=parts.names, shares=parts.shares, seed=rule.seed)
    in_order = COUNTED.format(stratum=STRATUM, free=f"CAST({FREE} AS BIGINT)")
    _make(engine, ASSIGNED, in_order, kernel, by=("one", "unit", "stratum"))
    engine.keep(SPLIT.name, JUDGED)
    engine.keep(SHARES.name, SHARED)
    return engine.count(SPLIT.name, COUNTS)


def _make(engine: Engine, table: Table, text: str, kernel: Kernel, *, by: tuple[str, ...]) -> None:
    """Keep what a kernel makes of a query over any tables, also those that the engine only sees."""
    engine.see(f"{table.name}_made", engine.answer(text, kernel, table, by=by))
    engine.keep(table.name, f"SELECT * FROM {table.name}_made")  # noqa: S608 - our names


def label_batches(batches: Batches, *, names: Table) -> Batches:
    """Yield LABELS under a name, from all edges (node_a, node_b)."""
    edges = Edges()
    for batch in batches:
        edges.add(batch.column("node_a").to_numpy(), batch.column("node_b").to_numpy())
    nodes = edges.names()
    ordinals = label_components(edges.take_ends(nodes), nodes=len(nodes)).ordinals
    firsts = np.unique(ordinals, return_index=True)[1]
    yield names.batch([pa.array(nodes), pa.array(nodes[firsts[ordinals]])])


def join_led(batches: Batches, *, threshold: Threshold) -> Batches:
    """Yield LED_LABELS, from the distinct sketches (node, sketch) of components given by leaders."""
    rows = pa.Table.from_batches(list(batches))
    sketches, nodes = ragged_of(rows["sketch"]), rows["node"].to_numpy()
    roots = connect_sketches(sketches, threshold)
    yield LED_LABELS.batch([pa.array(nodes), pa.array(nodes[roots])])


def assign_batches(
    batches: Batches, *, names: Sequence[str], shares: Sequence[Fraction], seed: int
) -> Iterator[pa.RecordBatch]:
    """Yield ASSIGNED from rows of `COUNTED`, in order."""
    held = [batch for batch in batches if len(batch)]
    if not held:
        return
    rows = pa.Table.from_batches(held)
    stratum, counts = one_chunk(rows["stratum"].cast(pa.string())), rows["n"].to_numpy().astype(np.int64)
    is_unit = np.asarray(pc.equal(stratum, ""))
    firsts = np.flatnonzero(is_unit)
    units = one_chunk(rows["unit"].cast(pa.string())).take(pa.array(firsts))
    numbers = np.asarray(stratum.dictionary_encode().indices).astype(np.uint64)
    offsets = np.append(firsts - np.arange(len(firsts)), np.count_nonzero(~is_unit)).astype(np.int64)
    given = rows["given"].to_numpy().astype(np.int64)[firsts]
    whole = Units(units.to_pylist(), counts[firsts], given, Ragged(offsets, numbers[~is_unit]), counts[~is_unit])
    found = assign_units(whole, shares, seed=seed)
    parts = pa.array(names, pa.string()).take(pa.array(found.parts))
    yield ASSIGNED.batch([units, parts, pa.array(found.is_beyond)])
