"""The keep-list: every document once, kept or a duplicate of a kept one.

The choice was made on distinct sketches (`nddup.mining.pair_graph`). It is exact for documents: equal sketches
have the same neighbours, so a kept sketch keeps its first document by policy, and a removed sketch keeps none. What
replaces a copy of a removed sketch is decided for the copy: more kept documents may come before it than before the
first. With `keep.same` the sketches are divided by value first (`divide_by_value`).

    nodes, graph, matches  --VERDICTS-->   the head of each sketch, its first document by policy; for a removed sketch
                                           also the head of its kept one, and what is known of both
    nodes, graph, matches  --COPIES-->     for a removed copy that is not the first, what replaces it
    nodes, verdicts        --decide-->     KEEP
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.engines.engine import Batches, Engine, EngineTable
from nddup.matching.preference import NUMBERS, Order, PolicyColumn, places_of, read_glob
from nddup.mining.keep_verdicts import ALONE, FORCED_WEIGHT, KEPT, REASONS, Forced, Placed, classes_of, decide
from nddup.mining.pair_graph import NamedChoice
from nddup.settings import plan
from nddup.settings.schema import Config
from nddup.stages.expand import TOLD
from nddup.tables import DIRECTED, KEEP, REPLACED

SOURCES_TOGETHER = 10_000
"""Sources that are compared with the globs of `keep.prefer` together."""

KEYED = "SELECT *, concat_ws(' ', node, guard) AS slot_key FROM nodes"

GROUPS = """
    SELECT concat_ws(' ', node, guard) AS slot_key, max(n) AS n, min(doc_key) AS slot, count(*) AS copies
    FROM nodes GROUP BY node, guard
"""

SLOTS = """
    SELECT doc_key, doc_id, slot AS node, size, weight, policy, content_fingerprint, copies AS n, node AS sketch, guard
    FROM slotted
"""

SLOT_HEADS = """
    SELECT node, min(sketch) AS sketch, min(guard) AS guard, min_by(doc_id, struct(policy, doc_id)) AS head_id,
           min(policy) AS policy, min_by(weight, struct(policy, doc_id)) AS weight
    FROM slots GROUP BY node
"""

MATCHES = """
    SELECT least(a.node, b.node) AS node_a, greatest(a.node, b.node) AS node_b, {told}
    FROM matches AS m JOIN slot_heads AS a ON m.node_a = a.sketch
    JOIN slot_heads AS b ON m.node_b = b.sketch AND a.guard = b.guard
"""

IN_ORDER = """
    WITH sides AS ({sides})
    SELECT g.ordinal, {before} AS before, l.policy, l.head_id, -coalesce(s.likeness, 0) AS distance,
           {other_before} AS other_before, o.policy AS other_policy, o.head_id AS other_id, s.node, s.other
    FROM sides AS s JOIN slot_heads AS l ON s.node = l.node JOIN slot_heads AS o ON s.other = o.node
    JOIN graph AS g ON l.sketch = g.node
    WHERE l.weight < {half} AND o.weight > -{half} AND ({fits} OR l.weight <= -{half})
          AND ({other_before} < {before} OR ({other_before} = {before}
               AND (o.policy < l.policy OR (o.policy = l.policy AND o.head_id < l.head_id))))
"""
"""The edges that may remove their end `node`, those of a component in the order of the policy, the best first."""

BY = ("ordinal", "before", "policy", "head_id", "distance", "other_before", "other_policy", "other_id")

REPLACED_BY = ("node", "other")
"""The ends of such an edge."""

GRAPH = """
    WITH firsts AS (SELECT sketch, min_by(head_id, struct(policy, head_id)) AS first_id FROM slot_heads GROUP BY sketch)
    SELECT h.node, r.duplicate_of, g.by_leaders, g.leads AND (h.head_id = f.first_id OR h.weight >= {half}) AS leads
    FROM slot_heads AS h JOIN graph AS g ON h.sketch = g.node JOIN firsts AS f ON h.sketch = f.sketch
    LEFT JOIN replaced AS r ON h.node = r.node
