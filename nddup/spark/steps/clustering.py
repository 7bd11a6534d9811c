"""The third and the last stage on Spark: graph, clusters, keep-list.

    matches, nodes         --save_graph-->     graph: its edges stream through one task, or go in rounds
    graph, sketches        --Edges.cluster-->  sets, a large component in shares over many tasks; then clusters, members
    nodes, graph, matches  --Mined.keep-->     keep

The keep-list comes before the clusters where these follow it.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.engines.choose import PYTHON_MEMORY
from nddup.engines.engine import EngineTable
from nddup.errors import CapacityError, ConfigError
from nddup.ground.progress import say
from nddup.mining.cluster_modes import Budget, share_steps
from nddup.mining.modes import MODES
from nddup.mining.pair_graph import CHOICE_BITS, GRAPH_BITS, MOST_NODES, memory_of_nodes
from nddup.settings import plan
from nddup.spark import heavy_keys
from nddup.spark.clustering import alone, graph, mine_components, problems
from nddup.spark.clustering.graph import Assignment
from nddup.spark.clustering.problems import Scale
from nddup.spark.pairing import collapse
from nddup.spark.schemas import local_table
from nddup.spark.session_access import is_connect
from nddup.spark.steps.documents import Documents
from nddup.spark.steps.state import Job, persisted
from nddup.stages import names
from nddup.stages.keep import count_kept, list_kept, replacing_of
from nddup.stages.run_engine import NO_COUNTS, Made, Saved

FEW_EDGES = 1_000_000
"""Maximum number of edges of a graph that is made without tables of its own."""

MANY = 200_000
"""Number of documents beside the nodes of the graph from which a job of its own finds those that are alone: below it,
sending the bytes costs less."""

STORED_DOCUMENT = 1_000
"""Bytes of the inputs for each document before any is read: as of a text of 150 words, or of a compressed page."""

MOST_CONTRACTIONS = 100
"""Maximum number of rounds of star contraction; their number grows with the logarithm of the nodes, so this is never
reached."""

KEEP_ROUNDS = 10
"""Rounds of the keep-list before one task decides the rest: 4 to 6 are enough for real collections."""


@dataclass(frozen=True)
class Matches:
    """Near-duplicate pairs of sketches, and the sketches that are given by leaders."""

    table: DataFrame
    edges: int
    """Rows of MATCHES."""
    large: DataFrame | None
    """Sketches (`node`) of components given by leaders, not all of whose pairs are in MATCHES, and what replaces each
    (`stands`) where losses are limited; None if there are none."""
    partitions: int
    """Tasks of the block shuffles, here and in the next stage."""
    limited: int = 0
    """Sketches that were compared with heads only (`nddup.mining.bounded_keeping`)."""


@dataclass(frozen=True)
class Edges:
    """A `PairedRun` of many tasks: the near-duplicate sketches that clusters and keep-list are made of."""

    job: Job
    made: Made
    matches: Matches
    table: DataFrame
    """The matches with all that is known of them: their `resemblance` is that of `pairs`."""
    documents: Documents
    candidates: DataFrame
    """Sketches that may be near-duplicates, as far as it takes to join all such: CANDIDATES."""

    def cluster(self) -> "Mined":
        """As `PairedRun.cluster`, by the mode of the run."""
        job, documents, matches = self.job, self.documents, self.matches
        built = job.find("graph") or _build_graph(job, documents, matches)
        engine = job.ask(**self.made.tables, graph=built.table, matches=self.table, nodes=documents.nodes)
        counts: dict[str, Any] = {}

        def save(name: str, table: DataFrame, counted: Mapping[str, str] = NO_COUNTS) -> Saved:
            saved = job.save(name, table, counted)
            engine.see(name, saved.table)
            return saved

        def mine() -> EngineTable:
            sets = job.find("sets") or _mine(job, mining)
            counts["fpgrowth_fits"] = sets.noted["fpgrowth_fits"]
            return sets.table

        mining = _Mining(documents, matches, built, plan.budget_of(job.config))
        kept = None
        if MODES[job.config.clusters.mode].follows_keep:
            kept = _save_keep(job, documents, built)
            targets = problems.list_targets(built.table, mining.scale, partitions=matches.partitions)
            engine.see("keep", kept.table)
            engine.see("sketches", problems.send(mining.sketches, targets, "node"))
        heavy = heavy_keys.HEAVY if documents.unpaired.equal_sketches >= heavy_keys.HEAVY else None
        made, counted = names.make_clusters(engine, save, mine, job.config, heavy=heavy)
        for name in ("starred", "named"):
            job.drop(name, made=["clusters", "members"])
        return Mined(self, Made(saved=made, counts={**built.counts, **counts, **counted}), built, kept)

    def save_candidates(self, job: Job, before: DataFrame | None = None) -> None:
        """As `PairedOnSpark.save_candidates`."""
        job.save("candidates", self.candidates if before is None else self.candidates.unionByName(before))


@dataclass(frozen=True)
class Mined:
    """A `ClusteredRun` of many tasks."""

    edges: Edges
    made: Made
    graph: Saved
    kept: Saved | None
    """KEEP where the clusters follow it."""

    def keep(self) -> Made:
        """As `ClusteredRun.keep`. One action, and those of the counts."""
        job, documents, asked = self.edges.job, self.edges.documents, self.edges.job.config.keep
        keep = self.kept or _save_keep(job, documents, self.graph)
        counted = job.ask(documents=documents.table, keep=keep.table)
        counts = {
            "kept": keep.counts["kept"],
            "removed": documents.rows - keep.counts["kept"],
            **count_kept(counted, asked.order, job.forced, by_loss=asked.max_lost is not None),
        }
        return Made(saved={"keep": keep}, counts=counts)


class Rounds:
    """The intermediate tables of another table, dropped once that is written."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._names: list[str] = []

    def save(self, name: str, table: DataFrame, counts: Mapping[str, str] = NO_COUNTS) -> Saved:
        """As `Job.save`."""
        self._names.append(name)
        return self.job.save(name, table, counts)

    def drop(self, made: str) -> None:
        """Drop all of them; `made` is the table made from them."""
        for name in self._names:
            self.job.drop(name, made=[made])


