"""The order of the pairs: from the distinct sketches to the near-duplicate documents.

documents --divide, prune…, match, lead--> matches
matches, nodes --expand--> pairs
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.run.rounds import contract
from nddup.run.state import Job
from nddup.settings import derive
from nddup.sketching.recipe import level_of
from nddup.spark.clustering import large_graph
from nddup.spark.pairing import collapse, expand, key_match, led_families, match, modulus_levels, prune

POSTINGS_PER_TASK = 4_000_000
"""(feature, sketch) rows a task of the pairs stage holds: some 100 MB of its memory."""

LEAST_GAIN = 0.02
"""Pruning goes on while a round drops more than this share of the postings. Stopping early is exact."""

MOST_ROUNDS = 20


def take_documents(job: Job, documents: DataFrame) -> None:
    """Begin with the DOCUMENTS of a finished run: their nodes, and all that pairing asks of them. One action."""
    job.tables = {"documents": documents, "nodes": name_nodes(job, documents)}
    counted = documents.agg(*(count.alias(name) for name, count in collapse.count_sketches().items())).collect()[0]
    job.metrics.counts |= {name: int(count or 0) for name, count in counted.asDict().items()}


def name_nodes(job: Job, documents: DataFrame, *, is_large: bool = True) -> DataFrame:
    """NODES of the documents, by the policy and the kind of the job; see `collapse.name_nodes`."""
    return collapse.name_nodes(documents, policy=job.config.keep.policy, levels=job.levels, is_large=is_large)


def save_pairs(job: Job) -> DataFrame:
    """PAIRS of the documents in `job.tables`, under the settings of the job.

    Needs `documents`, `nodes`, and the counts of `collapse.count_sketches`: a run has them from its documents, and
    `take_documents` gives them.
    """
    config, threshold = job.config, job.threshold
    sketches = collapse.distinct_sketches(job.tables["documents"], levels=job.levels)
    partitions = _partitions(job, job.metrics.counts["postings"])
    counters = {name: F.sum(name) for name in match.COUNTERS}
    matches = job.save(
        "matches",
        partial(_find_matches, job, sketches, partitions),
        "pairs",
        "sketch",
        reads=("documents",),
        edges=F.count("node_a"),
        links=F.count("link_a"),
        **counters,
    )
    if job.metrics.counts["crowd"]:
        matches = _lead_families(job, matches, sketches, partitions)
    limit = config.pairs.expand_limit
    expanded = expand.expand(matches, job.tables["nodes"], threshold=threshold, expand_limit=limit)
    job.metrics.counts["partitions"] = partitions
    return job.save("pairs", expanded, "pairs", reads=("matches", "nodes"))


def _find_matches(job: Job, sketches: DataFrame, partitions: int) -> Iterator[DataFrame]:
    """MATCHES, by whatever the kind finds them by.

    Where one sketch contains another, or candidates are pairs unseen, there is no leading: long lists are cut.
    """
    kind, threshold, limit = job.kind, job.threshold, job.config.pairs.max_postings
    is_led = not threshold.is_containment and job.config.sketch.verify and kind.is_mined
    how: dict[str, Any] = {"threshold": threshold, "max_postings": limit, "partitions": partitions}
    job.metrics.counts["crowd"] = 0
    finder = derive.finder_of(job.config)
    if finder is not None:
        crowd = _save_crowd(job, key_match.find_crowd(sketches, finder=finder, max_postings=limit)) if is_led else None
        yield key_match.match_keys(sketches, finder=finder, crowd=crowd, **how)
        return
    if kind.finder == "levels":
        most = level_of(job.metrics.counts["most_features"], job.config.sketch.size)
        sketches = modulus_levels.spread(sketches, most=most)
    postings = _prune_to_the_end(job, prune.divide(sketches, threshold=threshold, partitions=partitions), partitions)
    crowd = _save_crowd(job, match.find_crowd(postings, max_postings=limit)) if is_led else None
    matched = match.match(postings, sketches, crowd=crowd, **how)
    yield modulus_levels.gather(matched) if kind.finder == "levels" else matched
    postings.unpersist()


def _save_crowd(job: Job, found: DataFrame) -> DataFrame | None:
    """The sketches whose pairs among each other are too many to make; None where there are none."""
    if job.metrics.counts["distinct_sketches"] <= job.config.pairs.max_postings:
        return None
    crowd = job.save("crowd", found, "pairs", "sketch", reads=("documents",))
    job.metrics.counts["crowd"] = job.metrics.rows["crowd"]
    return crowd if job.metrics.rows["crowd"] else None


def _lead_families(job: Job, matches: DataFrame, sketches: DataFrame, partitions: int) -> DataFrame:
    """The matches with those of families with a crowd replaced by the ones that leaders find."""
    families = job.save("families", lambda: _find_families(job, matches), "pairs", reads=("matches",))
    led = led_families.lead(families, sketches, job.tables["nodes"], threshold=job.threshold, partitions=partitions)
    whole = led_families.replace_led(matches, families, led)
    return job.save("led", whole, "pairs", "keep", reads=("families", "nodes"), edges=F.count("node_a"))


def _find_families(job: Job, matches: DataFrame) -> Iterator[DataFrame]:
    """FAMILIES, in one task, or in rounds where that would be too much for it."""
    if job.metrics.counts["edges"] + job.metrics.counts["links"] <= job.most_edges(led_families.FAMILIES_COST):
        yield led_families.find_families(matches)
        return
    links = matches.where("link_a is not null").select("link_a", "link_b")
    edges = matches.where("node_a is not null").select("node_a", "node_b").unionByName(links.toDF("node_a", "node_b"))
    ends = (F.least("node_a", "node_b").alias("first"), F.greatest("node_a", "node_b").alias("second"))
    yield large_graph.find_families(links, contract(job, edges.select(*ends), "links", reads=("matches",)))


def _prune_to_the_end(job: Job, postings: DataFrame, partitions: int) -> DataFrame:
    """Prune round by round until a round drops almost nothing; the last round is persisted."""
    before = None
    rounds: list[int] = []
    for _ in range(MOST_ROUNDS):
        job.progress.describe("postings")
        current = postings.persist(StorageLevel.DISK_ONLY)
        counted = prune.count_postings(current).first()
        rounds.append(int(counted["postings"]) if counted else 0)
        if before is not None:
            before.unpersist()
        if rounds[-1] == 0 or (len(rounds) > 1 and rounds[-2] - rounds[-1] <= LEAST_GAIN * rounds[-2]):
            break
        before, postings = current, prune.prune(current, partitions=partitions)
    job.metrics.pruning = rounds
    return current


def _partitions(job: Job, postings: int) -> int:
    """Tasks of the block shuffles: Spark's own setting where the run gives one, else by the size of the input."""
    given = job.config.spark.get("spark.sql.shuffle.partitions")
    least = int(given) if given else 2 * job.spark.sparkContext.defaultParallelism
    return max(least, math.ceil(postings / POSTINGS_PER_TASK))
