"""From sets of nodes to clusters of documents, named by their members; `make_clusters` makes all three tables.

    sets, graph, nodes     --SETS_OF_NODES-->   the nodes of each set: mined ones, and groups without a neighbour
    nodes, sets of nodes   --name_batches-->    NAMED, from the members of each set in the order of their ids
    nodes, keep            --STARRED-->         in `partition`, each kept document with its duplicates, a star
    starred, sketches      --count_support-->   SUPPORTS, what the distinct sketches of a star share
    named                  --SELECT-->          CLUSTERS, MEMBERS
    graph, matches, nodes  --SELECT-->          FALSE_COMPONENTS: the errors of transitive closure

A cluster may have as many members as there are documents, so no row has all of them. The kernel reads the members in
order, and holds only their digest, the first ids and the member that the policy prefers.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.engines.engine import Batches, Engine, EngineTable
from nddup.ground.columns import one_chunk, ragged_of
from nddup.mining.cluster_modes import intersect
from nddup.mining.modes import MEANINGS, MODES
from nddup.settings import plan
from nddup.settings.schema import Config
from nddup.stages.run_engine import Saved
from nddup.tables import NAMED, SUPPORTS

DIGITS = 16
"""Hex digits of a cluster's id."""

COVERAGES = tuple(MEANINGS)
"""The values of `coverage`: what the sets of a component cover."""

SET_ID = "unhex(md5(concat(ordinal, ':', CAST(positions AS STRING))))"
"""A set is named by a digest: if its positions were its name, each row would be as long as the set."""

ALONE = """
    SELECT unhex(md5(concat('=', d.node))) AS set_id, d.node, d.doc_id, d.size
    FROM nodes AS d ANTI JOIN graph AS g ON d.node = g.node
    WHERE d.doc_key = d.node AND d.n > 1 AND d.size >= {least_size}
"""
"""Groups of equal sketches without a neighbour, each as a set of one node."""

PLACES = f"SELECT {SET_ID} AS set_id, ordinal, explode(positions) AS position FROM sets"  # noqa: S608

SETS_OF_NODES = """
    WITH held AS (
        SELECT p.set_id, g.node
        FROM ({places}) AS p JOIN graph AS g ON p.ordinal = g.ordinal AND p.position = g.position
        UNION ALL
        SELECT set_id, node FROM ({alone}) AS a
    )
"""

LIGHT = "SELECT set_id, node, CAST(0 AS BIGINT) AS n FROM held"
HEAVY = """
    SELECT /*+ BROADCAST(heavy) */ held.set_id, held.node, coalesce(heavy.n, 0) AS n
    FROM held LEFT JOIN (SELECT node, n FROM nodes WHERE doc_key = node AND n >= {heavy}) AS heavy
    ON held.node = heavy.node
"""
"""The nodes of each set, with the number of documents of a heavy one."""

IN_ORDER = """
    SELECT {set_id} AS set_id, false AS is_member, g.component AS name, CAST(s.support AS BIGINT) AS before,
           CAST(CASE s.coverage {places_of} END AS BIGINT) AS policy
    FROM sets AS s JOIN (SELECT ordinal AS of_component, component FROM graph WHERE position = 0) AS g
    ON s.ordinal = g.of_component
    UNION ALL
    SELECT set_id, false AS is_member, doc_id AS name, CAST(size AS BIGINT) AS before,
           CAST({coverage} AS BIGINT) AS policy
    FROM ({alone}) AS a
    UNION ALL
    SELECT set_id, true AS is_member, doc_id AS name, CAST({before} AS BIGINT) AS before, policy FROM membership
"""
"""What the kernel reads: for each set a header row (`is_member` is false), then its members in the order of their ids.

Headers and members fill the same columns: a header has the component as `name`, the support as `before`, and the place
of its coverage in `COVERAGES` as `policy`.
"""

STARRED = """
    WITH told AS (
        SELECT coalesce(k.duplicate_of, d.doc_id) AS star, d.doc_id, d.first_id, d.node, d.size, d.policy, k.kept
        FROM nodes AS d JOIN keep AS k ON d.doc_id = k.doc_id WHERE d.size > 0
    )
    SELECT star, doc_id, first_id, node, size, policy FROM told
    WHERE NOT kept OR doc_id IN (SELECT star FROM told WHERE NOT kept)
"""

