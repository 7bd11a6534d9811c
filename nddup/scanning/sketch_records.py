"""The consumers of the first pass: found records -> sketches or counted words.

    SketchRecords   found records -> RECORDS, each a sketch with fingerprints, or a reject
    WordCounter     found records -> TERMS, for the lexicon
    parse_chunks    chunks of files that an engine cuts at separators, several tasks per file -> the records in them

Python code handles a record a few times (parser, charset, markup) and never a token: tokenising, shingling and
selecting are one compiled call over the texts of a batch (`nddup.sketching.min_s`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby, pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.reading.formats import FileHead
from nddup.reading.json_lines import plain_keys
from nddup.reading.outcomes import EXCERPT_LENGTH, Capture, Record, Reject, excerpt
from nddup.reading.records import content_fingerprint, fingerprint_bytes
from nddup.reading.streams import Chunk, too_large
from nddup.scanning.found import Batches, LocatedRecord, SketchRule, TextRule, in_batches, join_encoded, whole_recipe
from nddup.scanning.record_blocks import Block, divide, read_chunks
from nddup.scanning.whole_files import parse_pieces
from nddup.sketching.kinds import KINDS
from nddup.sketching.min_s import Sketches, cut_sketches
from nddup.sketching.recipe import Recipe, level_of, make_sketches
from nddup.sketching.rolling_hash import fingerprint_rows, hash_rows, unknown_bytes
from nddup.sketching.vocabulary import LexiconRule, TermCounts
from nddup.sketching.word_sketches import sketcher_of
from nddup.tables import CHUNKS, RECORDS, TERMS, TYPES, UNREAD, Table


class _Row(NamedTuple):
    """A row of RECORDS without its sketch; `text`, in UTF-8, is empty for a reject."""

    source: str
    split: int
    seq: int
    doc_id: str | None
    url: str | None
    content_fingerprint: bytes | None
    n_replaced: int
    n_stripped: int
    n_guessed: int
    n_inside: int
    parent: str | None
    unread_bytes: int
    unread_parts: int
    policy: tuple[str | None, ...] | None
    reason: str | None
    detail: str
    excerpt: str
    text: bytes
    capture: Capture | None = None


PLAIN = tuple(name for name in _Row._fields if name not in ("text", "capture"))
"""The columns of RECORDS with values from `_Row`; the others come from its capture, and from the sketches."""


COUNTS = ("n_replaced", "n_stripped", "n_guessed", "n_inside", *(column.name for column in UNREAD))
NO_CAPTURE = tuple(Capture())
KINDS_OF = {column.name: TYPES[column.type] for column in RECORDS.columns}
Columns = dict[str, pa.Array]
Texts = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Texts in UTF-8 one after another, and the bounds of each, as of `join_encoded`."""


@dataclass(frozen=True)
class SketchRecords:
    """Makes one row per record: a document with its sketch, or a reject with its reason.

    A record of fewer than `rule.min_tokens` tokens becomes a reject `short`; it keeps its fingerprints and its sketch.
    """

    rule: SketchRule
    table: ClassVar[Table] = RECORDS

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield RECORDS, one batch per list."""
        del head
        for records in lists:
            columns, texts = _read(records, self.rule)
            columns["unread_bytes"] = pc.add(columns["unread_bytes"], pa.array(unknown_bytes(*texts)))
            made, marks = _sketch_and_mark(*texts, self.rule)
            _reject_short(columns, texts, made, self.rule.min_tokens)
            yield _lay_out(columns, made, self.rule.recipe, marks)


MOST_ROWS = 100_000
"""Rows per batch."""


def sketch_texts(data: NDArray[np.uint8], bounds: NDArray[np.int64], rule: SketchRule) -> Sketches:
    """Make the sketches of texts (`data` and `bounds` as in `text_buffers`), in one call of the recipe's kernel."""
    if rule.recipe.words is not None:
        return sketcher_of(rule.recipe.words, rule.lexicon).sketch(data, bounds)
    return make_sketches(data, bounds, rule.recipe, np.frombuffer(rule.left_out, np.uint64))


