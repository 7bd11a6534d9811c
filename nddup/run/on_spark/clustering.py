"""The third stage: build the graph of near-duplicate sketches, mine its components, name the sets.

matches, nodes       --save_graph-->    graph (`nddup.run.on_spark.rounds`)
graph, sketches      --mine-->          sets; a large component in shares, over many tasks
sets, graph, nodes   --name_sets-->     named --list-->  clusters, members

The last stage: nodes, graph, matches  --keep_documents-->  keep
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.errors import ConfigError
from nddup.mining.cluster_modes import Budget, share_steps
from nddup.progress import say
from nddup.run.on_spark.documents import Documents
from nddup.run.on_spark.rounds import Choosing, Matches, Rounds, save_graph
from nddup.run.on_spark.state import Job, persisted
from nddup.settings import plan
from nddup.spark import heavy_keys
from nddup.spark.clustering import graph, mine_components, problems, shares
from nddup.spark.clustering.problems import Scale
from nddup.spark.pairing import collapse
from nddup.spark.session_access import is_connect
from nddup.stages import names
from nddup.stages.keep import count_kept, list_kept
from nddup.stages.run_engine import NO_COUNTS, Made, Saved


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


def mine_clusters(job: Job, sketched: Made, paired: Made) -> Made:
    """As `RunEngine.cluster`, by the mode of the run; its own is GRAPH."""
    del sketched
    documents: Documents = paired.own.documents
    matches = paired.own.matches
    built = job.find("graph") or _build_graph(job, documents, matches)
    engine, counts = job.ask(**paired.tables, graph=built.table, matches=paired.own.table, nodes=documents.nodes), {}

    def save(name: str, table: DataFrame, counted: Mapping[str, str] = NO_COUNTS) -> Saved:
        saved = job.save(name, table, counted)
        engine.see(name, saved.table)
        return saved

    def mine() -> Any:  # noqa: ANN401 - a DataFrame
        sets = job.find("sets") or _mine(job, _Mining(documents, matches, built, plan.budget_of(job.config)))
        counts["fpgrowth_fits"] = sets.noted["fpgrowth_fits"]
        return sets.table

    heavy = heavy_keys.HEAVY if documents.unpaired.equal_sketches >= heavy_keys.HEAVY else None
    made, counted = names.make_clusters(engine, save, mine, job.config, heavy=heavy)
    job.drop("named", made=["clusters", "members"])
    return Made(
        tables={name: saved.table for name, saved in made.items()},
        rows={name: saved.rows for name, saved in made.items()},
        counts={**built.counts, **counts, **counted},
        own=built.table,
    )


def keep_documents(job: Job, sketched: Made, paired: Made, clustered: Made) -> Made:
    """As `RunEngine.keep`. One action, and those of the counts."""
    del sketched, clustered
    documents: Documents = paired.own.documents
    by_sets, asked = job.config.pairs.confirm == "resemblance", job.config.keep
    listed = list_kept(job.engine, least_size=job.threshold.least_size, by_sets=by_sets)
    keep = job.save("keep", listed, {"kept": "count_if(kept)"})
    told = job.ask(documents=documents.table, keep=keep.table)
    counts = {
        "kept": keep.counts["kept"],
        "removed": documents.rows - keep.counts["kept"],
        **count_kept(told, asked.order, job.forced, by_loss=asked.max_lost is not None),
    }
    return Made(tables={"keep": keep.table}, rows={"keep": keep.rows}, counts=counts)


def _build_graph(job: Job, documents: Documents, matches: Matches) -> Saved:
    """Make GRAPH."""
    config, (share_nodes, least_containment, max_lost) = job.config.clusters, plan.graph_rule(job.config)
    miner = _choose_miner(job)
    assignment = graph.Assignment(miner, config.fpgrowth_limit, config.max_sets, config.max_members, share_nodes)
    if job.forced is not None or max_lost is not None:
        directed = graph.direct_matches(
            matches.table, documents.nodes, is_contained=job.threshold.is_containment, max_lost=max_lost
        )
        matches, least_containment = replace(matches, table=directed), least_containment or 0.0
    choosing = Choosing(least_containment, job.threshold.is_containment, max_lost is not None)
    return save_graph(Rounds(job), matches, documents.nodes, assignment, choosing)


def _choose_miner(job: Job) -> str:
    """Return the miner of the settings; where a Spark Connect server has no FP-Growth, say so and return `pivot`.

    Raises:
        ConfigError: if FP-Growth is asked for, but missing.
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
    """Make SETS of all components: those mined in one task, and those spread over several."""
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
    how: dict[str, Any] = {"threshold": job.threshold, "budget": mining.budget}
    partitions = max(mining.matches.partitions, mining.graph.counts["shares"])
    sketches, matches = mining.sketches, mining.matches.table
    waiting = mining.graph.table
    done: list[DataFrame] = []
    for name, find in share_steps(job.config.clusters.mode, mining.budget).items():
        blocks = shares.gather_shares(waiting, sketches, matches, partitions=partitions)
        sets = shares.mine_shares(blocks, threshold=job.threshold, find=find, is_distinct=name == "listed")
        is_over = f"coverage = '{shares.OVER}'"
        found = job.save(name, sets, {"passed": f"count_if({is_over})"})
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