"""


HEADS = """
    SELECT node, max(n) AS n, min_by(doc_id, struct(policy, doc_id)) AS own_id, min(policy) AS own_policy,
           min_by(content_fingerprint, struct(policy, doc_id)) AS own_content,
           min_by(weight, struct(policy, doc_id)) AS own_weight
    FROM {nodes} GROUP BY node
"""

VERDICTS = """
    WITH heads AS ({heads}),
    ends AS (
        SELECT g.node, h.own_id AS near_id, h.own_content AS near_content,
               least(g.node, g.duplicate_of) AS node_a, greatest(g.node, g.duplicate_of) AS node_b
        FROM {graph} AS g JOIN heads AS h ON g.duplicate_of = h.node
    ),
    measured AS (
        SELECT e.node, e.near_id, e.near_content, m.resemblance, m.common,
               CASE WHEN e.node = e.node_a THEN m.shingles_a ELSE m.shingles_b END AS shingles
        FROM ends AS e LEFT JOIN {matches} AS m ON e.node_a = m.node_a AND e.node_b = m.node_b
    )
    SELECT h.node, h.n, h.own_id, h.own_content, h.own_weight, m.near_id, m.near_content,
           m.resemblance, m.common, m.shingles, coalesce(g.by_leaders AND g.leads, false) AS leads
    FROM heads AS h LEFT JOIN measured AS m ON h.node = m.node LEFT JOIN {graph} AS g ON h.node = g.node
"""

SIDES = """
    SELECT node_a AS node, node_b AS other, {likeness_a} AS likeness, resemblance, common, shingles_a AS shingles
    FROM {matches}
    UNION ALL
    SELECT node_b AS node, node_a AS other, {likeness_b} AS likeness, resemblance, common, shingles_b AS shingles
    FROM {matches}
"""
"""The edges in both directions."""

COPIES = """
    WITH heads AS ({heads}),
    sides AS ({sides}),
    offers AS (
        SELECT r.node, r.own_id AS first_id, o.own_id AS near_id, o.own_content AS near_content,
               o.own_policy AS near_policy, {near_weight} AS near_weight, -coalesce(s.likeness, 0) AS distance,
               s.resemblance, s.common, s.shingles, g.duplicate_of = s.other AS is_first,
               {fits} AND {after} AS is_later
        FROM {graph} AS g JOIN heads AS r ON g.node = r.node JOIN sides AS s ON g.node = s.node
        JOIN {graph} AS k ON s.other = k.node JOIN heads AS o ON k.node = o.node
        WHERE g.duplicate_of IS NOT NULL AND k.duplicate_of IS NULL AND r.n > 1 AND o.own_weight > -{half}
    ),
    open AS (
        SELECT d.doc_id, o.near_id, o.near_content, o.resemblance, o.common, o.shingles,
               struct(o.distance, struct(o.near_weight, struct(o.near_policy, o.near_id))) AS turn
        FROM {nodes} AS d JOIN offers AS o ON d.node = o.node
        WHERE d.doc_id <> o.first_id AND (d.weight <= -{half} OR o.is_first OR (o.is_later AND {before}))
    )
    SELECT doc_id, min_by(near_id, turn) AS near_id, min_by(near_content, turn) AS near_content,
           min_by(resemblance, turn) AS resemblance, min_by(common, turn) AS common, min_by(shingles, turn) AS shingles
    FROM open GROUP BY doc_id
"""
"""For each copy, not the first, of a removed sketch: the kept document that replaces it, which may come after the first
copy. `offers`: the kept sketches near a removed one."""

PLACED = """
    SELECT p.doc_id, p.own_id, coalesce(c.near_id, p.near_id) AS near_id,
           p.size >= {least_size} OR p.size = 0 AS is_alike, p.weight, p.own_weight, p.leads,
           p.content_fingerprint = coalesce(c.near_content, p.near_content, p.own_content) AS is_exact,
           CASE WHEN c.doc_id IS NULL THEN p.resemblance ELSE c.resemblance END AS resemblance,
           CASE WHEN c.doc_id IS NULL THEN p.common ELSE c.common END AS common,
           CASE WHEN c.doc_id IS NULL THEN p.shingles ELSE c.shingles END AS shingles
    FROM placed AS p LEFT JOIN ({copies}) AS c ON p.doc_id = c.doc_id