def sketch_whole(
    data: NDArray[np.uint8], bounds: NDArray[np.int64], rule: SketchRule
) -> tuple[Sketches, Ragged | None]:
    """Make the sketches of texts, and all their shingle ids where these decide.

    A `min-s` sketch is the front of all ids of its text, which are made once.
    """
    if rule.confirm != "resemblance":
        return sketch_texts(data, bounds, rule), None
    whole = make_sketches(data, bounds, whole_recipe(rule.recipe))
    is_front = KINDS[rule.recipe.kind].estimate == "smallest"
    made = cut_sketches(whole, rule.recipe.size) if is_front else sketch_texts(data, bounds, rule)
    return made, Ragged(whole.offsets, whole.ids)


def _sketch_and_mark(
    data: NDArray[np.uint8], bounds: NDArray[np.int64], rule: SketchRule
) -> tuple[Sketches, list[bytes] | None]:
    """Make the sketches of texts, and the fingerprints of what confirms pairs; None where the sketches decide."""
    made, whole = sketch_whole(data, bounds, rule)
    if whole is not None:
        return made, fingerprint_rows(whole)
    if rule.confirm != "edit":
        return made, None
    return made, fingerprint_rows(hash_rows(data, bounds, rule.recipe.unit, rule.recipe.ignore))


def _row_of(one: LocatedRecord, rule: SketchRule) -> _Row:
    place, record = (one.source, one.split, one.seq), one.record
    if isinstance(record, Reject):
        url = record.capture.target_uri if record.capture else None
        why = (record.reason, record.detail, record.excerpt)
        policy = record.policy or None
        return _Row(*place, record.doc_id, url, None, 0, 0, 0, 0, None, 0, 0, policy, *why, b"", record.capture)

    text = rule.text.read_encoded(record)
    return _Row(
        *place,
        record.doc_id,
        record.url,
        # A text that is the unchanged content is encoded only once.
        fingerprint_bytes(text.text) if text.is_content and not record.unread.digest else content_fingerprint(record),
        text.replaced,
        text.stripped,
        text.guessed,
        text.inside,
        record.parent,
        text.replaced + record.unread.size,
        record.unread.parts,
        record.policy or None,
        None,
        "",
        "",
        text.text,
        record.capture,
    )


def _read(records: Sequence[LocatedRecord], rule: SketchRule) -> tuple[Columns, Texts]:
    """Return the columns of RECORDS that are known before the sketches, and the texts."""
    if isinstance(records, Block):
        return _read_block(records, rule)
    rows = [_row_of(one, rule) for one in records]
    columns = {name: pa.array([getattr(row, name) for row in rows], KINDS_OF[name]) for name in PLAIN}
    captures = [row.capture for row in rows]
    if any(captures):
        capture_rows = [tuple(capture) if capture else NO_CAPTURE for capture in captures]
        for name, values in zip(Capture._fields, zip(*capture_rows, strict=True), strict=True):
            columns[name] = pa.array(values, KINDS_OF[name])
    else:
        columns |= _nulls(Capture._fields, len(rows))
    return columns, join_encoded([row.text for row in rows])


def _read_block(block: Block, rule: SketchRule) -> tuple[Columns, Texts]:
    """Do as `_read`, without an object for each record that is plain."""
    is_plain = block.plain_rows(rule.text)
    plain, odd = np.flatnonzero(is_plain), np.flatnonzero(~is_plain)
    (data, bounds), (content, limits) = block.texts, block.contents
    raw = content.data
    bounded = zip(limits[plain].tolist(), limits[plain + 1].tolist(), strict=True)
    known = {
        "source": block.source.take(pa.array(plain)),
        "split": pa.array(block.split[plain]),
        "seq": pa.array(block.seq[plain]),
        "doc_id": block.read.ids.filter(pa.array(is_plain)),
        "url": block.read.urls.filter(pa.array(is_plain)),
        "content_fingerprint": pa.array([fingerprint_bytes(raw[start:end]) for start, end in bounded], pa.binary()),
        **{name: pa.repeat(pa.scalar(0, KINDS_OF[name]), plain.size) for name in COUNTS},
        **{name: pa.repeat("", plain.size) for name in ("detail", "excerpt")},
    }
    if block.read.columns:
        known["policy"] = _in_lists(column.filter(pa.array(is_plain)) for column in block.read.columns)
    columns = known | _nulls([name for name in (*PLAIN, *Capture._fields) if name not in known], plain.size)
    if not odd.size:
        return columns, (data, bounds)

    others, (other, limits) = _read([block.locate(row) for row in odd.tolist()], rule)
    order = pa.array(np.argsort(np.concatenate([plain, odd])))
    columns = {name: pa.concat_arrays([column, others[name]]).take(order) for name, column in columns.items()}
    view, lengths, pieces, at = memoryview(data), np.diff(bounds), list[memoryview](), 0  # type: ignore[arg-type, unused-ignore]
    lengths[odd] = np.diff(limits)
    for number, row in enumerate(odd.tolist()):
        pieces += [view[bounds[at] : bounds[row]], memoryview(other)[limits[number] : limits[number + 1]]]  # type: ignore[arg-type, unused-ignore]
        at = row + 1
    pieces.append(view[bounds[at] :])
    return columns, (np.frombuffer(b"".join(pieces), np.uint8), np.concatenate([[0], np.cumsum(lengths)]))


