"""Rows of Parquet give the same rows of RECORDS whether they are read together, in blocks, or one by one."""

import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading import parquet_rows
from nddup.reading.formats import FORMATS, FileHead
from nddup.reading.outcomes import Record, Reject
from nddup.reading.parquet_rows import ROWS, open_parquet, read_batches
from nddup.scanning import row_blocks
from nddup.scanning.found import LocatedRecord, SketchRule, TextRule, in_batches
from nddup.scanning.record_blocks import Block, Places
from nddup.scanning.sketch_records import SketchRecords
from nddup.scanning.whole_files import StoredFile, _found_in, read_files
from nddup.sketching.recipe import Recipe

HEAD = FileHead(format=FORMATS["parquet"], encoding="utf-8", separator=b"")
VALUED = replace(HEAD, format=replace(HEAD.format, policy=("url", "x", "y")))
MAX_RECORD = 1_000
RULES = [SketchRule(Recipe(length=1), TextRule(markup), min_tokens=2, confirm="resemblance")
         for markup in ("auto", "text", "html")]  # fmt: skip
PIECES = (
    "one two ",
    "три ",
    "<p>a <b>b</b></p>",
    "a < b",
    "\n",
    "\t",
    " ",
    "\x7f",
    "\u2028",
    "\ufeff",
    "\0",
    "é",
    "w" * 40,
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)
STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
BYTES = [pa.binary(), pa.large_binary(), pa.binary(3), pa.dictionary(pa.int8(), pa.binary())]
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    **{kind: TEXTS | st.sampled_from(["a", "b", "document 7", "long " * 210]) for kind in STRINGS},
    **{kind: st.binary(min_size=3, max_size=3) for kind in BYTES},
    pa.int64(): st.integers(-9, 2**40), pa.uint64(): st.integers(0, 2**64 - 1), pa.float64(): st.floats(),
    pa.bool_(): st.booleans(), pa.null(): st.none(), pa.uuid(): st.binary(min_size=16, max_size=16),
    pa.timestamp("ms"): st.integers(-9, 9).map(lambda days: datetime(2026, 1, 1) + timedelta(days)),  # noqa: DTZ001
    pa.list_(pa.string()): st.lists(st.sampled_from("ab"), max_size=2),
}  # fmt: skip
USUAL = st.sampled_from(STRINGS[:2])


@st.composite
def columns(draw: st.DrawFn, size: int) -> pa.Array:
    """Return a column of any type, some of whose values are null; of strings, some may not be UTF-8."""
    kind = draw(USUAL | st.sampled_from(list(KINDS)))
    values = draw(st.lists(KINDS[kind] | st.none(), min_size=size, max_size=size))
    if kind == pa.string() and draw(st.integers(0, 5)) == 0:
        raw = pa.array([b"b\xff" if value == "a" else value and value.encode() for value in values], pa.binary())
        return pa.StringArray.from_buffers(size, *raw.buffers()[1:], raw.buffers()[0])
    return pa.array(values, kind) if kind != pa.uuid() else pa.array(values, pa.binary(16)).cast(kind)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Return a Parquet file, maybe with damaged bytes in its pages."""
    size = draw(st.integers(0, 30))
    names = draw(
        st.sampled_from(
            [
                ("id", "url", "text"),
                ("text", "id"),
                ("text",),
                ("id", "title", "text"),
                ("id",),
                ("id", "x", "text", "y"),
            ]
        )
    )
    out = io.BytesIO()
    pq.write_table(
        pa.table({name: draw(columns(size)) for name in names}), out,
        row_group_size=draw(st.sampled_from([1, 7, 30])), use_dictionary=draw(st.booleans()),
        compression=draw(st.sampled_from(["none", "zstd"])), data_page_size=draw(st.sampled_from([1, 1 << 20])),
        write_batch_size=draw(st.sampled_from([1, 5, 1024])), write_page_checksum=True,
    )  # fmt: skip
    data = bytearray(out.getvalue())
    for group in range(pq.ParquetFile(out).num_row_groups if draw(st.booleans()) else 0):
        column = pq.ParquetFile(out).metadata.row_group(group).column(draw(st.integers(0, len(names) - 1)))
        if draw(st.booleans()) and column.total_compressed_size:
            start = column.dictionary_page_offset or column.data_page_offset
            place = start + draw(st.integers(0, column.total_compressed_size - 1))
            data[place] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


def rows_of(found: Sequence[Sequence[LocatedRecord]], rule: SketchRule, head: FileHead) -> list[dict[str, Any]]:
    """Return the rows of RECORDS."""
    return [row for batch in SketchRecords(rule).batches(found, head) for row in batch.to_pylist()]


def stored(data: bytes, most: int = 1 << 40) -> StoredFile:
    return StoredFile("a", "", most, partial(io.BytesIO, data))


@given(data=files(), size=st.integers(1, 20_000), most=st.sampled_from([1 << 40, 150]), rule=st.sampled_from(RULES),
       head=st.sampled_from((HEAD, VALUED)))  # fmt: skip
def test_blocks_give_the_rows_of_single_records(
    data: bytes, size: int, most: int, rule: SketchRule, head: FileHead
) -> None:
    """Whatever the types, the values and the damage, rows read together are those that are decoded a few at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_rows, "BLOCK_BYTES", size)
        patch.setattr(parquet_rows, "EXPANDED", 16 * size)
        patch.setattr(row_blocks, "BLOCK_BYTES", size)
        found = list(read_files([stored(data, most), stored(data, most)], head, MAX_RECORD))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_rows, "MOST_ROWS", ROWS)
        single = list(_found_in(stored(data, most), head, MAX_RECORD))

    assert rows_of(found, rule, head) == 2 * rows_of(list(in_batches(single, head.format)), rule, head)
    assert [one for some in found for one in some] == 2 * single
    for block in (some for some in found if isinstance(some, Block)):
        numbers = np.arange(0, len(single), 3)
        assert list(block.among(Places({("a", 0): (0, len(numbers))}, numbers))) == [
            one for one in block if one.seq % 3 == 0
        ]