class Choosing(NamedTuple):
    """How the kept nodes are chosen."""

    least_containment: float | None
    """Share of a document that another must contain to replace it; None: near-duplicates replace each other."""

    by_weight: bool
    """Whether heavier nodes (`weight`) come first, whatever the policy."""

    is_directed: bool
    """Whether not every edge may remove its later end: likeness then has a direction."""


def require_one_graph(job: Job, documents: Saved) -> None:
    """Stop before pairs are looked for where the keep rules need a graph that one task may not hold.

    Any distinct sketch may turn out to be in a pair. Rounds over many tasks choose only where each pair may remove
    either document.

    Raises:
        CapacityError: naming the memory that is enough.
    """
    rules, nodes = plan.one_graph_rules(job.config), documents.counts["distinct_sketches"]
    if rules and nodes > job.most_nodes(GRAPH_BITS):
        enough = -(-memory_of_nodes(nodes, GRAPH_BITS) >> 20)
        raise CapacityError(
            f"{nodes:,} distinct sketches, {_limit_of(job, rules)}: give each task {enough:,} MB by {PYTHON_MEMORY} and"
            " --resume the run, or split the collection"
        )


def tell_one_graph(job: Job, size: int) -> None:
    """Say before anything is read that `require_one_graph` may stop the run: of so many bytes it is likely."""
    rules = plan.one_graph_rules(job.config)
    if rules and size > job.most_nodes(GRAPH_BITS) * STORED_DOCUMENT:
        documents = size // STORED_DOCUMENT
        enough = -(-memory_of_nodes(documents, GRAPH_BITS) >> 20)
        say(
            f"{size / 1e9:,.1f} GB may hold some {documents:,} distinct sketches, {_limit_of(job, rules)}:"
            f" {enough:,} MB for each task, by {PYTHON_MEMORY}, would be enough for these"
        )