def _in_lists(columns: Iterable[pa.StringArray]) -> pa.ListArray:
    table = list(columns)
    order = np.arange(len(table) * len(table[0])).reshape(len(table), -1).T
    starts = np.arange(0, order.size + 1, len(table), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), pa.concat_arrays(table).take(pa.array(order.ravel())))


def _nulls(names: Sequence[str], rows: int) -> Columns:
    return {name: pa.nulls(rows, KINDS_OF[name]) for name in names}


def _reject_short(columns: Columns, texts: Texts, made: Sketches, min_tokens: int) -> None:
    """Turn the documents with too few tokens into rejects, in place."""
    is_short = (made.n_tokens < min_tokens) & np.asarray(columns["reason"].is_null())
    if not is_short.any():
        return
    data, bounds = texts
    reasons = {name: columns[name].to_pylist() for name in ("reason", "detail", "excerpt")}
    for i in np.flatnonzero(is_short).tolist():
        reasons["reason"][i] = "short"
        reasons["detail"][i] = f"{made.n_tokens[i]} tokens, fewer than input.min_tokens"
        reasons["excerpt"][i] = data[bounds[i] : bounds[i + 1]].tobytes().decode()[:EXCERPT_LENGTH]
    columns |= {name: pa.array(values, pa.string()) for name, values in reasons.items()}


def _lay_out(columns: Columns, made: Sketches, recipe: Recipe, marks: list[bytes] | None) -> pa.RecordBatch:
    """Make RECORDS of the columns read and the sketches, in the same order.

    `marks` are the fingerprints of what confirms pairs, if texts do: then documents are grouped by these.
    """
    prints = list(marks or fingerprint_sketches(made, recipe))
    for i in np.flatnonzero(np.diff(made.offsets) == 0).tolist():
        if (content := columns["content_fingerprint"][i].as_py()) is not None:
            prints[i] = fingerprint_textless(content, int(made.n_tokens[i]))
    columns |= {
        "n_tokens": pa.array(made.n_tokens),
        "n_features": pa.array(made.n_features),
        "token_fingerprint": pa.nulls(len(prints), pa.binary()) if marks is None else pa.array(marks, pa.binary()),
        "sketch_fingerprint": pa.array(prints, pa.binary()),
        "sketch": pa.ListArray.from_arrays(made.offsets.astype(np.int32), pa.array(made.ids.view(np.int64))),
        "signature": _signatures(made),
    }
    return RECORDS.batch([columns[name] for name in RECORDS.names])


def _signatures(made: Sketches) -> pa.Array:
    """Return the signatures as a list column, by slot; null if the kind has none, or the sketch is empty."""
    if made.signatures is None:
        return pa.nulls(len(made.n_tokens), pa.list_(pa.int64()))
    has_one = np.diff(made.offsets) > 0
    per_text = made.signatures.size // max(int(np.count_nonzero(has_one)), 1)
    ends = np.concatenate([[0], np.cumsum(has_one * per_text)]).astype(np.int32)
    return pa.ListArray.from_arrays(ends, pa.array(made.signatures.view(np.int64)), mask=pa.array(~has_one))


