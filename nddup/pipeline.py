"""The order of the stages: the only module that reads, writes, persists and counts.

INPUT files --read, sketch--> records --number, collapse--> documents, rejects
documents   --name_nodes-->   nodes
documents   --divide, prune…, match, lead--> matches
matches     --build_graph-->  graph (components, kept nodes)
graph       --mine-->         sets
matches, sets, graph, nodes --expand, name, list--> pairs, clusters, members, keep
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from nddup import choices, lexicons, schemas
from nddup.algorithms.kinds import Kind
from nddup.algorithms.recipes import level_of
from nddup.algorithms.thresholds import Threshold
from nddup.collection import Collection, read_contents, read_records, sources_cut_short
from nddup.errors import CapacityError, NddupError
from nddup.metrics import Metrics
from nddup.progress import Progress
from nddup.settings import Config
from nddup.stages import (
    bands,
    clusters,
    collapse,
    expand,
    graph,
    keep,
    lead,
    levels,
    lexicon,
    match,
    naming,
    problems,
    prune,
    sketch,
)
from nddup.store import Store

POSTINGS_PER_TASK = 4_000_000
"""(feature, sketch) rows a task of the pairs stage holds: some 100 MB of its memory."""

LEAST_GAIN = 0.02
"""Pruning goes on while a round drops more than this share of the postings. Stopping early is exact."""

MOST_ROUNDS = 20


@dataclass
class Job:
    """What the stages of one run share."""

    spark: SparkSession
    config: Config
    store: Store
    progress: Progress
    metrics: Metrics
    tables: dict[str, DataFrame] = field(default_factory=dict)
    left_out: bytes = b""
    """Ids of shingles that are too common, ascending uint64."""

    lexicon: bytes = b""
    """Ids of the terms of the lexicon, ascending uint64."""

    collection: Collection | None = None
    """The files as they were read at last: what numbers their records."""

    @property
    def threshold(self) -> Threshold:
        """The threshold of the run, exact."""
        return choices.threshold_of(self.config)

    @property
    def kind(self) -> Kind:
        """What the sketches are."""
        return choices.kind_of(self.config.sketch)

    @property
    def levels(self) -> int:
        """s, where the modulus of a sketch follows the document's length; else 0."""
        return self.config.sketch.size if self.kind.estimate == "levels" else 0

    @property
    def rule(self) -> sketch.Rule:
        """How records become sketches."""
        config = self.config
        return sketch.Rule(
            choices.recipe_of(config),
            config.input.markup,
            config.input.charset,
            config.input.min_tokens,
            int(config.input.max_record),
            config.input.text,
            self.left_out,
            self.lexicon,
        )

    def save(
        self, name: str, table: DataFrame, *sections: str, reads: Sequence[str] = (), **counts: Column
    ) -> DataFrame:
        """Compute a table once, under the settings of these sections; its rows and `counts` are taken in passing."""
        schema = schemas.TABLES.get(name) or schemas.WORKING[name]
        settings = {section: getattr(self.config, section).model_dump() for section in sections}
        seen = Observation(name)
        columns = [count.alias(key) for key, count in {"rows": F.count(F.lit(1)), **counts}.items()]
        kept = self.store.save(name, table.observe(seen, *columns), schema, settings=settings, reads=reads)
        found = {key: int(value or 0) for key, value in seen.get.items()}
        self.tables[name] = kept
        self.metrics.rows[name] = found.pop("rows", 0)
        self.metrics.counts.update(dict.fromkeys(counts, 0) | found)
        return kept


def run_stages(job: Job, source: Collection | DataFrame) -> None:
    """Every table of a run, from its files or from TEXTS. The tables are left in `job.tables` and in the store."""
    with job.progress.stage("sketch") as notes, job.metrics.stage("sketch"):
        _find_lexicon(job, source)
        silent = _save_source(job, source)
        if _find_common(job):
            silent = _save_source(job, source)
        _save_documents(job, silent)
        notes += [f"{job.metrics.rows['documents']:,} documents", f"{job.metrics.rows['rejects']:,} rejects"]
    with job.progress.stage("pairs") as notes, job.metrics.stage("pairs"):
        _save_matches(job)
        notes += [f"{job.metrics.rows['pairs']:,} pairs", f"{job.metrics.counts['candidates']:,} candidates"]
    with job.progress.stage("clusters") as notes, job.metrics.stage("clusters"):
        _save_clusters(job)
        notes += [f"{job.metrics.rows['clusters']:,} clusters"]
    with job.progress.stage("keep") as notes, job.metrics.stage("keep"):
        kept = keep.list_kept(job.tables["nodes"], job.tables["graph"], least_size=job.threshold.least_size)
        job.save("keep", kept, "keep", reads=("nodes", "graph"), kept=F.count_if("kept"))
        notes += [f"{job.metrics.counts['kept']:,} kept"]


