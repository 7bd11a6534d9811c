"""The pair graph: nodes are numbered, edges stream through one task or go in rounds; a large one through tables."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from pyspark.sql import DataFrame

from nddup.errors import CapacityError
from nddup.mining.pair_graph import CHOICE_BITS, GRAPH_BITS, MOST_NODES
from nddup.run.engines import PYTHON_MEMORY
from nddup.run.on_spark.state import Job, persisted
from nddup.spark.clustering import graph
from nddup.spark.clustering.graph import Assignment
from nddup.spark.schemas import local_table
from nddup.stages.run_engine import NO_COUNTS, Saved

FEW_EDGES = 1_000_000
"""Most edges of a graph that is made without tables of its own."""

MOST_CONTRACTIONS = 100
"""Most rounds of star contraction; their number grows with the logarithm of the nodes, so this is never reached."""

KEEP_ROUNDS = 10
"""Rounds of the keep-list before one task decides the rest: 4 to 6 are enough for real collections."""


@dataclass(frozen=True)
class Matches:
    """Near-duplicate pairs of sketches, and the sketches that are given by leaders."""

    table: DataFrame
    edges: int
    """Rows of MATCHES."""
    large: DataFrame | None
    """Sketches (`node`) of components given by leaders, whose pairs all have a kept end; None if there are none."""
    partitions: int
    """Tasks of the block shuffles, here and in the next stage."""


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

    is_ordered: bool
    """Whether a node is the duplicate only of one that precedes it."""


def save_graph(rounds: Rounds, matches: Matches, nodes: DataFrame, assignment: Assignment, choosing: Choosing) -> Saved:
    """Make GRAPH. One action if it has few edges; else one for each table saved here, and to count each part's nodes.

    Raises:
        CapacityError: if there are too many nodes for one graph, or for one task where one is needed.
    """
    least, by_weight = choosing.least_containment, choosing.by_weight
    described = graph.describe_nodes(matches.table, nodes, matches.large)
    few = min(FEW_EDGES, rounds.job.most_nodes(GRAPH_BITS) // 2)
    with ExitStack() as held:
        is_large = matches.edges > few
        if is_large:
            ordered = rounds.save(
                "ordered", graph.order_nodes(described, by_weight=by_weight, partitions=matches.partitions)
            )
            _require_numbers(ordered.rows)
            numbered, most = _number_nodes(rounds.job, ordered.table), ordered.rows
        else:
            numbered = held.enter_context(persisted(graph.number_few(described, by_weight=by_weight)))
            most = 2 * matches.edges
        found = graph.number_edges(
            matches.table, numbered, is_contained=least is not None, is_ordered=choosing.is_ordered
        )
        edges = rounds.save("edges", found).table if is_large else held.enter_context(persisted(found))
        solving = graph.Solving(most, assignment, least)
        if most <= rounds.job.most_nodes(GRAPH_BITS):
            solved = graph.solve(edges, solving)
            solved = rounds.save("solved", solved).table if is_large else solved
        else:
            solved = _solve_in_rounds(rounds, numbered, edges, most, is_contained=least is not None)
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


def _solve_in_rounds(
    rounds: Rounds, numbered: DataFrame, edges: DataFrame, nodes: int, *, is_contained: bool
) -> DataFrame:
    """Return SOLVED, lazily, of more nodes than one task has memory for; CapacityError for a containment."""
    if is_contained:
        most = rounds.job.most_nodes(GRAPH_BITS)
        raise CapacityError(
            f"{nodes:,} distinct sketches are in pairs, more than the {most:,} that one task takes in"
            f" {rounds.job.task_memory >> 20:,} MB where not every pair may remove a document (containment, keep.force,"
            f" keep.max_lost); raise {PYTHON_MEMORY} or pairs.threshold, or split the collection"
        )
    stars = contract(rounds, edges.select("first", "second"), "stars")
    return graph.gather_solved(numbered, stars, _remove(rounds, edges, nodes))


def contract(rounds: Rounds, edges: DataFrame, name: str) -> DataFrame:
    """Return STARS of a graph: each node that is not the least of its component, with that least node.

    The table of each round is called `name`, a hyphen and the number of the round. One action a round.
    """
    stars: DataFrame = edges
    before = None
    for number in range(MOST_CONTRACTIONS):
        found = rounds.save(f"{name}-{number}", graph.contract(stars), {"checksum": graph.CHECKSUM})
        stars = found.table
        if found.counts["checksum"] == before:
            return stars
        before = found.counts["checksum"]
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
    """Stop if the last round has too many nodes for the memory of one task."""
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