def fingerprint_sketches(made: Sketches, recipe: Recipe) -> list[bytes]:
    """Return the BLAKE2b-128 of each sketch, equal for equal sketches only. It covers the modulus if that varies."""
    if KINDS[recipe.kind].estimate != "levels":
        return fingerprint_rows(Ragged(made.offsets, made.ids))

    data = memoryview(made.ids.tobytes())
    ends = pairwise((made.offsets * 8).tolist())
    levels = [level_of(count, recipe.size) for count in made.n_features.tolist()]
    return [
        blake2b(data[low:high], digest_size=16, salt=bytes([level])).digest()
        for (low, high), level in zip(ends, levels, strict=True)
    ]


def fingerprint_textless(content: bytes, n_tokens: int) -> bytes:
    """Return what stands for the fingerprint of an empty sketch: equal for equal contents that were read alike.

    Args:
        content: the fingerprint of the content.
        n_tokens: the number of tokens that were found in it.
    """
    return blake2b(content + n_tokens.to_bytes(4, "little"), digest_size=16, person=b"content").digest()


@dataclass(frozen=True)
class WordCounter:
    """Counts the terms of all records of a task. The engine sums these partial counts by (term, feature).

    A term may be in several rows, because a task with very many distinct words counts in parts. Every readable record
    is counted, even with a repeated id; texts of fewer than `min_tokens` tokens are not.
    """

    words: LexiconRule
    text: TextRule
    min_tokens: int = 0
    table: ClassVar[Table] = TERMS

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield TERMS after everything has been read. Memory: that of `TermCounts`."""
        del head
        counts = TermCounts(self.words, least_tokens=self.min_tokens)
        for records in lists:
            plain, others = divide(records, self.text)
            texts = [self.text.read_encoded(one.record).text for one in others if isinstance(one.record, Record)]
            texts += plain.texts
            counts.add(*join_encoded(texts))

        for part in counts.drain():
            columns = {
                "term": pa.array(part.terms, pa.string()),
                "feature": pa.array(part.ids.view(np.int64)),
                "occurrences": pa.array(part.occurrences),
                "documents": pa.array(part.documents),
            }
            yield from pa.table({name: columns[name] for name in TERMS.names}).to_batches(max_chunksize=MOST_ROWS)


class _ChunkRow(NamedTuple):
    """A row of CHUNKS."""

    value: bytes
    source: str
    split: int
    ends_open: bool


def parse_chunks(
    batches: Iterable[pa.RecordBatch], head: FileHead, max_record: int
) -> Iterator[Sequence[LocatedRecord]]:
    """Yield the records in the chunks of a task.

    Args:
        batches: of CHUNKS, in file order within a split.
        head: head that the files share.
        max_record: a chunk of more bytes is a reject `too large`.

    Returns:
        Lists as of `found.in_batches`. Chunks without a record (a prolog, a blank line) are skipped and not counted. A
        split that ends inside a record ends with a reject `DIVIDED`.

    Cost: that of `parse_record`. Memory: a batch as Python objects.
    """
    if plain_keys(head) is not None:
        yield from read_chunks(batches, head, max_record)
        return
    rows = (pair for batch in _with_ends(batches) for pair in batch)
    records = (
        LocatedRecord(source, split, seq, record, chunk)
        for (source, split), of_split in groupby(rows, key=lambda pair: (pair[0].source, pair[0].split))
        for seq, (record, chunk) in enumerate(parse_pieces(_cut(of_split, max_record), head, max_record, is_part=True))
    )
    yield from in_batches(records, head.format)


def _with_ends(batches: Iterable[pa.RecordBatch]) -> Iterator[list[tuple[_ChunkRow, bool]]]:
    """Yield the rows, each with whether its split ends with it, as the next row, maybe in the next batch, decides."""
    waiting: list[_ChunkRow] = []
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in CHUNKS.names)
        rows = [*waiting, *map(_ChunkRow, *columns)]
        waiting = rows[-1:]
        yield [(row, (row.source, row.split) != (after.source, after.split)) for row, after in pairwise(rows)]

    yield [(row, True) for row in waiting]


def _cut(rows: Iterable[tuple[_ChunkRow, bool]], max_record: int) -> Iterator[Chunk | Reject]:
    for row, ends_split in rows:
        if len(row.value) > max_record:
            yield too_large(len(row.value), excerpt(row.value))
        else:
            yield Chunk(row.value, is_last=row.ends_open and ends_split)
