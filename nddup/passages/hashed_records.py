"""A consumer of found records: HASHED, their texts and the hashes of their tokens; and where tokens lie in texts.

A text and its hashes travel together: on this machine in files of the workers, which are mapped, not in memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.against.against_tables import HASHED
from nddup.against.shingle_table import read_only
from nddup.against.spans import count_characters, locate_tokens
from nddup.arrays import Ragged, compiled
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Reject
from nddup.scanning.found import Batches, LocatedRecord, TextRule, join_encoded
from nddup.sketching.rolling_hash import hash_rows, most_tokens
from nddup.sketching.tokens import WORD_TABLE
from nddup.tables import TYPES, Table

BLOCK = 8
"""Characters are counted once for each 2**8 bytes, and from there on for each place that is asked for."""


@dataclass(frozen=True)
class HashRecords:
    """Makes one row per record: a document with its text and token hashes, or a reject with its reason.

    Without `hashes` their lists are empty, and the tokens are counted alone.
    """

    rule: TextRule
    hashes: bool = True
    table: ClassVar[Table] = HASHED

    def batches(self, found: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield HASHED, one batch per list of records."""
        del head
        kinds = [TYPES[column.type] for column in HASHED.columns[:-3]]
        for some in found:
            rows = [self._row_of(one) for one in some]
            *values, texts = zip(*rows, strict=True)
            data, bounds = join_encoded(texts)
            hashed = hash_rows(data, bounds)
            columns = [pa.array(column, kind) for column, kind in zip(values, kinds, strict=True)]
            ends = pa.py_buffer(bounds.astype(np.int32))
            columns.append(pa.StringArray.from_buffers(len(rows), ends, pa.py_buffer(data)))
            sizes = pa.array(np.diff(hashed.offsets).astype(np.int32))
            if not self.hashes:
                hashed = Ragged(np.zeros_like(hashed.offsets), np.empty(0, np.uint64))
            lists = pa.ListArray.from_arrays(hashed.offsets.astype(np.int32), pa.array(hashed.values.view(np.int64)))
            yield HASHED.batch([*columns, sizes, lists])

    def _row_of(self, one: LocatedRecord) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, bytes]:
        place, record = (one.source, one.split, one.seq), one.record
        if isinstance(record, Reject):
            return (*place, record.doc_id, None, record.reason, record.detail, record.excerpt, b"")
        return (*place, record.doc_id, record.url, None, "", "", bytes(self.rule.read_encoded(record).text))


def hashes_of(rows: pa.Table) -> Ragged:
    """Return the token hashes of rows of HASHED. Cost: one copy, 8 bytes a token."""
    chunks = [chunk for chunk in rows["hashes"].chunks if len(chunk)]
    lengths = [np.diff(np.asarray(chunk.offsets)) for chunk in chunks]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.concatenate([np.empty(0, np.int64), *lengths]), out=offsets[1:])
    values = [np.asarray(chunk.flatten()).view(np.uint64) for chunk in chunks]
    return Ragged(offsets, np.concatenate([np.empty(0, np.uint64), *values]))


def find_characters(
    texts: list[bytes], offsets: NDArray[np.int64], firsts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first character of runs of tokens, and the one after their last.

    Args:
        texts: n texts in UTF-8.
        offsets: (n + 1,), the runs of text i are those from `offsets[i]` to `offsets[i + 1]`.
        firsts: the first token of each run.
        ends: the token after the last of each run, greater than the first.

    Cost: each text with runs is read once more.
    """
    data, bounds = join_encoded(texts)
    return _find_characters(read_only(data), read_only(bounds), WORD_TABLE, *map(read_only, (offsets, firsts, ends)))


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
