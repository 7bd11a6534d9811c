"""The second stage: from the distinct sketches to the near-duplicate documents.

documents --divide, prune, compare--> compared --its pairs; of heavy families those of leaders--> matches
matches, nodes --expand--> pairs
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.metrics import PairsMetrics
from nddup.run.on_spark.documents import Documents
from nddup.run.on_spark.rounds import Matches, Rounds, contract
from nddup.run.on_spark.state import Job, Saved
from nddup.settings import derive
from nddup.sketching.lsh_keys import Finder
from nddup.sketching.recipe import level_of
from nddup.spark.pairing import collapse, compared, expand, heavy_families, key_match, match, modulus_levels, prune

POSTINGS_PER_TASK = 4_000_000
"""(feature, sketch) rows a task of the pairs stage holds: some 100 MB of its memory."""

LEAST_GAIN = 0.02
"""Pruning goes on while a round drops more than this share of the postings. Stopping early is exact."""

MOST_ROUNDS = 20


@dataclass(frozen=True)
class Paired:
    """What the second stage leaves."""

    pairs: DataFrame
    matches: Matches
    metrics: PairsMetrics


@dataclass(frozen=True)
class _Comparing:
    """What the steps of this stage share: the distinct sketches and how the work is divided."""

    documents: Documents
    sketches: DataFrame
    partitions: int


def find_pairs(job: Job, documents: Documents) -> Paired:
    """The near-duplicate pairs of documents, under the settings of the job."""
    sketches = collapse.distinct_sketches(documents.table, levels=job.levels)
    comparing = _Comparing(documents, sketches, _partitions(job, documents.postings))
    found = job.find("compared") or _compare(job, comparing)

    matches = _choose_matches(job, comparing, found)
    expanded = expand.expand(
        matches.table, documents.nodes, threshold=job.threshold, expand_limit=job.config.pairs.expand_limit
    )
    pairs = job.save("pairs", expanded)

    metrics = PairsMetrics(
        rows_in={"documents": documents.rows},
        rows_out={"pairs": pairs.rows},
        pruned_to=found.noted["pruned_to"],
        distinct_sketches=documents.distinct_sketches,
        postings=documents.postings,
        candidates=found.counts["candidates"],
        crowd=found.noted["heavy"],
        cut_features=found.counts["cut_features"],
        cut_postings=found.counts["cut_postings"],
    )
    return Paired(pairs.table, matches, metrics)


def _compare(job: Job, comparing: _Comparing) -> Saved:
    """COMPARED, by whatever the kind finds pairs by.

    Where one sketch contains another, or candidates are pairs unseen, there are no leaders: long lists are cut.
    """
    finder = derive.finder_of(job.config)
    if finder is not None:
        return _compare_by_keys(job, comparing, finder)

    sketches = comparing.sketches
    is_by_levels = job.kind.finder == "levels"
    if is_by_levels:
        most = level_of(comparing.documents.most_features, job.config.sketch.size)
        sketches = modulus_levels.coarsen(sketches, most=most)

    divided = prune.divide(sketches, threshold=job.threshold, partitions=comparing.partitions)
    with _pruned_to_the_end(job, divided, comparing.partitions) as (postings, rounds):
        heavy = _save_heavy(job, comparing, match.find_heavy(postings, max_postings=job.config.pairs.max_postings))
        matched = match.match(postings, sketches, _pairing(job, comparing), heavy.table if heavy else None)
        whole = modulus_levels.keep_common_level(matched) if is_by_levels else matched
        found = job.write("compared", whole, **compared.count_compared())
    return job.seal("compared", found, pruned_to=rounds, heavy=heavy.rows if heavy else 0)


def _compare_by_keys(job: Job, comparing: _Comparing, finder: Finder) -> Saved:
    """COMPARED of the sketches that have a key in common: bands of a signature, or words."""
    pairing = _pairing(job, comparing)
    found_heavy = key_match.find_heavy(comparing.sketches, finder=finder, max_postings=pairing.max_postings)
    heavy = _save_heavy(job, comparing, found_heavy)
    matched = key_match.match_keys(comparing.sketches, finder, pairing, heavy.table if heavy else None)
    found = job.write("compared", matched, **compared.count_compared())
    return job.seal("compared", found, pruned_to=[], heavy=heavy.rows if heavy else 0)


def _pairing(job: Job, comparing: _Comparing) -> match.Pairing:
    """How sketches are compared."""
    return match.Pairing(job.threshold, job.config.pairs.max_postings, comparing.partitions)


def _save_heavy(job: Job, comparing: _Comparing, found: DataFrame) -> Saved | None:
    """The heavy sketches, which are not compared with each other; None where there are none, or no leaders."""
    may_lead = not job.threshold.is_containment and job.config.sketch.verify and job.kind.is_mined
    if not may_lead or comparing.documents.distinct_sketches <= job.config.pairs.max_postings:
        return None
    heavy = job.save("heavy", found)
    return heavy if heavy.rows else None


def _choose_matches(job: Job, comparing: _Comparing, found: Saved) -> Matches:
    """The pairs that were compared; those of a family with a heavy sketch are the ones that its leaders find."""
    matches, edges, families = compared.matches_of(found.table), found.counts["edges"], None
    if found.noted["heavy"]:
        distinct = comparing.documents.distinct_sketches
        families = job.find("families") or _save_families(job, found, distinct)
        nodes, partitions = comparing.documents.nodes, comparing.partitions
        within = heavy_families.pair_with_leaders(
            families.table, comparing.sketches, nodes, threshold=job.threshold, partitions=partitions
        )
        whole = heavy_families.replace_families(matches, families.table, within)
        saved = job.save("matches", whole, edges=F.count("node_a"))
        matches, edges = saved.table, saved.counts["edges"]

    is_complete = found.counts["cut_postings"] == 0
    return Matches(matches, edges, families.table if families else None, is_complete, comparing.partitions)


def _save_families(job: Job, found: Saved, nodes: int) -> Saved:
    """FAMILIES: sketches that are joined by matches, or by links of heavy sketches. In one task, else in rounds."""
    connections = compared.connections_of(found.table)
    if found.counts["edges"] + found.counts["links"] <= job.most_edges(heavy_families.FAMILIES_COST, nodes):
        return job.save("families", heavy_families.find_families(connections))

    ends = (F.least("node_a", "node_b").alias("first"), F.greatest("node_a", "node_b").alias("second"))
    rounds = Rounds(job)
    stars = contract(rounds, connections.select(*ends), "family_stars")
    families = job.save("families", heavy_families.take_families(connections, stars))
    rounds.drop("families")
    return families


@contextmanager
def _pruned_to_the_end(job: Job, postings: DataFrame, partitions: int) -> Iterator[tuple[DataFrame, list[int]]]:
    """Prune until a round drops almost nothing: the postings that are left, and how many each round left.

    Each round is made of the one before, so two of them are on the executors' disks at a time.
    """
    rounds: list[int] = []
    before, current = None, postings.persist(StorageLevel.DISK_ONLY)
    try:
        while True:
            job.progress.describe("postings")
            counted = prune.count_postings(current).first()
            rounds.append(int(counted["postings"]) if counted else 0)
            if before is not None:
                before.unpersist()
            if _is_pruned(rounds):
                break
            pruned = prune.prune(current, partitions=partitions)
            before, current = current, pruned.persist(StorageLevel.DISK_ONLY)
        yield current, rounds
    finally:
        for held in (before, current):
            if held is not None:
                held.unpersist()


def _is_pruned(rounds: Sequence[int]) -> bool:
    """Whether another round would hardly drop a posting."""
    if rounds[-1] == 0 or len(rounds) == MOST_ROUNDS:
        return True
    return len(rounds) > 1 and rounds[-2] - rounds[-1] <= LEAST_GAIN * rounds[-2]


def _partitions(job: Job, postings: int) -> int:
    """Tasks of the block shuffles: Spark's own setting where the run gives one, else by the size of the input."""
    given = job.config.spark.get("spark.sql.shuffle.partitions")
    least = int(given) if given else 2 * job.spark.sparkContext.defaultParallelism
    return max(least, math.ceil(postings / POSTINGS_PER_TASK))