SHARED = """
    SELECT p.star, f.sketch
    FROM (SELECT DISTINCT star, node FROM starred) AS p
    SEMI JOIN (SELECT star FROM starred GROUP BY star HAVING min(node) < max(node)) AS several ON p.star = several.star
    JOIN sketches AS f ON p.node = f.node
"""
"""The sketches of the stars that have several."""

STARS_IN_ORDER = """
    SELECT unhex(md5(s.star)) AS set_id, false AS is_member, coalesce(g.component, s.first_id) AS name,
           CAST(coalesce(h.support, s.size) AS BIGINT) AS before, CAST({coverage} AS BIGINT) AS policy
    FROM starred AS s LEFT JOIN supports AS h ON s.star = h.star
    LEFT JOIN (SELECT node, component FROM graph) AS g ON s.node = g.node WHERE s.doc_id = s.star
    UNION ALL
    SELECT unhex(md5(star)) AS set_id, true AS is_member, doc_id AS name,
           CAST(CASE WHEN doc_id = star THEN 0 ELSE 1 END AS BIGINT) AS before, policy FROM starred
"""
"""Rows of stars as `IN_ORDER` has them of sets: the kept document, which precedes its duplicates, represents them."""

CLUSTERS = """
    SELECT cluster_id, support, size, members, component, coverage FROM named WHERE what = 'cluster'
"""

MEMBERS = """
    SELECT c.cluster_id, m.doc_id, m.doc_id = c.first_id AS representative
    FROM named AS m JOIN named AS c ON m.set_id = c.set_id
    WHERE m.what = 'member' AND c.what = 'cluster'
"""

FALSE_COMPONENTS = """
    WITH placed AS (
        SELECT g.node, g.component, g.by_leaders, d.n FROM graph AS g JOIN nodes AS d ON g.node = d.doc_key
    ),
    counted AS (
        SELECT component, by_leaders, n AS size, shiftright(n * (n - 1), 1) AS pairs FROM placed
        UNION ALL
        SELECT a.component, false AS by_leaders, CAST(0 AS BIGINT) AS size, a.n * b.n AS pairs
        FROM matches AS m JOIN placed AS a ON m.node_a = a.node JOIN placed AS b ON m.node_b = b.node
    ),
    whole AS (
        SELECT component, CAST(sum(size) AS BIGINT) AS size, CAST(sum(pairs) AS BIGINT) AS pairs,
               bool_or(by_leaders) AS by_leaders
        FROM counted GROUP BY component
    )
    SELECT component, size, pairs, shiftright(size * (size - 1), 1) - pairs AS invented,
           {exact} AND NOT by_leaders AS exact
    FROM whole WHERE shiftright(size * (size - 1), 1) > pairs
"""
"""A node adds its documents and the pairs among them, an edge the product of the documents of its ends."""

COUNTS = {
    "clusters": {
        "covered_clusters": "count_if(coverage = 'pairs')",
        "led_clusters": "count_if(coverage = 'documents')",
        "cut_clusters": "count_if(size > array_size(members))",
    },
    "false_components": {
        "invented_pairs": "sum(invented)",
        "most_invented": "max(invented)",
        "bounded_components": "count_if(NOT exact)",
        "unlisted_pairs": "sum(CASE WHEN exact THEN 0 ELSE invented END)",
    },
    "members": {},
}
"""Counts of each table for `metrics.json`, as aggregates. A cut row lists fewer members than its cluster has; a bounded
component has a bound of its invented pairs only."""

COMPONENTS = """
    SELECT count(DISTINCT component) AS components,
           count(DISTINCT CASE WHEN coverage = 'pairs' THEN component END) AS covered_components,
           count(DISTINCT CASE WHEN coverage = 'documents' THEN component END) AS led_components
    FROM (SELECT component, coverage FROM clusters UNION ALL SELECT component, NULL FROM false_components) AS c
"""
"""What the tables tell of the components."""

COVERED = "SELECT count(DISTINCT component) AS covered_components FROM clusters WHERE coverage = 'pairs'"