def _save_source(job: Job, source: Collection | DataFrame) -> DataFrame:
    """RECORDS of files or of TEXTS; what comes back are rejects of whole files."""
    if isinstance(source, Collection):
        return _files_without_records(job, source, _save_files(job, source))
    _save_records(job, sketch.sketch_frame(source, rule=job.rule))
    return schemas.local_table(job.spark, schemas.REJECTS)


def _find_lexicon(job: Job, source: Collection | DataFrame) -> None:
    """The words that describe a document, where the kind asks for them: counted in a pass of its own, or taken."""
    words, saved = job.rule.recipe.words, job.config.lexicon.saved
    if words is None or not words.needs_lexicon:
        return
    rule = words.lexicon
    if saved is not None:
        found, note = lexicons.take_saved(job.spark, saved, words)
        job.metrics.counts |= {f"lexicon_{name}": int(note[name] or 0) for name in lexicons.COUNTED}
    else:
        counted = lexicons.count_terms(
            job.spark, source, rule=job.rule, words=rule, max_expansion=job.config.input.max_expansion
        )
        terms = job.save("terms", counted, "input", "lexicon", reads=("input",), **lexicons.count_in_passing())
        job.metrics.counts["lexicon_counted"] = job.metrics.rows["terms"]
        least, most = rule.interval(job.metrics.counts["lexicon_commonest"])
        found = lexicon.choose(terms, least=least, most=most)
    kept = job.save("lexicon", found, "input", "lexicon", reads=("input",) if saved else ("terms",))
    job.lexicon = lexicons.ids_of(kept)
    job.store.drop("terms")


def _find_common(job: Job) -> bool:
    """Find the shingles in the sketches of too many documents. If there are any, all is sketched again without them.

    They are looked for once: what takes their place in the sketches stays, however common.
    """
    limit = job.config.pairs.max_document_frequency
    job.metrics.counts["left_out_shingles"] = 0
    if limit is None:
        return False
    counted = collapse.count_shingles(job.tables["records"])
    if isinstance(limit, float):
        documents = job.tables["records"].where("reason is null").count()
        limit = math.floor(Fraction(repr(limit)) * documents)
    common = [row["id"] for row in counted.where(F.col("documents") > limit).select("id").collect()]
    job.left_out = np.sort(np.array(common, np.int64).view(np.uint64)).tobytes()
    job.metrics.counts["left_out_shingles"] = len(common)
    return bool(common)


def _save_files(job: Job, collection: Collection) -> DataFrame:
    """RECORDS of all files; those in which Spark passed over a record as too long are read again, from their start."""
    expansion = job.config.input.max_expansion
    records, seen = read_records(job.spark, collection, rule=job.rule, max_expansion=expansion)
    job.collection = collection
    kept = _save_records(job, records)
    short = [
        row["source"]
        for count in seen
        if count.is_short
        for row in sources_cut_short(job.spark, count.group, max_record=job.rule.max_record).collect()
    ]
    if short:
        job.metrics.counts["files_read_again"] = len(short)
        job.collection = collection.read_whole(set(short))
        records, _ = read_records(job.spark, job.collection, rule=job.rule, max_expansion=expansion)
        kept = _save_records(job, records)
    return kept


def _save_records(job: Job, records: DataFrame) -> DataFrame:
    return job.save(
        "records", records, "input", "shingle", "sketch", "lexicon", reads=("input",), **collapse.count_replaced()
    )


def _save_documents(job: Job, silent: DataFrame) -> None:
    """Documents, rejects and nodes from the records; `silent` are rejects of whole files."""
    kept = job.tables["records"]
    numbered = collapse.number(kept)
    repeats = collapse.find_repeats(numbered).persist(StorageLevel.DISK_ONLY)
    rejects = collapse.gather_rejects(numbered, repeats, silent)
    documents = collapse.collapse(numbered, repeats)
    job.save("documents", documents, "input", "shingle", "sketch", reads=("records",), **collapse.count_sketches())
    job.save("rejects", rejects, "input", reads=("records",))
    repeats.unpersist()
    _count_rejects(job)
    nodes = collapse.name_nodes(job.tables["documents"], policy=job.config.keep.policy, levels=job.levels)
    job.save("nodes", nodes, "keep", reads=("documents",), **collapse.count_short(job.threshold.least_size))


