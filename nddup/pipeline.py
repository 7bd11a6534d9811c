"""The order of the stages.

INPUT files --read, sketch--> records --number, collapse--> documents, rejects
documents   --name_nodes-->   nodes
documents   --divide, prune…, match, lead--> matches
matches, nodes --expand, `nddup.clustering`, list_kept--> pairs, clusters, members, keep
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup import choices, schemas
from nddup.algorithms.recipes import level_of
from nddup.clustering import save_clusters
from nddup.collection import Collection, read_contents, read_records, sources_cut_short
from nddup.errors import NddupError
from nddup.lexicons import find_lexicon
from nddup.rounds import contract
from nddup.session import set_to, splitting
from nddup.stages import bands, collapse, expand, graph, keep, large_graph, lead, levels, match, prune, sketch
from nddup.state import Job, Making

POSTINGS_PER_TASK = 4_000_000
"""(feature, sketch) rows a task of the pairs stage holds: some 100 MB of its memory."""

LEAST_GAIN = 0.02
"""Pruning goes on while a round drops more than this share of the postings. Stopping early is exact."""

MOST_ROUNDS = 20


def run_stages(job: Job, source: Collection | DataFrame) -> None:
    """Every table of a run, from its files or from TEXTS. The tables are left in `job.tables` and in the store."""
    with job.progress.stage("sketch") as notes, job.metrics.stage("sketch"):
        find_lexicon(job, source)
        if isinstance(source, Collection):
            silent = _files_without_records(job, source, _save_files(job, source))
        else:
            _save_records(job, lambda: _sketch_texts(job, source))
            silent = schemas.local_table(job.spark, schemas.REJECTS)
        _save_documents(job, silent)
        notes += [f"{job.metrics.rows['documents']:,} documents", f"{job.metrics.rows['rejects']:,} rejects"]
    with job.progress.stage("pairs") as notes, job.metrics.stage("pairs"):
        _save_matches(job)
        notes += [f"{job.metrics.rows['pairs']:,} pairs", f"{job.metrics.counts['candidates']:,} candidates"]
    with job.progress.stage("clusters") as notes, job.metrics.stage("clusters"):
        save_clusters(job)
        notes += [f"{job.metrics.rows['clusters']:,} clusters"]
    with job.progress.stage("keep") as notes, job.metrics.stage("keep"):
        kept = keep.list_kept(job.tables["nodes"], job.tables["graph"], least_size=job.threshold.least_size)
        job.save("keep", kept, "keep", reads=("nodes", "graph"), kept=F.count_if("kept"))
        notes += [f"{job.metrics.counts['kept']:,} kept"]


def _sketch_texts(job: Job, texts: DataFrame) -> Iterator[DataFrame]:
    """RECORDS of TEXTS; where shingles are too common, a second time without them."""
    yield sketch.sketch_frame(texts, rule=job.rule)
    if _find_common(job):
        yield sketch.sketch_frame(texts, rule=job.rule)


def _find_common(job: Job) -> bool:
    """Find the shingles in the sketches of too many documents; tell whether there are any, to sketch again without.

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
    """RECORDS of all files; those in which Spark passed over a record as too long are read again, from their start.

    How files are split depends on the cores there are at the time. It is set while they are read, and noted, so that
    a later reading, also of a resumed run, finds the records where they were.
    """
    expansion = job.config.input.max_expansion

    def make() -> Iterator[DataFrame]:
        job.metrics.splitting = splitting(job.spark)
        records, seen = read_records(job.spark, collection, rule=job.rule, max_expansion=expansion)
        with set_to(job.spark, job.metrics.splitting):
            yield records
        short = [
            row["source"]
            for count in seen
            if count.is_short
            for row in sources_cut_short(job.spark, count.group, max_record=job.rule.max_record).collect()
        ]
        if short:
            job.metrics.counts["files_read_again"] = len(short)
            job.metrics.read_again = sorted(short)
        again = collection.read_whole(set(short))
        if short:
            with set_to(job.spark, job.metrics.splitting):
                yield read_records(job.spark, again, rule=job.rule, max_expansion=expansion)[0]
        if _find_common(job):
            with set_to(job.spark, job.metrics.splitting):
                yield read_records(job.spark, again, rule=job.rule, max_expansion=expansion)[0]

    kept = _save_records(job, make)
    job.collection = collection.read_whole(set(job.metrics.read_again))
    return kept


