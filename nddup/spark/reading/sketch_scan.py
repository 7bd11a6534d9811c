"""From chunks to sketches in one pass: parse, decode, strip markup, tokenise, shingle, select. Nothing is written.

Python touches a record a handful of times (parser, charset, markup) and never a token: the rest is one kernel over
the Arrow buffers of the batch's texts (`nddup.sketching.min_s`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.reading.formats import FileHead
from nddup.reading.outcomes import excerpt
from nddup.reading.records import Record, Reject, content_fingerprint, parse_record, read_text, record_text
from nddup.reading.streams import too_large
from nddup.sketching.kinds import KINDS
from nddup.sketching.min_s import Sketches
from nddup.sketching.recipe import Recipe, level_of, make_sketches
from nddup.sketching.words.word_sketches import sketcher_of
from nddup.spark.schemas import CHUNKS, CONTENTS, RECORDS, TEXTS, require

Batches = Iterator[pa.RecordBatch]
Place = tuple[str, int, int]
"""Source, split, place in the split."""
Found = tuple[Place, Record | Reject, bytes]
"""A record where it was found, and the chunk it was in."""
EXCERPT = 200


@dataclass(frozen=True)
class Rule:
    """How a record becomes a sketch. Two sketches compare only if made by equal recipes from equal texts.

    `left_out` are ids, as bytes of ascending uint64, of shingles that are passed over; `lexicon` likewise of terms.
    """

    recipe: Recipe
    markup: Literal["auto", "html", "text"]
    charset: str | None
    min_tokens: int
    max_record: int
    part: Literal["all", "main"] = "all"
    left_out: bytes = b""
    lexicon: bytes = b""


class _Row(NamedTuple):
    """A record of RECORDS before its text is sketched; `text` is empty for a reject."""

    source: str
    split: int
    seq: int
    doc_id: str | None
    url: str | None
    content: bytes | None
    reason: str | None
    detail: str
    excerpt: str
    text: str
    n_replaced: int = 0


def sketch_chunks(chunks: DataFrame, *, head: FileHead, rule: Rule) -> DataFrame:
    """Read and sketch every record of files that share a head.

    Schema in:   CHUNKS, in file order within a split
    Schema out:  RECORDS
    Shuffles:  none.    Actions:  none.
    """
    require(chunks, CHUNKS, stage="sketch")
    return chunks.mapInArrow(partial(_sketch_chunks, head=head, rule=rule), RECORDS)


def sketch_found(parsed: Iterable[list[Found]], rule: Rule) -> Batches:
    """RECORDS of records that were read, a batch a list."""
    for found in parsed:
        yield _finish([_row(place, record, rule) for place, record, _ in found], rule)


def contents_of(parsed: Iterable[list[Found]], head: FileHead, rule: Rule) -> Batches:
    """CONTENTS of records that were read, rejects left out, a batch a list."""
    is_json = head.format.kind == "jsonl"
    for found in parsed:
        read = [(place, record, chunk) for place, record, chunk in found if isinstance(record, Record)]
        lines = [chunk.decode(head.encoding, "replace").strip() if is_json else None for _, _, chunk in read]
        columns = {
            "source": pa.array([place[0] for place, _, _ in read], pa.string()),
            "split": pa.array([place[1] for place, _, _ in read], pa.int64()),
            "seq": pa.array([place[2] for place, _, _ in read], pa.int64()),
            "content": pa.array([record_text(record, rule.charset, "text") for _, record, _ in read], pa.string()),
            "line": pa.array(lines, pa.string()),
        }
        yield pa.RecordBatch.from_pydict({name: columns[name] for name in CONTENTS.fieldNames()})


def sketch_frame(texts: DataFrame, *, rule: Rule) -> DataFrame:
    """Sketch documents whose text is given; a null id or text is a reject.

    Schema in:   TEXTS
    Schema out:  RECORDS
    Shuffles:  none.    Actions:  none.
    """
    require(texts, TEXTS, stage="sketch")
    return texts.mapInArrow(partial(_sketch_texts, rule=rule), RECORDS)


def read_contents(rows: DataFrame, offsets: DataFrame) -> DataFrame:
    """The content of every record under its `doc_key`, for writing the kept documents.

    Schema in:   CONTENTS; source string, split long, before long (records before the split)
    Schema out:  doc_key long, content string (decoded, markup kept), line string (JSON lines: the line as it came)
    Shuffles:  none; `offsets` is broadcast.    Actions:  none.
    """
    require(rows, CONTENTS, stage="keep")
    return rows.join(F.broadcast(offsets), ["source", "split"]).select(
        (F.col("before") + F.col("seq")).alias("doc_key"), "content", "line"
    )


def chunk_contents(chunks: DataFrame, *, head: FileHead, rule: Rule) -> DataFrame:
    """CONTENTS of files that Spark cuts. Schema in: CHUNKS. No shuffle, no action."""
    require(chunks, CHUNKS, stage="keep")
    return chunks.mapInArrow(partial(_chunk_contents, head=head, rule=rule), CONTENTS)


def parse_chunks(batches: Batches, *, head: FileHead, max_record: int) -> Iterator[list[Found]]:
    """The records of a task, a list a batch: ((source, split, place in the split), record or reject, chunk).

    The last chunk of a split is told apart by looking one row ahead, across batches.
    """
    held: tuple[bytes, str, int, bool] | None = None
    seq, current = 0, ("", -1)
    for batch in _and_end(batches):
        rows = [] if batch is None else _rows(batch)
        out = []
        for row in [*rows, None] if batch is None else rows:
            if held is not None:
                value, source, split, ends_open = held
                if (source, split) != current:
                    seq, current = 0, (source, split)
                is_last = ends_open and (row is None or (row[1], row[2]) != current)
                found = (
                    too_large(len(value), excerpt(value))
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
    return list(zip(*(batch.column(name).to_pylist() for name in CHUNKS.fieldNames()), strict=True))


def _sketch_chunks(batches: Batches, *, head: FileHead, rule: Rule) -> Batches:
    yield from sketch_found(parse_chunks(batches, head=head, max_record=rule.max_record), rule)


def _sketch_texts(batches: Batches, *, rule: Rule) -> Batches:
    for batch in batches:
        places = zip(*(batch.column(name).to_pylist() for name in ("source", "split", "seq")), strict=True)
        doc_ids, texts = (batch.column(name).cast(pa.binary()).to_pylist() for name in ("doc_id", "text"))
        documents = zip(places, doc_ids, texts, strict=True)
        yield _finish([_row(place, _document(doc_id, text), rule) for place, doc_id, text in documents], rule)


def _document(doc_id: bytes | None, text: bytes | None) -> Record | Reject:
    """A document of a frame. Spark's strings may hold any bytes, so each is decoded by itself."""
    read: dict[str, str] = {}
    for name, value in (("id", doc_id), ("text", text)):
        try:
            reason, detail = (f"no {name}", f"the {name} is null") if value is None else ("", "")
            read[name] = (value or b"").decode()
        except UnicodeDecodeError as error:
            reason, detail = "malformed", f"the {name} is not UTF-8: {error}"
        if reason:
            return Reject(reason, detail, excerpt(text or b""), read.get("id") if name == "text" else None)
    return Record(read["id"], None, (read["text"],), None)