"""


class Replacing(NamedTuple):
    """When a kept document may replace another that it precedes: as `pair_graph.keep_first` and `direct_edges` ask."""

    least_size: int
    """Minimum number of features for which equal sketches are near-duplicates (a count k, else 1); with fewer, every
    document of a group stays. Documents of an empty sketch have one node if their contents are equal: one of them
    stays."""

    by_sets: bool = False
    """Whether documents of one node have equal sets of shingles."""

    least_containment: float | None = None
    """Share of a document that another must contain to replace it; heavier documents then come first."""

    most_lost: Fraction | None = None
    """`keep.max_lost`."""

    is_guarded: bool = False
    """Whether `keep.same` is set: documents replace those of equal values only."""

    @property
    def fits(self) -> str:
        """The SQL condition that a document which is not forced out may lose what it loses, of a row of `SIDES`."""
        conditions = ["true"]
        if self.least_containment is not None:
            conditions.append(f"coalesce(s.likeness, 0) >= {self.least_containment!r}")
        if self.most_lost is not None:
            numerator, denominator = self.most_lost.numerator, self.most_lost.denominator
            lost = f"(s.shingles - s.common) * {denominator:d} <= s.shingles * CAST({numerator:d} AS BIGINT)"
            conditions.append(f"coalesce({lost}, false)")
        return f"({' AND '.join(conditions)})"

    def sides(self, matches: str) -> str:
        """Return the SELECT of `SIDES` of a table."""
        by_weight = self.least_containment is not None
        likeness = [f"containment_{end}" if by_weight else "coalesce(edit, resemblance)" for end in "ab"]
        return SIDES.format(likeness_a=likeness[0], likeness_b=likeness[1], matches=matches)

    def copies(self, tables: Mapping[str, str]) -> str:
        """Return the SELECT of `COPIES` from the tables for `nodes`, `matches` and `graph`."""
        by_weight = self.least_containment is not None
        after, before = (
            "(o.own_policy > r.own_policy OR (o.own_policy = r.own_policy AND o.own_id > r.own_id))",
            ("(o.near_policy < d.policy OR (o.near_policy = d.policy AND o.near_id < d.doc_id))"),
        )
        if by_weight:  # a heavier document comes before all copies of a lighter one
            after, before = f"(o.own_weight = r.own_weight AND {after})", f"(o.near_weight = -d.weight AND {before})"
        return COPIES.format(
            heads=HEADS.format(**tables), sides=self.sides(tables["matches"]), fits=self.fits, after=after,
            before=before, near_weight="-o.own_weight" if by_weight else "0", half=FORCED_WEIGHT // 2, **tables,
        )  # fmt: skip


FORCED = """
    SELECT (SELECT count(*) FROM nodes WHERE weight >= {forced}) AS forced_kept,
           (SELECT count(*) FROM nodes WHERE weight <= -{forced}) AS forced_removed,
           (SELECT count(*) FROM pairs AS p JOIN keep AS a ON p.doc_a = a.doc_id JOIN keep AS b ON p.doc_b = b.doc_id
            WHERE a.kept AND b.kept) AS kept_pairs
