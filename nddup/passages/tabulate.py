"""The tables of records on the way into the search for passages, and of what it finds on the way out.

    records   --HashRecords-->  HASHED    texts and the hashes of their tokens
    tokens    --find_characters--> their first characters; a text --find_sentences--> its sentences
    passages  --tables-->       ids, characters and texts of passages; texts without what is cut

A text and its hashes travel together: on this machine in files of the workers, which are mapped, not in memory.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.against.spans import count_characters, locate_tokens
from nddup.ground.arrays import Ragged
from nddup.ground.kernels import compiled
from nddup.passages.repeats import Cuts, Passages, Repeats
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Reject
from nddup.rewriting.cut_records import cut_text
from nddup.rewriting.verdicts import NAMES, SPANS
from nddup.scanning.found import Batches, LocatedRecord, TextRule, join_encoded
from nddup.sketching.rolling_hash import hash_rows, most_tokens
from nddup.sketching.tokens import word_table
from nddup.tables import TYPES, Table
from nddup.tables.features import CUTS, HASHED, OCCURRENCES, PASSAGES, REPEATING

EXCERPT = 1_000
"""Maximum number of characters of a passage's text."""

NO_PLACES = pa.table({"source": pa.array([], pa.string()), "record": pa.array([], pa.int64())})
"""Places of no records."""

Runs = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]
"""Runs of tokens: their documents, their first tokens, and those after their last."""

BLOCK = 8
"""Characters are counted once for each 2**8 bytes, and from there on for each requested place."""

_MARKS = r".!?\u2026\u203c\u203d\u2047-\u2049\u0589\u061f\u06d4\u0964\u0965\u1362"

_END = re.compile(
    rf"(?<![{_MARKS}])[{_MARKS}]++[\"'\u2019\u201d\u00bb\u203a)\]}}]*+\s++"
    r"|[\u3002\uff01\uff0e\uff1f\uff61]++[\"'\u2019\u201d\u300d\u300f\u3011\uff09)\]}]*+\s*+"
    r"|\n\s*+"
)
"""The end of a sentence, if no small letter follows: marks with what closes it and a blank, or a line that ends.

A match begins at the first of several marks: at each of them, a row of marks without a blank would cost its square."""