@pytest.mark.parametrize(("lengths", "batches", "most"), [
    ([10] * 10_000 + [1_000] * 500, range(100, 200), 130_000),  # some 57 bytes on average: one batch shows the tail
    ([10] * 10_000, range(2, 40), 10_000),
    ([10_000] * 100, range(10, 30), 100_000),
])  # fmt: skip
def test_as_many_rows_are_decoded_as_their_lengths_allow(
    lengths: list[int], batches: range, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches are of some bytes on average, and smaller after one that is far larger; each row comes once."""
    out = io.BytesIO()
    texts = [f"{row:010}" + "a" * (length - 10) for row, length in enumerate(lengths)]
    pq.write_table(pa.table({"text": texts}), out, use_dictionary=False)
    monkeypatch.setattr(parquet_rows, "BLOCK_BYTES", 10_000)

    found = [batch for batch, _ in read_batches(open_parquet(out), out, 0, ["text"], 1 << 20)]

    assert [text for batch in found for text in batch.column("text").to_pylist()] == texts
    assert len(found) in batches
    assert max(batch.nbytes for batch in found) <= most
    assert sum(batch.nbytes > 45_000 for batch in found[:-1]) <= 1


def test_a_dictionary_of_short_values_is_decoded_in_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its longest value bounds the rows, not its size."""
    monkeypatch.setattr(parquet_rows, "EXPANDED", 100_000)
    out = io.BytesIO()
    pq.write_table(pa.table({"text": [f"{row:030}" for row in range(5_000)] * 2}), out)

    sizes = [batch.num_rows for batch, _ in read_batches(open_parquet(out), out, 0, ["text"], 1 << 20)]

    assert max(sizes) == 2_048
    assert sum(sizes) == 10_000


def test_rows_before_a_damaged_page_are_read() -> None:
    """Of ten pages of ten rows, the last of which is damaged, all rows but its own and two before them are records."""
    out = io.BytesIO()
    options = {"use_dictionary": False, "compression": "none", "data_page_size": 1, "write_batch_size": 10}
    pq.write_table(pa.table({"text": [f"text {row}" for row in range(100)]}), out, write_page_checksum=True, **options)
    column, data = pq.ParquetFile(out).metadata.row_group(0).column(0), bytearray(out.getvalue())
    data[column.data_page_offset + column.total_compressed_size - 1] ^= 1

    found = [one.record for some in read_files([stored(bytes(data))], HEAD, MAX_RECORD) for one in some]

    assert [one.fields[0] for one in found if isinstance(one, Record)] == [f"text {row}" for row in range(88)]
    assert [one.reason for one in found if isinstance(one, Reject)] == ["damaged"]
