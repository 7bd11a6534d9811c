"""The keep-list: every document once, kept or a duplicate of a kept one.

The choice was made on distinct sketches (`nddup.mining.pair_graph`). It is exact for documents: equal sketches
have the same neighbours, so a kept sketch keeps its first document by policy, and a removed sketch keeps none.

    nodes, graph, matches  --VERDICTS-->   the head of each sketch, its first document by policy; for a removed sketch
                                           also the head of its kept one, and what is known of both
    nodes, verdicts        --decide-->     KEEP
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.engines.engine import Batches, Engine
from nddup.matching.preference import NUMBERS, Order, PolicyColumn
from nddup.mining.keep_verdicts import ALONE, FORCED_WEIGHT, REASONS, Forced, Placed, classes_of, decide
from nddup.tables import KEEP

VERDICTS = """
    WITH heads AS (
        SELECT node, max(n) AS n, min_by(doc_id, struct(policy, doc_id)) AS own_id,
               min_by(content_fingerprint, struct(policy, doc_id)) AS own_content,
               min_by(weight, struct(policy, doc_id)) AS own_weight
        FROM nodes GROUP BY node
    ),
    ends AS (
        SELECT g.node, h.own_id AS near_id, h.own_content AS near_content,
               least(g.node, g.duplicate_of) AS node_a, greatest(g.node, g.duplicate_of) AS node_b
        FROM graph AS g JOIN heads AS h ON g.duplicate_of = h.node
    ),
    measured AS (
        SELECT e.node, e.near_id, e.near_content, m.resemblance, m.common,
               CASE WHEN e.node = e.node_a THEN m.shingles_a ELSE m.shingles_b END AS shingles
        FROM ends AS e LEFT JOIN matches AS m ON e.node_a = m.node_a AND e.node_b = m.node_b
    )
    SELECT h.node, h.n, h.own_id, h.own_content, h.own_weight, m.near_id, m.near_content,
           m.resemblance, m.common, m.shingles
    FROM heads AS h LEFT JOIN measured AS m ON h.node = m.node
"""

PLACED = """
    SELECT doc_id, own_id, near_id, size >= {least_size} OR size = 0 AS is_alike, weight, own_weight,
           content_fingerprint = coalesce(near_content, own_content) AS is_exact, resemblance, common, shingles
    FROM placed
"""


def list_kept(engine: Engine, *, least_size: int, by_sets: bool = False) -> Any:  # noqa: ANN401 - of either engine
    """Return KEEP: for each document whether it stays; if not, why, and which kept near-duplicate stands for it.

    Args:
        engine: with the tables `nodes`, `graph`, and `matches`, the edges of the graph, with `common`, `shingles_a` and
            `shingles_b`, null where no shingles were counted.
        least_size: fewest features for which equal sketches are near-duplicates (a count k, else 1); with fewer
            features, every document of a group stays. Documents of an empty sketch have one node if their contents are
            equal: one of them stays.
        by_sets: whether documents of one node have equal sets of shingles.

    Cost: on Spark shuffles of the nodes, twice on node, to find their first documents and to join the choice; of the
        removed sketches twice, and once with the matches.
    """
    engine.join("placed", "nodes", VERDICTS, key="node", by="doc_id")
    return engine.answer(PLACED.format(least_size=least_size), partial(decide_batches, by_sets=by_sets), KEEP)


def decide_batches(batches: Batches, *, by_sets: bool) -> Batches:
    """Yield KEEP of documents with the heads of their sketches: `keep_verdicts.decide`."""
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names}

        def numbers(name: str, missing: float, kind: type[np.generic], of: dict[str, pa.Array] = columns) -> Any:  # noqa: ANN401
            return np.asarray(pc.fill_null(of[name], missing)).astype(kind)

        is_near = np.asarray(pc.is_valid(columns["near_id"]))
        found = decide(
            Placed(
                is_head=np.asarray(pc.equal(columns["doc_id"], columns["own_id"])),
                is_alike=np.asarray(columns["is_alike"]),
                classes=classes_of(np.asarray(columns["weight"])),
                head_classes=classes_of(np.asarray(columns["own_weight"])),
                is_near=is_near,
                is_exact=np.asarray(columns["is_exact"]),
                resemblance=numbers("resemblance", float("nan"), np.float64),
                common=numbers("common", -1, np.int64),
                sizes=numbers("shingles", 0, np.int64),
            ),
            by_sets=by_sets,
        )
        stands = pc.if_else(pa.array(is_near), columns["near_id"], columns["own_id"])
        yield KEEP.batch(
            [
                columns["doc_id"],
                pa.array(found.kept),
                pc.if_else(pa.array(found.removed_for == ALONE), pa.scalar(None, pa.string()), stands),
                pa.array(REASONS, pa.string()).take(pa.array(found.reasons, mask=found.kept)),
                pa.array(found.resemblance, from_pandas=True),
                pa.array(found.lost, from_pandas=True),
            ]
        )


FORCED = """
    SELECT (SELECT count(*) FROM nodes WHERE weight >= {forced}) AS forced_kept,
           (SELECT count(*) FROM nodes WHERE weight <= -{forced}) AS forced_removed,
           (SELECT count(*) FROM pairs AS p JOIN keep AS a ON p.doc_a = a.doc_id JOIN keep AS b ON p.doc_b = b.doc_id
            WHERE a.kept AND b.kept) AS kept_pairs
