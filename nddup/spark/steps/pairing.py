"""The second stage on Spark: from the distinct sketches to the near-duplicate documents, and confirmation by texts.

    documents      --find_pairs-->         pairs, by `keep_sketches`, `post` and `match` of `spark.pairing.candidates`
    families       --list_family_texts-->  their texts; the pairs of families are made anew
    matches        --confirm_matches-->    Confirmed, if `pairs.confirm` asks for it

`choose_partitions` gives the number of tasks of the block shuffles: as set, else by the size of the collection and the
memory of a task.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.engines.choose import PYTHON_MEMORY
from nddup.engines.engine import EngineTable
from nddup.errors import CapacityError, ConfigError, NddupError
from nddup.matching.elements import divide
from nddup.matching.overlap_join import NO_LIMIT, ComparisonLimits, LongLists
from nddup.matching.task_sizes import MOST_TASKS, free_memory, say_small, tasks_needed, volume_of
from nddup.mining.family_pairs import FAMILIES_COST, FamilyRule, past_comparisons
from nddup.scanning.collection import Collection
from nddup.scanning.found import Consumer
from nddup.scanning.read_again import UNSTEADY
from nddup.settings import plan
from nddup.settings.plan import confirm_rule_of, tokens_of
from nddup.settings.schema import Config
from nddup.sketching.recipe import level_of
from nddup.spark.pairing import candidates, collapse, confirm
from nddup.spark.pairing.prefix_exchange import Pairing
from nddup.spark.scan import scan_texts
from nddup.spark.session import given_partitions
from nddup.spark.session_access import access_of
from nddup.spark.steps import onto
from nddup.spark.steps.clustering import Edges, Matches, Rounds, contract
from nddup.spark.steps.documents import Documents, Inputs, Sketched, name_nodes
from nddup.spark.steps.state import Job, persisted
from nddup.stages.expand import expand
from nddup.stages.run_engine import Made, Saved
from nddup.tables import CANDIDATES, SHINGLES


class Confirmed(NamedTuple):
    """The pairs that texts confirm."""

    pairs: DataFrame
    """The pairs with all facts about two documents; null where their texts were not compared."""

    matches: Matches
    """The same pairs for later stages: `resemblance` decides between several; it is the edit similarity, if any."""

    counts: Mapping[str, int] | None
    """As of `EditMetrics`; None if the sketches decide."""


def confirm_matches(job: Job, documents: Documents, matches: Matches, source: Inputs | DataFrame | None) -> Confirmed:
    """Return the pairs that the texts confirm; all of them if the sketches decide.

    Args:
        matches: candidates.
        source: the files of the documents, or TEXTS.

    Raises:
        NddupError: if a text is not found again: the input changed meanwhile.
    """
    rule = confirm_rule_of(job.config)
    if rule is None:
        return Confirmed(confirm.with_unknown(matches.table), matches, None)

    compared_texts = job.find("confirmed")
    if compared_texts is None:
        tokens = _read_tokens(job, documents, source)
        placed = confirm.place_pairs(matches.table, partitions=matches.partitions)
        compared = confirm.confirm_pairs(placed, documents.table, tokens, rule, partitions=matches.partitions)
        written = job.write("confirmed", compared, confirm.COUNTS)
        _require_all(written)
        compared_texts = job.seal("confirmed", written)

    pairs = compared_texts.table.where("is_near")
    counts = compared_texts.counts
    likeness = F.coalesce("edit", "resemblance")
    chosen = replace(matches, table=pairs.withColumn("resemblance", likeness), edges=counts["confirmed"])
    names = ("confirmed", "bounded", "bounded_unconfirmed")
    return Confirmed(pairs, chosen, {"compared": matches.edges, **{name: counts[name] for name in names}})


def list_family_texts(
    job: Job, documents: Documents, families: DataFrame, source: Inputs | DataFrame | None
) -> DataFrame | None:
    """Return the tokens of families whose pairs are made anew, lazily; None if the sketches decide."""
    if confirm_rule_of(job.config) is None:
        return None
    return confirm.list_texts(families, documents.table, _read_tokens(job, documents, source))


def _read_tokens(job: Job, documents: Documents, source: Inputs | DataFrame | None) -> DataFrame:
    """Return TOKENS of all documents, lazily; where they are saved for a later run, nothing is read."""
    if job.shingles is not None:
        return onto.stored_tokens(documents.table, job.shingles, job.config)
    return scan_again(job, source, tokens_of(job.config))


def keep_shingles(job: Job, documents: DataFrame, source: Inputs | DataFrame | None) -> None:
    """Save SHINGLES, for a later run onto this one. The actions of `save_shingles`."""
    if confirm_rule_of(job.config) is None:
        job.put_rows("shingles", SHINGLES.arrow.empty_table(), {})
    else:
        tokens = scan_again(job, source, tokens_of(job.config))
        job.shingles = onto.save_shingles(job, documents, tokens).table


def scan_again(job: Job, source: Inputs | DataFrame | None, consumer: Consumer) -> DataFrame:
    """Return what a consumer makes of the inputs, which hold the texts that confirm pairs, lazily."""
    if source is None:
        raise ValueError(f"pairs.confirm {job.config.pairs.confirm}: the texts are needed")
    return source.scan(consumer) if isinstance(source, Inputs) else scan_texts(source, consumer)


def _require_all(confirmed: Saved) -> None:
    if lost := confirmed.counts["lost"]:
        raise NddupError(
            f"pairs.confirm: a text of {lost:,} of {confirmed.rows:,} pairs was not found again: {UNSTEADY}"
        )


def choose_partitions(job: Job, *, ids: int, sketches: int) -> tuple[int, list[str]]:
    """Return the number of tasks of the block shuffles, for `ids` ids in `sketches` distinct sketches.

    And a note where so little memory makes so many tasks that their blocks are small, or more than the run's settings
    ask for.

    Raises:
        ConfigError: if more than `MOST_TASKS` would be used.
    """
    volume = volume_of(ids, sketches, job.threshold)
    needed = tasks_needed(volume, job.task_memory)
    what = f"{ids:,} ids of {sketches:,} distinct sketches"
    tasks = tasks_of(job.spark, job.config, needed, job.task_memory, what)
    asked = given_partitions(job.config.spark) or tasks
    more = f"{tasks:,} tasks instead of {asked:,}: {what} need them at {job.task_memory >> 20:,} MB each"
    notes = [say_small(volume, job.task_memory) if tasks == needed else "", more if asked < tasks else ""]
    return tasks, [one for one in notes if one]


def tasks_of(spark: SparkSession, config: Config, needed: int, task_memory: int, what: str) -> int:
    """Return the number of tasks of block shuffles, at least as many as needed; errors as of `choose_partitions`."""
    chosen = max(given_partitions(config.spark) or access_of(spark).parallelism(), needed)
    if chosen > MOST_TASKS:
        raise ConfigError(
            f"{chosen:,} tasks of {task_memory >> 20:,} MB for {what}, more than the {MOST_TASKS:,} there can be; raise"
            f" {PYTHON_MEMORY}"
        )
    return chosen


@dataclass(frozen=True)
class _Comparing:
    """State shared by the steps of this stage: the distinct sketches and how the work is divided."""

    documents: Documents
    sketches: DataFrame
    partitions: int
    source: Inputs | DataFrame | None = None
    """Read again where texts confirm pairs."""


def find_pairs(
    job: Job, sketched: Sketched, source: Collection | DataFrame | None = None, known: EngineTable = None
) -> Edges:
    """As `SketchedRun.pair`, of sketched or taken documents. Nothing is `known` on Spark."""
    if known is not None:
        raise ValueError("known pairs are for the embedded engine")
    documents = name_nodes(job, sketched.documents)
    again = sketched.inputs if isinstance(source, Collection) else source
    sketches = collapse.distinct_sketches(documents.table, levels=job.levels)
    partitions, notes = choose_partitions(job, ids=documents.postings, sketches=documents.distinct_sketches)
    comparing = _Comparing(documents, sketches, partitions, again)
    compared = job.find("compared") or _compare(job, comparing)

    matches = _choose_matches(job, comparing, compared)
    confirmed = confirm_matches(job, documents, matches, again)
    asked = job.config.pairs
    engine = job.ask(nodes=documents.nodes, matches=confirmed.pairs)
    listed = expand(engine, threshold=job.threshold, expand_limit=asked.expand_limit, confirm=asked.confirm)
    pairs = job.save("pairs", listed)

    counts = {
        **documents.unpaired._asdict(),
        "distinct_sketches": documents.distinct_sketches,
        "postings": documents.postings,
        "candidates": compared.counts["candidates"],
        "crowd": compared.noted["heavy"],
        "limited": confirmed.matches.limited,
        "edits": confirmed.counts,
    }
    joined = candidates.connections_of(compared.table).select(*CANDIDATES.names)
    made = Made(saved={"pairs": pairs}, counts=counts, notes=notes)
    return Edges(job, made, confirmed.matches, confirmed.pairs, documents, joined)


def _compare(job: Job, comparing: _Comparing) -> Saved:
    """Return COMPARED. One action; one more if there are links."""
    sketches = comparing.sketches
    is_by_levels = job.kind.finder == "levels"
    if is_by_levels:
        most = level_of(comparing.documents.most_features, job.config.sketch.size)
        sketches = candidates.coarsen(sketches, most=most)

    pairing = _pairing(job, comparing, comparing.partitions)
    with (
        persisted(candidates.keep_sketches(sketches, pairing)) as homes,
        persisted(candidates.post(homes, pairing)) as postings,
    ):
        matched = candidates.match(homes, postings, pairing)
        saved = _write_compared(job, candidates.keep_common_level(matched) if is_by_levels else matched)
        heavy = candidates.heavy_of(saved.table).count() if saved.counts["links"] else 0
        return job.seal("compared", saved, heavy=heavy)


def _write_compared(job: Job, matched: DataFrame) -> Saved:
    tables = job.write("compared", matched, candidates.COUNTS)
    if tables.counts["stopped"]:
        raise CapacityError(past_comparisons(tables.counts["stopped"], job.config.pairs.max_comparisons))
    return tables


def _pairing(job: Job, comparing: _Comparing, partitions: int) -> Pairing:
    """Return how sketches are compared in so many tasks. They are linked only where families can be given by leaders.

    A family whose pairs, spread evenly over the tasks, would be more than `pairs.max_edges` may be given by leaders:
    its pairs are not listed before that is known, because each takes Spark's Java microseconds. With levels, pairs are
    not final there.
    """
    limits = plan.comparison_limits(job.config)
    is_listed = limits is None or job.kind.finder == "levels"
    even = 0 if limits is None else limits.max_edges // partitions
    return Pairing(
        job.threshold,
        divide(comparing.documents.postings, partitions),
        LongLists(job.config.pairs.max_postings, job.config.pairs.max_comparisons),
        links=limits is not None,
        finder=plan.finder_of(job.config),
        max_edges=NO_LIMIT if limits is None else limits.max_edges,
        most_listed=NO_LIMIT if is_listed else max(1, even + even // 10),
        most_ids=plan.most_ids_of(job.config),
        free=free_memory(job.task_memory),
    )


def _choose_matches(job: Job, comparing: _Comparing, compared: Saved) -> Matches:
    """Return the pairs found, with those of heavy or oversized families recomputed."""
    matches = candidates.matches_of(compared.table)
    whole = Matches(matches, compared.counts["edges"], None, comparing.partitions)
    limits = plan.comparison_limits(job.config)
    if limits is None or not (compared.noted["heavy"] or compared.counts["many"] or whole.edges > limits.max_edges):
        return whole

    families = job.find("searched") or _save_families(job, compared, comparing, limits)
    if not families.rows:
        return whole
    settled = job.find("settled") or _settle(job, comparing, families.table, limits)
    replaced = confirm.replace_families(matches, families.table, settled.table)
    saved = job.save("matches", replaced, {"edges": "count(*)"})
    large = confirm.list_large(settled.table) if settled.counts["by_leaders"] else None
    limited = settled.counts["limited"]
    return replace(whole, table=saved.table, edges=saved.counts["edges"], large=large, limited=limited)


def _save_families(job: Job, compared: Saved, comparing: _Comparing, limits: ComparisonLimits) -> Saved:
    """Make SEARCHED: sketches joined by matches or by links of heavy sketches. In one task if small, else in rounds."""
    connections, nodes = candidates.connections_of(compared.table), comparing.documents.distinct_sketches
    if sum(compared.counts[name] for name in candidates.KINDS) <= job.most_edges(FAMILIES_COST, nodes):
        return job.save("searched", confirm.find_families(connections, max_edges=limits.max_edges))

    ends = (F.least("node_a", "node_b").alias("first"), F.greatest("node_a", "node_b").alias("second"))
    rounds = Rounds(job)
    stars = contract(rounds, connections.select(*ends), "family_stars")
    taken = confirm.take_families(connections, stars, max_edges=limits.max_edges)
    families = job.save("searched", taken)
    rounds.drop("searched")
    return families


def _settle(job: Job, comparing: _Comparing, families: DataFrame, limits: ComparisonLimits) -> Saved:
    """Make FAMILY_PAIRS: the pairs of the families, and which sketches are given by leaders."""
    finder, confirming = plan.finder_of(job.config), confirm_rule_of(job.config)
    rule = FamilyRule(job.threshold, finder and finder.keys, limits, confirming, job.config.keep.most_lost)
    texts = list_family_texts(job, comparing.documents, families, comparing.source)
    pairs = confirm.pair_families(
        families, comparing.sketches, comparing.documents.nodes, rule, texts, partitions=comparing.partitions
    )
    settled = job.write("settled", pairs, confirm.SETTLED_COUNTS)
    if settled.counts["stopped"]:
        raise CapacityError(past_comparisons(settled.counts["stopped"], limits.max_comparisons))
    return job.seal("settled", settled)
