"""The documents of a report as chunks of columns, sorted by id so that the page finds one without reading all."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.report.content import Content

DOCUMENTS_EACH = 5_000

STATES = ("kept", "exact", "equal", "near")
"""Outcomes of a document: kept, or the reason for its removal as a duplicate."""

StoredTexts = dict[str, tuple[int, int, str]]
"""doc_id -> chunk of its text, row in it, title (`titles`)."""

SITE = r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(?P<site>[^/?#:@]+)"
MOST_NAMED = 200
"""Most sources, and most sites, offered as choices; the page accepts any other that is typed."""


def state_of(kept: bool | None, reason: str | None) -> int:  # noqa: FBT001 - a value of the table
    """Return the place of an outcome in `STATES`."""
    return 0 if kept or reason not in STATES else STATES.index(reason)


def document_chunks(shown: Content, stored: StoredTexts) -> Iterator[tuple[str, Any]]:
    """Yield for each chunk the columns of its documents, then the nearest documents of each.

    `nearest-N` has for each document flat triples: id, shared features, resemblance in 1/1000 or -1; it is null if the
    run has too many pairs to find them.
    """
    clusters = _by_document(shown.memberships, shown.documents)
    nearest = None if shown.nearest is None else _by_document(shown.nearest, shown.documents)
    for number, start in enumerate(range(0, len(shown.documents), DOCUMENTS_EACH)):
        rows = shown.documents.slice(start, DOCUMENTS_EACH).to_pydict()
        ranks = [clusters[place] for place in range(start, start + len(rows["doc_id"]))]
        texts = [stored.get(doc, (-1, -1, "")) for doc in rows["doc_id"]]
        yield (
            f"documents-{number}",
            {
                "id": rows["doc_id"],
                **{name: rows[name] for name in ("url", "record", "duplicate_of", "stands", "longest")},
                **_numbered(rows["source"]),
                "tokens": rows["n_tokens"],
                "features": rows["n_features"],
                "pairs": rows["pairs"],
                "state": [state_of(kept, reason) for kept, reason in zip(rows["kept"], rows["reason"], strict=True)],
                "title": [title for _, _, title in texts],
                "text": [[chunk, place] for chunk, place, _ in texts],
                "clusters": [[rank for rank, _ in found] for found in ranks],
                "in": [found[0][1] if found else 0 for found in ranks],
            },
        )
        near = None
        if nearest is not None:
            near = [
                [value for row in nearest[place] for value in _near(*row)]
                for place in range(start, start + len(rows["doc_id"]))
            ]
        yield f"nearest-{number}", near


def named(documents: pa.Table) -> dict[str, list[Any]]:
    """Return the sources and sites with most documents, (name, documents), and the first id of each chunk."""
    sites = pc.struct_field(pc.extract_regex(documents["url"], SITE), "site")
    return {
        "sources": _most(documents["source"]),
        "sites": _most(pc.utf8_lower(sites)),
        "firsts": documents["doc_id"].to_pylist()[::DOCUMENTS_EACH],
    }


def _most(values: pa.ChunkedArray) -> list[list[Any]]:
    counted = [(row["values"], row["counts"]) for row in pc.value_counts(values).to_pylist() if row["values"]]
    return [list(one) for one in sorted(counted, key=lambda item: (-item[1], item[0]))[:MOST_NAMED]]


def _numbered(sources: list[str]) -> dict[str, list[Any]]:
    """Return each source once, and the place of each document's source among them."""
    places: dict[str, int] = {}
    source = [places.setdefault(one, len(places)) for one in sources]
    return {"sources": list(places), "source": source}


def _by_document(rows: pa.Table, documents: pa.Table) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each document, without the id; both tables are sorted by id."""
    place = pc.index_in(rows["doc_id"], documents["doc_id"].combine_chunks()).to_numpy(zero_copy_only=False)
    bounds = np.searchsorted(place, np.arange(len(documents) + 1)).tolist()
    values = list(zip(*(rows[name].to_pylist() for name in rows.column_names[1:]), strict=True))
    return [values[low:high] for low, high in pairwise(bounds)]


def _near(other: str, overlap: int, resemblance: float | None) -> tuple[str, int, int]:
    return other, overlap, -1 if resemblance is None else int(resemblance * 1_000 + 1e-6)