"""


def count_kept(engine: Engine, order: Order, forced: Forced | None, *, by_loss: bool) -> dict[str, Any]:
    """Count, for `KeepMetrics`, what the columns of the policy lack, and what `keep.force` and `keep.max_lost` do.

    Args:
        engine: with `documents`, `nodes`, `pairs` and `keep`.
        order: the keep policy.
        forced: the documents that `keep.force` names.
        by_loss: whether `keep.max_lost` is set.

    Cost: on Spark an action for columns that are read from the records, and one if documents or losses are given.
    """
    counts = _count_unplaced(engine, order.read) if order.read else {}
    if forced is None and not by_loss:
        return counts
    found: dict[str, Any] = engine.sql(FORCED.format(forced=FORCED_WEIGHT // 2)).to_pylist()[0]
    named = 0 if forced is None else len(forced.kept) + len(forced.removed)
    return counts | found | {"forced_unknown": named - found["forced_kept"] - found["forced_removed"]}


UNPLACED = pa.schema([(name, pa.list_(pa.int64())) for name in ("without_value", "unparsable")])
"""The counts of a batch, by column of the policy."""


def _count_unplaced(engine: Engine, columns: Sequence[PolicyColumn]) -> dict[str, dict[str, int]]:
    """Count the documents that lack a value, or have no number, in each column that is read from the records."""
    is_number = tuple(column.type == "number" for column in columns)
    rows = engine.rows("SELECT policy FROM documents", partial(_count_batches, is_number=is_number),
                       "without_value array<long>, unparsable array<long>")  # fmt: skip
    totals = [np.sum(np.array(counts), axis=0) for counts in zip(*rows, strict=True)]
    return {
        name: {column.path: int(count) for column, count in zip(columns, counts, strict=True) if count}
        for name, counts in zip(UNPLACED.names, totals, strict=True)
    }


def _count_batches(batches: Batches, *, is_number: tuple[bool, ...]) -> Batches:
    for batch in batches:
        lacking, others = [], []
        for at, number in enumerate(is_number):
            values = pc.list_element(batch.column("policy"), at)
            is_there = pc.fill_null(pc.match_substring_regex(values, r"\S"), False)  # noqa: FBT003 - the value that fills
            is_other = pc.and_not(is_there, pc.match_substring_regex(pc.fill_null(values, ""), NUMBERS))
            lacking.append(len(values) - (pc.sum(is_there).as_py() or 0))
            others.append(int(number) * (pc.sum(is_other).as_py() or 0))
        yield pa.RecordBatch.from_pylist([{"without_value": lacking, "unparsable": others}], UNPLACED)