def _save_records(job: Job, records: DataFrame | Making) -> DataFrame:
    sections = ["input", "shingle", "sketch"] + ["pairs"] * (job.config.pairs.max_document_frequency is not None)
    sections += ["lexicon"] * job.kind.is_of_words
    reads = ("input", "lexicon") if "lexicon" in job.tables else ("input",)
    return job.save("records", records, *sections, reads=reads, **collapse.count_replaced())


def _save_documents(job: Job, silent: DataFrame) -> None:
    """Documents, rejects and nodes from the records; `silent` are rejects of whole files."""
    kept = job.tables["records"]
    placed = job.save("offsets", collapse.split_offsets(kept), "input", reads=("records",))
    numbered = collapse.number(kept, placed)
    repeats = collapse.find_repeats(numbered).persist(StorageLevel.DISK_ONLY)
    rejects = collapse.gather_rejects(numbered, repeats, silent)
    documents = collapse.collapse(numbered, repeats)
    job.save("documents", documents, "input", "shingle", "sketch", reads=("records",), **collapse.count_sketches())
    job.save("rejects", rejects, "input", reads=("records",))
    repeats.unpersist()
    _count_rejects(job)
    nodes = collapse.name_nodes(job.tables["documents"], policy=job.config.keep.policy, levels=job.levels)
    short = collapse.count_short(job.threshold.least_size)
    job.save("nodes", nodes, "keep", "pairs", "sketch", reads=("documents",), **short)


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
    job.save("pairs", expanded, "pairs", reads=("matches", "nodes"))
    job.metrics.counts["partitions"] = partitions


def _find_matches(job: Job, sketches: DataFrame, partitions: int) -> Iterator[DataFrame]:
    """MATCHES, by whatever the kind finds them by.

    Where one sketch contains another, or candidates are pairs unseen, there is no leading: long lists are cut.
    """
    kind, threshold, limit = job.kind, job.threshold, job.config.pairs.max_postings
    is_led = not threshold.is_containment and job.config.sketch.verify and kind.is_mined
    how: dict[str, Any] = {"threshold": threshold, "max_postings": limit, "partitions": partitions}
    job.metrics.counts["crowd"] = 0
    finder = choices.finder_of(job.config)
    if finder is not None:
        crowd = _save_crowd(job, bands.find_crowd(sketches, finder=finder, max_postings=limit)) if is_led else None
        yield bands.match_keys(sketches, finder=finder, crowd=crowd, **how)
        return
    if kind.finder == "levels":
        most = level_of(job.metrics.counts["most_features"], job.config.sketch.size)
        sketches = levels.spread(sketches, most=most)
    postings = _prune_to_the_end(job, prune.divide(sketches, threshold=threshold, partitions=partitions), partitions)
    crowd = _save_crowd(job, match.find_crowd(postings, max_postings=limit)) if is_led else None
    matched = match.match(postings, sketches, crowd=crowd, **how)
    yield levels.gather(matched) if kind.finder == "levels" else matched
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
    led = lead.lead(families, sketches, job.tables["nodes"], threshold=job.threshold, partitions=partitions)
    whole = lead.replace_led(matches, families, led)
    return job.save("led", whole, "pairs", "keep", reads=("families", "nodes"), edges=F.count("node_a"))


def _find_families(job: Job, matches: DataFrame) -> Iterator[DataFrame]:
    """FAMILIES, in one task, or in rounds where that would be too much for it."""
    if job.metrics.counts["edges"] + job.metrics.counts["links"] <= graph.EDGE_LIMIT:
        yield lead.find_families(matches)
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


def find_pairs(job: Job) -> DataFrame:
    """PAIRS of the documents in `job.tables`, under the settings of the job; needs `documents`, `nodes`, two counts."""
    _save_matches(job)
    return job.tables["pairs"]


def read_kept(job: Job) -> DataFrame:
    """The kept documents themselves, read again: doc_key, doc_id, url, source, record, content, line."""
    if job.collection is None:
        raise ValueError("documents of a DataFrame are not read again")
    offsets = job.tables["offsets"].select("source", "split", "before")
    kept = job.tables["keep"].where("kept").select("doc_id")
    documents = job.tables["documents"].join(kept, "doc_id").select("doc_key", "doc_id", "url", "source", "record")
    contents = read_contents(job.spark, job.collection, rule=job.rule, max_expansion=job.config.input.max_expansion)
    return documents.join(sketch.read_contents(contents, offsets), "doc_key")
