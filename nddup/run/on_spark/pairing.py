"""The second stage: from the distinct sketches to the near-duplicate documents.

documents --divide, prune, compare--> compared --its pairs; families are searched on their own--> matches
matches, nodes --expand--> pairs
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.errors import CapacityError
from nddup.matching.connected_pairs import Limits
from nddup.matching.long_lists import LongLists
from nddup.metrics import PairsMetrics
from nddup.mining.family_pairs import past_comparisons
from nddup.run.on_spark.confirming import confirm_matches, list_family_texts
from nddup.run.on_spark.documents import Documents
from nddup.run.on_spark.inputs import Inputs
from nddup.run.on_spark.rounds import Matches, Rounds, contract
from nddup.run.on_spark.state import Job, Saved
from nddup.settings import derive
from nddup.settings.confirmation import edit_rule_of
from nddup.sketching.lsh_keys import Finder
from nddup.sketching.recipe import level_of
from nddup.spark.pairing import collapse, compared, expand, key_match, large_components, match, modulus_levels, prune

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
    source: Inputs | DataFrame | None = None
    """What is read again where texts confirm pairs."""


def find_pairs(job: Job, documents: Documents, source: Inputs | DataFrame | None = None) -> Paired:
    """The near-duplicate pairs of documents, under the settings of the job.

    `source` is read again where texts confirm pairs.
    """
    sketches = collapse.distinct_sketches(documents.table, levels=job.levels)
    comparing = _Comparing(documents, sketches, _partitions(job, documents.postings), source)
    found = job.find("compared") or _compare(job, comparing)

    matches = _choose_matches(job, comparing, found)
    confirmed = confirm_matches(job, documents, matches, source)
    expanded = expand.expand(
        confirmed.pairs, documents.nodes, threshold=job.threshold, expand_limit=job.config.pairs.expand_limit
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
        edits=confirmed.metrics,
    )
    return Paired(pairs.table, confirmed.matches, metrics)


def _compare(job: Job, comparing: _Comparing) -> Saved:
    """COMPARED, by whatever the kind finds pairs by.

    Raises:
        CapacityError: if there are no leaders (`derive.limits_of`), and one feature took too many comparisons.
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
        found = _write_compared(job, whole)
    return job.seal("compared", found, pruned_to=rounds, heavy=heavy.rows if heavy else 0)


def _compare_by_keys(job: Job, comparing: _Comparing, finder: Finder) -> Saved:
    """COMPARED of the sketches that have a key in common: bands of a signature, or words."""
    pairing = _pairing(job, comparing)
    found_heavy = key_match.find_heavy(comparing.sketches, finder=finder, max_postings=pairing.long_lists.max_postings)
    heavy = _save_heavy(job, comparing, found_heavy)
    matched = key_match.match_keys(comparing.sketches, finder, pairing, heavy.table if heavy else None)
    found = _write_compared(job, matched)
    return job.seal("compared", found, pruned_to=[], heavy=heavy.rows if heavy else 0)


def _write_compared(job: Job, matched: DataFrame) -> Saved:
    """COMPARED as it is written, still to be sealed."""
    found = job.write("compared", matched, **compared.count_compared())
    if found.counts["stopped"]:
        raise CapacityError(past_comparisons(found.counts["stopped"], job.config.pairs.max_comparisons))
    return found


def _pairing(job: Job, comparing: _Comparing) -> match.Pairing:
    """How sketches are compared."""
    limits = derive.limits_of(job.config)
    long_lists = LongLists(job.config.pairs.max_postings, job.config.pairs.max_comparisons)
    pairing = match.Pairing(job.threshold, long_lists, comparing.partitions)
    return pairing if limits is None else replace(pairing, max_edges=limits.max_edges)


def _save_heavy(job: Job, comparing: _Comparing, found: DataFrame) -> Saved | None:
    """The heavy sketches, which are not compared with each other; None where there are none, or no leaders."""
    is_small = comparing.documents.distinct_sketches <= job.config.pairs.max_postings
    if is_small or derive.limits_of(job.config) is None:
        return None
    heavy = job.save("heavy", found)
    return heavy if heavy.rows else None


def _choose_matches(job: Job, comparing: _Comparing, found: Saved) -> Matches:
    """The pairs that were compared; those of families with a heavy sketch or too many pairs are made anew."""
    matches = compared.matches_of(found.table)
    whole = Matches(matches, found.counts["edges"], None, comparing.partitions)
    limits = derive.limits_of(job.config)
    if limits is None or not (found.noted["heavy"] or whole.edges > limits.max_edges):
        return whole

    families = job.find("families") or _save_families(job, found, comparing, limits)
    if not families.rows:
        return whole
    settled = job.find("settled") or _settle(job, comparing, families.table, limits)
    replaced = large_components.replace_families(matches, families.table, settled.table)
    saved = job.save("matches", replaced, edges=F.count("node_a"))
    large = large_components.list_large(settled.table) if settled.counts["by_leaders"] else None
    return replace(whole, table=saved.table, edges=saved.counts["edges"], large=large)


def _save_families(job: Job, found: Saved, comparing: _Comparing, limits: Limits) -> Saved:
    """FAMILIES: sketches that are joined by matches, or by links of heavy sketches. In one task, else in rounds."""
    connections, nodes = compared.connections_of(found.table), comparing.documents.distinct_sketches
    if found.counts["edges"] + found.counts["links"] <= job.most_edges(large_components.FAMILIES_COST, nodes):
        return job.save("families", large_components.find_families(connections, max_edges=limits.max_edges))

    ends = (F.least("node_a", "node_b").alias("first"), F.greatest("node_a", "node_b").alias("second"))
    rounds = Rounds(job)
    stars = contract(rounds, connections.select(*ends), "family_stars")
    taken = large_components.take_families(connections, stars, max_edges=limits.max_edges)
    families = job.save("families", taken)
    rounds.drop("families")
    return families


def _settle(job: Job, comparing: _Comparing, families: DataFrame, limits: Limits) -> Saved:
    """SETTLED: the pairs of the families, and who is given by leaders.

    Raises:
        CapacityError: if a family took more than `pairs.max_comparisons`.
    """
    finder, edit = derive.finder_of(job.config), edit_rule_of(job.config)
    rule = large_components.FamilyRule(job.threshold, finder, limits, comparing.partitions, edit)
    texts = list_family_texts(job, comparing.documents, families, comparing.source)
    found = large_components.pair_families(families, comparing.sketches, comparing.documents.nodes, rule, texts)
    settled = job.write("settled", found, **large_components.count_settled())
    if settled.counts["stopped"]:
        raise CapacityError(past_comparisons(settled.counts["stopped"], limits.max_comparisons))
    return job.seal("settled", settled)


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
