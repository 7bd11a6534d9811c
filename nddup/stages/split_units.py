"""The split of a run on either engine: its units, the part of each, and the tables SPLIT and SHARES.

    pairs, documents   --label_documents-->  labels    each document with the first of its component
    units, strata      --assign_batches-->   ASSIGNED  the part of each unit
    assigned           --SELECT-->           SPLIT, SHARES

A unit is a component of the found pairs and the groups of equal texts (`label_components`); a document like no other is
one by itself.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.engines.engine import Batches, Engine
from nddup.ground.arrays import Ragged
from nddup.ground.columns import one_chunk
from nddup.matching.threshold import Threshold
from nddup.splitting.assign_units import FREE, Parts, Units, assign_units
from nddup.stages.label_components import label_documents, make_seen
from nddup.tables import working
from nddup.tables.features import SHARES, SPLIT

ASSIGNED = working("assigned", "unit string, part string, is_beyond boolean", "The part of each unit.")

ROOTED = """
    SELECT d.doc_id, coalesce(j.root, d.doc_key) AS root, f.part AS fixed, e.part AS earlier
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
    "given": "count_if(part IS NOT NULL AND decided_by IN ('fixed', 'earlier'))",
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

    Returns:
        The `COUNTS` of SPLIT.

    Cost: as `label_documents`, joins of narrow rows, and a call that holds all units, some 200 bytes each. On Spark it
        is one task, with a shuffle for each join.
    """
    parts = rule.parts
    numbered = {"place": pa.array(range(len(parts.names)), pa.int64()), "part": pa.array(parts.names, pa.string())}
    engine.put("parts", pa.table({**numbered, "share": pa.array(map(float, parts.shares), pa.float64())}))

    labels = label_documents(engine, rule.threshold)
    engine.materialise("rooted", ROOTED.format(labels=labels))
    engine.materialise("units", UNITS)
    engine.materialise("placed", PLACED)
    kernel = partial(assign_batches, names=parts.names, shares=parts.shares, seed=rule.seed)
    in_order = COUNTED.format(stratum=STRATUM, free=f"CAST({FREE} AS BIGINT)")
    make_seen(engine, ASSIGNED, in_order, kernel, by=("one", "unit", "stratum"))
    engine.materialise(SPLIT.name, JUDGED)
    engine.materialise(SHARES.name, SHARED)
    return engine.count(SPLIT.name, COUNTS)


def assign_batches(
    batches: Batches, *, names: Sequence[str], shares: Sequence[Fraction], seed: int
) -> Iterator[pa.RecordBatch]:
    """Yield ASSIGNED from rows of `COUNTED`, in order."""
    filled = [batch for batch in batches if len(batch)]
    if not filled:
        return
    rows = pa.Table.from_batches(filled)
    stratum, counts = one_chunk(rows["stratum"].cast(pa.string())), rows["n"].to_numpy().astype(np.int64)
    is_unit = np.asarray(pc.equal(stratum, ""))
    firsts = np.flatnonzero(is_unit)
    units = one_chunk(rows["unit"].cast(pa.string())).take(pa.array(firsts))
    numbers = np.asarray(stratum.dictionary_encode().indices).astype(np.uint64)
    offsets = np.append(firsts - np.arange(len(firsts)), np.count_nonzero(~is_unit)).astype(np.int64)
    given = rows["given"].to_numpy().astype(np.int64)[firsts]
    whole = Units(units.to_pylist(), counts[firsts], given, Ragged(offsets, numbers[~is_unit]), counts[~is_unit])
    assigned = assign_units(whole, shares, seed=seed)
    parts = pa.array(names, pa.string()).take(pa.array(assigned.parts))
    yield ASSIGNED.batch([units, parts, pa.array(assigned.is_beyond)])
