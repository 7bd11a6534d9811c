"""The texts of the documents that the report shows: chosen, read again from the inputs, stored with the run.

A run stores the texts of a bounded number of documents while its inputs are there, so that a report needs nothing but
the run's folder. What else is wanted later is read again from the inputs, after it is sure that they did not change.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import NddupError
from nddup.run.collection import find_files, read_texts
from nddup.run.measuring import Metrics
from nddup.run.progress import Progress
from nddup.run.state import Job
from nddup.settings.load import build_config
from nddup.spark import schemas
from nddup.spark.reading.text_scan import Wanted, list_shown, name_texts
from nddup.storage.files import Storage
from nddup.storage.run_folder import RunFolder
from nddup.storage.session_tables import MemoryStore

CHARACTERS = 20_000
"""Of a text; what follows is not stored."""


@dataclass(frozen=True)
class Choice:
    """Documents whose text is stored: doc_id -> (source, fingerprint of the content); the clusters they are of."""

    documents: Mapping[str, tuple[str, bytes]]
    clusters: Sequence[str]
    beyond_files: int
    """Clusters left out because their files would pass the bytes that are read again."""


def choose_documents(rows: Iterable[Any], sizes: Mapping[str, int], *, most: int, most_bytes: int) -> Choice:
    """Take whole clusters in their order while documents and files last.

    Args:
        rows: of SHOWN, in any order.
        sizes: stored bytes of each source.
        most: documents.
        most_bytes: of the files that hold them, together.

    Returns:
        The choice. A cluster is taken only if all its shown documents fit; clusters after one that does not are tried.

    Cost: one sort of the rows.
    """

    def order(row: Any) -> tuple[int, int, str, int]:  # noqa: ANN401 - a Row
        return row["turn"], -row["size"] if row["turn"] == 0 else 0, row["cluster_id"], row["place"]

    documents: dict[str, tuple[str, bytes]] = {}
    files: set[str] = set()
    taken, beyond = [], 0
    for cluster, members in groupby(sorted(rows, key=order), key=lambda row: row["cluster_id"]):
        found = {row["doc_id"]: (row["source"], bytes(row["content_fingerprint"])) for row in members}
        wider = files | {source for source, _ in found.values()}
        if len(documents.keys() | found.keys()) > most:
            continue
        if sum(sizes[source] for source in wider) > most_bytes:
            beyond += 1
            continue
        documents |= found
        files = wider
        taken.append(cluster)
    return Choice(documents, taken, beyond)


def store_texts(job: Job) -> None:
    """Leave the table `texts` of a run over files. One small action to choose, one pass over the files to read."""
    options, tables = job.config.output, job.tables

    def make() -> Iterator[DataFrame]:
        choice = Choice({}, [], 0)
        if options.texts and job.collection is not None:
            sampled = options.texts // 2
            shown = list_shown(tables["clusters"], tables["members"], tables["documents"], sampled=sampled)
            sizes = {file.source: file.size for file in job.collection.listing.files}
            rows = shown.collect()
            choice = choose_documents(rows, sizes, most=options.texts, most_bytes=int(options.texts_read))
        job.metrics.counts["texts_clusters"] = len(choice.clusters)
        job.metrics.counts["texts_beyond_files"] = choice.beyond_files
        yield find_texts(job, choice.documents)

    job.save("texts", make, "output", reads=("documents", "clusters", "members"))


def find_texts(job: Job, documents: Mapping[str, tuple[str, bytes]]) -> DataFrame:
    """STORED_TEXTS of these documents (doc_id -> source, fingerprint), lazily: only their files are read.

    A document that is no more in its file has no row.
    """
    if job.collection is None or not documents:
        return schemas.local_table(job.spark, schemas.STORED_TEXTS)
    schema = schemas.table("doc_id string, source string, content_fingerprint binary")
    named = schemas.local_table(job.spark, schema, [(doc, *place) for doc, place in sorted(documents.items())])
    wanted = Wanted(frozenset(fingerprint for _, fingerprint in documents.values()), CHARACTERS)
    found = read_texts(
        job.spark,
        job.collection.only({source for source, _ in documents.values()}),
        rule=job.rule,
        max_expansion=job.config.input.max_expansion,
        wanted=wanted,
    )
    return name_texts(found, F.broadcast(named))


def reopen_inputs(spark: SparkSession, folder: RunFolder) -> Job:
    """A finished run's inputs and settings, to read documents again; the job holds no tables.

    Raises:
        ConfigError: if an input is not there any more.
        NddupError: if a file changed, came or went since the run.
    """
    header = json.loads(folder.read_text("_RUN.json"))
    config = build_config(header["settings"], origin=f"{folder.path}/_RUN.json")
    storage, paths = Storage(spark), header["inputs"]["paths"]
    before = {source: tuple(seen) for source, seen in header["inputs"]["files"].items()}
    now = {file.source: (file.size, file.modified) for file in storage.list_inputs(paths).files}
    changed = sorted(source for source in before.keys() | now.keys() if before.get(source) != now.get(source))
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise NddupError(f"the inputs of {folder.path} changed since the run: {changed[0]}{more}; run the job again")
    collection = find_files(storage, paths, config)
    return Job(spark, config, MemoryStore(), Progress(spark, is_quiet=True), Metrics(spark), collection=collection)