@dataclass(frozen=True)
class Naming:
    """How sets become clusters.

    Attributes:
        least_size: fewest features for which equal sketches are near-duplicates.
        max_listed: most ids in the row of a cluster.
        mode: what the sets are, one of `modes.MODES`.
        by_weight: whether the heaviest member is preferred, before the policy decides.
        heavy: documents of one node that are too many for a task, on Spark; None: no node has so many.
    """

    least_size: int
    max_listed: int
    mode: str = "all"
    by_weight: bool = False
    heavy: int | None = None

    @property
    def before(self) -> str:
        """What decides before the policy which member represents a cluster, least first."""
        return "-weight" if self.by_weight else "0"

    @property
    def coverage(self) -> int:
        """The place in `COVERAGES` of what a set covers that no search found."""
        return COVERAGES.index(MODES[self.mode].coverage)


_STAR = pa.schema({"star": pa.string(), "sketch": pa.list_(pa.int64())})


def make_clusters(
    engine: Engine, save: Callable[..., Saved], mine: Callable[[], Any], config: Config, *, heavy: int | None = None
) -> tuple[dict[str, Saved], dict[str, int]]:
    """Make CLUSTERS, MEMBERS and FALSE_COMPONENTS; return them by name, and what `ClustersMetrics` counts of them.

    Args:
        engine: with `graph`, `nodes`, `matches` and `pairs`; where clusters follow the keep-list, also with `keep`, and
            `sketches` of the nodes in the graph.
        save: stores a table by its name, with aggregates of it, and lets the engine see it.
        mine: makes SETS; called if the mode has clusters that do not follow the keep-list.
        heavy: as of `Naming`.
    """
    threshold, asked, is_exact = plan.threshold_of(config), config.clusters, plan.kind_of(config.sketch).is_exact
    listed = list_false_components(engine, is_exact=is_exact)
    tables = {"false_components": save("false_components", listed, COUNTS["false_components"])}
    least = max(threshold.least_size, asked.support or 0)
    naming = Naming(least, asked.max_listed, asked.mode, by_weight=threshold.is_containment, heavy=heavy)
    if MODES[asked.mode].follows_keep:
        save("starred", engine.answer(STARRED))
        save("named", name_stars(engine, naming))
    elif MODES[asked.mode].has_clusters:
        engine.see("sets", mine())
        save("named", name_sets(engine, naming))
    else:
        save("named", engine.answer("SELECT node FROM nodes LIMIT 0", no_rows, NAMED))
    tables["clusters"] = save("clusters", engine.answer(CLUSTERS), COUNTS["clusters"])
    tables["members"] = save("members", engine.answer(MEMBERS))

    counts = {"covered_components": 0, "pairs_below_support": 0}
    counts |= {**tables["false_components"].counts, **tables["clusters"].counts}
    if counts["covered_clusters"]:
        counts |= engine.sql(COVERED).to_pylist()[0]
    if asked.support:
        counts |= engine.count("pairs", {"pairs_below_support": f"count_if(overlap < {asked.support})"})
    return tables, counts


def no_rows(batches: Batches) -> Batches:
    """Return NAMED of no cluster."""
    del batches
    return iter(())


def list_false_components(engine: Engine, *, is_exact: bool) -> EngineTable:
    """Return FALSE_COMPONENTS: the components with documents that are not near-duplicates, and these pairs counted.

    To take a component for a cluster is to claim that all its documents are near-duplicates of each other; `invented`
    counts the pairs of its documents that are not: all pairs of documents minus the near-duplicate ones.

    Args:
        engine: with the tables `graph` (node, component, by_leaders), `matches` (node_a, node_b), and `nodes`
            (doc_key, n), which has a row at least for each first document of its sketch.
        is_exact: whether every near-duplicate pair outside components given by leaders was found; else `invented` is an
            upper bound. In components given by leaders it always is.

    Cost: joins of narrow rows, on Spark with a shuffle each: the graph with the nodes, the edges with either end.
    """
    return engine.answer(FALSE_COMPONENTS.format(exact=str(is_exact).lower()))


