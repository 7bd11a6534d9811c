"""What takes several rounds, each a table of its own: components and keep-list of a graph too large for one task."""

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.errors import CapacityError
from nddup.run.memory import PYTHON_MEMORY
from nddup.run.state import Job
from nddup.spark.clustering import large_graph

MOST_CONTRACTIONS = 100
"""Rounds of star contraction; they grow with the logarithm of the nodes, so that this many never come."""

KEEP_ROUNDS = 10
"""Rounds of the keep-list before the rest goes to one task: 4 to 6 are enough for real collections."""


def build_large_graph(job: Job, matches: DataFrame, *, share_nodes: int | None) -> Iterator[DataFrame]:
    """GRAPH, from tables made on the way; these are dropped when it has been written."""
    turns = large_graph.take_turns(
        matches, job.tables["nodes"], families=job.tables.get("families"), partitions=job.metrics.counts["partitions"]
    )
    turns = job.save("turns", turns, "keep", reads=("matches", "nodes"))
    edges = job.save("edges", large_graph.name_edges(matches, turns), reads=("matches", "turns"))
    stars = contract(job, edges.select("first", "second"), "stars", reads=("edges",))
    removed = _remove(job, edges)
    yield large_graph.assemble(turns, edges, stars, removed, share_nodes=share_nodes)
    for name in [name for name in job.tables if name.partition("-")[0] in large_graph.PASSING]:
        job.store.drop(name)
        del job.tables[name]


def contract(job: Job, edges: DataFrame, name: str, *, reads: tuple[str, ...]) -> DataFrame:
    """STARS of the graph of these edges: each node that is not the least of its component, with the least.

    The table of each round is called by `name` and its number.
    """
    stars, before = edges, None
    counts = job.metrics.counts
    for number in range(MOST_CONTRACTIONS):
        table = f"{name}-{number}"
        stars = job.save(table, large_graph.contract(stars), reads=reads, checksum=large_graph.checksum())
        reads = (table,)
        if counts["checksum"] == before:
            counts["contractions"] = number
            return stars
        before = counts["checksum"]
    raise CapacityError(f"components: star contraction has not ended after {MOST_CONTRACTIONS} rounds")


def _remove(job: Job, edges: DataFrame) -> DataFrame:
    """REMOVED of all rounds."""
    removed, undecided, reads, left = [], edges, ("edges",), job.metrics.counts["edges"]
    for number in range(KEEP_ROUNDS + 1):
        if left == 0:
            break
        is_last = number == KEEP_ROUNDS
        most = job.most_edges(large_graph.REST_COST)
        if is_last and left > most:
            raise CapacityError(
                f"the keep-list has {left:,} undecided pairs of distinct sketches after {KEEP_ROUNDS} rounds, more than"
                f" the {most:,} that one task takes in {job.task_memory >> 20:,} MB; raise {PYTHON_MEMORY} or"
                " pairs.threshold, or split the collection"
            )
        decide = large_graph.decide_rest if is_last else large_graph.decide
        removed.append(job.save(f"removed-{number}", decide(undecided), reads=reads))
        if is_last:
            break
        rest = large_graph.leave_undecided(undecided, removed[-1])
        undecided = job.save(
            f"undecided-{number}", rest, reads=(*reads, f"removed-{number}"), undecided=F.count(F.lit(1))
        )
        reads, left = (f"undecided-{number}",), job.metrics.counts["undecided"]
    job.metrics.counts["keep_rounds"] = len(removed)
    whole = removed[0]
    for round_ in removed[1:]:
        whole = whole.unionByName(round_)
    return whole
