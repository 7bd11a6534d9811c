"""The order of the steps on one machine, without Spark.

files or texts --sketch-->   documents, rejects
documents      --pair-->     pairs
pairs          --cluster-->  clusters, members, false_components
               --keep-->     keep

Each step returns its tables, the arrays that the next step needs, and its counts for `metrics.json`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.embedded.collapse import Collapsed, Nodes, collapse, name_nodes
from nddup.embedded.confirm import NO_LEADERS, Confirmer, Known, Led, Texts, known_pairs, pair_families, read_candidates
from nddup.embedded.match import Matches, PairingOptions, match
from nddup.embedded.memory import OF_EDGE, OF_ID, OF_MATCH, OF_MEMBER, OF_PAIR
from nddup.embedded.mine_components import Graph, build_graph, mine
from nddup.embedded.old_run import Old
from nddup.embedded.outputs import count_parts
from nddup.embedded.read_records import read_records
from nddup.embedded.settle_onto import Settled, settle_onto
from nddup.embedded.workers import Workers
from nddup.ground.columns import mean_bytes, one_chunk, take
from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import MiningRule
from nddup.mining.keep_verdicts import Forced
from nddup.mining.modes import MODES
from nddup.scanning.collection import Collection
from nddup.settings.plan import budget_of, confirm_rule_of, graph_rule, kind_of, record_limits, threshold_of, tokens_of
from nddup.settings.schema import Config
from nddup.stages.expand import TOLD, expand
from nddup.stages.keep import count_kept, list_kept, replacing_of
from nddup.stages.names import make_clusters
from nddup.stages.run_engine import NO_COUNTS, Saved
from nddup.stages.stage import Unpaired
from nddup.tables import DIRECTED, KEEP, PAIRS, table_called

if TYPE_CHECKING:
    from nddup.engines.duck import DuckEngine
    from nddup.engines.engine import EngineTable

Counts = dict[str, int]

NOTED = (
    "median_tokens", "undecodable_records", "undecodable_places", "stripped_records", "stripped_files",
    "guessed_records", "guessed_files", "inside_records", "inside_files",
    "unread_records", "unread_bytes", "unread_parts", "nested_records", "made_up_ids", "left_out_shingles", "later_ids",
)  # fmt: skip
"""Counts in the note of `documents`."""

IN_ORDER = {"false_components": ("component",), "clusters": ("cluster_id",), "members": ("cluster_id", "doc_id")}
"""What the rows of a table are sorted by."""


@dataclass(frozen=True)
class Sketched:
    """The documents, the rejects, and the lexicon where the kind uses one."""

    documents: pa.Table
    rejects: pa.Table
    lexicon: pa.Table | None
    parts: pa.Table
    """PARTS: how many records precede each part of a file, so that a record can be found again."""
    counts: Counts
    reasons: dict[str, int]
    settled: Settled | None = None
    """If a later run may go on from this one."""


@dataclass(frozen=True)
class Paired:
    """The pairs, and the distinct sketches behind them."""

    pairs: "EngineTable"
    """PAIRS; once a run has written them, the files that hold them."""
    nodes: Nodes
    matches: Matches
    led: Led
    counts: Counts
    engine: "DuckEngine"
    """With the tables `nodes` and `matches`."""
    pruned_to: list[int] = field(default_factory=list)
    edits: Counts | None = None

    @property
    def stage_counts(self) -> dict[str, Any]:
        """The counts of the stage, by their names in the metrics."""
        return {**self.counts, "pruned_to": self.pruned_to, "edits": self.edits}


@dataclass(frozen=True)
class Clustered:
    """The clusters, and the pair graph they come from."""

    clusters: pa.Table
    members: pa.Table
    false_components: pa.Table
    graph: Graph
    counts: Counts
    engine: "DuckEngine"
    """With the tables `nodes`, `graph` and `matches`."""
    keep: pa.Table | None
    """KEEP where the clusters follow it."""


@dataclass(frozen=True)
class Kept:
    """The keep-list."""

    keep: pa.Table
    counts: Counts


def sketch(
    source: Collection | pa.Table, config: Config, workers: Workers, *, renames: bool = False, old: Old | None = None
) -> Sketched:
    """Read, sketch and number every record, and collapse equal sketches.

    Args:
        source: files, or TEXTS.
        renames: whether a later record of an id becomes a document of another name (`collapse`).
        old: the run that this one goes on from: its records precede these. None where no later one goes on from this.
    """
    read = read_records(source, config, workers)
    workers.report_progress("collapse", 0, len(read.records))
    if old is None:
        collapsed: Collapsed | Settled = collapse(read.records, read.silent, renames=renames, take=workers.take_rows)
    else:
        collapsed = settle_onto(old, config, read.records, read.silent)
    reasons = {row["values"]: row["counts"] for row in pc.value_counts(collapsed.rejects["reason"]).to_pylist()}
    counts = read.counts | {"records": len(collapsed.documents) + len(collapsed.rejects), "later_ids": collapsed.later}
    counts |= {} if old is None else add_noted(old.noted, read.counts)
    if len(collapsed.documents):
        counts["median_tokens"] = int(
            np.quantile(collapsed.documents["n_tokens"].to_numpy(), 0.5, method="inverted_cdf")
        )
    parts = count_parts(read.records)
    if isinstance(collapsed, Settled):
        parts = parts.set_column(2, "before", pc.add(parts["before"], collapsed.first_new))
        return Sketched(collapsed.documents, collapsed.rejects, read.lexicon, parts, counts, reasons, collapsed)
    return Sketched(collapsed.documents, collapsed.rejects, read.lexicon, parts, counts, reasons)


def add_noted(before: Mapping[str, Any], counts: Mapping[str, Any]) -> Counts:
    """Return the counts of a batch with those noted of the batches before it."""
    added = [name for name in NOTED if name in before and name in counts and name not in ("median_tokens", "later_ids")]
    return {name: before[name] + counts[name] for name in added}


def count_sketches(documents: pa.Table) -> Counts:
    """Count the distinct sketches of DOCUMENTS, their postings, the most features of a document, and addresses."""
    sizes = pc.list_value_length(documents["sketch"])
    is_distinct = pc.and_(pc.equal(documents["doc_id"], documents["group"]), pc.greater(sizes, 0))
    return {
        "distinct_sketches": pc.sum(is_distinct).as_py() or 0,
        "most_features": pc.max(documents["n_features"]).as_py() or 0,
        "postings": pc.sum(sizes.filter(is_distinct)).as_py() or 0,
        "addresses": len(documents) - documents["url"].null_count,
    }


def pair(  # noqa: PLR0913 - what is read, of what, and what is known
    documents: pa.Table,
    config: Config,
    workers: Workers,
    source: Collection | pa.Table | None = None,
    *,
    known: pa.Table | None = None,
    search: Callable[[Nodes], Matches] | None = None,
    forced: Forced | None = None,
    read: Callable[[Matches, Nodes], Confirmer | None] | None = None,
) -> Paired:
    """Find the near-duplicate documents.

    Args:
        documents: DOCUMENTS of this or any other run.
        source: the files or TEXTS that the documents come from; needed where texts confirm pairs.
        known: PAIRS of these documents at a lower threshold, all of them; the source is then not needed.
        search: returns what `match` would find among these documents, where it is known or found another way.
        forced: the documents of `keep.force`.
        read: returns what compares the texts of candidates, where these are stored; the source is then not needed.

    Raises:
        NeedsSparkError: if the pairs may not fit in memory.
        CapacityError: if a feature or a family takes more than `pairs.max_comparisons`.
    """
    rule, led = PairingOptions.of(config), NO_LEADERS
    workers.report_progress("collapse", 0, len(documents))
    asked = config.keep
    nodes = name_nodes(documents, order=asked.order, levels=rule.levels, forced=forced, same=asked.same_places)
    distinct = nodes.distinct
    given = (distinct, nodes.sketches, nodes.n_features)
    matches = match(*given, rule, workers) if search is None else search(nodes)
    confirmer: Confirmer | Known | None = known_pairs(known, nodes, config.pairs.share) if known is not None else None
    confirmer = read(matches, nodes) if read is not None else confirmer
    if read is None and confirmer is None:
        confirmer = read_texts(matches, documents, nodes, config, source, workers)
    if rule.limits is not None:
        most_lost = config.keep.most_lost
        matches, led = pair_families(matches, nodes, rule, rule.limits, workers, confirmer, most_lost=most_lost)
    edits = None
    if confirmer is not None:
        confirmed = confirmer.confirm(matches, workers)
        matches, edits = confirmed.matches, dict(confirmed.counts)

    limit = config.pairs.expand_limit
    rows = count_pairs(matches, nodes, threshold=rule.threshold, expand_limit=limit)
    workers.report_progress("expand", 0, rows)
    workers.memory.require(
        OF_MATCH * len(matches.first) + rows * (OF_PAIR + 2 * OF_ID * mean_bytes(nodes.ids)),
        f"{len(documents):,} documents with {rows:,} pairs",
    )
    pairs, graph_engine = list_pairs(matches, nodes, config)
    counts = graph_engine.count("nodes", Unpaired.counts(rule.threshold.least_size)) | matches.counts()
    postings = int(nodes.sizes[distinct].sum(dtype=np.int64))
    counts |= {"distinct_sketches": len(distinct), "postings": postings, "limited": led.limited}
    return Paired(pairs, nodes, matches, led, counts, graph_engine, list(matches.rounds), edits)


def count_pairs(matches: Matches, nodes: Nodes, *, threshold: Threshold, expand_limit: int) -> int:
    """Count the rows that `expand` will make of the matches and of equal sketches."""
    counts = nodes.equals.astype(np.int64)
    products = counts[matches.first] * counts[matches.second]
    equal = counts[nodes.is_first & (nodes.sizes >= threshold.least_size)]
    within = equal * (equal - 1) // 2
    between = np.where(products <= expand_limit, products, 1)
    return int(between.sum() + np.where(within <= expand_limit, within, equal - 1).sum())


def list_pairs(matches: Matches, nodes: Nodes, config: Config) -> tuple[pa.Table, "DuckEngine"]:
    """Return PAIRS, sorted, and an engine with the tables `nodes` and `matches` that they are made of.

    A match of two sketches that one document each has is a row of PAIRS: by far most are, and need no join.
    """
    from nddup.engines.duck import DuckEngine  # noqa: PLC0415 - a question to a repository lists no pairs

    graph_engine, rows = DuckEngine("the graph"), matches.table(nodes.n_features)
    is_alone = (nodes.equals[matches.first] == 1) & (nodes.equals[matches.second] == 1)
    parts = [_list_alone(rows if is_alone.all() else rows.filter(pa.array(is_alone)), nodes)]
    graph_engine.see("nodes", nodes.table)
    if len(parts[0]) < len(rows) or (nodes.equals > 1).any():
        graph_engine.see("matches", rows.filter(pa.array(~is_alone)))
        confirm = "resemblance" if matches.common is not None else "edit" if matches.edit is not None else "none"
        threshold, limit = threshold_of(config), config.pairs.expand_limit
        parts.append(expand(graph_engine, threshold=threshold, expand_limit=limit, confirm=confirm).cast(PAIRS.arrow))
    graph_engine.see("matches", rows)
    if len(parts) == 1:
        return parts[0], graph_engine
    return pa.concat_tables(parts).sort_by([("doc_a", "ascending"), ("doc_b", "ascending")]), graph_engine


def _list_alone(rows: pa.Table, nodes: Nodes) -> pa.Table:
    """Return PAIRS of matches, as `expand` makes them, of sketches that one document each has; sorted by the ids.

    Memory: what is returned, and 40 bytes a match.
    """
    ends = np.stack([rows["node_a"].to_numpy(), rows["node_b"].to_numpy()])
    is_turned = nodes.id_rank[ends[0]] > nodes.id_rank[ends[1]]
    ends[:, is_turned] = ends[::-1, is_turned]
    order = np.argsort(nodes.id_rank[ends[0]].astype(np.int64) * len(nodes.id_rank) + nodes.id_rank[ends[1]])
    columns = {name: take(nodes.ids, end[order]) for name, end in zip(("doc_a", "doc_b"), ends, strict=True)}
    columns["star"] = pa.repeat(pa.scalar(value=False), len(rows))
    turned = {one: other for pair in DIRECTED.items() for one, other in (pair, pair[::-1])}
    del ends
    for name in TOLD:
        values, other = rows[name], turned.get(name, name)
        if values.null_count < len(rows):  # nulls are the same in any order
            values = values if other == name else pc.if_else(pa.array(is_turned), rows[other], values)
            values = take(values, order)
        columns[name] = values.cast(PAIRS.arrow.field(name).type)
    return pa.table(columns).select(PAIRS.names)


def read_texts(  # noqa: PLR0913, PLR0917 - what is read, of what, and how
    matches: Matches,
    documents: pa.Table,
    nodes: Nodes,
    config: Config,
    source: Collection | pa.Table | None,
    workers: Workers,
) -> Confirmer | None:
    """Return what compares the texts of candidates; None where the sketches decide."""
    rule = confirm_rule_of(config)
    if rule is None:
        return None
    if source is None:
        raise ValueError(f"pairs.confirm {config.pairs.confirm}: the texts are needed")
    is_front = kind_of(config.sketch).estimate == "smallest"
    texts = Texts(source, tokens_of(config), record_limits(config), rule, is_front)
    return read_candidates(matches, documents, nodes, texts, workers)


def cluster(paired: Paired, config: Config, workers: Workers) -> Clustered:
    """Find the clusters of near-duplicates, by `clusters.mode`; mode `none` makes the graph without clusters."""
    nodes, edges = paired.nodes, len(paired.matches.first)
    workers.report_progress("components", 0, edges)
    workers.memory.require(OF_EDGE * edges, f"components of {edges:,} pairs")
    graph = build_graph(paired.matches, nodes, led=paired.led, **graph_rule(config)._asdict())
    engine = paired.engine
    engine.see("graph", graph.table(nodes))
    engine.see("pairs", paired.pairs)

    def save(name: str, table: pa.Table, counts: Mapping[str, str] = NO_COUNTS) -> Saved:
        table = in_order(name, table) if name in IN_ORDER else table
        engine.see(name, table)
        return Saved(table, len(table), engine.count(name, counts) if counts else {}, {})

    kept = None
    if MODES[config.clusters.mode].follows_keep:
        kept = _decide_documents(engine, nodes, graph, config)
        removed = pc.sum(pc.invert(kept["kept"])).as_py() or 0
        _require_members(2 * removed, graph, nodes, workers)
        engine.see("keep", kept)
        engine.see("sketches", nodes.list_sketches(graph.nodes))
    made, counts = make_clusters(engine, save, partial(_mine, graph, nodes, config, workers), config)
    tables, counts = {name: one.table for name, one in made.items()}, graph.counts() | counts
    return Clustered(**tables, graph=graph, counts=counts, engine=engine, keep=kept)


def in_order(name: str, table: pa.Table) -> pa.Table:
    """Return one of the tables of `IN_ORDER`, sorted."""
    return table.cast(table_called(name).arrow).sort_by([(column, "ascending") for column in IN_ORDER[name]])


def _mine(graph: Graph, nodes: Nodes, config: Config, workers: Workers) -> pa.Table:
    sets = mine(graph, nodes, MiningRule(threshold_of(config), config.clusters.mode, budget_of(config)), workers)
    of_member = graph.starts[sets["ordinal"].to_numpy()].repeat(pc.list_value_length(sets["positions"]).to_numpy())
    members = int(nodes.equals[graph.nodes[of_member + pc.list_flatten(sets["positions"]).to_numpy()]].sum())
    _require_members(members, graph, nodes, workers)
    return sets


def _require_members(members: int, graph: Graph, nodes: Nodes, workers: Workers) -> None:
    workers.report_progress("name", 0, members)
    workers.memory.require(
        OF_EDGE * len(graph.edges) + members * (OF_MEMBER + OF_ID * mean_bytes(nodes.ids)),
        f"clusters of {members:,} members",
    )


def keep(paired: Paired, clustered: Clustered, config: Config) -> Kept:
    """Decide for every document whether it is kept; KEEP is in the order of the documents."""
    kept = clustered.keep
    if kept is None:
        kept = _decide_documents(clustered.engine, paired.nodes, clustered.graph, config)
    return _counted(kept)


def _decide_documents(engine: "DuckEngine", nodes: Nodes, graph: Graph, config: Config) -> pa.Table:
    """Return KEEP in the order of the documents.

    What is alone, in no pair and of a sketch of its own, stays: by far most documents, which need no join.
    """
    replacing = replacing_of(config)
    is_joined = (nodes.equals > 1) | (nodes.forced != 0) | replacing.is_guarded
    is_joined[graph.nodes] = True
    places = np.flatnonzero(is_joined)
    if len(places) == len(is_joined):
        return put_in_place(list_kept(engine, replacing), nodes.ids)

    engine.see("joined", nodes.table.take(pa.array(places)))
    kept = put_in_place(list_kept(engine, replacing, "joined"), take(nodes.ids, places))
    rows = np.full(len(is_joined), -1)
    rows[places] = np.arange(len(places))
    columns = {name: take(kept[name], rows) for name in KEEP.names[1:]}
    alone = {"kept": pa.scalar(value=True), "leader": pa.scalar(value=False)}
    columns |= {name: pc.fill_null(columns[name], value) for name, value in alone.items()}
    return pa.table({"doc_id": nodes.ids, **columns}, KEEP.arrow)


def put_in_place(kept: pa.Table, ids: pa.ChunkedArray) -> pa.Table:
    """Return KEEP in the order of the documents, whose ids these are."""
    return kept.take(pc.index_in(one_chunk(ids), value_set=one_chunk(kept["doc_id"])))


def in_place(kept: pa.Table, ids: pa.ChunkedArray) -> Kept:
    """Return KEEP in the order of the documents, whose ids these are, with its count."""
    return _counted(put_in_place(kept, ids))


def _counted(kept: pa.Table) -> Kept:
    return Kept(kept, {"kept": pc.sum(kept["kept"]).as_py() or 0})


def count_choices(  # noqa: PLR0913, PLR0917 - all that the steps made
    documents: pa.Table, paired: Paired, clustered: Clustered, kept: Kept, config: Config, forced: Forced | None
) -> dict[str, Any]:
    """Return the counts of the keep-list, by their names in the metrics."""
    engine = clustered.engine
    for name, table in (("documents", documents), ("pairs", paired.pairs), ("keep", kept.keep)):
        engine.see(name, table)
    counted = count_kept(engine, config.keep.order, forced, by_loss=config.keep.max_lost is not None)
    return {**kept.counts, "removed": len(documents) - kept.counts["kept"], **counted}