def name_sets(engine: Engine, naming: Naming) -> EngineTable:
    """Return NAMED: each set with all documents of its sketches, and each group without a neighbour.

    Args:
        engine: with `sets`, positions in components; `graph`, the nodes that have a neighbour; and `nodes`.

    Cost: a sort of the members, and a digest of each cluster's ids. On Spark shuffles of the sets on component, of
        their places and the nodes on node, and of the members on their set.
    """
    alone = ALONE.format(least_size=naming.least_size)
    members = LIGHT if naming.heavy is None else HEAVY.format(heavy=naming.heavy)
    engine.join(
        "membership", "nodes", SETS_OF_NODES.format(places=PLACES, alone=alone) + members, key="node", by="doc_id"
    )
    in_order = IN_ORDER.format(
        set_id=SET_ID,
        places_of=" ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(COVERAGES)),
        coverage=naming.coverage,
        alone=alone,
        before=naming.before,
    )
    kernel = partial(name_batches, max_listed=naming.max_listed)
    return engine.answer(in_order, kernel, NAMED, by=("set_id", "is_member", "name"))


def name_stars(engine: Engine, naming: Naming) -> EngineTable:
    """Return NAMED: each kept document with its duplicates.

    Args:
        engine: with `starred`, `graph`, and `sketches` of the nodes in it.

    Cost: sorts of the members, and of the sketches of stars with several. On Spark shuffles of these twice, on their
        node and on their star, and of the members on their star.
    """
    engine.see("supports", engine.answer(SHARED, count_support, SUPPORTS, by=("star",)))
    kernel = partial(name_batches, max_listed=naming.max_listed)
    in_order = STARS_IN_ORDER.format(coverage=naming.coverage)
    return engine.answer(in_order, kernel, NAMED, by=("set_id", "is_member", "name"))


def count_support(batches: Batches) -> Batches:
    """Yield SUPPORTS from rows of `SHARED`, those of a star together: the features that all its sketches have."""
    last: list[pa.RecordBatch] = []
    for batch in batches:
        rows = pa.Table.from_batches([*last, batch.select(_STAR.names).cast(_STAR)], _STAR)
        if not len(rows):
            continue
        stars = one_chunk(rows["star"])
        is_first = np.append(True, np.asarray(pc.not_equal(stars[1:], stars[:-1])))
        starts = np.append(np.flatnonzero(is_first), len(rows))
        counts, common = intersect(ragged_of(rows["sketch"]), np.arange(len(rows)), starts)

        # The last star may go on in the next batch: what its sketches share so far stands for them.
        firsts = stars.take(pa.array(starts[:-1]))
        yield SUPPORTS.batch([firsts[:-1], pa.array(counts[:-1])])
        shared = pa.array([common.view(np.int64)], _STAR.field("sketch").type)
        last = [pa.RecordBatch.from_arrays([firsts[-1:], shared], schema=_STAR)]
    for row in last:
        yield SUPPORTS.batch([row.column("star"), pc.list_value_length(row.column("sketch"))])


@dataclass
class _Cluster:
    """A set whose members are being read: its header, and a summary of the members read so far."""

    set_id: bytes
    component: str
    support: int
    coverage: int
    first: tuple[int, int, str] | None = None
    size: int = 0
    n_listed: int = 0
    listed: list[pa.Array] = field(default_factory=list)
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def add(self, ids: pa.Array, ended: memoryview, first: tuple[int, int, str], max_listed: int) -> None:
        """Add the next members of the set.

        Args:
            ids: the ids of the members, in order.
            ended: the ids as bytes with a zero after each, end to end.
            first: (before, policy, doc_id) of the preferred one of these members.
            max_listed: most ids to list.
        """
        self.digest.update(ended)
        self.size += len(ids)
        self.first = first if self.first is None else min(self.first, first)
        if self.n_listed < max_listed:
            self.listed.append(ids[: max_listed - self.n_listed])
            self.n_listed += len(self.listed[-1])