def _count_rejects(job: Job) -> None:
    """Count the rejects by reason, and stop where they are more than the run allows."""
    documents, rejected = job.metrics.rows["documents"], job.metrics.rows["rejects"]
    job.metrics.counts["records"] = documents + rejected
    if rejected:
        reasons = job.tables["rejects"].groupBy("reason").count().collect()
        job.metrics.reasons = {row["reason"]: row["count"] for row in reasons}
    limit = job.config.input.max_rejects
    if limit is not None and rejected > limit * (documents + rejected):
        raise NddupError(
            f"{rejected} of {documents + rejected} records are rejects, more than input.max_rejects {limit}:"
            f" {job.metrics.reasons}"
        )


def _files_without_records(job: Job, collection: Collection, records: DataFrame) -> DataFrame:
    """REJECTS of whole files: those whose head said so, and those in which no record was found."""
    known = {source for source, _, _ in collection.unread}
    rest = [
        (file.source, "no records", "no record was found in the file")
        for file in collection.listing.files
        if file.source not in known
    ]
    schema = schemas.table("source string, reason string, detail string")
    files = schemas.local_table(job.spark, schema, [*collection.unread, *rest])
    return files.join(records.select("source").distinct(), "source", "left_anti").select(
        "source",
        F.lit(1).cast("long").alias("record"),
        F.lit(None).cast("string").alias("doc_id"),
        "reason",
        "detail",
        F.lit("").alias("excerpt"),
    )


def _save_matches(job: Job) -> None:
    config, threshold = job.config, job.threshold
    sketches = collapse.distinct_sketches(job.tables["documents"], levels=job.levels)
    partitions = _partitions(job, job.metrics.counts["postings"])
    job.metrics.counts["crowd"] = 0
    matched, crowd, postings = _find_matches(job, sketches, partitions)
    counters = {name: F.sum(name) for name in match.COUNTERS}
    matches = job.save("matches", matched, "pairs", "sketch", reads=("documents",), edges=F.count("node_a"), **counters)
    if postings is not None:
        postings.unpersist()
    if crowd is not None:
        matches = _lead_families(job, matches, sketches, partitions)
    limit = config.pairs.expand_limit
    expanded = expand.expand(matches, job.tables["nodes"], threshold=threshold, expand_limit=limit)
    job.save("pairs", expanded, "pairs", reads=("matches", "nodes"))
    job.metrics.counts["partitions"] = partitions


def _find_matches(
    job: Job, sketches: DataFrame, partitions: int
) -> tuple[DataFrame, DataFrame | None, DataFrame | None]:
    """MATCHES, lazily; the CROWD whose pairs are not made, and the postings that are held for it, where there are any.

    Where one sketch contains another, or candidates are pairs unseen, there is no leading: long lists are cut.
    """
    threshold, limit = job.threshold, job.config.pairs.max_postings
    is_led = not threshold.is_containment and job.config.sketch.verify
    how: dict[str, Any] = {"threshold": threshold, "max_postings": limit, "partitions": partitions}
    finder = choices.finder_of(job.config)
    if finder is not None:
        crowd = _save_crowd(job, bands.find_crowd(sketches, finder=finder, max_postings=limit)) if is_led else None
        return bands.match_keys(sketches, finder=finder, crowd=crowd, **how), crowd, None
    kind = job.kind
    if kind.finder == "levels":
        most = level_of(job.metrics.counts["most_features"], job.config.sketch.size)
        sketches = levels.spread(sketches, most=most)
    is_led = is_led and kind.is_mined
    postings = _prune_to_the_end(job, prune.divide(sketches, threshold=threshold, partitions=partitions), partitions)
    crowd = _save_crowd(job, match.find_crowd(postings, max_postings=limit)) if is_led else None
    matched = match.match(postings, sketches, crowd=crowd, **how)
    return levels.gather(matched) if kind.finder == "levels" else matched, crowd, postings


def _save_crowd(job: Job, found: DataFrame) -> DataFrame | None:
    """The sketches whose pairs among each other are too many to make; None where there are none."""
    if job.metrics.counts["distinct_sketches"] <= job.config.pairs.max_postings:
        return None
    crowd = job.save("crowd", found, "pairs", "sketch", reads=("documents",))
    job.metrics.counts["crowd"] = job.metrics.rows["crowd"]
    return crowd if job.metrics.rows["crowd"] else None


def _lead_families(job: Job, matches: DataFrame, sketches: DataFrame, partitions: int) -> DataFrame:
    """The matches with those of families with a crowd replaced by the ones that leaders find."""
    families = job.save("families", lead.find_families(matches), "pairs", reads=("matches",))
    led = lead.lead(families, sketches, job.tables["nodes"], threshold=job.threshold, partitions=partitions)
    whole = lead.replace_led(matches, families, led)
    return job.save("led", whole, "pairs", "keep", reads=("families", "nodes"), edges=F.count("node_a"))