@dataclass(frozen=True)
class HashRecords:
    """Makes one row per record: a document with its text and token hashes, or a reject with its reason.

    Without `hashes` their lists are empty, and the tokens are counted alone. `ignore`: what tokens leave out.
    """

    rule: TextRule
    ignore: tuple[str, ...] = ()
    hashes: bool = True
    table: ClassVar[Table] = HASHED

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield HASHED, one batch per list of records."""
        del head
        kinds = [TYPES[column.type] for column in HASHED.columns[:-3]]
        for records in lists:
            rows = [self._row_of(one) for one in records]
            *values, texts = zip(*rows, strict=True)
            data, bounds = join_encoded(texts)
            hashed = hash_rows(data, bounds, ignore=self.ignore)
            columns = [pa.array(column, kind) for column, kind in zip(values, kinds, strict=True)]
            ends = pa.py_buffer(bounds.astype(np.int32))
            columns.append(pa.StringArray.from_buffers(len(rows), ends, pa.py_buffer(data)))
            sizes = pa.array(np.diff(hashed.offsets).astype(np.int32))
            if not self.hashes:
                hashed = Ragged(np.zeros_like(hashed.offsets), np.empty(0, np.uint64))
            hash_lists = pa.ListArray.from_arrays(
                hashed.offsets.astype(np.int32), pa.array(hashed.values.view(np.int64))
            )
            yield HASHED.batch([*columns, sizes, hash_lists])

    def _row_of(self, one: LocatedRecord) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, bytes]:
        place, record = (one.source, one.split, one.seq), one.record
        if isinstance(record, Reject):
            return (*place, record.doc_id, None, record.reason, record.detail, record.excerpt, b"")
        return (*place, record.doc_id, record.url, None, "", "", bytes(self.rule.read_encoded(record).text))


class Sentences(NamedTuple):
    """The k sentences of a text, in order.

    Attributes:
        tokens: (k,), the first token of each; the first is 0.
        chars: (k + 1,), where each begins, and the length of the text. What has no token is the end of a sentence.
    """

    tokens: NDArray[np.int64]
    chars: NDArray[np.int64]


def hashes_of(rows: pa.Table) -> Ragged:
    """Return the token hashes of rows of HASHED. Cost: one copy, 8 bytes a token."""
    chunks = [chunk for chunk in rows["hashes"].chunks if len(chunk)]
    lengths = [np.diff(np.asarray(chunk.offsets)) for chunk in chunks]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.concatenate([np.empty(0, np.int64), *lengths]), out=offsets[1:])
    values = [np.asarray(chunk.flatten()).view(np.uint64) for chunk in chunks]
    return Ragged(offsets, np.concatenate([np.empty(0, np.uint64), *values]))


@dataclass(frozen=True)
class Documents:
    """The n documents, in the order of the collection.

    Attributes:
        rows: `doc_key`, the number of the record among all; `doc_id`, `source`, `record`, `url`, `text`.
        hashes: the hashes of their tokens.
        rejects: REJECTS.
        others: `source` and `record` of those that could be read and do not count, as a run did not keep them.
        ignore: what tokens leave out.
        whole_sentences: whether a sentence is cut as a whole or not at all.
    """

    rows: pa.Table
    hashes: Ragged
    rejects: pa.Table
    others: pa.Table = field(default_factory=lambda: NO_PLACES)
    ignore: tuple[str, ...] = ()
    whole_sentences: bool = False


class WholeCuts(NamedTuple):
    """Cuts of whole sentences: the characters of each as well, from its first sentence to the next that stays."""

    cuts: Cuts
    chars: NDArray[np.int64]
    char_ends: NDArray[np.int64]


def cut_sentences(documents: Documents, cuts: Cuts) -> WholeCuts:
    """Return the cuts of those sentences of which every token may be cut.

    So nothing is cut that `cuts` does not allow, and no sentence in part.

    Cost: each text with cuts is read three times.
    """
    offsets, cut = documents.hashes.offsets, np.zeros_like(cuts.cut)
    rows: list[tuple[int, int, int, int, int]] = []
    for document, runs in groupby(zip(*(column.tolist() for column in cuts[:3]), strict=True), key=itemgetter(0)):
        n_tokens = int(offsets[document + 1] - offsets[document])
        text = documents.rows["text"][document].as_py().encode()
        tokens, chars = find_sentences(text, n_tokens, documents.ignore)
        tokens = np.append(tokens, n_tokens)
        for _, token, token_end in runs:
            first, last = np.searchsorted(tokens, token), np.searchsorted(tokens, token_end, "right") - 1
            if first < last:
                rows.append((document, tokens[first], tokens[last], chars[first], chars[last]))
                cut[document] += tokens[last] - tokens[first]
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    whole = cuts._replace(document=columns[0].astype(np.int32), token=columns[1], token_end=columns[2], cut=cut)
    return WholeCuts(whole, columns[3], columns[4])


def make_tables(documents: Documents, repeats: Repeats, min_left: int) -> dict[str, pa.Table]:
    """Return the tables by name, each in an order that does not depend on how the work was divided.

    Of a passage whose first place is in none of these documents there are occurrences, and no row of `passages`.
    """
    passages, cuts = repeats
    whole = cut_sentences(documents, cuts) if documents.whole_sentences else None
    cuts = cuts if whole is None else whole.cuts
    offsets = documents.hashes.offsets
    ends = passages.token + passages.tokens[passages.passage]
    runs = ((passages.document, passages.token, ends), (cuts.document, cuts.token, cuts.token_end))
    (chars, char_ends), (cut_chars, cut_ends) = _characters(documents, runs)
    if whole is not None:
        cut_chars, cut_ends = whole[1:]
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
            "cut": _count_cut(documents.hashes, passages, cuts),
        }
    ).cast(OCCURRENCES.arrow)
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
        "repeating": _repeating(documents, cuts, min_left),
        "rejects": documents.rejects,
    }


def _count_cut(hashes: Ragged, passages: Passages, cuts: Cuts) -> NDArray[np.int64]:
    offsets = hashes.offsets
    starts = np.append(-1, offsets[cuts.document] + cuts.token)
    ends = np.append(-1, offsets[cuts.document] + cuts.token_end)
    before = np.append(0, np.cumsum(ends - starts))

    def count(at: NDArray[np.int64]) -> NDArray[np.int64]:
        run = np.searchsorted(starts, at, "right") - 1
        return np.asarray(before[run] + np.minimum(at, ends[run]) - starts[run])

    begins = offsets[passages.document] + passages.token
    return count(begins + passages.tokens[passages.passage]) - count(begins)


def _repeating(documents: Documents, cuts: Cuts, min_left: int) -> pa.Table:
    covered, cut = cuts.covered, cuts.cut
    places = np.flatnonzero(covered)
    sizes = np.diff(documents.hashes.offsets)
    rows = documents.rows.select(["doc_id", "source", "record"]).take(pa.array(places))
    dropped = (cut > 0) & (sizes - cut < min_left)
    for name, column in (("tokens", sizes), ("repeated", covered), ("cut", cut), ("dropped", dropped)):
        rows = rows.append_column(name, pa.array(column[places]))
    return rows.select(REPEATING.names).cast(REPEATING.arrow)


def _identify(hashes: Ragged, passages: Passages) -> list[str]:
    values = memoryview(hashes.values.view(np.uint8))  # type: ignore[arg-type, unused-ignore] # an array is a buffer
    _, at = np.unique(passages.passage, return_index=True)
    places = hashes.offsets[passages.document[at]] + passages.token[at]
    return [
        blake2b(values[8 * place : 8 * (place + size)], digest_size=16).hexdigest()
        for place, size in zip(places.tolist(), passages.tokens.tolist(), strict=True)
    ]


def _characters(documents: Documents, runs: Sequence[Runs]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the characters of lists of runs. Cost: each text with runs is read once, whatever the number of lists."""
    document, firsts, ends = (np.concatenate(columns) for columns in zip(*runs, strict=True))
    order = np.argsort(document, kind="stable")
    document, firsts, ends = document[order], firsts[order], ends[order]
    begins, stops = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    bounds = np.searchsorted(document, np.arange(len(documents.rows) + 1))
    for low, texts in _blocks(documents):
        offsets = bounds[low : low + len(texts) + 1]
        part = slice(int(offsets[0]), int(offsets[-1]))
        if part.start < part.stop:
            characters = find_characters(texts, offsets - part.start, firsts[part], ends[part], documents.ignore)
            begins[order[part]], stops[order[part]] = characters
    cuts = np.cumsum([len(one) for one, _, _ in runs])[:-1]
    return list(zip(np.split(begins, cuts), np.split(stops, cuts), strict=True))


