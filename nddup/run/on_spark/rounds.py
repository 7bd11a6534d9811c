"""A large graph, made through several tables: nodes are numbered, edges stream through one task or go in rounds."""

from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from pyspark.sql import Column, DataFrame

from nddup.errors import CapacityError
from nddup.mining.pair_graph import CHOICE_BITS, GRAPH_BITS, MOST_NODES
from nddup.run.on_spark.state import Job
from nddup.run.task_memory import PYTHON_MEMORY
from nddup.spark.clustering import numbered_graph
from nddup.spark.clustering.graph import Assignment
from nddup.spark.schemas import local_table
from nddup.stages.run_engine import Saved

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

    def save(self, name: str, table: DataFrame, **counts: Column) -> Saved:
        """As `Job.save`."""
        self._names.append(name)
        return self.job.save(name, table, **counts)

    def drop(self, made: str) -> None:
        """Drop all of them; `made` is the table made from them."""
        for name in self._names:
            self.job.drop(name, made=[made])


class Choosing(NamedTuple):
    """How the kept nodes are chosen: the arguments of `graph.build_graph`."""

    least_containment: float | None
    by_weight: bool
    is_ordered: bool


def build_large_graph(
    rounds: Rounds, matches: Matches, nodes: DataFrame, assignment: Assignment, choosing: Choosing
) -> DataFrame:
    """Return GRAPH, lazily, from tables saved here. An action a table, and one that counts the nodes of each part.

    Raises:
        CapacityError: if there are too many nodes for one graph, or for one task where one is needed.
    """
    least_containment = choosing.least_containment
    is_contained = least_containment is not None
    ordered = numbered_graph.order_nodes(
        matches.table, nodes, large=matches.large, by_weight=choosing.by_weight, partitions=matches.partitions
    )
    ordered_nodes = rounds.save("ordered", ordered)
    _require_numbers(ordered_nodes.rows)
    numbered = _number_nodes(rounds.job, ordered_nodes.table)
    named = numbered_graph.number_edges(
        matches.table, numbered, is_contained=is_contained, is_ordered=choosing.is_ordered
    )
    edges = rounds.save("edges", named)

    if ordered_nodes.rows <= rounds.job.most_nodes(GRAPH_BITS):
        solving = numbered_graph.Solving(ordered_nodes.rows, assignment, least_containment)
        solved = rounds.save("solved", numbered_graph.solve(edges.table, solving)).table
    else:
        solved = _solve_in_rounds(rounds, numbered, edges, ordered_nodes.rows, is_contained=is_contained)
    return numbered_graph.assemble(
        numbered, edges.table, solved, share_nodes=assignment.share_nodes, least_containment=least_containment
    )


def _number_nodes(job: Job, ordered: DataFrame) -> DataFrame:
    """Return the nodes with their numbers, lazily. One action, which counts the nodes of each part."""
    parts = sorted((int(row["part"]), int(row["n"])) for row in numbered_graph.count_parts(ordered).collect())
    first_keys = accumulate((n for _, n in parts), initial=0)
    rows = [(part, first) for (part, _), first in zip(parts, first_keys, strict=False)]
    return numbered_graph.number_nodes(ordered, local_table(job.spark, numbered_graph.FIRST_KEYS, rows))


def _solve_in_rounds(rounds: Rounds, numbered: DataFrame, edges: Saved, nodes: int, *, is_contained: bool) -> DataFrame:
    """Return SOLVED, lazily, of more nodes than one task has memory for; CapacityError for a containment."""
    if is_contained:
        most = rounds.job.most_nodes(GRAPH_BITS)
        raise CapacityError(
            f"{nodes:,} distinct sketches are in pairs, more than the {most:,} that one task takes in"
            f" {rounds.job.task_memory >> 20:,} MB where not every pair may remove a document (containment, keep.force,"
            f" keep.max_lost); raise {PYTHON_MEMORY} or pairs.threshold, or split the collection"
        )
    stars = contract(rounds, edges.table.select("first", "second"), "stars")
    return numbered_graph.gather_solved(numbered, stars, _remove(rounds, edges, nodes))


def contract(rounds: Rounds, edges: DataFrame, name: str) -> DataFrame:
    """Return STARS of a graph: each node that is not the least of its component, with that least node.

    The table of each round is called `name`, a hyphen and the number of the round. One action a round.
    """
    stars: DataFrame = edges
    before = None
    for number in range(MOST_CONTRACTIONS):
        found = rounds.save(f"{name}-{number}", numbered_graph.contract(stars), checksum=numbered_graph.checksum())
        stars = found.table
        if found.counts["checksum"] == before:
            return stars
        before = found.counts["checksum"]
    raise CapacityError(f"components: star contraction has not ended after {MOST_CONTRACTIONS} rounds")


def _remove(rounds: Rounds, edges: Saved, nodes: int) -> DataFrame:
    """Return REMOVED of all rounds; one task decides the nodes that are undecided after the last round."""
    removed: DataFrame = rounds.save("removed-0", numbered_graph.decide(edges.table)).table
    undecided = _leave_undecided(rounds, edges.table, removed, 0)
    for number in range(1, KEEP_ROUNDS):
        if not undecided.rows:
            return removed
        more = rounds.save(f"removed-{number}", numbered_graph.decide(undecided.table)).table
        undecided = _leave_undecided(rounds, undecided.table, more, number)
        removed = removed.unionByName(more)

    if undecided.rows:
        _require_memory(rounds.job, undecided.rows, nodes)
        rest = rounds.save(f"removed-{KEEP_ROUNDS}", numbered_graph.decide_rest(undecided.table, nodes))
        removed = removed.unionByName(rest.table)
    return removed


def _leave_undecided(rounds: Rounds, edges: DataFrame, removed: DataFrame, number: int) -> Saved:
    return rounds.save(f"undecided-{number}", numbered_graph.leave_undecided(edges, removed))


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