"""

UNPLACED = pa.schema([(name, pa.list_(pa.int64())) for name in ("without_value", "unparsable")])
"""The counts of a batch, by column of the policy."""


def _divide_by_value(engine: Engine, sides: str, fits: str, *, by_weight: bool) -> dict[str, str]:
    """Give an engine the slots, and return their tables by the names of those for which they stand.

    Args:
        engine: with `nodes`, `matches` and `graph`, as of `keep.list_kept`.
        sides: the SELECT of the matches in both directions, from `slot_matches`.
        fits: the SQL condition that the end `s.node` may be replaced.
        by_weight: whether heavier documents come first.

    Cost: on Spark shuffles of the nodes on node and value, of the matches on either end, and of the directed matches
        on their component, each of which is decided in one task: it holds the removed ones of its components, 32 bytes
        each at most.
    """
    turned = {one: other for pair in DIRECTED.items() for one, other in (pair, pair[::-1])}
    columns = [
        f"CASE WHEN a.node > b.node THEN m.{turned.get(name, name)} ELSE m.{name} END AS {name}" for name in TOLD
    ]
    before, other_before = ("-l.weight", "-o.weight") if by_weight else ("0", "0")
    half = FORCED_WEIGHT // 2
    engine.see("keyed", engine.answer(KEYED))
    engine.join("slotted", "keyed", GROUPS, key="slot_key", by="doc_id")
    engine.see("slots", engine.answer(SLOTS))
    engine.see("slot_heads", engine.answer(SLOT_HEADS))
    engine.see("slot_matches", engine.answer(MATCHES.format(told=", ".join(columns))))
    ordered = IN_ORDER.format(sides=sides, fits=fits, half=half, before=before, other_before=other_before)
    engine.see("replaced", engine.answer(ordered, _replace_by_value, REPLACED, by=BY))
    engine.see("slot_graph", engine.answer(GRAPH.format(half=half)))
    return {"nodes": "slots", "matches": "slot_matches", "graph": "slot_graph"}


def _replace_by_value(batches: Batches) -> Batches:
    """Yield REPLACED: a slot is removed for the first in its rows of `IN_ORDER` that is kept."""
    choice = NamedChoice()
    for batch in batches:
        ends = [batch.column(name) for name in REPLACED_BY]
        chosen = pa.array(choice.feed(*(end.to_numpy() for end in ends)))
        yield REPLACED.batch([end.filter(chosen) for end in ends])


def replacing_of(config: Config) -> Replacing:
    """Return when a kept document may replace another, by the settings of a run."""
    threshold = plan.threshold_of(config)
    by_sets, least = config.pairs.confirm == "resemblance", plan.graph_rule(config).least_containment
    return Replacing(threshold.least_size, by_sets, least, config.keep.most_lost, config.keep.same is not None)


def list_kept(engine: Engine, replacing: Replacing, nodes: str = "nodes") -> EngineTable:
    """Return KEEP: for each document whether it stays; if not, why, and which kept near-duplicate stands for it.

    Args:
        engine: with the tables `nodes`, `graph`, and `matches`, the edges of the graph, with `common`, `shingles_a` and
            `shingles_b`, null where no shingles were counted.
        replacing: when a kept document may replace another.
        nodes: a table of the documents to decide, with all of their sketches; any table but `nodes` only without
            `keep.same`.

    Cost: on Spark shuffles of the nodes, twice on node, to find their first documents and to join the choice, and once
        on their id; of the removed sketches twice, and of the matches once, and once more for those with copies.
    """
    tables = {"nodes": nodes, "matches": "matches", "graph": "graph"}
    if replacing.is_guarded:
        by_weight = replacing.least_containment is not None
        tables = _divide_by_value(engine, replacing.sides("slot_matches"), replacing.fits, by_weight=by_weight)
    verdicts = VERDICTS.format(heads=HEADS.format(**tables), **tables)
    engine.join("placed", tables["nodes"], verdicts, key="node", by="doc_id")
    text = PLACED.format(least_size=replacing.least_size, copies=replacing.copies(tables))
    return engine.answer(text, partial(decide_batches, by_sets=replacing.by_sets), KEEP)


def decide_batches(batches: Batches, *, by_sets: bool) -> Batches:
    """Yield KEEP of documents with the heads of their sketches: `keep_verdicts.decide`."""
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names}

        def numbers(
            name: str, missing: float, kind: type[np.generic], of: dict[str, pa.Array] = columns
        ) -> NDArray[Any]:
            return np.asarray(pc.fill_null(of[name], missing)).astype(kind)

        is_near = np.asarray(pc.is_valid(columns["near_id"]))
        is_head = np.asarray(pc.equal(columns["doc_id"], columns["own_id"]))
        classes = classes_of(np.asarray(columns["weight"]))
        verdicts = decide(
            Placed(
                is_head=is_head,
                is_alike=np.asarray(columns["is_alike"]),
                classes=classes,
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
                pa.array(verdicts.kept),
                pc.if_else(pa.array(verdicts.removed_for == ALONE), pa.scalar(None, pa.string()), stands),
                pa.array(REASONS, pa.string()).take(pa.array(verdicts.reasons, mask=verdicts.kept)),
                pa.array(verdicts.resemblance, from_pandas=True),
                pa.array(verdicts.lost, from_pandas=True),
                pa.array(np.asarray(columns["leads"]) & (is_head | (classes == KEPT))),
            ]
        )


def count_kept(engine: Engine, order: Order, forced: Forced | None, *, by_loss: bool) -> dict[str, Any]:
    """Count, for `KeepMetrics`, what the columns of the policy lack, and what `keep.force` and `keep.max_lost` do.

    Args:
        engine: with `documents`, `nodes`, `pairs` and `keep`.
        by_loss: whether `keep.max_lost` is set.

    Cost: on Spark an action for columns that are read from the records, and one if documents or losses are given.
    """
    counts = _count_unplaced(engine, order.read) if order.read else {}
    if forced is None and not by_loss:
        return counts
    forced_counts: dict[str, Any] = engine.sql(FORCED.format(forced=FORCED_WEIGHT // 2)).to_pylist()[0]
    return counts | forced_counts


def find_idle_globs(ask: Callable[[], Engine], prefer: Sequence[str] | None) -> list[str]:
    """Return the globs of `keep.prefer` that are the first to match no document's source, in order.

    Args:
        ask: returns an engine with `documents`; called only if there are globs.

    Cost: the different sources, until each glob has matched.
    """
    patterns = {glob: read_glob(glob) for glob in prefer or ()}
    idle = dict(patterns)
    sources = iter(ask().rows("SELECT DISTINCT source FROM documents") if patterns else ())
    while idle and (rows := list(islice(sources, SOURCES_TOGETHER))):
        unmatched = pa.array([source for (source,) in rows], pa.string())
        for glob, pattern in patterns.items():  # by RE2, in linear time: a stored glob may be anyone's
            is_matched = pc.match_substring_regex(unmatched, pattern)
            if pc.any(is_matched).as_py():
                idle.pop(glob, None)
            unmatched = unmatched.filter(pc.invert(is_matched))
    return list(idle)


def find_idle_values(ask: Callable[[], Engine], columns: Sequence[PolicyColumn]) -> list[str]:
    """Return the values listed in `keep.policy` that no document has, in order, each as `column=value`.

    Args:
        ask: returns an engine with `documents`; called only if values are listed.
        columns: those of the policy that are read from the records.

    Cost: the different values of each such column, until each listed one was met.
    """
    idle: list[str] = []
    for place, column in zip(places_of(columns), columns, strict=True):
        waiting = dict.fromkeys(column.listed)
        text = f"SELECT DISTINCT trim(element_at(policy, {place + 1})) FROM documents"  # noqa: S608 - a number
        for (value,) in ask().rows(text) if waiting else ():
            waiting.pop(value, None)
            if not waiting:
                break
        idle += [f"{column.path}={value}" for value in waiting]
    return idle


def _count_unplaced(engine: Engine, columns: Sequence[PolicyColumn]) -> dict[str, dict[str, int]]:
    """Count the documents that lack a value, or have no number, in each column that is read from the records."""
    asked = tuple((place, column.type == "number") for place, column in zip(places_of(columns), columns, strict=True))
    rows = engine.rows("SELECT policy FROM documents", partial(_count_batches, asked=asked),
                       "without_value array<long>, unparsable array<long>")  # fmt: skip
    none = np.zeros(len(columns), np.int64)  # of a collection without documents, which has no batches
    totals = [np.sum(np.array(counts), axis=0) for counts in zip((none, none), *rows, strict=True)]
    return {
        name: {column.path: int(count) for column, count in zip(columns, counts, strict=True) if count}
        for name, counts in zip(UNPLACED.names, totals, strict=True)
    }


def _count_batches(batches: Batches, *, asked: tuple[tuple[int, bool], ...]) -> Batches:
    for batch in batches:
        lacking, others = [], []
        for at, number in asked:
            values = pc.list_element(batch.column("policy"), at)
            is_there = pc.fill_null(pc.match_substring_regex(values, r"\S"), False)  # noqa: FBT003 - the value that fills
            is_other = pc.and_not(is_there, pc.match_substring_regex(pc.fill_null(values, ""), NUMBERS))
            lacking.append(len(values) - (pc.sum(is_there).as_py() or 0))
            others.append(int(number) * (pc.sum(is_other).as_py() or 0))
        yield pa.RecordBatch.from_pylist([{"without_value": lacking, "unparsable": others}], UNPLACED)