def name_batches(batches: Batches, *, max_listed: int) -> Batches:
    """Yield NAMED from rows of `IN_ORDER`: the members of each batch, and a row for each cluster that ends in it."""
    cluster: _Cluster | None = None
    for batch in batches:
        ids = batch.column("name").cast(pa.string())
        is_header = ~batch.column("is_member").to_numpy(zero_copy_only=False)
        data, offsets = _with_zeros(ids)
        preferred = _list_preferred(batch, is_header)
        headers = _list_headers(batch.filter(pa.array(is_header)))

        # Headers cut the batch into runs of members, each run of one set.
        bounds = [0, *np.flatnonzero(is_header).tolist(), len(ids)]
        complete = []
        for number, (start, end) in enumerate(pairwise(bounds)):
            if number:  # rows before the first header belong to the last set of the previous batch
                complete += _ended(cluster)
                cluster = headers[number - 1]
            at = start + (number > 0)
            if cluster is not None and end > at:
                cluster.add(ids[at:end], data[offsets[at] : offsets[end]], preferred[number], max_listed)

        members = batch.filter(pa.array(~is_header))
        columns = {"set_id": members.column("set_id"), "doc_id": members.column("name")}
        yield _as_named("member", columns, members.num_rows)
        yield _cluster_rows(complete)
    yield _cluster_rows(_ended(cluster))


def _list_headers(rows: pa.RecordBatch) -> list[_Cluster]:
    columns = (rows.column(name).to_pylist() for name in ("set_id", "name", "before", "policy"))
    return [_Cluster(*header) for header in zip(*columns, strict=True)]


def _ended(cluster: _Cluster | None) -> list[_Cluster]:
    """Return the set in a list if it is a cluster, with at least two documents; else an empty list."""
    return [cluster] if cluster is not None and cluster.size > 1 else []


def _with_zeros(ids: pa.Array) -> tuple[memoryview, NDArray[np.int32]]:
    """Return the ids as bytes with a zero after each, end to end, and their offsets, (n + 1,); a null has no bytes."""
    ended = pc.binary_join_element_wise(ids.cast(pa.binary()), b"", b"\0")
    _, offsets, data = ended.buffers()
    return memoryview(data or b""), np.frombuffer(offsets, np.int32, len(ids) + 1)


def _list_preferred(batch: pa.RecordBatch, is_header: NDArray[np.bool_]) -> dict[int, tuple[int, int, str]]:
    """Return the preferred member of each run, (before, policy, doc_id), by the number of headers before the run."""
    rows = np.flatnonzero(~is_header)
    members = batch.take(pa.array(rows))
    before, policy = (members.column(name).to_numpy() for name in ("before", "policy"))
    numbers = np.cumsum(is_header)[rows]
    order = np.lexsort((policy, before, numbers))  # stable: of equals, the smallest id stays first
    firsts = order[np.unique(numbers[order], return_index=True)[1]]
    names = members.column("name").take(pa.array(firsts)).to_pylist()
    preferred = zip(before[firsts].tolist(), policy[firsts].tolist(), names, strict=True)
    return dict(zip(numbers[firsts].tolist(), preferred, strict=True))


def _cluster_rows(clusters: list[_Cluster]) -> pa.RecordBatch:
    pieces = [piece for cluster in clusters for piece in cluster.listed]
    offsets = np.cumsum([0, *(cluster.n_listed for cluster in clusters)]).astype(np.int32)
    ids = pa.concat_arrays(pieces) if pieces else pa.array([], pa.string())
    columns = {
        "set_id": [cluster.set_id for cluster in clusters],
        "cluster_id": [cluster.digest.hexdigest()[:DIGITS] for cluster in clusters],
        "first_id": [cluster.first and cluster.first[2] for cluster in clusters],
        "support": [cluster.support for cluster in clusters],
        "size": [cluster.size for cluster in clusters],
        "members": pa.ListArray.from_arrays(pa.array(offsets), ids),
        "component": [cluster.component for cluster in clusters],
        "coverage": [COVERAGES[cluster.coverage] for cluster in clusters],
    }
    return _as_named("cluster", columns, len(clusters))


def _as_named(what: str, columns: Mapping[str, Any], rows: int) -> pa.RecordBatch:
    """Return rows of NAMED of one kind, `member` or `cluster`; columns that the kind does not have are null."""
    schema = NAMED.arrow
    arrays = [pa.repeat(what, rows)]
    for name in schema.names[1:]:
        kind, column = schema.field(name).type, columns.get(name)
        if column is None:
            arrays.append(pa.nulls(rows, kind))
        else:
            arrays.append(column.cast(kind) if isinstance(column, pa.Array) else pa.array(column, kind))
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)