def _prune_to_the_end(job: Job, postings: DataFrame, partitions: int) -> DataFrame:
    """Prune round by round until a round drops almost nothing; the last round is persisted."""
    before = None
    rounds: list[int] = []
    for _ in range(MOST_ROUNDS):
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


def _save_clusters(job: Job) -> None:
    config, threshold, tables = job.config.clusters, job.threshold, job.tables
    edges = job.metrics.counts["edges"]
    if edges > graph.EDGE_LIMIT:
        raise CapacityError(
            f"{edges:,} pairs of distinct sketches, more than the {graph.EDGE_LIMIT:,} whose components this version"
            " finds in memory; raise pairs.threshold, or split the collection"
        )
    budget = {"max_sets": config.max_sets, "max_members": config.max_members}
    matches = tables.get("led", tables["matches"])
    miner = config.miner if config.mode == "all" else "pivot"
    built = graph.build_graph(
        matches,
        tables["nodes"],
        miner=miner,
        fpgrowth_limit=config.fpgrowth_limit,
        families=tables.get("families"),
        least_containment=float(job.config.pairs.share) if threshold.is_containment else None,
        **budget,
    )
    job.save("graph", built, "clusters", "keep", reads=("matches", "nodes"), **graph.count_components())
    partitions = job.metrics.counts["partitions"]
    sketches = collapse.distinct_sketches(tables["documents"])
    near = matches.where(F.col("node_a").isNotNull())
    gathered = problems.gather_problems(tables["graph"], sketches, near, partitions=partitions).persist(
        StorageLevel.DISK_ONLY
    )
    mined = clusters.mine_by_pivot(gathered, threshold=threshold, mode=config.mode, **budget)
    for frequent in _list_frequent(job, gathered):
        listed = clusters.keep_clusters(frequent, gathered, threshold=threshold, partitions=partitions)
        mined = mined.unionByName(listed)
    sets = job.save("sets", mined, "clusters", "pairs", reads=("graph", "documents", "matches"))
    gathered.unpersist()
    named = naming.name_clusters(
        sets, tables["graph"], tables["nodes"], least_size=threshold.least_size, mode=config.mode
    )
    covered, led = (F.count_if(F.col("coverage") == coverage) for coverage in ("pairs", "documents"))
    kept = job.save(
        "clusters", named, "clusters", reads=("sets", "graph", "nodes"), covered_clusters=covered, led_clusters=led
    )
    members = naming.list_members(kept, tables["nodes"], by_weight=threshold.is_containment)
    job.save("members", members, "keep", reads=("clusters", "nodes"))
    _count_covered(job)


def _list_frequent(job: Job, gathered: DataFrame) -> Iterator[DataFrame]:
    """The frequent sets of each FP-Growth fit; most runs have one, or none."""
    job.metrics.counts["fpgrowth_fits"] = 0
    if job.metrics.counts["fpgrowth_components"] == 0:
        return
    transactions = clusters.list_transactions(gathered, threshold=job.threshold).persist(StorageLevel.DISK_ONLY)
    fits = transactions.groupBy("fit").agg(F.count("*").alias("n"), F.min("least").alias("least")).collect()
    for fit in sorted(fits, key=lambda row: int(row["fit"])):
        chosen = transactions.where(F.col("fit") == fit["fit"])
        yield clusters.list_frequent(chosen, least=int(fit["least"]), count=int(fit["n"]))
    job.metrics.counts["fpgrowth_fits"] = len(fits)


def _count_covered(job: Job) -> None:
    """Count the components that were covered: an action of its own, where there are any."""
    covered = job.tables["clusters"].where("coverage = 'pairs'")
    is_any = job.metrics.counts["covered_clusters"] > 0
    job.metrics.counts["covered_components"] = covered.select("component").distinct().count() if is_any else 0


def read_kept(job: Job) -> DataFrame:
    """The kept documents themselves, read again: doc_key, doc_id, url, source, record, content, line."""
    if job.collection is None:
        raise ValueError("documents of a DataFrame are not read again")
    offsets = collapse.split_offsets(job.tables["records"]).select("source", "split", "before")
    kept = job.tables["keep"].where("kept").select("doc_id")
    documents = job.tables["documents"].join(kept, "doc_id").select("doc_key", "doc_id", "url", "source", "record")
    contents = read_contents(job.spark, job.collection, rule=job.rule, max_expansion=job.config.input.max_expansion)
    return documents.join(sketch.read_contents(contents, offsets), "doc_key")


def settings_of(config: Config) -> dict[str, Any]:
    """The settings of a run as plain values."""
    return config.model_dump()
