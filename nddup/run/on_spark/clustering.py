"""The third stage: the graph of near-duplicate sketches, its components mined, the sets named.

matches, nodes       --build_graph-->   graph; a larger one is numbered (`nddup.run.on_spark.rounds`)
graph, sketches      --mine-->          sets; a large component in shares, over many tasks
sets, graph, nodes   --name_sets-->     named --list-->  clusters, members
"""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.errors import ConfigError
from nddup.metrics import ClustersMetrics
from nddup.mining.cluster_modes import Budget
from nddup.run.on_spark.documents import Documents
from nddup.run.on_spark.pairing import Paired
from nddup.run.on_spark.rounds import Matches, Rounds, build_large_graph
from nddup.run.on_spark.state import Job, Saved, persisted
from nddup.run.progress import say
from nddup.spark import heavy_keys
from nddup.spark.clustering import cluster_names, false_components, graph, mine_components, problems, shares
from nddup.spark.clustering.component_tasks import Scale
from nddup.spark.pairing import collapse
from nddup.spark.reach import is_connect
from nddup.spark.schemas import NAMED, SETS, local_table

SHARE_NODES = 20_000
"""A component of more distinct sketches is mined in shares of about so many, a task each."""


@dataclass(frozen=True)
class Clustered:
    """What the third stage leaves."""

    graph: DataFrame
    clusters: DataFrame
    members: DataFrame
    false_components: DataFrame
    is_cut: bool
    """Whether a row of CLUSTERS holds fewer members than the cluster has."""
    metrics: ClustersMetrics


@dataclass(frozen=True)
class _Mining:
    """What the steps of this stage share."""

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
        """How many nodes there are to look up, among how many documents."""
        return Scale(self.graph.rows, self.documents.rows)


def mine_clusters(job: Job, documents: Documents, paired: Paired) -> Clustered:
    """The clusters of near-duplicates and their members, by the mode of the run."""
    matches = paired.matches
    built = job.find("graph") or _build_graph(job, documents, matches)
    false = false_components.list_false_components(
        built.table, matches.table, documents.nodes, is_exact=job.kind.is_exact
    )
    false_saved = job.save("false_components", false, **false_components.count_false_components())

    sets = job.find("sets") or _mine(job, _Mining(documents, matches, built, _budget(job)))
    is_none = job.config.clusters.mode == "none"
    names = local_table(job.spark, NAMED) if is_none else _name(job, sets.table, built.table, documents)
    named = job.save("named", names)
    clusters = job.find("clusters") or _list_clusters(job, named.table)
    members = job.save("members", cluster_names.list_members(named.table))
    job.drop("named", made=["clusters", "members"])

    counts = {**built.counts, **false_saved.counts, **clusters.counts}
    metrics = ClustersMetrics(
        rows_in={"pairs": paired.metrics.rows_out["pairs"]},
        rows_out={"clusters": clusters.rows, "members": members.rows, "false_components": false_saved.rows},
        fpgrowth_fits=sets.noted["fpgrowth_fits"],
        covered_components=clusters.noted["covered_components"],
        pairs_below_support=_count_below_support(job, paired.pairs),
        **{name: counts[name] for name in _COUNTED},
    )
    is_cut = clusters.counts["cut_clusters"] > 0
    return Clustered(built.table, clusters.table, members.table, false_saved.table, is_cut, metrics)


_COUNTED = (
    "components", "largest_component", "fpgrowth_components", "led_components", "spread_components", "shares",
    "covered_clusters", "led_clusters", "invented_pairs", "most_invented", "bounded_components",
)  # fmt: skip
"""What is counted of the tables of this stage in passing."""


def _build_graph(job: Job, documents: Documents, matches: Matches) -> Saved:
    """GRAPH, gathered in one task where it is small; else numbered, and its edges streamed through one or in rounds."""
    config = job.config.clusters
    miner = _choose_miner(job)
    share_nodes = SHARE_NODES if config.mode in ("all", "cover") else None
    assignment = graph.Assignment(miner, config.fpgrowth_limit, config.max_sets, config.max_members, share_nodes)
    least_containment = float(job.config.pairs.share) if job.threshold.is_containment else None

    if matches.edges <= min(graph.GATHERED_EDGES, job.most_edges(graph.COST, documents.distinct_sketches)):
        built = graph.build_graph(
            matches.table, documents.nodes, assignment, large=matches.large, least_containment=least_containment
        )
        return job.save("graph", built, **graph.count_components())

    rounds = Rounds(job)
    large = build_large_graph(rounds, matches, documents.nodes, assignment, least_containment=least_containment)
    saved = job.save("graph", large, **graph.count_components())
    rounds.drop("graph")
    return saved


