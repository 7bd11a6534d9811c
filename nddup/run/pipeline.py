"""The order of the stages.

INPUT files --read, sketch--> records --number, collapse--> documents, rejects
documents   --name_nodes-->   nodes
documents, nodes --`nddup.run.pairing`--> pairs
pairs, nodes --`nddup.run.clustering`, list_kept--> clusters, members, keep
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.errors import NddupError
from nddup.run.clustering import save_clusters
from nddup.run.collection import Collection, read_contents, read_records, sources_cut_short
from nddup.run.lexicons import find_lexicon
from nddup.run.pairing import name_nodes, save_pairs
from nddup.run.session import set_to, splitting
from nddup.run.state import Job, Making
from nddup.spark import heavy_keys, schemas
from nddup.spark.clustering import keep_list
from nddup.spark.pairing import collapse
from nddup.spark.reading import sketch_scan

UNREADABLE = "unreadable"
"""The reason of a file that could not be opened; one that is cut or damaged gives what can be read of it."""


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
        save_pairs(job)
        notes += [f"{job.metrics.rows['pairs']:,} pairs", f"{job.metrics.counts['candidates']:,} candidates"]
    with job.progress.stage("clusters") as notes, job.metrics.stage("clusters"):
        save_clusters(job)
        notes += [f"{job.metrics.rows['clusters']:,} clusters"]
    with job.progress.stage("keep") as notes, job.metrics.stage("keep"):
        kept = keep_list.list_kept(job.tables["nodes"], job.tables["graph"], least_size=job.threshold.least_size)
        job.save("keep", kept, "keep", reads=("nodes", "graph"), kept=F.count_if("kept"))
        notes += [f"{job.metrics.counts['kept']:,} kept"]


def _sketch_texts(job: Job, texts: DataFrame) -> Iterator[DataFrame]:
    """RECORDS of TEXTS; where shingles are too common, a second time without them."""
    yield sketch_scan.sketch_frame(texts, rule=job.rule)
    if _find_common(job):
        yield sketch_scan.sketch_frame(texts, rule=job.rule)


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
    is_large = job.metrics.rows["records"] >= heavy_keys.HEAVY
    rejects = collapse.gather_rejects(numbered, repeats, silent, is_large=is_large)
    documents = collapse.collapse(numbered, repeats, is_large=is_large)
    job.save("documents", documents, "input", "shingle", "sketch", reads=("records",), **collapse.count_sketches())
    job.save("rejects", rejects, "input", reads=("records",))
    repeats.unpersist()
    _count_rejects(job)
    nodes = name_nodes(job, job.tables["documents"], is_large=is_large)
    short = collapse.count_short(job.threshold.least_size)
    job.save("nodes", nodes, "keep", "pairs", "sketch", reads=("documents",), **short)


def _count_rejects(job: Job) -> None:
    """Count the rejects by reason, and stop where they are more than the run allows."""
    documents, rejected = job.metrics.rows["documents"], job.metrics.rows["rejects"]
    job.metrics.counts["records"] = documents + rejected
    if rejected:
        reasons = job.tables["rejects"].groupBy("reason").count().collect()
        job.metrics.reasons = {row["reason"]: row["count"] for row in reasons}
    if UNREADABLE in job.metrics.reasons:
        named = job.tables["rejects"].where(F.col("reason") == UNREADABLE).select("source", "reason", "detail")
        require_readable(sorted(tuple(row) for row in named.collect()), job.config.input.max_unreadable)
    limit = job.config.input.max_rejects
    if limit is not None and rejected > limit * (documents + rejected):
        raise NddupError(
            f"{rejected} of {documents + rejected} records are rejects, more than input.max_rejects {limit}:"
            f" {job.metrics.reasons}"
        )


def require_readable(unread: Sequence[tuple[str, str, str]], limit: int) -> None:
    """Stop where more files than the run allows could not be opened: a few rejects may stand for most of the text.

    Args:
        unread: source, reason and detail of rejects; those of other reasons are passed over.
        limit: `input.max_unreadable`.

    Raises:
        NddupError: naming all these files.
    """
    named = [f"{source} ({detail})" for source, reason, detail in unread if reason == UNREADABLE]
    if len(named) > limit:
        raise NddupError(f"files that cannot be read: {len(named)}, input.max_unreadable {limit}: {'; '.join(named)}")


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


def read_kept(job: Job) -> DataFrame:
    """The kept documents themselves, read again: doc_key, doc_id, url, source, record, content, line."""
    if job.collection is None:
        raise ValueError("documents of a DataFrame are not read again")
    offsets = job.tables["offsets"].select("source", "split", "before")
    kept = job.tables["keep"].where("kept").select("doc_id")
    documents = job.tables["documents"].join(kept, "doc_id").select("doc_key", "doc_id", "url", "source", "record")
    contents = read_contents(job.spark, job.collection, rule=job.rule, max_expansion=job.config.input.max_expansion)
    return documents.join(sketch_scan.read_contents(contents, offsets), "doc_key")
