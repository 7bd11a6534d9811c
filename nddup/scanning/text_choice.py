"""Choose the documents whose texts are read again for a report: a few per cluster, in files of bounded size."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

LARGEST = 100
"""Number of largest clusters whose texts come before those of the sample."""

CHARACTERS = 20_000
"""Most characters of a text that are stored for the report; the rest is cut."""

EACH = 8
"""Documents per cluster whose text is stored."""


@dataclass(frozen=True)
class TextChoice:
    """Documents whose text is stored: doc_id -> (source, fingerprint of the content); and their clusters."""

    documents: Mapping[str, tuple[str, bytes]]
    clusters: Sequence[str]
    beyond_files: int
    """Clusters left out because their files would exceed the bytes to be read again."""


def add_pairs(
    choice: TextChoice, rows: Iterable[Mapping[str, Any]], sizes: Mapping[str, int], *, most_bytes: int
) -> TextChoice:
    """Add both documents of each pair for which the files that hold all chosen documents stay small enough.

    Args:
        choice: the documents already chosen.
        rows: the pairs, with `doc_a`, `source_a`, `content_a` (the content's fingerprint), and the same for b.
        sizes: stored bytes of each source.
        most_bytes: most stored bytes of all files that hold the documents.
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
    """Choose whole clusters in their order, within limits on the number of documents and the size of their files.

    Args:
        rows: of SHOWN, in any order.
        sizes: stored bytes of each source.
        most: most documents.
        most_bytes: most stored bytes of all files that hold them.

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