def _choose_miner(job: Job) -> str:
    """The miner of the settings; where a server of Spark Connect has no FP-Growth, the other one, which is said.

    Raises:
        ConfigError: if FP-Growth is asked for, and is not there.
    """
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
    """SETS of all components: those of one task each, and those that are spread over tasks; of mode `none` no sets."""
    if job.config.clusters.mode == "none":
        return job.seal("sets", job.write("sets", local_table(job.spark, SETS)), fpgrowth_fits=0)
    whole = mining.graph.table.where("share is null")
    partitions = mining.matches.partitions
    found = problems.gather_problems(
        whole, mining.sketches, mining.matches.table, scale=mining.scale, partitions=partitions
    )
    with persisted(found) as gathered:
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
        with persisted(transactions) as held:
            frequent = _list_frequent(held)
            for found_sets in frequent:
                listed = mine_components.keep_clusters(
                    found_sets,
                    gathered,
                    threshold=job.threshold,
                    min_support=mining.budget.min_support,
                    partitions=partitions,
                )
                sets = sets.unionByName(listed)
            return job.seal("sets", job.write("sets", sets), fpgrowth_fits=len(frequent))


def _list_frequent(transactions: DataFrame) -> list[DataFrame]:
    """The frequent sets of each FP-Growth fit, lazily but for the fit itself; most runs have one, or none."""
    fits = transactions.groupBy("fit").agg(F.count("*").alias("n"), F.min("least").alias("least")).collect()
    return [
        mine_components.list_frequent(
            transactions.where(F.col("fit") == fit["fit"]), least=int(fit["least"]), count=int(fit["n"])
        )
        for fit in sorted(fits, key=lambda row: int(row["fit"]))
    ]


def _mine_spread(job: Job, mining: _Mining) -> DataFrame:
    """SETS of the components that are spread: all; a cover where a share passed its budget; or those of leaders."""
    how: dict[str, Any] = {"threshold": job.threshold, "budget": mining.budget}
    partitions = max(mining.matches.partitions, mining.graph.counts["shares"])
    sketches, matches = mining.sketches, mining.matches.table
    steps = {"listed": shares.mine_shares, "covered": shares.cover_shares}
    if job.config.clusters.mode == "cover":
        del steps["listed"]

    waiting = mining.graph.table
    done: list[DataFrame] = []
    for name, mine in steps.items():
        blocks = shares.gather_shares(waiting, sketches, matches, partitions=partitions)
        is_over = F.col("coverage") == shares.OVER
        found = job.save(name, mine(blocks, **how), passed=F.count_if(is_over))
        if not found.counts["passed"]:
            return _union([*done, found.table])

        over = found.table.where(is_over).select("ordinal").distinct()
        done.append(found.table.join(over, "ordinal", "left_anti"))
        waiting = waiting.join(over, "ordinal", "left_semi")

    around_leaders = waiting.withColumn("by_leaders", F.lit(True))
    gathered = problems.gather_problems(
        around_leaders, sketches, matches, scale=mining.scale, partitions=mining.matches.partitions
    )
    return _union([*done, mine_components.mine_by_pivot(gathered, mode="all", **how)])


def _union(parts: list[DataFrame]) -> DataFrame:
    whole = parts[0]
    for more in parts[1:]:
        whole = whole.unionByName(more)
    return whole


def _name(job: Job, sets: DataFrame, built: DataFrame, documents: Documents) -> DataFrame:
    """NAMED: the sets as clusters of documents, with their ids."""
    config = job.config.clusters
    naming = cluster_names.Naming(
        max(job.threshold.least_size, config.support or 0),
        config.max_listed,
        config.mode,
        by_weight=job.threshold.is_containment,
        is_large=documents.unpaired.equal_sketches >= heavy_keys.HEAVY,
    )
    return cluster_names.name_sets(sets, built, documents.nodes, naming)


def _list_clusters(job: Job, named: DataFrame) -> Saved:
    """CLUSTERS. One action more where components were covered: it counts them."""
    found = job.write(
        "clusters",
        cluster_names.list_clusters(named),
        covered_clusters=F.count_if(F.col("coverage") == "pairs"),
        led_clusters=F.count_if(F.col("coverage") == "documents"),
        cut_clusters=F.count_if(F.col("size") > F.size("members")),
    )
    covered = 0
    if found.counts["covered_clusters"]:
        covered = found.table.where("coverage = 'pairs'").select("component").distinct().count()
    return job.seal("clusters", found, covered_components=covered)


def _count_below_support(job: Job, pairs: DataFrame) -> int:
    """The pairs that have too few common features to be in a cluster together. One action, where support is asked."""
    support = job.config.clusters.support
    return pairs.where(F.col("overlap") < support).count() if support else 0


def _budget(job: Job) -> Budget:
    config = job.config.clusters
    return Budget(config.max_sets, config.max_members, config.max_nodes, config.support or 0)