def _limit_of(job: Job, rules: list[str]) -> str:
    most, memory = job.most_nodes(GRAPH_BITS), job.task_memory >> 20
    return f"more than the {most:,} that one task takes in {memory:,} MB with {', '.join(rules)}"


def save_graph(rounds: Rounds, matches: Matches, nodes: DataFrame, assignment: Assignment, choosing: Choosing) -> Saved:
    """Make GRAPH. One action if it has few edges; else one for each table saved here, and to count each part's nodes.

    Raises:
        CapacityError: if there are too many nodes for one graph, or for one task where one is needed.
    """
    least, by_weight, is_directed = choosing
    described = graph.describe_nodes(matches.table, nodes, matches.large)
    few = min(FEW_EDGES, rounds.job.most_nodes(GRAPH_BITS) // 2)
    with ExitStack() as stack:
        is_large = matches.edges > few
        if is_large:
            ordered = rounds.save(
                "ordered", graph.order_nodes(described, by_weight=by_weight, partitions=matches.partitions)
            )
            _require_numbers(ordered.rows)
            numbered, most = _number_nodes(rounds.job, ordered.table), ordered.rows
        else:
            numbered = stack.enter_context(persisted(graph.number_few(described, by_weight=by_weight)))
            most = 2 * matches.edges
        edge_rows = graph.number_edges(matches.table, numbered, is_contained=is_directed)
        edges = rounds.save("edges", edge_rows).table if is_large else stack.enter_context(persisted(edge_rows))
        solving = graph.Solving(most, assignment, (least or 0.0) if is_directed else None)
        if most <= rounds.job.most_nodes(GRAPH_BITS):
            solved = graph.solve(edges, solving)
            solved = rounds.save("solved", solved).table if is_large else solved
        else:
            stars = contract(rounds, edges.select("first", "second"), "stars")
            solved = graph.gather_solved(numbered, stars, _remove(rounds, edges, most))
        made = graph.assemble(numbered, edges, solved, solving, is_large=is_large)
        saved = rounds.job.save("graph", made, graph.COMPONENT_COUNTS)
    rounds.drop("graph")
    return saved


def _number_nodes(job: Job, ordered: DataFrame) -> DataFrame:
    """Return the nodes with their numbers, lazily. One action, which counts the nodes of each part."""
    parts = sorted((int(row["part"]), int(row["n"])) for row in graph.count_parts(ordered).collect())
    first_keys = accumulate((n for _, n in parts), initial=0)
    rows = [(part, first) for (part, _), first in zip(parts, first_keys, strict=False)]
    return graph.number_nodes(ordered, local_table(job.spark, graph.FIRST_KEYS, rows))


def contract(rounds: Rounds, edges: DataFrame, name: str) -> DataFrame:
    """Return STARS of a graph: each node that is not the least of its component, with that least node.

    The table of each round is called `name`, a hyphen and the number of the round. One action a round.
    """
    stars: DataFrame = edges
    before = None
    for number in range(MOST_CONTRACTIONS):
        saved = rounds.save(f"{name}-{number}", graph.contract(stars), {"checksum": graph.CHECKSUM})
        stars = saved.table
        if saved.counts["checksum"] == before:
            return stars
        before = saved.counts["checksum"]
    raise CapacityError(f"components: star contraction has not ended after {MOST_CONTRACTIONS} rounds")


def _remove(rounds: Rounds, edges: DataFrame, nodes: int) -> DataFrame:
    """Return REMOVED of all rounds; one task decides the nodes that are undecided after the last round."""
    removed: DataFrame = rounds.save("removed-0", graph.decide(edges)).table
    undecided = _leave_undecided(rounds, edges, removed, 0)
    for number in range(1, KEEP_ROUNDS):
        if not undecided.rows:
            return removed
        more = rounds.save(f"removed-{number}", graph.decide(undecided.table)).table
        undecided = _leave_undecided(rounds, undecided.table, more, number)
        removed = removed.unionByName(more)

    if undecided.rows:
        _require_memory(rounds.job, undecided.rows, nodes)
        rest = rounds.save(f"removed-{KEEP_ROUNDS}", graph.decide_rest(undecided.table, nodes))
        removed = removed.unionByName(rest.table)
    return removed


def _leave_undecided(rounds: Rounds, edges: DataFrame, removed: DataFrame, number: int) -> Saved:
    return rounds.save(f"undecided-{number}", graph.leave_undecided(edges, removed))


def _require_memory(job: Job, edges: int, nodes: int) -> None:
    most = job.most_nodes(CHOICE_BITS)
    if nodes > most:
        raise CapacityError(
            f"the keep-list has {edges:,} undecided pairs of distinct sketches after {KEEP_ROUNDS} rounds, among"
            f" {nodes:,} sketches, more than the {most:,} that one task takes in {job.task_memory >> 20:,} MB; raise"
            f" {PYTHON_MEMORY} or pairs.threshold, or split the collection"
        )


def _require_numbers(nodes: int) -> None:
    """Stop if there are more nodes than a rank, an int of GRAPH, can number."""
    if nodes > MOST_NODES:
        raise CapacityError(
            f"{nodes:,} distinct sketches are in pairs, more than the {MOST_NODES:,} of one graph; raise"
            " pairs.threshold, or split the collection"
        )


@dataclass(frozen=True)
class _Mining:
    """State shared by the steps of this stage."""

    documents: Documents
    matches: Matches
    graph: Saved
    budget: Budget

    @property
    def sketches(self) -> DataFrame:
        """SKETCHES of the distinct sketches, lazily."""
        return collapse.distinct_sketches(self.documents.table)

    @property
    def scale(self) -> Scale:
        """The numbers of graph nodes and of documents; they decide how rows find the task of their component."""
        return Scale(self.graph.rows, self.documents.rows)


def _save_keep(job: Job, documents: Documents, built: Saved) -> Saved:
    """Make KEEP. One action.

    Where many documents are alone (`clustering.alone`) one action more gives the driver at most 134 MB, and these
    do not move.
    """
    if (kept := job.find("keep")) is not None:
        return kept
    replacing, counts = replacing_of(job.config), {"kept": "count_if(kept)"}
    if replacing.is_guarded or documents.rows - built.rows < MANY:
        return job.save("keep", list_kept(job.engine, replacing), counts)

    count = alone.words_for(documents.rows)
    words = alone.put_together(alone.mark_nodes(built.table, count).toArrow(), count)
    job.engine.see("joined", alone.take_joined(documents.nodes, words))
    joined: DataFrame = list_kept(job.engine, replacing, "joined")
    return job.save("keep", joined.unionByName(alone.keep_alone(documents.nodes, words)), counts)


def _build_graph(job: Job, documents: Documents, matches: Matches) -> Saved:
    config, (share_nodes, least_containment, max_lost) = job.config.clusters, plan.graph_rule(job.config)
    miner = _choose_miner(job)
    assignment = graph.Assignment(miner, config.fpgrowth_limit, config.max_sets, config.max_members, share_nodes)
    is_contained = job.threshold.is_containment
    is_limited = job.forced is not None or max_lost is not None
    if is_limited:
        large = None if max_lost is None else matches.large
        directed = graph.direct_matches(
            matches.table, documents.nodes, large, is_contained=is_contained, max_lost=max_lost
        )
        matches = replace(matches, table=directed)
    choosing = Choosing(least_containment, is_contained, is_contained or is_limited)
    return save_graph(Rounds(job), matches, documents.nodes, assignment, choosing)


def _choose_miner(job: Job) -> str:
    """Return the miner of the settings; where a Spark Connect server has no FP-Growth, say so and return `pivot`."""
    config = job.config.clusters
    if config.mode != "all" or config.miner == "pivot":
        return "pivot"
    if not is_connect(job.spark) or mine_components.can_fit(job.spark):
        return config.miner
    if config.miner == "fpgrowth":
        raise ConfigError("clusters.miner: fpgrowth: this Spark server has no MLlib; leave it out, or give pivot")
    say("this Spark server has no MLlib: the pivot miner mines every component")
    return "pivot"


def _mine(job: Job, mining: _Mining) -> Saved:
    whole = mining.graph.table.where("share is null")
    partitions = mining.matches.partitions
    rows = problems.gather_problems(
        whole, mining.sketches, mining.matches.table, scale=mining.scale, partitions=partitions
    )
    with persisted(rows) as gathered:
        sets = mine_components.mine_by_pivot(
            gathered, threshold=job.threshold, mode=job.config.clusters.mode, budget=mining.budget
        )
        if mining.graph.counts["spread_components"]:
            sets = sets.unionByName(_mine_spread(job, mining))
        if not mining.graph.counts["fpgrowth_components"]:
            return job.seal("sets", job.write("sets", sets), fpgrowth_fits=0)

        job.progress.describe("frequent")
        transactions = mine_components.list_transactions(
            gathered, threshold=job.threshold, min_support=mining.budget.min_support
        )
        with persisted(transactions) as stored:
            frequent = _list_frequent(stored)
            if frequent:
                listed = mine_components.keep_clusters(
                    _union(frequent),
                    gathered,
                    threshold=job.threshold,
                    min_support=mining.budget.min_support,
                    partitions=partitions,
                )
                sets = sets.unionByName(listed)
            return job.seal("sets", job.write("sets", sets), fpgrowth_fits=len(frequent))


def _list_frequent(transactions: DataFrame) -> list[DataFrame]:
    """Return the frequent sets of each FP-Growth fit, lazily but for the fit itself; most runs have one fit or none."""
    fits = transactions.groupBy("fit").agg(F.count("*").alias("n"), F.min("least").alias("least")).collect()
    return [
        mine_components.list_frequent(
            transactions.where(F.col("fit") == fit["fit"]), least=int(fit["least"]), count=int(fit["n"])
        )
        for fit in sorted(fits, key=lambda row: int(row["fit"]))
    ]


def _mine_spread(job: Job, mining: _Mining) -> DataFrame:
    """Return SETS of components spread over tasks: all sets; past a share's budget a cover; past that, by leaders."""
    options: dict[str, Any] = {"threshold": job.threshold, "budget": mining.budget}
    partitions = max(mining.matches.partitions, mining.graph.counts["shares"])
    sketches, matches = mining.sketches, mining.matches.table
    waiting = mining.graph.table
    done: list[DataFrame] = []
    for name, find in share_steps(job.config.clusters.mode, mining.budget).items():
        blocks = problems.gather_shares(waiting, sketches, matches, partitions=partitions)
        sets = problems.mine_shares(blocks, threshold=job.threshold, find=find, is_distinct=name == "listed")
        is_over = f"coverage = '{problems.OVER}'"
        saved = job.save(name, sets, {"passed": f"count_if({is_over})"})
        if not saved.counts["passed"]:
            return _union([*done, saved.table])

        over = saved.table.where(is_over).select("ordinal").distinct()
        done.append(saved.table.join(over, "ordinal", "left_anti"))
        waiting = waiting.join(over, "ordinal", "left_semi")

    around_leaders = waiting.withColumn("by_leaders", F.lit(True))
    gathered = problems.gather_problems(
        around_leaders, sketches, matches, scale=mining.scale, partitions=mining.matches.partitions
    )
    return _union([*done, mine_components.mine_by_pivot(gathered, mode="all", **options)])


def _union(parts: list[DataFrame]) -> DataFrame:
    whole = parts[0]
    for more in parts[1:]:
        whole = whole.unionByName(more)
    return whole
