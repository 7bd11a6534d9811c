"""The second stage: from the distinct sketches to the near-duplicate documents.

documents --keep, post, match--> compared --its pairs; those of families made anew--> matches
matches, nodes --expand--> pairs
"""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.errors import CapacityError
from nddup.matching.connected_pairs import NO_LIMIT, Limits
from nddup.matching.elements import divide
from nddup.matching.long_lists import LongLists
from nddup.metrics import PairsMetrics
from nddup.mining.family_pairs import past_comparisons
from nddup.run.on_spark.confirming import confirm_matches, list_family_texts
from nddup.run.on_spark.documents import Documents
from nddup.run.on_spark.inputs import Inputs
from nddup.run.on_spark.partitions import choose_partitions
from nddup.run.on_spark.rounds import Matches, Rounds, contract
from nddup.run.on_spark.state import Job, Saved, persisted
from nddup.settings import derive
from nddup.settings.confirmation import edit_rule_of
from nddup.sketching.recipe import level_of
from nddup.spark.pairing import collapse, compared, expand, large_components, match, modulus_levels
from nddup.spark.pairing.plan import Pairing


@dataclass(frozen=True)
class Paired:
    """The result of the second stage."""

    pairs: DataFrame
    matches: Matches
    metrics: PairsMetrics


@dataclass(frozen=True)
class _Comparing:
    """State shared by the steps of this stage: the distinct sketches and how the work is divided."""

    documents: Documents
    sketches: DataFrame
    partitions: int
    source: Inputs | DataFrame | None = None
    """Read again where texts confirm pairs."""


def find_pairs(job: Job, documents: Documents, source: Inputs | DataFrame | None = None) -> Paired:
    """Find the near-duplicate pairs of documents, under the settings of the job.

    `source` is read again where texts confirm pairs.
    """
    sketches = collapse.distinct_sketches(documents.table, levels=job.levels)
    partitions = choose_partitions(job, ids=documents.postings, sketches=documents.distinct_sketches)
    comparing = _Comparing(documents, sketches, partitions, source)
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
        distinct_sketches=documents.distinct_sketches,
        postings=documents.postings,
        candidates=found.counts["candidates"],
        crowd=found.noted["heavy"],
        edits=confirmed.metrics,
    )
    return Paired(pairs.table, confirmed.matches, metrics)


def _compare(job: Job, comparing: _Comparing) -> Saved:
    """Return COMPARED. One action; one more to count heavy sketches, if there are links.

    Raises:
        CapacityError: if there are no leaders (`derive.limits_of`), and one feature took too many comparisons.
    """
    sketches = comparing.sketches
    is_by_levels = job.kind.finder == "levels"
    if is_by_levels:
        most = level_of(comparing.documents.most_features, job.config.sketch.size)
        sketches = modulus_levels.coarsen(sketches, most=most)

    pairing = _pairing(job, comparing)
    with (
        persisted(match.keep_sketches(sketches, pairing)) as homes,
        persisted(match.post(homes, pairing)) as postings,
    ):
        matched = match.match(homes, postings, pairing)
        whole = modulus_levels.keep_common_level(matched) if is_by_levels else matched
        found = _write_compared(job, whole)
    heavy = compared.heavy_of(found.table).count() if found.counts["links"] else 0
    return job.seal("compared", found, heavy=heavy)


def _write_compared(job: Job, matched: DataFrame) -> Saved:
    """Write COMPARED; the caller seals it."""
    found = job.write("compared", matched, **compared.count_compared())
    if found.counts["stopped"]:
        raise CapacityError(past_comparisons(found.counts["stopped"], job.config.pairs.max_comparisons))
    return found


def _pairing(job: Job, comparing: _Comparing) -> Pairing:
    """Return how sketches are compared. They are linked only where families can be given by leaders."""
    limits = derive.limits_of(job.config)
    return Pairing(
        job.threshold,
        divide(comparing.documents.postings, comparing.partitions),
        LongLists(job.config.pairs.max_postings, job.config.pairs.max_comparisons),
        links=limits is not None,
        finder=derive.finder_of(job.config),
        max_edges=NO_LIMIT if limits is None else limits.max_edges,
        most_ids=derive.most_ids_of(job.config),
    )


def _choose_matches(job: Job, comparing: _Comparing, found: Saved) -> Matches:
    """Return the pairs that were found; those of families with a heavy sketch or too many pairs are made anew."""
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
    """Make FAMILIES: sketches joined by matches or by links of heavy sketches. In one task if small, else in rounds."""
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
    """Make SETTLED: the pairs of the families, and which sketches are given by leaders.

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
