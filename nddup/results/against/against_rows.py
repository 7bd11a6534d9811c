"""Make the tables of `nddup against` from its verdicts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.against.against_tables import ITEMS, MATRIX, SPANS, SUPPRESSED
from nddup.against.join_parts import first_numbers, number_items
from nddup.against.judge import CLEAN, COMMON, FOUND, PART, SHORT, UNREAD, Judged
from nddup.against.lists import flatten
from nddup.against.shingle_table import Known
from nddup.against.spans import find_runs
from nddup.against.token_places import count_characters
from nddup.results.against.against_inputs import Items, Side
from nddup.results.against.share_documents import Shared
from nddup.sketching.tokens import tokenise

VERDICTS = {
    CLEAN: ("clean", None),
    PART: ("part", None),
    FOUND: ("found", None),
    SHORT: ("not testable", "short"),
    COMMON: ("not testable", "common"),
    UNREAD: ("not testable", "unread"),
}
"""Code -> verdict and reason."""

EXCERPT = 300
"""Most characters of an excerpt."""

MOST_CELLS = 1_000_000
"""Most rows of a matrix with every part of B against every part of A; a larger one omits pairs that share nothing."""


def item_rows(items: Items, shared: Shared, judged: Judged) -> pa.Table:
    """Return ITEMS, in the order of the collection."""
    is_testable = judged.verdicts < SHORT
    verdicts = [VERDICTS[code] for code in judged.verdicts.tolist()]
    best = [place if place >= 0 else None for place in judged.best.tolist()]
    columns = {
        "item": items.ids,
        "source": items.sources,
        "shingles": judged.sizes.astype(np.int32),
        "suppressed": judged.suppressed.astype(np.int32),
        "verdict": [verdict for verdict, _ in verdicts],
        "reason": [reason for _, reason in verdicts],
        "document": [None if place is None else shared.ids[place] for place in best],
        "document_source": [None if place is None else shared.sources[place] for place in best],
        "containment": pa.array(judged.containment, mask=~is_testable),
        "covered": pa.array(judged.covered, mask=~is_testable),
    }
    return pa.table({name: columns[name] for name in ITEMS.names}, schema=ITEMS.arrow)


def span_rows(items: Items, shared: Shared, judged: Judged) -> pa.Table:
    """Return SPANS of every item that shares shingles with a document."""
    spans = _Spans(items, shared, judged)
    rows = [row for item in np.flatnonzero(judged.best >= 0).tolist() for row in spans.of(item)]
    return pa.Table.from_pylist(rows, SPANS.arrow)


class _Spans:
    """The shared shingles of the documents as arrays, from which it makes the spans of one item at a time."""

    def __init__(self, items: Items, shared: Shared, judged: Judged) -> None:
        self.items, self.shared, self.judged = items, shared, judged
        self.offsets, self.tokens = flatten(shared.rows["tokens"])
        self.numbered = number_items(items.tables)
        self.numbers, self.begins, self.ends = (flatten(shared.rows[name])[1] for name in ("numbers", "begins", "ends"))

    def of(self, item: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of SPANS of one item and its best document."""
        document = int(self.judged.best[item])
        low, high = self.offsets[document], self.offsets[document + 1]
        numbers = self.numbered.numbers[self.numbered.firsts[item] : self.numbered.firsts[item + 1]]
        runs = find_runs(numbers, self.tokens[low:high], self.numbers[low:high], self.judged.is_suppressed)
        part = self.items.part_of(item)
        known, row = part.known, item - part.low
        first, start = int(known.firsts[row]), int(known.bounds[row])
        for at, hit, size in zip(*(values.tolist() for values in runs), strict=True):
            place, tokens = low + hit, size + known.length - 1
            begin, end = int(self.begins[place]), int(self.ends[place + size - 1])
            yield {
                "item": self.items.ids[item],
                "document": self.shared.ids[document],
                "item_token": at,
                "item_token_end": at + tokens,
                "item_char": count_characters(known.data, start, int(known.starts[first + at])),
                "item_char_end": count_characters(known.data, start, int(known.ends[first + at + tokens - 1])),
                "document_token": int(self.tokens[place]),
                "document_token_end": int(self.tokens[place]) + tokens,
                "document_char": begin,
                "document_char_end": end,
                "excerpt": self._excerpt(document, begin, end),
            }

    def _excerpt(self, document: int, begin: int, end: int) -> str:
        """Return up to `EXCERPT` characters of a document from `begin` to `end`, out of its stored region there."""
        starts = self.shared.rows["region_starts"][document].as_py()
        piece = int(np.searchsorted(starts, begin, "right")) - 1
        text: str = self.shared.rows["regions"][document][piece].as_py()
        return text[begin - starts[piece] : min(end, begin + EXCERPT) - starts[piece]]


def suppressed_rows(items: Items, judged: Judged) -> pa.Table:
    """Return SUPPRESSED, the most frequent shingle first."""
    many = np.flatnonzero(judged.is_suppressed & ~number_items(items.tables).repeated)
    many = many[np.argsort(-judged.frequencies[many], kind="stable")]
    first = np.array(first_numbers(items.tables))
    parts = np.searchsorted(first, many, "right") - 1
    spelled = [
        _spell(items.parts[part].known, number - int(first[part]))
        for part, number in zip(parts.tolist(), many.tolist(), strict=True)
    ]
    return pa.table({"shingle": spelled, "documents": judged.frequencies[many]}, schema=SUPPRESSED.arrow)


def _spell(known: Known, number: int) -> str:
    """Return the tokens of a shingle, separated by spaces."""
    token = int(known.places[number])
    run = known.data[known.starts[token] : known.ends[token + known.length - 1]]
    return " ".join(tokenise(bytes(run).decode("utf-8", "replace")))


def matrix_rows(a: Side, b: Side, items: Items, judged: Judged) -> pa.Table:
    """Return MATRIX: each part of B against each part of A; above `MOST_CELLS` rows, only pairs that share shingles."""
    parts_a, parts_b = a.parts, b.parts
    of_item = _parts_of(items, b)
    is_testable = judged.verdicts < SHORT
    n_items = np.bincount(of_item, minlength=len(parts_b))
    n_testable = np.bincount(of_item, weights=is_testable, minlength=len(parts_b)).astype(np.int64)

    item, part, verdict = judged.cells.T
    keys = of_item[item] * len(parts_a) + part
    n_cells = len(parts_a) * len(parts_b)
    shown = np.arange(n_cells) if n_cells <= MOST_CELLS else np.unique(keys)
    places = np.searchsorted(shown, keys)
    found = np.bincount(places[verdict == FOUND], minlength=len(shown))
    partly = np.bincount(places[verdict == PART], minlength=len(shown))
    row_b, row_a = np.divmod(shown, max(len(parts_a), 1))
    columns = {
        "source_b": [parts_b[place] for place in row_b.tolist()],
        "source_a": [parts_a[place] for place in row_a.tolist()],
        "items": n_items[row_b],
        "testable": n_testable[row_b],
        "found": found,
        "part": partly,
        "clean": n_testable[row_b] - found - partly,
    }
    return pa.table({name: columns[name] for name in MATRIX.names}, schema=MATRIX.arrow)


def _parts_of(items: Items, b: Side) -> NDArray[np.int64]:
    """Return the number of the part of B that each item belongs to, (m,)."""
    places = {label: place for place, label in enumerate(b.parts)}
    return np.array([places[b.labels[source]] for source in items.sources], np.int64)
