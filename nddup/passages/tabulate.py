"""The tables of documents and of what they repeat: ids, characters and texts of passages; texts without what is cut."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.arrays import Ragged
from nddup.passages.hashed_records import find_characters
from nddup.passages.passage_tables import CUTS, OCCURRENCES, PASSAGES, REPEATING
from nddup.passages.repeats import Passages, Repeats

EXCERPT = 1_000
"""Most characters of a passage's text."""


@dataclass(frozen=True)
class Documents:
    """The n documents, in the order of the collection.

    Attributes:
        rows: `doc_id`, `source`, `record`, `url`, `text`.
        hashes: the hashes of their tokens.
        rejects: REJECTS.
    """

    rows: pa.Table
    hashes: Ragged
    rejects: pa.Table


def make_tables(documents: Documents, repeats: Repeats, min_left: int) -> dict[str, pa.Table]:
    """Return the tables by name, each in an order that does not depend on how the work was divided.

    Of a passage whose first place is in none of these documents there are occurrences, and no row of `passages`.
    """
    passages, cuts = repeats
    offsets = documents.hashes.offsets
    ends = passages.token + passages.tokens[passages.passage]
    chars, char_ends = _characters(documents, passages.document, passages.token, ends)
    is_first = passages.firsts[passages.passage] == offsets[passages.document] + passages.token
    ids = np.array(_identify(documents.hashes, passages), object)
    doc_ids = documents.rows["doc_id"]
    occurrences = pa.table(
        {
            "passage_id": pa.array(ids[passages.passage], pa.string()),
            "doc_id": doc_ids.take(pa.array(passages.document)),
            "token": passages.token,
            "token_end": ends,
            "char": chars,
            "char_end": char_ends,
            "first": is_first,
        }
    ).cast(OCCURRENCES.arrow)
    cut_chars, cut_ends = _characters(documents, cuts.document, cuts.token, cuts.token_end)
    cut_rows = pa.table(
        {
            "doc_id": doc_ids.take(pa.array(cuts.document)),
            "token": cuts.token,
            "token_end": cuts.token_end,
            "char": cut_chars,
            "char_end": cut_ends,
        }
    ).cast(CUTS.arrow)
    texts = _texts(documents, passages.document[is_first], chars[is_first], char_ends[is_first])
    chosen = passages.passage[is_first]
    listed = pa.table(
        {
            "passage_id": pa.array(ids[chosen], pa.string()),
            "tokens": passages.tokens[chosen],
            "documents": passages.documents[chosen],
            "occurrences": passages.places[chosen],
            "text": pa.array(texts, pa.string()),
        }
    ).cast(PASSAGES.arrow)
    return {
        "passages": listed.sort_by(
            [("occurrences", "descending"), ("tokens", "descending"), ("passage_id", "ascending")]
        ),
        "occurrences": occurrences.sort_by(
            [("passage_id", "ascending"), ("doc_id", "ascending"), ("token", "ascending")]
        ),
        "cuts": cut_rows.sort_by([("doc_id", "ascending"), ("token", "ascending")]),
        "repeating": _repeating(documents, repeats, min_left),
        "rejects": documents.rejects,
    }


def _repeating(documents: Documents, repeats: Repeats, min_left: int) -> pa.Table:
    """Return REPEATING, in the order of the collection."""
    covered, cut = repeats.cuts.covered, repeats.cuts.cut
    some = np.flatnonzero(covered)
    sizes = np.diff(documents.hashes.offsets)
    rows = documents.rows.select(["doc_id", "source", "record"]).take(pa.array(some))
    dropped = (cut > 0) & (sizes - cut < min_left)
    for name, column in (("tokens", sizes), ("repeated", covered), ("cut", cut), ("dropped", dropped)):
        rows = rows.append_column(name, pa.array(column[some]))
    return rows.select(REPEATING.names).cast(REPEATING.arrow)


def _identify(hashes: Ragged, passages: Passages) -> list[str]:
    """Return the id of each passage, (p,)."""
    values = memoryview(hashes.values.view(np.uint8))  # type: ignore[arg-type] # an array is a buffer
    _, at = np.unique(passages.passage, return_index=True)
    places = hashes.offsets[passages.document[at]] + passages.token[at]
    return [
        blake2b(values[8 * place : 8 * (place + size)], digest_size=16).hexdigest()
        for place, size in zip(places.tolist(), passages.tokens.tolist(), strict=True)
    ]


def _characters(
    documents: Documents, document: NDArray[np.int32], firsts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the characters of runs of tokens; the runs are in the order of their documents."""
    parts = []
    bounds = np.searchsorted(document, np.arange(len(documents.rows) + 1))
    for low, texts in _blocks(documents):
        offsets = bounds[low : low + len(texts) + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        if first < last:
            parts.append(find_characters(texts, offsets - first, firsts[first:last], ends[first:last]))
    none = np.empty(0, np.int64)
    begins, stops = zip(*parts, strict=True) if parts else ((none,), (none,))
    return np.concatenate(begins), np.concatenate(stops)


def _texts(
    documents: Documents, document: NDArray[np.int32], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> list[str]:
    """Return the texts of runs of characters, at most `EXCERPT` each; the runs are in the order of their documents."""
    bounds = np.searchsorted(document, np.arange(len(documents.rows) + 1)).tolist()
    found: list[str] = []
    for low, texts in _blocks(documents):
        for place, text in enumerate(texts, low):
            if bounds[place] < bounds[place + 1]:
                whole = text.decode()
                found += [
                    whole[begins[run] : min(ends[run], begins[run] + EXCERPT)]
                    for run in range(bounds[place], bounds[place + 1])
                ]
    return found


def _blocks(documents: Documents) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the texts in UTF-8, some at a time, with the number of the first."""
    low = 0
    for chunk in documents.rows["text"].chunks:
        if len(chunk):
            yield low, chunk.cast(pa.binary()).to_pylist()
        low += len(chunk)


def cut_text(text: str, cuts: Sequence[tuple[int, int]], mark: str) -> str:
    """Return a text without runs of characters, each replaced by a mark.

    Where no mark is given and the words on both sides would touch, a blank is put between them.

    Example:
        >>> cut_text("one two three", [(4, 8)], ""), cut_text("one, two", [(3, 5)], ""), cut_text("abc", [(1, 2)], "…")
        ('one three', 'one two', 'a…c')
    """
    parts, at = [], 0
    for begin, end in cuts:
        before, after = text[at:begin], text[end : end + 1]
        touches = bool(text[:begin]) and bool(after) and not text[begin - 1].isspace() and not after.isspace()
        parts += [before, mark or (" " if touches else "")]
        at = end
    return "".join([*parts, text[at:]])
