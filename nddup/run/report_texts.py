"""The texts of the documents that the report shows: chosen, read again from the inputs, stored with the run.

A run stores the texts of a bounded number of documents while its inputs are there, so that a report needs nothing but
the run's folder. What else is wanted later is read again from the inputs, after it is sure that they did not change.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from nddup.metrics import TextsMetrics
from nddup.run.pipeline import Found
from nddup.run.state import Job, Saved
from nddup.spark.reading.shown_texts import list_shown


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


def store_texts(job: Job, found: Found) -> TextsMetrics:
    """Leave the table `texts` of a run over files. One small action to choose, one pass over the files to read."""
    texts = job.find("texts") or _read_chosen(job, found)
    return TextsMetrics(
        rows_in={"clusters": found.clustered.metrics.rows_out["clusters"]},
        rows_out={"texts": texts.rows},
        clusters=texts.noted["clusters"],
        beyond_files=texts.noted["beyond_files"],
    )


def _read_chosen(job: Job, found: Found) -> Saved:
    """STORED_TEXTS of the documents that are chosen."""
    options, inputs = job.config.output, found.sketched.inputs
    if inputs is None:
        raise ValueError("documents of a DataFrame are not read again")

    choice = Choice({}, [], 0)
    if options.texts:
        clustered, documents = found.clustered, found.sketched.documents.table
        shown = list_shown(clustered.clusters, clustered.members, documents, sampled=options.texts // 2)
        choice = choose_documents(shown.collect(), inputs.sizes, most=options.texts, most_bytes=int(options.texts_read))
    written = job.write("texts", inputs.find_texts(choice.documents))
    return job.seal("texts", written, clusters=len(choice.clusters), beyond_files=choice.beyond_files)