def _row(place: Place, found: Record | Reject, rule: Rule) -> _Row:
    if isinstance(found, Reject):
        return _Row(*place, found.doc_id, None, None, found.reason, found.detail, found.excerpt, "")
    text, replaced = read_text(found, rule.charset, rule.markup, rule.part)
    return _Row(*place, found.doc_id, found.url, content_fingerprint(found), None, "", "", text, replaced)


def _finish(rows: list[_Row], rule: Rule) -> pa.RecordBatch:
    """Sketch the batch's texts and lay out RECORDS."""
    made = _sketch([row.text for row in rows], rule)
    for i in np.flatnonzero(made.n_tokens < rule.min_tokens):
        if rows[i].reason is None:
            detail = f"{made.n_tokens[i]} tokens, fewer than input.min_tokens"
            rows[i] = rows[i]._replace(reason="short", detail=detail, excerpt=rows[i].text[:EXCERPT])
    by_row = {name: [getattr(row, name) for row in rows] for name in _Row._fields}
    arrays = {
        "n_tokens": pa.array(made.n_tokens),
        "n_features": pa.array(made.n_features),
        "n_replaced": pa.array(by_row["n_replaced"], pa.int32()),
        "content_fingerprint": pa.array(by_row["content"], pa.binary()),
        "sketch_fingerprint": pa.array(_fingerprints(made, rule.recipe), pa.binary()),
        "sketch": pa.ListArray.from_arrays(made.offsets.astype(np.int32), pa.array(made.ids.view(np.int64))),
        "signature": _signatures(made),
    }
    for name in ("source", "doc_id", "url", "reason", "detail", "excerpt"):
        arrays[name] = pa.array(by_row[name], pa.string())
    for name in ("split", "seq"):
        arrays[name] = pa.array(by_row[name], pa.int64())
    return pa.RecordBatch.from_pydict({name: arrays[name] for name in RECORDS.fieldNames()})


def _sketch(texts: list[str], rule: Rule) -> Sketches:
    array = pa.array(texts, pa.large_string())
    _, buffer, data = array.buffers()
    raw, offsets = np.frombuffer(data or b"", np.uint8), np.frombuffer(buffer, np.int64)[: len(array) + 1]
    if rule.recipe.words is not None:
        return sketcher_of(rule.recipe.words, rule.lexicon).sketch(raw, offsets)
    return make_sketches(
        raw,
        offsets,
        rule.recipe,
        np.frombuffer(rule.left_out, np.uint64),
    )


def _signatures(made: Sketches) -> pa.Array:
    """The signatures as a list column, by slot; null where the kind has none, or the text no token."""
    if made.signatures is None:
        return pa.nulls(len(made.n_tokens), pa.list_(pa.int64()))
    has_one = np.diff(made.offsets) > 0
    per_text = made.signatures.size // max(int(np.count_nonzero(has_one)), 1)
    ends = np.concatenate([[0], np.cumsum(has_one * per_text)]).astype(np.int32)
    return pa.ListArray.from_arrays(ends, pa.array(made.signatures.view(np.int64)), mask=pa.array(~has_one))


def _fingerprints(made: Sketches, recipe: Recipe) -> list[bytes]:
    """BLAKE2b-128 of each sketch: equal sketches, and only they, are equal. A modulus that varies is part of it."""
    data = memoryview(made.ids.tobytes())
    ends = pairwise((made.offsets * 8).tolist())
    if KINDS[recipe.kind].estimate != "levels":
        return [blake2b(data[low:high], digest_size=16).digest() for low, high in ends]
    levels = [level_of(count, recipe.size) for count in made.n_features.tolist()]
    return [
        blake2b(data[low:high], digest_size=16, salt=bytes([level])).digest()
        for (low, high), level in zip(ends, levels, strict=True)
    ]


def _chunk_contents(batches: Batches, *, head: FileHead, rule: Rule) -> Batches:
    yield from contents_of(parse_chunks(batches, head=head, max_record=rule.max_record), head, rule)
