"""The keep-list where a document may only be replaced by one of equal values: the choice among sketches by value.

    nodes                  --join-->       slots          NODES, divided by value: the node is the first document
    slots                  --HEADS-->      slot_heads     the first document of each by policy
    matches, slot_heads    --MATCHES-->    slot_matches   the near-duplicates of equal values
    those, graph           --IN_ORDER-->   replaced       by a kernel: what is removed, and for what
    replaced, graph        --GRAPH-->      slot_graph     GRAPH of the slots

A slot is what a node is without values: documents of one sketch and one value. So `list_kept` takes these tables in
place of nodes, matches and graph. Leaders and clusters do not depend on values.
"""

import pyarrow as pa

from nddup.engines.engine import Batches, Engine
from nddup.mining.keep_verdicts import FORCED_WEIGHT
from nddup.mining.named_choice import NamedChoice
from nddup.stages.expand import TOLD
from nddup.tables import DIRECTED, REPLACED

KEYED = "SELECT *, concat_ws(' ', node, guard) AS slot_key FROM nodes"

GROUPS = """
    SELECT concat_ws(' ', node, guard) AS slot_key, max(n) AS n, min(doc_key) AS slot, count(*) AS copies
    FROM nodes GROUP BY node, guard
"""

SLOTS = """
    SELECT doc_key, doc_id, slot AS node, size, weight, policy, content_fingerprint, copies AS n, node AS sketch, guard
    FROM slotted
"""

HEADS = """
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


def divide(engine: Engine, sides: str, fits: str, *, by_weight: bool) -> dict[str, str]:
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
    told = [f"CASE WHEN a.node > b.node THEN m.{turned.get(name, name)} ELSE m.{name} END AS {name}" for name in TOLD]
    before, other_before = ("-l.weight", "-o.weight") if by_weight else ("0", "0")
    half = FORCED_WEIGHT // 2
    engine.see("keyed", engine.answer(KEYED))
    engine.join("slotted", "keyed", GROUPS, key="slot_key", by="doc_id")
    engine.see("slots", engine.answer(SLOTS))
    engine.see("slot_heads", engine.answer(HEADS))
    engine.see("slot_matches", engine.answer(MATCHES.format(told=", ".join(told))))
    ordered = IN_ORDER.format(sides=sides, fits=fits, half=half, before=before, other_before=other_before)
    engine.see("replaced", engine.answer(ordered, replace, REPLACED, by=BY))
    engine.see("slot_graph", engine.answer(GRAPH.format(half=half)))
    return {"nodes": "slots", "matches": "slot_matches", "graph": "slot_graph"}


def replace(batches: Batches) -> Batches:
    """Yield REPLACED: a slot is removed for the first in its rows of `IN_ORDER` that is kept."""
    choice = NamedChoice()
    for batch in batches:
        ends = [batch.column(name) for name in REPLACED_BY]
        chosen = pa.array(choice.feed(*(end.to_numpy() for end in ends)))
        yield REPLACED.batch([end.filter(chosen) for end in ends])
