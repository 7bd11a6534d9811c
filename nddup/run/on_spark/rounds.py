"""What takes several rounds, each a table of its own: components and keep-list of a graph too large for one task."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from nddup.errors import CapacityError
from nddup.run.on_spark.state import Job, Saved
from nddup.run.task_memory import PYTHON_MEMORY
from nddup.spark.clustering import large_graph

MOST_CONTRACTIONS = 100
"""Rounds of star contraction; they grow with the logarithm of the nodes, so that this many never come."""

KEEP_ROUNDS = 10
"""Rounds of the keep-list before the rest goes to one task: 4 to 6 are enough for real collections."""


@dataclass(frozen=True)
class Matches:
    """Near-duplicate sketches, and those that are given by leaders."""

    table: DataFrame
    edges: int
    """Rows of MATCHES."""
    large: DataFrame | None
    """The sketches (`node`) of components given by leaders, whose pairs are those with a kept end; None: none is."""
    partitions: int
    """Tasks of the block shuffles, here and in the next stage."""


class Rounds:
    """Tables that are saved on the way to another one, and dropped when that has been written."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._names: list[str] = []

    def save(self, name: str, table: DataFrame, **counts: Column) -> Saved:
        """As `Job.save`."""
        self._names.append(name)
        return self.job.save(name, table, **counts)

    def drop(self, made: str) -> None:
        """Drop all of them; `made` is the table they were for."""
        for name in self._names:
            self.job.drop(name, made=[made])


def build_large_graph(rounds: Rounds, matches: Matches, nodes: DataFrame, *, share_nodes: int | None) -> DataFrame:
    """GRAPH, lazily, from tables that are saved here."""
    ordered = large_graph.order_nodes(matches.table, nodes, large=matches.large, partitions=matches.partitions)
    ordered = rounds.save("ordered", ordered).table
    edges = rounds.save("edges", large_graph.name_edges(matches.table, ordered))
    stars = contract(rounds, edges.table.select("first", "second"), "stars")
    removed = _remove(rounds, edges)
    return large_graph.assemble(ordered, edges.table, stars, removed, share_nodes=share_nodes)


def contract(rounds: Rounds, edges: DataFrame, name: str) -> DataFrame:
    """STARS of the graph of these edges: each node that is not the least of its component, with the least.

    The table of each round is called by `name` and its number.
    """
    stars, before = edges, None
    for number in range(MOST_CONTRACTIONS):
        found = rounds.save(f"{name}-{number}", large_graph.contract(stars), checksum=large_graph.checksum())
        stars = found.table
        if found.counts["checksum"] == before:
            return stars
        before = found.counts["checksum"]
    raise CapacityError(f"components: star contraction has not ended after {MOST_CONTRACTIONS} rounds")


def _remove(rounds: Rounds, edges: Saved) -> DataFrame:
    """REMOVED of all rounds; of those that are undecided after the last one, by one task."""
    removed = rounds.save("removed-0", large_graph.decide(edges.table)).table
    undecided = _leave_undecided(rounds, edges.table, removed, 0)
    for number in range(1, KEEP_ROUNDS):
        if not undecided.rows:
            return removed
        more = rounds.save(f"removed-{number}", large_graph.decide(undecided.table)).table
        undecided = _leave_undecided(rounds, undecided.table, more, number)
        removed = removed.unionByName(more)

    if undecided.rows:
        _require_memory(rounds.job, undecided.rows)
        rest = rounds.save(f"removed-{KEEP_ROUNDS}", large_graph.decide_rest(undecided.table))
        removed = removed.unionByName(rest.table)
    return removed


def _leave_undecided(rounds: Rounds, edges: DataFrame, removed: DataFrame, number: int) -> Saved:
    return rounds.save(f"undecided-{number}", large_graph.leave_undecided(edges, removed))


def _require_memory(job: Job, edges: int) -> None:
    """Stop where the last round is too much for one task."""
    most = job.most_edges(large_graph.REST_COST, 2 * edges)
    if edges > most:
        raise CapacityError(
            f"the keep-list has {edges:,} undecided pairs of distinct sketches after {KEEP_ROUNDS} rounds, more than"
            f" the {most:,} that one task takes in {job.task_memory >> 20:,} MB; raise {PYTHON_MEMORY} or"
            " pairs.threshold, or split the collection"
        )
