"""The order of the clusters stage: the graph, its components mined, the sets named.

matches, nodes       --build_graph-->   graph; too large for one task: in rounds (`nddup.run.rounds`)
graph, sketches      --mine-->          sets; a large component in shares, over many tasks
sets, graph, nodes   --name_sets-->     named --list-->  clusters, members
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.errors import CapacityError
from nddup.mining.cluster_modes import Budget
from nddup.run.memory import PYTHON_MEMORY
from nddup.run.rounds import build_large_graph
from nddup.run.state import Job, Making
from nddup.spark import heavy_keys
from nddup.spark.clustering import cluster_names, false_components, graph, mine_components, problems, shares
from nddup.spark.pairing import collapse

SHARE_NODES = 20_000
"""A component of more distinct sketches is mined in shares of about so many, a task each."""


def save_clusters(job: Job) -> None:
    """The graph, the sets, and the clusters and members they stand for."""
    config, tables = job.config.clusters, job.tables
    matches = tables.get("led", tables["matches"])
    _save_graph(job, matches)
    is_exact = job.metrics.counts["cut_postings"] == 0 and job.kind.is_exact
    false = false_components.list_false_components(tables["graph"], matches, tables["nodes"], is_exact=is_exact)
    counts = false_components.count_false_components()
    job.save("false_components", false, "clusters", reads=("graph", "matches", "nodes"), **counts)
    reads = ("graph", "documents", "matches")
    sets = job.save("sets", lambda: _mine(job, matches), "clusters", "pairs", "sketch", reads=reads)
    least_size = max(job.threshold.least_size, config.support or 0)
    named = cluster_names.name_sets(
        sets,
        tables["graph"],
        tables["nodes"],
        least_size=least_size,
        mode=config.mode,
        max_listed=config.max_listed,
        by_weight=job.threshold.is_containment,
        is_large=job.metrics.counts["equal_sketches"] >= heavy_keys.HEAVY,
    )
    named = job.save("named", named, "clusters", "keep", "pairs", reads=("sets", "graph", "nodes"))
    counts = {
        "covered_clusters": F.count_if(F.col("coverage") == "pairs"),
        "led_clusters": F.count_if(F.col("coverage") == "documents"),
        "cut_clusters": F.count_if(F.col("size") > F.size("members")),
    }
    job.save("clusters", cluster_names.list_clusters(named), reads=("named",), **counts)
    job.save("members", cluster_names.list_members(named), reads=("named",))
    job.store.drop("named")
    _count_covered(job)
    support = config.support
    below = tables["pairs"].where(F.col("overlap") < support).count() if support else 0
    job.metrics.counts["pairs_below_support"] = below


def _save_graph(job: Job, matches: DataFrame) -> None:
    config = job.config.clusters
    is_listing = config.mode in ("all", "cover")
    share_nodes = SHARE_NODES if is_listing else None
    built: DataFrame | Making
    edges, is_contained = job.metrics.counts["edges"], job.threshold.is_containment
    most = job.most_edges(graph.COST)
    if edges > most and is_contained:
        raise CapacityError(
            f"{edges:,} pairs of distinct sketches, more than the {most:,} of a containment that one task takes in"
            f" {job.task_memory >> 20:,} MB; raise {PYTHON_MEMORY} or pairs.threshold, or split the collection"
        )
    if edges > most:
        built = partial(build_large_graph, job, matches, share_nodes=share_nodes)
    else:
        built = graph.build_graph(
            matches,
            job.tables["nodes"],
            miner=config.miner if config.mode == "all" else "pivot",
            fpgrowth_limit=config.fpgrowth_limit,
            max_sets=config.max_sets,
            max_members=config.max_members,
            share_nodes=share_nodes,
            families=job.tables.get("families"),
            least_containment=float(job.config.pairs.share) if is_contained else None,
        )
    job.save("graph", built, "clusters", "keep", "pairs", reads=("matches", "nodes"), **graph.count_components())


def _mine(job: Job, matches: DataFrame) -> Iterator[DataFrame]:
    """SETS of all components: those of one task each, and those that are spread."""
    config, threshold = job.config.clusters, job.threshold
    budget = _budget(job)
    partitions = job.metrics.counts["partitions"]
    sketches = collapse.distinct_sketches(job.tables["documents"])
    near = matches.where(F.col("node_a").isNotNull())
    whole = job.tables["graph"].where("share is null")
    found = problems.gather_problems(whole, sketches, near, partitions=partitions)
    gathered = found.persist(StorageLevel.DISK_ONLY)
    mined = mine_components.mine_by_pivot(gathered, threshold=threshold, mode=config.mode, budget=budget)
    for frequent in _list_frequent(job, gathered):
        listed = mine_components.keep_clusters(
            frequent, gathered, threshold=threshold, min_support=budget.min_support, partitions=partitions
        )
        mined = mined.unionByName(listed)
    if job.metrics.counts["spread_components"]:
        mined = mined.unionByName(_mine_spread(job, sketches, near))
    yield mined
    gathered.unpersist()


def _mine_spread(job: Job, sketches: DataFrame, near: DataFrame) -> DataFrame:
    """SETS of the components that are spread: all, or covers where a share passed its budget, or those of leaders."""
    config, counts = job.config.clusters, job.metrics.counts
    how: dict[str, Any] = {"threshold": job.threshold, "budget": _budget(job)}
    partitions = max(counts["partitions"], counts["shares"])
    waiting = job.tables["graph"]
    reads: tuple[str, ...] = ("graph", "documents", "matches")
    steps = {"listed": shares.mine_shares, "covered": shares.cover_shares}
    done = []
    for name, mine in steps.items():
        if name == "listed" and config.mode == "cover":
            continue
        blocks = shares.gather_shares(waiting, sketches, near, partitions=partitions)
        passed = f"passed_{name}"
        found = job.save(name, mine(blocks, **how), "clusters", "pairs", "sketch", reads=reads,
                         **{passed: F.count_if(F.col("coverage") == shares.OVER)})  # fmt: skip
        over = found.where(F.col("coverage") == shares.OVER).select("ordinal").distinct()
        done.append(found.join(over, "ordinal", "left_anti") if counts[passed] else found)
        if not counts[passed]:
            break
        waiting, reads = waiting.join(over, "ordinal", "left_semi"), (*reads, name)
    else:
        led = waiting.withColumn("led", F.lit(True))
        gathered = problems.gather_problems(led, sketches, near, partitions=counts["partitions"])
        done.append(mine_components.mine_by_pivot(gathered, mode="all", **how))
    sets = done[0]
    for more in done[1:]:
        sets = sets.unionByName(more)
    return sets


def _budget(job: Job) -> Budget:
    config = job.config.clusters
    return Budget(config.max_sets, config.max_members, config.max_nodes, config.support or 0)


def _list_frequent(job: Job, gathered: DataFrame) -> Iterator[DataFrame]:
    """The frequent sets of each FP-Growth fit; most runs have one, or none."""
    job.metrics.counts["fpgrowth_fits"] = 0
    if job.metrics.counts["fpgrowth_components"] == 0:
        return
    job.progress.describe("frequent")
    transactions = mine_components.list_transactions(
        gathered, threshold=job.threshold, min_support=_budget(job).min_support
    ).persist(StorageLevel.DISK_ONLY)
    fits = transactions.groupBy("fit").agg(F.count("*").alias("n"), F.min("least").alias("least")).collect()
    for fit in sorted(fits, key=lambda row: int(row["fit"])):
        chosen = transactions.where(F.col("fit") == fit["fit"])
        yield mine_components.list_frequent(chosen, least=int(fit["least"]), count=int(fit["n"]))
    job.metrics.counts["fpgrowth_fits"] = len(fits)


def _count_covered(job: Job) -> None:
    """Count the components that were covered: an action of its own, where there are any."""
    covered = job.tables["clusters"].where("coverage = 'pairs'")
    is_any = job.metrics.counts["covered_clusters"] > 0
    job.metrics.counts["covered_components"] = covered.select("component").distinct().count() if is_any else 0
