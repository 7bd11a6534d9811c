"""From chunks to sketches in one pass: parse, decode, strip markup, tokenise, shingle, select. Nothing is written.

Python touches a record a handful of times (parser, charset, markup) and never a token: the rest is one kernel over
the Arrow buffers of the batch's texts (`nddup.algorithms.sketching`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.algorithms.formats import FileHead
from nddup.algorithms.records import Record, Reject, content_fingerprint, parse_record, record_text
from nddup.algorithms.sketching import sketch_texts
from nddup.schemas import CHUNKS, RECORDS, TEXTS, require

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Rule:
    """How a record becomes a sketch. Two sketches compare only if made by equal rules (charset and limits aside)."""

    length: int
    offset: int
    size: int
    seed: int
    markup: Literal["auto", "html", "text"]
    charset: str | None
    min_tokens: int
    max_record: int


@dataclass
class _Rows:
    """Columns of RECORDS for one batch, filled record by record."""

    sources: list[str] = field(default_factory=list)
    splits: list[int] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    doc_ids: list[str | None] = field(default_factory=list)
    urls: list[str | None] = field(default_factory=list)
    contents: list[bytes | None] = field(default_factory=list)
    reasons: list[str | None] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    excerpts: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, place: tuple[str, int, int], found: Record | Reject, text: str) -> None:
        for column, value in zip((self.sources, self.splits, self.seqs), place, strict=True):
            column.append(value)  # type: ignore[arg-type]
        is_reject = isinstance(found, Reject)
        self.doc_ids.append(found.doc_id)
        self.urls.append(None if isinstance(found, Reject) else found.url)
        self.contents.append(None if isinstance(found, Reject) else content_fingerprint(found))
        self.reasons.append(found.reason if isinstance(found, Reject) else None)
        self.details.append(found.detail if isinstance(found, Reject) else "")
        self.excerpts.append(found.excerpt if isinstance(found, Reject) else "")
        self.texts.append("" if is_reject else text)


def sketch_chunks(chunks: DataFrame, *, head: FileHead, rule: Rule) -> DataFrame:
    """Read and sketch every record of files that share a head.

    Schema in:   CHUNKS, in file order within a split
    Schema out:  RECORDS
    Shuffles:  none.    Actions:  none.
    """
    require(chunks, CHUNKS, stage="sketch")
    return chunks.mapInArrow(partial(_sketch_chunks, head=head, rule=rule), RECORDS)


def sketch_frame(texts: DataFrame, *, rule: Rule) -> DataFrame:
    """Sketch documents whose text is given; a null id or text is a reject.

    Schema in:   TEXTS
    Schema out:  RECORDS
    Shuffles:  none.    Actions:  none.
    """
    require(texts, TEXTS, stage="sketch")
    return texts.mapInArrow(partial(_sketch_texts, rule=rule), RECORDS)


def read_contents(chunks: DataFrame, offsets: DataFrame, *, head: FileHead, rule: Rule) -> DataFrame:
    """The content of every record again, under its `doc_key`, for writing the kept documents.

    Schema in:   CHUNKS; source string, split long, before long (records before the split)
    Schema out:  doc_key long, content string (decoded, markup kept), line string (JSON lines: the line as it came)
    Shuffles:  none; `offsets` is broadcast.    Actions:  none.
    """
    require(chunks, CHUNKS, stage="keep")
    rows = chunks.mapInArrow(
        partial(_contents, head=head, rule=rule),
        "source string, split long, seq long, content string, line string",
    )
    return rows.join(F.broadcast(offsets), ["source", "split"]).select(
        (F.col("before") + F.col("seq")).alias("doc_key"), "content", "line"
    )


def parse_chunks(
    batches: Batches, *, head: FileHead, max_record: int
) -> Iterator[list[tuple[tuple[str, int, int], Record | Reject, bytes]]]:
    """The records of a task, a list a batch: ((source, split, place in the split), record or reject, chunk).

    The last chunk of a file is told apart by looking one row ahead, across batches.
    """
    held: tuple[bytes, str, int, bool] | None = None
    seq, current = 0, ("", -1)
    for batch in _and_end(batches):
        rows = [] if batch is None else _rows(batch)
        out = []
        for row in [*rows, None] if batch is None else rows:
            if held is not None:
                value, source, split, ends_file = held
                if (source, split) != current:
                    seq, current = 0, (source, split)
                is_last = ends_file and (row is None or (row[1], row[2]) != current)
                found = (
                    Reject("too large", f"{len(value)} bytes, more than input.max_record", "")
                    if len(value) > max_record
                    else parse_record(value, head, is_last=is_last)
                )
                if found is not None:
                    out.append(((source, split, seq), found, value))
                    seq += 1
            held = row
        if out:
            yield out


def _and_end(batches: Batches) -> Iterator[pa.RecordBatch | None]:
    yield from batches
    yield None


def _rows(batch: pa.RecordBatch) -> list[tuple[bytes, str, int, bool]]:
    ends = np.asarray(batch.column("split_end")) >= np.asarray(batch.column("file_size"))
    return list(
        zip(
            batch.column("value").to_pylist(),
            batch.column("source").to_pylist(),
            batch.column("split").to_pylist(),
            ends.tolist(),
            strict=True,
        )
    )


def _sketch_chunks(batches: Batches, *, head: FileHead, rule: Rule) -> Batches:
    for parsed in parse_chunks(batches, head=head, max_record=rule.max_record):
        rows = _Rows()
        for place, found, _ in parsed:
            text = "" if isinstance(found, Reject) else record_text(found, rule.charset, rule.markup)
            rows.add(place, found, text)
        yield _finish(rows, rule)


def _sketch_texts(batches: Batches, *, rule: Rule) -> Batches:
    for batch in batches:
        rows = _Rows()
        columns = [batch.column(name).to_pylist() for name in ("source", "split", "seq", "doc_id", "text")]
        for source, split, seq, doc_id, text in zip(*columns, strict=True):
            found: Record | Reject = Record(doc_id, None, (text or "",), None)
            if doc_id is None or text is None:
                missing = "id" if doc_id is None else "text"
                found = Reject(f"no {missing}", f"the {missing} is null", (text or "")[:200], doc_id)
                rows.add((source, split, seq), found, "")
            else:
                rows.add((source, split, seq), found, record_text(found, None, rule.markup))
        yield _finish(rows, rule)


def _finish(rows: _Rows, rule: Rule) -> pa.RecordBatch:
    """Sketch the batch's texts and lay out RECORDS."""
    texts = pa.array(rows.texts, pa.large_string())
    _, offsets, data = texts.buffers()
    made = sketch_texts(
        np.frombuffer(data or b"", np.uint8),
        np.frombuffer(offsets, np.int64)[: len(texts) + 1],
        length=rule.length,
        offset=rule.offset,
        size=rule.size,
        seed=rule.seed,
    )
    for i in np.flatnonzero(made.n_tokens < rule.min_tokens):
        if rows.reasons[i] is None:
            rows.reasons[i] = "short"
            rows.details[i] = f"{made.n_tokens[i]} tokens, fewer than input.min_tokens"
            rows.excerpts[i] = rows.texts[i][:200]
    columns = [
        pa.array(rows.sources, pa.string()),
        pa.array(rows.splits, pa.int64()),
        pa.array(rows.seqs, pa.int64()),
        pa.array(rows.doc_ids, pa.string()),
        pa.array(rows.urls, pa.string()),
        pa.array(made.n_tokens),
        pa.array(made.n_features),
        pa.array(rows.contents, pa.binary()),
        pa.array(_fingerprints(made.offsets, made.ids), pa.binary()),
        pa.ListArray.from_arrays(made.offsets.astype(np.int32), pa.array(made.ids.view(np.int64))),
        pa.array(rows.reasons, pa.string()),
        pa.array(rows.details, pa.string()),
        pa.array(rows.excerpts, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=RECORDS.fieldNames())


def _fingerprints(offsets: NDArray[np.int64], ids: NDArray[np.uint64]) -> list[bytes]:
    """BLAKE2b-128 of each sketch: equal sketches, and only they, are equal."""
    data = memoryview(ids.view(np.uint8))
    ends = (offsets * 8).tolist()
    return [blake2b(data[low:high], digest_size=16).digest() for low, high in zip(ends, ends[1:], strict=False)]


def _contents(batches: Batches, *, head: FileHead, rule: Rule) -> Batches:
    for parsed in parse_chunks(batches, head=head, max_record=rule.max_record):
        read = [(place, found, chunk) for place, found, chunk in parsed if isinstance(found, Record)]
        is_json = head.format.kind == "jsonl"
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([place[0] for place, _, _ in read], pa.string()),
                pa.array([place[1] for place, _, _ in read], pa.int64()),
                pa.array([place[2] for place, _, _ in read], pa.int64()),
                pa.array([record_text(found, rule.charset, "text") for _, found, _ in read], pa.string()),
                pa.array(
                    [chunk.decode(head.encoding).strip() if is_json else None for _, _, chunk in read],
                    pa.string(),
                ),
            ],
            names=["source", "split", "seq", "content", "line"],
        )
