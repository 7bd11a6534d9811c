"""Which documents' texts are read again for a report: a few of each cluster, in bounded files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

LARGEST = 100
"""Largest clusters whose texts come before those of the sample."""

CHARACTERS = 20_000
"""Most characters stored of a text for the report; the rest is cut."""

EACH = 8
"""Documents of a cluster whose text is stored."""


@dataclass(frozen=True)
class TextChoice:
    """Documents whose text is stored: doc_id -> (source, fingerprint of the content); the clusters they are of."""

    documents: Mapping[str, tuple[str, bytes]]
    clusters: Sequence[str]
    beyond_files: int
    """Clusters left out because their files would pass the bytes that are read again."""


def add_pairs(
    choice: TextChoice, rows: Iterable[Mapping[str, Any]], sizes: Mapping[str, int], *, most_bytes: int
) -> TextChoice:
    """Add both documents of some pairs, as long as the files that hold them are not too large together.

    Args:
        choice: what is chosen already.
        rows: of the pairs: `doc_a`, `source_a`, `content_a`, and the same of b.
        sizes: stored bytes of each source.
        most_bytes: of the files that hold all documents, together.
    """
    documents = dict(choice.documents)
    files = {source for source, _ in documents.values()}
    for row in rows:
        ends = {row[f"doc_{end}"]: (row[f"source_{end}"], bytes(row[f"content_{end}"])) for end in "ab"}
        wider = files | {source for source, _ in ends.values()}
        if sum(sizes[source] for source in wider) <= most_bytes:
            documents |= ends
            files = wider
    return replace(choice, documents=documents)


def choose_documents(rows: Iterable[Any], sizes: Mapping[str, int], *, most: int, most_bytes: int) -> TextChoice:
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
    return TextChoice(documents, taken, beyond)
