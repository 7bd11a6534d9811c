"""The components of a run: all documents that found pairs or equal texts connect, on either engine.

    pairs, documents   --label_batches-->  LABELS          each document with the first one it is connected with
    labels, sketches   --join_led-->       LED_LABELS      components given by leaders, joined as their sketches are

Of a component with more than `pairs.max_edges` pairs only those around leaders are stored, which may leave it in
pieces. The sketches join such pieces again: all that are connected by candidates, where texts confirmed pairs, so what
is called a component here may then hold more than one, and never less.
"""

from functools import partial

import numpy as np
import pyarrow as pa

from nddup.engines.engine import Batches, Engine, Kernel
from nddup.ground.columns import ragged_of
from nddup.matching.threshold import Threshold
from nddup.mining.family_pairs import connect_sketches
from nddup.mining.pair_graph import Edges, label_components
from nddup.tables import Table, working

_LABELS = "node long, root long"
LABELS = "Nodes with an edge, each with the smallest of its component."
LED_LABELS = "LABELS of the sketches of components given by leaders."
WHOLE_LABELS = "LABELS of both."

EDGES = """
    SELECT 0 AS one, a.doc_key AS node_a, b.doc_key AS node_b
    FROM {before}pairs AS p JOIN {before}documents AS a ON p.doc_a = a.doc_id
    JOIN {before}documents AS b ON p.doc_b = b.doc_id
    UNION ALL
    SELECT 0 AS one, d.doc_key AS node_a, g.doc_key AS node_b
    FROM {before}documents AS d JOIN {before}documents AS g ON d.group = g.doc_id WHERE d.doc_id <> g.doc_id
"""
"""Found pairs, and documents of equal text, or without any token and of equal bytes."""

LED = """
    SELECT DISTINCT coalesce(j.root, d.doc_key) AS root
    FROM {before}keep AS k JOIN {before}documents AS d ON k.doc_id = d.doc_id
    LEFT JOIN {before}labels AS j ON d.doc_key = j.node
    WHERE k.leader
"""
"""The pieces of components given by leaders: each has a leader."""

LED_SKETCHES = """
    SELECT 0 AS one, d.doc_key AS node, d.sketch, d.n_features
    FROM {before}documents AS d JOIN {before}labels AS j ON d.doc_key = j.node JOIN {before}led AS l ON j.root = l.root
    WHERE d.doc_id = d.group
"""

BOTH = """
    SELECT 0 AS one, node AS node_a, root AS node_b FROM {before}labels
    UNION ALL SELECT 0 AS one, node AS node_a, root AS node_b FROM {before}led_labels
"""


def label_documents(engine: Engine, threshold: Threshold, *, before: str = "") -> str:
    """Make the labels of the documents of a run: node and root, `doc_key`s, of those that are connected with others.

    Args:
        engine: with `documents`, `pairs` and `keep`.
        threshold: of the run: when two sketches are near-duplicates, or candidates.
        before: what the names of these tables, and of the labels, begin with.

    Returns:
        The name of the table.

    Cost: joins of narrow rows with `documents`, and a call that holds all edges, 40 bytes each. On Spark it is one
        task. Where several pieces of components given by leaders were found, one more holds their sketches, 60 bytes an
        id.
    """

    def named(name: str, meaning: str) -> Table:
        return working(before + name, _LABELS, meaning)

    labels, led, whole = named("labels", LABELS), named("led_labels", LED_LABELS), named("whole_labels", WHOLE_LABELS)
    make_seen(engine, labels, EDGES.format(before=before), partial(label_batches, names=labels), by=("one",))
    engine.materialise(f"{before}led", LED.format(before=before))
    if engine.count(f"{before}led", {"n": "count(*)"})["n"] <= 1:
        return labels.name
    kernel = partial(join_led, names=led, threshold=threshold)
    make_seen(engine, led, LED_SKETCHES.format(before=before), kernel, by=("one", "node"))
    make_seen(engine, whole, BOTH.format(before=before), partial(label_batches, names=whole), by=("one",))
    return whole.name


def make_seen(engine: Engine, table: Table, text: str, kernel: Kernel, *, by: tuple[str, ...]) -> None:
    """Materialise what a kernel makes of a query over any tables, also those that the engine only sees."""
    engine.see(f"{table.name}_made", engine.answer(text, kernel, table, by=by))
    engine.materialise(table.name, f"SELECT * FROM {table.name}_made")  # noqa: S608 - our names


def label_batches(batches: Batches, *, names: Table) -> Batches:
    """Yield LABELS under a name, from all edges (node_a, node_b)."""
    edges = Edges()
    for batch in batches:
        edges.add(batch.column("node_a").to_numpy(), batch.column("node_b").to_numpy())
    nodes = edges.names()
    ordinals = label_components(edges.take_ends(nodes), nodes=len(nodes)).ordinals
    firsts = np.unique(ordinals, return_index=True)[1]
    yield names.batch([pa.array(nodes), pa.array(nodes[firsts[ordinals]])])


def join_led(batches: Batches, *, names: Table, threshold: Threshold) -> Batches:
    """Yield LED_LABELS under a name, from node, sketch and n_features of components given by leaders."""
    rows = pa.Table.from_batches(list(batches))
    sketches, nodes = ragged_of(rows["sketch"]), rows["node"].to_numpy()
    totals = threshold.totals(np.diff(sketches.offsets).astype(np.int32), rows["n_features"].to_numpy())
    roots = connect_sketches(sketches, totals, threshold)
    yield names.batch([pa.array(nodes), pa.array(nodes[roots])])