def _texts(
    documents: Documents, document: NDArray[np.int32], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> list[str]:
    bounds = np.searchsorted(document, np.arange(len(documents.rows) + 1)).tolist()
    excerpts: list[str] = []
    for low, texts in _blocks(documents):
        for place, text in enumerate(texts, low):
            if bounds[place] < bounds[place + 1]:
                whole = text.decode()
                excerpts += [
                    whole[begins[run] : min(ends[run], begins[run] + EXCERPT)]
                    for run in range(bounds[place], bounds[place + 1])
                ]
    return excerpts


def _blocks(documents: Documents) -> Iterator[tuple[int, list[bytes]]]:
    low = 0
    for chunk in documents.rows["text"].chunks:
        if len(chunk):
            yield low, chunk.cast(pa.binary()).to_pylist()
        low += len(chunk)


def kept_lines(documents: Documents, tables: Mapping[str, pa.Table], mark: str) -> Iterator[tuple[int, str]]:
    """Yield the `doc_key` of each document that is not dropped, and a line of JSON.

    The line has its id, and its text with `mark` for each cut.
    """
    rows = zip(*(tables["cuts"][name].to_pylist() for name in ("doc_id", "char", "char_end")), strict=True)
    cuts = {doc_id: [span[1:] for span in spans] for doc_id, spans in groupby(rows, key=itemgetter(0))}
    repeating = tables["repeating"]
    flags = zip(repeating["doc_id"].to_pylist(), repeating["dropped"].to_pylist(), strict=True)
    dropped = {doc_id for doc_id, is_dropped in flags if is_dropped}
    names = ("doc_key", "doc_id", "text")
    for batch in documents.rows.select(names).to_batches(max_chunksize=1_000):
        for key, doc_id, text in zip(*(batch[name].to_pylist() for name in names), strict=True):
            if doc_id not in dropped:
                kept = cut_text(text, cuts.get(doc_id, ()), mark)
                yield key, json.dumps({"id": doc_id, "text": kept}, ensure_ascii=False)


def list_verdicts(documents: Documents, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return what becomes of each document where the files are written again.

    Columns: `source`, `record`; `nddup_kept`, whether it stays; `nddup_passages` and `nddup_cuts` as of
    `rewriting.verdicts.SPANS`.
    """
    rows = documents.rows.select(["doc_id", "source", "record"])
    repeating = tables["repeating"]
    gone = repeating["doc_id"].filter(repeating["dropped"])
    verdicts = rows.append_column(NAMES[0], pc.invert(pc.is_in(rows["doc_id"], gone.combine_chunks())))
    for one, table in zip(SPANS, ("occurrences", "cuts"), strict=True):
        verdicts = verdicts.append_column(one, _list_spans(rows["doc_id"], tables[table], one.type.value_type))
    return verdicts.drop_columns(["doc_id"])


def _list_spans(doc_ids: pa.ChunkedArray, rows: pa.Table, fields: pa.StructType) -> pa.ListArray:
    """Return for each document its rows in the order of their tokens, as a list of `fields`."""
    document = np.asarray(pc.index_in(rows["doc_id"].combine_chunks(), value_set=doc_ids.combine_chunks()))
    order = np.lexsort((rows["token"].to_numpy(), document))
    offsets = np.searchsorted(document[order], np.arange(len(doc_ids) + 1)).astype(np.int32)
    taken = rows.select([one.name for one in fields]).take(pa.array(order)).combine_chunks()
    columns = [taken[one.name].combine_chunks().cast(one.type) for one in fields]
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(columns, fields=list(fields)))


def find_characters(
    texts: list[bytes],
    offsets: NDArray[np.int64],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
    ignore: tuple[str, ...] = (),
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first character of runs of tokens, and the one after their last.

    Args:
        texts: n texts in UTF-8.
        offsets: (n + 1,), the runs of text i are those from `offsets[i]` to `offsets[i + 1]`.
        firsts: the first token of each run.
        ends: the token after the last of each run, greater than the first.
        ignore: what tokens leave out.

    Cost: each text with runs is read once more.
    """
    data, bounds = join_encoded(texts)
    return _find_characters(data, bounds, word_table(ignore), offsets, firsts, ends)


@compiled
def _find_characters(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    table: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    begins, stops = np.empty(len(firsts), np.int64), np.empty(len(firsts), np.int64)
    for text in range(len(bounds) - 1):
        if offsets[text] == offsets[text + 1]:
            continue
        start, end = bounds[text], bounds[text + 1]
        room = most_tokens(end - start) + 1
        heads, tails = np.empty(room, np.int32), np.empty(room, np.int32)
        locate_tokens(data, start, end, table, heads, tails)
        before = np.zeros((end - start >> BLOCK) + 1, np.int32)  # characters before each block
        for block in range(len(before) - 1):
            low = start + (block << BLOCK)
            before[block + 1] = before[block] + count_characters(data, low, low + (1 << BLOCK))
        for run in range(offsets[text], offsets[text + 1]):
            for places, at in ((begins, heads[firsts[run]]), (stops, tails[ends[run] - 1])):
                block = at - start >> BLOCK
                places[run] = before[block] + count_characters(data, start + (block << BLOCK), at)
    return begins, stops


def find_sentences(text: bytes, n_tokens: int, ignore: tuple[str, ...] = ()) -> Sentences:
    """Find the sentences of a text in UTF-8.

    A sentence ends with a full stop and the like before a blank, unless a small letter follows ("e.g. this"); with a
    line, unless a small letter follows, as in wrapped text; and with an empty line.

    Args:
        n_tokens: the number of its tokens, at least one.
        ignore: what tokens leave out.

    Cost: the text is read twice.
    """
    firsts = np.arange(n_tokens)
    begins, _ = find_characters([text], np.array([0, n_tokens]), firsts, firsts + 1, ignore)
    whole = text.decode()
    ends = [(end.end(), end[0].count("\n") > 1) for end in _END.finditer(whole)]
    places = np.array([place for place, _ in ends], np.int64)
    first = np.searchsorted(begins, places)
    is_one = [at < n_tokens and (is_parted or not whole[begins[at]].islower())
              for at, (_, is_parted) in zip(first.tolist(), ends, strict=True)]  # fmt: skip
    tokens, chars = np.append(0, first[is_one]), np.append(0, places[is_one])
    is_last = np.append(tokens[1:] != tokens[:-1], True)
    return Sentences(tokens[is_last], np.append(chars[is_last], len(whole)))
