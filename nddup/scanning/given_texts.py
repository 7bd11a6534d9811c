"""Documents passed in as a table of ids and texts -> records, as if they had been read from files."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from nddup.reading.outcomes import Record, Reject, excerpt
from nddup.scanning.found import Found

COLUMNS = ("source", "split", "seq", "doc_id", "text")
"""Columns of TEXTS that are read."""


def read_texts(batches: Iterable[pa.RecordBatch]) -> Iterator[list[Found]]:
    """Yield the records of documents passed in, one list per batch. A null or non-UTF-8 id or text is a reject.

    Args:
        batches: of TEXTS. Spark's strings may hold any bytes, so each value is decoded separately.
    """
    for batch in batches:
        places = [batch.column(name).to_pylist() for name in COLUMNS[:3]]
        values = [batch.column(name).cast(pa.binary()).to_pylist() for name in COLUMNS[3:]]
        rows = zip(*places, *values, strict=True)
        yield [Found(source, split, seq, _document(doc_id, text), b"") for source, split, seq, doc_id, text in rows]


def _document(doc_id: bytes | None, text: bytes | None) -> Record | Reject:
    """Make a record of an id and a text, or a reject for the first of them that cannot be used."""
    start = excerpt(text or b"")
    if doc_id is None:
        return Reject("no id", "the id is null", start)
    try:
        name = doc_id.decode()
    except UnicodeDecodeError as error:
        return Reject("malformed", f"the id is not UTF-8: {error}", start)

    if text is None:
        return Reject("no text", "the text is null", start, name)
    try:
        return Record(name, None, (text.decode(),), None)
    except UnicodeDecodeError as error:
        return Reject("malformed", f"the text is not UTF-8: {error}", start, name)
